//! The hashes of a session's verdict that its executions in an account have recorded.

use std::collections::BTreeSet;

use anyhow::anyhow;
use aws_sdk_sfn::types::HistoryEvent;
use journal::id::SessionId;
use journal::item::Hash;
use workflow::execution::{self, Past, RESUMES_MAX, What};

use super::{Clients, Execution, said};

/// How many of the newest events of a history are searched: the poller's last reply is among them.
const HISTORY_EVENTS_MAX: i32 = 64;

/// Most executions that are read because records name them: one started the session, further ones are forged.
const NAMED_MAX: usize = 16;

impl Clients {
    /// The hashes of the session's verdict that its executions have recorded, and why those of some are unknown; `named`
    /// are the ARNs that its records name.
    ///
    /// # Errors
    /// When a request fails.
    pub async fn heads(
        &self,
        id: &SessionId,
        named: &BTreeSet<String>,
    ) -> anyhow::Result<(BTreeSet<Hash>, Vec<String>)> {
        let (mut heads, mut unmet) = (BTreeSet::new(), Vec::new());
        let machine = self.execution_arn("")?;
        // EventBridge names executions itself. The record may be forged, so its execution must be of our machine.
        for arn in named.iter().take(NAMED_MAX) {
            let found = arn.starts_with(&machine) && self.recorded(id, arn, &mut heads).await?;
            if !found {
                unmet.push(format!("its execution {arn} is not in this account's state machine"));
            }
        }
        if named.len() > NAMED_MAX {
            unmet.push(format!(
                "its records name {} executions; only the first {NAMED_MAX} were read",
                named.len()
            ));
        }
        for resumes in 0..=RESUMES_MAX {
            let arn = format!("{machine}{}", execution::name(id, resumes));
            if !self.recorded(id, &arn, &mut heads).await? && resumes > 0 {
                break;
            }
        }
        Ok((heads, unmet))
    }

    /// Adds the heads that an execution has recorded; returns whether it exists.
    async fn recorded(
        &self,
        id: &SessionId,
        arn: &str,
        heads: &mut BTreeSet<Hash>,
    ) -> anyhow::Result<bool> {
        let Some(described) = self.described(arn).await? else { return Ok(false) };
        heads.extend(execution::heads_in_history(id, &self.newest_events(arn).await?));
        if let Execution::Over { output, .. } = described.execution {
            heads.extend(execution::head_in_output(id, &output));
        }
        Ok(true)
    }

    /// The newest events of an execution's history.
    async fn newest_events(&self, arn: &str) -> anyhow::Result<Vec<Past>> {
        let history = self.executions.get_execution_history().execution_arn(arn);
        let answer = history.reverse_order(true).max_results(HISTORY_EVENTS_MAX).send().await;
        let answer = answer.map_err(|error| anyhow!("{}", said(&error)))?;
        Ok(answer.events().iter().map(past).collect())
    }
}

fn past(event: &HistoryEvent) -> Past {
    let entered = event.state_entered_event_details().map(|entered| entered.name().to_owned());
    let output = event.task_succeeded_event_details().and_then(|succeeded| succeeded.output());
    let what = match (entered, output) {
        (Some(state), _) => What::Entered(state),
        (None, Some(output)) => What::Succeeded(output.to_owned()),
        (None, None) => What::Other,
    };
    Past { id: event.id(), previous: event.previous_event_id(), what }
}
