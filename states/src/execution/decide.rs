//! From a position to the one event that comes next, or to what must be waited for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::inputs::{integration, payload};
use super::scope::Sight;
use super::{
    Attempt, Call, Decision, Destination, Execution, Failed, Next, PAYLOAD_BYTES_MAX, Position,
    Stage, TaskRequest, VARIABLES_BYTES_MAX, Visit,
};
use crate::definition::{
    Choice, Resource, Retrier, SECONDS_MAX, Slot, State, Task, Template, Until, Yield, accept,
};
use crate::error_name;
use crate::history::{EVENTS_MAX, EventKind, Failure, TaskScheduled};
use crate::jsonata::{EvaluationError, Scope, fraction};
use crate::time::Timestamp;
use crate::token;

/// Why a decision has no event of its own.
enum Stopped {
    /// The state fails with `States.QueryEvaluationError`.
    Evaluation(EvaluationError),
    /// The execution fails with this at once.
    Fatal(Failure),
}

impl From<EvaluationError> for Stopped {
    fn from(error: EvaluationError) -> Stopped {
        Stopped::Evaluation(error)
    }
}

type Result<T> = std::result::Result<T, Stopped>;

impl Execution {
    pub(super) fn decide(&self, now: Timestamp) -> Decision {
        match &self.position {
            Position::Ended(outcome) => return Decision::Await(Next::Done(outcome.clone())),
            Position::Before => {
                let (input, role_arn) = (self.start.input.clone(), self.start.role_arn.clone());
                let kind = EventKind::ExecutionStarted { input, role_arn };
                return Decision::Record { previous_event_id: 0, kind };
            }
            Position::Between { .. } | Position::In(..) => {}
        }
        if now >= self.deadline() {
            let kind = EventKind::ExecutionTimedOut(Failure::new(error_name::TIMEOUT, None));
            return Decision::Record { previous_event_id: 0, kind };
        }
        if self.last_event_id + 1 >= EVENTS_MAX {
            let cause = format!(
                "The execution reached the maximum number of history events ({EVENTS_MAX})."
            );
            return self.record(EventKind::ExecutionFailed(Failure::new(
                error_name::RUNTIME,
                Some(cause),
            )));
        }
        match &self.position {
            Position::Between { to, value } => self.travel(to, value),
            Position::In(visit, stage) => match self.run(visit, stage, now) {
                Ok(decision) => decision,
                Err(Stopped::Fatal(failure)) => self.record(EventKind::ExecutionFailed(failure)),
                Err(Stopped::Evaluation(error)) => self.evaluation_failed(visit, stage, error),
            },
            Position::Before | Position::Ended(_) => unreachable!("both were answered above"),
        }
    }

    fn record(&self, kind: EventKind) -> Decision {
        Decision::Record { previous_event_id: self.last_event_id, kind }
    }

    /// When the machine's own timeout strikes.
    fn deadline(&self) -> Timestamp {
        self.start.started_at.plus_seconds(self.definition.timeout_s.unwrap_or(SECONDS_MAX))
    }

    fn travel(&self, to: &Destination, value: &Value) -> Decision {
        let name = match to {
            Destination::State(name) => name.clone(),
            Destination::End => {
                return self.record(EventKind::ExecutionSucceeded { output: value.to_string() });
            }
            Destination::Chosen { visit, variables, at } => {
                let State::Choice(choice) = self.state_of(visit) else {
                    unreachable!("only a choice is left so")
                };
                let mut scope = self.scope_over(
                    variables,
                    visit,
                    Sight::default(),
                    *at,
                    visit.entered_event_id,
                );
                let chosen = choose(choice, &mut scope).map(|chosen| match chosen {
                    Some(index) => Some(choice.rules[index].next.clone()),
                    None => choice.default.clone(),
                });
                match chosen {
                    Ok(Some(name)) => name,
                    // The same rules over the same values chose before: the history is another
                    // definition's, or the evaluation's fuse blew this time.
                    failed => {
                        let cause = failed.err().map_or_else(String::new, |error| error.cause);
                        let cause = Some(self.sentence(visit, &cause));
                        return self.record(EventKind::ExecutionFailed(Failure::new(
                            error_name::RUNTIME,
                            cause,
                        )));
                    }
                }
            }
        };
        let state_type = self.definition.states[&name].state_type();
        // As AWS has it: the first state's entry is led to by nothing.
        let previous_event_id = if self.last_event_id == 1 { 0 } else { self.last_event_id };
        Decision::Record {
            previous_event_id,
            kind: EventKind::StateEntered { state_type, name, input: value.to_string() },
        }
    }

    fn run(&self, visit: &Visit, stage: &Stage, now: Timestamp) -> Result<Decision> {
        match (self.state_of(visit), stage) {
            (State::Task(task), Stage::Entered) => self.schedule(visit, task, now),
            (State::Task(task), Stage::Open(attempt)) => Ok(self.watch(visit, task, attempt, now)),
            (State::Task(task), Stage::Succeeded(result)) => {
                let sight = Sight { result: Some(result), ..Sight::default() };
                self.exit(visit, &task.result, result, sight, "", now)
            }
            (State::Task(task), Stage::Failed(failed)) => self.recover(visit, task, failed, now),
            (_, Stage::Failed(failed)) => {
                Ok(self.record(EventKind::ExecutionFailed(failed.failure.clone())))
            }
            (State::Choice(choice), _) => self.choice(visit, choice, now),
            (State::Wait { until, result, .. }, _) => {
                let until = self.until(visit, until)?;
                if now < until {
                    return Ok(Decision::Await(Next::WaitUntil(until.min(self.deadline()))));
                }
                self.exit(visit, result, &visit.input, Sight::default(), "", now)
            }
            (State::Pass { result, .. } | State::Succeed { result }, _) => {
                self.exit(visit, result, &visit.input, Sight::default(), "", now)
            }
            (State::Fail { error, cause }, _) => {
                let mut scope = self.scope(visit, Sight::default(), now);
                let mut text = |slot: &Option<Slot>, field| {
                    slot.as_ref()
                        .map(|slot| slot.evaluate(&mut scope, field, "string", accept::text))
                        .transpose()
                };
                let failure =
                    Failure { error: text(error, "Error")?, cause: text(cause, "Cause")? };
                Ok(self.record(EventKind::ExecutionFailed(failure)))
            }
        }
    }

    fn choice(&self, visit: &Visit, choice: &Choice, now: Timestamp) -> Result<Decision> {
        let mut scope = self.scope(visit, Sight::default(), now);
        let chosen = choose(choice, &mut scope)?;
        let (result, prefix) = match chosen {
            Some(index) => (&choice.rules[index].result, format!("Choices[{index}]/")),
            None if choice.default.is_some() => (&choice.result, String::new()),
            None => {
                let cause =
                    self.sentence(visit, "No choice rule matched and the state has no 'Default'.");
                return Err(Stopped::Fatal(Failure::new(
                    error_name::NO_CHOICE_MATCHED,
                    Some(cause),
                )));
            }
        };
        self.exit_in(&mut scope, visit, result, &visit.input, &prefix)
    }

    /// When a wait ends. Evaluated over the moment of entry, so that asking again gives the same
    /// time.
    fn until(&self, visit: &Visit, until: &Until) -> Result<Timestamp> {
        let mut scope = self.scope(visit, Sight::default(), visit.entered_at);
        Ok(match until {
            Until::Seconds(slot) => {
                let seconds = slot.evaluate(&mut scope, "Seconds", "number", accept::seconds)?;
                visit.entered_at.plus_seconds(seconds)
            }
            Until::Timestamp(slot) => {
                slot.evaluate(&mut scope, "Timestamp", "timestamp", accept::time)?
            }
        })
    }

    fn schedule(&self, visit: &Visit, task: &Task, now: Timestamp) -> Result<Decision> {
        let (seed, arn) = (&self.start.token_seed, &self.start.execution_arn);
        let token =
            task.resource.waits_for_token().then(|| token::mint(seed, arn, self.last_event_id + 1));
        let mut scope =
            self.scope(visit, Sight { token: token.as_deref(), ..Sight::default() }, now);
        let arguments = match &task.arguments {
            Some(template) => template.evaluate(&mut scope, "Arguments")?,
            None => Value::clone(&visit.input),
        };
        let mut limit = |slot: &Option<Slot>, field| {
            slot.as_ref()
                .map(|slot| slot.evaluate(&mut scope, field, "number", accept::limit))
                .transpose()
        };
        let timeout_s = limit(&task.timeout, "TimeoutSeconds")?;
        let heartbeat_s = limit(&task.heartbeat, "HeartbeatSeconds")?;
        let text = self.bounded(visit, &arguments)?;
        Ok(self.record(match &task.resource {
            // Nobody can send a heartbeat for a plain function, and its event has no member for
            // one.
            Resource::Function { arn } => {
                EventKind::LambdaFunctionScheduled { resource: arn.clone(), input: text, timeout_s }
            }
            Resource::Service { resource_type, resource, .. } => {
                EventKind::TaskScheduled(TaskScheduled {
                    resource_type: resource_type.clone(),
                    resource: resource.clone(),
                    region: self
                        .start
                        .execution_arn
                        .split(':')
                        .nth(3)
                        .unwrap_or_default()
                        .to_owned(),
                    parameters: text,
                    timeout_s,
                    heartbeat_s,
                })
            }
        }))
    }

    fn watch(&self, visit: &Visit, task: &Task, attempt: &Attempt, now: Timestamp) -> Decision {
        if attempt.call == Call::Scheduled {
            return self.record(EventKind::TaskStarted(integration(&task.resource)));
        }
        let timeout_at =
            attempt.scheduled_at.plus_seconds(attempt.timeout_s.unwrap_or(SECONDS_MAX));
        let silent_at = attempt.heartbeat_s.map(|seconds| attempt.beat_at.plus_seconds(seconds));
        let (strikes_at, error) = match silent_at {
            Some(silent_at) if silent_at < timeout_at => (silent_at, error_name::HEARTBEAT_TIMEOUT),
            _ => (timeout_at, error_name::TIMEOUT),
        };
        if now >= strikes_at {
            let failure = Failure::new(error, None);
            return self.record(EventKind::TaskTimedOut(integration(&task.resource), failure));
        }
        let wake_at = strikes_at.min(self.deadline());
        Decision::Await(match attempt.call {
            Call::Submitted => Next::WaitUntil(wake_at),
            Call::Scheduled | Call::Started => Next::RunTask(TaskRequest {
                event_id: attempt.event_id,
                state: visit.state.clone(),
                resource: task.resource.arn().to_owned(),
                arguments: Value::clone(&attempt.arguments),
                token: attempt.token.clone(),
                timeout_at,
                heartbeat_s: attempt.heartbeat_s,
                wake_at,
            }),
        })
    }

    fn recover(
        &self,
        visit: &Visit,
        task: &Task,
        failed: &Failed,
        now: Timestamp,
    ) -> Result<Decision> {
        let give_up = || Ok(self.record(EventKind::ExecutionFailed(failed.failure.clone())));
        if failed.while_catching {
            return give_up();
        }
        if let Some((index, retrier)) = self.retrier(visit, &failed.failure) {
            let failures = visit.failures.get(&index).copied().unwrap_or_default();
            if failures <= retrier.max_attempts {
                let retry_at =
                    failed.at.plus_millis(self.delay_ms(retrier, failures, failed.event_id));
                if now < retry_at {
                    return Ok(Decision::Await(Next::WaitUntil(retry_at.min(self.deadline()))));
                }
                return self.schedule(visit, task, now);
            }
        }
        let error = failed.failure.error.as_deref().unwrap_or_default();
        let caught =
            task.catch.iter().position(|catcher| error_name::matches(&catcher.error_equals, error));
        let Some(index) = caught else { return give_up() };
        let cause = failed.failure.cause.as_deref().unwrap_or_default();
        let error_output = json!({"Error": error, "Cause": cause});
        let sight = Sight { error_output: Some(error_output.clone()), ..Sight::default() };
        self.exit(
            visit,
            &task.catch[index].result,
            &error_output,
            sight,
            &format!("Catch[{index}]/"),
            now,
        )
    }

    /// The retrier that a failure of this visit falls to, exhausted or not.
    pub(super) fn retrier(&self, visit: &Visit, failure: &Failure) -> Option<(usize, &Retrier)> {
        let State::Task(task) = self.state_of(visit) else { return None };
        let error = failure.error.as_deref().unwrap_or_default();
        task.retry
            .iter()
            .enumerate()
            .find(|(_, retrier)| error_name::matches(&retrier.error_equals, error))
    }

    /// How long after a retrier's `failures`-th failure the next attempt is made.
    fn delay_ms(&self, retrier: &Retrier, failures: u64, event_id: u64) -> i64 {
        let power = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let backed_off = retrier.interval_s as f64 * retrier.backoff_rate.powi(power);
        let seconds = backed_off.min(retrier.max_delay_s.unwrap_or(SECONDS_MAX) as f64);
        let share = if retrier.full_jitter {
            let start = &self.start;
            fraction(&token::digest(&[
                &start.token_seed,
                &start.execution_arn,
                "jitter",
                &event_id.to_string(),
            ]))
        } else {
            1.0
        };
        (seconds * share * 1_000.0) as i64
    }

    fn exit(
        &self,
        visit: &Visit,
        result: &Yield,
        default: &Value,
        sight: Sight<'_>,
        prefix: &str,
        now: Timestamp,
    ) -> Result<Decision> {
        self.exit_in(&mut self.scope(visit, sight, now), visit, result, default, prefix)
    }

    fn exit_in(
        &self,
        scope: &mut Scope,
        visit: &Visit,
        result: &Yield,
        default: &Value,
        prefix: &str,
    ) -> Result<Decision> {
        let mut assigned_variables = BTreeMap::new();
        for (name, template) in &result.assign {
            let value = template.evaluate(scope, &format!("{prefix}Assign/{name}"))?;
            assigned_variables.insert(name.clone(), self.bounded(visit, &value)?);
        }
        self.check_variables(visit, &assigned_variables)?;
        let evaluate = |template: &Template| template.evaluate(scope, &format!("{prefix}Output"));
        let output = match result.output.as_ref().map(evaluate).transpose()? {
            Some(value) => self.bounded(visit, &value)?,
            None => self.bounded(visit, default)?,
        };
        let state_type = self.state_of(visit).state_type();
        let name = visit.state.clone();
        Ok(self.record(EventKind::StateExited { state_type, name, output, assigned_variables }))
    }

    /// The text of a value that becomes an input, an output or arguments.
    fn bounded(&self, visit: &Visit, value: &Value) -> Result<String> {
        payload(value, &visit.state).map_err(Stopped::Fatal)
    }

    fn check_variables(&self, visit: &Visit, assigned: &BTreeMap<String, String>) -> Result<()> {
        if assigned.is_empty() {
            return Ok(());
        }
        let added: usize = assigned.values().map(String::len).sum();
        let kept = self.variables.iter().filter(|(name, _)| !assigned.contains_key(*name));
        let total: usize = added + kept.map(|(_, value)| value.to_string().len()).sum::<usize>();
        if added <= PAYLOAD_BYTES_MAX && total <= VARIABLES_BYTES_MAX {
            return Ok(());
        }
        let cause = self.sentence(
            visit,
            "The variables assigned exceed the maximum number of bytes service limit.",
        );
        Err(Stopped::Fatal(Failure::new(error_name::DATA_LIMIT_EXCEEDED, Some(cause))))
    }

    fn evaluation_failed(&self, visit: &Visit, stage: &Stage, error: EvaluationError) -> Decision {
        let cause = self.sentence(visit, &error.cause);
        let previous_event_id = match stage {
            Stage::Entered => visit.previous_event_id,
            _ => self.last_event_id,
        };
        let kind = EventKind::EvaluationFailed {
            state: visit.state.clone(),
            location: Some(error.location),
            failure: Failure::new(error_name::QUERY_EVALUATION_ERROR, Some(cause)),
        };
        Decision::Record { previous_event_id, kind }
    }

    fn sentence(&self, visit: &Visit, cause: &str) -> String {
        let (state, id) = (&visit.state, visit.entered_event_id);
        format!(
            "An error occurred while executing the state '{state}' (entered at the event id #{id}). {cause}"
        )
    }
}

/// The first rule whose condition holds.
fn choose(
    choice: &Choice,
    scope: &mut Scope,
) -> std::result::Result<Option<usize>, EvaluationError> {
    for (index, rule) in choice.rules.iter().enumerate() {
        let location = format!("Choices[{index}]/Condition");
        if rule.condition.evaluate(scope, &location, "boolean", accept::boolean)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}
