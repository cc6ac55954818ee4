//! Rules of users on the event bus: an event pattern, and targets that receive what it matches.
//!
//! A rule and its targets are one JSON text in the journal's file, with the API's names. A target is a
//! state machine of this stack or a function of `--functions`.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use asl::rule::{Origin, Pattern, PatternError, Transformer, TransformerError, input_at};
use journal::store::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::executions::{ExecutionStore, Executions, Request, until_known};
use crate::names;

/// The kind of its resources.
const KIND: &str = "event rule";

/// Most rules of users on one stack. Source: AWS, "Amazon EventBridge quotas", rules for each event bus.
pub const RULES_MAX: usize = 300;

/// Most targets of a rule. Source: as [`RULES_MAX`], targets.
pub const TARGETS_MAX: usize = 5;

/// A rule as the API describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RuleRecord {
    pub name: String,
    pub event_pattern: String,
    /// `ENABLED` or `DISABLED`.
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default)]
    pub targets: Vec<TargetRecord>,
}

/// A target as the API describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TargetRecord {
    pub id: String,
    pub arn: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    /// JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_transformer: Option<TransformerRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TransformerRecord {
    #[serde(default)]
    pub input_paths_map: BTreeMap<String, String>,
    pub input_template: String,
}

/// A rule that is ready to match.
#[derive(Debug)]
pub(crate) struct UserRule {
    record: RuleRecord,
    pattern: Pattern,
}

impl RuleRecord {
    pub fn arn(&self) -> String {
        names::rule_arn(&self.name)
    }

    /// The rule with its pattern compiled.
    ///
    /// # Errors
    /// The pattern is invalid.
    fn ready(self) -> Result<UserRule, PatternError> {
        Ok(UserRule { pattern: Pattern::parse(&self.event_pattern)?, record: self })
    }
}

impl TargetRecord {
    /// The target's input for an event; `None` if EventBridge would drop the event.
    fn input_of(&self, event: &Value, origin: Origin<'_>) -> Option<String> {
        if let Some(input) = &self.input {
            return Some(input.clone());
        }
        if let Some(path) = &self.input_path {
            return Some(input_at(path, event)?.to_string());
        }
        let Some(transformer) = &self.input_transformer else { return Some(event.to_string()) };
        transformer.ready().ok()?.apply(event, origin)
    }

    /// Whether its input can be computed at all; the reason if not.
    pub(crate) fn problem(&self) -> Option<String> {
        self.input_transformer.as_ref()?.ready().err().map(|error| error.to_string())
    }
}

impl TransformerRecord {
    fn ready(&self) -> Result<Transformer, TransformerError> {
        let paths: Vec<(&str, &str)> = self
            .input_paths_map
            .iter()
            .map(|(name, path)| (name.as_str(), path.as_str()))
            .collect();
        Transformer::new(&paths, &self.input_template)
    }
}

impl<S: ExecutionStore> Executions<S> {
    /// The rules of users, by name.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) async fn user_rules(&self) -> Result<Arc<[UserRule]>, Error> {
        let known = || self.rules_cache().lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(rules) = known() {
            return Ok(rules);
        }
        self.read_rules().await
    }

    /// Reads the rules. A change that lands meanwhile empties the cache after this has filled it, because a change waits for
    /// the reading.
    async fn read_rules(&self) -> Result<Arc<[UserRule]>, Error> {
        let _reading = self.rules_reading().lock().await;
        let mut rules = Vec::new();
        for (_, body) in self.store().resources(KIND).await? {
            let record: RuleRecord =
                serde_json::from_str(&body).map_err(|error| Error::Corrupt(error.into()))?;
            rules.push(record.ready().map_err(|error| Error::Corrupt(error.into()))?);
        }
        let rules: Arc<[UserRule]> = rules.into();
        *self.rules_cache().lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::clone(&rules));
        Ok(rules)
    }

    /// The records of the rules of users, by name.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn rule_records(&self) -> Result<Vec<RuleRecord>, Error> {
        Ok(self.user_rules().await?.iter().map(|rule| rule.record.clone()).collect())
    }

    /// Creates or replaces a rule, with its targets.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn put_rule(&self, record: &RuleRecord) -> Result<(), Error> {
        let body = serde_json::to_string(record).map_err(|error| Error::Refused(error.into()))?;
        self.change_rule(&record.name, Some(body)).await
    }

    /// Removes a rule, if it exists.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn delete_rule(&self, name: &str) -> Result<(), Error> {
        self.change_rule(name, None).await
    }

    async fn change_rule(&self, name: &str, body: Option<String>) -> Result<(), Error> {
        let _reading = self.rules_reading().lock().await;
        let store = self.store();
        let changed = until_known(|| store.put_resource(KIND, name, body.clone())).await;
        *self.rules_cache().lock().unwrap_or_else(PoisonError::into_inner) = None;
        changed
    }

    /// Delivers an event to the targets of the rules of users that match it. A target that fails is
    /// logged: EventBridge would retry it and then drop the event.
    pub(crate) async fn deliver(&self, event: &Value, ingestion_time: &str) {
        let rules = match self.user_rules().await {
            Ok(rules) => rules,
            Err(error) => {
                tracing::error!(%error, "Cannot read the rules of users.");
                return;
            }
        };
        for rule in rules.iter() {
            let record = &rule.record;
            if record.state != "ENABLED" || !rule.pattern.matches(event) {
                continue;
            }
            let arn = record.arn();
            let origin = Origin { rule_arn: &arn, rule_name: &record.name, ingestion_time };
            for target in &record.targets {
                let Some(input) = target.input_of(event, origin) else {
                    let (rule, target) = (&record.name, &target.id);
                    tracing::warn!(%rule, %target, "Dropping an event: the target's input cannot be computed.");
                    continue;
                };
                if let Err(why) = self.deliver_to(&target.arn, event, input).await {
                    let (rule, target) = (&record.name, &target.id);
                    tracing::error!(%rule, %target, %why, "Cannot deliver an event to a target.");
                }
            }
        }
    }

    async fn deliver_to(&self, arn: &str, event: &Value, input: String) -> Result<(), String> {
        if arn.starts_with("arn:aws:lambda:") {
            let payload = serde_json::from_str(&input).unwrap_or(Value::String(input));
            let called = self.functions().call(arn, payload).await;
            return called.map(|_| ()).map_err(|error| error.to_string());
        }
        let machine = self.machine_to_start(arn).await.map_err(|error| error.to_string())?;
        let machine = machine.ok_or_else(|| format!("the state machine {arn} does not exist"))?;
        let id = event["id"].as_str().unwrap_or_default();
        let name = format!("{id}_{}", Uuid::new_v4());
        let started = self.start_of(&machine, Request { name, input }).await;
        started.map(|_| ()).map_err(|error| error.to_string())
    }
}
