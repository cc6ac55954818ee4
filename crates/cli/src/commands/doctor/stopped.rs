//! Checks of the journal of a stack that does not run. What a running one would say is read from the files.

use journal::halt::{self, Halts};
use journal::log::Trust;
use serde_json::json;
use stack::checkpoints::Audit;
use stack::stack::JOURNAL_FILE;
use stack::storage::Storage;
use stack::store::Database;
use stack::verifier::Verifier;

use super::of_halts;
use crate::commands::verify::keys;
use crate::reader;
use crate::render::checks::{Check, Found};
use crate::resolve::Context;

const SEE: &str = "`daybook verify --all` says what the journal holds; see docs/verification.md";

/// Checks the log of sessions, the disk and the halts. A journal that is missing or cannot be read was named already.
pub(super) async fn checks(context: &Context) -> Vec<Check> {
    let skipped = |why: &str| {
        ["log of sessions", "disk", "halts"].map(|name| (name, Found::Skipped(why.to_owned())))
    };
    let Ok(folder) = reader::folder(context).await else {
        return skipped("not checked: the data folder is unknown").into();
    };
    let file = folder.join(JOURNAL_FILE);
    if !file.exists() {
        return skipped("not checked: there is no journal yet").into();
    }
    let Ok(database) = Database::open_read_only(&file) else {
        return skipped("not checked: the journal cannot be opened").into();
    };
    vec![
        ("log of sessions", log(context, &database).await),
        ("disk", disk(Storage::of(&database, &folder))),
        ("halts", halts(&database).await),
    ]
}

/// Compares the log with what was signed. The leaves' contents are for `verify --all`.
async fn log(context: &Context, database: &Database) -> Found {
    let keys = keys(context, database);
    let verifier = Verifier::new(database.clone(), keys.as_ref(), Trust::default(), None).await;
    match verifier.map(|verifier| verifier.audit) {
        Ok(Audit { problems, .. }) if !problems.is_empty() => Found::bad(problems.join("; "), SEE),
        Ok(audit) => Found::good(format!("{audit}; not signing: no stack is running")),
        Err(error) => Found::bad(error.to_string(), SEE),
    }
}

fn disk(storage: Storage) -> Found {
    let problems = storage.problems();
    if !problems.is_empty() {
        let why: Vec<_> = problems.values().filter_map(|why| why.as_str()).collect();
        return Found::bad(why.join("; "), "make room on its disk: see docs/keeping.md");
    }
    match storage.disk_left() {
        Some(left) => Found::good(format!("{left} bytes left")),
        None => Found::unknown("the system does not say how much is left", "look with `df`"),
    }
}

async fn halts(database: &Database) -> Found {
    let problems = match halt::verify(database, &[]).await {
        Ok(problems) => problems,
        Err(error) => return Found::bad(error.to_string(), SEE),
    };
    if !problems.is_empty() {
        return Found::bad(problems.join("; "), SEE);
    }
    match Halts::read(database).await {
        Ok(halts) => of_halts(&json!(halts.in_force)),
        Err(error) => Found::bad(error.to_string(), SEE),
    }
}
