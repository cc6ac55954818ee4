//! `restore`: a backup, verified, becomes the journal of a data folder.

use journal::log::Trust;
use serde_json::json;
use stack::backup::{self, History, Restore};
use stack::keys::Keys;
use stack::store::Database;

use super::backup::{copied, failed, verified, whole_pages};
use super::verify::read_keys;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader;
use crate::resolve::Context;

/// Verifies a backup, and puts it in place.
///
/// # Errors
/// When the file is no backup or damaged, or the folder is in use or has a journal.
pub async fn restore(context: &Context, options: &args::keep::Restore) -> Result<Exit, Failure> {
    if !options.file.is_file() {
        return Err(Failure::unknown(format!("no backup at {}", options.file.display())));
    }
    let data = match &options.data_dir {
        Some(folder) => folder.clone(),
        None => reader::folder(context).await?,
    };
    let restore = Restore::begin(&data, options.replace).map_err(failed)?;
    copied(&options.file, restore.journal()).await?;
    whole_pages(restore.journal()).await?;
    let folders = backup::state_folders(&context.agents);
    let unpacked = restore.unpack(&folders).map_err(failed)?;
    let keys = context.keys.as_deref().map(|keys| Keys::of(keys, restore.data()));
    // What was signed later than the backup is compared afterwards: it is no damage of the backup.
    let whole = verified(context, restore.journal(), trust(options, keys.as_ref())?, None).await?;
    if whole.exit() == Exit::Failed && !options.allow_damage {
        output::lines(whole.lines(context))?;
        return Err(Failure::damaged("the backup is damaged; nothing was restored")
            .hint("restore another one; or this one all the same with --allow-damage"));
    }
    if whole.exit() == Exit::Unknown && options.key.is_some() && !options.allow_unproven {
        output::lines(whole.lines(context))?;
        return Err(Failure::unknown(
            "the backup does not prove what --key requires; nothing was restored",
        )
        .hint("restore another one; or this one all the same with --allow-unproven"));
    }
    let history = history(keys.as_ref(), restore.journal()).await?;
    let data = restore.data().to_owned();
    let former = restore.finish().map_err(failed)?;
    if context.json {
        output::json(&json!({
            "data": data, "former_journal": former, "state_files": unpacked.files,
            "verified": whole.to_json(), "log": of_history(&history),
        }))?;
    } else {
        output::lines(whole.lines(context))?;
        output::line(&format!("restored into {}", data.display()))?;
        if let Some(former) = &former {
            output::say(&format!("the journal that was there is {}", former.display()));
        }
        if unpacked.skipped > 0 {
            let skipped = unpacked.skipped;
            output::say(&format!(
                "{skipped} files of MCP servers that no agent here has were left out"
            ));
        }
        output::say(&sentence(&history));
        if matches!(history, History::Broken(_)) {
            output::hint(
                "when you accept the loss, begin a log under a new name with: daybook keys rotate --new-log",
            );
        }
    }
    Ok(whole.exit())
}

/// The keys of `--key`, whose signature is then required, or else those that are here for the folder.
fn trust(options: &args::keep::Restore, keys: Option<&Keys>) -> Result<Trust, Failure> {
    let log = match (&options.key, keys) {
        (Some(file), _) => read_keys(file)?,
        (None, Some(keys)) => keys.verifiers()?,
        (None, None) => Vec::new(),
    };
    Ok(Trust { log, is_required: options.key.is_some(), ..Trust::default() })
}

async fn history(keys: Option<&Keys>, journal: &std::path::Path) -> Result<History, Failure> {
    let Some(keys) = keys else { return Ok(History::Unsigned) };
    let database = Database::open_read_only(journal).map_err(reader::unusable)?;
    History::of(keys, &database).await.map_err(Failure::unknown)
}

fn of_history(history: &History) -> serde_json::Value {
    match history {
        History::Unsigned => json!({ "state": "unsigned" }),
        History::Continued => json!({ "state": "continued" }),
        History::Broken(problem) => json!({ "state": "broken", "problem": problem }),
    }
}

fn sentence(history: &History) -> String {
    match history {
        History::Unsigned => {
            "no log of sessions was signed here for this folder; the stack makes a key and a log of its own name".to_owned()
        }
        History::Continued => "the stack continues the log of sessions that was signed here".to_owned(),
        History::Broken(problem) => format!(
            "the log of sessions does not continue what was signed here: {problem}. Sessions run, but the stack signs nothing, because it would tell a second history under the same name"
        ),
    }
}
