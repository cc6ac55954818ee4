//! How stolen cards are misused.

use std::ops::Range;

use fastrand::Rng;

use super::super::row::{Channel, Point};
use super::super::statistics::kilometres;
use super::habits::{HOUR_MS, Holder, midnight};
use super::world::{City, ELSEWHERE, HOMES, Merchant, category_of};
use super::{BEGINS_MS, DAY_MS, DAYS, Payment, a_city, between, cents, happens, one_of};

/// A card needs a history before it is stolen.
const FIRST_DAY: i64 = 25;

/// Misuses each card at most once, until there are this many frauds.
pub fn commit(
    holders: &[Holder],
    histories: &[Range<usize>],
    wanted: usize,
    rng: &mut Rng,
    payments: &mut Vec<Payment>,
) {
    let mut cards: Vec<usize> = (0..holders.len()).collect();
    rng.shuffle(&mut cards);
    let honest = payments.len();
    for (number, card) in cards.into_iter().enumerate() {
        if payments.len() - honest >= wanted {
            return;
        }
        let history = payments[histories[card].clone()].to_vec();
        let case = Case { holder: &holders[card], history: &history };
        // Rotates the kinds, so that a small data set has some of each.
        match number % 5 {
            0 => case.test_the_card(rng, payments),
            1 => case.take_over(rng, payments),
            2 => case.burst(rng, payments),
            3 => case.strike_at_night(rng, payments),
            _ => case.turn_to_money(rng, payments),
        }
    }
}

/// A stolen card and its holder's payments.
struct Case<'a> {
    holder: &'a Holder,
    history: &'a [Payment],
}

impl Case<'_> {
    /// Card testing: some tiny payments.
    fn test_the_card(&self, rng: &mut Rng, payments: &mut Vec<Payment>) {
        let place = self.hideout(rng);
        let category = category_of(one_of(rng, &["gaming", "streaming", "entertainment"]));
        let mut at_ms = self.moment(rng);
        let shop = Merchant::online(category, rng.u8(..3));
        for _ in 0..rng.u32(3..7) {
            at_ms += between(rng, 20_000, 240_000);
            payments.push(self.typed(at_ms, shop, 0.5 + rng.f64() * 1.4, place));
        }
        for _ in 0..rng.u32(1..3) {
            at_ms += between(rng, 120_000, 1_200_000);
            let category = category_of(one_of(rng, &["electronics", "gift_cards", "clothing"]));
            let shop = Merchant::online(category, rng.u8(..));
            let amount = self.holder.scale * (180.0 + rng.f64() * 500.0);
            payments.push(self.typed(at_ms, shop, amount, place));
        }
    }

    /// A cloned card, used far away.
    fn take_over(&self, rng: &mut Rng, payments: &mut Vec<Payment>) {
        let is_there = |payment: &&Payment| {
            payment.channel != Channel::Online && payment.at_ms > BEGINS_MS + FIRST_DAY * DAY_MS
        };
        let there: Vec<&Payment> = self.history.iter().filter(is_there).collect();
        let Some(last) = there.get(rng.usize(..there.len().max(1))) else { return };
        let far: Vec<&'static City> = HOMES
            .iter()
            .chain(&ELSEWHERE)
            .filter(|city| kilometres(point(city), point(last.city)) > 2_500)
            .collect();
        let place = one_of(rng, &far);
        let mut at_ms = last.at_ms + between(rng, 40 * 60_000, 100 * 60_000);
        for _ in 0..rng.u32(2..5) {
            let category =
                category_of(one_of(rng, &["electronics", "jewelry", "clothing", "fuel"]));
            let payment = self.holder.there(rng, at_ms, category, place, 2.2);
            let channel = one_of(rng, &[Channel::Swipe, Channel::Swipe, Channel::Atm]);
            payments.push(Payment { channel, is_fraud: true, ..payment });
            at_ms += between(rng, 5 * 60_000, 25 * 60_000);
        }
    }

    /// Spends as much as possible before the card is blocked.
    fn burst(&self, rng: &mut Rng, payments: &mut Vec<Payment>) {
        let place = self.hideout(rng);
        let mut at_ms = self.moment(rng);
        for _ in 0..rng.u32(6..12) {
            let category = category_of(one_of(
                rng,
                &["electronics", "clothing", "gift_cards", "entertainment"],
            ));
            let shop = Merchant::online(category, rng.u8(..));
            let amount = self.holder.scale * (60.0 + rng.f64() * 190.0);
            payments.push(self.typed(at_ms, shop, amount, place));
            at_ms += between(rng, 45_000, 300_000);
        }
    }

    /// One expensive purchase at night.
    fn strike_at_night(&self, rng: &mut Rng, payments: &mut Vec<Payment>) {
        let day = rng.i64(FIRST_DAY..DAYS - 1);
        let category = category_of(one_of(rng, &["electronics", "jewelry", "gift_cards"]));
        let mut at_ms = midnight(day, self.holder.home) + between(rng, 2 * HOUR_MS, 5 * HOUR_MS);
        let place = if happens(rng, 0.5) { self.holder.home } else { self.hideout(rng) };
        for _ in 0..rng.u32(1..3) {
            let shop = Merchant::online(category, rng.u8(..));
            let amount = self.holder.scale * (350.0 + rng.f64() * 900.0);
            payments.push(self.typed(at_ms, shop, amount, place));
            at_ms += between(rng, 10 * 60_000, 40 * 60_000);
        }
    }

    /// Buys goods that are easy to resell, in categories that the holder never uses.
    fn turn_to_money(&self, rng: &mut Rng, payments: &mut Vec<Payment>) {
        let kinds = ["gift_cards", "money_transfer", "crypto", "jewelry"];
        let is_new = |name: &&str| self.holder.weights[usize::from(category_of(name))] == 0.0;
        let new: Vec<&str> = kinds.into_iter().filter(is_new).collect();
        let kind = if new.is_empty() { "crypto" } else { one_of(rng, &new) };
        let place = if happens(rng, 0.4) { self.holder.home } else { self.hideout(rng) };
        let mut at_ms = self.moment(rng);
        for _ in 0..rng.u32(2..4) {
            let shop = Merchant::online(category_of(kind), rng.u8(..));
            let amount = self.holder.scale * (140.0 + rng.f64() * 320.0);
            payments.push(self.typed(at_ms, shop, amount, place));
            at_ms += between(rng, 15 * 60_000, 150 * 60_000);
        }
    }

    fn typed(&self, at_ms: i64, merchant: Merchant, amount: f64, city: &'static City) -> Payment {
        let (card, cents, channel) = (self.holder.card, cents(amount), Channel::Online);
        Payment { at_ms, card, merchant, cents, city, channel, is_fraud: true }
    }

    fn moment(&self, rng: &mut Rng) -> i64 {
        between(rng, BEGINS_MS + FIRST_DAY * DAY_MS, BEGINS_MS + (DAYS - 1) * DAY_MS)
    }

    /// Location of the thief's payment: often abroad, often behind a proxy near the holder.
    fn hideout(&self, rng: &mut Rng) -> &'static City {
        if happens(rng, 0.35) {
            return self.holder.home;
        }
        if happens(rng, 0.7) { a_city(rng, &ELSEWHERE) } else { a_city(rng, &HOMES) }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "degrees are at most 180")]
fn point(city: &City) -> Point {
    let millionths = |degrees: f64| (degrees * 1e6) as i32;
    Point { latitude: millionths(city.latitude), longitude: millionths(city.longitude) }
}
