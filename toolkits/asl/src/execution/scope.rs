//! The data an expression can read: input, context object and variables.

use serde_json::{Value, json};

use super::Execution;
use super::thread::{Item, View};
use crate::definition::Kind;
use crate::expression::Scope;
use crate::time::Timestamp;
use crate::token;

impl Execution {
    /// `moment` differs between decisions, so that no two evaluations draw the same random values.
    pub(super) fn scope<'a>(
        &self,
        view: View<'a>,
        context: &'a dyn Fn() -> Value,
        now: Timestamp,
        moment: &str,
    ) -> Scope<'a> {
        let start = &self.start;
        let seed = token::digest(&[&start.token_seed, &start.execution_arn, "scope", moment]);
        Scope::new(&view.visit.input, view.variables, context, now, hex::encode(seed))
    }

    /// The context object, in AWS's order.
    pub(super) fn context(
        &self,
        view: View<'_>,
        item: Option<&Item>,
        token: Option<&str>,
    ) -> Value {
        let (start, visit) = (&self.start, view.visit);
        let mut context = json!({
            "Execution": {
                "Id": start.execution_arn,
                "Input": *self.input,
                "StartTime": start.started_at.to_string(),
                "Name": start.execution_name,
                "RoleArn": start.role_arn,
                "RedriveCount": self.redrives,
            },
            "StateMachine": {"Id": start.state_machine_arn, "Name": start.state_machine_name},
            "State": {
                "Name": visit.state,
                "EnteredTime": visit.entered_at.to_string(),
            },
        });
        if let Some(at) = self.redriven_at {
            context["Execution"]["RedriveTime"] = at.to_string().into();
        }
        if matches!(view.state.kind, Kind::Task(_)) {
            context["State"]["RetryCount"] = visit.failed.into();
        }
        if let Some(item) = item.or(view.item) {
            context["Map"] = json!({"Item": {"Index": item.index, "Value": item.value}});
        }
        if let Some(token) = token {
            context["Task"] = json!({"Token": token});
        }
        context
    }
}
