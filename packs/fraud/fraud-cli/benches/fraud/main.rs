//! Measures the fraud agent's scores: the area under the ROC curve with its interval, with labels and without,
//! the reliability of calibrated scores, and honest payments that would have been blocked.
//!
//! The data are seeds of the generator that no test uses, and worlds by other rules (`worlds`). Nothing is tuned
//! on them. `cargo bench -p fraud-cli --bench fraud -- NAME` measures one.

#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing to say")]

mod desk;
mod world;
mod worlds;

use card_transactions::generator::{Options, generate};
use fraud_cli::ranking::Ranking;
use fraud_cli::reliability::{self, Scored};

use self::desk::{Desk, Investigated};
use self::world::World;

/// About this many ordinary honest payments are investigated of each data set.
const HONEST: usize = 150;

/// The targets of the issue: areas with and without labels.
const TARGETS: (f64, f64) = (0.93, 0.88);

/// Seeds that no test uses.
const SEEDS: [u64; 2] = [31_337, 271_828];

fn main() {
    // Cargo passes --bench.
    let asked: Vec<String> =
        std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let mut worlds: Vec<World> = SEEDS.map(generated).into();
    worlds.extend(worlds::all());
    let wanted = |world: &&World| asked.is_empty() || asked.contains(&world.name);
    let measured: Vec<Measured> = worlds.iter().filter(wanted).map(Measured::of).collect();
    println!("\n{:<20} {:>24} {:>24} {:>8}", "DATA", "WITH LABELS", "WITHOUT", "BLOCKED");
    for one in &measured {
        println!(
            "{:<20} {:>24} {:>24} {:>8}",
            one.name,
            shown(&one.labelled, TARGETS.0),
            shown(&one.bare, TARGETS.1),
            one.blocked
        );
    }
    println!("targets: {} with labels, {} without, 0 blocked; * below", TARGETS.0, TARGETS.1);
}

fn generated(seed: u64) -> World {
    let mut text = Vec::new();
    generate(Options { seed, rows: 2_400, fraud_permille: 20 }, &mut text).unwrap();
    World::of_csv(&format!("generator {seed}"), &String::from_utf8(text).unwrap())
}

fn shown(ranking: &Ranking, target: f64) -> String {
    let (low, high) = ranking.interval();
    let below = if ranking.area < target { "*" } else { "" };
    format!("{below}{:.3} ({low:.3} to {high:.3})", ranking.area)
}

struct Measured {
    name: String,
    labelled: Ranking,
    bare: Ranking,
    /// Honest payments that would have been blocked, in both runs.
    blocked: usize,
}

impl Measured {
    fn of(world: &World) -> Self {
        println!("\n{}: {}", world.name, world.about);
        let (labelled, blocked) = measure(world, true);
        let (bare, also_blocked) = measure(world, false);
        Self { name: world.name.clone(), labelled, bare, blocked: blocked + also_blocked }
    }
}

fn measure(world: &World, has_labels: bool) -> (Ranking, usize) {
    let desk = Desk::of(&world.csv(has_labels));
    let targets = world.targets(HONEST);
    let run = |rows: &[&world::Row]| -> Vec<Investigated> {
        rows.iter().map(|row| desk.investigate(&row.id)).collect()
    };
    let (frauds, honest, unusual) =
        (run(&targets.frauds), run(&targets.honest), run(&targets.unusual));
    let scored = |of: &Investigated, is_fraud: bool| Scored {
        score: of.score,
        is_calibrated: of.is_calibrated,
        is_fraud,
    };
    let all: Vec<Scored> = frauds
        .iter()
        .map(|one| scored(one, true))
        .chain(honest.iter().map(|one| scored(one, false)))
        .collect();
    let ranking = Ranking::of(all.iter().map(|one| (one.score, one.is_fraud)).collect()).unwrap();
    let labels = if has_labels { "with labels" } else { "without labels" };
    println!("  {labels}: {}", ranking.in_words());
    for (name, of) in [("frauds", &frauds), ("honest", &honest), ("unusual honest", &unusual)] {
        println!("    {name}: {}", actions(of));
    }
    for line in reliability::table(&all, targets.honest_weight) {
        println!("    {line}");
    }
    missed(&targets.frauds, &frauds);
    let blocked = honest.iter().chain(&unusual).filter(|one| one.action == "block_card").count();
    (ranking, blocked)
}

fn actions(of: &[Investigated]) -> String {
    let count = |action: &str| of.iter().filter(|one| one.action == action).count();
    let actions = ["block_card", "ask_cardholder", "manual_review", "release"];
    let counts = actions.map(|action| format!("{} {}", count(action), action.replace('_', " ")));
    format!("{} payments: {}", of.len(), counts.join(", "))
}

/// Which kinds of frauds were released.
fn missed(rows: &[&world::Row], of: &[Investigated]) {
    let mut kinds: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for (row, _) in rows.iter().zip(of).filter(|(_, one)| one.action == "release") {
        *kinds.entry(row.kind).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    if !kinds.is_empty() {
        println!("    released frauds: {}", kinds.join(", "));
    }
}
