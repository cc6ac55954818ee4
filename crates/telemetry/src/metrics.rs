//! Whether metrics are exported, and the names that they have for Prometheus. Code records metrics with the facade
//! `metrics`, independent of the exporter.

use std::sync::atomic::{AtomicBool, Ordering};

/// Prefix of our metrics on the page.
const PREFIX: &str = "daybook_";

/// The kind of a metric, as far as its name on the page depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only increases.
    Counter,
    /// A duration, a size or a state.
    Other,
}

/// The name of a metric on Prometheus' page: `SessionsEnded` becomes `daybook_sessions_ended_total`. A name without
/// capitals is already Prometheus' own and stays.
///
/// Source of the form: Prometheus, "Metric and label naming".
pub fn on_the_page(name: &str, kind: Kind) -> String {
    if !name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return name.to_owned();
    }
    let mut page = PREFIX.to_owned();
    for (index, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && index > 0 {
            page.push('_');
        }
        page.push(letter.to_ascii_lowercase());
    }
    if kind == Kind::Counter {
        page.push_str("_total");
    }
    page
}

static ON: AtomicBool = AtomicBool::new(false);

/// Whether metrics are exported.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Marks metrics as exported by a recorder of the program, such as one that writes log lines for CloudWatch.
pub fn set_on() {
    ON.store(true, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_names_follow_the_prometheus_convention() {
        for (name, kind, expected) in [
            ("SessionsEnded", Kind::Counter, "daybook_sessions_ended_total"),
            ("SessionSeconds", Kind::Other, "daybook_session_seconds"),
            ("SpentMicroUsd", Kind::Counter, "daybook_spent_micro_usd_total"),
            ("ops_agent_steps", Kind::Other, "ops_agent_steps"),
            ("ops_agent_decisions_total", Kind::Counter, "ops_agent_decisions_total"),
        ] {
            assert_eq!(on_the_page(name, kind), expected);
        }
    }
}
