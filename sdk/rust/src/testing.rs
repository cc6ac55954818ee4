//! Runs agents in memory: no host, no model, no server.
//!
//! ```
//! use daybook_kit::testing::Script;
//! use daybook_kit::{Agent, Context, Error};
//! use serde_json::{Value, json};
//!
//! async fn notes(ctx: Context, _: Value) -> Result<Value, Error> {
//!     let commits: Vec<Value> = ctx.tool("repo", "commits", json!({})).await?;
//!     let reply = ctx.chat("Write release notes.").context(&commits).await?;
//!     Ok(json!({ "report": reply.text }))
//! }
//!
//! let script = Script::new(Agent::new("notes", "1", notes), json!({}))
//!     .tool("repo.commits", [json!([{"id": "a"}])])
//!     .chat([json!("Notes")]);
//! assert_eq!(script.every_prefix(), Ok(json!({"report": "Notes"})));
//! ```

use std::collections::BTreeMap;
use std::task::Poll;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::json::canonical;
use crate::program::Program;
use crate::serving::block_on;

/// An effect and the frame of its outcome, as a journal has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The frame of the effect.
    pub effect: Value,
    /// The frame of its result.
    pub result: Value,
}

/// An agent, its input, and how the world answers.
pub struct Script {
    agent: Agent,
    input: Value,
    answers: BTreeMap<String, Vec<Value>>,
}

/// The error of an agent's function, as the session would have it: `Type: message`.
pub type Failed = String;

impl Script {
    pub fn new(agent: Agent, input: Value) -> Self {
        Self { agent, input, answers: BTreeMap::new() }
    }

    /// The answers of `server.tool`, in order; the last one repeats. `{"error": {"kind", "category", "message"}}` fails.
    #[must_use]
    pub fn tool(self, name: &str, answers: impl IntoIterator<Item = Value>) -> Self {
        self.with(format!("tool {name}"), answers)
    }

    /// The model's replies: texts, or `{"text", "calls"}`. Without any, a chat's own policy answers.
    #[must_use]
    pub fn chat(self, answers: impl IntoIterator<Item = Value>) -> Self {
        self.with("chat chat".to_owned(), answers)
    }

    /// A person's answers: `"approve"`, or `{"decision", …}`.
    #[must_use]
    pub fn answer(self, answers: impl IntoIterator<Item = Value>) -> Self {
        self.with("ask ask".to_owned(), answers)
    }

    fn with(mut self, key: String, answers: impl IntoIterator<Item = Value>) -> Self {
        self.answers.insert(key, answers.into_iter().collect());
        self
    }

    /// Runs the agent on top of a journal; its result, and the journal afterwards.
    ///
    /// # Panics
    /// If the agent asks for another effect than the journal has, or for one without an answer.
    pub fn run(&self, journal: &[Recorded]) -> (Result<Value, Failed>, Vec<Recorded>) {
        let session = "00000000-0000-4000-8000-000000000000";
        let start = json!({"session": session, "input": self.input, "replay": journal.len()});
        let mut run = self.agent.start(&start);
        let mut host = Host::of(self, journal);
        let end = block_on(std::future::poll_fn(|cx| {
            loop {
                if let Some(end) = run.advance(cx.waker()) {
                    host.take(&run.program);
                    return Poll::Ready(end);
                }
                let took = host.take(&run.program);
                let delivered = run.program.deliver().unwrap_or_else(|problem| panic!("{problem}"));
                if !took && !delivered {
                    // A step's function may wait for something of its own.
                    assert!(run.program.awaits(), "the agent awaits something that is no effect");
                    return Poll::Pending;
                }
            }
        }));
        let asked = host.asked;
        let recorded = journal.len();
        assert!(
            asked >= recorded,
            "the journal has {recorded} effects, the agent asked for {asked}"
        );
        let result = match end.get("error") {
            None => Ok(end["result"].clone()),
            Some(error) => {
                let word = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
                Err(format!("{}: {}", word("type"), word("message")))
            }
        };
        (result, host.journal)
    }

    /// Runs the agent, then once from each prefix of its journal. Each must end with the same result, which is returned.
    ///
    /// # Errors
    /// That of the agent's function.
    ///
    /// # Panics
    /// If a run from a prefix ends otherwise or asks for another effect.
    pub fn every_prefix(&self) -> Result<Value, Failed> {
        let (expected, whole) = self.run(&[]);
        for length in 0..=whole.len() {
            let (result, journal) = self.run(&whole[..length]);
            assert_eq!(result, expected, "from the first {length} effects");
            let identities = |journal: &[Recorded]| -> Vec<_> {
                journal.iter().map(|it| identity(&it.effect)).collect()
            };
            assert_eq!(identities(&journal), identities(&whole), "from the first {length} effects");
        }
        expected
    }
}

struct Host<'a> {
    script: &'a Script,
    journal: Vec<Recorded>,
    /// Effects that the program has asked for.
    asked: usize,
    /// Effects whose work the program does.
    working: BTreeMap<u64, Value>,
    used: BTreeMap<String, usize>,
}

impl<'a> Host<'a> {
    fn of(script: &'a Script, journal: &[Recorded]) -> Self {
        let (working, used) = (BTreeMap::new(), BTreeMap::new());
        Self { script, journal: journal.to_vec(), asked: 0, working, used }
    }

    /// Answers the frames of the program. Whether there were any.
    fn take(&mut self, program: &Program) -> bool {
        let frames = program.frames();
        let has_frames = !frames.is_empty();
        for frame in frames {
            let ordinal = frame["ordinal"].as_u64().unwrap_or_default();
            let answer = if frame["type"] == "performed" {
                let Some(effect) = self.working.remove(&ordinal) else { continue };
                let outcome = match frame.get("error") {
                    Some(error) => step_error(error),
                    None => Ok(frame["ok"].clone()),
                };
                self.record(ordinal, effect, outcome)
            } else {
                self.asked += 1;
                self.effect(ordinal, frame)
            };
            program.receive(answer).unwrap_or_else(|problem| panic!("{problem}"));
        }
        has_frames
    }

    fn effect(&mut self, ordinal: u64, effect: Value) -> Value {
        let place = self.asked - 1;
        let answer = self.count(&effect);
        if let Some(recorded) = self.journal.get(place) {
            let (theirs, ours) = (identity(&recorded.effect), identity(&effect));
            assert_eq!(theirs, ours, "effect {ordinal} diverges from the journal");
            return recorded.result.clone();
        }
        match (effect["kind"].as_str().unwrap_or_default(), answer) {
            ("step", _) => self.work(ordinal, effect),
            ("chat", None) if effect["policy"] == true => self.work(ordinal, effect),
            (_, Some(answer)) => {
                let outcome = worded(&effect, answer);
                self.record(ordinal, effect, outcome)
            }
            ("sleep" | "note", None) => self.record(ordinal, effect, Ok(Value::Null)),
            ("now", None) => {
                self.record(ordinal, effect, Ok(json!("2026-01-01T00:00:00.000000000Z")))
            }
            ("random", None) => self.record(ordinal, effect, Ok(json!(ordinal))),
            ("uuid", None) => {
                let uuid = format!("00000000-0000-4000-8000-{ordinal:012}");
                self.record(ordinal, effect, Ok(json!(uuid)))
            }
            _ => panic!("the script has no answer for {}", identity(&effect)),
        }
    }

    fn work(&mut self, ordinal: u64, effect: Value) -> Value {
        self.working.insert(ordinal, effect);
        json!({"type": "run", "ordinal": ordinal})
    }

    /// The script's next answer to an effect.
    fn count(&mut self, effect: &Value) -> Option<Value> {
        let key = format!("{} {}", effect["kind"].as_str().unwrap_or_default(), name(effect));
        let answers = self.script.answers.get(&key).filter(|answers| !answers.is_empty())?;
        let used = self.used.entry(key).or_default();
        let answer = answers[(*used).min(answers.len() - 1)].clone();
        *used += 1;
        Some(answer)
    }

    fn record(&mut self, ordinal: u64, effect: Value, outcome: Result<Value, Value>) -> Value {
        let result = match outcome {
            Ok(value) => json!({"type": "result", "ordinal": ordinal, "ok": value}),
            Err(error) => json!({"type": "result", "ordinal": ordinal, "error": error}),
        };
        self.journal.push(Recorded { effect, result: result.clone() });
        // A step's outcome can come after that of a later effect.
        self.journal.sort_by_key(|recorded| recorded.effect["ordinal"].as_u64());
        result
    }
}

/// The error of a step's function, as a host words it.
fn step_error(error: &Value) -> Result<Value, Value> {
    let word = |field: &str| error[field].as_str().unwrap_or_default();
    Err(json!({"kind": "step", "category": word("type"), "message": word("message")}))
}

/// A script's answer as the effect's value.
fn worded(effect: &Value, answer: Value) -> Result<Value, Value> {
    if let Some(error) = answer.get("error").filter(|error| error["kind"].is_string()) {
        return Err(error.clone());
    }
    Ok(match (effect["kind"].as_str(), &answer) {
        (Some("chat"), Value::String(text)) => json!({"text": text, "calls": []}),
        (Some("ask"), Value::String(decision)) => json!({"decision": decision}),
        _ => answer,
    })
}

fn name(effect: &Value) -> String {
    let word = |field: &str| effect[field].as_str().unwrap_or("-");
    match word("kind") {
        "step" => word("name").to_owned(),
        "tool" => format!("{}.{}", word("server"), word("tool")),
        kind => kind.to_owned(),
    }
}

/// The canonical text of an effect, which the protocol's digest covers.
pub(crate) fn identity(effect: &Value) -> String {
    let field = |name: &str| effect.get(name).cloned().unwrap_or_default();
    let arguments = match effect["kind"].as_str().unwrap_or_default() {
        "step" => field("arguments"),
        "tool" => effect.get("arguments").cloned().unwrap_or_else(|| json!({})),
        "chat" => {
            let tools = effect["tools"].as_array().into_iter().flatten().map(|tool| {
                let name = tool["name"].as_str().unwrap_or_default();
                match tool["server"].as_str() {
                    Some(server) => format!("{server}.{name}"),
                    None => name.to_owned(),
                }
            });
            let messages = effect["messages"].as_array().into_iter().flatten().map(covered);
            json!({
                "messages": messages.collect::<Vec<_>>(),
                "schema": field("schema"),
                "tools": tools.collect::<Vec<_>>(),
            })
        }
        "ask" => json!({
            "arguments": field("arguments"), "question": field("question"),
            "server": field("server"), "tool": field("tool"),
        }),
        "sleep" => json!({ "seconds": field("seconds") }),
        "note" => json!({ "data": field("data"), "text": field("text") }),
        _ => Value::Null,
    };
    canonical(&json!({"kind": effect["kind"], "name": name(effect), "arguments": arguments}))
}

/// A message as the digest covers it.
fn covered(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(fields) = message.as_object_mut() {
        fields.remove("from");
        fields.retain(|key, value| match key.as_str() {
            "calls" => value.as_array().is_some_and(|calls| !calls.is_empty()),
            "is_error" => *value == true,
            _ => !value.is_null(),
        });
    }
    message
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::{Context, Decision, Error, Kind, Reply};

    async fn notes(ctx: Context, _: Value) -> Result<Value, Error> {
        let commits: Vec<Value> = ctx.tool("repo", "commits", json!({"since": "v1"})).await?;
        let details = commits.iter().map(|it| ctx.tool("repo", "commit", json!({"id": it["id"]})));
        let details: Vec<Value> = ctx.gather(details.collect::<Vec<_>>()).await?;
        let reply = ctx.chat("Write.").context(&details).policy(|_| Reply::says("mine")).await?;
        let answer = ctx.ask("Publish?").await?;
        if answer.decision == Decision::Reject {
            return Err("not published".into());
        }
        let at = ctx.now().await?;
        Ok(json!({"report": reply.text, "at": at}))
    }

    fn script() -> Script {
        Script::new(Agent::new("notes", "1", notes), json!({}))
            .tool("repo.commits", [json!([{"id": "a"}, {"id": "b"}])])
            .tool("repo.commit", [json!({"text": "one"}), json!({"text": "two"})])
    }

    #[test]
    fn an_agent_ends_alike_from_every_prefix() {
        let script = script().answer([json!("approve")]);
        let result = script.every_prefix().unwrap();
        assert_eq!(result, json!({"report": "mine", "at": "2026-01-01T00:00:00.000000000Z"}));
    }

    #[test]
    fn an_error_of_the_function_is_its_end() {
        let (result, _) = script().answer([json!("reject")]).run(&[]);
        assert_eq!(result, Err("Error: not published".to_owned()));
        let failing = json!({"error": {"kind": "refused", "category": "auth", "message": "no"}});
        let (result, _) = script().tool("repo.commits", [failing]).run(&[]);
        assert_eq!(result, Err("EffectError: no".to_owned()));
    }

    #[test]
    fn a_step_runs_once_and_its_result_is_journaled() {
        let ran = Rc::new(Cell::new(0));
        let counted = ran.clone();
        let agent = Agent::new("a", "1", move |ctx: Context, (): ()| {
            let ran = counted.clone();
            async move {
                let work = async || {
                    ran.set(ran.get() + 1);
                    Ok::<u32, Error>(7)
                };
                ctx.step("count", (), work).await
            }
        });
        let script = Script::new(agent, Value::Null);
        assert_eq!(script.every_prefix(), Ok(json!(7)));
        // In the first run and from the empty prefix, but not from its outcome.
        assert_eq!(ran.get(), 2);
    }

    #[test]
    #[should_panic(expected = "diverges from the journal")]
    fn another_effect_than_before_diverges() {
        let (_, mut journal) = script().answer([json!("approve")]).run(&[]);
        journal[0].effect["arguments"] = json!({"since": "v2"});
        let _ = script().run(&journal);
    }

    #[test]
    fn a_tool_loop_gives_errors_back_to_the_model() {
        let agent = Agent::new("a", "1", async |ctx: Context, (): ()| {
            let reply = ctx.run_tools("Look.", ["repo"]).await?;
            Ok::<_, Error>(reply.text)
        });
        let calls = json!({"calls": [{"id": "1", "tool": "look", "arguments": {}}, {"id": "2", "tool": "other"}]});
        let look = json!({"tools": [{"server": "repo", "name": "look", "input_schema": {}}]});
        let gone = json!({"error": {"kind": "tool", "category": "tool", "message": "gone"}});
        let script = Script::new(agent, Value::Null)
            .tool("repo.tools/list", [look])
            .tool("repo.look", [gone])
            .chat([calls, json!("done")]);
        let (result, journal) = script.run(&[]);
        assert_eq!(result, Ok(json!("done")));
        let messages = &journal.last().unwrap().effect["messages"];
        assert_eq!(messages[2]["content"], "gone");
        assert_eq!(messages[3]["content"], "there is no tool `other`");
        assert_eq!(script.every_prefix(), Ok(json!("done")));
    }

    #[test]
    fn a_value_of_another_type_is_an_error() {
        let agent = Agent::new("a", "1", async |ctx: Context, (): ()| {
            let error = ctx.tool::<u32>("s", "t", json!({})).await.unwrap_err();
            Ok::<_, Error>(error.kind == Kind::Value)
        });
        let script = Script::new(agent, Value::Null).tool("s.t", [json!("text")]);
        assert_eq!(script.run(&[]).0, Ok(json!(true)));
    }

    #[test]
    #[should_panic(expected = "awaits something that is no effect")]
    fn awaiting_something_that_is_no_effect_is_noticed() {
        let agent = Agent::new("a", "1", async |_: Context, (): ()| {
            std::future::pending::<()>().await;
            Ok::<_, Error>(())
        });
        let _ = Script::new(agent, Value::Null).run(&[]);
    }

    #[test]
    fn an_effect_inside_a_step_ends_the_session() {
        let agent = Agent::new("a", "1", async |ctx: Context, (): ()| {
            let inner = ctx.clone();
            let work = async move || inner.uuid().await;
            ctx.step::<String, _, _, _>("bad", (), work).await
        });
        let (result, _) = Script::new(agent, Value::Null).run(&[]);
        let error = result.unwrap_err();
        assert!(error.starts_with("panic: an effect (uuid) inside the step `bad`"), "{error}");
    }

    #[test]
    fn a_value_that_is_too_large_is_no_effect() {
        let agent = Agent::new("a", "1", async |ctx: Context, (): ()| {
            let large = "x".repeat(crate::VALUE_BYTES_MAX);
            let error = ctx.note("n", large).await.unwrap_err();
            Ok::<_, Error>(format!("{:?}", error.kind))
        });
        assert_eq!(Script::new(agent, Value::Null).run(&[]), (Ok(json!("Arguments")), vec![]));
    }
}
