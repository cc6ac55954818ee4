//! Whether the times and places in the data can be what they say.

use std::collections::BTreeSet;

use super::case_file::Past;
use super::features::{DAY_MS, JOURNEY_KM_MIN};
use super::row::{Point, Transaction};
use super::statistics::{kilometres, median};

/// As many of the card's last payments show how exact its times are.
const CLOCK_ROWS: usize = 30;

/// Fewer payments show nothing of the clock.
const CLOCK_ROWS_MIN: usize = 5;

/// As many payments at one moment, at several merchants, are an export that lost the times.
const AT_ONCE_ROWS: usize = 3;

/// Why the times say nothing of the hour, the order and the pace of payments.
pub fn clock_doubt(payment: &Transaction, before: &[Past]) -> Option<&'static str> {
    let last = before.iter().rev().take(CLOCK_ROWS).map(|past| &past.transaction);
    let rows: Vec<&Transaction> = last.chain([payment]).collect();
    let at_once = || rows.iter().filter(|row| row.at_ms == payment.at_ms);
    let merchants: BTreeSet<&str> = at_once().map(|row| row.merchant.as_str()).collect();
    if at_once().count() >= AT_ONCE_ROWS && merchants.len() > 1 {
        return Some("several payments of the card have the same time, so their order is unknown");
    }
    if rows.len() < CLOCK_ROWS_MIN {
        return None;
    }
    let hours: BTreeSet<i64> = rows.iter().map(|row| row.at_ms.rem_euclid(DAY_MS)).collect();
    let times: BTreeSet<i64> = rows.iter().map(|row| row.at_ms).collect();
    // The offset of summer time gives a second midnight.
    if hours.len() <= 2 {
        return Some("the times are dates without a time of day");
    }
    (times.len() * 2 <= rows.len()).then_some("most times in the card's history are equal")
}

/// Whether a payment's coordinates contradict the other payments of its city: swapped, without
/// their sign, or another city's.
pub fn contradicts<'a>(
    others: impl Iterator<Item = &'a Transaction>,
    payment: &Transaction,
) -> bool {
    let Some(here) = payment.point else { return false };
    let is_city = |other: &&Transaction| {
        other.city == payment.city && other.country == payment.country && other.id != payment.id
    };
    let there: Vec<Point> = others.filter(is_city).filter_map(|other| other.point).collect();
    let near = |place: Point| {
        there.iter().filter(|other| kilometres(**other, place) < JOURNEY_KM_MIN).count()
    };
    let middle = |degrees: fn(&Point) -> i32| {
        median(there.iter().map(|point| i64::from(degrees(point))).collect())
            .and_then(|degrees| i32::try_from(degrees).ok())
    };
    let (Some(latitude), Some(longitude)) = (middle(|p| p.latitude), middle(|p| p.longitude))
    else {
        return false;
    };
    // "unknown" and similar names can be anywhere, so they contradict nothing.
    let is_one_place = near(Point { latitude, longitude }) * 4 >= there.len() * 3;
    is_one_place && near(here) * 5 < there.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Amount;
    use crate::row::Channel;

    fn payment(at_ms: i64) -> Transaction {
        Transaction {
            id: format!("t{at_ms}"),
            at_ms,
            card: "c1".to_owned(),
            merchant: "shop".to_owned(),
            category: "grocery".to_owned(),
            amount: Amount::of_cents(2_000),
            currency: "EUR".to_owned(),
            country: "DE".to_owned(),
            city: "Köln".to_owned(),
            point: None,
            channel: Channel::Chip,
        }
    }

    fn past(transaction: Transaction) -> Past {
        Past { transaction, known_fraud: None, settles_at_ms: 0 }
    }

    fn at(hours: i64, merchant: &str) -> Transaction {
        Transaction { at_ms: hours * 3_600_000, merchant: merchant.to_owned(), ..payment(0) }
    }

    #[test]
    fn dates_without_a_time_of_day_are_no_times() {
        let midnights: Vec<Past> = (0..9).map(|day| past(at(day * 24, "shop"))).collect();
        let doubt = clock_doubt(&at(9 * 24, "shop"), &midnights);
        assert_eq!(doubt, Some("the times are dates without a time of day"));
        // Midnight with the offset of Berlin, in winter and in summer.
        let offset: Vec<Past> =
            (0..9).map(|day| past(at(day * 24 - 1 - day % 2, "shop"))).collect();
        assert!(clock_doubt(&at(9 * 24 - 1, "shop"), &offset).is_some());
        let usual: Vec<Past> = (0..9).map(|day| past(at(day * 25, "shop"))).collect();
        assert_eq!(clock_doubt(&at(9 * 25, "shop"), &usual), None);
        assert_eq!(clock_doubt(&at(24, "shop"), &midnights[..1]), None);
    }

    #[test]
    fn payments_of_one_moment_at_several_merchants_have_no_order() {
        let usual: Vec<Past> = (0..9).map(|day| past(at(day * 25, "shop"))).collect();
        let mut rows = usual.clone();
        rows.extend(["a", "b"].map(|merchant| past(at(300, merchant))));
        assert!(clock_doubt(&at(300, "c"), &rows).is_some());
        // A till that books three articles at once has a clock.
        let mut rows = usual;
        rows.extend(["a", "a"].map(|merchant| past(at(300, merchant))));
        assert_eq!(clock_doubt(&at(300, "a"), &rows), None);
    }

    #[test]
    fn coordinates_of_another_place_contradict_the_city() {
        let there = |latitude: i32, longitude: i32| Transaction {
            point: Some(Point { latitude: latitude * 1_000_000, longitude: longitude * 1_000_000 }),
            ..payment(1)
        };
        let koeln = [there(51, 7), there(51, 7), there(51, 7)];
        let others = || koeln.iter();
        let swapped = Transaction { id: "own".to_owned(), ..there(7, 51) };
        assert!(contradicts(others(), &swapped));
        assert!(!contradicts(others(), &Transaction { id: "own".to_owned(), ..there(51, 6) }));
        let many = (0..9).map(|n| there(n * 5, 7)).collect::<Vec<_>>();
        assert!(!contradicts(many.iter(), &swapped));
        // Nothing is known of another city; a namesake of the city is known after its first payment.
        assert!(!contradicts(
            others(),
            &Transaction { city: "Bonn".to_owned(), ..swapped.clone() }
        ));
        let both = koeln.iter().chain(std::slice::from_ref(&swapped));
        let again = Transaction { id: "again".to_owned(), ..there(7, 51) };
        assert!(!contradicts(both, &again));
    }
}
