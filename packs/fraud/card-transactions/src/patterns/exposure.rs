//! Where cards that are misused now may have been copied.

use std::collections::{BTreeMap, BTreeSet};

use super::super::case_file::{CaseFile, Past};
use super::super::features::{DAY_MS, within};
use super::super::row::{Transaction, rfc3339};
use super::super::statistics::{permille, ramp};
use super::{Finding, Look, Pattern, ROWS_MAX, count};

/// Longest time between the copy of a card and its misuse.
const EXPOSED_MS: i64 = 90 * DAY_MS;

/// Fewest misused cards that paid at the merchant, and their least share, in thousandths.
const VICTIMS_MIN: usize = 3;
const VICTIMS_PERMILLE_MIN: u32 = 600;

/// Cards without a known fraud that show where everybody pays.
const OTHERS_MIN: usize = 5;

/// How many times more often misused cards must have paid there than others.
const LIFT_MIN: u32 = 2;

/// Least strength, in thousandths, of a finding that makes the payment suspicious by itself: a
/// copied card's ordinary payments are the cardholder's.
const SUSPICIOUS_FROM: u32 = 300;

/// A merchant where the card and others paid.
struct Point<'a> {
    merchant: &'a str,
    /// The first payment of each misused card there.
    victims: Vec<&'a Transaction>,
    own: &'a Transaction,
    /// Share of the misused cards, and of the others, in thousandths.
    share: u32,
    others: u32,
}

pub(super) fn common_point(case: &CaseFile, found: &[Finding]) -> Look {
    let is_suspicious = |finding: &Finding| {
        finding.strength_permille >= SUSPICIOUS_FROM
            && matches!(
                finding.pattern,
                Pattern::ImpossibleTravel
                    | Pattern::UnusualPlace
                    | Pattern::MerchantRisk
                    | Pattern::MerchantCategory
            )
    };
    if !found.iter().any(is_suspicious) {
        return Look::Nothing;
    }
    let victims: Vec<&[Past]> =
        case.sample.iter().filter_map(|rows| until_misuse(rows, &case.target)).collect();
    if victims.len() < VICTIMS_MIN {
        return Look::Nothing;
    }
    let others: Vec<&[Past]> = case
        .sample
        .iter()
        .filter(|rows| !rows.iter().any(Past::is_known_fraud))
        .map(|rows| within(rows, case.target.at_ms, 2 * EXPOSED_MS))
        .collect();
    let mut points = points(case, &victims, &others);
    points.sort_by_key(|point| (std::cmp::Reverse(point.share - point.others), spread_ms(point)));
    // Without other cards, a shop of everybody looks the same.
    let is_ambiguous = others.len() < OTHERS_MIN && points.len() > 1;
    let Some(point) = points.first().filter(|_| !is_ambiguous) else { return Look::Nothing };
    Look::Found(finding(case, point, victims.len(), others.len()))
}

/// The payments of a card before it was misused like the payment; `None` if it was not.
fn until_misuse<'a>(rows: &'a [Past], target: &Transaction) -> Option<&'a [Past]> {
    let is_alike = |past: &Past| {
        let past = &past.transaction;
        let is_there = past.city == target.city && past.country == target.country;
        past.at_ms + EXPOSED_MS >= target.at_ms
            && (past.merchant == target.merchant
                || past.is_card_present() && target.is_card_present() && is_there
                || past.channel == target.channel
                    && !past.is_card_present()
                    && past.category == target.category)
    };
    let misused = rows.iter().position(|past| past.is_known_fraud() && is_alike(past))?;
    Some(within(&rows[..misused], rows[misused].transaction.at_ms, EXPOSED_MS))
}

fn points<'a>(case: &'a CaseFile, victims: &[&'a [Past]], others: &[&'a [Past]]) -> Vec<Point<'a>> {
    let mut own: BTreeMap<&str, &Transaction> = BTreeMap::new();
    for payment in honest(within(&case.card, case.target.at_ms, EXPOSED_MS)) {
        own.entry(payment.merchant.as_str()).or_insert(payment);
    }
    own.remove(case.target.merchant.as_str());
    let of = |(merchant, own): (&'a str, &'a Transaction)| {
        let there = |rows: &&&'a [Past]| honest(rows).find(|row| row.merchant == merchant);
        let paid: Vec<&Transaction> = victims.iter().filter_map(|rows| there(&rows)).collect();
        let share = permille(paid.len(), victims.len());
        let others = permille(others.iter().filter_map(|rows| there(&rows)).count(), others.len());
        let is_point = paid.len() >= VICTIMS_MIN
            && share >= VICTIMS_PERMILLE_MIN
            && others.saturating_mul(LIFT_MIN) <= share;
        is_point.then_some(Point { merchant, victims: paid, own, share, others })
    };
    own.into_iter().filter_map(of).collect()
}

fn honest(rows: &[Past]) -> impl Iterator<Item = &Transaction> {
    rows.iter().filter(|past| !past.is_known_fraud()).map(|past| &past.transaction)
}

/// Cards are copied within days, and pay in their usual shops all year.
fn spread_ms(point: &Point<'_>) -> i64 {
    let times = || point.victims.iter().map(|payment| payment.at_ms);
    times().max().unwrap_or_default() - times().min().unwrap_or_default()
}

fn finding(case: &CaseFile, point: &Point<'_>, victims: usize, others: usize) -> Finding {
    let day = |payment: &Transaction| rfc3339(payment.at_ms).chars().take(10).collect::<String>();
    let explanation = format!(
        "{} of {victims} cards that were misused like this had paid at {} before, and so had this card, \
         on {}; of {others} cards without a known fraud, {} % had. The payment itself is elsewhere",
        point.victims.len(),
        point.merchant,
        day(point.own),
        point.others / 10,
    );
    let cited = point.victims.iter().rev().take(ROWS_MAX - 2);
    let rows: BTreeSet<&str> =
        cited.map(|payment| payment.id.as_str()).chain([point.own.id.as_str()]).collect();
    let rows = rows.into_iter().chain([case.target.id.as_str()]).map(str::to_owned).collect();
    let strength = ramp(count(point.victims.len()), (3, 8), (500, 800));
    Finding {
        pattern: Pattern::CommonPoint,
        strength_permille: u32::try_from(strength).unwrap_or_default(),
        explanation,
        rows,
    }
}
