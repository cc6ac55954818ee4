//! What a person tells a session in an account: what the local endpoint does for one of this machine.
//!
//! An answer goes over the event bus, so that nobody needs to write decisions into the journal; a
//! cancellation is an announcement of the person's own. Whatever was told, the parked workflow is woken.

use std::time::Duration;

use anyhow::Context as _;
use graph::question::{Answer, OpenQuestion, Question};
use journal::announce::Announcer;
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::SessionId;
use journal::lease::Lease;
use journal::read;
use journal::status::{admits, status};
use journal::step::StepBody;
use journal::store::Store as _;
use journal::wait::Wait;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use workflow::execution::{self, RESUMES_MAX};
use workflow::limits::SILENT_AFTER;
use workflow::standing::standing;

use super::cloud::{Clients, Execution};
use super::steer::Deed;
use crate::failure::Failure;
use crate::ledger::{self, Ledger, Loaded};

/// How long the journal is looked at for an answer that the bus has taken.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// How long one look waits for something new.
const PATIENCE: Duration = Duration::from_millis(500);

/// Tells a session of the account something.
///
/// # Errors
/// When it makes no sense for this session, or somebody is out of reach.
pub async fn tell(
    ledger: &Ledger,
    clients: &Clients,
    id: &SessionId,
    deed: Deed,
    body: &Value,
) -> Result<Value, Failure> {
    let loaded = ledger.load(id.as_str()).await?;
    match deed {
        Deed::Answer => answer(ledger, clients, &loaded, body).await,
        Deed::Cancel => cancel(ledger, clients, &loaded, body).await,
        Deed::Resume => resume(ledger, clients, &loaded).await,
    }
}

async fn answer(
    ledger: &Ledger,
    clients: &Clients,
    loaded: &Loaded,
    body: &Value,
) -> Result<Value, Failure> {
    let answer: Answer = serde_json::from_value(body.clone()).context("that is no answer")?;
    let refused = |why: String| Failure::unknown(format!("answer was refused: {why}"));
    let ask = loaded.steps.last().map(|step| (step.seq, &step.body));
    let Some((question_id, StepBody::Ask { payload, expires_at, .. })) = ask else {
        return Err(refused("the session has no open question".to_owned()));
    };
    let question: Question = serde_json::from_value(payload["question"].clone())
        .context("what is journaled is no question")?;
    // The poller judges; what it will refuse for certain is said here, where somebody reads it.
    let settled = question.settle(answer);
    let open = OpenQuestion { question_id, question, expires_at: *expires_at };
    open.check(&settled).map_err(|error| refused(error.to_string()))?;
    let mut detail = body.as_object().cloned().unwrap_or_default();
    detail.insert("session_id".to_owned(), json!(loaded.id));
    clients.answer(&detail).await?;
    let until = Instant::now() + ANSWERED_WITHIN;
    while Instant::now() < until {
        let newest = read::newest_step(&ledger.store, &loaded.id).await?;
        if let Some(step) = newest.filter(|step| step.seq > question_id) {
            return Ok(json!({ "session_id": loaded.id, "step": step.seq }));
        }
        ledger.store.changed(PATIENCE).await;
    }
    Err(Failure::unknown("the event bus took the answer, and the journal does not have it yet")
        .hint(format!("daybook show {} tells whether the question is still open", loaded.id)))
}

async fn cancel(
    ledger: &Ledger,
    clients: &Clients,
    loaded: &Loaded,
    body: &Value,
) -> Result<Value, Failure> {
    refuse_ended(loaded)?;
    let hlc = Hlc::new(Clock::system(), Stamp::default());
    loaded.events.iter().for_each(|event| hlc.observe(event.stamp));
    loaded.steps.iter().for_each(|step| hlc.observe(step.stamp));
    let mut draft = Draft::new(EventStatus::CancelRequested, About::Session);
    if let Some(reason) = body["reason"].as_str() {
        draft = draft.with_detail(json!({ "reason": reason }));
    }
    let voice = Announcer {
        store: &ledger.store,
        hlc: &hlc,
        session: &loaded.id,
        writer: Writer::Person,
        expires_at: loaded.events.first().map_or(0, |event| event.expires_at),
    };
    voice.announce_once(&draft).await?;
    let woken = wake(ledger, clients, &loaded.id).await?;
    Ok(json!({ "session_id": loaded.id, "woken": woken }))
}

async fn resume(ledger: &Ledger, clients: &Clients, loaded: &Loaded) -> Result<Value, Failure> {
    let id = &loaded.id;
    refuse_ended(loaded)?;
    let no_execution =
        || Failure::unknown("what the session was asked for is not known: it has no execution");
    let first = loaded.events.first().ok_or_else(no_execution)?;
    let (resumes, newest) =
        clients.newest(id, loaded.execution_arn()).await?.ok_or_else(no_execution)?;
    if newest.execution == Execution::Running {
        let woken = wake(ledger, clients, id).await?;
        return Ok(json!({ "session_id": id, "woken": woken }));
    }
    if resumes >= RESUMES_MAX {
        return Err(Failure::unknown(format!("the session was resumed {RESUMES_MAX} times")));
    }
    // Verdicts are written before executions end, so that this look finds one that came meanwhile.
    let loaded = ledger.load(id.as_str()).await?;
    refuse_ended(&loaded)?;
    let mut input: Map<String, Value> =
        serde_json::from_str(&newest.input).context("the execution's input is no object")?;
    let working = is_at_work(ledger, id).await?;
    let standing = standing(&loaded.events, &loaded.steps, first.expires_at, working);
    input.insert("resume".to_owned(), json!(standing));
    let name = execution::name(id, resumes + 1);
    clients.start(&name, &json!(input).to_string()).await?;
    Ok(json!({ "session_id": id, "woken": false, "execution": name }))
}

/// Stopping an execution does not stop its agent, which goes on to beat.
async fn is_at_work(ledger: &Ledger, id: &SessionId) -> Result<bool, Failure> {
    let lease = Lease::read(&ledger.store, id).await?;
    let now = ledger::now();
    Ok(lease.is_some_and(|lease| lease.runner.is_some() && now.since(lease.beat_at) < SILENT_AFTER))
}

fn refuse_ended(loaded: &Loaded) -> Result<(), Failure> {
    let status = status(&loaded.events);
    admits(status, EventStatus::CancelRequested)
        .map_err(|_| Failure::unknown(format!("the session has ended: {status}")))
}

async fn wake(ledger: &Ledger, clients: &Clients, id: &SessionId) -> Result<bool, Failure> {
    match Wait::read(&ledger.store, id).await? {
        Some(wait) => clients.wake(&wait.token).await,
        None => Ok(false),
    }
}
