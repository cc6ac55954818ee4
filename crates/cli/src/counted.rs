//! Counts a session's AWS usage from its journal and its execution histories. Performs no IO.

use std::time::Duration;

use aws_sdk_sfn::types::{HistoryEvent, HistoryEventType};
use journal::event::{Event, EventStatus};
use journal::item::Item;
use journal::step::{Step, StepBody};
use serde_json::Value;
use workflow::cost::{Counters, of_checks, of_heartbeats, of_items};

/// The state that calls the poller.
const CHECK: &str = "CheckStatus";

/// Usage from the journal: its records, and the agent's run time.
pub fn by_journal(records: &[Item], events: &[Event], steps: &[Step<Value>]) -> Counters {
    let running = running(events);
    let runtime = Counters {
        // Billed in whole seconds.
        runtime_s: millis(running).div_ceil(1_000),
        processor_ms: millis(running.saturating_sub(outside(steps))),
        ..Counters::default()
    };
    let sizes = records.iter().map(|item| (item.size_bytes(), item.text_opt("Day").is_some()));
    of_items(sizes) + of_heartbeats(running) + runtime
}

/// Usage from a history: transitions, polls, and function run time.
pub fn by_history(history: &[HistoryEvent]) -> Counters {
    let entered = |event: &HistoryEvent| event.r#type().as_str().ends_with("StateEntered");
    let name = |event: &HistoryEvent| {
        event.state_entered_event_details().map(|details| details.name().to_owned())
    };
    let (mut calls, mut call_ms, mut began) = (0, 0, None);
    for event in history {
        match event.r#type() {
            HistoryEventType::TaskStarted
                if event
                    .task_started_event_details()
                    .is_some_and(|task| task.resource_type() == "lambda") =>
            {
                calls += 1;
                began = Some(event.timestamp());
            }
            HistoryEventType::TaskSucceeded
            | HistoryEventType::TaskFailed
            | HistoryEventType::TaskSubmitted => {
                let since = began.take().and_then(|began| began.to_millis().ok());
                let until = event.timestamp().to_millis().ok();
                let ran = since.zip(until).map_or(0, |(since, until)| until - since);
                call_ms += u64::try_from(ran).unwrap_or(0);
            }
            _ => {}
        }
    }
    let count = |wanted: &dyn Fn(&&HistoryEvent) -> bool| history.iter().filter(wanted).count();
    let polls = count(&|event| entered(event) && name(event).as_deref() == Some(CHECK)) as u64;
    let counted = Counters {
        polls,
        transitions: count(&|event| entered(event)) as u64,
        history_events: history.len() as u64,
        calls,
        call_ms,
        ..Counters::default()
    };
    counted + of_checks(calls)
}

/// Total run time of the agent: from each start of its task to the next event that ends it.
fn running(events: &[Event]) -> Duration {
    use EventStatus as E;
    let (mut sum, mut since) = (Duration::ZERO, None);
    for event in events {
        let begins = event.status == E::AgentEntrypointStarted;
        let ends = event.status.is_verdict()
            || matches!(
                event.status,
                E::AgentBackgroundTaskCompleted
                    | E::AgentBackgroundTaskFailed
                    | E::AgentBackgroundTaskSuspended
                    | E::AgentEntrypointFailed
                    | E::AgentLost
            );
        if begins && since.is_none() {
            since = Some(event.stamp);
        } else if ends && let Some(since) = since.take() {
            sum += event.stamp.since(since);
        }
    }
    sum
}

/// Total time spent waiting for models and tools.
fn outside(steps: &[Step<Value>]) -> Duration {
    let spent = steps.iter().filter_map(|step| match &step.body {
        StepBody::Outcome { started_at, .. } => Some(step.stamp.since(*started_at)),
        _ => None,
    });
    spent.sum()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
