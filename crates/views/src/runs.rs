//! The runs of a session: one per claim, with its runner, its duration and how it ended.

use journal::clock::Stamp;
use journal::event::{About, Event, EventStatus};
use journal::step::{Ending, Step, StepBody};
use serde::Serialize;
use serde_json::Value;

use crate::text::clip;

/// Characters of a runner's name.
const RUNNER_CHARS: usize = 60;

/// A claim, and the run that it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Run {
    pub epoch: u32,
    /// The claim that it superseded; 0 for the first.
    pub supersedes: u32,
    pub runner: String,
    /// Time of the claim, in milliseconds since the session started.
    pub from_ms: u64,
    /// Time of its last record, or when the poller declared it lost; `None` while it runs.
    pub to_ms: Option<u64>,
    /// The number of steps that it wrote.
    pub steps: usize,
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Running, according to the journal.
    AtWork,
    /// It stopped responding, and the poller declared it lost.
    Lost,
    /// Paused for input or for a time.
    Suspended,
    Completed,
    /// It ended the session without a result.
    Failed,
    /// Another claim replaced it.
    Superseded,
    /// Another writer ended the session.
    Closed,
}

/// The runs of a session, in the order of their claims. `began` is the session's start.
pub fn runs(events: &[Event], steps: &[Step<Value>], began: Stamp, is_open: bool) -> Vec<Run> {
    let since = |at: Stamp| u64::try_from(at.since(began).as_millis()).unwrap_or(u64::MAX);
    let claims = steps.iter().filter_map(|step| match step.body {
        StepBody::Claim { supersedes, .. } => Some((step, supersedes)),
        _ => None,
    });
    let run = |(claim, supersedes): (&Step<Value>, u32)| {
        let is_own = |step: &&Step<Value>| step.epoch == claim.epoch && step.runner == claim.runner;
        let last = steps.iter().rfind(is_own).unwrap_or(claim);
        let lost = events.iter().find(|event| {
            event.status == EventStatus::AgentLost && event.about == About::Epoch(claim.epoch)
        });
        let is_superseded = steps.iter().any(|step| {
            matches!(step.body, StepBody::Claim { supersedes, .. } if supersedes == claim.epoch)
        });
        let end = match (&last.body, lost) {
            (StepBody::End { ending: Ending::Completed, .. }, _) => End::Completed,
            (StepBody::End { .. }, _) => End::Failed,
            (_, Some(_)) => End::Lost,
            (StepBody::Ask { .. }, _) => End::Suspended,
            _ if is_superseded => End::Superseded,
            _ if is_open => End::AtWork,
            _ => End::Closed,
        };
        let to = lost.map_or(last.stamp, |event| event.stamp);
        Run {
            epoch: claim.epoch,
            supersedes,
            runner: clip(claim.runner.as_str(), RUNNER_CHARS),
            from_ms: since(claim.stamp),
            to_ms: (end != End::AtWork).then(|| since(to)),
            steps: steps.iter().filter(is_own).count(),
            end,
        }
    };
    claims.map(run).collect()
}

#[cfg(test)]
mod tests {
    use journal::event::Writer;
    use journal::step::{EffectKind, Usage};
    use serde_json::json;

    use super::*;
    use crate::testing::{at, by, claim, end, event, outcome};

    #[test]
    fn each_run_has_its_runner_times_and_end() {
        let mut lost = event(900, EventStatus::AgentLost, Writer::Poller);
        lost.about = About::Epoch(1);
        let ask = StepBody::Ask {
            effect: crate::testing::effect("confirm", EffectKind::Ask, 0),
            expires_at: at(9_999),
            payload: json!({}),
        };
        let learned = outcome("do", EffectKind::Tools, 200, Usage::default(), json!({"ok": 1}));
        let answer = StepBody::Answer { question: 5, principal: None, payload: json!({}) };
        let mut steps = vec![
            by("agent:a", 1, 100, 1, claim(0)),
            by("agent:a", 1, 300, 2, learned),
            by("agent:b", 2, 1_000, 3, claim(1)),
            by("agent:b", 2, 1_200, 4, ask),
            by("person:p", 2, 5_000, 5, answer),
            by("agent:c", 3, 5_100, 6, claim(2)),
        ];
        let lines = |steps: &[Step<Value>], is_open| {
            let line = |run: Run| {
                let to = run.to_ms.map_or("now".to_owned(), |ms| ms.to_string());
                let (epoch, runner, from, count) = (run.epoch, run.runner, run.from_ms, run.steps);
                format!("{epoch} {runner} {from}..{to} {count} steps {:?}", run.end)
            };
            let runs = runs(std::slice::from_ref(&lost), steps, at(0), is_open);
            runs.into_iter().map(line).collect::<Vec<_>>()
        };
        let open = lines(&steps, true);
        assert_eq!(
            open,
            [
                "1 agent:a 100..900 2 steps Lost",
                "2 agent:b 1000..1200 2 steps Suspended",
                "3 agent:c 5100..now 1 steps AtWork",
            ]
        );
        assert_eq!(lines(&steps, false)[2], "3 agent:c 5100..5100 1 steps Closed");
        steps.push(by("agent:c", 3, 5_400, 7, end(Ending::Completed)));
        assert_eq!(lines(&steps, false)[2], "3 agent:c 5100..5400 2 steps Completed");
    }
}
