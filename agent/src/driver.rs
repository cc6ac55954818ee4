//! The driver: performs the effects that the agent's graph requests, and journals each outcome before
//! the graph uses it.

mod asking;
mod records;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use graph::definition::Finish;
use graph::next::{Intent, Next, Request, Work};
use graph::outcome::{Brought, ToolOutcome};
use graph::profile::Profile;
use graph::request::{Log, Prepared};
use graph::run::Run;
use journal::chain::{AppendError, Body, Head};
use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use journal::step::{Ending, Step, StepBody, Usage};
use journal::store::{Error, Retry, Store};
use journal::version;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use workflow::limits::HAND_OVER_WITHIN;

use crate::halts;
use crate::jitter::{JITTER, share};
use crate::measure;
use crate::model::Models;
use crate::program::Local;
use crate::session::ClaimedSession;
use crate::tool::{Toolbox, built_in};
use crate::trace::Spans;

/// How long the driver waits on a stop for running effects, to journal their outcomes.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Shortest timeout of a tool call, even if less of the session's time is left.
const TOOL_TIME_MIN: Duration = Duration::from_secs(1);

/// How a drive ended.
#[derive(Debug)]
pub enum Driven {
    /// This step, of any writer, ended the session.
    Ended(Box<Step<Value>>),
    /// A question is open.
    Suspended {
        /// The number of its step.
        question: u32,
    },
    /// Another runner claimed the session: write nothing more.
    Fenced,
    /// The agent is halted, and no effect is under way.
    Halted,
    /// The driver was asked to stop; another runner can resume the session.
    Stopped,
    /// The journal refuses the next step.
    Broken(AppendError),
}

/// Drives one session.
#[derive(Debug)]
pub struct Driver<S> {
    pub session: ClaimedSession<S>,
    /// The end of the step chain, as this runner knows it.
    pub head: Head,
    /// The graph's run, with all steps up to the head folded.
    pub run: Run,
    /// The requests to the model, as the folded steps record them.
    pub requests: Log,
    pub toolbox: Arc<Toolbox<S>>,
    pub models: Models,
    pub tool_timeout: Duration,
    /// Cancelled to stop the driver.
    pub stop: CancellationToken,
    /// Whether it stops because its host hands the session over, which leaves it more time.
    pub hands_over: Arc<AtomicBool>,
    pub spans: Spans,
    /// Says which metrics and log lines the agent wants.
    pub profile: &'static Profile,
    /// Effects that the agent's program performs itself, if the agent is one.
    pub local: Local,
}

/// A performed request with its outcome.
pub(crate) struct Performed {
    request: Request,
    started_at: Stamp,
    brought: Brought,
    usage: Usage,
    /// Whether the model was sent the chat with its schema in the system prompt.
    in_words: bool,
}

/// How a request ended that was under way.
pub(crate) enum Ended {
    Performed(Box<Performed>),
    /// A halt or a stop came before it began. The number of its call.
    Withheld(u32),
}

pub(crate) type UnderWay = FuturesUnordered<BoxFuture<'static, Ended>>;

/// The calls under way.
pub(crate) type Begun = BTreeSet<u32>;

impl<S: Store> Driver<S> {
    /// Drives the session until it ends, waits for input, or this runner must stop.
    pub async fn drive(mut self) -> Driven {
        if let Some(hosted) = self.run.hosted() {
            let launch = hosted.launch.clone();
            return self.drive_program(launch).await;
        }
        let mut under_way = UnderWay::new();
        let mut begun = Begun::new();
        loop {
            if self.stop.is_cancelled() {
                return self.wind_down(under_way).await;
            }
            let done = match self.run.next() {
                Next::Perform(requests) => self.perform(requests, &mut under_way, &mut begun).await,
                Next::Note(note) => self.record(note.body()).await,
                Next::Ask(ask) => self.ask(ask).await,
                Next::Sleep(sleep) => self.sleep(sleep).await,
                Next::End(finish) => self.record(self.run.end(finish)).await,
                Next::Wait(open) => Err(Driven::Suspended { question: open.question_id }),
                Next::Claim | Next::Idle | Next::Closed => Err(Driven::Fenced),
            };
            if let Err(driven) = done {
                if let Driven::Ended(end) = &driven {
                    self.spans.abandon(end);
                }
                return driven;
            }
        }
    }

    /// Starts the requests that are not running yet, then waits for one outcome and journals it.
    async fn perform(
        &mut self,
        requests: Vec<Request>,
        under_way: &mut UnderWay,
        begun: &mut Begun,
    ) -> Result<(), Driven> {
        if self.begin(requests, under_way, begun).await? {
            return Ok(());
        }
        // A stop drops nothing: `wind_down` waits for the running effects.
        let performed = tokio::select! {
            performed = under_way.next() => performed,
            () = self.stop.cancelled() => return Ok(()),
        };
        match performed {
            Some(ended) => self.ended(ended, begun).await,
            None => Err(Driven::Fenced),
        }
    }

    /// Starts the requests that are not running yet. Returns whether it journaled a step instead: then they may be
    /// others.
    pub(crate) async fn begin(
        &mut self,
        requests: Vec<Request>,
        under_way: &mut UnderWay,
        begun: &mut Begun,
    ) -> Result<bool, Driven> {
        let may_begin = self.may_begin(&requests, begun).await;
        if !may_begin && under_way.is_empty() && !self.stop.is_cancelled() {
            return Err(Driven::Halted);
        }
        for request in requests {
            if !may_begin && !is_promised(&request) {
                continue;
            }
            if begun.contains(&request.effect.call) {
                continue;
            }
            if let Work::Tool { intent: Intent::Needed, .. }
            | Work::Local { intent: Intent::Needed, .. } = &request.work
            {
                self.record(request.intent()).await?;
                return Ok(true);
            }
            if let Some(note) = self.prepared(&request, false).and_then(|prepared| prepared.note())
            {
                self.record(note).await?;
                return Ok(true);
            }
            begun.insert(request.effect.call);
            under_way.push(self.start(request));
        }
        Ok(false)
    }

    /// Journals the outcome of a request that was under way.
    pub(crate) async fn ended(&mut self, ended: Ended, begun: &mut Begun) -> Result<(), Driven> {
        match ended {
            Ended::Performed(performed) => {
                begun.remove(&performed.request.effect.call);
                self.record_outcome(*performed).await
            }
            Ended::Withheld(call) => {
                begun.remove(&call);
                Ok(())
            }
        }
    }

    /// Whether no halt keeps these requests from beginning.
    async fn may_begin(&self, requests: &[Request], begun: &Begun) -> bool {
        let begins = |it: &Request| !begun.contains(&it.effect.call) && !is_promised(it);
        !requests.iter().any(begins) || halts::may_begin(&self.session, &self.stop).await
    }

    fn start(&mut self, request: Request) -> BoxFuture<'static, Ended> {
        if let Some(work) = self.local_work(&request) {
            return self.start_local(request, work);
        }
        let (hlc, session) = (Arc::clone(&self.session.hlc), self.session.clone());
        let stop = self.stop.clone();
        let policy = match &request.work {
            Work::Policy { chat } => Some(self.run.policy(chat)),
            _ => None,
        };
        let (toolbox, models) = (Arc::clone(&self.toolbox), self.models.clone());
        let timeout = self.timeout_of_call(&request);
        let share = share(&self.session.author.session, &request);
        let span = self.spans.begin(&request, hlc.now());
        Box::pin(async move {
            let clock = hlc.clock();
            if let Some(not_before) = request.not_before {
                let pause = not_before.since(hlc.now());
                let jitter = if request.call().is_some() { 0.0 } else { share * JITTER };
                clock.sleep(pause + pause.mul_f64(jitter)).await;
                if !is_promised(&request) && !halts::may_begin(&session, &stop).await {
                    return Ended::Withheld(request.effect.call);
                }
            }
            let Some(turn) = halts::turn(&models, &request, &session, &stop).await else {
                return Ended::Withheld(request.effect.call);
            };
            let started_at = hlc.now();
            let mut in_words = false;
            let (brought, usage) = match (&request.work, policy) {
                (Work::Tool { call, schema, .. }, _) => {
                    let outcome = match schema {
                        Some(approved) => {
                            toolbox.call_approved(span, call, approved, timeout).await
                        }
                        None => toolbox.call_from(span, call, timeout).await,
                    };
                    let usage = built_in::usage(call, &outcome);
                    (brought(outcome), usage)
                }
                (_, Some(reply)) => {
                    (reply.map_or_else(Brought::Failure, Brought::Reply), Usage::default())
                }
                (Work::Model { model, chat }, None) => {
                    let attempt = models.ask(&turn, model, chat, clock).await;
                    in_words = attempt.in_words;
                    let brought = attempt.brought.map_or_else(Brought::Failure, Brought::Reply);
                    (brought, attempt.usage)
                }
                (_, None) => unreachable!("served above"),
            };
            let performed = Performed { request, started_at, brought, usage, in_words };
            Ended::Performed(Box::new(performed))
        })
    }

    /// Work of the program or of this host. A stop waits for a critical step alone, because only that one is not
    /// repeated.
    fn start_local(
        &mut self,
        request: Request,
        work: BoxFuture<'static, Brought>,
    ) -> BoxFuture<'static, Ended> {
        let (started_at, stop) = (self.session.hlc.now(), self.stop.clone());
        self.spans.begin(&request, started_at);
        let is_critical = matches!(request.work, Work::Local { intent: Intent::Written, .. });
        Box::pin(async move {
            let brought = tokio::select! {
                // A program that is gone drops its work, too: what no stop waits for has no outcome then.
                biased;
                () = stop.cancelled(), if !is_critical => {
                    return Ended::Withheld(request.effect.call);
                }
                brought = work => brought,
            };
            let usage = Usage::default();
            Ended::Performed(Box::new(Performed {
                request,
                started_at,
                brought,
                usage,
                in_words: false,
            }))
        })
    }

    /// The timeout of a call, limited by the session's remaining time. A call with side effects keeps its
    /// full timeout: cutting it off would leave its outcome unknown.
    fn timeout_of_call(&self, request: &Request) -> Duration {
        let Work::Tool { intent: Intent::NotNeeded, .. } = &request.work else {
            return self.tool_timeout;
        };
        let now = self.session.hlc.now();
        let begins = request.not_before.map_or(now, |not_before| now.max(not_before));
        let Some(left) = self.run.time_left(begins) else { return self.tool_timeout };
        // Whole milliseconds, as in the message about a timeout.
        let left = Duration::from_millis(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        left.max(TOOL_TIME_MIN).min(self.tool_timeout)
    }

    pub(crate) async fn record_outcome(&mut self, performed: Performed) -> Result<(), Driven> {
        let Performed { request, started_at, brought, usage, in_words } = performed;
        let brought = self.masked(brought);
        let prepared = self.prepared(&request, in_words);
        if let Some(note) = prepared.as_ref().and_then(Prepared::note) {
            self.record(note).await?;
        }
        let elapsed = self.session.hlc.now().since(started_at);
        self.spans.learn(&request.effect, &brought);
        measure::performed(self.session.agent, &request, &brought, elapsed);
        let mut body = request.outcome(brought, started_at, usage);
        // The price is added here because the body includes the tokens of lost attempts. They were sent to
        // the model even if the policy took over afterwards.
        if let (StepBody::Outcome { usage, .. }, Some(model)) = (&mut body, self.paid(&request)) {
            *usage = self.models.charge(&model, *usage);
            measure::paid(self.session.agent, *usage);
        }
        if let (StepBody::Outcome { request, .. }, Some(prepared)) = (&mut body, prepared) {
            *request = Some(prepared.request);
        }
        self.record(body).await
    }

    /// A tool's result as the journal and the model get it.
    fn masked(&self, brought: Brought) -> Brought {
        let mask = |content: &mut Value| (self.profile.mask)(self.run.options(), content);
        match brought {
            Brought::Ok(mut content) => {
                mask(&mut content);
                Brought::Ok(content)
            }
            Brought::Error(text) => {
                let mut content = Value::from(text);
                mask(&mut content);
                Brought::Error(content.as_str().unwrap_or_default().to_owned())
            }
            Brought::Failure(mut failure) => {
                let mut content = Value::from(failure.message);
                mask(&mut content);
                failure.message = content.as_str().unwrap_or_default().to_owned();
                Brought::Failure(failure)
            }
            reply @ (Brought::Reply(_) | Brought::Woke {}) => reply,
        }
    }

    /// A chat's request to a model, prepared for the journal; `None` for other effects and for the policy.
    fn prepared(&self, request: &Request, in_words: bool) -> Option<Prepared> {
        let Work::Model { model, chat } = &request.work else { return None };
        let mask = |text: &str| self.models.without_key(text);
        Some(if in_words {
            self.requests.prepare(model, &crate::model::in_words(chat), mask)
        } else {
            self.requests.prepare(model, chat, mask)
        })
    }

    /// The model that charges for a request's tokens.
    fn paid(&self, request: &Request) -> Option<String> {
        match &request.work {
            Work::Model { model, .. } => Some(model.clone()),
            Work::Policy { .. } => self.run.named_model().map(str::to_owned),
            Work::Tool { call, .. } => built_in::model_of(call).map(str::to_owned),
            Work::Local { .. } | Work::Sleep { .. } | Work::Probe(_) => None,
        }
    }

    /// Journals the outcomes that arrive within [`STOP_TIMEOUT`], or [`HAND_OVER_WITHIN`]; starts nothing, and does
    /// not end the session.
    pub(crate) async fn wind_down(&mut self, mut under_way: UnderWay) -> Driven {
        let clock = self.session.hlc.clock().clone();
        let is_hand_over = self.hands_over.load(Ordering::Acquire);
        let until = clock.now().after(if is_hand_over { HAND_OVER_WITHIN } else { STOP_TIMEOUT });
        while let Some(Some(ended)) =
            clock.timeout(until.since(clock.now()), under_way.next()).await
        {
            if let Ended::Performed(performed) = ended
                && let Err(driven) = self.record_outcome(*performed).await
            {
                return driven;
            }
        }
        Driven::Stopped
    }

    /// Journals a step and folds it. If another writer's step came first, folds that one.
    pub(crate) async fn record(&mut self, body: Body) -> Result<(), Driven> {
        match self.append(body).await {
            Ok(step) => self.fold(step).await,
            Err(AppendError::Collision(theirs)) => match &theirs.body {
                StepBody::Claim { .. } => Err(Driven::Fenced),
                StepBody::Ask { .. } => Err(Driven::Suspended { question: theirs.seq }),
                // The next runner goes on with the other version.
                _ if version::is_move(&theirs) => Err(Driven::Stopped),
                _ => self.fold(*theirs).await,
            },
            Err(AppendError::TooLarge(error)) => {
                let message = ErrorMessage::new("PayloadError", "TooLarge", &error.to_string());
                let end = StepBody::End {
                    ending: Ending::Failed,
                    error: Some(message),
                    category: Some("payload".to_owned()),
                    answered_by: self.run.fell_back_to(),
                    payload: Value::Null,
                };
                Box::pin(self.record(end)).await
            }
            Err(error) => Err(Driven::Broken(error)),
        }
    }

    /// Ends a session that cannot continue.
    pub(crate) async fn give_up(&mut self, finish: Finish) -> Driven {
        match self.append(self.run.end(finish)).await {
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

/// Whether the call's intent is journaled. It is then made although its agent is halted: without its outcome, the next
/// runner could not know whether it was made.
fn is_promised(request: &Request) -> bool {
    matches!(
        &request.work,
        Work::Tool { intent: Intent::Written, .. } | Work::Local { intent: Intent::Written, .. }
    )
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
