//! Thousands of changes to the file of a journal with many sessions, each by somebody who knows the format and can compute
//! hashes, but does not hold the signing key: every one is named.
//!
//! `DAYBOOK_TEST_MUTATIONS=10000,500` sets the number of single changes and of changes to pairs of sessions. The default
//! is what a test run has time for. `DAYBOOK_TEST_SESSIONS=200` sets the size of the journal.

mod edits;

use std::fs;
use std::path::{Path, PathBuf};

use journal::clock::Clock;
use journal::id::SessionId;
use journal::log::Trust;
use journal::verify::Outcome;
use rusqlite::Connection;
use stack::keys::Keys;
use stack::store::Database;
use stack::verifier::Verifier;

use crate::harness::{Dev, incident, run_in};
use edits::{Draw, pair, single};

/// A journal whose stack has stopped, and a copy of its file from which each change starts.
struct Journal {
    _folder: tempfile::TempDir,
    data: PathBuf,
    keys: PathBuf,
    original: PathBuf,
    sessions: Vec<SessionId>,
    /// Events that were late in the journal as it was.
    known: Vec<String>,
}

impl Journal {
    fn new(count: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (data, keys) = (folder.path().join("data"), folder.path().join(".keys"));
        let sessions = sessions(folder.path(), &data, count);
        let original = folder.path().join("original.db");
        let file = Connection::open(data.join("journal.db")).unwrap();
        file.execute("VACUUM INTO ?1", [original.to_str().unwrap()]).unwrap();
        Self { _folder: folder, data, keys, original, sessions, known: Vec::new() }
    }

    /// Makes a change in a fresh copy of the file. Returns whether it changed something.
    fn change(&self, edit: impl FnOnce(&Connection) -> rusqlite::Result<bool>) -> bool {
        let file = self.data.join("journal.db");
        for other in ["journal.db-wal", "journal.db-shm"] {
            let _ = fs::remove_file(self.data.join(other));
        }
        fs::copy(&self.original, &file).unwrap();
        let connection = Connection::open(&file).unwrap();
        connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF").unwrap();
        // A change that breaks a constraint of the file is none.
        edit(&connection).unwrap_or(false)
    }

    /// What `daybook verify --all` finds of these sessions and of the log: each finding, in words.
    async fn findings(&self, sessions: &[SessionId]) -> Vec<String> {
        let database = match Database::open_read_only(&self.data.join("journal.db")) {
            Ok(database) => database,
            Err(error) => return vec![error.to_string()],
        };
        let keys = Keys::of(&self.keys, &self.data);
        let verifier = Verifier::new(database, Some(&keys), Trust::default(), None).await;
        let mut verifier = verifier.unwrap();
        let named = match verifier.read_all().await {
            Ok(named) => named,
            Err(error) => return vec![error.to_string()],
        };
        let mut findings = std::mem::take(&mut verifier.audit.problems);
        findings.extend(named.strays.into_iter().chain(named.executions));
        for id in sessions {
            match verifier.report(id, &[], Clock::system().now()).await {
                Err(error) => findings.push(format!("{id}: {error}")),
                Ok(None) => findings.push(format!("{id} is gone")),
                // An event may come after the verdict. The report lists it as one that nothing seals.
                Ok(Some(found)) if found.report.outcome() == Outcome::Sound => {
                    let unsealed = found.report.unsealed.iter();
                    findings.extend(unsealed.map(|sk| format!("{id}: unsealed {sk}")));
                }
                Ok(Some(found)) => findings.push(format!(
                    "{id}: {} {:?}",
                    found.report.word(),
                    found.report.damage
                )),
            }
        }
        findings.retain(|finding| !self.known.contains(finding));
        findings
    }
}

/// Runs sessions of several agents, some of which fail, and stops the stack.
fn sessions(folder: &Path, data: &Path, count: usize) -> Vec<SessionId> {
    let dev = Dev::start(folder, data);
    let incident = incident("s3-permission-revoked").join("incident.json");
    let kinds: [&[&str]; 3] = [
        &["--agent", "checkup"],
        &["--agent", "incident"],
        &["--input", incident.to_str().unwrap()],
    ];
    let run = |n: usize| {
        let before = ["--endpoint", &dev.endpoint, "trigger", "--wait", "--json"];
        let ran = run_in(folder, &[&before, kinds[n % kinds.len()]].concat());
        let told = ran.json();
        let id = told.first().and_then(|told| told["session_id"].as_str());
        id.unwrap_or_else(|| panic!("{ran:#?}")).parse().unwrap()
    };
    let ids = (0..count).map(run).collect();
    assert_eq!(dev.stop("-TERM"), 0);
    ids
}

#[expect(clippy::disallowed_methods, reason = "how somebody asks for more")]
fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

#[tokio::test]
async fn every_change_to_a_journal_is_named() {
    let count = setting("DAYBOOK_TEST_SESSIONS", "12").parse().unwrap();
    let numbers = setting("DAYBOOK_TEST_MUTATIONS", "200,40");
    let (singles, pairs) = numbers.split_once(',').unwrap();
    let mut journal = Journal::new(count);
    assert!(journal.change(|_| Ok(true)));
    journal.known = journal.findings(&journal.sessions).await;
    let is_late = |finding: &String| finding.contains(": unsealed EVENT#");
    assert!(journal.known.iter().all(is_late), "{:#?}", journal.known);
    let none: Vec<String> = Vec::new();
    let mut draw = Draw::new(20_261_123);
    let (mut made, mut unseen) = (0, Vec::new());
    let wanted: usize = singles.parse().unwrap();
    while made < wanted {
        let session = draw.of(&journal.sessions).clone();
        let mut what = String::new();
        if !journal.change(|file| single(file, &session, &mut draw, &mut what)) {
            continue;
        }
        made += 1;
        if journal.findings(std::slice::from_ref(&session)).await.is_empty() {
            unseen.push(format!("{session}: {what}"));
        }
    }
    let (mut made_pairs, wanted): (usize, usize) = (0, pairs.parse().unwrap());
    while made_pairs < wanted {
        let (one, other) = (draw.of(&journal.sessions).clone(), draw.of(&journal.sessions).clone());
        let mut what = String::new();
        if one == other || !journal.change(|file| pair(file, [&one, &other], &mut draw, &mut what))
        {
            continue;
        }
        made_pairs += 1;
        if journal.findings(&[one.clone(), other.clone()]).await.is_empty() {
            unseen.push(format!("{one} and {other}: {what}"));
        }
    }
    eprintln!(
        "{made} single changes and {made_pairs} of pairs, {} sessions",
        journal.sessions.len()
    );
    assert_eq!(unseen, none);
}
