//! Spans of a runner's effects, one for each attempt. Their ids derive from the session's steps.

use std::collections::BTreeMap;

use graph::agent::{Agent, SpanNames};
use graph::next::{Request, Work};
use graph::outcome::Brought;
use journal::clock::Stamp;
use journal::step::{EffectRef, Step};
use serde_json::Value;
use telemetry::attribute;
use telemetry::context::TraceParent;
use telemetry::export;
use telemetry::span::{self, Span};
use workflow::trace::Trace;
use workflow::trace::effects::{self, Attempt, Effects, How};

use crate::measure::word;

/// The spans of one run. Empty, at no cost, when no exporter is configured.
#[derive(Debug, Default)]
pub struct Spans(Option<Active>);

#[derive(Debug)]
struct Active {
    trace: Trace,
    epoch: u32,
    agent: &'static str,
    names: SpanNames,
    effects: Effects,
    under_way: BTreeMap<(String, u32), UnderWay>,
}

/// An attempt that has begun, with the attributes that the journal does not record.
#[derive(Debug)]
struct UnderWay {
    effect: EffectRef,
    start: Stamp,
    name: Option<String>,
    attributes: Vec<(&'static str, span::Value)>,
    failed: Option<&'static str>,
}

impl Spans {
    /// The spans of a run that continues after these steps, its own claim the last.
    pub fn of(trace: Trace, agent: &Agent, steps: &[Step<Value>]) -> Self {
        if !export::is_on() {
            return Self::default();
        }
        let mut effects = Effects::default();
        for step in steps {
            effects.fold(step);
        }
        Self(Some(Active {
            trace,
            epoch: steps.last().map_or(1, |step| step.epoch),
            agent: agent.name(),
            names: agent.span_names(),
            effects,
            under_way: BTreeMap::new(),
        }))
    }

    /// Notes that an effect begins. Returns the parent of the spans that it causes.
    pub fn begin(&mut self, request: &Request, now: Stamp) -> Option<TraceParent> {
        let active = self.0.as_mut()?;
        let number = active.effects.next(&request.effect);
        active.under_way.insert(key(&request.effect), active.describe(request, now));
        Some(effects::context(&active.trace, &request.effect, number))
    }

    /// Notes an effect's outcome, which is not journaled yet.
    pub fn learn(&mut self, effect: &EffectRef, brought: &Brought) {
        let Some(under_way) = self.0.as_mut().and_then(|a| a.under_way.get_mut(&key(effect)))
        else {
            return;
        };
        match brought {
            Brought::Reply(reply) => {
                let reason = if reply.calls.is_empty() { "stop" } else { "tool_calls" };
                let reasons = span::Value::Texts(vec![reason.to_owned()]);
                under_way.attributes.push((attribute::FINISH_REASONS, reasons));
            }
            Brought::Error(_) => under_way.failed = Some("tool_error"),
            Brought::Failure(failure) => under_way.failed = Some(word(failure.kind)),
            Brought::Ok(_) | Brought::Woke {} => {}
        }
    }

    /// Folds a journaled step. Exports the spans of the attempts that it closes, with these attributes, if
    /// this runner wrote it.
    pub fn fold(&mut self, step: &Step<Value>, is_own: bool, attributes: &[(&'static str, Value)]) {
        let Some(active) = &mut self.0 else { return };
        for attempt in active.effects.fold(step) {
            let under_way = active.under_way.remove(&key(&attempt.effect));
            if is_own && !attempt.how.is_question() {
                let mut span = active.span(&attempt, under_way);
                span.attributes.extend(attributes.iter().filter_map(attribute_of));
                export::record(span);
            }
        }
    }

    /// Exports the spans of the attempts that the session's end left open: the journal will never close
    /// them, and they may be the parents of other spans.
    pub fn abandon(&mut self, end: &Step<Value>) {
        let Some(active) = &mut self.0 else { return };
        for under_way in std::mem::take(&mut active.under_way).into_values() {
            let attempt = Attempt {
                number: active.effects.next(&under_way.effect),
                effect: under_way.effect.clone(),
                start: under_way.start,
                end: end.stamp,
                epoch: active.epoch,
                seq: end.seq,
                how: How::Lost,
            };
            export::record(active.span(&attempt, Some(under_way)));
        }
    }
}

/// The log span of a session: adds its id and trace id to every log line.
pub fn log_span(trace: &Trace) -> tracing::Span {
    // Level error: no filter removes it.
    tracing::error_span!("session", session_id = %trace.session_id(), trace_id = trace.id())
}

/// Flushes the spans, within a time limit, before the run's end is reported. Components that learn of
/// the end then need not create the spans again.
pub async fn flush() {
    if export::is_on() {
        let _ = tokio::task::spawn_blocking(export::flush).await;
    }
}

impl Active {
    fn describe(&self, request: &Request, start: Stamp) -> UnderWay {
        let mut attributes = vec![(attribute::AGENT, self.agent.into())];
        let own = self.names.node(&request.effect.node).map(str::to_owned);
        let name = match &request.work {
            Work::Model { model, .. } => {
                let (provider, model) = provider(model);
                attributes.push((attribute::PROVIDER, provider.into()));
                attributes.push((attribute::SYSTEM, provider.into()));
                attributes.push((attribute::REQUEST_MODEL, model.into()));
                own.unwrap_or_else(|| format!("{} {model}", attribute::CHAT))
            }
            Work::Policy { .. } => {
                attributes.push((attribute::PROVIDER, POLICY.into()));
                attributes.push((attribute::SYSTEM, POLICY.into()));
                attributes.push((attribute::REQUEST_MODEL, "policy".into()));
                own.unwrap_or_else(|| format!("{} policy", attribute::CHAT))
            }
            Work::Local { call, .. } => own.unwrap_or_else(|| format!("step {}", call.tool)),
            Work::Sleep { .. } => own.unwrap_or_else(|| "sleep".to_owned()),
            Work::Probe(probe) => own.unwrap_or_else(|| probe.as_str().to_owned()),
            Work::Tool { call, .. } => {
                attributes.push((attribute::TOOL, call.tool.as_str().into()));
                if let Some(server) = &call.server {
                    attributes.push((attribute::MCP_SERVER, server.as_str().into()));
                }
                match self.names.tool {
                    Some(prefix) => format!("{prefix}{}", call.tool),
                    None => {
                        own.unwrap_or_else(|| format!("{} {}", attribute::EXECUTE_TOOL, call.tool))
                    }
                }
            }
        };
        let effect = request.effect.clone();
        UnderWay { effect, start, name: Some(name), attributes, failed: None }
    }

    fn span(&self, attempt: &Attempt, under_way: Option<UnderWay>) -> Span {
        let mut span = effects::span(&self.trace, attempt);
        span.scope = self.names.tracer;
        let Some(under_way) = under_way else { return span };
        if let Some(name) = under_way.name {
            span.name = name;
        }
        span.attributes.extend(under_way.attributes);
        match under_way.failed {
            Some(why) => span.failing(why),
            None => span,
        }
    }
}

/// The provider of the agents' own rules.
const POLICY: &str = "daybook.policy";

/// The provider in OpenTelemetry's spelling, and the name without it. Hides a transcript's path.
fn provider(model: &str) -> (&'static str, &str) {
    match model.split_once(':') {
        Some(("bedrock", id)) => ("aws.bedrock", id),
        Some(("openai", name)) => ("openai", name),
        _ => ("daybook.transcript", "transcript"),
    }
}

fn attribute_of((name, value): &(&'static str, Value)) -> Option<(&'static str, span::Value)> {
    let value = match value {
        Value::String(text) => text.as_str().into(),
        Value::Number(number) => span::Value::Number(number.as_i64()?),
        Value::Bool(flag) => span::Value::Flag(*flag),
        _ => return None,
    };
    Some((name, value))
}

fn key(effect: &EffectRef) -> (String, u32) {
    (effect.digest.as_str().to_owned(), effect.call)
}
