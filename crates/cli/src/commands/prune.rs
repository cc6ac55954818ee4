//! `prune`, `hold` and `release`: through the running stack, or in the folder of a stopped one.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::Context as _;
use journal::clock::Clock;
use journal::id::SessionId;
use journal::log::{Decision, Label, Trust};
use journal::principal::Principal;
use serde_json::{Value, json};
use stack::keeping::{Fate, Keeper, PRUNE_MAX, Stopped};
use stack::stack::StartError;
use stack::verifier::Verifier;

use super::verify;
use crate::args::keep::{Hold, Prune, Release};
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::{self, Reader};
use crate::resolve::Context;
use crate::typing::Input;
use crate::user;

/// Most sessions of one run; a further run goes on.
const SESSIONS_MAX: usize = 100_000;

/// Where sessions are removed.
enum Place {
    Running(Endpoint),
    Stopped(Stopped),
}

impl Place {
    async fn open(context: &Context) -> Result<Self, Failure> {
        let folder = reader::folder(context).await?;
        let endpoint = Endpoint::new(context)?;
        let running = endpoint.health().await.ok().flatten().and_then(|health| health.data);
        let same = |data: PathBuf| match (data.canonicalize(), folder.canonicalize()) {
            (Ok(data), Ok(folder)) => data == folder,
            _ => false,
        };
        if running.is_some_and(same) {
            return Ok(Self::Running(endpoint));
        }
        let opened = Stopped::open(&folder, context.keys.as_deref()).await;
        opened.map(Self::Stopped).map_err(|error| match error {
            StartError::InUse(_) => {
                Failure::from(error).hint("name its address with --endpoint URL, or stop it first")
            }
            error => error.into(),
        })
    }

    async fn prune(
        &self,
        sessions: &[SessionId],
        keep: &BTreeSet<Label>,
        reason: &str,
    ) -> Result<Vec<(SessionId, Fate)>, Failure> {
        match self {
            Self::Stopped(stopped) => {
                Ok(stopped.keeper.prune(sessions, keep, &person(), reason).await?)
            }
            Self::Running(endpoint) => {
                let keep: Vec<_> = keep.iter().map(ToString::to_string).collect();
                let body = json!({ "sessions": sessions, "keep_labels": keep, "reason": reason });
                let reply = endpoint.post_to("/api/prune", &body).await?;
                reply["sessions"].as_array().into_iter().flatten().map(fate).collect()
            }
        }
    }

    async fn close(self) -> Result<(), Failure> {
        match self {
            Self::Stopped(stopped) => Ok(stopped.close().await?),
            Self::Running(_) => Ok(()),
        }
    }
}

fn fate(reply: &Value) -> Result<(SessionId, Fate), Failure> {
    let id = reply["session_id"].as_str().unwrap_or_default().parse();
    let id = id.context("the stack's reply names no session")?;
    let why = reply["why"].as_str().unwrap_or("no reason given").to_owned();
    Ok((id, if reply["pruned"] == true { Fate::Pruned } else { Fate::Kept(why) }))
}

fn person() -> Principal {
    user::name().map_or(Principal::Unknown, Principal::OsUser)
}

/// Prunes sessions that ended before a time.
///
/// # Errors
/// When the journal cannot be read or written, or nobody confirms.
pub async fn prune(context: &Context, prune: Prune) -> Result<Exit, Failure> {
    let keep: BTreeSet<Label> =
        prune.keep_label.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(
            |error: journal::log::InvalidLabel| Failure::usage(format!("--keep-label: {error}")),
        )?;
    let (sessions, kept) = candidates(context, &prune, &keep).await?;
    if prune.dry_run || sessions.is_empty() {
        return report(context, "would_prune", &sessions, &kept);
    }
    if !prune.yes {
        confirm(sessions.len(), kept.len()).await?;
    }
    let place = Place::open(context).await?;
    let (mut pruned, mut kept) = (Vec::new(), kept);
    for some in sessions.chunks(PRUNE_MAX) {
        for (id, fate) in place.prune(some, &keep, &prune.reason).await? {
            match fate {
                Fate::Pruned => pruned.push(id),
                Fate::Kept(why) => kept.push((id, why)),
            }
        }
        if std::io::stderr().is_terminal() {
            output::passing(&bar(pruned.len() + kept.len(), sessions.len() + kept.len()));
        }
    }
    place.close().await?;
    report(context, "pruned", &pruned, &kept)
}

/// The sessions to prune, and those that stay with the reason.
async fn candidates(
    context: &Context,
    prune: &Prune,
    keep: &BTreeSet<Label>,
) -> Result<(Vec<SessionId>, Vec<(SessionId, String)>), Failure> {
    let reader = Reader::open(context).await?;
    let Some(database) = reader.store.here() else {
        return Err(Failure::only_local("a table expires its records by itself"));
    };
    let before = prune.before.stamp(reader::now());
    let keys = verify::keys(context, database);
    let verifier = Verifier::new(database.clone(), keys.as_ref(), Trust::default(), None).await?;
    let keeper = Keeper { store: database.clone(), keys, clock: Clock::system() };
    let (mut sessions, mut kept) = (Vec::new(), Vec::new());
    for id in database.ended_before(before, SESSIONS_MAX).await? {
        match keeper.kept(&verifier, &id, keep).await? {
            None => sessions.push(id),
            Some(why) => kept.push((id, why)),
        }
    }
    Ok((sessions, kept))
}

async fn confirm(sessions: usize, kept: usize) -> Result<(), Failure> {
    let mut input = Input::of_stdin();
    if !input.is_terminal() {
        return Err(Failure::usage(
            "nothing was pruned: --yes is missing, and stdin is not a terminal",
        )
        .hint("look with --dry-run first, then pass --yes"));
    }
    input.ask(&format!("Remove {sessions} sessions for good, and keep {kept}? Type yes: "));
    let said = input.line(&[]).await?.unwrap_or_default();
    if said.trim() == "yes" { Ok(()) } else { Err(Failure::unknown("nothing was pruned")) }
}

fn bar(done: usize, all: usize) -> String {
    let share = done * 20 / all.max(1);
    format!("[{}{}] {done} of {all} sessions", "#".repeat(share), ".".repeat(20 - share))
}

fn report(
    context: &Context,
    what: &str,
    sessions: &[SessionId],
    kept: &[(SessionId, String)],
) -> Result<Exit, Failure> {
    if context.json {
        let kept: Vec<_> =
            kept.iter().map(|(id, why)| json!({ "session_id": id, "why": why })).collect();
        output::json(&json!({ what: sessions, "kept": kept }))?;
        return Ok(Exit::Succeeded);
    }
    output::lines(sessions.iter().map(SessionId::as_str))?;
    for (id, why) in kept {
        output::say(&format!("kept {id}: {why}"));
    }
    let verb = if what == "pruned" { "pruned" } else { "would prune" };
    output::say(&format!("{verb} {} sessions, kept {}", sessions.len(), kept.len()));
    Ok(Exit::Succeeded)
}

/// Holds a session.
///
/// # Errors
/// When it does not exist, or cannot be written.
pub async fn hold(context: &Context, hold: Hold) -> Result<Exit, Failure> {
    let Hold { session, label, reason } = hold;
    decide(context, &session, &label.label, &reason, Decision::Hold).await
}

/// Releases a session.
///
/// # Errors
/// When the label does not hold it, or it cannot be written.
pub async fn release(context: &Context, release: Release) -> Result<Exit, Failure> {
    let Release { session, label, reason } = release;
    decide(context, &session, &label.label, &reason, Decision::Release).await
}

async fn decide(
    context: &Context,
    session: &str,
    label: &str,
    reason: &str,
    decision: fn(Label) -> Decision,
) -> Result<Exit, Failure> {
    let label: Label = label
        .parse()
        .map_err(|error: journal::log::InvalidLabel| Failure::usage(format!("--label: {error}")))?;
    let (decision, name) = (decision(label.clone()), label.to_string());
    let (verb, past) = match decision {
        Decision::Release(_) => ("release", "released"),
        Decision::Hold(_) | Decision::Prune(_) => ("hold", "held"),
    };
    let id = Reader::open(context).await?.find(session).await?;
    match Place::open(context).await? {
        Place::Running(endpoint) => {
            let body = json!({ "label": name, "reason": reason });
            endpoint.post(&id, verb, &body).await?;
        }
        Place::Stopped(stopped) => {
            stopped.keeper.decide(&id, decision, &person(), reason).await?;
            stopped.sign().await;
        }
    }
    if context.json {
        output::json(&json!({ "session_id": id, "label": name, "action": verb }))?;
    } else {
        output::say(&format!("{past} session {id} under `{name}`"));
    }
    Ok(Exit::Succeeded)
}
