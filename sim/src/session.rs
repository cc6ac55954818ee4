//! One seeded session: a trigger, perhaps delivered twice, perhaps a person who changes their mind.

use std::sync::Arc;
use std::time::Duration;

use journal::announce::Announcer;
use journal::clock::{Hlc, Stamp};
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::SessionId;
use journal::item::Item;
use journal::read;
use journal::wait::Wait;
use serde_json::{Value, json};
use states::execution::Outcome;
use states::history::Event;
use tokio::sync::oneshot;

use crate::check;
use crate::execution::Shell;
use crate::faults::Faults;
use crate::store::{SimStore, Write};
use crate::world::{ORIGIN, World};

/// No session takes longer.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// How long what is still on its way may take to arrive after the end.
const AFTERMATH: Duration = Duration::from_secs(900);

/// How an execution ended, and how it came to that.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The end; none if it had not ended in [`LONGEST`].
    pub outcome: Option<Outcome>,
    /// The history.
    pub history: Vec<Event>,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What went wrong on purpose.
    pub faults: Faults,
    /// The session.
    pub session: SessionId,
    /// The trigger's detail.
    pub detail: Value,
    /// The verdict that counts.
    pub verdict: Option<EventStatus>,
    /// The executions, in order of delivery.
    pub executions: Vec<Ended>,
    /// Everything in the table.
    pub items: Vec<Item>,
    /// Every write.
    pub log: Vec<Write>,
    /// How long it took, by the simulated clock.
    pub took: Duration,
    /// What did not hold.
    pub broken: Vec<String>,
}

/// Runs the session of a seed. To be awaited on a current-thread runtime whose time is paused.
pub async fn run(seed: u64, faults: &Faults) -> Report {
    fastrand::seed(seed);
    let world = World::new(seed, *faults);
    let session = session_id(&world);
    let detail = detail(&world);
    let input = json!({
        "session_id": session,
        "time": ORIGIN.to_string().replace(".000000000Z", "Z"),
        "detail": detail,
    });
    // There is one Step Functions, so both executions have one clock.
    let clock = world.skewed_clock();
    let mut ends = Vec::new();
    let deliveries = if world.chance().happens(faults.duplicate) { 2 } else { 1 };
    for number in 0..deliveries {
        let late = if number == 0 { Duration::from_secs(1) } else { Duration::from_secs(200) };
        let delay = world.chance().between(Duration::ZERO, late);
        let (ended, end) = oneshot::channel();
        ends.push(end);
        let shell = Shell::new(&world, clock.clone(), &format!("{session}-{number}"), &input);
        world.tasks().spawn(async move {
            tokio::time::sleep(delay).await;
            // The receiver waits for no longer than is reasonable.
            let _ = ended.send(Box::pin(shell.run()).await);
        });
    }
    if world.chance().happens(faults.cancel) {
        let (world, session) = (world.clone(), session.clone());
        world.clone().tasks().spawn(async move { cancel(&world, &session).await });
    }
    let mut executions = Vec::new();
    for end in ends {
        executions.push(match tokio::time::timeout(LONGEST, end).await {
            Ok(Ok((outcome, history))) => Ended { outcome: Some(outcome), history },
            _ => Ended { outcome: None, history: Vec::new() },
        });
    }
    let took = world.clock().now().since(ORIGIN);
    tokio::time::sleep(AFTERMATH).await;
    let (items, log, broken) = world.disk().table().copies();
    let mut report = Report {
        seed,
        faults: *faults,
        session,
        detail,
        verdict: None,
        executions,
        items,
        log,
        took,
        broken,
    };
    world.end();
    check::check(&mut report);
    report
}

fn session_id(world: &World) -> SessionId {
    let (a, b) = (world.chance().bits(), world.chance().bits());
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

/// Most triggers ask for a checkup; some are wrong in each way that a trigger can be.
fn detail(world: &World) -> Value {
    match world.chance().below(40) {
        0 => json!({ "agent": "nobody" }),
        1 => json!({ "model": "openai:none" }),
        2 => json!("not an object"),
        3 => json!({ "input": { "unexpected": true } }),
        4 => json!({ "input": { "text": "x".repeat(100_000) } }),
        5 => json!({ "agent": "incident", "input": {} }),
        6 => json!({ "budget": { "seconds": 1 } }),
        _ => json!({}),
    }
}

/// A person asks for the session's end, as the command line does.
async fn cancel(world: &World, session: &SessionId) {
    let process = world.process("person");
    let store = SimStore::new(Arc::clone(world.disk()), Arc::clone(&process));
    tokio::time::sleep(world.chance().between(Duration::ZERO, Duration::from_secs(40))).await;
    let Ok(events) = read::events(&store, session).await else { return };
    let Some(first) = events.first() else { return };
    let hlc = Hlc::new(process.clock.clone(), Stamp::default());
    events.iter().for_each(|event| hlc.observe(event.stamp));
    let voice = Announcer {
        store: &store,
        hlc: &hlc,
        session,
        writer: Writer::Person,
        expires_at: first.expires_at,
    };
    let draft = Draft::new(EventStatus::CancelRequested, About::Session);
    if voice.announce_once(&draft).await.is_err() {
        return;
    }
    if let Ok(Some(wait)) = Wait::read(&store, session).await {
        world.callback(wait.token, Some(json!({}))).await;
    }
}
