//! `keys`: the key that signs the log of sessions.

use std::path::Path;

use journal::sqlite::Durability;
use serde_json::json;
use stack::folder::{self, FolderLock};
use stack::keys::Keys;
use stack::stack::{JOURNAL_FILE, StartError};
use stack::store::Database;
use tlog::key::SignerKey;

use crate::args::{KeysAction, Target};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader;
use crate::resolve::Context;

/// Shows or replaces the key.
///
/// # Errors
/// When there is none, or it cannot be read or written.
pub async fn keys(context: &Context, action: KeysAction) -> Result<Exit, Failure> {
    if context.target == Target::Aws {
        return of_account(context, action).await;
    }
    let folder = reader::folder(context).await?;
    let all = context.keys.as_deref().ok_or_else(|| {
        Failure::unknown("no folder for keys: neither DAYBOOK_KEYS nor HOME is set")
            .hint("set DAYBOOK_KEYS to a folder outside the journal's")
    })?;
    let keys = Keys::of(all, &folder);
    match action {
        KeysAction::Show => show(context, &keys),
        KeysAction::Rotate { new_log } => {
            let _lock = if new_log { stopped(&folder)? } else { None };
            let key = if new_log { begin_log(&keys, &folder).await? } else { keys.rotate()? };
            let key = key.verifier().to_string();
            if context.json {
                output::json(&json!({ "key": key, "folder": keys.folder() }))?;
            } else {
                output::line(&key)?;
                output::say(
                    "the stack signs new checkpoints with this key; give it to everyone who verifies sessions",
                );
            }
            Ok(Exit::Succeeded)
        }
    }
}

/// Begins a log under a new name, and signs what the journal holds now: what is written into the file later, before the
/// next stack starts, must not be signed with it.
async fn begin_log(keys: &Keys, folder: &Path) -> Result<SignerKey, Failure> {
    let file = folder.join(JOURNAL_FILE);
    // Before the key: a journal that cannot be opened needs no new log.
    let journal = file.exists().then(|| Database::open(&file, Durability::Fsync));
    let journal = journal.transpose().map_err(reader::unusable)?;
    let key = keys.begin_log()?;
    if let Some(journal) = journal {
        let signed = keys.sign(&journal).await;
        signed.map_err(|problem| {
            Failure::unknown(format!("the new log is not signed: {problem}"))
                .hint("run this again; until then, the next stack signs what the file holds when it starts")
        })?;
    }
    Ok(key)
}

/// Locks the folder of a stack that does not run.
fn stopped(folder: &Path) -> Result<Option<FolderLock>, Failure> {
    if !folder.is_dir() {
        return Ok(None);
    }
    match folder::take(folder) {
        Ok((_, lock)) => Ok(Some(lock)),
        Err(error @ StartError::InUse(_)) => Err(Failure::from(error)
            .hint("stop the stack first: it marks leaves with the secret that is replaced")),
        Err(error) => Err(error.into()),
    }
}

/// The key of an account's log is in AWS KMS.
async fn of_account(context: &Context, action: KeysAction) -> Result<Exit, Failure> {
    match action {
        KeysAction::Show => {
            let key = public_key(context).await?;
            if context.json {
                output::json(&json!({ "keys": [key] }))?;
            } else {
                output::line(&key)?;
            }
            Ok(Exit::Succeeded)
        }
        KeysAction::Rotate { .. } => Err(Failure::usage(
            "the key of an account's log is not replaced",
        )
        .hint(
            "each checkpoint continues one that the same key has signed: see docs/verification.md",
        )),
    }
}

#[cfg(feature = "live")]
async fn public_key(context: &Context) -> Result<String, Failure> {
    Ok(super::verify::account::public_key(context).await?.to_string())
}

#[cfg(not(feature = "live"))]
#[expect(clippy::unused_async, reason = "with `live`, it waits")]
async fn public_key(_: &Context) -> Result<String, Failure> {
    Err(Failure::not_live("the key of an AWS account"))
}

fn show(context: &Context, keys: &Keys) -> Result<Exit, Failure> {
    let public: Vec<_> = keys.verifiers()?.iter().map(ToString::to_string).collect();
    if public.is_empty() {
        return Err(Failure::unknown(format!("no key in {}", keys.folder().display()))
            .hint("`daybook dev` makes one when it first starts with this data folder"));
    }
    if context.json {
        output::json(&json!({ "keys": public, "folder": keys.folder() }))?;
    } else {
        for key in &public {
            output::line(key)?;
        }
        output::say(&format!("the signing key is in {}", keys.folder().display()));
    }
    Ok(Exit::Succeeded)
}
