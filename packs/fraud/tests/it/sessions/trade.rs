//! Payments as fraud analysts describe them, honest ones and frauds, with unlabelled histories.
//!
//! The kinds of cases are those of the trade: enumeration of cards at one merchant, collusion,
//! structuring, taps of a stolen card, drips, dormant cards; and the usual false alarms: parking, fairs,
//! trips, subscriptions, refunds. The author of the detectors wrote them and knew the detectors, so
//! they guard against regressions and measure nothing on unseen payments.

use serde_json::Value;

use super::Desk;

const HEADER: &str = "transaction_id,timestamp,card_id,merchant_id,merchant_category,amount,currency,\
                      country,city,latitude,longitude,channel,is_fraud";

pub const DAY: i64 = 86_400;

/// 2026-09-01T00:00:00Z.
pub const TODAY: i64 = 1_788_220_800;

/// The data of a case; the payment under investigation is the last that was added.
pub struct Case {
    pub lines: Vec<String>,
}

impl Case {
    /// A card of Köln with 120 days of groceries, lunches and fuel, until yesterday.
    pub fn new() -> Self {
        let mut case = Self { lines: vec![HEADER.to_owned()] };
        for day in 1..=120 {
            case.habit("c1", day, "DE,Köln,50.94,6.96");
        }
        case
    }

    /// A day's ordinary payment of a card.
    pub fn habit(&mut self, card: &str, days_ago: i64, place: &str) {
        let (shop, category, amount) = [
            ("market 1", "grocery", "31.20"),
            ("kitchen 2", "restaurant", "14.80"),
            ("market 1", "grocery", "42.75"),
            ("fuel 3", "fuel", "55.10"),
        ][usize::try_from(days_ago % 4).unwrap()];
        let hour = 9 + days_ago % 9;
        let at = TODAY - days_ago * DAY + hour * 3_600;
        self.pay(card, at, &format!("{shop},{category},{amount},EUR,{place},chip"));
    }

    pub fn pay(&mut self, card: &str, at: i64, rest: &str) {
        let number = self.lines.len();
        let at = chrono(at);
        self.lines.push(format!("t{number},{at},{card},{rest},"));
    }

    /// A payment of another card whose label is known.
    pub fn labelled(&mut self, card: &str, at: i64, rest: &str, is_fraud: bool) {
        self.pay(card, at, rest);
        self.lines.last_mut().unwrap().push_str(if is_fraud { "true" } else { "false" });
    }

    /// A payment of today, at this second of the day.
    pub fn today(&mut self, second: i64, rest: &str) {
        self.pay("c1", TODAY + second, rest);
    }

    pub fn investigate(&self) -> (String, Value) {
        let desk = Desk::of(&(self.lines.join("\n") + "\n"));
        let result = desk.investigate(&format!("t{}", self.lines.len() - 1));
        let action = result["recommendations"][0]["action"].as_str().unwrap().to_owned();
        (action, result)
    }
}

/// RFC 3339 of a time in the last days of 2026 or before.
fn chrono(at: i64) -> String {
    let days = at.div_euclid(DAY);
    let second = at.rem_euclid(DAY);
    // Days to a civil date: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second % 3_600 / 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

pub const HOME: &str = "EUR,DE,Köln,50.94,6.96";
pub const NOON: i64 = 12 * 3_600;

#[track_caller]
pub fn is_not_blocked(name: &str, case: &Case) {
    let (action, result) = case.investigate();
    println!("honest {name}: {action} {} {}", result["score"], result["findings"]);
    assert!(action != "block_card", "{name}: {}", result["findings"]);
}

#[track_caller]
pub fn is_released(name: &str, case: &Case) {
    let (action, result) = case.investigate();
    println!("honest {name}: {action} {} {}", result["score"], result["findings"]);
    assert_eq!(action, "release", "{name}: {}", result["findings"]);
}

#[track_caller]
pub fn is_held(name: &str, case: &Case) {
    let (action, result) = case.investigate();
    println!("fraud {name}: {action} {} {}", result["score"], result["findings"]);
    assert!(
        ["block_card", "ask_cardholder"].contains(&action.as_str()),
        "{name}: {action} {}",
        result["findings"]
    );
}

#[test]
fn honest_payments_of_the_trade_are_released() {
    let mut lunch = Case::new();
    lunch.today(NOON, &format!("kitchen 2,restaurant,15.20,{HOME},contactless"));
    is_released("lunch", &lunch);

    let mut parking = Case::new();
    for number in 0..4 {
        let amount = format!("2.{number}0");
        parking.today(NOON + number * 600, &format!("parkapp,parking,{amount},{HOME},online"));
    }
    is_released("parking app", &parking);

    let mut fair = Case::new();
    for number in 0..6 {
        let amount = 6 + number * 2;
        fair.today(
            NOON + number * 420,
            &format!("stall {number},food,{amount}.50,{HOME},contactless"),
        );
    }
    is_released("fair", &fair);

    let mut subscription = Case::new();
    for month in (1..4).rev() {
        subscription
            .today(NOON - month * 30 * DAY, &format!("films,streaming,12.99,{HOME},online"));
    }
    subscription.today(NOON, &format!("films,streaming,12.99,{HOME},online"));
    is_released("subscription", &subscription);

    let mut refund = Case::new();
    refund.today(NOON - 9 * DAY, &format!("shoes,clothing,89.00,{HOME},online"));
    refund.today(NOON, &format!("shoes,clothing,-89.00,{HOME},online"));
    is_released("refund", &refund);

    let mut booked = Case::new();
    booked.today(NOON - 40 * DAY, &format!("airways,airline,220.00,{HOME},online"));
    booked.today(NOON, "trattoria,restaurant,24.00,EUR,IT,Roma,41.90,12.50,chip");
    is_released("booked trip", &booked);
}

#[test]
fn unusual_honest_payments_are_not_blocked() {
    let mut sofa = Case::new();
    sofa.today(NOON, &format!("interiors,furniture,1450.00,{HOME},chip"));
    is_not_blocked("sofa in the home town", &sofa);

    let mut trip = Case::new();
    trip.today(NOON, "brasserie,restaurant,38.00,EUR,FR,Paris,48.86,2.35,chip");
    is_not_blocked("trip that was not booked", &trip);

    // The thief's payment far away is not the cardholder's fault.
    let mut home = Case::new();
    home.today(NOON, "mall,electronics,700.00,EUR,SG,Singapore,1.35,103.82,swipe");
    home.today(NOON + 1_800, &format!("market 1,grocery,33.00,{HOME},chip"));
    is_not_blocked("cardholder at home after a cloned card", &home);
}

#[test]
fn frauds_of_the_trade_are_held() {
    let mut distributed = Case::new();
    for card in 2..9 {
        for day in 20..30 {
            distributed.habit(&format!("c{card}"), day, "DE,Bonn,50.73,7.10");
        }
        let at = TODAY + NOON + card * 40;
        distributed.pay(
            &format!("c{card}"),
            at,
            "donate now,charity,1.00,EUR,DE,Bonn,50.73,7.10,online",
        );
    }
    distributed.today(NOON + 400, &format!("donate now,charity,1.00,{HOME},online"));
    is_held("distributed card testing", &distributed);

    let mut collusion = Case::new();
    for number in 0..7 {
        let at = TODAY - (number + 1) * 2 * DAY + 2 * 3_600;
        let card = format!("x{}", number % 2);
        collusion.pay(&card, at, &format!("night kiosk,retail,400.00,{HOME},swipe"));
    }
    collusion.today(2 * 3_600, &format!("night kiosk,retail,450.00,{HOME},swipe"));
    is_held("collusion", &collusion);

    let mut split = Case::new();
    for (number, amount) in [980, 990, 975, 985].into_iter().enumerate() {
        let at = NOON + i64::try_from(number).unwrap() * 5_400 - DAY;
        split.today(at, &format!("transfer office,money_transfer,{amount}.00,{HOME},chip"));
    }
    is_held("structuring", &split);

    let mut taps = Case::new();
    for number in 0..4 {
        let amount = format!("4{}.90", 6 + number);
        taps.today(
            NOON + number * 900,
            &format!("shop {number},tobacco,{amount},{HOME},contactless"),
        );
    }
    is_held("taps under the limit", &taps);

    let mut testing = Case::new();
    for number in 0..3 {
        testing.today(
            NOON + number * 90,
            &format!("songs {number},digital,0.9{number},{HOME},online"),
        );
    }
    testing.today(NOON + 900, &format!("devices,electronics,640.00,{HOME},online"));
    is_held("card testing and a purchase", &testing);
}

#[test]
fn slow_frauds_are_not_released() {
    let mut drip = Case::new();
    for days in [29, 24, 21, 13, 8, 3] {
        drip.today(NOON - days * DAY, &format!("svc-online,digital,6.4{},{HOME},online", days % 9));
    }
    drip.today(NOON, &format!("svc-online,digital,6.80,{HOME},online"));
    let (action, result) = drip.investigate();
    assert_ne!(action, "release", "{}", result["findings"]);

    let mut dormant = Case { lines: vec![HEADER.to_owned()] };
    for day in 200..320 {
        dormant.habit("c1", day, "DE,Köln,50.94,6.96");
    }
    dormant.today(NOON, &format!("devices,electronics,480.00,{HOME},online"));
    let (action, result) = dormant.investigate();
    assert_ne!(action, "release", "{}", result["findings"]);
}

/// Line by line the same: misuse does not become a habit after a day.
#[test]
fn a_repeated_withdrawal_scores_alike_on_each_day() {
    let withdraw = "bank,atm,400.00,TRY,TR,İstanbul,41.01,28.98,atm";
    let mut case = Case::new();
    case.today(20 * 3_600, withdraw);
    let first = case.investigate().1["score"].as_f64().unwrap();
    case.today(20 * 3_600 + DAY, withdraw);
    let second = case.investigate().1["score"].as_f64().unwrap();
    assert!((first - second).abs() < 0.02, "{first} {second}");
}

#[test]
fn a_card_without_a_history_is_never_released() {
    let mut case = Case { lines: vec![HEADER.to_owned()] };
    case.today(NOON, &format!("market 1,grocery,12.00,{HOME},chip"));
    let (action, result) = case.investigate();
    assert_eq!(action, "manual_review");
    let reason = result["recommendations"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("too little is known to release it: "), "{reason}");
}
