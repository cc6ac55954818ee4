//! The summary of many investigations, for a fraud analyst.

use std::collections::BTreeMap;

use owo_colors::Style;
use serde_json::Value;
use views::text::{clean, clip};

/// The status of a session that succeeded.
const SUCCEEDED: &str = "SUCCEEDED";

/// A payment, and the session that investigated it.
#[derive(Clone, Debug)]
pub struct Investigated {
    pub id: String,
    /// The session, in the format of `daybook show --json`.
    pub session: Value,
}

impl Investigated {
    pub fn has_succeeded(&self) -> bool {
        self.status() == SUCCEEDED
    }

    /// The probability of fraud, from 0 to 1.
    pub fn score(&self) -> Option<f64> {
        self.result()?.get("score")?.as_f64()
    }

    /// Whether the score is a probability by labels known then.
    pub fn is_calibrated(&self) -> bool {
        self.calibration("is_calibrated").and_then(Value::as_bool) == Some(true)
    }

    pub fn score_is(&self) -> &'static str {
        match (self.score(), self.is_calibrated()) {
            (None, _) => "",
            (Some(_), true) => "calibrated",
            (Some(_), false) => "uncalibrated",
        }
    }

    /// On which labels the score is calibrated, or why not.
    pub fn basis(&self) -> Option<&str> {
        self.calibration("basis").and_then(Value::as_str).filter(|basis| !basis.is_empty())
    }

    /// Weight of the evidence, from 0 to 1.
    pub fn evidence(&self) -> Option<f64> {
        self.calibration("evidence")?.as_f64()
    }

    pub fn confidence(&self) -> Option<f64> {
        self.result()?.get("confidence_score")?.as_f64()
    }

    fn calibration(&self, field: &str) -> Option<&Value> {
        self.result()?.get("calibration")?.get(field)
    }

    /// The first recommendation.
    pub fn action(&self) -> Option<&str> {
        self.recommendations().first().and_then(|advice| text(advice, "action"))
    }

    pub fn recommendations(&self) -> &[Value] {
        self.list("recommendations")
    }

    pub fn findings(&self) -> &[Value] {
        self.list("findings")
    }

    fn list(&self, field: &str) -> &[Value] {
        let list = self.result().and_then(|result| result.get(field)?.as_array());
        list.map_or(&[], Vec::as_slice)
    }

    pub fn session_id(&self) -> &str {
        text(&self.session, "session_id").unwrap_or_default()
    }

    pub fn error(&self) -> Option<&str> {
        text(&self.session, "error").or_else(|| text(self.result()?, "error"))
    }

    /// The conclusion in a sentence.
    pub fn summary(&self) -> Option<&str> {
        text(&self.session, "summary").filter(|_| self.has_succeeded())
    }

    /// How urgent it is, 0 first: to block, to ask, to review, not assessed, released.
    fn urgency(&self) -> u8 {
        let severity = self.severity().map(str::to_ascii_lowercase);
        match (severity.as_deref(), self.action()) {
            (Some("critical"), _) => 0,
            (Some("high"), _) => 1,
            (Some("medium"), _) => 2,
            (Some("low"), Some("release")) => 4,
            _ => 3,
        }
    }

    /// The order of a report: the most urgent first, and of these the highest score.
    pub fn worst_first(&self, other: &Self) -> std::cmp::Ordering {
        let score = |of: &Self| of.score().unwrap_or(-1.0);
        let by_score = || score(other).total_cmp(&score(self));
        let by_id = || self.id.cmp(&other.id);
        self.urgency().cmp(&other.urgency()).then_with(by_score).then_with(by_id)
    }

    pub fn in_short(&self) -> String {
        let id = clean(&self.id);
        if let (Some(score), Some(severity)) = (self.score(), self.severity()) {
            return format!("{id} {} {}", clean(severity), percent(score));
        }
        let error = text(&self.session, "error").map(|error| format!(": {}", clip(error, 120)));
        format!("{id} {}{}", self.judged(), error.unwrap_or_default())
    }

    pub fn status(&self) -> &str {
        text(&self.session, "status").unwrap_or_default()
    }

    fn result(&self) -> Option<&Value> {
        self.session.get("result").filter(|_| self.has_succeeded())
    }

    pub fn severity(&self) -> Option<&str> {
        text(self.result()?, "severity")
    }

    /// The severity, or why there is none.
    pub fn judged(&self) -> &str {
        let without = if self.has_succeeded() { "not assessed" } else { self.status() };
        self.severity().unwrap_or(without)
    }

    fn finding(&self) -> Option<&str> {
        text(self.session.pointer("/result/findings/0")?, "pattern")
    }
}

/// All investigations, in their order, and counts by severity.
pub fn table(colour: bool, done: &[Investigated]) -> Vec<String> {
    let paint = |style: Style, text: &str| {
        if colour { style.style(text).to_string() } else { text.to_owned() }
    };
    let heading = format!(
        "{:<16} {:<9} {:>7}  {:<14} {:<18} SESSION",
        "TRANSACTION", "SEVERITY", "FRAUD", "ACTION", "FINDING"
    );
    let mut lines = vec![paint(Style::new().dimmed(), &heading)];
    for investigated in done {
        let severity = clean(investigated.judged());
        let fraud = investigated.score().map_or_else(|| "-".to_owned(), percent);
        lines.push(format!(
            "{} {} {fraud:>7}  {:<14} {:<18} {}",
            paint(Style::new().cyan(), &format!("{:<16}", clip(&investigated.id, 16))),
            paint(style_of(&severity), &format!("{severity:<9}")),
            clip(&investigated.action().unwrap_or("-").replace('_', " "), 14),
            clip(investigated.finding().unwrap_or("-"), 18),
            investigated.session_id(),
        ));
    }
    lines.push(String::new());
    lines.push(format!("{} investigated: {}", done.len(), counts(done)));
    lines
}

/// Counts by severity, or by status where there is none.
pub fn counts(done: &[Investigated]) -> String {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for investigated in done {
        let severity = clean(investigated.judged());
        *counts.entry(severity).or_default() += 1;
    }
    let counts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    counts.join(", ")
}

fn style_of(severity: &str) -> Style {
    match severity.to_ascii_lowercase().as_str() {
        "critical" | "high" => Style::new().red(),
        "medium" => Style::new().yellow(),
        _ => Style::new(),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str()
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", share.clamp(0.0, 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn investigated(id: &str, status: &str, result: Value) -> Investigated {
        let session = json!({"session_id": format!("s-{id}"), "status": status, "result": result,
            "error": "NotFound: no row"});
        Investigated { id: id.to_owned(), session }
    }

    #[test]
    fn the_worst_come_first_and_the_released_last() {
        let result = |score: f64, severity: &str| {
            let action = if severity == "low" { "release" } else { "block_card" };
            json!({"score": score, "severity": severity, "findings": [{"pattern": "velocity"}],
                "recommendations": [{"action": action}]})
        };
        let mut done = [
            investigated("t1", "FAILED", Value::Null),
            investigated("t2", SUCCEEDED, result(0.1, "low")),
            investigated("t3", SUCCEEDED, result(0.9, "critical")),
        ];
        assert_eq!(done[0].in_short(), "t1 FAILED: NotFound: no row");
        assert_eq!(done[1].in_short(), "t2 low 10.0 %");
        done.sort_by(Investigated::worst_first);
        let lines = table(false, &done);
        let starts: Vec<_> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(starts, ["TRANSACTION", "t3", "t1", "t2", "", "3"]);
        assert_eq!(lines[5], "3 investigated: 1 FAILED, 1 critical, 1 low");
    }

    #[test]
    fn what_was_not_assessed_is_said_so_and_has_no_score() {
        let result = json!({"score": null, "severity": null,
            "recommendations": [{"action": "manual_review"}]});
        let session = json!({"status": SUCCEEDED, "result": result, "summary": "Too little."});
        let one = Investigated { id: "t1".to_owned(), session };
        assert_eq!(one.in_short(), "t1 not assessed");
        assert_eq!((one.summary(), one.score_is()), (Some("Too little."), ""));
        assert!(counts(&[one]).contains("1 not assessed"));
    }
}
