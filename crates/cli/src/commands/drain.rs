//! `drain`: stops the local stack when nothing is at work any more.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::resolve::Context;

/// How long a drained stack may take to stop: effects under way get ten seconds to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// Pause between two looks whether it has stopped.
const LOOK: Duration = Duration::from_millis(100);

/// The progress, as the stack tells it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Progress {
    draining: bool,
    ended: bool,
    at_work: usize,
    queued: usize,
    seconds_left: Option<u64>,
    /// Some of the sessions at work.
    first: Vec<String>,
}

/// Drains the stack, and waits until it has stopped.
///
/// # Errors
/// When nothing listens, or the stack does not stop.
pub async fn drain(context: &Context, within: Duration) -> Result<Exit, Failure> {
    let endpoint = Endpoint::new(context)?;
    let body = json!({ "within_s": within.as_secs() });
    let begun = serde_json::from_value(endpoint.post_to("/api/drain", &body).await?)?;
    let last = tokio::time::timeout(within + STOP_TIMEOUT, stopped(&endpoint, begun)).await;
    let Ok(last) = last else {
        let problem =
            format!("the stack at {} was drained, but it does not stop", endpoint.address);
        return Err(Failure::unknown(problem)
            .hint("end it with Ctrl-C; `daybook doctor` says what is wrong"));
    };
    if context.json {
        output::json(&json!({
            "type": "drained", "at_work": last.at_work, "queued": last.queued, "first": last.first,
        }))?;
    }
    output::say(&match last.at_work {
        0 => "drained; the stack has stopped".to_owned(),
        left => format!(
            "the time limit came first: the stack has stopped with {left} sessions at work, which go on at its next start"
        ),
    });
    Ok(Exit::Succeeded)
}

/// Shows the progress until the stack has stopped. Returns the last one.
async fn stopped(endpoint: &Endpoint, begun: Progress) -> Progress {
    let mut last = begun;
    show(&last);
    loop {
        match endpoint.get::<Progress>("/api/drain").await {
            Ok(Some(progress)) if progress.draining => {
                if (progress.at_work, progress.queued) != (last.at_work, last.queued) {
                    show(&progress);
                }
                last = progress;
            }
            // It has stopped, or another one has started.
            Ok(_) => return last,
            // Its answer was cut off by the stop.
            Err(_) => {}
        }
        if last.ended {
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn show(progress: &Progress) {
    let Progress { at_work, queued, seconds_left, first, .. } = progress;
    let left = seconds_left.map(|left| format!("; {left} s left")).unwrap_or_default();
    let named = if first.is_empty() { String::new() } else { format!(" ({})", first.join(", ")) };
    output::say(&format!("draining: {at_work} sessions at work{named}, {queued} queued{left}"));
}
