//! A payment as numbers relative to its card's history. Rules use these features, and similar cases
//! are found by them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case_file::Past;
use super::habits;
use super::row::{Channel, Transaction};
use super::statistics::{kilometres, median, permille};
use super::trust;

/// Minimum number of payments for a usable history.
pub const HABIT_ROWS_MIN: usize = 5;

pub const HOUR_MS: i64 = 3_600_000;
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// Shorter distances, in kilometres, may be inaccurate terminal positions.
pub const JOURNEY_KM_MIN: u32 = 150;

/// Longest time since the previous place for measuring travel, in milliseconds.
const JOURNEY_MS_MAX: i64 = 24 * HOUR_MS;

/// A payment is small if it is at most this fraction (1/n) of the card's median.
pub const SMALL_DIVISOR: i64 = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// The amount relative to the card's median in the same currency, in thousandths; `None`
    /// without history.
    pub amount_ratio_permille: Option<u32>,
    /// Payments of the card in the last hour, including this one.
    pub payments_1h: u32,
    /// Those of them that are small.
    pub small_payments_1h: u32,
    /// Distance from the card's last location, in kilometres.
    pub journey_km: Option<u32>,
    /// Speed of that travel, in kilometres per hour.
    pub journey_kmh: Option<u32>,
    /// Share of the card's payments within two hours of this time of day, in thousandths.
    pub hour_share_permille: Option<u32>,
    /// Share of the card's payments in this category.
    pub category_share_permille: Option<u32>,
    /// Whether the country is new for the card.
    pub is_new_country: bool,
    /// Whether the merchant is new for the card.
    pub is_new_merchant: bool,
    pub is_online: bool,
}

/// A feature's name, as used in rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    AmountRatioPermille,
    #[serde(rename = "payments_1h")]
    Payments1h,
    #[serde(rename = "small_payments_1h")]
    SmallPayments1h,
    JourneyKm,
    JourneyKmh,
    HourSharePermille,
    CategorySharePermille,
    IsNewCountry,
    IsNewMerchant,
    IsOnline,
}

impl Features {
    /// Computes the features of a payment; `before` are its card's earlier payments, oldest first.
    pub fn of(before: &[Past], payment: &Transaction) -> Self {
        let habits = habits::at(before, payment.at_ms);
        let home = home(&habits);
        let middle = usual_amount(&habits, &payment.currency);
        let hour = within(before, payment.at_ms, HOUR_MS);
        let journey = journey(before, payment);
        let is_habit = habits.len() >= HABIT_ROWS_MIN;
        let share = |is_alike: &dyn Fn(&Transaction) -> bool| {
            let alike = habits.iter().filter(|past| is_alike(&past.transaction)).count();
            is_habit.then(|| permille(alike, habits.len()))
        };
        let is_new = |is_alike: &dyn Fn(&Transaction) -> bool| {
            !habits.is_empty() && !habits.iter().any(|past| is_alike(&past.transaction))
        };
        Self {
            amount_ratio_permille: middle.map(|middle| ratio(payment.amount.value(), middle)),
            payments_1h: count(hour.len() + 1),
            small_payments_1h: middle.map_or(0, |middle| {
                let small = hour.iter().map(|past| &past.transaction).chain([payment]);
                count(small.filter(|payment| is_small(payment, middle)).count())
            }),
            journey_km: journey.map(|journey| journey.km),
            journey_kmh: journey.map(|journey| journey.kmh),
            hour_share_permille: share(&|past| {
                hours_apart(past.hour(home), payment.hour(home)) <= 2
            }),
            category_share_permille: share(&|past| past.category == payment.category),
            is_new_country: is_new(&|past| past.country == payment.country),
            is_new_merchant: is_new(&|past| past.merchant == payment.merchant),
            is_online: payment.channel == Channel::Online,
        }
    }

    /// The value of a feature, flags as 0 and 1; `None` if unknown.
    pub fn get(&self, feature: Feature) -> Option<u32> {
        match feature {
            Feature::AmountRatioPermille => self.amount_ratio_permille,
            Feature::Payments1h => Some(self.payments_1h),
            Feature::SmallPayments1h => Some(self.small_payments_1h),
            Feature::JourneyKm => self.journey_km,
            Feature::JourneyKmh => self.journey_kmh,
            Feature::HourSharePermille => self.hour_share_permille,
            Feature::CategorySharePermille => self.category_share_permille,
            Feature::IsNewCountry => Some(u32::from(self.is_new_country)),
            Feature::IsNewMerchant => Some(u32::from(self.is_new_merchant)),
            Feature::IsOnline => Some(u32::from(self.is_online)),
        }
    }
}

/// Travel since the card's last location.
#[derive(Clone, Copy, Debug)]
pub struct Journey<'a> {
    pub from: &'a Transaction,
    pub km: u32,
    pub kmh: u32,
}

impl<'a> Journey<'a> {
    /// `None` without places.
    pub fn between(from: &'a Transaction, to: &Transaction) -> Option<Self> {
        let km = kilometres(from.point?, to.point?);
        // Two terminals a minute apart may disagree by that minute.
        let minutes = ((to.at_ms - from.at_ms) / 60_000).max(1);
        let kmh = i64::from(km) * 60 / minutes;
        Some(Self { from, km, kmh: u32::try_from(kmh).unwrap_or(u32::MAX) })
    }
}

/// Distance and speed of the card's travel; online payments do not move it, and neither do
/// coordinates that contradict their city.
pub fn journey<'a>(before: &'a [Past], payment: &Transaction) -> Option<Journey<'a>> {
    let to = payment.point.filter(|_| payment.is_card_present())?;
    let all = || before.iter().map(|past| &past.transaction);
    let is_wrong = |from: &Transaction| {
        from.point.is_some_and(|there| kilometres(there, to) >= JOURNEY_KM_MIN)
            && trust::contradicts(all(), from)
    };
    let recent = within(before, payment.at_ms, JOURNEY_MS_MAX).iter().rev();
    let mut places = recent.map(|past| &past.transaction).filter(|past| past.is_card_present());
    let from = places.find(|past| past.point.is_some() && !is_wrong(past))?;
    let journey = Journey::between(from, payment)?;
    let is_far = journey.km >= JOURNEY_KM_MIN;
    (!is_far || !trust::contradicts(all(), payment)).then_some(journey)
}

/// The payments within a period before a time.
pub fn within(before: &[Past], at_ms: i64, span_ms: i64) -> &[Past] {
    let first = before.partition_point(|past| past.transaction.at_ms < at_ms - span_ms);
    &before[first..]
}

/// The card's median amount in a currency; `None` without history.
pub fn usual_amount<'a>(
    habits: impl IntoIterator<Item = &'a &'a Past>,
    currency: &str,
) -> Option<i64> {
    let amounts: Vec<i64> = habits
        .into_iter()
        .map(|past| &past.transaction)
        .filter(|past| past.amount.is_payment() && past.currency == currency)
        .map(|past| past.amount.value())
        .collect();
    if amounts.len() < HABIT_ROWS_MIN {
        return None;
    }
    median(amounts)
}

/// The longitude of the median payment with the card present, in millionths of a degree.
pub fn home(habits: &[&Past]) -> Option<i32> {
    let present = habits.iter().map(|past| &past.transaction).filter(|past| past.is_card_present());
    let longitudes = present.filter_map(|past| Some(i64::from(past.point?.longitude)));
    median(longitudes.collect()).and_then(|longitude| i32::try_from(longitude).ok())
}

/// Whether a payment is small relative to the median.
pub fn is_small(payment: &Transaction, usual: i64) -> bool {
    payment.amount.value() >= 0 && payment.amount.value() * SMALL_DIVISOR <= usual
}

/// Hours between two times of day, the shorter way around the clock.
fn hours_apart(a: i64, b: i64) -> i64 {
    let apart = (a - b).abs();
    apart.min(24 - apart)
}

fn ratio(amount: i64, usual: i64) -> u32 {
    u32::try_from(amount.max(0).saturating_mul(1_000) / usual.max(1)).unwrap_or(u32::MAX)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
