//! The driver: it does what the agent's graph asks for and journals each outcome before it uses it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use graph::definition::Finish;
use graph::next::{Ask, Intent, Next, Request, Work};
use graph::outcome::{Brought, ToolOutcome};
use graph::profile::{Observed, Profile};
use graph::run::Run;
use journal::chain::{AppendError, Body, Head, append};
use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use journal::id::SessionId;
use journal::item::Hash;
use journal::limits::DEADLINE_BEFORE_EXPIRY;
use journal::step::{Ending, Step, StepBody, Usage};
use journal::store::{Error, Retry, Store};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::measure;
use crate::model::Models;
use crate::session::Session;
use crate::tool::{Toolbox, built_in};
use crate::trace::Spans;

/// After being told to stop, how long the driver waits for what is under way, to journal it.
const GRACE: Duration = Duration::from_secs(10);

/// A model is asked again up to so much later than the graph says, as a part of the pause.
const JITTER: f64 = 0.5;

/// How long it waits between two tries to write a step while the journal is out of reach. The
/// beat, which fails with it, ends the trying.
const APPEND_PAUSE: Duration = Duration::from_secs(1);

/// Least time of a tool call that is begun, however little is left of the run's.
const TOOL_TIME_MIN: Duration = Duration::from_secs(1);

/// How long before a session's deadline a question expires at the latest: what its route leads to
/// takes time.
const ROUTE_AFTER_EXPIRY: Duration = Duration::from_secs(3_600);

/// How a drive ended.
#[derive(Debug)]
pub enum Driven {
    /// This step ended the session, whoever wrote it.
    Ended(Box<Step<Value>>),
    /// A question is open, at this step.
    Suspended {
        /// Its number.
        question: u32,
    },
    /// Another runner has the session: write nothing more.
    Fenced,
    /// It was told to stop; the session can be resumed by another runner.
    Stopped,
    /// The journal refuses what must be written.
    Broken(AppendError),
}

/// One session's drive.
#[derive(Debug)]
pub struct Driver<S> {
    /// The session.
    pub session: Session<S>,
    /// The chain's end as this runner knows it.
    pub head: Head,
    /// The machine, with all steps up to the head folded.
    pub run: Run,
    /// The session's tools.
    pub toolbox: Arc<Toolbox<S>>,
    /// The models.
    pub models: Models,
    /// How long a tool call may take.
    pub tool_timeout: Duration,
    /// Tells the driver to stop.
    pub stop: CancellationToken,
    /// What is told of its effects.
    pub spans: Spans,
    /// What the agent asks to be observed.
    pub profile: &'static Profile,
}

/// What performing a request brought.
struct Performed {
    request: Request,
    started_at: Stamp,
    brought: Brought,
    usage: Usage,
}

type UnderWay = FuturesUnordered<BoxFuture<'static, Performed>>;

impl<S: Store> Driver<S> {
    /// Drives until the session ends, waits, or is no longer this runner's.
    pub async fn drive(mut self) -> Driven {
        let mut under_way = UnderWay::new();
        let mut begun = BTreeSet::new();
        loop {
            if self.stop.is_cancelled() {
                return self.wind_down(under_way).await;
            }
            let done = match self.run.next() {
                Next::Perform(requests) => self.perform(requests, &mut under_way, &mut begun).await,
                Next::Note(note) => self.record(note.body()).await,
                Next::Ask(ask) => self.record(self.within_the_session(ask).body()).await,
                Next::Sleep(sleep) => self.sleep(sleep).await,
                Next::End(finish) => self.record(finish.body()).await,
                Next::Wait(open) => Err(Driven::Suspended { question: open.question_id }),
                Next::Claim | Next::Closed => Err(Driven::Fenced),
            };
            if let Err(driven) = done {
                if let Driven::Ended(end) = &driven {
                    self.spans.abandon(end);
                }
                return driven;
            }
        }
    }

    /// Starts what is not under way yet, then waits for one outcome and journals it.
    async fn perform(
        &mut self,
        requests: Vec<Request>,
        under_way: &mut UnderWay,
        begun: &mut BTreeSet<u32>,
    ) -> Result<(), Driven> {
        for request in requests {
            if begun.contains(&request.effect.call) {
                continue;
            }
            if let Work::Tool { intent: Intent::Needed, .. } = &request.work {
                return self.record(request.intent()).await;
            }
            begun.insert(request.effect.call);
            under_way.push(self.start(request));
        }
        // Stopping drops nothing: what is under way is waited for in `wind_down`.
        let performed = tokio::select! {
            performed = under_way.next() => performed,
            () = self.stop.cancelled() => return Ok(()),
        };
        match performed {
            Some(performed) => {
                begun.remove(&performed.request.effect.call);
                self.record_outcome(performed).await
            }
            None => Err(Driven::Fenced),
        }
    }

    fn start(&mut self, request: Request) -> BoxFuture<'static, Performed> {
        let clock = self.session.hlc.clock().clone();
        let policy = match &request.work {
            Work::Policy { chat } => Some(self.run.policy(chat)),
            Work::Model { .. } | Work::Tool { .. } => None,
        };
        let (toolbox, models) = (Arc::clone(&self.toolbox), self.models.clone());
        let timeout = self.time_of_call(&request);
        let share = share(&self.session.author.session, &request);
        let span = self.spans.begin(&request, clock.now());
        Box::pin(async move {
            if let Some(not_before) = request.not_before {
                let pause = not_before.since(clock.now());
                let jitter = if request.call().is_some() { 0.0 } else { share * JITTER };
                clock.sleep(pause + pause.mul_f64(jitter)).await;
            }
            let started_at = clock.now();
            let (brought, usage) = match (&request.work, policy) {
                (Work::Tool { call, .. }, _) => {
                    let outcome = toolbox.call_from(span, call, timeout).await;
                    let usage = built_in::usage(call, &outcome);
                    (brought(outcome), usage)
                }
                (_, Some(reply)) => (Brought::Reply(reply), Usage::default()),
                (Work::Model { model, chat }, None) => {
                    let attempt = models.ask(model, chat, &clock).await;
                    let brought = attempt.brought.map_or_else(Brought::Failure, Brought::Reply);
                    (brought, attempt.usage)
                }
                (Work::Policy { .. }, None) => unreachable!("the policy was asked above"),
            };
            Performed { request, started_at, brought, usage }
        })
    }

    /// How long a call may take: as long as any, or what is left of the run's time. A call that changes
    /// the world has all of its time: of one that is cut off nobody knows what it did.
    fn time_of_call(&self, request: &Request) -> Duration {
        let Work::Tool { intent: Intent::NotNeeded, .. } = &request.work else {
            return self.tool_timeout;
        };
        let now = self.session.hlc.clock().now();
        let begins = request.not_before.map_or(now, |not_before| now.max(not_before));
        let Some(left) = self.run.time_left(begins) else { return self.tool_timeout };
        // Whole milliseconds, as it is told when nothing came.
        let left = Duration::from_millis(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        left.max(TOOL_TIME_MIN).min(self.tool_timeout)
    }

    async fn record_outcome(&mut self, performed: Performed) -> Result<(), Driven> {
        let Performed { request, started_at, brought, usage } = performed;
        let elapsed = self.session.hlc.clock().now().since(started_at);
        self.spans.learn(&request.effect, &brought);
        measure::performed(&request, &brought, elapsed);
        let mut body = request.outcome(brought, started_at, usage);
        // Priced where all tokens are known, those of lost attempts too. What the policy took over
        // after losses was still asked of the model.
        if let (StepBody::Outcome { usage, .. }, Some(model)) = (&mut body, self.paid(&request)) {
            *usage = self.models.charge(&model, *usage);
            measure::paid(*usage);
        }
        self.record(body).await
    }

    /// The model that a request's tokens are paid to.
    fn paid(&self, request: &Request) -> Option<String> {
        match &request.work {
            Work::Model { model, .. } => Some(model.clone()),
            Work::Policy { .. } => self.run.named_model().map(str::to_owned),
            Work::Tool { call, .. } => built_in::model_of(call).map(str::to_owned),
        }
    }

    /// A question expires while the session can still go where that leads. A sleep does not end early.
    fn within_the_session(&self, mut ask: Ask) -> Ask {
        let records_end = Stamp::from_millis(self.session.author.expires_at.saturating_mul(1_000));
        let deadline = records_end.before(DEADLINE_BEFORE_EXPIRY);
        if !ask.question.is_sleep() {
            ask.expires_at = ask.expires_at.min(deadline.before(ROUTE_AFTER_EXPIRY));
        }
        ask
    }

    async fn sleep(&mut self, sleep: graph::next::Sleep) -> Result<(), Driven> {
        let clock = self.session.hlc.clock().clone();
        let started_at = clock.now();
        // Stopping leaves the sleep open; the next runner sleeps on.
        tokio::select! {
            () = clock.sleep(sleep.until.since(started_at)) => self.record(sleep.body(started_at)).await,
            () = self.stop.cancelled() => Ok(()),
        }
    }

    /// Journals what arrives within [`GRACE`], begins nothing more, and writes no end.
    async fn wind_down(&mut self, mut under_way: UnderWay) -> Driven {
        let clock = self.session.hlc.clock().clone();
        let until = clock.now().after(GRACE);
        while let Some(Some(performed)) =
            clock.timeout(until.since(clock.now()), under_way.next()).await
        {
            if let Err(driven) = self.record_outcome(performed).await {
                return driven;
            }
        }
        Driven::Stopped
    }

    /// Journals a step and folds it; folds another's that came first.
    async fn record(&mut self, body: Body) -> Result<(), Driven> {
        match self.append(body).await {
            Ok(step) => self.fold(step).await,
            Err(AppendError::Collision(theirs)) => match &theirs.body {
                StepBody::Claim { .. } => Err(Driven::Fenced),
                StepBody::Ask { .. } => Err(Driven::Suspended { question: theirs.seq }),
                _ => self.fold(*theirs).await,
            },
            Err(AppendError::TooLarge(error)) => {
                let message = ErrorMessage::new("PayloadError", "TooLarge", &error.to_string());
                let end = StepBody::End {
                    ending: Ending::Failed,
                    error: Some(message),
                    category: Some("payload".to_owned()),
                    payload: Value::Null,
                };
                Box::pin(self.record(end)).await
            }
            Err(error) => Err(Driven::Broken(error)),
        }
    }

    async fn append(&mut self, body: Body) -> Result<Step<Value>, AppendError> {
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
                    tracing::warn!(session_id = %session.author.session, %error, "A step was not written yet.");
                    session.hlc.clock().sleep(APPEND_PAUSE).await;
                }
                decided => {
                    measure::appended(session.hlc.clock().now().since(begun_at));
                    return decided;
                }
            }
        }
    }

    async fn fold(&mut self, step: Step<Value>) -> Result<(), Driven> {
        self.head = Head::after(&step);
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

    fn observe(&self, step: &Step<Value>) -> Observed {
        (self.profile.observe)(&self.run, step)
    }

    /// Ends a session that cannot go on.
    async fn give_up(&mut self, finish: Finish) -> Driven {
        match self.append(finish.body()).await {
            Ok(step) => {
                measure::observed(&self.observe(&step));
                Driven::Ended(Box::new(step))
            }
            Err(AppendError::Collision(theirs)) if matches!(theirs.body, StepBody::End { .. }) => {
                Driven::Ended(theirs)
            }
            Err(AppendError::Collision(_)) => Driven::Fenced,
            Err(error) => Driven::Broken(error),
        }
    }
}

fn may_pass(error: &Error) -> bool {
    error.retry() != Retry::Never
}

fn brought(outcome: ToolOutcome) -> Brought {
    match outcome {
        ToolOutcome::Ok(content) => Brought::Ok(content),
        ToolOutcome::Error(text) => Brought::Error(text),
        ToolOutcome::Failed(failure) => Brought::Failure(failure),
    }
}

/// From 0 to 1, another for each session, effect and attempt: sessions that a model turned away
/// together do not come back together. No randomness, so that a simulated run can be repeated.
fn share(session: &SessionId, request: &Request) -> f64 {
    let of = format!("{session} {} {}", request.effect.digest, request.attempt);
    let first = Hash::of(of.as_bytes()).as_str().get(..2).map(|hex| u8::from_str_radix(hex, 16));
    f64::from(first.and_then(Result::ok).unwrap_or_default()) / f64::from(u8::MAX)
}

#[cfg(test)]
mod tests {
    use graph::effect::ToolCall;
    use journal::step::{EffectKind, EffectRef};

    use super::*;

    #[test]
    fn sessions_that_were_turned_away_together_come_back_apart() {
        let effect = EffectRef {
            node: "n".to_owned(),
            kind: EffectKind::Chat,
            digest: Hash::of(b"same"),
            call: 0,
        };
        let request = Request {
            effect,
            attempt: 2,
            not_before: None,
            work: Work::Tool {
                call: ToolCall::built_in("t", Value::Null),
                intent: Intent::NotNeeded,
            },
            unsettled_tokens: 0,
        };
        let shares: Vec<f64> = (0..100).map(|_| share(&SessionId::fresh(), &request)).collect();
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
        let early = shares.iter().filter(|share| **share < 0.5).count();
        assert!((10..=90).contains(&early), "{shares:?}");
    }
}
