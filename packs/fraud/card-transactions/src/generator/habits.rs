//! Payments of honest cardholders, including unusual ones.

use fastrand::Rng;

use super::super::row::Channel;
use super::world::{CATEGORIES, City, ELSEWHERE, HOMES, Merchant, category_of};
use super::{
    BEGINS_MS, DAY_MS, DAYS, Payment, ROWS_PER_CARD, a_city, between, cents, happens, normal,
    one_of, spread,
};

pub const HOUR_MS: i64 = 3_600_000;

/// Scales the number of payments; a surplus remains to be cut off at the end.
const SURPLUS: f64 = 0.92;

/// A cardholder.
#[derive(Debug)]
pub struct Holder {
    pub card: u32,
    pub home: &'static City,
    /// Multiple of the usual amounts.
    pub scale: f64,
    /// Frequency of each category.
    pub weights: Vec<f64>,
    /// Payments a day.
    rate: f64,
    /// Usual time of payments, in solar hours, and its spread.
    hour: f64,
    hours_around: f64,
    /// Factor of online purchases.
    online: f64,
    favourite: u8,
}

/// A trip, in days from the beginning.
struct Journey {
    leaves: i64,
    returns: i64,
    to: &'static City,
}

impl Holder {
    /// A random cardholder.
    pub fn draw(card: u32, rng: &mut Rng) -> Self {
        let weights = CATEGORIES
            .iter()
            .map(|category| {
                // Every holder skips some categories, mostly rare ones.
                let is_used = happens(rng, if category.weight >= 4.0 { 0.93 } else { 0.45 });
                if is_used { category.weight * spread(rng, 0.6) } else { 0.0 }
            })
            .collect();
        let works_at_night = happens(rng, 0.06);
        let per_day = f64::from(ROWS_PER_CARD) / 120.0 * SURPLUS;
        Self {
            card,
            home: a_city(rng, &HOMES),
            scale: spread(rng, 0.4),
            weights,
            rate: per_day * spread(rng, 0.35),
            hour: if works_at_night { 1.0 } else { 14.5 + normal(rng) },
            hours_around: 2.6 + rng.f64() * 1.4,
            online: 0.5 + rng.f64(),
            favourite: rng.u8(..),
        }
    }

    /// Billing currency.
    pub fn currency(&self) -> &'static str {
        self.home.currency
    }

    /// Adds all payments.
    pub fn live(&self, rng: &mut Rng, payments: &mut Vec<Payment>) {
        let journeys = self.journeys(rng);
        for day in 0..DAYS {
            let away = journeys.iter().find(|j| (j.leaves..=j.returns).contains(&day));
            let is_underway = away.is_some_and(|j| day == j.leaves || day == j.returns);
            if is_underway {
                continue;
            }
            let place = away.map_or(self.home, |journey| journey.to);
            let expected = self.rate * if away.is_some() { 2.0 } else { 1.0 };
            for _ in 0..many(rng, expected) {
                payments.push(self.pay(rng, day, place));
            }
        }
        for journey in &journeys {
            self.book(rng, journey, payments);
        }
        self.behave_unusually(rng, &journeys, payments);
    }

    fn journeys(&self, rng: &mut Rng) -> Vec<Journey> {
        if !happens(rng, 0.4) {
            return Vec::new();
        }
        let leaves = rng.i64(10..DAYS - 12);
        let abroad = happens(rng, 0.6);
        let to = if abroad { a_city(rng, &ELSEWHERE) } else { a_city(rng, &HOMES) };
        let returns = leaves + rng.i64(3..10);
        vec![Journey { leaves, returns, to }]
    }

    /// Most trips are booked with this card.
    fn book(&self, rng: &mut Rng, journey: &Journey, payments: &mut Vec<Payment>) {
        if !happens(rng, 0.75) {
            return;
        }
        let day = (journey.leaves - rng.i64(2..40)).max(0);
        for name in ["airline", "lodging"] {
            if happens(rng, 0.8) {
                let at_ms = self.time(rng, day, self.home);
                payments.push(self.online(rng, at_ms, category_of(name), 1.3));
            }
        }
    }

    /// Honest payments that look like a fraud.
    fn behave_unusually(&self, rng: &mut Rng, journeys: &[Journey], payments: &mut Vec<Payment>) {
        let is_home = |day: i64| !journeys.iter().any(|j| (j.leaves..=j.returns).contains(&day));
        let day = rng.i64(5..DAYS);
        if !is_home(day) {
            return;
        }
        if happens(rng, 0.4) {
            self.buy_something_expensive(rng, day, payments);
        }
        if happens(rng, 0.3) {
            // An evening of online shopping.
            let begins = self.time(rng, day, self.home);
            for _ in 0..rng.u32(3..6) {
                let category =
                    category_of(one_of(rng, &["clothing", "electronics", "entertainment"]));
                let at_ms = begins + between(rng, 0, 2 * HOUR_MS);
                payments.push(self.online(rng, at_ms, category, 0.8));
            }
        }
        if happens(rng, 0.25) {
            // Several small purchases in a game.
            let day = rng.i64(5..DAYS);
            let begins = self.time(rng, day, self.home);
            for number in 0..rng.i64(2..4) {
                let at_ms = begins + number * between(rng, 120_000, 900_000);
                payments.push(self.online(rng, at_ms, category_of("gaming"), 0.35));
            }
        }
        if happens(rng, 0.15) {
            // Through a VPN with an exit elsewhere.
            let day = rng.i64(5..DAYS);
            let at_ms = self.time(rng, day, self.home);
            let pretended = a_city(rng, &ELSEWHERE);
            let payment = self.online(rng, at_ms, category_of("streaming"), 1.0);
            payments.push(Payment { city: pretended, ..payment });
        }
        if happens(rng, 0.4) {
            self.go_out(rng, day, payments);
        }
    }

    fn buy_something_expensive(&self, rng: &mut Rng, day: i64, payments: &mut Vec<Payment>) {
        let category =
            category_of(one_of(rng, &["electronics", "furniture", "furniture", "jewelry"]));
        let factor = 2.5 + rng.f64() * 3.5;
        let at_ms = self.time(rng, day, self.home);
        let payment = if happens(rng, 0.4) {
            self.online(rng, at_ms, category, factor)
        } else {
            self.there(rng, at_ms, category, self.home, factor)
        };
        payments.push(payment);
    }

    /// A night out: late, ending with rides and bars.
    fn go_out(&self, rng: &mut Rng, day: i64, payments: &mut Vec<Payment>) {
        let midnight = midnight(day, self.home);
        for _ in 0..rng.u32(1..4) {
            let category = category_of(one_of(rng, &["restaurant", "transport", "entertainment"]));
            let at_ms = midnight + between(rng, 0, 3 * HOUR_MS);
            payments.push(self.there(rng, at_ms, category, self.home, 1.0));
        }
    }

    fn pay(&self, rng: &mut Rng, day: i64, place: &'static City) -> Payment {
        let category = self.category(rng);
        let at_ms = self.time(rng, day, place);
        let online = CATEGORIES[usize::from(category)].online * self.online;
        if happens(rng, online.min(1.0)) {
            let payment = self.online(rng, at_ms, category, 1.0);
            Payment { city: place, ..payment }
        } else {
            self.there(rng, at_ms, category, place, 1.0)
        }
    }

    /// A payment with the card present.
    pub fn there(
        &self,
        rng: &mut Rng,
        at_ms: i64,
        category: u8,
        city: &'static City,
        factor: f64,
    ) -> Payment {
        let number = if happens(rng, 0.7) { self.favourite } else { rng.u8(..) };
        let channel = one_of(
            rng,
            &[
                Channel::Contactless,
                Channel::Contactless,
                Channel::Chip,
                Channel::Chip,
                Channel::Swipe,
            ],
        );
        let merchant = Merchant::local(category, city, number);
        self.payment(rng, at_ms, merchant, category, city, channel, factor)
    }

    /// A payment without the card, from home.
    pub fn online(&self, rng: &mut Rng, at_ms: i64, category: u8, factor: f64) -> Payment {
        let number = if happens(rng, 0.6) { self.favourite } else { rng.u8(..) };
        let merchant = Merchant::online(category, number);
        self.payment(rng, at_ms, merchant, category, self.home, Channel::Online, factor)
    }

    #[expect(clippy::too_many_arguments, reason = "what a payment is made of")]
    fn payment(
        &self,
        rng: &mut Rng,
        at_ms: i64,
        merchant: Merchant,
        category: u8,
        city: &'static City,
        channel: Channel,
        factor: f64,
    ) -> Payment {
        let kind = &CATEGORIES[usize::from(category)];
        let amount = kind.usual * self.scale * spread(rng, kind.spread) * factor;
        let card = self.card;
        Payment { at_ms, card, merchant, cents: cents(amount), city, channel, is_fraud: false }
    }

    fn category(&self, rng: &mut Rng) -> u8 {
        let all: f64 = self.weights.iter().sum();
        let mut left = rng.f64() * all;
        let chosen = self.weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        chosen.and_then(|index| u8::try_from(index).ok()).unwrap_or_default()
    }

    #[expect(clippy::cast_possible_truncation, reason = "a day has few milliseconds")]
    fn time(&self, rng: &mut Rng, day: i64, place: &City) -> i64 {
        let hour = (self.hour + normal(rng) * self.hours_around).rem_euclid(24.0);
        midnight(day, place) + (hour * 3_600_000.0) as i64
    }
}

/// Solar midnight.
#[expect(clippy::cast_possible_truncation, reason = "half a day at most")]
pub fn midnight(day: i64, place: &City) -> i64 {
    BEGINS_MS + day * DAY_MS - (place.longitude * 240_000.0) as i64
}

/// A random count with this expected value.
fn many(rng: &mut Rng, expected: f64) -> u32 {
    let mut count = 0;
    let mut left = (-expected).exp();
    let mut chance = rng.f64();
    // Poisson distribution: sums the probabilities up to the random number.
    while chance > left && count < 30 {
        chance -= left;
        count += 1;
        left *= expected / f64::from(count);
    }
    count
}
