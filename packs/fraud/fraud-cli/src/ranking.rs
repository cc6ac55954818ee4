//! Measures how well scores separate frauds from honest payments.

/// The quality of a ranking of labelled payments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranking {
    /// The area under the ROC curve, from 0 to 1: the probability that a fraud scores above an honest
    /// payment. Equal scores count half.
    pub area: f64,
    pub frauds: usize,
    pub honest: usize,
}

impl Ranking {
    /// Ranks pairs of score and `is_fraud`; `None` unless there are frauds and honest payments.
    #[expect(clippy::cast_precision_loss, reason = "a batch has fewer than 2^53 payments")]
    pub fn of(mut scored: Vec<(f64, bool)>) -> Option<Self> {
        let frauds = scored.iter().filter(|(_, is_fraud)| *is_fraud).count();
        let honest = scored.len() - frauds;
        if frauds == 0 || honest == 0 {
            return None;
        }
        scored.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let (mut below, mut wins) = (0, 0.0);
        for equal in scored.chunk_by(|(a, _), (b, _)| a.total_cmp(b).is_eq()) {
            let frauds_here = equal.iter().filter(|(_, is_fraud)| *is_fraud).count();
            let honest_here = equal.len() - frauds_here;
            wins += frauds_here as f64 * (below as f64 + honest_here as f64 / 2.0);
            below += honest_here;
        }
        Some(Self { area: wins / (frauds as f64 * honest as f64), frauds, honest })
    }

    pub fn in_words(&self) -> String {
        let Self { area, frauds, honest } = self;
        format!(
            "area under the ROC curve {area:.3}, over {frauds} labelled frauds and {honest} honest payments"
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_ranking_needs_frauds_and_honest_payments() {
        for scored in [vec![], vec![(0.4, true)], vec![(0.4, false), (0.9, false)]] {
            assert_eq!(Ranking::of(scored), None);
        }
    }

    proptest! {
        #[test]
        fn the_area_is_the_share_of_pairs_the_fraud_wins(
            scored in proptest::collection::vec((0_u8..20, any::<bool>()), 2..60)
        ) {
            let scored: Vec<(f64, bool)> =
                scored.into_iter().map(|(score, is_fraud)| (f64::from(score) / 20.0, is_fraud)).collect();
            let of = |kind: bool| scored.iter().filter(move |(_, is_fraud)| *is_fraud == kind);
            let pairs: Vec<f64> = of(true)
                .flat_map(|(fraud, _)| of(false).map(move |(honest, _)| {
                    if fraud > honest { 1.0 } else if fraud == honest { 0.5 } else { 0.0 }
                }))
                .collect();
            match Ranking::of(scored.clone()) {
                None => prop_assert!(pairs.is_empty()),
                Some(ranking) => {
                    prop_assert_eq!(ranking.frauds * ranking.honest, pairs.len());
                    let share = pairs.iter().sum::<f64>() / pairs.len() as f64;
                    prop_assert!((ranking.area - share).abs() < 1e-9, "{} {}", ranking.area, share);
                }
            }
        }
    }
}
