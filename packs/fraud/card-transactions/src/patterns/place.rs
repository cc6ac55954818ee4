//! Patterns of places and times.

use std::collections::BTreeSet;

use super::super::features::{
    DAY_MS, HABIT_ROWS_MIN, HOUR_MS, JOURNEY_KM_MIN, Journey, home, journey, within,
};
use super::super::kinds::{Kind, kind_of};
use super::super::row::{Channel, Transaction};
use super::super::statistics::{kilometres, ramp};
use super::{Look, NEAR_KM, Pattern, ROUTINE_ROWS_MIN, Scene};

/// Faster than an airliner, including transfers, in kilometres per hour.
const IMPOSSIBLE_KMH: i64 = 900;

/// Faster than any train or car, on average, in kilometres per hour: only an airliner is.
const FLIGHT_KMH: i64 = 350;

/// Speed of an airliner, in kilometres per hour, and least time at the two airports, in minutes.
const AIRLINER_KMH: i64 = 800;
const AIRPORTS_MINUTES: i64 = 40;

/// As many days with quick changes between two places show that two people share an account.
const SHARED_MIN: usize = 3;

/// Longest time between a booking and its trip.
const TICKET_MS: i64 = 180 * DAY_MS;

/// As many tickets of one carrier within [`TICKET_MS`] are those of a commuter.
const COMMUTER_TICKETS_MIN: usize = 5;

/// Longest time that another payment abroad still explains a trip.
const STAY_MS: i64 = 21 * DAY_MS;

impl<'a> Scene<'a> {
    pub(super) fn impossible_travel(&self) -> Look {
        if !self.payment.is_card_present() {
            return Look::Nothing;
        }
        if self.payment.point.is_none() {
            return Look::Unknown("the payment has no place");
        }
        let here = self.payment;
        if let Some(from) = journey(self.before, here).filter(is_impossible) {
            return self.travelled(from, here);
        }
        // After impossible travel, later payments nearby are still the cloned card's.
        let day = within(self.before, here.at_ms, DAY_MS);
        let first = self.before.len() - day.len();
        let arrived = day.iter().enumerate().rev().find_map(|(at, past)| {
            let past = &past.transaction;
            let from = journey(&self.before[..first + at], past).filter(is_impossible)?;
            let km = kilometres(past.point?, here.point?);
            (km < JOURNEY_KM_MIN).then_some((from, past))
        });
        match arrived {
            Some((from, to)) => self.travelled(from, to),
            None => Look::Nothing,
        }
    }

    fn travelled(&self, journey: Journey<'_>, to: &Transaction) -> Look {
        let Journey { from, km, kmh } = journey;
        let kmh_shown = kmh;
        let kmh = i64::from(kmh);
        let strength = if kmh >= IMPOSSIBLE_KMH {
            ramp(kmh, (IMPOSSIBLE_KMH, 3_000), (750, 1_000))
        } else {
            ramp(kmh, (FLIGHT_KMH, IMPOSSIBLE_KMH), (600, 690))
        };
        let minutes = (to.at_ms - from.at_ms) / 60_000;
        // Of two places, the card's usual one is the cardholder's.
        let is_home = self.is_at_home(self.payment) && !self.is_at_home(from);
        let shared = self.quick_changes(from, to);
        let is_shared = shared >= SHARED_MIN && self.is_plain() && self.is_at_home(self.payment);
        let shared = format!(
            "; the card was in both places as quickly on {shared} days before: two people use it"
        );
        let (strength, whose) = match (is_home, self.kind) {
            (_, _) if is_shared => (150, shared.as_str()),
            (true, _) => (350, "; this payment is at the card's usual place, the other one is not"),
            (false, Kind::Travel) => (450, "; a carrier's terminals may report another place"),
            (false, _) => (strength, ""),
        };
        let explanation = format!(
            "the card was in {} ({}) and {minutes} minutes later in {} ({}), {km} km away: \
             {kmh_shown} km/h{whose}",
            from.city, from.country, to.city, to.country,
        );
        let rows = if to.id == self.payment.id { vec![from] } else { vec![from, to] };
        self.found(Pattern::ImpossibleTravel, strength, explanation, rows)
    }

    /// On how many days the habits have changed between two places faster than anybody travels.
    fn quick_changes(&self, from: &Transaction, to: &Transaction) -> usize {
        let is_near = |a: &Transaction, b: &Transaction| match (a.point, b.point) {
            (Some(a), Some(b)) => kilometres(a, b) <= NEAR_KM,
            _ => false,
        };
        let present = self.habits.iter().map(|past| &past.transaction);
        let present: Vec<&Transaction> =
            present.filter(|past| past.is_card_present() && past.point.is_some()).collect();
        let changes = present.windows(2).filter(|pair| {
            let is_same = is_near(pair[0], from) && is_near(pair[1], to)
                || is_near(pair[0], to) && is_near(pair[1], from);
            is_same && Journey::between(pair[0], pair[1]).is_some_and(|found| is_impossible(&found))
        });
        changes.map(|pair| pair[1].at_ms / DAY_MS).collect::<BTreeSet<_>>().len()
    }

    /// Whether the amount is usual and buys nothing that resells.
    fn is_plain(&self) -> bool {
        let is_usual = self.usual.is_some_and(|usual| self.payment.amount.value() <= usual * 2);
        is_usual && !self.kind.is_liquid()
    }

    pub(super) fn unusual_place(&self) -> Look {
        if self.habits.len() < HABIT_ROWS_MIN {
            return Look::Unknown("the card has too few earlier payments");
        }
        let payment = self.payment;
        let nearest = payment.point.and_then(|here| {
            let places = self.habits.iter().filter_map(|past| past.transaction.point);
            places.map(|there| kilometres(there, here)).min()
        });
        let is_far = nearest.is_some_and(|km| km > 2 * JOURNEY_KM_MIN);
        let is_new_country = !self.knows(|past| past.country == payment.country);
        if !is_new_country && !is_far {
            return Look::Nothing;
        }
        let has_swiped = self.knows(|past| past.channel == Channel::Swipe);
        let base = strength_of_a_place(is_new_country, has_swiped, payment);
        let far = nearest.map_or(String::new(), |km| format!(", {km} km from any earlier payment"));
        let (place, way) = (&payment.city, if payment.is_card_present() { "in" } else { "from" });
        let country = if is_new_country {
            "a country that is new to the card"
        } else {
            "a place that is new to the card"
        };
        let explained = format!("paid {way} {place} ({}){far}: {country}", payment.country);
        match self.booking() {
            Some(ticket) if payment.is_card_present() => {
                let explained = format!("{explained}; but {} was paid before", ticket.category);
                self.found(Pattern::UnusualPlace, base / 4, explained, [ticket])
            }
            _ if self.travels() => {
                let explained = format!("{explained}; the card travels now and then");
                self.found(Pattern::UnusualPlace, base / 2, explained, self.stays())
            }
            _ => self.found(Pattern::UnusualPlace, base, explained, self.stays()),
        }
    }

    /// A booking or a carrier's payment before this one that may explain a trip. Tickets that the card buys
    /// all the time, as commuters do, explain none.
    pub(super) fn booking(&self) -> Option<&'a Transaction> {
        let bookings: Vec<&Transaction> =
            self.last(TICKET_MS).filter(|past| kind_of(past) == Kind::Travel).collect();
        let is_routine = |booking: &Transaction| {
            bookings.iter().filter(|past| past.merchant == booking.merchant).count()
                >= COMMUTER_TICKETS_MIN
        };
        // A booking of the last hours may be part of the misuse.
        bookings
            .iter()
            .rev()
            .copied()
            .find(|past| past.at_ms + HOUR_MS * 12 <= self.payment.at_ms && !is_routine(past))
    }

    /// Whether the card was used in two other countries before.
    fn travels(&self) -> bool {
        let present = self.habits.iter().map(|past| &past.transaction);
        let present = present.filter(|past| past.is_card_present());
        let mut countries: Vec<&str> = present.map(|past| past.country.as_str()).collect();
        countries.sort_unstable();
        countries.dedup();
        countries.len() >= 3
    }

    /// The card's recent location instead.
    fn stays(&self) -> impl Iterator<Item = &'a Transaction> {
        let country = &self.payment.country;
        self.last(STAY_MS).filter(move |past| past.country != *country).take(2)
    }

    pub(super) fn odd_hour(&self) -> Look {
        if self.habits.len() < ROUTINE_ROWS_MIN {
            return Look::Unknown("the card has too few earlier payments to know its hours");
        }
        let share = i64::from(self.features.hour_share_permille.unwrap_or(1_000));
        if share > 40 {
            return Look::Nothing;
        }
        let hour = self.payment.hour(home(&self.habits));
        let night = (0..6).contains(&hour) || hour >= 23;
        let base = ramp(share, (0, 40), (400, 150));
        let strength = if night { base } else { base / 3 };
        let strength = match self.kind {
            Kind::Transit => strength / 2,
            // Their merchants charge at night, in batches.
            Kind::Recurring if !self.payment.is_card_present() => strength / 4,
            _ => strength,
        };
        let whose = if self.payment.is_card_present() { "" } else { " of the cardholder" };
        let explanation = format!(
            "paid at {hour} o'clock solar time{whose}; {} % of {} earlier payments were within two \
             hours of it",
            share / 10,
            self.habits.len(),
        );
        self.found(Pattern::OddHour, strength, explanation, None)
    }
}

/// Who pays by chip knew the PIN; a stolen or copied card needs none elsewhere. A counterfeit has only the magnetic
/// stripe, which cardholders with a chip rarely use.
fn strength_of_a_place(is_new_country: bool, has_swiped: bool, payment: &Transaction) -> i64 {
    let base = match payment.channel {
        Channel::Chip => 300,
        Channel::Contactless => 380,
        Channel::Swipe if !has_swiped => 650,
        Channel::Swipe => 500,
        Channel::Atm => 500,
        Channel::Online => 500,
    };
    if is_new_country { base } else { base * 2 / 3 }
}

/// Whether nobody travels that fast: not even by air, or too fast for the ground and too soon for airports.
fn is_impossible(journey: &Journey<'_>) -> bool {
    let (km, kmh) = (i64::from(journey.km), i64::from(journey.kmh));
    let minutes = km * 60 / kmh.max(1);
    let by_air = km * 60 / AIRLINER_KMH + AIRPORTS_MINUTES;
    journey.km >= JOURNEY_KM_MIN && (kmh >= IMPOSSIBLE_KMH || kmh >= FLIGHT_KMH && minutes < by_air)
}
