//! Usage of a session: time, tokens and cost, by model and tool.

use graph::effect::{Author, ToolCall};
use graph::outcome::Brought;
use journal::step::{EffectKind, Step, StepBody, Usage};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use crate::text::clip;

/// Characters of a model's or tool's name.
const NAME_CHARS: usize = 60;

/// Maximum number of per-step entries; the sums include all steps.
pub const ENTRIES_MAX: usize = 200;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ledger {
    /// Models and tools, in the order of their first call.
    pub accounts: Vec<Account>,
    /// Steps that used tokens, in sequence, at most [`ENTRIES_MAX`].
    pub entries: Vec<Entry>,
    pub total: Metrics,
}

/// Usage of one model or tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Account {
    /// `model`, `policy`, `tool` or `sleep`.
    pub kind: &'static str,
    pub name: String,
    pub spent: Metrics,
}

/// Usage of one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    pub seq: u32,
    pub node: String,
    pub name: String,
    pub spent: Metrics,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    pub calls: u32,
    /// Calls without an outcome, or with an error.
    pub failed: u32,
    /// Sum of the durations of all calls, in milliseconds.
    pub ms: u64,
    /// Input tokens.
    pub input: u64,
    pub output: u64,
    /// Input tokens that the model read from its cache.
    pub cache_read: u64,
    /// Tokens of calls whose outcome was lost, counted at their maximum.
    pub unsettled: u64,
    /// Tokens without a known price.
    pub unpriced: u64,
    /// Millionths of a dollar.
    pub micro_usd: u64,
}

impl Metrics {
    fn of(usage: Usage, ms: u64, failed: bool) -> Self {
        Self {
            calls: 1,
            failed: u32::from(failed),
            ms,
            input: usage.input_tokens.into(),
            output: usage.output_tokens.into(),
            cache_read: usage.cache_read_tokens.into(),
            unsettled: usage.unsettled_tokens.into(),
            unpriced: usage.unpriced_tokens.into(),
            micro_usd: usage.micro_usd.into(),
        }
    }

    fn add(&mut self, more: Self) {
        self.calls += more.calls;
        self.failed += more.failed;
        self.ms += more.ms;
        self.input += more.input;
        self.output += more.output;
        self.cache_read += more.cache_read;
        self.unsettled += more.unsettled;
        self.unpriced += more.unpriced;
        self.micro_usd += more.micro_usd;
    }

    fn tokens(&self) -> u64 {
        self.input + self.output + self.unsettled
    }
}

impl Ledger {
    /// Sums up these steps, in sequence; each comes with its tool call, if it has one.
    pub fn of<'a>(
        steps: impl IntoIterator<Item = (&'a Step<Value>, Option<&'a ToolCall>)>,
    ) -> Self {
        let mut ledger = Self::default();
        for (step, call) in steps {
            let StepBody::Outcome { effect, started_at, usage, payload, .. } = &step.body else {
                continue;
            };
            let brought = Brought::deserialize(payload).ok();
            let failed = matches!(brought, Some(Brought::Error(_) | Brought::Failure(_)));
            let ms = u64::try_from(step.stamp.since(*started_at).as_millis()).unwrap_or(u64::MAX);
            let spent = Metrics::of(*usage, ms, failed);
            let (kind, name) = asked(effect.kind, brought.as_ref(), call);
            ledger.enter(kind, clip(&name, NAME_CHARS), spent);
            if spent.tokens() > 0 && ledger.entries.len() < ENTRIES_MAX {
                let (node, name) = (clip(&effect.node, NAME_CHARS), clip(&name, NAME_CHARS));
                ledger.entries.push(Entry { seq: step.seq, node, name, spent });
            }
        }
        ledger
    }

    fn enter(&mut self, kind: &'static str, name: String, spent: Metrics) {
        self.total.add(spent);
        match self.accounts.iter_mut().find(|known| known.kind == kind && known.name == name) {
            Some(account) => account.spent.add(spent),
            None => self.accounts.push(Account { kind, name, spent }),
        }
    }
}

/// The kind and name of an outcome's source.
fn asked(
    effect: EffectKind,
    brought: Option<&Brought>,
    call: Option<&ToolCall>,
) -> (&'static str, String) {
    match (effect, brought, call) {
        (EffectKind::Chat, Some(Brought::Reply(reply)), _) => match &reply.by {
            Author::Policy => ("policy", "policy".to_owned()),
            Author::Model(model) => ("model", model.clone()),
        },
        (EffectKind::Chat, Some(Brought::Failure(failure)), _) => {
            ("model", failure.model.clone().unwrap_or_else(|| "a model".to_owned()))
        }
        (EffectKind::Chat, ..) => ("model", "a model".to_owned()),
        (EffectKind::Sleep, ..) => ("sleep", "sleep".to_owned()),
        (_, _, Some(call)) => ("tool", call.tool.clone()),
        _ => ("tool", "a tool".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{outcome, step};

    #[test]
    fn usage_is_counted_once_by_model_and_tool() {
        let reply = |by: Value| json!({"reply": {"text": "x", "by": by}});
        let failure = json!({"failure": {"kind": "not_sent", "category": "bedrock_transient", "message": "busy", "model": "claude"}});
        let usage = |input_tokens, unsettled_tokens, micro_usd| Usage {
            input_tokens,
            unsettled_tokens,
            micro_usd,
            ..Usage::default()
        };
        let chat = |from, used, payload| outcome("plan", EffectKind::Chat, from, used, payload);
        let none = Usage::default();
        let steps = [
            step(100, 1, chat(0, usage(900, 0, 2_700), reply(json!({"model": "claude"})))),
            step(300, 2, chat(100, usage(0, 64, 0), failure)),
            step(301, 3, chat(300, none, reply(json!("policy")))),
            step(350, 4, outcome("do", EffectKind::Tools, 310, none, json!({"ok": {}}))),
            step(360, 5, outcome("do", EffectKind::Tools, 310, none, json!({"error": "no"}))),
        ];
        let call = ToolCall::built_in("look", json!({}));
        let with_calls = steps.iter().map(|step| (step, (step.seq > 3).then_some(&call)));
        let ledger = Ledger::of(with_calls);
        let lines: Vec<_> = ledger
            .accounts
            .iter()
            .map(|Account { kind, name, spent: s }| {
                let tokens = s.tokens();
                format!(
                    "{kind} {name}: {}, {} failed, {} ms, {tokens} tokens, {}",
                    s.calls, s.failed, s.ms, s.micro_usd
                )
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        model claude: 2, 1 failed, 300 ms, 964 tokens, 2700
        policy policy: 1, 0 failed, 1 ms, 0 tokens, 0
        tool look: 2, 1 failed, 90 ms, 0 tokens, 0
        ");
        assert_eq!(ledger.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((ledger.total.calls, ledger.total.tokens(), ledger.total.ms), (5, 964, 391));
    }
}
