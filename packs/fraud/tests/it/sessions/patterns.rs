//! Patterns of the trade that need several days, several cards, or data that can be trusted.

use serde_json::Value;

use super::trade::{Case, DAY, HOME, NOON, TODAY, is_held, is_not_blocked, is_released};

const BERLIN: &str = "EUR,DE,Berlin,52.52,13.40";

/// The explanation of a pattern that was found.
fn finding(result: &Value, pattern: &str) -> Option<String> {
    let found = result["findings"].as_array().unwrap().iter();
    let mut found = found.filter(|finding| finding["pattern"] == pattern);
    found.next().map(|finding| finding["explanation"].as_str().unwrap().to_owned())
}

/// Neither a score nor a release, and the reason in words.
#[track_caller]
fn is_not_assessed(name: &str, case: &Case, reason: &str) {
    let (action, result) = case.investigate();
    assert_eq!(action, "manual_review", "{name}: {}", result["findings"]);
    assert_eq!((&result["score"], &result["severity"]), (&Value::Null, &Value::Null), "{name}");
    let conclusion = (fraud::conclude::PRESENTATION.conclude)(&result).unwrap();
    assert_eq!(conclusion.verdict.unwrap().word, "not assessed", "{name}");
    assert!(conclusion.summary.contains(reason), "{name}: {}", conclusion.summary);
}

#[test]
fn coordinates_that_contradict_their_city_prove_no_travel() {
    for place in ["6.96,50.94", "-50.94,6.96", "50.94,-96.60"] {
        let mut wrong = Case::new();
        wrong.today(NOON, &format!("market 1,grocery,30.00,{HOME},chip"));
        wrong.today(NOON + 2_400, &format!("kitchen 2,restaurant,14.00,EUR,DE,Köln,{place},chip"));
        is_not_assessed(place, &wrong, "the coordinates contradict");
        // The next payment is not a journey from there.
        wrong.today(NOON + 4_800, &format!("market 1,grocery,31.00,{HOME},chip"));
        is_released(place, &wrong);
    }
}

#[test]
fn times_that_are_none_show_no_pace() {
    let mut dates = Case::new();
    dates.today(NOON, &format!("market 1,grocery,30.00,{HOME},chip"));
    for line in dates.lines.iter_mut().skip(1) {
        let at = line.find('T').unwrap();
        line.replace_range(at..at + 9, "T00:00:00");
    }
    is_not_assessed("dates", &dates, "dates without a time of day");
    let mut equal = Case::new();
    for shop in ["market 1", "kitchen 2", "fuel 3"] {
        equal.today(NOON, &format!("{shop},grocery,30.00,{HOME},chip"));
    }
    is_not_assessed("equal times", &equal, "have the same time");
    // What needs no clock is still found.
    dates.today(NOON, &format!("codes,gift_cards,900.00,{HOME},online"));
    is_held("vouchers on a date", &dates);
}

#[test]
fn an_unknown_currency_is_not_assessed() {
    let mut unknown = Case::new();
    unknown.today(NOON, "bazaar,grocery,30.00,XTS,DE,Köln,50.94,6.96,chip");
    is_not_assessed("currency", &unknown, "its size is not known");
}

/// The account of two people: one in Köln, one in Berlin.
fn couple() -> Case {
    let mut case = Case::new();
    for day in (9..100).step_by(4) {
        let at = TODAY - day * DAY + (9 + day % 9) * 3_600 + 700;
        case.pay("c1", at, &format!("corner shop,grocery,24.00,{BERLIN},chip"));
    }
    case.today(NOON, &format!("market 1,grocery,30.00,{HOME},chip"));
    case
}

#[test]
fn two_people_of_one_account_do_not_travel() {
    let mut shared = couple();
    shared.today(NOON + 800, &format!("corner shop,grocery,22.00,{BERLIN},chip"));
    is_released("shared account", &shared);
    let mut vouchers = couple();
    vouchers.today(NOON + 800, &format!("kiosk,gift_cards,400.00,{BERLIN},swipe"));
    is_held("vouchers in the other place", &vouchers);
    let mut first = Case::new();
    first.today(NOON, &format!("market 1,grocery,30.00,{HOME},chip"));
    first.today(NOON + 800, &format!("corner shop,grocery,22.00,{BERLIN},chip"));
    is_held("first time in both places", &first);
}

#[test]
fn taps_show_a_limit_that_no_table_has() {
    let taps = |shops: &[&str]| {
        let mut case = Case::new();
        for (number, (shop, amount)) in
            shops.iter().zip(["148.00", "149.50", "147.20", "149.90"]).enumerate()
        {
            let second = NOON + i64::try_from(number).unwrap() * 1_300;
            case.today(second, &format!("{shop},clothing,{amount},{HOME},contactless"));
        }
        case
    };
    let stolen = taps(&["a", "b", "c", "d"]);
    is_held("taps under 150", &stolen);
    let words = finding(&stolen.investigate().1, "contactless_limit").unwrap();
    assert!(words.starts_with("4 contactless payments just under 150 EUR"), "{words}");
    // One price of one shop is no limit, and a larger tap refutes one.
    let family = taps(&["lift", "lift", "lift", "lift"]);
    assert_eq!(finding(&family.investigate().1, "contactless_limit"), None);
    is_not_blocked("tickets of a family", &family);
    let mut higher = Case::new();
    higher.today(-40 * DAY, &format!("sofa,furniture,180.00,{HOME},contactless"));
    for shop in ["a", "b", "c"] {
        higher.today(NOON, &format!("{shop},clothing,149.00,{HOME},contactless"));
    }
    assert_eq!(finding(&higher.investigate().1, "contactless_limit"), None);
}

#[test]
fn split_amounts_are_found_in_any_currency() {
    let mut split = Case::new();
    for number in 0..4 {
        let at = NOON + number * 5_000;
        split.today(at, "machine,atm,990000.00,KRW,KR,Seoul,37.57,126.98,atm");
    }
    is_held("withdrawals in won", &split);
    let words = finding(&split.investigate().1, "structuring").unwrap();
    assert!(words.contains("just under 1000000 KRW"), "{words}");
}

#[test]
fn refunds_of_one_purchase_are_counted_and_a_salary_is_none() {
    let mut taken = Case::new();
    taken.today(-20 * DAY, &format!("shoes,clothing,129.90,{HOME},online"));
    for day in [-9, -6, -3, 0] {
        taken.today(day * DAY + NOON, &format!("shoes,clothing,-129.90,{HOME},online"));
    }
    is_held("a purchase refunded four times", &taken);
    let mut salary = Case::new();
    for month in [-90, -60, -30, 0] {
        salary.today(month * DAY + NOON, &format!("employer,payroll,-2500.00,{HOME},online"));
    }
    is_released("salary", &salary);
}

#[test]
fn money_that_passes_through_is_found_and_a_salary_that_is_spent_is_not() {
    let mut mule = Case::new();
    for day in [-1, 0] {
        let noon = day * DAY + NOON;
        for number in 0..2 {
            mule.today(
                noon + number * 600,
                &format!("inbound,money_transfer,-900.00,{HOME},online"),
            );
        }
        mule.today(noon + 3_000, &format!("coins,crypto,1700.00,{HOME},online"));
    }
    is_held("mule", &mule);
    let words = finding(&mule.investigate().1, "pass_through").unwrap();
    assert!(words.contains("3600.00 EUR came in with 4 payments"), "{words}");
    let mut salary = Case::new();
    salary.today(NOON, &format!("employer,payroll,-2500.00,{HOME},online"));
    salary.today(NOON + 3_600, &format!("machine,atm,400.00,{HOME},atm"));
    assert_eq!(finding(&salary.investigate().1, "pass_through"), None);
    let mut returned = Case::new();
    for number in 0..2 {
        returned.today(NOON - 9 * DAY, &format!("shop {number},clothing,500.00,{HOME},online"));
        returned.today(NOON, &format!("shop {number},clothing,-500.00,{HOME},online"));
    }
    returned.today(NOON + 600, &format!("machine,atm,900.00,{HOME},atm"));
    assert_eq!(finding(&returned.investigate().1, "pass_through"), None);
}

#[test]
fn credit_spent_within_days_is_asked_about_and_a_new_kitchen_is_not_blocked() {
    let spend = |shops: [&str; 5]| {
        let mut case = Case::new();
        for (number, shop) in shops.iter().enumerate() {
            let at = NOON - DAY + i64::try_from(number).unwrap() * 20_000;
            case.today(at, &format!("{shop} {number},{shop},950.00,{HOME},chip"));
        }
        case
    };
    let bust = spend(["electronics", "jewelry", "electronics", "money_transfer", "electronics"]);
    is_held("bust-out", &bust);
    assert!(finding(&bust.investigate().1, "bust_out").unwrap().starts_with("5 large payments"));
    is_not_blocked(
        "kitchen",
        &spend(["furniture", "hardware", "furniture", "furniture", "hardware"]),
    );
}

#[test]
fn a_card_that_never_pays_online_does_not_begin_with_a_row_of_vouchers() {
    let row = |category: &str| {
        let mut case = Case::new();
        for number in 0..5 {
            let at = NOON + number * 800;
            case.today(at, &format!("shop {number},{category},190.00,{HOME},online"));
        }
        case
    };
    let (action, result) = row("gift_cards").investigate();
    assert_eq!(action, "block_card", "{}", result["findings"]);
    let (action, _) = row("clothing").investigate();
    assert_eq!(action, "ask_cardholder");
}

#[test]
fn tests_over_a_day_before_a_dear_payment_show_the_thief() {
    let tests = |merchants: i64| {
        let mut case = Case::new();
        for number in 0..6 {
            let (at, shop) = (NOON - 30_000 + number * 4_800, number % merchants);
            case.today(at, &format!("app {shop},books,1.00,{HOME},online"));
        }
        case.today(NOON, &format!("tickets,airline,1280.00,{HOME},online"));
        case
    };
    let (action, result) = tests(3).investigate();
    assert_eq!(action, "block_card", "{}", result["findings"]);
    is_not_blocked("small sums in one store", &tests(1));
}

/// Six cards are misused at a machine in Sofia after all of them paid at a garage. Twelve others pay in
/// the same market, and there too if asked.
fn skimmed(is_everybodys: bool) -> Case {
    let mut case = Case::new();
    for card in 2..20 {
        let name = format!("c{card}");
        for day in 20..36 {
            case.habit(&name, day, "DE,Köln,50.94,6.96");
        }
        let is_victim = card < 8;
        if is_victim || is_everybodys {
            let at = TODAY - 40 * DAY + card * 3_000;
            case.labelled(&name, at, &format!("garage till,parking,8.00,{HOME},swipe"), false);
        }
        if is_victim {
            let at = TODAY - 12 * DAY + card * 900;
            case.labelled(&name, at, "machine 7,atm,400.00,EUR,BG,Sofia,42.70,23.32,atm", true);
        }
    }
    case.today(-40 * DAY + NOON, &format!("garage till,parking,9.00,{HOME},swipe"));
    case
}

#[test]
fn the_place_where_cards_were_copied_is_named_though_the_payment_is_elsewhere() {
    let mut copied = skimmed(false);
    copied.today(NOON, "machine 8,atm,400.00,EUR,BG,Sofia,42.70,23.32,atm");
    is_held("copied card", &copied);
    let words = finding(&copied.investigate().1, "common_point").unwrap();
    assert!(
        words.starts_with("6 of 6 cards that were misused like this had paid at garage till"),
        "{words}"
    );
    // Where everybody pays nothing is shown.
    let mut everybody = skimmed(true);
    everybody.today(NOON, "machine 8,atm,400.00,EUR,BG,Sofia,42.70,23.32,atm");
    is_held("copied somewhere", &everybody);
    assert_eq!(finding(&everybody.investigate().1, "common_point"), None);
    // The cardholder's own payments stay ordinary.
    let mut own = skimmed(false);
    own.today(NOON, &format!("market 1,grocery,33.00,{HOME},chip"));
    is_released("groceries of a copied card", &own);
}
