//! `export`, `import` and `verify`: moves sessions between journals and verifies them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::Context as _;
use journal::clock::Clock;
use journal::export::{self, Export, ImportError};
use journal::item::Hash;
use journal::sqlite::Durability;
use journal::verify::{self, Anchor, Anchors, Outcome, Report, State};
use serde_json::{Value, json};
use stack::stack::JOURNAL_FILE;
use stack::store::Database;

use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::{self, Reader, unusable};
use crate::render::report;
use crate::resolve::{Context, Subject};

/// Writes a session to stdout as JSON Lines.
///
/// # Errors
/// When it does not exist or cannot be read.
pub async fn export(context: &Context, session: &str) -> Result<Exit, Failure> {
    let reader = Reader::open(context).await?;
    let id = reader.find(session).await?;
    let records = export::records(&reader.store, &id).await?;
    if records.is_empty() {
        return Err(reader::no_session(id.as_str()));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    export::write(&id, &records, &mut out)?;
    out.flush()?;
    Ok(Exit::Succeeded)
}

/// Imports an exported session into the local journal.
///
/// # Errors
/// When the file is damaged, the journal has conflicting records, or a stack is running.
pub async fn import(context: &Context, file: &Path) -> Result<Exit, Failure> {
    let export = read(file)?;
    let folder = reader::folder(context).await?;
    refuse_beside_a_stack(context, &folder).await?;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let store = Database::open(&folder.join(JOURNAL_FILE), Durability::Fsync).map_err(unusable)?;
    let imported = match export::import(&store, &Clock::system(), &export).await {
        Ok(imported) => imported,
        Err(ImportError::Damaged(damage)) => {
            for damage in &damage {
                output::error(&damage.to_string());
            }
            output::hint("nothing was imported; export the session again");
            return Ok(Exit::Failed);
        }
        Err(error) => return Err(error.into()),
    };
    let id = export.session().map(String::from).unwrap_or_default();
    if context.json {
        let (written, present) = (imported.written, imported.present);
        output::json(&json!({"session_id": id, "written": written, "present": present}))?;
    } else {
        output::line(&id)?;
        output::say(&format!(
            "imported {} records, {} already present",
            imported.written, imported.present
        ));
    }
    Ok(Exit::Succeeded)
}

/// A journal has one writing process at a time.
async fn refuse_beside_a_stack(context: &Context, folder: &Path) -> Result<(), Failure> {
    let running = Endpoint::new(context)?.health().await.ok().flatten();
    let same = |other: &Path| match (other.canonicalize(), folder.canonicalize()) {
        (Ok(other), Ok(folder)) => other == folder,
        _ => false,
    };
    if running.and_then(|health| health.data).is_some_and(|data| same(&data)) {
        let problem = format!("a stack is writing the journal in {}", folder.display());
        return Err(Failure::unknown(problem)
            .hint("stop it first, or import into another folder with --data DIR"));
    }
    Ok(())
}

/// Verifies a session and reports the damage.
///
/// # Errors
/// When it cannot be read.
pub async fn verify(
    context: &Context,
    subject: Subject,
    head: Option<Hash>,
) -> Result<Exit, Failure> {
    let now = reader::now();
    let (name, report) = match subject {
        Subject::File(file) => {
            let export = read(&file)?;
            let name = export.session().map_or_else(|| file.display().to_string(), String::from);
            (name, export.verify(head.as_ref(), now))
        }
        Subject::Session(session) => {
            let reader = Reader::open(context).await?;
            let id = reader.find(&session).await?;
            // Before the records: a verdict is durable before an execution holds its hash.
            let of_executions = reader.heads(context, &id).await?;
            let records = export::records(&reader.store, &id).await?;
            if records.is_empty() {
                return Err(reader::no_session(id.as_str()));
            }
            let mut heads: Vec<_> = head.into_iter().map(|head| (Anchor::Given, head)).collect();
            heads.extend(of_executions.into_iter().map(|head| (Anchor::Execution, head)));
            let anchors = Anchors { heads, last_step: None };
            (id.to_string(), verify::verify(&id, &records, &anchors, now))
        }
    };
    if context.json {
        output::json(&report_json(&name, &report))?;
    } else {
        output::lines(report::verification(context.look, &name, &report))?;
    }
    Ok(match report.outcome() {
        Outcome::Sound => Exit::Succeeded,
        Outcome::Damaged => Exit::Failed,
        Outcome::NotProvable => Exit::Unknown,
    })
}

fn report_json(name: &str, report: &Report) -> Value {
    let (state, head) = match &report.state {
        State::Open => ("open", None),
        State::Sealed { head } => ("sealed", Some(head.as_str())),
        State::Expired => ("expired", None),
    };
    let anchors: Vec<_> = report.anchors.iter().map(|anchor| anchor.as_str()).collect();
    let damage: Vec<_> = report.damage.iter().map(ToString::to_string).collect();
    json!({
        "session_id": name, "state": state, "head": head, "sound": report.is_sound(),
        "outcome": report.outcome().as_str(), "anchors": anchors,
        "damage": damage, "unsealed": report.unsealed,
    })
}

fn read(file: &Path) -> Result<Export, Failure> {
    let input: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(BufReader::new(io::stdin()))
    } else {
        let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        Box::new(BufReader::new(opened))
    };
    Ok(export::read(input).with_context(|| format!("cannot read {}", file.display()))?)
}
