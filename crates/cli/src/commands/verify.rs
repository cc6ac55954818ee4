//! `verify`: one session, an exported one, or the whole journal with its log of sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;
use journal::export;
use journal::id::SessionId;
use journal::key;
use journal::log::{Extract, Judged, Trust};
use journal::store::Error;
use journal::verify::{self, Anchor, Anchors, Outcome, Report, State};
use serde_json::{Value, json};
use stack::checkpoints::{self, Audit, Read};
use stack::keys::Keys;
use stack::store::Database;

use super::transfer;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::{self, Reader};
use crate::render::report;
use crate::resolve::{Checks, Context, Subject};

/// Partitions that are read at once.
const PARTITIONS: usize = 1_000;

/// Verifies what the subject names, and reports the damage.
///
/// # Errors
/// When it cannot be read.
pub async fn verify(context: &Context, subject: Subject, checks: Checks) -> Result<Exit, Failure> {
    match subject {
        Subject::File(file) => of_file(context, &file, &checks),
        Subject::Session(session) => of_session(context, &session, checks).await,
        Subject::All => of_all(context, checks).await,
    }
}

fn of_file(context: &Context, file: &Path, checks: &Checks) -> Result<Exit, Failure> {
    let export = transfer::read(file)?;
    let name = export.session().map_or_else(|| file.display().to_string(), String::from);
    let report = export.verify_with(checks.head.as_ref(), &trust(checks)?, reader::now());
    print(context, &name, &report)?;
    Ok(exit(report.outcome()))
}

async fn of_session(context: &Context, session: &str, checks: Checks) -> Result<Exit, Failure> {
    let verifier = Verifier::open(context, checks).await?;
    let id = verifier.reader.find(session).await?;
    if let Some(database) = verifier.reader.store.here() {
        checkpoints::settle(database, &id).await;
    }
    let report = verifier.report(&id).await?;
    let report = report.ok_or_else(|| reader::no_session(id.as_str()))?;
    print(context, id.as_str(), &report)?;
    Ok(exit(report.outcome()))
}

/// A journal, and what its sessions are held against.
struct Verifier<'a> {
    context: &'a Context,
    reader: Reader,
    checks: Checks,
    trust: Trust,
    audit: Audit,
}

impl<'a> Verifier<'a> {
    async fn open(context: &'a Context, checks: Checks) -> Result<Self, Failure> {
        let reader = Reader::open(context).await?;
        let mut trust = trust(&checks)?;
        let mut found = Audit::default();
        if let Some(database) = reader.store.here() {
            let keys = keys(context, database);
            if trust.log.is_empty()
                && let Some(keys) = &keys
            {
                trust.log = keys.verifiers()?;
            }
            let older = checks.checkpoint.as_deref().map(read_note).transpose()?;
            found = Audit::of(database, keys.as_ref(), older.as_deref(), &trust).await;
        }
        Ok(Self { context, reader, checks, trust, audit: found })
    }

    /// `None` if there is neither a record nor a leaf of the session.
    async fn report(&self, id: &SessionId) -> Result<Option<Report>, Failure> {
        // Before the records: a verdict is durable before an execution holds its hash.
        let (of_executions, unmet) = self.reader.heads(self.context, id).await?;
        let (records, log) = match self.reader.store.here() {
            Some(database) => {
                let read = Read::of(database, id).await?;
                let log = self.judge(id, read.log);
                (read.records, log)
            }
            None => (export::records(&self.reader.store, id).await?, None),
        };
        if records.is_empty() && log.as_ref().is_none_or(|log| log.leaves().next().is_none()) {
            return Ok(None);
        }
        let given = self.checks.head.iter().cloned().map(|head| (Anchor::Given, head));
        let execution = match self.reader.store.here() {
            Some(_) => Anchor::LocalExecution,
            None => Anchor::Execution,
        };
        let executed = of_executions.into_iter().map(|head| (execution, head));
        let heads = given.chain(executed).collect();
        let anchors = Anchors { heads, last_step: None, log, unmet };
        Ok(Some(verify::verify(id, &records, &anchors, reader::now())))
    }

    fn judge(&self, id: &SessionId, log: Result<Option<Extract>, Error>) -> Option<Judged> {
        let judged = match log {
            Ok(extract) => extract?.judge(id, &self.trust),
            Err(error) => Judged::unreadable(format!("{:#}", anyhow::Error::from(error))),
        };
        Some(judged.with_problems(&self.audit.problems))
    }
}

/// The keys of the journal's folder.
pub(super) fn keys(context: &Context, database: &Database) -> Option<Keys> {
    Some(Keys::of(context.keys.as_deref()?, database.path().parent()?))
}

/// The keys that the command line names.
fn trust(checks: &Checks) -> Result<Trust, Failure> {
    let named = checks.key.as_deref().map(|file| {
        let text = std::fs::read_to_string(file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        stack::keys::verifiers(&text).with_context(|| format!("{} has no keys", file.display()))
    });
    let log = named.transpose()?.unwrap_or_default();
    let is_required = !log.is_empty() || !checks.witnesses.is_empty();
    Ok(Trust { log, witnesses: checks.witnesses.clone(), is_required })
}

fn read_note(file: &Path) -> Result<String, Failure> {
    Ok(std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?)
}

/// Verifies every session that the journal or its log names, and the log.
async fn of_all(context: &Context, checks: Checks) -> Result<Exit, Failure> {
    let mut verifier = Verifier::open(context, checks).await?;
    let Some(database) = verifier.reader.store.here() else {
        return Err(Failure::usage("`verify --all` needs a local journal")
            .hint("an account's journal has no log of sessions: verify its sessions one by one"));
    };
    verifier.audit.read_leaves(database).await?;
    // Said once, not of every session.
    let audit = std::mem::take(&mut verifier.audit);
    let (mut sessions, strays) = partitions(database).await?;
    sessions.extend(audit.sessions.iter().cloned());
    let mut tally = Tally::default();
    for id in &sessions {
        if let Some(report) = verifier.report(id).await? {
            tally.add(context, id, &report)?;
        }
    }
    tally.finish(context, &audit, &strays)
}

/// All sessions with records, and the partitions that no session has: of payloads of a session without records, or with
/// a key that is no session's or that no query finds.
async fn partitions(database: &Database) -> Result<(BTreeSet<SessionId>, Vec<String>), Failure> {
    let (mut sessions, mut payloads) = (BTreeSet::new(), Vec::new());
    let mut strays = database.partitions_not_text(PARTITIONS).await?;
    let mut after = String::new();
    loop {
        let page = database.partitions(after.clone(), PARTITIONS).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(last);
        for pk in page {
            match key::session_of(&pk) {
                Some(session) => drop(sessions.insert(session)),
                None if pk.starts_with("SESSION#") => strays.push(pk),
                None if pk.starts_with("BLOB#") => payloads.push(pk),
                None => {}
            }
        }
    }
    payloads
        .retain(|pk| key::session_of_blob(pk).is_none_or(|session| !sessions.contains(&session)));
    strays.append(&mut payloads);
    Ok((sessions, strays))
}

/// What became of the sessions of a journal.
#[derive(Default)]
struct Tally {
    words: BTreeMap<&'static str, usize>,
    damaged: bool,
    not_provable: bool,
}

impl Tally {
    fn add(&mut self, context: &Context, id: &SessionId, report: &Report) -> Result<(), Failure> {
        *self.words.entry(report.word()).or_default() += 1;
        self.damaged |= report.outcome() == Outcome::Damaged;
        self.not_provable |= report.outcome() == Outcome::NotProvable;
        let worth_telling = report.outcome() != Outcome::Sound || report.state == State::Open;
        if context.json || worth_telling {
            print(context, id.as_str(), report)?;
        }
        Ok(())
    }

    fn finish(self, context: &Context, audit: &Audit, strays: &[String]) -> Result<Exit, Failure> {
        let damaged = self.damaged || !audit.problems.is_empty() || !strays.is_empty();
        if context.json {
            output::json(&json!({
                "sessions": self.words.values().sum::<usize>(), "outcomes": self.words,
                "log": audit.to_json(), "strays": strays,
            }))?;
        } else {
            output::lines(report::whole(context.look, &self.words, audit, strays))?;
        }
        Ok(match (damaged, self.not_provable) {
            (true, _) => Exit::Failed,
            (false, true) => Exit::Unknown,
            (false, false) => Exit::Succeeded,
        })
    }
}

fn print(context: &Context, name: &str, report: &Report) -> Result<(), Failure> {
    if context.json {
        output::json(&report_json(name, report))?;
    } else {
        output::lines(report::verification(context.look, name, report))?;
    }
    Ok(())
}

fn exit(outcome: Outcome) -> Exit {
    match outcome {
        Outcome::Sound => Exit::Succeeded,
        Outcome::Damaged => Exit::Failed,
        Outcome::NotProvable => Exit::Unknown,
    }
}

pub(super) fn report_json(name: &str, report: &Report) -> Value {
    let (state, head) = match &report.state {
        State::Open => ("open", None),
        State::Sealed { head } => ("sealed", Some(head.as_str())),
        State::Expired => ("expired", None),
    };
    let anchors: Vec<_> = report.anchors.iter().map(|anchor| anchor.as_str()).collect();
    let damage: Vec<_> = report.damage.iter().map(ToString::to_string).collect();
    json!({
        "session_id": name, "state": state, "head": head, "sound": report.is_sound(),
        "word": report.word(),
        "outcome": report.outcome().as_str(), "anchors": anchors,
        "damage": damage, "unsealed": report.unsealed, "unmet": report.unmet,
        "log": report.log.map(|log| json!({ "leaves": log.leaves, "unsigned": log.unsigned })),
    })
}
