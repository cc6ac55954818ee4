//! Four worlds by rules of their own: other countries, merchants, habits and frauds than the generator's, and
//! than the tests'. They were written from descriptions of the trade before the first measurement, and no
//! detector, weight or bound was changed after it.
//!
//! | world | habits | frauds |
//! |---|---|---|
//! | fjord | Norway, ISO category codes, buses, cabins, bills | stolen wallets tapped, skimmed cards abroad, fake subscriptions, phished transfers, sprees |
//! | savanna | Kenya, many small payments, airtime, school fees | swapped SIM cards, tested cards, drained accounts, clones |
//! | border | Basel and its neighbours, two currencies, business trips | colluding shop, split transfers, clones, gift cards |
//! | prairie | US suburbs, subscriptions, marketplaces, holiday gifts | taken-over accounts, cloned at pumps, tested by the dozen, dormant cards |

use super::world::{DAY, DAYS, HOUR, MINUTE, Place, Shop, World, Writer};

pub fn all() -> Vec<World> {
    vec![fjord(), savanna(), border(), prairie()]
}

const BERGEN: Place = ("Bergen", "NO", 60.391, 5.322);
const VOSS: Place = ("Voss", "NO", 60.628, 6.415);
const GEILO: Place = ("Geilo", "NO", 60.534, 8.206);
const ALICANTE: Place = ("Alicante", "ES", 38.346, -0.490);
const SOFIA: Place = ("Sofia", "BG", 42.697, 23.322);

const FJORD_SHOPS: [Shop; 5] = [
    (
        "5411",
        &["REMA 1000 DANMARKSPLASS", "KIWI 505", "COOP EXTRA LAKSEVAG", "MENY"],
        90.0,
        1_400.0,
    ),
    ("5499", &["NARVESEN 22", "7-ELEVEN TORGET", "DELI DE LUCA"], 25.0, 180.0),
    ("5541", &["CIRCLE K NESTTUN", "YX MINDE", "UNO-X FANA"], 300.0, 1_100.0),
    ("5812", &["PINGVINEN", "BIEN BAR", "OLIVENS"], 180.0, 900.0),
    ("5912", &["VITUSAPOTEK", "APOTEK 1"], 60.0, 600.0),
];

fn fjord() -> World {
    let mut world = Writer::new(0xf0_0d);
    world.currency = "NOK";
    for card in 0..40 {
        world.card = card;
        let rides = card % 2 == 0;
        for day in 0..DAYS {
            if rides && day % 7 < 5 {
                let at = world.time(day, (7, 9), 1);
                world.pay(at, "SKYSS BILLETT", "4111", 44.0, BERGEN, "contactless");
            }
            if world.happens(0.42) {
                let shop = world.one_of(&FJORD_SHOPS);
                let at = world.time(day, (9, 21), 1);
                let is_away = card % 3 == 0 && day % 21 >= 19;
                let place = if is_away { [VOSS, GEILO][card % 2] } else { BERGEN };
                let channel = world.one_of(&["chip", "contactless"]);
                world.shop(at, shop, place, channel);
            }
            if day % 30 == 14 {
                let at = world.time(day, (6, 7), 1);
                world.pay(
                    at,
                    "BKK STROM",
                    "4900",
                    800.0 + 40.0 * (card % 9) as f64,
                    BERGEN,
                    "online",
                );
            }
        }
        if card % 5 == 1 {
            fjord_holiday(&mut world);
        }
    }
    for card in (0..40).filter(|card| card % 3 == 2) {
        world.card = card;
        fjord_fraud(&mut world, card / 3);
    }
    world.world(
        "fjord",
        "Norway: ISO codes, buses, cabins; stolen wallets, skimming, fake subscriptions",
    )
}

/// A week in the sun, booked or not; then a new sofa.
fn fjord_holiday(world: &mut Writer) {
    let day = world.late_day();
    if world.card.is_multiple_of(2) {
        let at = world.time(day - 20, (18, 22), 1);
        world.unusual(at, "NORWEGIAN AIR", "4511", 4_800.0, BERGEN, "online");
    }
    for night in 0..6 {
        let at = world.time(day + night, (12, 22), 1);
        let amount = world.between(120.0, 700.0);
        world.unusual(at, "RESTAURANTE MAR", "5812", amount, ALICANTE, "chip");
    }
    let at = world.time(day + 9, (11, 17), 1);
    world.unusual(at, "BOHUS ASANE", "5712", 14_990.0, BERGEN, "chip");
}

fn fjord_fraud(world: &mut Writer, number: usize) {
    let day = world.late_day();
    match number % 5 {
        0 => {
            let mut at = world.time(day, (20, 22), 1);
            for n in 0..world.rng.usize(4..8) {
                let merchant = ["NARVESEN SENTRUM", "7-ELEVEN STRAND", "BOOTS APOTEK"][n % 3];
                let amount = world.between(350.0, 499.0);
                world.fraud("stolen wallet", at, merchant, "5499", amount, BERGEN, "contactless");
                at += world.rng.i64(6 * MINUTE..25 * MINUTE);
            }
        }
        1 => {
            let at = world.time(day, (9, 12), 1);
            for n in 0..3 {
                let amount = 2_000.0 + 1_000.0 * (n as f64);
                let at = at + n * 20 * MINUTE;
                world.fraud("skimmed card", at, "DSK BANK ATM", "6011", amount, SOFIA, "atm");
            }
        }
        2 => {
            for n in 0..6 {
                let at = world.time(day + n * 4, (1, 23), 1);
                let amount = world.between(89.0, 149.0);
                world.fraud(
                    "fake subscription",
                    at,
                    "PREMIUM-CLUB365",
                    "5968",
                    amount,
                    BERGEN,
                    "online",
                );
            }
        }
        3 => {
            let at = world.time(day, (18, 22), 1);
            for n in 0..2 {
                let amount = world.between(8_000.0, 19_000.0);
                let at = at + n * 12 * MINUTE;
                world.fraud(
                    "phished transfer",
                    at,
                    "FASTPAY REMIT",
                    "4829",
                    amount,
                    BERGEN,
                    "online",
                );
            }
        }
        _ => {
            let mut at = world.time(day, (2, 5), 1);
            for n in 0..4 {
                let merchant = ["ELKJOP NETT", "KOMPLETT", "POWER NETT", "NETONNET"][n];
                let amount = world.between(2_000.0, 9_000.0);
                world.fraud("spree", at, merchant, "5732", amount, BERGEN, "online");
                at += world.rng.i64(4 * MINUTE..15 * MINUTE);
            }
        }
    }
}

const NAIROBI: Place = ("Nairobi", "KE", -1.286, 36.817);
const KISUMU: Place = ("Kisumu", "KE", -0.092, 34.768);
const MOMBASA: Place = ("Mombasa", "KE", -4.043, 39.668);
const DUBAI: Place = ("Dubai", "AE", 25.204, 55.271);

const SAVANNA_SHOPS: [Shop; 4] = [
    (
        "supermarket",
        &["Naivas Westlands", "Carrefour Hub", "Quickmart", "Mama Mboga"],
        150.0,
        4_500.0,
    ),
    ("public transport", &["Super Metro", "Citi Hoppa", "Bolt KE"], 50.0, 600.0),
    ("eating places", &["Java House", "Kenchic", "Mama Oliech"], 200.0, 1_800.0),
    ("petrol", &["Rubis Ngong Rd", "Total Karen"], 1_000.0, 5_000.0),
];

fn savanna() -> World {
    let mut world = Writer::new(0x5a_7a);
    world.currency = "KES";
    for card in 0..32 {
        world.card = card;
        for day in 0..DAYS {
            let away = card % 4 == 1 && (58..66).contains(&day);
            let place = if away { KISUMU } else { NAIROBI };
            for _ in 0..world.rng.usize(0..3) {
                let shop = world.one_of(&SAVANNA_SHOPS);
                let at = world.time(day, (6, 21), 3);
                let channel = world.one_of(&["contactless", "contactless", "chip"]);
                world.shop(at, shop, place, channel);
            }
            if world.happens(0.2) {
                let at = world.time(day, (6, 23), 3);
                let amount = world.one_of(&[100.0, 200.0, 250.0, 500.0]);
                world.pay(at, "Safaricom Airtime", "telecom", amount, NAIROBI, "online");
            }
            if day % 7 == (card % 7) as i64 {
                let at = world.time(day, (10, 18), 3);
                let amount = 1_000.0 * world.rng.i64(2..10) as f64;
                world.pay(at, "Equity ATM", "atm", amount, place, "atm");
            }
        }
        if card % 3 == 0 {
            let at = world.time(92 + (card % 4) as i64, (9, 15), 3);
            world.unusual(at, "Moi Avenue School", "8211", 48_500.0, NAIROBI, "chip");
        }
        if card % 8 == 5 {
            let at = world.time(70, (12, 20), 3);
            for n in 0..4 {
                let amount = world.between(1_500.0, 9_000.0);
                world.unusual(at + n * 5 * HOUR, "Nyali Beach", "lodging", amount, MOMBASA, "chip");
            }
        }
    }
    for card in (0..32).filter(|card| card % 3 == 1) {
        world.card = card;
        savanna_fraud(&mut world, card / 3);
    }
    world.world(
        "savanna",
        "Kenya: many small payments; swapped SIM cards, tested cards, drained accounts",
    )
}

fn savanna_fraud(world: &mut Writer, number: usize) {
    let day = world.late_day();
    match number % 4 {
        0 => {
            let mut at = world.time(day, (0, 4), 3);
            for _ in 0..world.rng.usize(3..6) {
                let amount = world.between(5_000.0, 20_000.0);
                world.fraud("swapped SIM", at, "PesaWallet", "6051", amount, NAIROBI, "online");
                at += world.rng.i64(3 * MINUTE..12 * MINUTE);
            }
        }
        1 => {
            let mut at = world.time(day, (8, 22), 3);
            for _ in 0..world.rng.usize(4..7) {
                let amount = world.between(10.0, 20.0);
                world.fraud(
                    "tested card",
                    at,
                    "topup-africa",
                    "telecom",
                    amount,
                    NAIROBI,
                    "online",
                );
                at += world.rng.i64(30..180);
            }
            for _ in 0..2 {
                at += world.rng.i64(5 * MINUTE..30 * MINUTE);
                let amount = world.between(14_000.0, 30_000.0);
                world.fraud(
                    "tested card",
                    at,
                    "gadgets.ke",
                    "electronics",
                    amount,
                    NAIROBI,
                    "online",
                );
            }
        }
        2 => {
            let at = world.time(day, (5, 23), 3);
            for n in 0..3 {
                let at = at + n * 9 * MINUTE;
                world.fraud("drained account", at, "KCB ATM", "atm", 20_000.0, MOMBASA, "atm");
            }
        }
        _ => {
            let at = world.time(day, (8, 22), 3);
            for n in 0..3 {
                let amount = world.between(6_000.0, 45_000.0);
                let at = at + n * 35 * MINUTE;
                world.fraud("clone", at, "Deira Gold Souk", "jewelry", amount, DUBAI, "swipe");
            }
        }
    }
}

const BASEL: Place = ("Basel", "CH", 47.559, 7.588);
const WEIL: Place = ("Weil am Rhein", "DE", 47.594, 7.621);
const MULHOUSE: Place = ("Mulhouse", "FR", 47.750, 7.335);
const LONDON: Place = ("London", "GB", 51.507, -0.128);
const MILANO: Place = ("Milano", "IT", 45.464, 9.190);
const NEW_YORK: Place = ("New York", "US", 40.713, -74.006);
const VILNIUS: Place = ("Vilnius", "LT", 54.687, 25.280);
const LIMA: Place = ("Lima", "PE", -12.046, -77.043);

const BORDER_SHOPS: [Shop; 5] = [
    ("Grocery Stores, Supermarkets", &["Migros", "Coop", "Denner", "Lidl"], 12.0, 160.0),
    ("Bakeries", &["Gilgen", "Sutter Begg"], 4.0, 22.0),
    ("Eating Places, Restaurants", &["Volkshaus", "Zum Isaak", "Roter Baeren"], 22.0, 120.0),
    ("Drug Stores and Pharmacies", &["Amavita", "dm"], 6.0, 70.0),
    ("Service Stations", &["Avia", "Migrol"], 45.0, 110.0),
];

fn border() -> World {
    let mut world = Writer::new(0xb0_4d);
    for card in 0..36 {
        world.card = card;
        let is_swiss = card % 3 != 0;
        world.currency = if is_swiss { "CHF" } else { "EUR" };
        let home = if is_swiss { BASEL } else { [WEIL, MULHOUSE][card % 2] };
        let travels = card % 4 == 2;
        let mut away = -10;
        for day in 0..DAYS {
            if travels && day % 14 == 9 {
                away = day;
                border_trip(&mut world, day, card);
            }
            let is_away = (away..away + 2).contains(&day);
            if !is_away && world.happens(0.55) {
                let shop = world.one_of(&BORDER_SHOPS);
                let at = world.time(day, (8, 20), 1);
                let place = if day % 7 == 5 { WEIL } else { home };
                let channel = world.one_of(&["chip", "contactless"]);
                world.shop(at, shop, place, channel);
            }
            if day % 30 == 1 {
                let at = world.time(day, (6, 9), 1);
                world.pay(at, "SBB Abo", "4112", 210.0, home, "online");
            }
        }
        if card % 6 == 4 {
            let at = world.time(88, (10, 18), 1);
            world.unusual(at, "Uhren Mezger", "Jewelry, Watches", 3_400.0, BASEL, "chip");
        }
    }
    for card in (0..36).filter(|card| card % 3 == 1) {
        world.card = card;
        world.currency = "CHF";
        border_fraud(&mut world, card / 3);
    }
    world.world(
        "border",
        "Basel: two currencies, business trips; collusion, split transfers, clones",
    )
}

fn border_trip(world: &mut Writer, day: i64, card: usize) {
    let place = [LONDON, MILANO, NEW_YORK][card % 3];
    let at = world.time(day - 5, (9, 17), 1);
    world.unusual(at, "SWISS", "Airlines", 380.0, BASEL, "online");
    for n in 0..4 {
        let at = world.time(day, (12, 18), 1) + n * 6 * HOUR;
        let amount = world.between(18.0, 90.0);
        world.unusual(at, "Corner House", "Eating Places, Restaurants", amount, place, "chip");
    }
    let at = world.time(day + 1, (8, 10), 1);
    world.unusual(at, "Crown Hotel", "Lodging", 290.0, place, "chip");
}

fn border_fraud(world: &mut Writer, number: usize) {
    let day = world.late_day();
    match number % 4 {
        0 => {
            for n in 0..6 {
                let at = world.time(day / 2 + 28 + n * 3, (0, 4), 1);
                let amount = world.one_of(&[500.0, 600.0, 750.0, 1_000.0]);
                world.fraud("collusion", at, "Club Nachtfalter", "Bars", amount, BASEL, "chip");
            }
        }
        1 => {
            let at = world.time(day, (9, 16), 1);
            for n in 0..4 {
                let amount = 950.0 + 10.0 * n as f64;
                let at = at + n * 50 * MINUTE;
                world.fraud(
                    "split transfers",
                    at,
                    "GeldSofort",
                    "Money Transfer",
                    amount,
                    BASEL,
                    "online",
                );
            }
        }
        2 => {
            let at = world.time(day, (12, 20), 1);
            for n in 0..3 {
                let amount = world.between(80.0, 420.0);
                let at = at + n * 25 * MINUTE;
                world.fraud(
                    "clone",
                    at,
                    "Grifo Miraflores",
                    "Service Stations",
                    amount,
                    LIMA,
                    "swipe",
                );
            }
        }
        _ => {
            let mut at = world.time(day, (7, 23), 1);
            for _ in 0..world.rng.usize(4..7) {
                let amount = world.one_of(&[100.0, 150.0, 200.0]);
                world.fraud(
                    "gift cards",
                    at,
                    "gutschein24",
                    "Gift Card Shops",
                    amount,
                    VILNIUS,
                    "online",
                );
                at += world.rng.i64(2 * MINUTE..12 * MINUTE);
            }
        }
    }
}

const OMAHA: Place = ("Omaha", "US", 41.257, -95.935);
const LINCOLN: Place = ("Lincoln", "US", 40.814, -96.702);
const DENVER: Place = ("Denver", "US", 39.739, -104.990);

const PRAIRIE_SHOPS: [Shop; 5] = [
    ("grocery", &["Hy-Vee 11", "Fareway", "Costco 208", "Baker's"], 18.0, 260.0),
    ("gas station", &["Casey's", "Kum & Go", "QuikTrip"], 28.0, 85.0),
    ("coffee", &["Scooter's", "Archetype"], 4.0, 16.0),
    ("fast food", &["Runza", "Culver's", "Raising Cane's"], 9.0, 48.0),
    ("hardware", &["Menards", "Westlake Ace"], 12.0, 240.0),
];

fn prairie() -> World {
    let mut world = Writer::new(0x9a_1e);
    world.currency = "USD";
    for card in 0..40 {
        world.card = card;
        let is_dormant = card % 13 == 7;
        for day in 0..if is_dormant { 28 } else { DAYS } {
            let rate = if is_dormant { 1.0 } else { 0.5 };
            if world.happens(rate) {
                let shop = world.one_of(&PRAIRIE_SHOPS);
                let at = world.time(day, (7, 21), -6);
                let channel = world.one_of(&["chip", "contactless", "swipe"]);
                world.shop(at, shop, OMAHA, channel);
            }
            if world.happens(0.14) && !is_dormant {
                let at = world.time(day, (9, 23), -6);
                let amount = world.skewed(9.0, 140.0);
                world.pay(at, "bigmarket.example", "marketplace", amount, OMAHA, "online");
            }
            if day % 30 == (card % 28) as i64 {
                let at = world.time(day, (3, 5), -6);
                world.pay(at, "Prairie Stream", "streaming", 15.99, OMAHA, "online");
            }
        }
        if card % 4 == 1 {
            prairie_unusual(&mut world);
        }
    }
    prairie_frauds(&mut world);
    world.world(
        "prairie",
        "US suburbs: marketplaces, gifts; taken-over accounts, pumps, tested by the dozen",
    )
}

/// Gifts for the whole family in one evening; a drive to the mountains; a washing machine.
fn prairie_unusual(world: &mut Writer) {
    let day = world.late_day();
    let mut at = world.time(day, (18, 21), -6);
    for n in 0..6 {
        let merchant = ["toys.example", "books.example", "bigmarket.example"][n % 3];
        let amount = world.between(18.0, 95.0);
        world.unusual(at, merchant, "toys", amount, OMAHA, "online");
        at += world.rng.i64(4 * MINUTE..14 * MINUTE);
    }
    for n in 0..4 {
        let at = world.time(day + 6, (15, 18), -6) + n * 12 * HOUR;
        let amount = world.between(14.0, 120.0);
        world.unusual(at, "Mountain Diner", "restaurant", amount, DENVER, "chip");
    }
    let at = world.time(day + 12, (10, 19), -6);
    world.unusual(at, "Nebraska Mart", "appliances", 1_149.0, OMAHA, "chip");
}

fn prairie_frauds(world: &mut Writer) {
    for card in (0..40).filter(|card| card % 4 == 2) {
        world.card = card;
        let day = world.late_day();
        if card % 8 == 2 {
            let mut at = world.time(day, (1, 5), -6);
            for _ in 0..world.rng.usize(3..6) {
                let amount = world.between(190.0, 620.0);
                world.fraud(
                    "taken-over account",
                    at,
                    "shopnow.example",
                    "electronics",
                    amount,
                    OMAHA,
                    "online",
                );
                at += world.rng.i64(5 * MINUTE..25 * MINUTE);
            }
        } else {
            let at = world.time(day, (9, 21), -6);
            world.fraud("cloned at a pump", at, "Gas-N-Go 9", "gas station", 1.0, LINCOLN, "swipe");
            for n in 1..4 {
                let amount = world.between(75.0, 125.0);
                let at = at + n * 16 * MINUTE;
                world.fraud(
                    "cloned at a pump",
                    at,
                    "Gas-N-Go 9",
                    "gas station",
                    amount,
                    LINCOLN,
                    "swipe",
                );
            }
        }
    }
    for wave in 0..2 {
        let at = world.time(55 + wave * 40, (10, 16), -6);
        for n in 0..9 {
            world.card = (n * 4 + 3) % 40;
            let at = at + n as i64 * 80;
            world.fraud("tested by the dozen", at, "helpnow-fund", "charity", 1.0, OMAHA, "online");
        }
    }
    for card in (0..40).filter(|card| card % 13 == 7) {
        world.card = card;
        let at = world.time(DAYS - 8, (9, 22), -6);
        world.fraud("dormant card", at, "devices.example", "electronics", 799.0, OMAHA, "online");
        world.fraud(
            "dormant card",
            at + DAY,
            "devices.example",
            "electronics",
            649.0,
            OMAHA,
            "online",
        );
    }
}
