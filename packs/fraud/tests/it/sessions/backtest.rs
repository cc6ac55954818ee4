//! Backtests a proposed rule independently, from the rows in the file.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Desk, Row};

const WEEK_S: i64 = 7 * 86_400;

struct Payment<'a> {
    row: &'a Row,
    at_ms: i64,
    ten_thousandths: i64,
}

impl<'a> Payment<'a> {
    fn of(row: &'a Row) -> Self {
        let (units, cents) = row.fields["amount"].split_once('.').unwrap();
        let ten_thousandths =
            units.parse::<i64>().unwrap() * 10_000 + cents.parse::<i64>().unwrap() * 100;
        Self { row, at_ms: milliseconds(&row.fields["timestamp"]), ten_thousandths }
    }

    fn field(&self, name: &str) -> &'a str {
        &self.row.fields[name]
    }

    fn degrees(&self, name: &str) -> f64 {
        self.field(name).parse().unwrap()
    }

    fn is_online(&self) -> bool {
        self.field("channel") == "online"
    }
}

/// Counts days since 1970, then adds the time of day.
fn milliseconds(text: &str) -> i64 {
    let (date, time) = text.trim_end_matches('Z').split_once('T').unwrap();
    let date: Vec<i64> = date.split('-').map(|part| part.parse().unwrap()).collect();
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut days: i64 = (1970..date[0]).map(|year| 365 + i64::from(is_leap(year))).sum();
    let lengths = [31, 28 + i64::from(is_leap(date[0])), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    days += lengths.iter().take(usize::try_from(date[1] - 1).unwrap()).sum::<i64>() + date[2] - 1;
    let parts: Vec<f64> = time.split(':').map(|part| part.parse().unwrap()).collect();
    let ms = parts[0] * 3_600_000.0 + parts[1] * 60_000.0 + parts[2] * 1_000.0;
    days * 86_400_000 + ms.round() as i64
}

/// The spherical law of cosines; the implementation under test uses the haversine.
fn kilometres(a: &Payment<'_>, b: &Payment<'_>) -> f64 {
    let (p, q) = (a.degrees("latitude").to_radians(), b.degrees("latitude").to_radians());
    let across = (b.degrees("longitude") - a.degrees("longitude")).to_radians();
    let cosine = p.sin() * q.sin() + p.cos() * q.cos() * across.cos();
    (cosine.clamp(-1.0, 1.0).acos() * 6_371.0).round()
}

/// A number of a payment by name; `None` if unknown.
fn number(name: &str, before: &[&Payment<'_>], payment: &Payment<'_>) -> Option<i64> {
    let is_settled =
        |past: &&&Payment<'_>| past.at_ms + WEEK_S * 1_000 <= payment.at_ms && !past.row.is_fraud;
    let habits: Vec<_> = before.iter().rev().filter(is_settled).take(200).collect();
    let mut easts: Vec<f64> = habits
        .iter()
        .filter(|past| !past.is_online())
        .map(|past| past.degrees("longitude"))
        .collect();
    easts.sort_by(f64::total_cmp);
    let home = easts.get(easts.len().saturating_sub(1) / 2).copied();
    let mut amounts: Vec<i64> = habits
        .iter()
        .filter(|past| {
            past.ten_thousandths > 0 && past.field("currency") == payment.field("currency")
        })
        .map(|past| past.ten_thousandths)
        .collect();
    amounts.sort_unstable();
    let median = (amounts.len() >= 5).then(|| amounts[(amounts.len() - 1) / 2]);
    let hour: Vec<_> =
        before.iter().filter(|past| past.at_ms >= payment.at_ms - 3_600_000).copied().collect();
    let journey = before
        .iter()
        .rev()
        .filter(|past| past.at_ms >= payment.at_ms - 86_400_000)
        .find(|past| !past.is_online())
        .filter(|_| !payment.is_online())
        .map(|past| (kilometres(past, payment), ((payment.at_ms - past.at_ms) / 60_000).max(1)));
    let share = |alike: &dyn Fn(&Payment<'_>) -> bool| {
        let count = habits.iter().filter(|past| alike(past)).count();
        (habits.len() >= 5).then(|| (count * 1_000 / habits.len()) as i64)
    };
    let is_new = |field: &str| {
        let seen = habits.iter().any(|past| past.field(field) == payment.field(field));
        Some(i64::from(!habits.is_empty() && !seen))
    };
    match name {
        "amount_ratio_permille" => median.map(|median| payment.ten_thousandths * 1_000 / median),
        "payments_1h" => Some(hour.len() as i64 + 1),
        "small_payments_1h" => Some(median.map_or(0, |median| {
            let all = hour.iter().copied().chain([payment]);
            all.filter(|payment| payment.ten_thousandths * 8 <= median).count() as i64
        })),
        "journey_km" => journey.map(|(km, _)| km as i64),
        "journey_kmh" => journey.map(|(km, minutes)| (km as i64) * 60 / minutes),
        "hour_share_permille" => share(&|past| {
            let apart = (sun(past, home) - sun(payment, home)).rem_euclid(24);
            apart <= 2 || apart >= 22
        }),
        "category_share_permille" => {
            share(&|past| past.field("merchant_category") == payment.field("merchant_category"))
        }
        "is_new_country" => is_new("country"),
        "is_new_merchant" => is_new("merchant_id"),
        "is_online" => Some(i64::from(payment.is_online())),
        other => panic!("{other}"),
    }
}

/// The cardholder's solar hour, with whole degrees: an online payment's is that of home.
fn sun(payment: &Payment<'_>, home: Option<f64>) -> i64 {
    let own = payment.degrees("longitude");
    let east = if payment.is_online() { home.unwrap_or(own) } else { own };
    let degrees = east.trunc() as i64;
    (payment.at_ms + degrees * 240_000).div_euclid(3_600_000).rem_euclid(24)
}

fn stops(rule: &Value, before: &[&Payment<'_>], payment: &Payment<'_>) -> bool {
    rule["all"].as_array().unwrap().iter().all(|condition| {
        let number = number(condition["field"].as_str().unwrap(), before, payment);
        let value = condition["value"].as_i64().unwrap();
        number.is_some_and(|number| match condition["is"].as_str().unwrap() {
            "at_least" => number >= value,
            "at_most" => number <= value,
            other => panic!("{other}"),
        })
    })
}

/// The rule's backtest, with the knowledge at the time of the payment.
fn tried(rule: &Value, rows: &[Row], target: &str) -> Value {
    let all: Vec<Payment<'_>> = rows.iter().map(Payment::of).collect();
    let now = all.iter().find(|payment| payment.row.id == target).unwrap().at_ms;
    let mut by_card: BTreeMap<&str, Vec<&Payment<'_>>> = BTreeMap::new();
    for payment in all.iter().filter(|p| p.at_ms <= now && p.row.id != target) {
        by_card.entry(payment.field("card_id")).or_default().push(payment);
    }
    let (mut transactions, mut frauds, mut caught, mut stopped) = (0, 0, 0, 0);
    let (mut bad, mut stopped_cards) = (BTreeSet::new(), BTreeSet::new());
    let mut worth: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    let mut cards = BTreeSet::new();
    for (card, payments) in &by_card {
        for (place, payment) in payments.iter().enumerate() {
            if payment.at_ms + WEEK_S * 1_000 > now {
                continue;
            }
            cards.insert(*card);
            transactions += 1;
            let is_stopped = stops(rule, &payments[..place], payment);
            let kind = match (payment.row.is_fraud, is_stopped) {
                (true, true) => "caught",
                (true, false) => "missed",
                (false, true) => "stopped",
                (false, false) => continue,
            };
            *worth.entry((kind, payment.field("currency"))).or_default() += payment.ten_thousandths;
            frauds += i64::from(payment.row.is_fraud);
            caught += i64::from(kind == "caught");
            if payment.row.is_fraud {
                bad.insert(*card);
            } else {
                stopped += 1;
                stopped_cards.insert(*card);
            }
        }
    }
    let value = |kind: &str| -> BTreeMap<&str, String> {
        let of_kind = worth.iter().filter(|((of, _), _)| *of == kind);
        of_kind
            .map(|((_, currency), sum)| {
                (*currency, format!("{}.{:02}", sum / 10_000, sum % 10_000 / 100))
            })
            .collect()
    };
    json!({
        "transactions": transactions, "cards": cards.len(), "frauds": frauds,
        "frauds_caught": caught, "honest_stopped": stopped,
        "honest_cards": cards.len() - bad.len(),
        "honest_cards_stopped": stopped_cards.difference(&bad).count(),
        "value_caught": value("caught"), "value_missed": value("missed"),
        "value_honest_stopped": value("stopped"),
        "precision_permille": if caught + stopped == 0 { 0 } else { caught * 1_000 / (caught + stopped) },
    })
}

#[test]
fn a_backtest_is_deterministic() {
    let desk = Desk::generated(4, 2_400, 40);
    let (frauds, _) = desk.targets(1);
    let mut proposed = BTreeSet::new();
    for fraud in frauds.iter().rev().take(40) {
        let draft = desk.investigate(&fraud.id)["rule_draft"].clone();
        if draft.is_null() {
            continue;
        }
        let rule = &draft["rule"];
        proposed.insert(rule["name"].as_str().unwrap().to_owned());
        assert_eq!(draft["backtest"]["is_whole"], true);
        for (figure, expected) in tried(rule, &desk.rows, &fraud.id).as_object().unwrap() {
            assert_eq!(draft["backtest"][figure], *expected, "{figure} of {rule} for {}", fraud.id);
        }
        let precision = draft["backtest"]["precision_permille"].as_i64().unwrap();
        assert!(precision >= 500 && draft["backtest"]["frauds_caught"].as_i64().unwrap() >= 2);
    }
    println!("proposed: {proposed:?}");
    assert!(proposed.len() >= 3, "too few rules were proposed to compare: {proposed:?}");
}
