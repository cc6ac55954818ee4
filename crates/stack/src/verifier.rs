//! Verifies the sessions of a local journal against everything that this machine holds of them: its executions, the log
//! of sessions, and the keys that signed it.

use std::collections::BTreeSet;

use journal::clock::Stamp;
use journal::halt;
use journal::id::SessionId;
use journal::item::Hash;
use journal::key;
use journal::log::{Extract, Judged, Trust};
use journal::store::Error;
use journal::verify::{self, Anchor, Anchors, Report};

use crate::checkpoints::{Audit, Read};
use crate::executions::{self, Heads};
use crate::keys::Keys;
use crate::store::Database;

/// Partitions that are read at once.
const PARTITIONS: usize = 1_000;

/// A local journal, and what its sessions are held against.
#[derive(Debug)]
pub struct Verifier {
    database: Database,
    trust: Trust,
    /// What was found of the log as a whole.
    pub audit: Audit,
}

/// A session's report, and the number of records that it is about.
#[derive(Debug)]
pub struct Verified {
    pub report: Report,
    pub records: usize,
}

/// What a journal's partitions and its log name.
#[derive(Debug, Default)]
pub struct Named {
    pub sessions: BTreeSet<SessionId>,
    /// Partitions that a journal does not have: of payloads of a session without records, or with a key that nothing of
    /// ours has or that no query finds.
    pub strays: Vec<String>,
    /// What does not hold in the chain of halts, each in a sentence.
    pub halts: Vec<String>,
    /// The damaged executions, each in a sentence.
    pub executions: Vec<String>,
}

impl Verifier {
    /// Compares the log with its checkpoints, and with an older one. Without keys in `trust`, those of `keys` count.
    ///
    /// # Errors
    /// The public keys cannot be read.
    pub async fn new(
        database: Database,
        keys: Option<&Keys>,
        mut trust: Trust,
        older: Option<&str>,
    ) -> Result<Self, crate::keys::Error> {
        if trust.log.is_empty()
            && let Some(keys) = keys
        {
            trust.log = keys.verifiers()?;
        }
        let mut audit = Audit::of(&database, keys, older, &trust).await;
        match database.hidden().await {
            Ok(hidden) => audit.problems.extend(hidden),
            Err(error) => audit.problems.push(crate::stack::chain(&error)),
        }
        if let Err(error) = audit.read_checkpoints(&database).await {
            audit.problems.push(crate::stack::chain(&error));
        }
        Ok(Self { database, trust, audit })
    }

    /// Whether a signature was asked for that the log does not have.
    pub fn lacks_signature(&self) -> bool {
        self.trust.is_required && self.audit.signed_by.is_none()
    }

    /// Reads every leaf of the log, and names every session that there is a trace of.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn read_all(&mut self) -> Result<Named, Error> {
        self.audit.read_leaves(&self.database).await?;
        let mut named = partitions(&self.database).await?;
        named.sessions.extend(self.audit.sessions.iter().cloned());
        named.executions = executions::damaged(&self.database).await?;
        named.halts = halt::verify(&self.database, &self.audit.halts).await?;
        Ok(named)
    }

    /// Verifies a session; `given` are hashes of its verdict that the caller kept. `None` if there is neither a record nor
    /// a leaf of it.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn report(
        &self,
        id: &SessionId,
        given: &[Hash],
        now: Stamp,
    ) -> Result<Option<Verified>, Error> {
        // Before the records: a verdict is durable before an execution holds its hash.
        let named = executions::named(&self.database, id).await?;
        let executed = executions::heads(&self.database, id, named).await?;
        let Read { records, log } = Read::of(&self.database, &self.database, id).await?;
        let log = self.judge(id, log);
        if records.is_empty() && log.as_ref().is_none_or(|log| log.leaves().next().is_none()) {
            return Ok(None);
        }
        let given = given.iter().cloned().map(|head| (Anchor::Given, head));
        let Heads { found, unreadable } = executed;
        let executed = found.into_iter().map(|head| (Anchor::LocalExecution, head));
        let heads = given.chain(executed).collect();
        let anchors = Anchors { heads, log, unmet: unreadable, ..Anchors::default() };
        let report = verify::verify(id, &records, &anchors, now);
        Ok(Some(Verified { report, records: records.len() }))
    }

    fn judge(&self, id: &SessionId, log: Result<Option<Extract>, Error>) -> Option<Judged> {
        let problems = &self.audit.problems;
        let judged = match log {
            // A log that is gone, although it was asked for or a checkpoint was signed, proves nothing.
            Ok(None) if problems.is_empty() => {
                return self.trust.is_required.then(|| Extract::default().judge(id, &self.trust));
            }
            Ok(extract) => extract.unwrap_or_default().judge(id, &self.trust),
            Err(error) => Judged::unreadable(crate::stack::chain(&error)),
        };
        Some(judged.with_problems(problems))
    }
}

async fn partitions(database: &Database) -> Result<Named, Error> {
    let (mut sessions, mut payloads) = (BTreeSet::new(), Vec::new());
    let mut strays = database.partitions_not_text(PARTITIONS).await?;
    let mut after = String::new();
    loop {
        let page = database.partitions(after.clone(), PARTITIONS).await?;
        let Some(last) = page.last() else { break };
        if *last <= after {
            // A key that is no UTF-8 sorts after its readable form, so the next page would be the same again.
            strays.push(format!("{last}, whose key is no text and hides those after it,"));
            break;
        }
        after.clone_from(last);
        for pk in page {
            match key::session_of(&pk) {
                Some(session) => drop(sessions.insert(session)),
                None if pk.starts_with("SESSION#") => strays.push(pk),
                None if pk.starts_with("BLOB#") => payloads.push(pk),
                None if key::is_of_journal(&pk) => {}
                None => strays.push(pk),
            }
        }
    }
    payloads
        .retain(|pk| key::session_of_blob(pk).is_none_or(|session| !sessions.contains(&session)));
    strays.append(&mut payloads);
    Ok(Named { sessions, strays, ..Named::default() })
}
