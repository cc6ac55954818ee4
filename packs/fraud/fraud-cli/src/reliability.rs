//! Compares calibrated scores with the shares of frauds.

use super::ranking::NORMAL_95;

/// Bounds of the bands of scores.
const BOUNDS: [f64; 6] = [0.0, 0.01, 0.05, 0.2, 0.5, 1.0];

/// A labelled payment with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// From 0 to 1.
    pub score: f64,
    /// Whether the score is a probability, by labels known then.
    pub is_calibrated: bool,
    pub is_fraud: bool,
}

/// A band of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    pub from: f64,
    pub to: f64,
    pub frauds: usize,
    pub honest: usize,
    /// Mean of the scores.
    pub score: f64,
    /// Share of frauds, with its 95 % interval.
    pub share: f64,
    pub low: f64,
    pub high: f64,
}

/// The bands that have payments with a calibrated score. Each honest payment stands for this many.
pub fn bands(scored: &[Scored], honest_weight: f64) -> Vec<Band> {
    let calibrated: Vec<&Scored> = scored.iter().filter(|scored| scored.is_calibrated).collect();
    let band = |pair: &[f64]| {
        let (from, to) = (pair[0], pair[1]);
        let is_last = to >= 1.0;
        let inside = |scored: &&&Scored| {
            scored.score >= from && (scored.score < to || is_last && scored.score <= to)
        };
        let inside: Vec<&Scored> = calibrated.iter().filter(inside).copied().collect();
        Band::of(from, to, &inside, honest_weight)
    };
    BOUNDS.windows(2).filter_map(band).collect()
}

impl Band {
    #[expect(clippy::cast_precision_loss, reason = "a batch has fewer than 2^53 payments")]
    fn of(from: f64, to: f64, inside: &[&Scored], honest_weight: f64) -> Option<Self> {
        let frauds = inside.iter().filter(|scored| scored.is_fraud).count();
        let honest = inside.len() - frauds;
        if inside.is_empty() {
            return None;
        }
        let weight = |scored: &Scored| if scored.is_fraud { 1.0 } else { honest_weight };
        let all: f64 = inside.iter().map(|scored| weight(scored)).sum();
        let sum: f64 = inside.iter().map(|scored| weight(scored) * scored.score).sum();
        let (low, high) = wilson(frauds as f64, inside.len() as f64);
        let weighed = |share: f64| share / (share + (1.0 - share) * honest_weight);
        let share = weighed(frauds as f64 / inside.len() as f64);
        let (low, high) = (weighed(low), weighed(high));
        Some(Self { from, to, frauds, honest, score: sum / all, share, low, high })
    }

    /// Whether the mean score is in the interval of the share, or on which side.
    pub fn verdict(&self) -> &'static str {
        if self.score > self.high {
            "too high"
        } else if self.score < self.low {
            "too low"
        } else {
            "fits"
        }
    }
}

/// Wilson's 95 % interval of a share.
///
/// Source: E. Wilson, Journal of the American Statistical Association 22 (1927).
fn wilson(part: f64, whole: f64) -> (f64, f64) {
    let (share, z2) = (part / whole, NORMAL_95.powi(2));
    let middle = share + z2 / (2.0 * whole);
    let around = NORMAL_95 * (share * (1.0 - share) / whole + z2 / (4.0 * whole * whole)).sqrt();
    let all = 1.0 + z2 / whole;
    (((middle - around) / all).max(0.0), ((middle + around) / all).min(1.0))
}

/// The reliability table, and how many scores are not in it.
pub fn table(scored: &[Scored], honest_weight: f64) -> Vec<String> {
    let uncalibrated = scored.iter().filter(|scored| !scored.is_calibrated).count();
    let bands = bands(scored, honest_weight);
    let mut lines = Vec::new();
    if !bands.is_empty() {
        lines.push(format!(
            "{:<12} {:>7} {:>7} {:>11} {:>7}  {:<16} RELIABILITY",
            "SCORE", "FRAUDS", "HONEST", "MEAN SCORE", "SHARE", "95 % INTERVAL"
        ));
    }
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    lines.extend(bands.iter().map(|band| {
        let scores = format!("{:.0} to {:.0} %", band.from * 100.0, band.to * 100.0);
        let interval = format!("{} to {}", percent(band.low), percent(band.high));
        format!(
            "{scores:<12} {:>7} {:>7} {:>11} {:>7}  {interval:<16} {}",
            band.frauds,
            band.honest,
            percent(band.score),
            percent(band.share),
            band.verdict(),
        )
    }));
    if uncalibrated > 0 {
        let all = scored.len();
        lines.push(format!(
            "uncalibrated: {uncalibrated} of {all} scores are weights of evidence and not probabilities; too \
             few labels were known"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(score: f64, frauds: usize, honest: usize) -> Vec<Scored> {
        let of = |is_fraud| Scored { score, is_calibrated: true, is_fraud };
        let frauds = std::iter::repeat_n(of(true), frauds);
        frauds.chain(std::iter::repeat_n(of(false), honest)).collect()
    }

    #[test]
    fn scores_are_compared_with_the_shares_of_frauds() {
        let all = [scored(0.004, 0, 300), scored(0.3, 31, 69), scored(0.9, 20, 80)].concat();
        let found = bands(&all, 1.0);
        let seen: Vec<_> =
            found.iter().map(|band| (band.frauds, band.honest, band.verdict())).collect();
        assert_eq!(seen, [(0, 300, "fits"), (31, 69, "fits"), (20, 80, "too high")]);
        // Wilson's interval of 20 in 100.
        assert!((found[2].low - 0.133).abs() < 0.001 && (found[2].high - 0.289).abs() < 0.001);
    }

    /// One of ten honest payments was scored.
    #[test]
    fn a_sample_is_weighed_up_to_its_data() {
        let found = bands(&scored(0.1, 10, 10), 10.0);
        assert!((found[0].share - 1.0 / 11.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn uncalibrated_scores_are_said_and_not_compared() {
        let mut all = scored(0.3, 3, 7);
        for scored in &mut all {
            scored.is_calibrated = false;
        }
        let lines = table(&all, 1.0);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("uncalibrated: 10 of 10 scores"), "{lines:?}");
        assert_eq!(table(&[], 1.0), Vec::<String>::new());
    }
}
