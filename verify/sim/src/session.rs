//! Runs one session: a random one, whose trigger may be delivered twice and whose person may
//! cancel, or one of a scenario.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use journal::announce::Announcer;
use journal::clock::{Hlc, Stamp};
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::SessionId;
use journal::item::Item;
use journal::key;
use journal::read::{self, in_order};
use journal::step::Step;
use journal::wait::Wait;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use watchdog::Event;
use workflow::limits::SWEEP_EVERY;
use workflow::standing::standing;

pub use crate::execution::Ended;
use crate::execution::Shell;
use crate::faults::Faults;
use crate::person::attend;
use crate::scenario::Scenario;
use crate::store::{Call, Request, SimStore, Write};
use crate::world::{ORIGIN, Setup, World};
use crate::{check, effects};

/// Sweeps after which the watchdog counts as failed.
const SWEEPS_MAX: usize = 200;

/// Longest run of a function.
///
/// Source: AWS, "Lambda quotas".
const LAMBDA_MAX: Duration = Duration::from_secs(900);

const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// Time for delayed messages to arrive after the end.
const AFTERMATH: Duration = Duration::from_secs(900);

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    pub seed: u64,
    /// The injected faults.
    pub faults: Faults,
    pub session: SessionId,
    pub detail: Value,
    pub verdict: Option<EventStatus>,
    /// The executions in order of delivery.
    pub executions: Vec<Ended>,
    pub items: Vec<Item>,
    pub log: Vec<Write>,
    /// All calls of servers' tools.
    pub calls: Vec<Call>,
    /// The kinds of requests made.
    pub requests: BTreeSet<Request>,
    /// Duration by the simulated clock.
    pub took: Duration,
    /// Violations.
    pub broken: Vec<String>,
}

/// Runs the session of a seed. Await it on a current-thread runtime with paused time.
pub async fn run(seed: u64, faults: &Faults) -> Report {
    fastrand::seed(seed);
    let world = World::new(seed, *faults);
    let session = session_id(&world);
    let detail = detail(&world);
    seeded(world, seed, session, detail).await
}

/// Runs a scenario's session with the faults of a seed. Await it like [`run`].
///
/// Tool calls are checked against the journal unless the faults disconnect processes or delay
/// writes: a runner that was given up may still make a call that was already sent, which nothing
/// can prevent.
pub async fn run_scenario(scenario: &Scenario, seed: u64, faults: &Faults) -> Report {
    fastrand::seed(seed);
    let world = World::of(Setup::new(seed, *faults, scenario.clone()));
    let session = session_id(&world);
    for person in scenario.people.clone() {
        attend(&world, &session, person);
    }
    let mut report = seeded(world, seed, session, scenario.detail.clone()).await;
    if faults.stall == 0 && faults.store_late == 0 {
        effects::check(scenario, &mut report);
    }
    report
}

async fn seeded(world: World, seed: u64, session: SessionId, detail: Value) -> Report {
    let faults = world.faults();
    let input = trigger(&session, &detail);
    // There is one Step Functions, so both executions share a clock.
    let clock = world.skewed_clock();
    let mut ends = Vec::new();
    let deliveries = if world.chance().happens(faults.duplicate) { 2 } else { 1 };
    for number in 0..deliveries {
        let late = if number == 0 { Duration::from_secs(1) } else { Duration::from_secs(200) };
        let delay = world.chance().between(Duration::ZERO, late);
        let (ended, end) = oneshot::channel();
        ends.push(end);
        let shell = Shell::new(&world, clock.clone(), &format!("{session}-{number}"), &input);
        let stop = world.chance().happens(faults.abandon).then(|| stop(&world, &shell, &session));
        world.tasks().spawn(async move {
            tokio::time::sleep(delay).await;
            let stopped = async {
                match stop {
                    Some(stop) => stop.await,
                    None => std::future::pending().await,
                }
            };
            let end = tokio::select! {
                biased;
                () = stopped => Ended::default(),
                end = Box::pin(shell.run()) => end,
            };
            // The receiver stops waiting after a while.
            let _ = ended.send(end);
        });
    }
    if faults.abandon > 0 {
        watch(&world, &session).await;
    }
    if world.chance().happens(faults.cancel) {
        let (world, session) = (world.clone(), session.clone());
        world.clone().tasks().spawn(async move { cancel(&world, &session).await });
    }
    let executions = ended(ends).await;
    let mut report = report(&world, seed, session, detail, executions).await;
    check::check(&mut report);
    report
}

/// Stops an execution at a random time after its first record, before which there is no session.
fn stop(
    world: &World,
    shell: &Shell,
    session: &SessionId,
) -> impl Future<Output = ()> + Send + use<> {
    let (world, arn, session) = (world.clone(), shell.arn().to_owned(), session.clone());
    let after = world.chance().between(Duration::ZERO, Duration::from_secs(60));
    async move {
        tokio::time::sleep(after).await;
        while !world.disk().table().has_event(&session, |_| true) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        world.stopped(&arn);
    }
}

/// Calls the watchdog as EventBridge would: first with the execution's end until that succeeds,
/// then on schedule until the session has its verdict.
async fn watch(world: &World, session: &SessionId) {
    let has_verdict = || world.disk().table().has_event(session, EventStatus::is_verdict);
    while !world.was_stopped() && !has_verdict() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let mut event = Event::Ended { session: session.clone() };
    for _ in 0..SWEEPS_MAX {
        let process = world.process("watchdog");
        let watchdog = world.watchdog(&process);
        let called = tokio::select! {
            biased;
            () = process.death() => None,
            called = tokio::time::timeout(LAMBDA_MAX, watchdog.handle(&event)) => called.ok(),
        };
        if has_verdict() {
            return;
        }
        if let Some(Ok(_)) = called {
            event = Event::Sweep;
        }
        tokio::time::sleep(SWEEP_EVERY).await;
    }
}

async fn ended(ends: Vec<oneshot::Receiver<Ended>>) -> Vec<Ended> {
    let mut executions = Vec::new();
    for end in ends {
        let ended = tokio::time::timeout(LONGEST, end).await;
        executions.push(ended.ok().and_then(Result::ok).unwrap_or_default());
    }
    executions
}

/// Ends the world and returns the report.
async fn report(
    world: &World,
    seed: u64,
    session: SessionId,
    detail: Value,
    executions: Vec<Ended>,
) -> Report {
    let took = world.clock().now().since(ORIGIN);
    tokio::time::sleep(AFTERMATH).await;
    world.disk().table().compare();
    let (items, log, broken) = world.disk().table().copies();
    let calls = world.disk().table().calls().to_vec();
    let requests = world.disk().table().requests().clone();
    world.end();
    let (verdict, faults) = (None, world.faults());
    Report {
        seed,
        faults,
        session,
        detail,
        verdict,
        executions,
        items,
        log,
        calls,
        requests,
        took,
        broken,
    }
}

/// A scenario's session, from its trigger or from a cut of an earlier run.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    pub(crate) setup: Setup,
    pub(crate) session: SessionId,
    /// The writes that the journal already contains.
    pub(crate) log: Vec<Write>,
    /// The calls that the tools have already made.
    pub(crate) calls: Vec<Call>,
}

impl Staged {
    /// A session that starts with its trigger.
    pub(crate) fn new(setup: Setup) -> Self {
        let session = id_of(0x5ce7, setup.seed);
        Self { setup, session, log: Vec::new(), calls: Vec::new() }
    }

    /// The execution's name and input. If the journal has records, the session is resumed.
    fn execution(&self) -> (String, Value) {
        let mut input = trigger(&self.session, &self.setup.scenario.detail);
        let landed = || self.log.iter().filter(|write| write.landed).map(|write| &write.item);
        let events = landed().filter(|item| item.sk.starts_with(key::EVENT_PREFIX));
        let events = in_order(events).unwrap_or_else(|error| unreachable!("own events: {error}"));
        let Some(first) = events.first() else { return (self.session.to_string(), input) };
        let steps = landed().filter(|item| item.sk.starts_with(key::STEP_PREFIX));
        let steps: Vec<Step> = steps.filter_map(|item| Step::from_item(item).ok()).collect();
        input["resume"] = json!(standing(&events, &steps, first.expires_at, false, 1));
        (workflow::execution::name(&self.session, 1), input)
    }

    /// Runs it. Await it on a current-thread runtime with paused time.
    pub(crate) async fn run(self) -> Report {
        let Setup { seed, scenario, .. } = self.setup.clone();
        fastrand::seed(seed);
        let (name, input) = self.execution();
        let Self { setup, session, log, calls } = self;
        let world = World::of(setup);
        world.disk().table().restore(&log, &calls);
        let shell = Shell::new(&world, world.clock().clone(), &name, &input);
        let (ended_as, end) = oneshot::channel();
        world.tasks().spawn(async move {
            // The receiver stops waiting after a while.
            let _ = ended_as.send(Box::pin(shell.run()).await);
        });
        for person in scenario.people.clone() {
            attend(&world, &session, person);
        }
        let executions = ended(vec![end]).await;
        let detail = scenario.detail.clone();
        let mut report = report(&world, seed, session, detail, executions).await;
        check::check(&mut report);
        effects::check(&scenario, &mut report);
        report
    }
}

/// The state machine's input, as the rule builds it.
fn trigger(session: &SessionId, detail: &Value) -> Value {
    json!({
        "session_id": session,
        "time": ORIGIN.to_string().replace(".000000000Z", "Z"),
        "detail": detail,
    })
}

fn session_id(world: &World) -> SessionId {
    id_of(world.chance().bits(), world.chance().bits())
}

fn id_of(a: u64, b: u64) -> SessionId {
    let text = format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        b >> 52,
        b & 0xffff_ffff_ffff
    );
    text.parse().unwrap_or_else(|_| unreachable!("{text} is a session's id"))
}

/// Most triggers request a checkup; some are invalid in one way each.
fn detail(world: &World) -> Value {
    match world.chance().below(40) {
        0 => json!({ "agent": "nobody" }),
        1 => json!({ "model": "transcript:none" }),
        2 => json!("not an object"),
        3 => json!({ "input": { "unexpected": true } }),
        4 => json!({ "input": { "text": "x".repeat(100_000) } }),
        5 => json!({ "agent": "incident", "input": {} }),
        6 => json!({ "budget": { "seconds": 1 } }),
        _ => json!({}),
    }
}

/// A person cancels the session, as the command line does.
async fn cancel(world: &World, session: &SessionId) {
    let process = world.process("person");
    let store = SimStore::new(Arc::clone(world.disk()), Arc::clone(&process));
    tokio::time::sleep(world.chance().between(Duration::ZERO, Duration::from_secs(40))).await;
    let Ok(events) = read::events(&store, session).await else { return };
    let Some(first) = events.first() else { return };
    let hlc = Hlc::new(process.clock.clone(), Stamp::default());
    events.iter().for_each(|event| hlc.observe(event.stamp));
    let announcer = Announcer {
        store: &store,
        hlc: &hlc,
        session,
        writer: Writer::Person,
        expires_at: first.expires_at,
    };
    let draft = Draft::new(EventStatus::CancelRequested, About::Session);
    if announcer.announce_once(&draft).await.is_err() {
        return;
    }
    if let Ok(Some(wait)) = Wait::read(&store, session).await {
        world.callback(wait.token, Some(json!({}))).await;
    }
}
