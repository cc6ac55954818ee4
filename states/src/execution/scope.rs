//! What an expression of a state can see: `$states` with the context object, and the variables.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Execution, Visit};
use crate::definition::State;
use crate::jsonata::Scope;
use crate::time::Timestamp;
use crate::token;

/// What an expression may see beyond the state's input.
#[derive(Default)]
pub(super) struct Sight<'a> {
    pub(super) result: Option<&'a Value>,
    pub(super) error_output: Option<Value>,
    pub(super) token: Option<&'a str>,
}

impl Execution {
    pub(super) fn scope(&self, visit: &Visit, sight: Sight<'_>, now: Timestamp) -> Scope {
        self.scope_over(&self.variables, visit, sight, now, self.last_event_id)
    }

    /// `moment` is the newest event at the time of the evaluation: no two evaluations draw the same
    /// randomness.
    pub(super) fn scope_over(
        &self,
        variables: &BTreeMap<String, Arc<Value>>,
        visit: &Visit,
        sight: Sight<'_>,
        now: Timestamp,
        moment: u64,
    ) -> Scope {
        let mut states = Map::new();
        states.insert("input".to_owned(), Value::clone(&visit.input));
        states.insert("context".to_owned(), self.context(visit, sight.token));
        if let Some(result) = sight.result {
            states.insert("result".to_owned(), result.clone());
        }
        if let Some(error_output) = sight.error_output {
            states.insert("errorOutput".to_owned(), error_output);
        }
        let start = &self.start;
        let seed =
            token::digest(&[&start.token_seed, &start.execution_arn, "scope", &moment.to_string()]);
        Scope::new(Value::Object(states), variables, now, &hex::encode(seed))
    }

    /// The context object, in AWS's order.
    fn context(&self, visit: &Visit, token: Option<&str>) -> Value {
        let start = &self.start;
        let mut context = json!({
            "Execution": {
                "Id": start.execution_arn,
                "Input": *self.input,
                "StartTime": start.started_at.to_string(),
                "Name": start.execution_name,
                "RoleArn": start.role_arn,
                "RedriveCount": 0,
            },
            "StateMachine": {"Id": start.state_machine_arn, "Name": start.state_machine_name},
            "State": {
                "Name": visit.state,
                "EnteredTime": visit.entered_at.to_string(),
            },
        });
        if matches!(self.state_of(visit), State::Task(_)) {
            context["State"]["RetryCount"] = visit.failed.into();
        }
        if let Some(token) = token {
            context["Task"] = json!({"Token": token});
        }
        context
    }
}
