//! `verify`: one session, an exported one, or the whole journal with its log of sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;
use journal::id::SessionId;
use journal::item::Hash;
use journal::log::Trust;
use journal::sqlite::{Pages, check_pages};
use journal::verify::{Outcome, Report, State};
use serde_json::{Value, json};
use stack::checkpoints::{self, Audit, Read};
use stack::keys::Keys;
use stack::store::Database;
use stack::verifier::{Named, Verifier};
use tlog::key::VerifierKey;

#[cfg(feature = "live")]
pub(super) mod account;

use super::backup::PAGES_TIMEOUT;
use super::transfer;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::progress;
use crate::reader::{self, Reader};
use crate::render::report;
use crate::resolve::{Checks, Context, Subject};

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
    let reader = Reader::open(context).await?;
    let id = reader.find(session).await?;
    let found = match reader.store.here() {
        Some(database) => {
            checkpoints::settle(database, &id).await;
            let verifier = verifier(context, database, &checks).await?;
            let found = verifier.report(&id, checks.head.as_slice(), reader::now()).await?;
            found.map(|found| found.report)
        }
        None => in_account(context, &reader, &id, &checks).await?,
    };
    let report = found.ok_or_else(|| reader::no_session(id.as_str()))?;
    print(context, id.as_str(), &report)?;
    Ok(exit(report.outcome()))
}

async fn verifier(
    context: &Context,
    database: &Database,
    checks: &Checks,
) -> Result<Verifier, Failure> {
    let older = checks.checkpoint.as_deref().map(read_note).transpose()?;
    let keys = keys(context, database);
    let trust = trust(checks)?;
    Ok(Verifier::new(database.clone(), keys.as_ref(), trust, older.as_deref()).await?)
}

#[cfg(feature = "live")]
async fn in_account(
    context: &Context,
    reader: &Reader,
    id: &SessionId,
    checks: &Checks,
) -> Result<Option<Report>, Failure> {
    account::Account::open(context, reader, checks).await?.report(id, checks.head.as_slice()).await
}

#[cfg(feature = "live")]
async fn all_in_account(
    context: &Context,
    reader: &Reader,
    checks: &Checks,
) -> Result<Exit, Failure> {
    account::Account::open(context, reader, checks).await?.all().await
}

#[cfg(feature = "live")]
pub(super) async fn read_in_account(reader: &Reader, id: &SessionId) -> Result<Read, Failure> {
    Ok(Read::of(&reader.store, &account::log(reader)?, id).await?)
}

#[cfg(not(feature = "live"))]
#[expect(clippy::unused_async, reason = "with `live`, it waits")]
pub(super) async fn read_in_account(_: &Reader, _: &SessionId) -> Result<Read, Failure> {
    Err(Failure::not_live("the journal of an AWS account"))
}

#[cfg(not(feature = "live"))]
#[expect(clippy::unused_async, reason = "with `live`, it waits")]
async fn in_account(
    _: &Context,
    _: &Reader,
    _: &SessionId,
    _: &Checks,
) -> Result<Option<Report>, Failure> {
    Err(Failure::not_live("the journal of an AWS account"))
}

#[cfg(not(feature = "live"))]
#[expect(clippy::unused_async, reason = "with `live`, it waits")]
async fn all_in_account(_: &Context, _: &Reader, _: &Checks) -> Result<Exit, Failure> {
    Err(Failure::not_live("the journal of an AWS account"))
}

/// The keys of the journal's folder.
pub(super) fn keys(context: &Context, database: &Database) -> Option<Keys> {
    Some(Keys::of(context.keys.as_deref()?, database.path().parent()?))
}

/// The keys that the command line names.
fn trust(checks: &Checks) -> Result<Trust, Failure> {
    let log = checks.key.as_deref().map(read_keys).transpose()?.unwrap_or_default();
    let is_required = !log.is_empty() || !checks.witnesses.is_empty();
    Ok(Trust { log, witnesses: checks.witnesses.clone(), is_required })
}

/// Reads a file with public keys.
pub(super) fn read_keys(file: &Path) -> Result<Vec<VerifierKey>, Failure> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    let keys = stack::keys::verifiers(&text);
    Ok(keys.with_context(|| format!("{} has no keys", file.display()))?)
}

/// Reads a checkpoint, or the copy of one in an account's bucket: `{"checkpoint": …}`.
fn read_note(file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    let copy = serde_json::from_str::<Value>(&text).ok();
    let note = copy.as_ref().and_then(|copy| copy.get("checkpoint")?.as_str());
    Ok(note.map_or(text.clone(), str::to_owned))
}

/// Verifies every session that the journal or its log names, and the log.
async fn of_all(context: &Context, checks: Checks) -> Result<Exit, Failure> {
    let reader = Reader::open(context).await?;
    let Some(database) = reader.store.here() else {
        return all_in_account(context, &reader, &checks).await;
    };
    let verifier = verifier(context, database, &checks).await?;
    let mut whole = Whole::read(context, verifier, checks.head.as_slice(), Told::All).await?;
    // Pages and indexes that no session's verification reads, such as those of lists.
    match check_pages(database.path(), PAGES_TIMEOUT).await.map_err(reader::unusable)? {
        Pages::Whole => {}
        Pages::Damaged(found) => whole.audit.problems.extend(found),
        Pages::NotInTime => whole.not_provable = true,
    }
    whole.print(context)?;
    Ok(whole.exit())
}

/// Which sessions are printed while a journal is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// With JSON all, otherwise those that are not sound or have not ended.
    All,
    /// Prints to stderr the sessions that are damaged or not provable.
    Problems,
}

/// What became of the sessions of a journal.
#[derive(Debug, Default)]
pub(super) struct Whole {
    words: BTreeMap<&'static str, usize>,
    /// What names their verdicts, besides the records.
    anchors: BTreeSet<&'static str>,
    damaged: bool,
    not_provable: bool,
    audit: Audit,
    strays: Vec<String>,
    halts: Vec<String>,
    executions: Vec<String>,
}

impl Whole {
    /// No session yet of a journal with this log.
    fn held_against(audit: Audit) -> Self {
        Self { audit, ..Self::default() }
    }

    /// Verifies every session that a journal or its log names.
    ///
    /// # Errors
    /// When the journal cannot be read, or stdout is closed.
    pub(super) async fn read(
        context: &Context,
        mut verifier: Verifier,
        heads: &[Hash],
        told: Told,
    ) -> Result<Self, Failure> {
        let named = verifier.read_all().await?;
        let lacks_signature = verifier.lacks_signature();
        // Said once, not of every session.
        let audit = std::mem::take(&mut verifier.audit);
        let logged = audit.sessions.clone();
        let Named { sessions, strays, halts, executions } = named;
        let mut whole = Self { strays, halts, executions, ..Self::held_against(audit) };
        if lacks_signature {
            whole.not_provable = true;
            output::say("the log has no checkpoint that a required key signed");
        }
        for (done, id) in sessions.iter().enumerate() {
            progress::bar("verifying", done as u64, sessions.len() as u64, "sessions");
            match verifier.report(id, heads, reader::now()).await? {
                Some(found) => whole.add(context, id, &found.report, told)?,
                None if logged.contains(id) => {
                    let problem = format!("its leaf of session {id} is not found by its session");
                    whole.audit.problems.push(problem);
                }
                None => {}
            }
        }
        Ok(whole)
    }

    fn add(
        &mut self,
        context: &Context,
        id: &SessionId,
        report: &Report,
        told: Told,
    ) -> Result<(), Failure> {
        *self.words.entry(report.word()).or_default() += 1;
        self.anchors.extend(report.anchors.iter().map(|anchor| anchor.as_str()));
        self.damaged |= report.outcome() == Outcome::Damaged;
        self.not_provable |= report.outcome() == Outcome::NotProvable;
        let has_problem = report.outcome() != Outcome::Sound;
        match told {
            Told::All if context.json || has_problem || report.state == State::Open => {
                print(context, id.as_str(), report)?;
            }
            Told::Problems if has_problem => {
                let lines = report::verification(context.look, id.as_str(), report);
                lines.iter().for_each(|line| output::say(line));
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "sessions": self.words.values().sum::<usize>(), "outcomes": self.words,
            "anchors": self.anchors, "log": self.audit.to_json(), "strays": self.strays,
            "halts": self.halts, "executions": self.executions,
        })
    }

    pub(super) fn lines(&self, context: &Context) -> Vec<String> {
        let damage = [&self.strays, &self.halts, &self.executions].map(Vec::as_slice);
        report::whole(context.look, &self.words, &self.audit, damage)
    }

    fn print(&self, context: &Context) -> Result<(), Failure> {
        if context.json {
            output::json(&self.to_json())?;
        } else {
            output::lines(self.lines(context))?;
        }
        Ok(())
    }

    pub(super) fn exit(&self) -> Exit {
        let lists = [&self.audit.problems, &self.strays, &self.halts];
        let is_damaged = self.damaged || lists.iter().any(|problems| !problems.is_empty());
        // What a damaged execution recorded is unknown.
        match (is_damaged, self.not_provable || !self.executions.is_empty()) {
            (true, _) => Exit::Failed,
            (false, true) => Exit::Unknown,
            (false, false) => Exit::Succeeded,
        }
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
        Outcome::Sound | Outcome::Pruned => Exit::Succeeded,
        Outcome::Damaged => Exit::Failed,
        Outcome::NotProvable => Exit::Unknown,
    }
}

pub(super) fn report_json(name: &str, report: &Report) -> Value {
    let (state, head) = match &report.state {
        State::Open => ("open", None),
        State::Sealed { head } => ("sealed", Some(head.as_str())),
        State::Expired => ("expired", None),
        State::Pruned { head, .. } => ("pruned", Some(head.as_str())),
    };
    let pruned = match &report.state {
        State::Pruned { at, by, reason, .. } => {
            Some(json!({ "at": at, "by": by.to_string(), "reason": reason }))
        }
        _ => None,
    };
    let anchors: Vec<_> = report.anchors.iter().map(|anchor| anchor.as_str()).collect();
    let damage: Vec<_> = report.damage.iter().map(ToString::to_string).collect();
    json!({
        "session_id": name, "state": state, "head": head, "sound": report.is_sound(),
        "word": report.word(),
        "outcome": report.outcome().as_str(), "anchors": anchors,
        "damage": damage, "unsealed": report.unsealed, "unmet": report.unmet,
        "erased": report.erased.is_some(),
        "pruned": pruned,
        "log": report.log.map(|log| json!({ "leaves": log.leaves, "unsigned": log.unsigned })),
    })
}
