//! A runner's metrics and log lines. Labels come from this file, from agents' profiles, and from the lists of tools,
//! of which it takes a bounded number; never from models or input.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use graph::agent::Agent;
use graph::effect::CATALOGUE;
use graph::next::{Request, Work};
use graph::outcome::{Brought, FailureKind};
use graph::profile::{Metric, MetricKind, Observed, Sample};
use journal::step::Usage;
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use workflow::metric;

/// The target of the lines that agents log, so that a program can write them bare.
pub const LOG_TARGET: &str = "agent::summary";

/// Describes the metrics of these agents to the program's recorder.
pub fn describe(agents: &[Agent]) {
    let versions = agents.iter().flat_map(Agent::versions);
    for metric in versions.flat_map(|agent| agent.profile().metrics) {
        let Metric { name, kind, description } = **metric;
        match kind {
            MetricKind::Counter => describe_counter!(name, Unit::Count, description),
            MetricKind::Seconds => describe_histogram!(name, Unit::Seconds, description),
            MetricKind::Histogram(_) => describe_histogram!(name, Unit::Count, description),
        }
    }
}

/// The upper bounds of the buckets of these agents' metrics that do not measure seconds.
pub fn buckets(agents: &[Agent]) -> Vec<(&'static str, &'static [f64])> {
    let versions = agents.iter().flat_map(Agent::versions);
    let metrics = versions.flat_map(|agent| agent.profile().metrics);
    let bounds = metrics.filter_map(|metric| match metric.kind {
        MetricKind::Histogram(bounds) => Some((metric.name, bounds)),
        MetricKind::Counter | MetricKind::Seconds => None,
    });
    bounds.collect()
}

/// Counts and logs what an agent observed of a step.
pub fn observed(observed: &Observed) {
    for Sample { metric, labels, value } in &observed.samples {
        match metric.kind {
            MetricKind::Counter => counter!(metric.name, labels).increment(whole(*value)),
            MetricKind::Seconds | MetricKind::Histogram(_) => {
                histogram!(metric.name, labels).record(*value);
            }
        }
    }
    for line in &observed.log {
        tracing::info!(target: LOG_TARGET, "{line}");
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
fn whole(value: f64) -> u64 {
    value as u64
}

/// Most tools with a label of their own; further ones share [`OTHER_TOOL`].
const TOOL_LABELS_MAX: usize = 256;

/// Longest name of a tool that is a label, in bytes.
const TOOL_LABEL_BYTES_MAX: usize = 64;

/// The label of a tool that no server of this process offers, such as one that a model made up.
const OTHER_TOOL: &str = "other";

/// The tools that servers have offered.
static TOOLS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Notes a tool of a server's list, so that its calls have a label of their own.
pub fn offered(tool: &str) {
    let mut tools = TOOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_short = tool.len() <= TOOL_LABEL_BYTES_MAX;
    if is_short && tools.len() < TOOL_LABELS_MAX && !tools.contains(tool) {
        tools.insert(tool.to_owned());
    }
}

fn tool_label(tool: &str) -> String {
    if tool == CATALOGUE {
        return CATALOGUE.to_owned();
    }
    let tools = TOOLS.lock().unwrap_or_else(PoisonError::into_inner);
    tools.get(tool).map_or_else(|| OTHER_TOOL.to_owned(), Clone::clone)
}

/// Counts a performed effect of an agent.
pub fn performed(agent: &'static str, request: &Request, brought: &Brought, elapsed: Duration) {
    let outcome = outcome(brought);
    let by = match &request.work {
        Work::Tool { call, .. } => {
            let tool = tool_label(&call.tool);
            let of = tool.clone();
            counter!(metric::TOOL_CALLS, "agent" => agent, "tool" => of, "outcome" => outcome)
                .increment(1);
            histogram!(metric::TOOL_SECONDS, "tool" => tool, "outcome" => outcome).record(elapsed);
            retried("tool", request.attempt);
            return;
        }
        Work::Local { .. } | Work::Sleep { .. } | Work::Probe(_) => return,
        Work::Policy { .. } => "policy",
        Work::Model { model, .. } => provider(model),
    };
    counter!(metric::MODEL_CALLS, "agent" => agent, "by" => by, "outcome" => outcome).increment(1);
    histogram!(metric::MODEL_SECONDS, "by" => by).record(elapsed);
    retried("chat", request.attempt);
}

/// Counts the usage of a journaled outcome of an agent.
pub fn paid(agent: &'static str, usage: Usage) {
    for (direction, tokens) in [
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("unsettled", usage.unsettled_tokens),
    ] {
        if tokens > 0 {
            counter!(metric::TOKENS, "agent" => agent, "direction" => direction)
                .increment(tokens.into());
        }
    }
    if usage.micro_usd > 0 {
        counter!(metric::MICRO_USD, "agent" => agent).increment(usage.micro_usd.into());
    }
}

/// Records the latency of an append.
pub fn appended(elapsed: Duration) {
    histogram!(metric::APPEND_SECONDS).record(elapsed);
}

fn retried(effect: &'static str, attempt: u32) {
    if attempt > 1 {
        counter!(metric::RETRIES, "effect" => effect).increment(1);
    }
}

fn provider(model: &str) -> &'static str {
    match model.split_once(':') {
        Some(("bedrock", _)) => "bedrock",
        Some(("openai", _)) => "openai",
        _ => "transcript",
    }
}

fn outcome(brought: &Brought) -> &'static str {
    match brought {
        Brought::Reply(_) | Brought::Ok(_) | Brought::Woke {} => "ok",
        Brought::Error(_) => "error",
        Brought::Failure(failure) => word(failure.kind),
    }
}

/// A failure's kind, as a label.
pub fn word(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::NotSent => "not_sent",
        FailureKind::Refused => "refused",
        FailureKind::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use metrics::{
        Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
        SharedString,
    };

    use super::*;

    static THINGS: Metric =
        Metric { name: "things", kind: MetricKind::Counter, description: "Things." };
    static SIZE: Metric =
        Metric { name: "size", kind: MetricKind::Histogram(&[1.0, 2.0]), description: "Sizes." };

    /// A recorder that keeps what it gets, by name and labels.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    struct Line(Log, String);

    impl Line {
        fn keep(&self, value: impl std::fmt::Display) {
            self.0.0.lock().unwrap().push(format!("{} {value}", self.1));
        }
    }

    impl CounterFn for Line {
        fn increment(&self, value: u64) {
            self.keep(value);
        }

        fn absolute(&self, value: u64) {
            self.keep(value);
        }
    }

    impl HistogramFn for Line {
        fn record(&self, value: f64) {
            self.keep(value);
        }
    }

    impl Log {
        fn line(&self, key: &Key) -> Arc<Line> {
            let labels: Vec<String> =
                key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            Arc::new(Line(self.clone(), format!("{} {}", key.name(), labels.join(","))))
        }
    }

    impl Recorder for Log {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.line(key))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(self.line(key))
        }
    }

    #[test]
    fn the_labels_of_tools_are_bounded() {
        assert_eq!(tool_label("made_up_by_a_model"), OTHER_TOOL);
        assert_eq!(tool_label(CATALOGUE), CATALOGUE);
        offered("look");
        assert_eq!(tool_label("look"), "look");
        let long = "x".repeat(TOOL_LABEL_BYTES_MAX + 1);
        offered(&long);
        assert_eq!(tool_label(&long), OTHER_TOOL);
        (0..=TOOL_LABELS_MAX).for_each(|n| offered(&format!("tool_{n}")));
        assert_eq!(tool_label(&format!("tool_{TOOL_LABELS_MAX}")), OTHER_TOOL);
        assert_eq!(TOOLS.lock().unwrap().len(), TOOL_LABELS_MAX);
    }

    #[test]
    fn what_an_agent_observes_is_counted() {
        let log = Log::default();
        let labels = vec![("kind", "small".to_owned())];
        let samples = vec![
            Sample { metric: &THINGS, labels, value: 2.0 },
            Sample { metric: &SIZE, labels: vec![], value: 1.5 },
        ];
        metrics::with_local_recorder(&log, || {
            observed(&Observed { samples, ..Observed::default() });
        });
        assert_eq!(*log.0.lock().unwrap(), ["things kind=small 2", "size  1.5"]);
    }
}
