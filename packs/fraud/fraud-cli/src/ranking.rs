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

/// Quantile of the normal distribution for a 95 % interval.
pub const NORMAL_95: f64 = 1.959_963_984_540_054;

/// Halvings that find a bound of the interval.
const HALVINGS: usize = 60;

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

    /// The 95 % interval of the area. It is not empty for an area of 1, as DeLong's is, and is wide with few
    /// payments. It takes payments as independent; those of one misuse are not quite.
    ///
    /// Source: R. Newcombe, "Confidence intervals for an effect size measure based on the Mann–Whitney
    /// statistic", Part 2, Statistics in Medicine 25 (2006), method 5.
    pub fn interval(&self) -> (f64, f64) {
        (self.bound(0.0), self.bound(1.0))
    }

    /// The area between the estimate and an end that is just within the normal quantile.
    fn bound(&self, end: f64) -> f64 {
        let (mut inside, mut outside) = (self.area, end);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(inside, outside);
            let is_inside =
                (self.area - middle).powi(2) <= NORMAL_95.powi(2) * self.variance(middle);
            *if is_inside { &mut inside } else { &mut outside } = middle;
        }
        outside
    }

    #[expect(clippy::cast_precision_loss, reason = "a batch has fewer than 2^53 payments")]
    fn variance(&self, area: f64) -> f64 {
        let (frauds, honest) = (self.frauds as f64, self.honest as f64);
        let others = f64::midpoint(frauds, honest) - 1.0;
        let together = (1.0 - area) / (2.0 - area) + area / (1.0 + area);
        area * (1.0 - area) * (1.0 + others * together) / (frauds * honest)
    }

    pub fn in_words(&self) -> String {
        let Self { area, frauds, honest } = self;
        let (low, high) = self.interval();
        format!(
            "area under the ROC curve {area:.3}, over {frauds} labelled frauds and {honest} honest payments \
             (95 % interval {low:.3} to {high:.3}, Newcombe's method 5)"
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

    /// Hanley and McNeil's standard error for an area of 0.893 with 51 and 58 is 0.032 (Radiology 143, 1982), so
    /// the interval is about 0.82 to 0.95.
    #[test]
    fn the_interval_is_that_of_the_literature() {
        let (low, high) = Ranking { area: 0.893, frauds: 51, honest: 58 }.interval();
        assert!((low - 0.817).abs() < 0.015 && (high - 0.942).abs() < 0.015, "{low} {high}");
    }

    #[test]
    fn few_payments_give_a_wide_interval() {
        let (low, high) = Ranking { area: 1.0, frauds: 2, honest: 1 }.interval();
        assert!(low < 0.4 && high > 0.999, "{low} {high}");
        let (low, _) = Ranking { area: 1.0, frauds: 200, honest: 1_000 }.interval();
        assert!(low > 0.98, "{low}");
    }

    proptest! {
        #[test]
        fn an_interval_has_its_area(area in 0.0_f64..=1.0, frauds in 1_usize..400, honest in 1_usize..400) {
            let (low, high) = Ranking { area, frauds, honest }.interval();
            prop_assert!((0.0..=area).contains(&low) && (area..=1.0).contains(&high), "{} {}", low, high);
        }

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
