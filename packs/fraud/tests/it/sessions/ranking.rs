//! The score ranks frauds above honest payments on unseen data.

use fraud::options::Options;
use fraud::tool::Tool;
use graph::agent::Settings;
use graph::testing::{TestSession, World};
use serde_json::json;

use super::{Desk, agent, completed};

/// Least area under the ROC curve: the probability that a fraud scores above an honest payment.
const AREA_MIN: f64 = 0.95;

/// Rows of a data set.
const ROWS: u32 = 2_400;

fn area(frauds: &[f64], honest: &[f64]) -> f64 {
    let mut wins = 0.0;
    for fraud in frauds {
        for other in honest {
            wins += if fraud > other {
                1.0
            } else if fraud == other {
                0.5
            } else {
                0.0
            };
        }
    }
    wins / (frauds.len() * honest.len()) as f64
}

fn ranks_frauds_above_honest_payments(seed: u64) {
    let desk = Desk::generated(seed, ROWS, 20);
    let (frauds, honest) = desk.targets(12);
    // Later steps do not change the score.
    let fallback_sequence = vec![Tool::Context, Tool::Pattern, Tool::Similarity, Tool::Reasoning];
    let options = json!(Options { fallback_sequence, ..Options::default() });
    let score = |row: &&super::Row| {
        let settings = Settings { options: options.clone(), ..Settings::default() };
        let mut session = TestSession::start(agent(), desk.input(&row.id), settings).unwrap();
        let result = completed(session.drive(&mut World::new(|call| desk.serve(call))));
        // Without a recommendation nothing is assessed, and there is no score.
        result["reasoning"]["likelihood_permille"].as_f64().unwrap()
    };
    let of_frauds: Vec<f64> = frauds.iter().map(score).collect();
    let of_honest: Vec<f64> = honest.iter().map(score).collect();
    let area = area(&of_frauds, &of_honest);
    println!(
        "seed {seed}: area under the ROC curve {area:.4} over {} frauds and {} honest payments",
        frauds.len(),
        honest.len()
    );
    for (row, score) in frauds.iter().zip(&of_frauds).filter(|(_, score)| **score < 0.3) {
        println!("  fraud   {score:.3} {:?}", row.fields.values().collect::<Vec<_>>());
    }
    for (row, score) in honest.iter().zip(&of_honest).filter(|(_, score)| **score > 0.5) {
        println!("  honest  {score:.3} {:?}", row.fields.values().collect::<Vec<_>>());
    }
    assert!(frauds.len() >= 15, "{} frauds are too few to say anything", frauds.len());
    assert!(area >= AREA_MIN, "seed {seed}: {area:.4}");
}

macro_rules! seeds {
    ($($name:ident: $seed:literal),+ $(,)?) => {
        $(#[test]
        fn $name() {
            ranks_frauds_above_honest_payments($seed);
        })+
    };
}

seeds!(
    frauds_are_ranked_above_honest_payments_of_seed_11: 11,
    frauds_are_ranked_above_honest_payments_of_seed_2026: 2026,
    frauds_are_ranked_above_honest_payments_of_seed_77: 77,
    frauds_are_ranked_above_honest_payments_of_seed_900913: 900_913,
);

/// `FRAUD_SEED=7` chooses a seed.
#[test]
#[expect(clippy::disallowed_methods, reason = "reads an unseen seed")]
fn frauds_rank_above_honest_payments_for_any_seed() {
    let asked = std::env::var("FRAUD_SEED").ok().and_then(|text| text.parse().ok());
    ranks_frauds_above_honest_payments(asked.unwrap_or(20_261_122));
}
