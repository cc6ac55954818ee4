//! Scores are probabilities where enough labels are known, and say so where not.

use serde_json::Value;

use super::Desk;

fn without_labels(desk: &Desk) -> Desk {
    let text = std::fs::read_to_string(&desk.path).unwrap();
    let bare = text.lines().enumerate().map(|(at, line)| match line.rsplit_once(',') {
        Some((rest, _)) if at > 0 => format!("{rest},\n"),
        _ => format!("{line}\n"),
    });
    Desk::of(&bare.collect::<String>())
}

fn basis(result: &Value) -> &str {
    result["calibration"]["basis"].as_str().unwrap()
}

#[test]
fn a_late_payment_is_calibrated_and_an_early_one_is_not() {
    let desk = Desk::generated(5, 2_400, 40);
    let (frauds, honest) = desk.targets(1);
    let late = desk.investigate(&honest.last().unwrap().id);
    assert_eq!(late["calibration"]["is_calibrated"], true, "{}", basis(&late));
    assert!(basis(&late).starts_with("calibrated on "), "{}", basis(&late));
    let early = desk.investigate(&frauds[0].id);
    assert_eq!(early["calibration"]["is_calibrated"], false);
    let reason = basis(&early);
    assert!(reason.starts_with("uncalibrated: ") && reason.ends_with("10 and 50 are needed"));
    assert_eq!(early["score"], early["calibration"]["evidence"]);
}

/// The labels that count are counted independently, from the file.
#[test]
fn only_labels_known_by_then_are_counted() {
    let desk = Desk::generated(5, 2_400, 40);
    let row = desk.rows.last().unwrap();
    let week_before = |text: &str| {
        let day: u32 = text[8..10].parse().unwrap();
        assert!(day > 7, "the data end in the second week of a month or later: {text}");
        format!("{}{:02}{}", &text[..8], day - 7, &text[10..])
    };
    let until = week_before(&row.fields["timestamp"]);
    let known: Vec<_> =
        desk.rows.iter().filter(|row| row.fields["timestamp"].as_str() <= until.as_str()).collect();
    let frauds = known.iter().filter(|row| row.is_fraud).count();
    let expected = format!(
        "calibrated on {frauds} frauds and {} honest payments whose labels were known by then",
        known.len() - frauds
    );
    assert_eq!(basis(&desk.investigate(&row.id)), expected);
}

/// In each band of scores, the share of frauds is near the scores, for the payments of a data set that the
/// fit has not seen: those after the labels.
#[test]
fn a_score_is_near_the_share_of_frauds() {
    let (mut low, mut high) = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0));
    for seed in [21, 22] {
        let desk = Desk::generated(seed, 2_400, 60);
        let (frauds, honest) = desk.targets(20);
        // Every twentieth honest payment stands for twenty.
        for (rows, weight) in [(frauds, 1.0), (honest, 20.0)] {
            for row in rows {
                let result = desk.investigate(&row.id);
                if result["calibration"]["is_calibrated"] == false {
                    continue;
                }
                let Some(score) = result["score"].as_f64() else { continue };
                let band = if score < 0.3 { &mut low } else { &mut high };
                band.0 += weight;
                band.1 += weight * score;
                band.2 += if row.is_fraud { weight } else { 0.0 };
            }
        }
    }
    for (name, (payments, scores, frauds)) in [("low", low), ("high", high)] {
        let (said, were) = (scores / payments, frauds / payments);
        println!("{name}: score {said:.3}, frauds {were:.3}, of {payments}");
        assert!((said - were).abs() < 0.2, "{name}: {said} {were}");
    }
}

#[test]
fn without_labels_nothing_is_calibrated() {
    let desk = without_labels(&Desk::generated(5, 1_200, 60));
    let row = desk.rows.last().unwrap();
    let result = desk.investigate(&row.id);
    assert_eq!(result["calibration"]["is_calibrated"], false);
    assert!(basis(&result).contains("0 past frauds and 0 honest payments"), "{}", basis(&result));
    let conclusion = (fraud::conclude::PRESENTATION.conclude)(&result).unwrap();
    let score = conclusion.notes.iter().find(|note| note.title == "Score").unwrap();
    assert!(score.lines[0].starts_with("uncalibrated: "), "{score:?}");
}
