//! From events to a position.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Attempt, Call, Destination, Execution, Failed, Outcome, Position, Stage, StartError, Visit,
};
use crate::definition::{State, Transition};
use crate::error_name;
use crate::history::{Event, EventKind, Failure};
use crate::token;

/// Why a history cannot be replayed: it is damaged, or belongs to another definition.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The execution could not even be started with this.
    #[error("execution was started with what it cannot start with")]
    Start(#[from] StartError),
    /// An event is missing, doubled or out of order.
    #[error("event {found} follows event {last}")]
    Order {
        /// The id of the last event that fitted.
        last: u64,
        /// The id that came.
        found: u64,
    },
    /// The event cannot happen where the execution stands.
    #[error("event {id} ({event_type}) cannot happen here")]
    Misfit {
        /// Its id.
        id: u64,
        /// Its type.
        event_type: String,
    },
    /// A payload in the event is not JSON text.
    #[error("event {id} holds text that is not JSON")]
    NotJson {
        /// Its id.
        id: u64,
        /// What the parser says.
        #[source]
        source: serde_json::Error,
    },
}

impl Execution {
    /// Folds one event that is durable.
    ///
    /// # Errors
    /// The event does not fit; the execution is unchanged. Nothing that [`Execution::next`] or an
    /// input proposed is refused, if nothing else was applied in between.
    pub fn apply(&mut self, event: &Event) -> Result<(), ReplayError> {
        if event.id != self.last_event_id + 1 {
            return Err(ReplayError::Order { last: self.last_event_id, found: event.id });
        }
        let position = self.fold(event)?;
        self.position = position;
        self.last_event_id = event.id;
        Ok(())
    }

    fn fold(&mut self, event: &Event) -> Result<Position, ReplayError> {
        let misfit = || ReplayError::Misfit { id: event.id, event_type: event.kind.type_name() };
        match (&self.position, &event.kind) {
            (Position::Ended(_), _) => Err(misfit()),
            (Position::Before, EventKind::ExecutionStarted { .. }) => Ok(Position::Between {
                to: Destination::State(self.definition.start_at.clone()),
                value: Arc::clone(&self.input),
            }),
            (Position::Before, _) => Err(misfit()),
            (_, EventKind::ExecutionSucceeded { output }) => {
                Ok(Position::Ended(Outcome::Succeeded(output.clone())))
            }
            (_, EventKind::ExecutionFailed(failure)) => {
                Ok(Position::Ended(Outcome::Failed(failure.clone())))
            }
            (_, EventKind::ExecutionTimedOut(_)) => Ok(Position::Ended(Outcome::TimedOut)),
            (_, EventKind::ExecutionAborted(failure)) => {
                Ok(Position::Ended(Outcome::Aborted(failure.clone())))
            }
            (Position::Between { value, .. }, EventKind::StateEntered { state_type, name, .. }) => {
                let known = self
                    .definition
                    .states
                    .get(name)
                    .is_some_and(|state| state.state_type() == *state_type);
                if !known {
                    return Err(misfit());
                }
                Ok(Position::In(Visit::begin(name, event, value), Stage::Entered))
            }
            (Position::In(visit, stage), EventKind::StateExited { name, .. })
                if visit.state == *name =>
            {
                let (visit, stage) = (visit.clone(), stage.clone());
                self.leave(visit, &stage, event)
            }
            (Position::In(visit, stage), _) => {
                let mut visit = visit.clone();
                let stage = self.stage(&mut visit, stage, event)?.ok_or_else(misfit)?;
                Ok(Position::In(visit, stage))
            }
            (Position::Between { .. }, _) => Err(misfit()),
        }
    }

    /// The stage of a visit after an event that neither enters nor leaves the state; `None` if it
    /// does not fit.
    fn stage(
        &self,
        visit: &mut Visit,
        stage: &Stage,
        event: &Event,
    ) -> Result<Option<Stage>, ReplayError> {
        let json = |text: &str| json(event.id, text);
        Ok(match (stage, &event.kind) {
            (Stage::Entered | Stage::Failed(_), EventKind::TaskScheduled(task)) => {
                let limits = (task.timeout_s, task.heartbeat_s);
                Some(Stage::Open(self.attempt(visit, event, json(&task.parameters)?, limits)))
            }
            (
                Stage::Entered | Stage::Failed(_),
                EventKind::LambdaFunctionScheduled { input, timeout_s, .. },
            ) => Some(Stage::Open(self.attempt(visit, event, json(input)?, (*timeout_s, None)))),
            (Stage::Open(attempt), EventKind::TaskStarted(_))
                if attempt.call == Call::Scheduled =>
            {
                Some(Stage::Open(Attempt { call: Call::Started, ..attempt.clone() }))
            }
            (Stage::Open(attempt), EventKind::TaskSubmitted(..))
                if attempt.call == Call::Started =>
            {
                Some(Stage::Open(Attempt { call: Call::Submitted, ..attempt.clone() }))
            }
            (Stage::Open(_), EventKind::TaskSucceeded(_, output)) => {
                Some(Stage::Succeeded(Arc::new(json(output)?)))
            }
            (
                Stage::Open(_),
                EventKind::TaskFailed(_, failure) | EventKind::TaskTimedOut(_, failure),
            ) => Some(self.failed(visit, event, failure, false)),
            (stage, EventKind::EvaluationFailed { location, failure, .. }) => {
                let in_catch =
                    location.as_deref().is_some_and(|location| location.starts_with("Catch["));
                let while_catching = in_catch && matches!(stage, Stage::Failed(_));
                Some(self.failed(visit, event, failure, while_catching))
            }
            _ => None,
        })
    }

    fn attempt(
        &self,
        visit: &Visit,
        event: &Event,
        arguments: Value,
        limits: (Option<u64>, Option<u64>),
    ) -> Attempt {
        let waits =
            matches!(self.state_of(visit), State::Task(task) if task.resource.waits_for_token());
        let (timeout_s, heartbeat_s) = limits;
        Attempt {
            event_id: event.id,
            scheduled_at: event.timestamp,
            beat_at: event.timestamp,
            arguments: Arc::new(arguments),
            token: waits
                .then(|| token::mint(&self.start.token_seed, &self.start.execution_arn, event.id)),
            timeout_s,
            heartbeat_s,
            call: Call::Scheduled,
        }
    }

    fn failed(
        &self,
        visit: &mut Visit,
        event: &Event,
        failure: &Failure,
        while_catching: bool,
    ) -> Stage {
        visit.failed += 1;
        if let Some((index, _)) = self.retrier(visit, failure) {
            *visit.failures.entry(index).or_default() += 1;
        }
        Stage::Failed(Failed {
            event_id: event.id,
            failure: failure.clone(),
            at: event.timestamp,
            while_catching,
        })
    }

    fn leave(
        &mut self,
        visit: Visit,
        stage: &Stage,
        event: &Event,
    ) -> Result<Position, ReplayError> {
        let EventKind::StateExited { output, assigned_variables, .. } = &event.kind else {
            unreachable!("the caller matched the event");
        };
        let value = Arc::new(json(event.id, output)?);
        let mut variables = self.variables.clone();
        for (name, text) in assigned_variables {
            variables.insert(name.clone(), Arc::new(json(event.id, text)?));
        }
        let before = std::mem::replace(&mut self.variables, variables);
        let to = match (self.state_of(&visit), stage) {
            (State::Choice(_), _) => {
                Destination::Chosen { visit, variables: before, at: event.timestamp }
            }
            (State::Task(task), Stage::Failed(failed)) => {
                let error = failed.failure.error.as_deref().unwrap_or_default();
                match task
                    .catch
                    .iter()
                    .find(|catcher| error_name::matches(&catcher.error_equals, error))
                {
                    Some(catcher) => Destination::State(catcher.next.clone()),
                    None => {
                        return Err(ReplayError::Misfit {
                            id: event.id,
                            event_type: event.kind.type_name(),
                        });
                    }
                }
            }
            (State::Task(task), _) => Destination::of(&task.next),
            (State::Wait { next, .. } | State::Pass { next, .. }, _) => Destination::of(next),
            (State::Succeed { .. } | State::Fail { .. }, _) => Destination::End,
        };
        Ok(Position::Between { to, value })
    }

    pub(super) fn state_of(&self, visit: &Visit) -> &State {
        &self.definition.states[&visit.state]
    }
}

impl Destination {
    fn of(transition: &Transition) -> Destination {
        match transition {
            Transition::Next(name) => Destination::State(name.clone()),
            Transition::End => Destination::End,
        }
    }
}

impl Visit {
    fn begin(state: &str, event: &Event, input: &Arc<Value>) -> Visit {
        Visit {
            state: state.to_owned(),
            entered_event_id: event.id,
            previous_event_id: event.previous_event_id,
            entered_at: event.timestamp,
            input: Arc::clone(input),
            failures: Default::default(),
            failed: 0,
        }
    }
}

fn json(id: u64, text: &str) -> Result<Value, ReplayError> {
    serde_json::from_str(text).map_err(|source| ReplayError::NotJson { id, source })
}
