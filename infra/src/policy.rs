//! What a role may do, as values: statements that allow, and say why where they cannot be narrow.

use jsii::Value;
use serde_json::{Map, json};

/// Actions that are allowed on resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its name in the policy.
    pub sid: &'static str,
    /// The actions, each by its full name.
    pub actions: Vec<&'static str>,
    /// The ARNs.
    pub resources: Vec<String>,
    conditions: Map<String, Value>,
    /// Why a resource has a wildcard, if one has.
    pub because: Option<&'static str>,
}

impl Statement {
    /// Allows actions on resources.
    pub fn allow(sid: &'static str, actions: &[&'static str], resources: &[String]) -> Self {
        Self {
            sid,
            actions: actions.to_vec(),
            resources: resources.to_vec(),
            conditions: Map::new(),
            because: None,
        }
    }

    /// Only if the condition holds as well.
    #[must_use]
    pub fn when(mut self, operator: &str, key: &str, value: impl Into<Value>) -> Self {
        self.conditions.entry(operator).or_insert_with(|| json!({}))[key] = value.into();
        self
    }

    /// Only on items in these partitions of a table; `*` at the end stands for any text.
    #[must_use]
    pub fn on_keys(self, patterns: &[&str]) -> Self {
        self.when("ForAllValues:StringLike", "dynamodb:LeadingKeys", json!(patterns))
            // Without any key in the request, "all of them" would be true of none.
            .when("Null", "dynamodb:LeadingKeys", "false")
    }

    /// A resource of it has a wildcard, for this reason.
    #[must_use]
    pub fn wide(self, because: &'static str) -> Self {
        Self { because: Some(because), ..self }
    }

    /// The statement as a policy has it.
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

/// A whole policy.
pub fn document(statements: &[Statement]) -> Value {
    let statements: Vec<Value> = statements.iter().map(Statement::to_json).collect();
    json!({ "Version": "2012-10-17", "Statement": statements })
}
