//! IAM policies as values: statements that allow, each with a reason for any wildcard.

use jsii::Value;
use serde_json::{Map, json};

/// Allows actions on resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub sid: &'static str,
    /// The actions by full name.
    pub actions: Vec<&'static str>,
    pub resources: Vec<String>,
    conditions: Map<String, Value>,
    /// The reason for a wildcard in a resource, if there is one.
    pub because: Option<&'static str>,
}

impl Statement {
    pub fn allow(sid: &'static str, actions: &[&'static str], resources: &[String]) -> Self {
        Self {
            sid,
            actions: actions.to_vec(),
            resources: resources.to_vec(),
            conditions: Map::new(),
            because: None,
        }
    }

    /// Adds a condition.
    #[must_use]
    pub fn when(mut self, operator: &str, key: &str, value: impl Into<Value>) -> Self {
        self.conditions.entry(operator).or_insert_with(|| json!({}))[key] = value.into();
        self
    }

    /// Only for items in these partitions of a table; a trailing `*` matches any text.
    #[must_use]
    pub fn on_keys(self, patterns: &[&str]) -> Self {
        self.when("ForAllValues:StringLike", "dynamodb:LeadingKeys", json!(patterns))
            // `ForAllValues` is also true if the request has no keys.
            .when("Null", "dynamodb:LeadingKeys", "false")
    }

    /// States the reason for a wildcard in a resource.
    #[must_use]
    pub fn wide(self, because: &'static str) -> Self {
        Self { because: Some(because), ..self }
    }

    pub fn to_json(&self) -> Value {
        let mut statement = json!({
            "Sid": self.sid, "Effect": "Allow", "Action": self.actions, "Resource": self.resources,
        });
        if !self.conditions.is_empty() {
            statement["Condition"] = Value::Object(self.conditions.clone());
        }
        statement
    }
}

pub fn document(statements: &[Statement]) -> Value {
    let statements: Vec<Value> = statements.iter().map(Statement::to_json).collect();
    json!({ "Version": "2012-10-17", "Statement": statements })
}
