//! Shows the progress of a session's tools, and of long work, on the terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

use journal::id::SessionId;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::endpoint::Endpoint;
use crate::output;
use crate::render::text::clip;

/// Delay before the next attempt to open the stream.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Largest buffered event, in bytes. The stack sends smaller ones.
const EVENT_BYTES_MAX: usize = 64 * 1024;

/// Maximum width of a progress line, in columns.
const COLUMNS: usize = 76;

/// Shows how much of a long piece of work is done, if stderr is a terminal.
pub fn bar(what: &str, done: u64, total: u64, unit: &str) {
    if std::io::stderr().is_terminal() {
        output::passing(&bar_line(what, done, total, unit));
    }
}

/// Such as `copying ████░░░░░░░░░░░░░░░░ 20 % · 200 of 1000 pages`.
fn bar_line(what: &str, done: u64, total: u64, unit: &str) -> String {
    let percent = done.min(total).saturating_mul(100).checked_div(total).unwrap_or(100);
    let filled = usize::try_from(percent / 5).unwrap_or(BAR);
    let (filled, rest) = ("█".repeat(filled), "░".repeat(BAR.saturating_sub(filled)));
    clip(&format!("{what} {filled}{rest} {percent} % · {done} of {total} {unit}"), COLUMNS)
}

/// Shows progress until dropped.
#[derive(Debug)]
pub struct Shown {
    _task: JoinSet<()>,
}

/// Width of a bar, in columns.
const BAR: usize = 20;

/// Shows a session's progress, if stderr is a terminal.
pub fn show(endpoint: &Endpoint, session: &SessionId) -> Option<Shown> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let (endpoint, session) = (endpoint.clone(), session.clone());
    let mut task = JoinSet::new();
    task.spawn(async move {
        loop {
            if let Ok(Some(stream)) = endpoint.progress(&session).await {
                follow(stream).await;
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    });
    Some(Shown { _task: task })
}

async fn follow(mut stream: reqwest::Response) {
    let mut text = String::new();
    while let Ok(Some(bytes)) = stream.chunk().await {
        text.push_str(&String::from_utf8_lossy(&bytes));
        while let Some((event, rest)) = text.split_once("\n\n") {
            if let Some(line) = line(event) {
                output::passing(&line);
            }
            text = rest.to_owned();
        }
        if text.len() > EVENT_BYTES_MAX {
            return;
        }
    }
}

/// Formats a progress event on one line, such as `run_simulation 40 % · 96 of 241 points`.
fn line(event: &str) -> Option<String> {
    let data = event.lines().find_map(|line| line.strip_prefix("data: "))?;
    let event: Value = serde_json::from_str(data).ok()?;
    let done = event["progress"].as_f64()?;
    let much = match event["total"].as_f64().filter(|total| *total > 0.0) {
        Some(total) => format!("{:.0} %", (done / total * 100.0).clamp(0.0, 100.0)),
        None => format!("{done}"),
    };
    let who = event["tool"].as_str().or(event["server"].as_str())?;
    let message = event["message"].as_str().map(|message| format!(" · {message}"));
    Some(clip(&format!("{who} {much}{}", message.unwrap_or_default()), COLUMNS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_exceeds_its_width() {
        for (done, total, expected) in [
            (0, 10, "copying ░░░░░░░░░░░░░░░░░░░░ 0 % · 0 of 10 pages"),
            (5, 10, "copying ██████████░░░░░░░░░░ 50 % · 5 of 10 pages"),
            (12, 10, "copying ████████████████████ 100 % · 12 of 10 pages"),
            (0, 0, "copying ████████████████████ 100 % · 0 of 0 pages"),
        ] {
            assert_eq!(bar_line("copying", done, total, "pages"), expected);
        }
    }

    #[test]
    fn a_progress_line_is_short_and_escaped() {
        let event = |data: &str| format!("event: progress\ndata: {data}");
        for (data, expected) in [
            (
                r#"{"server": "pk-sim", "tool": "run_simulation", "progress": 96, "total": 241, "message": "96 of 241 points"}"#,
                Some("run_simulation 40 % · 96 of 241 points"),
            ),
            (r#"{"server": "s", "tool": null, "progress": 3, "total": null}"#, Some("s 3")),
            (
                r#"{"server": "s", "progress": 9, "total": 3, "message": "\u001b[2J"}"#,
                Some("s 100 % · \\u{1b}[2J"),
            ),
            (r#"{"server": "s"}"#, None),
            ("no json", None),
        ] {
            assert_eq!(line(&event(data)).as_deref(), expected, "{data}");
        }
        assert_eq!(line(": alive"), None);
    }
}
