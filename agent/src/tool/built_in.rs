//! The built-in tools, with which an agent tests a deployment.

use std::sync::LazyLock;
use std::time::Duration;

use graph::built_in::{CLOCK_SKEW, CONFIGURED_SERVERS, JOURNAL_PROBE, MODEL_REACHABLE};
use graph::effect::{ToolCall, ToolOffer, ToolSpec};
use graph::outcome::{Failure, ToolOutcome};
use journal::chain::put_until_known;
use journal::clock::Stamp;
use journal::event::Writer;
use journal::item::Item;
use journal::key::PROBE_PREFIX;
use journal::key::attribute::EXPIRES_AT;
use journal::read;
use journal::step::Usage;
use journal::store::{Condition, Error, Key, Store, Written};
use serde_json::{Value, json};
use telemetry::context::TraceParent;

use super::catalogue::{CATEGORY_UNKNOWN, Catalogue, Listed, Readers};
use super::connection::seconds;
use super::{BUILT_IN_SERVER, ToolSource};
use crate::model::Models;
use crate::session::ClaimedSession;

/// The agent's own rules in place of a model.
const POLICY: &str = "policy";

/// The field of an answer with the model usage.
const USAGE: &str = "usage";

/// The attribute of a probe record.
const PROBE: &str = "Probe";

/// The catalogue, the same in every session. Its schemas are compiled once.
static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(catalogue);

#[derive(Debug)]
pub struct BuiltIn<S> {
    session: ClaimedSession<S>,
    configured: Vec<String>,
    models: Models,
}

impl<S: Store> BuiltIn<S> {
    /// The built-in tools of a session with these configured servers.
    pub fn new(session: ClaimedSession<S>, configured: Vec<String>, models: Models) -> Self {
        Self { session, configured, models }
    }

    async fn answer(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        match tool {
            CONFIGURED_SERVERS => Ok(json!({ "servers": self.configured })),
            JOURNAL_PROBE => self.probe().await,
            CLOCK_SKEW => self.skew().await,
            MODEL_REACHABLE => self.reach(arguments["model"].as_str().unwrap_or_default()).await,
            other => unreachable!("a tool that is not in the catalogue: {other}"),
        }
    }

    /// Writes a record under a key that no reader of sessions sees, and reads it back. It retries like
    /// every append, so that one lost answer does not fail the check.
    async fn probe(&self) -> Result<Value, String> {
        let clock = self.session.hlc.clock();
        let (begun_at, stamp) = (clock.now(), self.session.hlc.tick());
        let author = &self.session.author;
        let key = Key::new(format!("{PROBE_PREFIX}{}", author.session), stamp.to_string());
        let item = Item::new(&key.pk, &key.sk)
            .with(EXPIRES_AT, author.expires_at)
            .with(PROBE, author.runner.as_str());
        let store = &self.session.store;
        let hlc = &self.session.hlc;
        let written = put_until_known(store, hlc, &item, &Condition::Absent).await;
        match written.map_err(journal_says)? {
            Written::Done => {}
            // An earlier try succeeded, but its answer was lost.
            Written::Refused(Some(there)) if there == item => {}
            Written::Refused(_) => {
                return Err("the journal already has a record under a new key".into());
            }
        }
        match store.get(key).await.map_err(journal_says)? {
            Some(found) if found == item => {}
            Some(_) => return Err("the journal returned another record than was written".into()),
            None => return Err("the journal does not return a record that was just written".into()),
        }
        let ms = u64::try_from(clock.now().since(begun_at).as_millis()).unwrap_or(u64::MAX);
        Ok(json!({"detail": format!("a record was written and read back in {ms} ms"), "ms": ms}))
    }

    /// Probes a model. A failure is an answer too, since the attempt may have cost something.
    async fn reach(&self, model: &str) -> Result<Value, String> {
        if model == POLICY {
            return Ok(json!({"detail": "the policy needs no model"}));
        }
        let attempt =
            self.models.probe(model, &self.session.author.session, self.session.hlc.clock()).await;
        Ok(match attempt.brought {
            Ok(_) => json!({"detail": format!("`{model}` replied"), USAGE: attempt.usage}),
            Err(failure) => json!({"error": failure.to_string(), USAGE: attempt.usage}),
        })
    }

    /// This clock minus the newest time that another component wrote. In a new session that was a moment
    /// ago, so the difference is the skew. Our own stamps say nothing about other clocks.
    async fn skew(&self) -> Result<Value, String> {
        let events = read::events(&self.session.store, &self.session.author.session).await;
        let events = events.map_err(journal_says)?;
        let others = events.iter().filter(|event| event.writer != Writer::Agent);
        let now = self.session.hlc.clock().wall();
        let newest = others.map(|event| event.wall.unwrap_or(event.stamp)).max().unwrap_or(now);
        Ok(json!({ "skew_ms": millis_apart(now, newest) }))
    }
}

impl<S: Store> ToolSource for BuiltIn<S> {
    async fn catalogue(&self, _timeout: Duration) -> ToolOutcome {
        CATALOGUE.outcome()
    }

    async fn offer(&self, tool: &str, _timeout: Duration) -> Result<ToolOffer, Failure> {
        CATALOGUE.offer(BUILT_IN_SERVER, tool)
    }

    async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        timeout: Duration,
        _: Option<TraceParent>,
    ) -> ToolOutcome {
        let admitted = match CATALOGUE.admit(BUILT_IN_SERVER, tool, arguments) {
            Ok(admitted) => admitted,
            Err(outcome) => return outcome,
        };
        let clock = self.session.hlc.clock();
        match clock.timeout(timeout, self.answer(tool, arguments)).await {
            Some(Ok(content)) => admitted.result(content),
            Some(Err(text)) => ToolOutcome::Error(text),
            None => {
                let message = format!("`{tool}` did not end within {}", seconds(timeout));
                ToolOutcome::Failed(Failure::unknown(CATEGORY_UNKNOWN, message))
            }
        }
    }
}

/// The model that a call of the built-in server probes, if any.
pub fn model_of(call: &ToolCall) -> Option<&str> {
    let is_own = call.server.as_deref().is_none_or(|server| server == BUILT_IN_SERVER);
    let asks = is_own && call.tool == MODEL_REACHABLE;
    call.arguments.get("model").filter(|_| asks)?.as_str()
}

/// The model usage of a call of the built-in server.
pub fn usage(call: &ToolCall, outcome: &ToolOutcome) -> Usage {
    let ToolOutcome::Ok(content) = outcome else { return Usage::default() };
    let used = model_of(call).and_then(|_| content.get(USAGE));
    used.and_then(|used| serde_json::from_value(used.clone()).ok()).unwrap_or_default()
}

fn millis_apart(now: Stamp, then: Stamp) -> i64 {
    now.nanos().saturating_sub(then.nanos()) / 1_000_000
}

/// The error with its causes, for the person who set up the store.
fn journal_says(error: Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    super::answer::cut(&text, super::answer::ERROR_CHARS_MAX)
}

fn catalogue() -> Catalogue {
    let nothing = json!({"type": "object", "additionalProperties": false});
    let model = json!({
        "type": "object", "additionalProperties": false, "required": ["model"],
        "properties": {"model": {"type": "string", "minLength": 1}},
    });
    let mut catalogue = Catalogue::new(Readers::Annotated);
    for (name, description, input_schema) in [
        (CONFIGURED_SERVERS, "Names the MCP servers that are configured.", &nothing),
        (JOURNAL_PROBE, "Writes a record to the journal and reads it back.", &nothing),
        (CLOCK_SKEW, "Compares this clock with the journal's.", &nothing),
        (MODEL_REACHABLE, "Asks a model for a word.", &model),
    ] {
        let spec = ToolSpec {
            server: Some(BUILT_IN_SERVER.to_owned()),
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: input_schema.clone(),
        };
        catalogue.add(spec, &Listed::default());
    }
    catalogue
}
