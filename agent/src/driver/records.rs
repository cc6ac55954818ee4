//! Appends steps to the journal, and takes them up.

use std::time::Duration;

use graph::panics;
use graph::profile::Observed;
use journal::chain::{AppendError, Body, Head, append};
use journal::step::{Step, StepBody};
use journal::store::Store;
use serde_json::Value;

use super::{Driven, Driver, may_pass};
use crate::measure;

/// Pause between attempts to write a step while the journal is unavailable. The attempts end when the
/// lease expires, because heartbeats fail too.
const APPEND_PAUSE: Duration = Duration::from_secs(1);

impl<S: Store> Driver<S> {
    pub(super) async fn append(&mut self, body: Body) -> Result<Step<Value>, AppendError> {
        let begun_at = self.session.hlc.clock().now();
        loop {
            let session = &self.session;
            let appended = append(
                &session.store,
                &session.hlc,
                &session.author,
                &self.head,
                session.epoch,
                body.clone(),
            )
            .await;
            match appended {
                Err(AppendError::Store(error)) if may_pass(&error) && !self.stop.is_cancelled() => {
                    tracing::warn!(session_id = %session.author.session, %error, "Cannot write a step; retrying.");
                    session.hlc.clock().sleep(APPEND_PAUSE).await;
                }
                decided => {
                    measure::appended(session.hlc.clock().now().since(begun_at));
                    return decided;
                }
            }
        }
    }

    pub(super) async fn fold(&mut self, step: Step<Value>) -> Result<(), Driven> {
        self.head = Head::after(&step);
        if self.run.named_model().is_some() {
            self.requests.fold(&step);
        }
        if let StepBody::End { .. } = &step.body {
            measure::observed(&self.observe(&step));
            return Err(Driven::Ended(Box::new(step)));
        }
        let folded = self.run.fold(&step);
        let observed = self.observe(&step);
        let is_own = step.runner == self.session.author.runner;
        self.spans.fold(&step, is_own, &observed.attributes);
        match folded {
            Ok(()) => {
                measure::observed(&observed);
                Ok(())
            }
            Err(error) => Err(self.give_up(error.finish()).await),
        }
    }

    /// What the agent observes of a step. Metrics never end a session: a panic observes nothing.
    pub(super) fn observe(&self, step: &Step<Value>) -> Observed {
        panics::caught("the observation of a step", || (self.profile.observe)(&self.run, step))
            .unwrap_or_else(|panicked| {
                tracing::warn!(session_id = %self.session.author.session, %panicked, "A step was not observed.");
                Observed::default()
            })
    }
}
