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

    pub fn in_short(&self) -> String {
        let id = clean(&self.id);
        if let (Some(score), Some(severity)) = (self.score(), self.severity()) {
            return format!("{id} {} {}", clean(severity), percent(score));
        }
        let error = text(&self.session, "error").map(|error| format!(": {}", clip(error, 120)));
        format!("{id} {}{}", self.status(), error.unwrap_or_default())
    }

    fn status(&self) -> &str {
        text(&self.session, "status").unwrap_or_default()
    }

    fn result(&self) -> Option<&Value> {
        self.session.get("result").filter(|_| self.has_succeeded())
    }

    fn severity(&self) -> Option<&str> {
        text(self.result()?, "severity")
    }

    fn finding(&self) -> Option<&str> {
        text(self.session.pointer("/result/findings/0")?, "pattern")
    }
}

/// All investigations, most likely frauds first, and counts by severity.
pub fn table(colour: bool, done: &mut [Investigated]) -> Vec<String> {
    done.sort_by(|a, b| {
        let (x, y) = (a.score().unwrap_or(-1.0), b.score().unwrap_or(-1.0));
        y.total_cmp(&x).then_with(|| a.id.cmp(&b.id))
    });
    let paint = |style: Style, text: &str| {
        if colour { style.style(text).to_string() } else { text.to_owned() }
    };
    let heading = format!(
        "{:<16} {:<9} {:>7}  {:<18} SESSION",
        "TRANSACTION", "SEVERITY", "FRAUD", "FINDING"
    );
    let mut lines = vec![paint(Style::new().dimmed(), &heading)];
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for investigated in done.iter() {
        let severity = clean(investigated.severity().unwrap_or(investigated.status()));
        let fraud = investigated.score().map_or_else(|| "-".to_owned(), percent);
        lines.push(format!(
            "{} {} {fraud:>7}  {:<18} {}",
            paint(Style::new().cyan(), &format!("{:<16}", clip(&investigated.id, 16))),
            paint(style_of(&severity), &format!("{severity:<9}")),
            clip(investigated.finding().unwrap_or("-"), 18),
            text(&investigated.session, "session_id").unwrap_or_default(),
        ));
        *counts.entry(severity).or_default() += 1;
    }
    let counts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    lines.push(String::new());
    lines.push(format!("{} investigated: {}", done.len(), counts.join(", ")));
    lines
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

fn percent(share: f64) -> String {
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
    fn likely_frauds_come_first_and_failures_last() {
        let result = |score: f64, severity: &str| json!({"score": score, "severity": severity, "findings": [{"pattern": "velocity"}]});
        let mut done = [
            investigated("t1", "FAILED", Value::Null),
            investigated("t2", SUCCEEDED, result(0.1, "low")),
            investigated("t3", SUCCEEDED, result(0.9, "critical")),
        ];
        assert_eq!(done[0].in_short(), "t1 FAILED: NotFound: no row");
        assert_eq!(done[1].in_short(), "t2 low 10.0 %");
        let lines = table(false, &mut done);
        let starts: Vec<_> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(starts, ["TRANSACTION", "t3", "t2", "t1", "", "3"]);
        assert_eq!(lines[5], "3 investigated: 1 FAILED, 1 critical, 1 low");
    }
}
