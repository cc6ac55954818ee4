//! The loop of one run of a program.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::StreamExt as _;
use graph::definition::Finish;
use graph::desk::{Problem, program_failed};
use graph::effect::Reply;
use graph::next::{Next, Request, Work};
use graph::outcome::{Brought, Failure};
use graph::program::frame::{self, Raised, Said};
use graph::program::{Launch, Probe};
use journal::clock::Clock;
use journal::store::Store;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::process::{Gone, Process};
use crate::driver::{Begun, Driven, Driver, Ended, UnderWay};

/// Most effects under way at once.
pub(crate) const PARALLEL_MAX: usize = 64;

/// Before a question stops the program: how long it may take to ask for further effects.
const BEFORE_QUESTION: Duration = Duration::from_millis(30);

/// The effects that the program performs itself.
#[derive(Debug, Default)]
pub struct Local {
    /// By ordinal, what waits for their outcomes.
    waiting: BTreeMap<u32, oneshot::Sender<Result<Value, Raised>>>,
    /// Those of them that the program has not been told of.
    to_tell: Vec<u32>,
    /// Set when the program is gone.
    gone: Option<Departed>,
}

/// A program that is gone without an end.
#[derive(Debug)]
struct Departed {
    finish: Finish,
    /// Somebody else ended it, such as the kernel for want of memory: its next run may do better.
    was_killed: bool,
}

/// What happened first.
enum Event {
    Said(Result<Said, Gone>),
    Performed,
    Stopped,
    Idle,
    OutOfTime,
}

impl<S: Store> Driver<S> {
    /// Drives a session whose agent is a program.
    pub(crate) async fn drive_program(mut self, launch: Launch) -> Driven {
        if !matches!(self.run.next(), Next::Idle) {
            // A limit was reached, or the session has ended.
            return self.without_program().await;
        }
        let models = self.models.clone();
        let mask = move |text: &str| models.without_key(text);
        let process = Process::start(&launch, mask).await;
        let mut process = match process {
            Ok(process) => process,
            Err(error) => {
                let text = format!("cannot start `{}`: {error}", launch.command.join(" "));
                return self.give_up(program_failed("NotStarted", &text)).await;
            }
        };
        let input = self.run.program_input().cloned().unwrap_or_default();
        let (agent, version) = (self.run.agent(), self.run.version());
        let replay = self.run.replayed_to();
        let start = frame::start(&self.session.author.session, agent, version, &input, replay);
        let greeted = tokio::time::timeout(launch.idle, begin(&mut process, &start)).await;
        let mut under_way = UnderWay::new();
        let of_host = std::mem::take(&mut self.stop);
        self.stop = of_host.child_token();
        let driven = match greeted {
            Ok(Ok(())) => self.serve(&mut process, &mut under_way, launch.idle).await,
            Ok(Err(gone)) => Err(self.gone(&mut process, gone).await),
            Err(_) => Err(self.give_up(idle(&self, launch.idle)).await),
        };
        match driven {
            Err(Driven::Stopped) => match self.local.gone.take() {
                Some(gone) => self.depart(gone, under_way, &of_host).await,
                None => self.let_finish(process, under_way).await,
            },
            Err(driven) => driven,
            Ok(never) => match never {},
        }
    }

    /// Winds down, while the program finishes its critical steps: each that is cut off becomes a question.
    async fn let_finish(&mut self, mut process: Process, under_way: UnderWay) -> Driven {
        let mut local = std::mem::take(&mut self.local);
        let untold = std::mem::take(&mut local.to_tell);
        let finishing = async {
            for ordinal in untold {
                let is_awaited =
                    local.waiting.get(&ordinal).is_some_and(|waiting| !waiting.is_closed());
                if is_awaited && process.send(&frame::run(ordinal)).await.is_err() {
                    break;
                }
            }
            while let Ok(said) = process.frame().await {
                // What else it asks for, its next run asks for again.
                if let Said::Performed { ordinal, outcome } = said
                    && let Some(waiting) = local.waiting.remove(&ordinal)
                {
                    let _ = waiting.send(outcome);
                }
            }
            // The program has ended: a step without an outcome will not get one.
            local.waiting.clear();
            std::future::pending().await
        };
        tokio::select! {
            // First, so that it drops what no stop waits for.
            biased;
            driven = self.wind_down(under_way) => driven,
            never = finishing => never,
        }
    }

    /// Handles a program that has ended without `end`. Journals the outcomes of the calls that it has started, and asks
    /// a person about a critical step without an outcome. Otherwise the session fails; if the program was killed, it is
    /// started again.
    async fn depart(
        &mut self,
        gone: Departed,
        mut under_way: UnderWay,
        of_host: &CancellationToken,
    ) -> Driven {
        self.stop.cancel();
        self.stop = of_host.child_token();
        // Its critical steps have an unknown outcome now; its others have none.
        self.local = Local::default();
        loop {
            let ended = tokio::select! {
                ended = under_way.next() => ended,
                () = of_host.cancelled() => return self.wind_down(under_way).await,
            };
            match ended {
                Some(Ended::Performed(performed)) => {
                    if let Err(driven) = self.record_outcome(*performed).await {
                        return driven;
                    }
                }
                Some(Ended::Withheld(_)) => {}
                None => break,
            }
        }
        match self.run.next() {
            Next::Ask(_) | Next::Wait(_) => self.without_program().await,
            _ if gone.was_killed => {
                let session_id = &self.session.author.session;
                tracing::warn!(%session_id, finish = ?gone.finish, "The program was killed; it is started again.");
                Driven::Stopped
            }
            _ => self.give_up(gone.finish).await,
        }
    }

    async fn without_program(&mut self) -> Driven {
        loop {
            let done = match self.run.next() {
                Next::Ask(ask) => self.ask(ask).await,
                Next::End(finish) => self.record(self.run.end(finish)).await,
                Next::Wait(open) => return Driven::Suspended { question: open.question_id },
                _ => return Driven::Fenced,
            };
            if let Err(driven) = done {
                return driven;
            }
        }
    }

    async fn serve(
        &mut self,
        process: &mut Process,
        under_way: &mut UnderWay,
        idle_after: Duration,
    ) -> Result<std::convert::Infallible, Driven> {
        let mut begun = Begun::new();
        loop {
            if self.stop.is_cancelled() {
                return Err(Driven::Stopped);
            }
            for answered in self.run.take_answered() {
                if let Err(gone) = process.send(&frame::result(&answered)).await {
                    return Err(self.gone(process, gone).await);
                }
            }
            match self.run.next() {
                Next::Note(note) => {
                    self.record(note.body()).await?;
                    continue;
                }
                Next::Perform(mut requests) => {
                    requests.truncate(PARALLEL_MAX);
                    if self.begin(requests, under_way, &mut begun).await? {
                        continue;
                    }
                    self.tell(process).await?;
                }
                Next::Ask(ask) if under_way.is_empty() => {
                    let said = tokio::time::timeout(BEFORE_QUESTION, process.frame()).await;
                    match said {
                        Ok(said) => self.said(process, said).await?,
                        Err(_) => self.ask(ask).await?,
                    }
                    continue;
                }
                Next::End(finish) if under_way.is_empty() => {
                    self.record(self.run.end(finish)).await?;
                    continue;
                }
                Next::Wait(open) => return Err(Driven::Suspended { question: open.question_id }),
                Next::Ask(_) | Next::End(_) | Next::Idle => {}
                Next::Claim | Next::Sleep(_) | Next::Closed => return Err(Driven::Fenced),
            }
            match self.event(process, under_way, &mut begun, idle_after).await? {
                Event::Said(said) => self.said(process, said).await?,
                Event::Performed => {}
                Event::Stopped => return Err(Driven::Stopped),
                Event::Idle => return Err(self.give_up(idle(self, idle_after)).await),
                Event::OutOfTime => {
                    let text = format!(
                        "the budget's seconds are used; the newest is {}",
                        self.run.newest_effect()
                    );
                    let finish = Finish::failed("BudgetError", "Exhausted", &text, "budget");
                    return Err(self.give_up(finish).await);
                }
            }
        }
    }

    /// Waits for the first thing that happens.
    async fn event(
        &mut self,
        process: &mut Process,
        under_way: &mut UnderWay,
        begun: &mut Begun,
        idle_after: Duration,
    ) -> Result<Event, Driven> {
        let clock: Clock = self.session.hlc.clock().clone();
        let is_over = matches!(self.run.next(), Next::End(_));
        let is_idle = !self.run.awaits() && !is_over;
        let is_at_work = under_way.is_empty() || !self.local.waiting.is_empty();
        let left = self.run.time_left(self.session.hlc.now()).filter(|_| is_at_work);
        // An outcome that arrives is taken by `under_way`, so dropping the other futures loses nothing: `frame`
        // keeps what it has read.
        let performed = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Ok(Event::Stopped),
            Some(performed) = under_way.next() => performed,
            said = process.frame(), if !is_over => return Ok(Event::Said(said)),
            () = tokio::time::sleep(idle_after), if is_idle => return Ok(Event::Idle),
            () = clock.sleep(left.unwrap_or_default()), if left.is_some() => {
                return Ok(Event::OutOfTime);
            }
        };
        self.ended(performed, begun).await?;
        Ok(Event::Performed)
    }

    /// Serves a frame.
    async fn said(
        &mut self,
        process: &mut Process,
        said: Result<Said, Gone>,
    ) -> Result<(), Driven> {
        let said = match said {
            Ok(said) => said,
            Err(gone) => return Err(self.gone(process, gone).await),
        };
        let now = self.session.hlc.now();
        let served = match said {
            Said::Effect { ordinal, asked, line } => self.run.request(ordinal, asked, line, now),
            Said::Performed { ordinal, outcome } => match self.local.waiting.remove(&ordinal) {
                Some(waiting) => {
                    let _ = waiting.send(outcome);
                    Ok(())
                }
                None => Err(Problem::Protocol(format!("effect {ordinal} is not to be performed"))),
            },
            Said::End(outcome) => {
                // What it was performing has no outcome.
                self.local.waiting.clear();
                let finish = self.finish(outcome);
                self.run.program_ended(finish)
            }
            Said::Hello { .. } | Said::Description(_) => {
                Err(Problem::Protocol("a frame that only a start has".to_owned()))
            }
        };
        match served {
            Ok(()) => Ok(()),
            Err(problem) => Err(self.give_up(problem.finish()).await),
        }
    }

    fn finish(&self, outcome: Result<Value, Raised>) -> Finish {
        match outcome {
            Ok(result) => match self.run.hosted().and_then(|hosted| hosted.violations(&result)) {
                Some(violations) => {
                    Finish::failed("ResultError", "Invalid", &violations, "program")
                }
                None => Finish::Completed(result),
            },
            Err(Raised { kind, message, at }) => {
                let at = at.map(|at| format!(" ({at})")).unwrap_or_default();
                let text = self.models.without_key(&format!("{message}{at}"));
                program_failed(&kind, &text)
            }
        }
    }

    /// Notes why the program is gone, for [`Self::depart`].
    async fn gone(&mut self, process: &mut Process, gone: Gone) -> Driven {
        let (code, (text, was_killed)) = match gone {
            Gone::Broken(code, text) => (code, (text, false)),
            Gone::Closed => ("Exited", process.ending().await),
        };
        let text = format!("{text}; the newest is {}", self.run.newest_effect());
        let finish = program_failed(code, &self.models.without_key(&text));
        self.local.gone = Some(Departed { finish, was_killed });
        Driven::Stopped
    }

    /// Tells the program to perform what only it can perform.
    async fn tell(&mut self, process: &mut Process) -> Result<(), Driven> {
        for ordinal in std::mem::take(&mut self.local.to_tell) {
            if let Err(gone) = process.send(&frame::run(ordinal)).await {
                return Err(self.gone(process, gone).await);
            }
        }
        Ok(())
    }

    /// The work of an effect that neither a model nor a server performs; `None` for others.
    pub(crate) fn local_work(&mut self, request: &Request) -> Option<BoxFuture<'static, Brought>> {
        let ordinal = request.effect.call;
        let hlc = std::sync::Arc::clone(&self.session.hlc);
        match &request.work {
            Work::Probe(probe) => {
                let probe = *probe;
                Some(Box::pin(async move { Brought::Ok(probed(probe, &hlc.now().to_string())) }))
            }
            Work::Sleep { until } => {
                let until = *until;
                Some(Box::pin(async move {
                    hlc.clock().sleep(until.since(hlc.now())).await;
                    Brought::Woke {}
                }))
            }
            Work::Local { .. } => {
                let performed = self.performed_by_program(ordinal);
                Some(Box::pin(async move {
                    match performed.await {
                        Ok(Ok(value)) => Brought::Ok(value),
                        Ok(Err(raised)) => {
                            Brought::Error(format!("{}: {}", raised.kind, raised.message))
                        }
                        Err(_) => ended_first(),
                    }
                }))
            }
            Work::Policy { .. } if self.run.hosted().is_some() => {
                let performed = self.performed_by_program(ordinal);
                Some(Box::pin(async move {
                    match performed.await {
                        Ok(Ok(value)) => replied(&value),
                        Ok(Err(raised)) => {
                            let text = format!("{}: {}", raised.kind, raised.message);
                            Brought::Failure(Failure::refused("policy", text))
                        }
                        Err(_) => ended_first(),
                    }
                }))
            }
            _ => None,
        }
    }

    fn performed_by_program(&mut self, ordinal: u32) -> oneshot::Receiver<Result<Value, Raised>> {
        let (send, performed) = oneshot::channel();
        self.local.waiting.insert(ordinal, send);
        self.local.to_tell.push(ordinal);
        performed
    }
}

async fn begin(process: &mut Process, start: &Value) -> Result<(), Gone> {
    process.send(start).await?;
    process.greeted().await
}

fn idle<S: Store>(driver: &Driver<S>, after: Duration) -> Finish {
    let text = format!(
        "the program asked for nothing in {} s; the newest is {}",
        after.as_secs(),
        driver.run.newest_effect()
    );
    program_failed("Idle", &text)
}

fn ended_first() -> Brought {
    Brought::Failure(Failure::unknown("program", "the program ended before it"))
}

/// The reply of a program's policy.
fn replied(value: &Value) -> Brought {
    let reply = match value {
        Value::String(text) => Ok(Reply::says(text)),
        other => {
            let mut reply = other.clone();
            reply["by"] = json!("policy");
            Reply::deserialize(&reply)
        }
    };
    match reply {
        Ok(reply) => Brought::Reply(reply),
        Err(error) => Brought::Failure(Failure::refused("policy", error.to_string())),
    }
}

fn probed(probe: Probe, now: &str) -> Value {
    let id = uuid::Uuid::new_v4();
    match probe {
        Probe::Now => json!(now),
        // Twelve of its bits are fixed, so the two halves are mixed.
        Probe::Random => {
            let (high, low) = id.as_u64_pair();
            json!((high.rotate_left(32) ^ low.reverse_bits()) >> 11)
        }
        Probe::Uuid => json!(id.to_string()),
    }
}
