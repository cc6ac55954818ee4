//! Detects unusual patterns of a payment, with their strength and supporting rows, and what speaks
//! for the cardholder.
//!
//! The patterns are those that the trade describes. Their thresholds and weights are judgements, not
//! fitted to data.

mod card;
mod defence;
mod exposure;
mod flow;
mod merchant;
mod pace;
mod place;
mod taps;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case_file::{CaseFile, Past};
use super::features::{Features, usual_amount, within};
use super::habits;
use super::kinds::{Kind, euro_cents, kind_of};
use super::row::Transaction;
use super::statistics::{kilometres, median};
use super::trust;

/// Most rows cited by a finding.
const ROWS_MAX: usize = 12;

/// A payment this near a habit is at the card's usual place, in kilometres.
const NEAR_KM: u32 = 60;

/// Habits near a place that make it usual.
const NEAR_ROWS_MIN: usize = 3;

/// A tiny amount whatever the card usually pays, in euro cents.
const TINY_EURO_CENTS: i64 = 200;

/// Why a pattern that needs the size of the amount is not checked.
const UNKNOWN_CURRENCY: &str = "the size of the currency is not known";

/// Fewer habits than this show nothing of times and categories.
const ROUTINE_ROWS_MIN: usize = 15;

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// More payments within an hour than usual for the card.
    Velocity,
    /// An amount far above the card's usual one.
    AmountOutlier,
    /// Two locations too far apart to travel between in the time.
    ImpossibleTravel,
    /// A location that is new for the card.
    UnusualPlace,
    /// A series of small payments that test whether the card works.
    CardTesting,
    /// An unusual time of day for the card.
    OddHour,
    /// A merchant category that is new for the card.
    MerchantCategory,
    /// A merchant where cards were misused before.
    MerchantRisk,
    /// Many cards with tiny payments at one merchant within minutes.
    DistributedTesting,
    /// Few cards with round, high amounts at one merchant, mostly at odd hours.
    Collusion,
    /// Repeated amounts just under a round limit.
    Structuring,
    /// Small charges of an unknown merchant, again and again, that nobody notices.
    SlowDrip,
    /// A card that wakes up after months.
    DormantCard,
    /// Repeated taps just under the limit above which a PIN is asked.
    ContactlessLimit,
    /// A refund without a purchase.
    UnmatchedRefund,
    /// Several large purchases within days, far above anything the card has spent before.
    BustOut,
    /// Incoming money that leaves the card at once in a form that cannot be called back.
    PassThrough,
    /// A merchant where cards that were later misused like this one had paid before.
    CommonPoint,
}

impl Pattern {
    /// All patterns, in order of detection.
    pub const ALL: [Self; 18] = [
        Self::Velocity,
        Self::AmountOutlier,
        Self::ImpossibleTravel,
        Self::UnusualPlace,
        Self::CardTesting,
        Self::OddHour,
        Self::MerchantCategory,
        Self::MerchantRisk,
        Self::DistributedTesting,
        Self::Collusion,
        Self::Structuring,
        Self::SlowDrip,
        Self::DormantCard,
        Self::ContactlessLimit,
        Self::UnmatchedRefund,
        Self::BustOut,
        Self::PassThrough,
        Self::CommonPoint,
    ];

    /// Whether habits of the card alone can explain it.
    fn is_about_the_card(self) -> bool {
        !matches!(
            self,
            Self::MerchantRisk
                | Self::DistributedTesting
                | Self::Collusion
                | Self::ImpossibleTravel
                | Self::UnmatchedRefund
                | Self::PassThrough
                | Self::CommonPoint
        )
    }

    /// Whether it needs the hour, the order or the pace of payments.
    fn needs_a_clock(self) -> bool {
        matches!(self, Self::Velocity | Self::ImpossibleTravel | Self::OddHour)
    }

    /// Whether it needs the payment's coordinates.
    fn needs_a_place(self) -> bool {
        matches!(self, Self::ImpossibleTravel | Self::UnusualPlace)
    }
}

/// An unusual pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    pub pattern: Pattern,
    /// Strength, in thousandths.
    pub strength_permille: u32,
    /// Explanation with numbers.
    pub explanation: String,
    /// The supporting transactions, including the investigated one.
    pub rows: Vec<String>,
}

/// A fact that speaks for the cardholder. The findings' strengths already include it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Defence {
    pub name: &'static str,
    /// Explanation with numbers.
    pub explanation: String,
    /// The supporting transactions.
    pub rows: Vec<String>,
}

/// A pattern that could not be checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotChecked {
    pub pattern: Pattern,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PatternResults {
    pub transaction_id: String,
    /// Strongest first.
    pub findings: Vec<Finding>,
    /// What speaks for the cardholder.
    pub defences: Vec<Defence>,
    /// Patterns that could not be checked.
    pub not_checked: Vec<NotChecked>,
}

pub fn look(case: &CaseFile) -> PatternResults {
    let mut found = look_at(&case.target, &case.card, case.merchant.as_deref());
    match exposure::common_point(case, &found.findings) {
        Look::Found(finding) => found.findings.push(finding),
        Look::Unknown(reason) => found
            .not_checked
            .push(NotChecked { pattern: Pattern::CommonPoint, reason: reason.to_owned() }),
        Look::Nothing => {}
    }
    found.findings.sort_by_key(|finding| std::cmp::Reverse(finding.strength_permille));
    found
}

/// Looks at a payment with its card's and its merchant's earlier payments.
pub fn look_at(
    payment: &Transaction,
    before: &[Past],
    merchant: Option<&[Past]>,
) -> PatternResults {
    let others = before.iter().chain(merchant.unwrap_or_default()).map(|past| &past.transaction);
    let is_contradicted = payment.is_card_present() && trust::contradicts(others, payment);
    let placeless = is_contradicted.then(|| Transaction { point: None, ..payment.clone() });
    let place_doubt = is_contradicted
        .then_some("the coordinates contradict those of other payments in the same city");
    let doubts = Doubts { clock: trust::clock_doubt(payment, before), place: place_doubt };
    let scene = Scene::of(placeless.as_ref().unwrap_or(payment), before, merchant, doubts);
    let (mut findings, mut not_checked) = (Vec::new(), Vec::new());
    for pattern in Pattern::ALL {
        match scene.look_for(pattern) {
            Look::Found(finding) => findings.push(finding),
            Look::Nothing => {}
            Look::Unknown(reason) => {
                not_checked.push(NotChecked { pattern, reason: reason.to_owned() });
            }
        }
    }
    let defences = scene.defend(&mut findings);
    findings.retain(|finding| finding.strength_permille > 0);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.strength_permille));
    PatternResults { transaction_id: payment.id.clone(), findings, defences, not_checked }
}

enum Look {
    Found(Finding),
    Nothing,
    Unknown(&'static str),
}

/// Why the payment's time and place say nothing, if so.
#[derive(Clone, Copy, Default)]
struct Doubts {
    clock: Option<&'static str>,
    place: Option<&'static str>,
}

/// The payment and its context.
struct Scene<'a> {
    payment: &'a Transaction,
    kind: Kind,
    /// The card's earlier payments, oldest first.
    before: &'a [Past],
    /// Those that count as habits.
    habits: Vec<&'a Past>,
    /// Those that do not yet, or never.
    recent: Vec<&'a Past>,
    merchant: Option<&'a [Past]>,
    /// The card's usual amount in the payment's currency, converted if it has none in it.
    usual: Option<i64>,
    features: Features,
    doubts: Doubts,
}

impl<'a> Scene<'a> {
    fn of(
        payment: &'a Transaction,
        before: &'a [Past],
        merchant: Option<&'a [Past]>,
        doubts: Doubts,
    ) -> Self {
        let habits = habits::at(before, payment.at_ms);
        let recent = before.iter().filter(|past| past.settles_at_ms > payment.at_ms).collect();
        let own = usual_amount(&habits, &payment.currency);
        let usual = own.or_else(|| converted(&habits, payment));
        let features = Features::of(before, payment);
        let kind = kind_of(payment);
        Self { payment, kind, before, habits, recent, merchant, usual, features, doubts }
    }

    fn look_for(&self, pattern: Pattern) -> Look {
        if !self.payment.amount.is_payment() {
            return self.of_a_refund(pattern);
        }
        let doubt = self.doubts.clock.filter(|_| pattern.needs_a_clock());
        let doubt = doubt.or(self.doubts.place.filter(|_| pattern.needs_a_place()));
        if let Some(reason) = doubt {
            return Look::Unknown(reason);
        }
        match pattern {
            Pattern::Velocity => self.velocity(),
            Pattern::AmountOutlier => self.amount_outlier(),
            Pattern::ImpossibleTravel => self.impossible_travel(),
            Pattern::UnusualPlace => self.unusual_place(),
            Pattern::CardTesting => self.card_testing(),
            Pattern::OddHour => self.odd_hour(),
            Pattern::MerchantCategory => self.merchant_category(),
            Pattern::MerchantRisk => self.merchant_risk(),
            Pattern::DistributedTesting => self.distributed_testing(),
            Pattern::Collusion => self.collusion(),
            Pattern::Structuring => self.structuring(),
            Pattern::SlowDrip => self.slow_drip(),
            Pattern::DormantCard => self.dormant_card(),
            Pattern::ContactlessLimit => self.contactless_limit(),
            Pattern::BustOut => self.bust_out(),
            Pattern::PassThrough => self.pass_through(),
            // Needs the payments of other cards at other merchants.
            Pattern::UnmatchedRefund | Pattern::CommonPoint => Look::Nothing,
        }
    }

    /// A refund or a check of the card moves no money away from the cardholder.
    fn of_a_refund(&self, pattern: Pattern) -> Look {
        match pattern {
            Pattern::UnmatchedRefund => self.unmatched_refund(),
            Pattern::CardTesting => self.card_testing(),
            Pattern::MerchantRisk => self.merchant_risk(),
            Pattern::DistributedTesting => self.distributed_testing(),
            Pattern::PassThrough => self.pass_through(),
            Pattern::AmountOutlier => Look::Unknown(super::recommendations::REFUND),
            _ => Look::Nothing,
        }
    }

    fn found<'b>(
        &self,
        pattern: Pattern,
        strength: i64,
        explanation: String,
        rows: impl IntoIterator<Item = &'b Transaction>,
    ) -> Look {
        let mut rows: Vec<String> = rows.into_iter().map(|row| row.id.clone()).collect();
        // The newest payments matter most; the payment itself is always included.
        rows.drain(..rows.len().saturating_sub(ROWS_MAX - 1));
        rows.push(self.payment.id.clone());
        let strength_permille = u32::try_from(strength.clamp(0, 1_000)).unwrap_or_default();
        Look::Found(Finding { pattern, strength_permille, explanation, rows })
    }

    /// The card's payments of the last milliseconds.
    fn last(&self, span_ms: i64) -> impl Iterator<Item = &'a Transaction> + Clone {
        within(self.before, self.payment.at_ms, span_ms).iter().map(|past| &past.transaction)
    }

    fn knows(&self, is_alike: impl Fn(&Transaction) -> bool) -> bool {
        self.habits.iter().any(|past| is_alike(&past.transaction))
    }

    fn knows_merchant(&self, payment: &Transaction) -> bool {
        self.knows(|past| past.merchant == payment.merchant)
    }

    /// Whether the card is present at one of its usual places.
    fn is_at_home(&self, payment: &Transaction) -> bool {
        if !payment.is_card_present() {
            return false;
        }
        let near = self.habits.iter().map(|past| &past.transaction).filter(|past| {
            past.is_card_present()
                && match (past.point, payment.point) {
                    (Some(there), Some(here)) => kilometres(there, here) <= NEAR_KM,
                    _ => past.city == payment.city && past.country == payment.country,
                }
        });
        near.take(NEAR_ROWS_MIN).count() == NEAR_ROWS_MIN
    }

    /// Whether other cards pay similar amounts there.
    fn is_ordinary_at_the_merchant(&self) -> bool {
        self.merchant_usual().is_some_and(|usual| self.payment.amount.value() <= usual * 2)
    }

    /// The median of the merchant's settled payments of other cards.
    fn merchant_usual(&self) -> Option<i64> {
        usual_amount(&self.others(), &self.payment.currency)
    }

    /// The merchant's settled payments of other cards.
    fn others(&self) -> Vec<&'a Past> {
        let merchant = self.merchant.unwrap_or_default().iter();
        let settled = merchant.filter(|past| past.settles_at_ms <= self.payment.at_ms);
        settled.filter(|past| past.transaction.card != self.payment.card).collect()
    }

    /// Whether an amount is tiny: for anybody, or for this card.
    fn is_tiny(&self, payment: &Transaction) -> bool {
        let amount = payment.amount.value();
        let for_anybody = euro_cents(payment).is_some_and(|cents| cents <= TINY_EURO_CENTS);
        let of_usual = || usual_amount(&self.habits, &payment.currency);
        amount >= 0
            && (for_anybody
                || of_usual().is_some_and(|usual| super::features::is_small(payment, usual)))
    }
}

/// The usual amount, converted roughly into the payment's currency.
fn converted(habits: &[&Past], payment: &Transaction) -> Option<i64> {
    let paid = habits.iter().map(|past| &past.transaction).filter(|past| past.amount.is_payment());
    let cents: Vec<i64> = paid.filter_map(euro_cents).collect();
    let own = euro_cents(payment).filter(|own| *own > 0)?;
    if cents.len() < super::features::HABIT_ROWS_MIN {
        return None;
    }
    let usual = median(cents)?;
    i64::try_from(i128::from(payment.amount.value()) * i128::from(usual) / i128::from(own)).ok()
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
