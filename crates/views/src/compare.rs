//! Compares two sessions: common steps, the first difference, durations and tokens.

use graph::effect::{Reply, ToolCall};
use graph::outcome::Brought;
use journal::item::Hash;
use journal::step::{Step, StepBody};
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};

use crate::line::Tone;
use crate::waterfall::Row;

/// Maximum number of steps that are aligned per session; [`Comparison::is_cut`] reports the rest.
pub const STEPS_MAX: usize = 1_000;

/// A step, with the attributes by which it is compared.
#[derive(Clone, Debug)]
pub struct Compared<'a> {
    row: &'a Row,
    /// Kind, node and tool.
    path: String,
    /// Request and outcome.
    content: Value,
    /// The effect's digest, and the index among its parallel calls, which finish in any order.
    call: Option<(&'a Hash, u32)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The steps, those of one kind beside one another.
    pub pairs: Vec<Pair>,
    /// The index of the first pair that is not [`Verdict::Same`].
    pub first_difference: Option<usize>,
    /// Whether both did the same steps in the same order, with any outcomes.
    pub is_same_path: bool,
    /// The number of identical pairs.
    pub same: usize,
    /// Whether steps past [`STEPS_MAX`] were omitted.
    pub is_cut: bool,
}

/// A step of one session, or a step that both have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    pub verdict: Verdict,
    pub a: Option<Cell>,
    pub b: Option<Cell>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Asked the same, and got the same.
    Same,
    /// The same kind, node and tool, with another request or outcome.
    Differs,
    /// Only the first session has it.
    OnlyA,
    /// Only the second session has it.
    OnlyB,
}

/// A step, as one side of a [`Pair`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    pub sk: String,
    pub seq: u32,
    pub name: String,
    pub what: String,
    pub tone: Tone,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// Tokens in, out and unsettled.
    pub tokens: u64,
    /// Dollars.
    pub usd: f64,
}

impl<'a> Compared<'a> {
    /// A step with its row and its tool call.
    pub fn of(row: &'a Row, step: &'a Step<Value>, call: Option<&ToolCall>) -> Self {
        let tool = call.map_or("", |call| &call.tool);
        let path = format!("{} {} {tool}", row.kind, row.name);
        let effect = step.body.effect().map(|effect| (&effect.digest, effect.call));
        Self { row, path, content: content(step, call), call: effect }
    }

    fn is_beside(&self, other: &Self) -> bool {
        matches!((self.call, other.call), (Some((mine, _)), Some((theirs, _))) if mine == theirs)
    }

    fn cell(&self) -> Cell {
        let Row { sk, name, what, tone, from_ms, to_ms, tokens, usd, seq, .. } = self.row;
        Cell {
            sk: sk.clone(),
            seq: seq.unwrap_or_default(),
            name: name.clone(),
            what: what.clone(),
            tone: *tone,
            ms: to_ms - from_ms,
            tokens: *tokens,
            usd: *usd,
        }
    }
}

/// A step's request and outcome, without the ids of calls, which differ in every session.
fn content(step: &Step<Value>, call: Option<&ToolCall>) -> Value {
    let asked = call.map(|call| json!([call.tool, call.arguments]));
    let payload = step.body.payload().unwrap_or(&Value::Null);
    let brought = match (&step.body, Brought::deserialize(payload)) {
        (StepBody::Outcome { .. }, Ok(Brought::Reply(Reply { text, calls, .. }))) => {
            let calls: Vec<_> =
                calls.iter().map(|call| json!([call.tool, call.arguments])).collect();
            json!([text, calls])
        }
        _ => payload.clone(),
    };
    json!([asked, brought])
}

impl Comparison {
    /// Compares the steps of two sessions, each in sequence.
    pub fn of(a: &[Compared<'_>], b: &[Compared<'_>]) -> Self {
        let is_cut = a.len().max(b.len()) > STEPS_MAX;
        let [a, b] = [a, b].map(|steps| in_order_of_calls(&steps[..steps.len().min(STEPS_MAX)]));
        let pairs: Vec<_> = aligned(&a, &b)
            .into_iter()
            .map(|(at_a, at_b)| pair(at_a.map(|at| a[at]), at_b.map(|at| b[at])))
            .collect();
        let is_on_both = |pair: &Pair| matches!(pair.verdict, Verdict::Same | Verdict::Differs);
        Self {
            first_difference: pairs.iter().position(|pair| pair.verdict != Verdict::Same),
            is_same_path: pairs.iter().all(is_on_both),
            same: pairs.iter().filter(|pair| pair.verdict == Verdict::Same).count(),
            is_cut,
            pairs,
        }
    }
}

fn pair(a: Option<&Compared<'_>>, b: Option<&Compared<'_>>) -> Pair {
    let verdict = match (a, b) {
        (Some(a), Some(b)) if a.content == b.content => Verdict::Same,
        (Some(_), Some(_)) => Verdict::Differs,
        (Some(_), None) => Verdict::OnlyA,
        (None, _) => Verdict::OnlyB,
    };
    Pair { verdict, a: a.map(Compared::cell), b: b.map(Compared::cell) }
}

/// The steps, with parallel calls in the order of their requests.
fn in_order_of_calls<'a, 'b>(steps: &'b [Compared<'a>]) -> Vec<&'b Compared<'a>> {
    let mut ordered: Vec<_> = steps.iter().collect();
    for beside in ordered.chunk_by_mut(|a, b| a.is_beside(b)) {
        beside.sort_by_key(|step| step.call.map(|(_, call)| call));
    }
    ordered
}

/// Aligns both on their longest common path; other steps have one side only.
fn aligned(a: &[&Compared<'_>], b: &[&Compared<'_>]) -> Vec<(Option<usize>, Option<usize>)> {
    // common[i][j] is the length of the longest common path of a[i..] and b[j..].
    let wide = b.len() + 1;
    let mut common = vec![0_u32; (a.len() + 1) * wide];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i * wide + j] = if a[i].path == b[j].path {
                common[(i + 1) * wide + j + 1] + 1
            } else {
                common[(i + 1) * wide + j].max(common[i * wide + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < a.len() || j < b.len() {
        let is_pair = i < a.len() && j < b.len() && a[i].path == b[j].path;
        let takes_a =
            j == b.len() || i < a.len() && common[(i + 1) * wide + j] >= common[i * wide + j + 1];
        match (is_pair, takes_a) {
            (true, _) => pairs.push((Some(i), Some(j))),
            (false, true) => pairs.push((Some(i), None)),
            (false, false) => pairs.push((None, Some(j))),
        }
        i += usize::from(is_pair || takes_a);
        j += usize::from(is_pair || !takes_a);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use journal::step::{EffectKind, Ending, Usage};
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{at, claim, end, outcome, step};
    use crate::waterfall::Waterfall;

    type Said<'a> = (&'a str, &'a str, Value);

    /// A session that did this: node, tool, content.
    fn session(said: &[Said<'_>]) -> (Vec<Step<Value>>, Vec<Option<ToolCall>>) {
        let mut steps = vec![step(0, 1, claim(0))];
        let mut calls = vec![None];
        for (seq, (node, tool, content)) in (2_u32..).zip(said) {
            let kind = if tool.is_empty() { EffectKind::Chat } else { EffectKind::Tools };
            let ms = i64::from(seq) * 100;
            let body = outcome(node, kind, ms - 30, Usage::default(), content.clone());
            steps.push(step(ms, seq, body));
            calls.push((!tool.is_empty()).then(|| ToolCall::built_in(tool, json!({}))));
        }
        let seq = u32::try_from(steps.len()).unwrap() + 1;
        steps.push(step(i64::from(seq) * 100, seq, end(Ending::Completed)));
        calls.push(None);
        (steps, calls)
    }

    fn compare(a: &[Said<'_>], b: &[Said<'_>]) -> Comparison {
        let [a, b] = [a, b].map(|said| {
            let (steps, calls) = session(said);
            let with_calls = steps.iter().zip(calls.iter().cloned());
            let waterfall = Waterfall::of(&[], with_calls, false, at(0));
            (steps, calls, waterfall.rows)
        });
        let [a, b] = [&a, &b].map(|(steps, calls, rows)| {
            let each = rows.iter().zip(steps).zip(calls);
            each.map(|((row, step), call)| Compared::of(row, step, call.as_ref()))
                .collect::<Vec<_>>()
        });
        Comparison::of(&a, &b)
    }

    fn reply(id: &str, tool: &str) -> Value {
        json!({"reply": {"calls": [{"id": id, "tool": tool, "arguments": {}}], "by": "policy"}})
    }

    #[test]
    fn sessions_differ_at_another_step_or_outcome() {
        let ok = |n: u32| json!({"ok": n});
        let a = [
            ("plan", "", reply("a-1", "look")),
            ("do", "look", ok(1)),
            ("do", "search", ok(2)),
            ("judge", "", reply("a-2", "end")),
        ];
        let b = [
            ("plan", "", reply("b-1", "look")),
            ("do", "look", ok(7)),
            ("judge", "", reply("b-2", "end")),
            ("do", "retry", ok(3)),
        ];
        let compared = compare(&a, &b);
        let name = |cell: &Option<Cell>| {
            cell.as_ref().map_or("·".to_owned(), |c| format!("#{} {}", c.seq, c.name))
        };
        let lines: Vec<_> = compared
            .pairs
            .iter()
            .map(|pair| format!("{:?}: {} | {}", pair.verdict, name(&pair.a), name(&pair.b)))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        Same: #1 claim | #1 claim
        Same: #2 plan | #2 plan
        Differs: #3 do | #3 do
        OnlyA: #4 do | ·
        Same: #5 judge | #4 judge
        OnlyB: · | #5 do
        Same: #6 end | #6 end
        ");
        assert_eq!(
            (compared.first_difference, compared.is_same_path, compared.same),
            (Some(2), false, 4)
        );
    }

    #[test]
    fn parallel_calls_are_compared_in_request_order() {
        let side = |calls: [u32; 2]| {
            let (mut steps, mut tools) = session(&[
                ("do", "x", json!({"ok": calls[0]})),
                ("do", "x", json!({"ok": calls[1]})),
            ]);
            for (at, call) in (1..).zip(calls) {
                if let StepBody::Outcome { effect, .. } = &mut steps[at].body {
                    effect.call = call;
                }
                tools[at] = Some(ToolCall::built_in(&format!("tool {call}"), json!({})));
            }
            let rows = Waterfall::of(&[], steps.iter().map(|step| (step, None)), false, at(0)).rows;
            (steps, tools, rows)
        };
        let sides = [side([0, 1]), side([1, 0])];
        let [a, b] = [&sides[0], &sides[1]].map(|(steps, calls, rows)| {
            let each = rows.iter().zip(steps).zip(calls);
            each.map(|((row, step), call)| Compared::of(row, step, call.as_ref()))
                .collect::<Vec<_>>()
        });
        assert_eq!(Comparison::of(&a, &b).first_difference, None);
    }

    #[test]
    fn steps_past_the_limit_are_omitted_and_reported() {
        let long = vec![("do", "look", json!({"ok": 1})); STEPS_MAX];
        let compared = compare(&long, &long);
        assert_eq!((compared.pairs.len(), compared.is_cut), (STEPS_MAX, true));
        assert_eq!(compared.first_difference, None);
    }

    proptest! {
        #[test]
        fn every_step_of_both_sessions_appears_once_in_order(
            a in prop::collection::vec(0..3_usize, 0..12),
            b in prop::collection::vec(0..3_usize, 0..12),
        ) {
            let said = |path: &[usize]| -> Vec<Said<'static>> {
                path.iter().map(|at| ("do", ["x", "y", "z"][*at], json!({"ok": at}))).collect()
            };
            let compared = compare(&said(&a), &said(&b));
            let seqs = |side: fn(&Pair) -> &Option<Cell>| -> Vec<u32> {
                compared.pairs.iter().filter_map(|pair| side(pair).as_ref()).map(|c| c.seq).collect()
            };
            prop_assert!(seqs(|pair| &pair.a).into_iter().eq(1..=u32::try_from(a.len()).unwrap() + 2));
            prop_assert!(seqs(|pair| &pair.b).into_iter().eq(1..=u32::try_from(b.len()).unwrap() + 2));
            prop_assert_eq!(compared.is_same_path, a == b);
        }
    }
}
