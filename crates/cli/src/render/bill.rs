//! A session's AWS usage and its cost.

use std::time::Duration;

use workflow::cost::{Counters, prices};

use super::Look;
use super::brief::{self, number};
use super::ink::Ink;

/// The counted usage with prices; without the workflow if its history is unavailable.
pub fn bill(look: Look, journal: Counters, workflow: Option<Counters>) -> Vec<String> {
    let counted = journal + workflow.unwrap_or_default();
    let bill = counted.bill();
    let mut rows = vec![
        (
            "journal",
            format!(
                "{} write and {} read units",
                number(counted.write_units),
                number(counted.read_units)
            ),
            bill.journal,
        ),
        (
            "runtime",
            format!(
                "{}, {} of it CPU time",
                spent(counted.runtime_s * 1_000),
                spent(counted.processor_ms)
            ),
            bill.runtime,
        ),
    ];
    if workflow.is_some() {
        let steps = format!(
            "{} transitions, {} polls, {} history events",
            number(counted.transitions),
            number(counted.polls),
            number(counted.history_events)
        );
        rows.push(("workflow", steps, bill.workflow + bill.event_bus));
        let calls = format!("{} calls, {}", number(counted.calls), spent(counted.call_ms));
        rows.push(("functions", calls, bill.functions));
    }
    let title = format!("In an AWS account  us-east-1, prices of {}", prices::AS_OF);
    let mut lines = vec![look.ink(Ink::Strong, &title)];
    for (what, asked, dollars) in rows {
        let what = look.ink(Ink::Name, &format!("{what:<10}"));
        lines.push(format!("  {what} ${dollars:<9.6}  {asked}"));
    }
    lines.push(match workflow {
        Some(_) => format!("  {:<10} ${:<9.6}  without the model", "total", bill.total()),
        None => "  the workflow is not counted: its execution history is unavailable".to_owned(),
    });
    lines
}

fn spent(ms: u64) -> String {
    brief::duration(Duration::from_millis(ms))
}
