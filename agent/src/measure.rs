//! What a runner counts. Labels are words of this file: what models and servers say is none.

use std::time::Duration;

use graph::next::{Request, Work};
use graph::outcome::{Brought, FailureKind};
use journal::step::Usage;
use metrics::{counter, histogram};
use workflow::metric;

/// An effect was performed, within this time.
pub fn performed(request: &Request, brought: &Brought, elapsed: Duration) {
    let outcome = outcome(brought);
    let by = match &request.work {
        Work::Tool { .. } => {
            counter!(metric::TOOL_CALLS, "outcome" => outcome).increment(1);
            histogram!(metric::TOOL_SECONDS, "outcome" => outcome).record(elapsed);
            retried("tool", request.attempt);
            return;
        }
        Work::Policy { .. } => "policy",
        Work::Model { model, .. } => provider(model),
    };
    counter!(metric::MODEL_CALLS, "by" => by, "outcome" => outcome).increment(1);
    histogram!(metric::MODEL_SECONDS, "by" => by).record(elapsed);
    retried("chat", request.attempt);
}

/// An outcome that cost this is in the journal.
pub fn paid(usage: Usage) {
    for (direction, tokens) in [
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("unsettled", usage.unsettled_tokens),
    ] {
        if tokens > 0 {
            counter!(metric::TOKENS, "direction" => direction).increment(tokens.into());
        }
    }
    if usage.micro_usd > 0 {
        counter!(metric::MICRO_USD).increment(usage.micro_usd.into());
    }
}

/// A step took this long to be in the journal.
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

/// A failure's kind as labels and spans spell it.
pub fn word(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::NotSent => "not_sent",
        FailureKind::Refused => "refused",
        FailureKind::Unknown => "unknown",
    }
}
