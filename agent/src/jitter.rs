//! Spreads the retries of sessions that a model throttled together.

use graph::next::Request;
use journal::id::SessionId;
use journal::item::Hash;

/// Largest jitter of a model's retry, as a fraction of the pause.
pub const JITTER: f64 = 0.5;

/// A value from 0 to 1 that differs by session, effect and attempt, so that sessions that a model
/// throttled together retry at different times. Not random, so that a simulated run can be repeated.
pub fn share(session: &SessionId, request: &Request) -> f64 {
    let of = format!("{session} {} {}", request.effect.digest, request.attempt);
    let first = Hash::of(of.as_bytes()).as_str().get(..2).map(|hex| u8::from_str_radix(hex, 16));
    f64::from(first.and_then(Result::ok).unwrap_or_default()) / f64::from(u8::MAX)
}

#[cfg(test)]
mod tests {
    use graph::effect::ToolCall;
    use graph::next::{Intent, Work};
    use journal::step::{EffectKind, EffectRef};

    use serde_json::Value;

    use super::*;

    #[test]
    fn sessions_throttled_together_retry_at_different_times() {
        let effect = EffectRef {
            node: "n".to_owned(),
            kind: EffectKind::Chat,
            digest: Hash::of(b"same"),
            call: 0,
        };
        let request = Request {
            effect,
            attempt: 2,
            not_before: None,
            work: Work::Tool {
                call: ToolCall::built_in("t", Value::Null),
                intent: Intent::NotNeeded,
                schema: None,
            },
            unsettled_tokens: 0,
        };
        let shares: Vec<f64> = (0..100).map(|_| share(&SessionId::fresh(), &request)).collect();
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
        let early = shares.iter().filter(|share| **share < 0.5).count();
        assert!((10..=90).contains(&early), "{shares:?}");
    }
}
