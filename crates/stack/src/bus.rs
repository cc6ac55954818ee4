//! The event bus: `PutEvents`, the rules, and their input transformers.
//!
//! Before the bus accepts a trigger, its execution is durable; before it accepts a
//! person's action, the poller has handled it. The targets receive the sender's principal besides, which
//! EventBridge cannot pass on. As on EventBridge, an event that matches no rule is accepted and dropped.

mod entry;

use std::sync::Arc;
use std::time::Duration;

use asl::rule::{Origin, Pattern, PatternError, Transformer, TransformerError};
use journal::clock::Clock;
use journal::principal::Principal;
use journal::store::Error;
use serde_json::{Value, json};
use uuid::Uuid;
use workflow::rule;

pub use entry::{ENTRIES_MAX, ENTRY_BYTES_MAX};
use entry::{EntryError, check, entries, event_of, time_of, whole_second};

use crate::executions::{ExecutionStore, Executions, Request, StartError, Started};
use crate::functions::Functions;
use crate::load::{Load, New, NotAdmitted};
use crate::names;
use crate::stack::chain;
use crate::store::Database;

/// Longest wait of `PutEvents` for the targets of users' rules, by the machine's clock.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// The code of an entry whose action the poller refused.
const ACTION_REFUSED: &str = "ActionRefused";

/// The bus with its rules and their targets.
#[derive(Clone, Debug)]
pub struct Bus<S = Database> {
    executions: Executions<S>,
    functions: Functions,
    clock: Clock,
    load: Load,
    triggers: Arc<Rule>,
    /// Those of a person's actions.
    actions: Arc<[Rule]>,
}

/// A rule: its event pattern, and the transformer of its target's input.
#[derive(Clone, Debug)]
struct Rule {
    name: &'static str,
    pattern: Pattern,
    transformer: Transformer,
}

impl Rule {
    fn new(
        name: &'static str,
        pattern: &str,
        paths: &[(&str, &str)],
        template: &str,
    ) -> Result<Self, RuleError> {
        let transformer = Transformer::new(paths, template)?;
        Ok(Self { name, pattern: Pattern::parse(pattern)?, transformer })
    }

    /// The target's input; `None` if the pattern does not match, or the transformer produces no JSON.
    fn input(&self, event: &Value, ingestion_time: &str) -> Option<String> {
        if !self.pattern.matches(event) {
            return None;
        }
        let rule_arn =
            format!("arn:aws:events:{}:{}:rule/{}", names::REGION, names::ACCOUNT, self.name);
        let origin = Origin { rule_arn: &rule_arn, rule_name: self.name, ingestion_time };
        let input = self.transformer.apply(event, origin);
        if input.is_none() {
            let (id, rule) = (&event["id"], self.name);
            tracing::warn!(%id, rule, "Dropping an event: the rule's input transformer produced no JSON.");
        }
        input
    }
}

/// An invalid rule.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error(transparent)]
    Transformer(#[from] TransformerError),
}

/// Why the whole request is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The request violates a constraint of the API.
    #[error("{0}")]
    Validation(String),
    /// A field has the wrong type.
    #[error("{0}")]
    Serialization(String),
    #[error("Event bus {0} does not exist.")]
    NoSuchBus(String),
    /// It has only triggers, and none is admitted now.
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
}

/// Why a session does not start.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// The id belongs to a session with another detail.
    #[error("session {0} has this id and another detail")]
    IdTaken(String),
    /// Whether the session has the same detail is unknown: it was erased, or is damaged.
    #[error("session {0} has this id, and its input can no longer be read")]
    Unreadable(String),
    #[error("{message}")]
    Refused { code: &'static str, message: String },
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
    #[error(transparent)]
    Store(#[from] Error),
}

/// An accepted event with the inputs of its targets.
struct Accepted {
    id: String,
    /// The execution's input, if the event is a trigger.
    input: Option<String>,
    /// The poller's input, if the event is a person's action.
    action: Option<String>,
    /// The event as rules see it, and when the bus took it.
    event: Value,
    ingested: String,
}

impl<S: ExecutionStore> Bus<S> {
    /// A bus with the workflow's rules: it starts executions and passes a person's actions to the
    /// poller.
    ///
    /// # Errors
    /// If a rule is invalid.
    pub fn new(
        executions: Executions<S>,
        functions: Functions,
        clock: Clock,
    ) -> Result<Self, RuleError> {
        let (paths, template) = (rule::INPUT_PATHS, rule::INPUT_TEMPLATE);
        let triggers = Rule::new(rule::NAME, rule::PATTERN, paths, template)?;
        let actions: Result<Vec<Rule>, RuleError> = rule::ACTIONS
            .iter()
            .map(|it| Rule::new(it.name, it.pattern, it.input_paths, it.input_template))
            .collect();
        let (triggers, actions) = (Arc::new(triggers), actions?.into());
        let load = Load::default();
        Ok(Self { executions, functions, clock, load, triggers, actions })
    }

    /// Sets the load that decides which new sessions are admitted.
    #[must_use]
    pub fn with_load(self, load: Load) -> Self {
        Self { load, ..self }
    }

    /// `PutEvents`: every matched event is durable when this returns. `by` is the sender; an event's
    /// content does not change it.
    ///
    /// # Errors
    /// If the whole request is refused. The error of a single entry is in the response.
    pub async fn put_events(&self, body: &Value, by: &Principal) -> Result<Value, Refused> {
        let entries = entries(body)?;
        let mut judged: Vec<Result<Accepted, EntryError>> = Vec::new();
        for entry in entries {
            judged.push(self.judge(entry, by, Uuid::new_v4().to_string())?);
        }
        self.start(&mut judged).await?;
        self.act(&mut judged).await;
        self.deliver(&judged).await;
        let failed = judged.iter().filter(|entry| entry.is_err()).count();
        let entries: Vec<Value> = judged
            .into_iter()
            .map(|entry| match entry {
                Ok(accepted) => json!({ "EventId": accepted.id }),
                Err(error) => json!({ "ErrorCode": error.code, "ErrorMessage": error.message }),
            })
            .collect();
        Ok(json!({ "FailedEntryCount": failed, "Entries": entries }))
    }

    /// Delivers events to the targets of users' rules. A stack that drains starts nothing for them.
    async fn deliver(&self, judged: &[Result<Accepted, EntryError>]) {
        if self.load.is_draining() {
            if !matches!(self.executions.user_rules().await, Ok(rules) if rules.is_empty()) {
                tracing::warn!("The stack drains: events are not delivered to users' rules.");
            }
            return;
        }
        let delivered = async {
            for accepted in judged.iter().flatten() {
                self.executions.deliver(&accepted.event, &accepted.ingested).await;
            }
        };
        if tokio::time::timeout(DELIVERY_TIMEOUT, delivered).await.is_err() {
            tracing::error!(
                "The targets of users' rules took too long; the other deliveries are not made."
            );
        }
    }

    /// Starts a session with this id and trigger's detail. Returns whether it is new: the same id and detail
    /// start one session, however often they are sent. `by` is the sender.
    ///
    /// # Errors
    /// If the id has another detail, the detail is too large, no session is admitted now, or the store fails.
    pub async fn trigger(
        &self,
        id: &str,
        detail: &Value,
        by: &Principal,
    ) -> Result<bool, NotStarted> {
        if self.holds(id, detail).await? {
            return Ok(false);
        }
        let entry = json!({
            "Source": rule::SOURCE, "DetailType": rule::DETAIL_TYPE, "Detail": detail.to_string(),
        });
        let judged = self.judge(&entry, by, id.to_owned()).map_err(|refused| {
            NotStarted::Refused { code: "InvalidTrigger", message: refused.to_string() }
        })?;
        let mut judged = [judged];
        self.start(&mut judged).await?;
        let [judged] = judged;
        match judged {
            Ok(_) => Ok(true),
            // Another request with the same id came first.
            Err(_) if self.holds(id, detail).await? => Ok(false),
            Err(EntryError { code, message }) => Err(NotStarted::Refused { code, message }),
        }
    }

    /// Whether a session with this id and detail was started before.
    async fn holds(&self, id: &str, detail: &Value) -> Result<bool, NotStarted> {
        let arn = names::execution_arn(names::STATE_MACHINE, id);
        let Some(known) = self.executions.describe(&arn).await? else { return Ok(false) };
        let input: Value = serde_json::from_str(&known.input)
            .map_err(|_| NotStarted::Unreadable(id.to_owned()))?;
        if input["detail"] == *detail { Ok(true) } else { Err(NotStarted::IdTaken(id.to_owned())) }
    }

    /// Starts the executions of admitted triggers in one commit. An entry whose execution does not start
    /// becomes an error.
    ///
    /// # Errors
    /// If no entry is admitted, so that a client sends the whole request again.
    async fn start(&self, judged: &mut [Result<Accepted, EntryError>]) -> Result<(), NotAdmitted> {
        let mut matched: Vec<(usize, Request)> = judged
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| {
                let accepted = entry.as_ref().ok()?;
                let input = accepted.input.clone()?;
                Some((index, Request { name: accepted.id.clone(), input }))
            })
            .collect();
        if matched.is_empty() {
            return Ok(());
        }
        let new: Vec<New> = matched.iter().map(|(_, it)| New::of(&it.name, &it.input)).collect();
        let admitted = match self.load.admit(&new, &self.executions).await {
            Ok((0, Some(why))) if matched.len() == judged.len() => return Err(why),
            Ok((admitted, why)) => {
                for (index, _) in matched.split_off(admitted) {
                    judged[index] = Err(not_admitted(why));
                }
                self.start_all(&matched).await
            }
            Err(error) => Err(error),
        };
        match admitted {
            Ok(answers) => {
                for (((index, _), answer), new) in matched.into_iter().zip(answers).zip(&new) {
                    if let Err(error) = answer {
                        self.load.forget(new);
                        judged[index] = Err(refused_by_target(&error));
                    }
                }
            }
            Err(error) => {
                tracing::error!(%error, "Cannot start the executions of accepted events.");
                new.iter().for_each(|new| self.load.forget(new));
                for (index, _) in matched {
                    let message = format!("cannot write the event: {}", chain(&error));
                    judged[index] = Err(EntryError { code: "InternalFailure", message });
                }
            }
        }
        Ok(())
    }

    async fn start_all(
        &self,
        matched: &[(usize, Request)],
    ) -> Result<Vec<Result<Started, StartError>>, Error> {
        if matched.is_empty() {
            return Ok(Vec::new());
        }
        self.executions.start_all(matched.iter().map(|(_, it)| it.clone()).collect()).await
    }

    /// Passes a person's actions to the poller, in order. The sender learns why the poller refused one;
    /// EventBridge could not say.
    async fn act(&self, judged: &mut [Result<Accepted, EntryError>]) {
        for entry in judged {
            let Ok(Accepted { action: Some(input), .. }) = entry else { continue };
            let payload = serde_json::from_str(input).unwrap_or_default();
            let (code, message) = match self.functions.call(names::POLLER_ARN, payload).await {
                Ok(reply) => match reply["refused"]["reason"].as_str() {
                    Some(reason) => (ACTION_REFUSED, reason.to_owned()),
                    None => continue,
                },
                Err(error) => {
                    tracing::error!(%error, "Cannot deliver an event to the poller.");
                    ("InternalFailure", "cannot deliver the event".to_owned())
                }
            };
            *entry = Err(EntryError { code, message });
        }
    }

    fn judge(
        &self,
        entry: &Value,
        by: &Principal,
        id: String,
    ) -> Result<Result<Accepted, EntryError>, Refused> {
        let Some(fields) = entry.as_object() else {
            return Err(Refused::Serialization("Expected a structure in Entries".to_owned()));
        };
        for name in ["Source", "DetailType", "Detail", "EventBusName", "TraceHeader"] {
            if fields.get(name).is_some_and(|value| !value.is_string() && !value.is_null()) {
                return Err(Refused::Serialization(format!("{name} must be a string")));
            }
        }
        check_bus(&entry["EventBusName"])?;
        let time = match fields.get("Time") {
            None | Some(Value::Null) => whole_second(self.clock.now()),
            Some(time) => time_of(time).ok_or_else(|| {
                Refused::Serialization("Time must be a time in epoch seconds".to_owned())
            })?,
        };
        Ok(check(entry).map(|detail| {
            let event = event_of(entry, &id, &time, detail);
            let ingested = whole_second(self.clock.now());
            let input = self.triggers.input(&event, &ingested);
            let action = self.actions.iter().find_map(|rule| rule.input(&event, &ingested));
            let [input, action] = [input, action].map(|input| Some(with_principal(&input?, by)));
            Accepted { id, input, action, event, ingested }
        }))
    }
}

/// Checks that a bus that a request names is the stack's.
pub(crate) fn check_bus(name: &Value) -> Result<(), Refused> {
    match name.as_str() {
        None => Ok(()),
        Some(bus) if bus.rsplit('/').next() == Some(names::EVENT_BUS) => Ok(()),
        Some(other) => Err(Refused::NoSuchBus(other.to_owned())),
    }
}

/// The field of a target's input that the stack adds, or replaces in an input of other senders.
const PRINCIPAL: &str = "principal";

/// A target's input with the sender's principal. Its other bytes stay; a field that claims a principal
/// is replaced.
pub(crate) fn with_principal(input: &str, by: &Principal) -> String {
    let mut fields = match serde_json::from_str(input) {
        Ok(Value::Object(fields)) => fields,
        _ => return input.to_owned(),
    };
    let body = input.trim_end().strip_suffix('}').filter(|_| !fields.is_empty());
    match body.filter(|_| !fields.contains_key(PRINCIPAL)) {
        Some(body) => {
            let by = json!(by.to_string());
            format!("{}, \"{PRINCIPAL}\": {by}}}", body.trim_end())
        }
        None => {
            fields.insert(PRINCIPAL.to_owned(), by.to_string().into());
            Value::Object(fields).to_string()
        }
    }
}

/// The principal in a target's input.
pub(crate) fn principal_of(input: &Value) -> Principal {
    let text = input[PRINCIPAL].as_str().unwrap_or_default();
    text.parse().unwrap_or(Principal::Unknown)
}

/// The error of an entry that is not admitted beside others that are.
fn not_admitted(why: Option<NotAdmitted>) -> EntryError {
    let message = why.map(|why| why.to_string()).unwrap_or_default();
    EntryError { code: NotAdmitted::CODE, message }
}

fn refused_by_target(error: &StartError) -> EntryError {
    let code = match error {
        StartError::TooLarge(_) => "InvalidArgument",
        _ => "InternalFailure",
    };
    EntryError { code, message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use journal::clock::Stamp;

    use super::*;

    fn entry(fields: &Value) -> Value {
        let mut entry = json!({ "Source": "s", "DetailType": "d", "Detail": "{}" });
        for (name, value) in fields.as_object().unwrap() {
            entry[name] = value.clone();
        }
        entry
    }

    #[test]
    fn a_claimed_principal_is_replaced_and_other_bytes_stay() {
        let by: Principal = r#"os-user:a"\b"#.parse().unwrap();
        let text = json!(by.to_string());
        for (input, expected) in [
            (
                r#"{"a": 1.0,  "b": {}}"#,
                format!(r#"{{"a": 1.0,  "b": {{}}, "principal": {text}}}"#),
            ),
            ("{}", format!(r#"{{"principal":{text}}}"#)),
            (r#"{"principal": "token:root"}"#, format!(r#"{{"principal":{text}}}"#)),
            ("7", "7".to_owned()),
            ("{", "{".to_owned()),
        ] {
            let made = with_principal(input, &by);
            assert_eq!(made, expected);
            let is_object = input.starts_with('{') && input.len() > 1;
            let read = serde_json::from_str(&made).map(|made| principal_of(&made));
            assert_eq!(read.is_ok_and(|read| read == by), is_object, "{input}");
        }
        assert_eq!(principal_of(&json!({ "principal": 7 })), Principal::Unknown);
    }

    #[test]
    fn entries_are_validated_as_by_eventbridge() {
        for (fields, code) in [
            (json!({}), None),
            (json!({"Source": null}), Some("InvalidArgument")),
            (json!({"DetailType": ""}), Some("InvalidArgument")),
            (json!({"Detail": null}), Some("InvalidArgument")),
            (json!({"Detail": "[]"}), Some("MalformedDetail")),
            (json!({"Detail": "{"}), Some("MalformedDetail")),
            (json!({"Detail": "\"x\""}), Some("MalformedDetail")),
            (json!({"Source": "aws.ec2"}), Some("NotAuthorizedForSourceException")),
            (
                json!({"Detail": format!("{{\"a\":\"{}\"}}", "x".repeat(ENTRY_BYTES_MAX))}),
                Some("InvalidArgument"),
            ),
        ] {
            let found = check(&entry(&fields)).err().map(|error| error.code);
            assert_eq!(found, code, "{fields}");
        }
    }

    #[test]
    fn the_template_produces_the_workflows_input() {
        let event = json!({"id": "i", "time": "t", "source": "s", "detail": {"agent": "a<id>"}});
        let transformer = Transformer::new(rule::INPUT_PATHS, rule::INPUT_TEMPLATE).unwrap();
        let input = transformer.apply(&event, Origin::default()).unwrap();
        let input: Value = serde_json::from_str(&input).unwrap();
        assert_eq!(input, json!({"session_id": "i", "time": "t", "detail": {"agent": "a<id>"}}));
    }

    #[test]
    fn a_time_keeps_its_fraction() {
        for (time, expected) in [
            (json!(1_795_257_000), Some("2026-11-21T10:30:00Z")),
            (json!(1_795_257_000.25), Some("2026-11-21T10:30:00.250Z")),
            (json!("2026-11-21T11:30:00+01:00"), Some("2026-11-21T10:30:00Z")),
            (json!("soon"), None),
            (json!(1e30), None),
            (json!({}), None),
        ] {
            assert_eq!(time_of(&time).as_deref(), expected, "{time}");
        }
        let now = Stamp::parse("2026-11-21T10:30:00.999Z").unwrap();
        assert_eq!(whole_second(now), "2026-11-21T10:30:00Z");
    }
}
