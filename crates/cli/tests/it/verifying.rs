//! `verify` names every single mutation of an exported session with its head: real sessions of
//! every bundled incident and of a checkup, each changed in every way at every place.
//!
//! Mutants are consistent: lines, witness and most record hashes match. Only the head, which is kept
//! elsewhere, contradicts them.

use std::collections::BTreeSet;
use std::path::Path;

use journal::clock::{Clock, Stamp};
use journal::event::Event;
use journal::export::{self, Export};
use journal::id::SessionId;
use journal::item::{HASH, Hash, Item, Value};
use journal::key;
use journal::verify::{Damage, Report, State};

use crate::harness::{Dev, daybook, incident, run, run_in};

/// A session as it was exported, and its head.
struct Session {
    name: String,
    id: SessionId,
    records: Vec<Item>,
    head: Hash,
    verdict: String,
}

impl Session {
    fn of(name: String, exported: &str) -> Self {
        let export = export::read(exported.as_bytes()).unwrap();
        let head = export.witness.as_ref().unwrap().head.clone().unwrap();
        let report = export.verify(Some(&head), Clock::system().now());
        assert_eq!((&report.damage, &report.unsealed), (&vec![], &vec![]), "{name}");
        let is_verdict =
            |item: &&Item| Event::from_item(item).is_ok_and(|event| event.status.is_verdict());
        let verdict = export.records.iter().find(is_verdict).unwrap().sk.clone();
        Self { name, id: export.session().unwrap(), records: export.records, head, verdict }
    }

    /// The file that these records would be exported as.
    fn file(&self, records: &[Item]) -> Vec<u8> {
        let mut file = Vec::new();
        export::write(&self.id, records, &mut file).unwrap();
        file
    }

    fn place(&self, item: &Item) -> String {
        if item.pk == key::session(&self.id) {
            item.sk.clone()
        } else {
            format!("{} {}", item.pk, item.sk)
        }
    }

    /// Verifies records as if they had been read from a file. A witness that fits says nothing, so
    /// there is none.
    fn verify(&self, records: Vec<Item>, head: Option<&Hash>, now: Stamp) -> Report {
        Export { records, witness: None, damage: Vec::new() }.verify(head, now)
    }

    /// Whether the report says something about the record at this place.
    fn names(&self, report: &Report, wanted: &str) -> bool {
        report.damage.iter().any(|damage| match damage {
            Damage::Changed { place, .. }
            | Damage::Added { place, .. }
            | Damage::Unnamed { place }
            | Damage::Misplaced { place }
            | Damage::Duplicated { place }
            | Damage::RequestMissing { place, .. }
            | Damage::Unreadable { place, .. } => place == wanted,
            Damage::Reordered { place, belongs } => place == wanted || belongs == wanted,
            Damage::Removed { first, last } | Damage::CutOff { first, last } => {
                (first.as_str()..=last.as_str()).contains(&wanted)
            }
            // The verdict is the one record whose key nobody else names.
            Damage::VerdictMissing { .. } => wanted == self.verdict,
            Damage::NotLogged { place }
            | Damage::NoReceipt { place }
            | Damage::Verdict { place, .. } => place == wanted,
            Damage::Line { .. }
            | Damage::Witness { .. }
            | Damage::Log { .. }
            | Damage::FirstMissing => false,
        })
    }

    /// Counts a mutant that is named at all these places.
    fn check(&self, what: &str, records: Vec<Item>, wanted: &[&str], now: Stamp) -> usize {
        let report = self.verify(records, Some(&self.head), now);
        for place in wanted {
            let name = &self.name;
            assert!(self.names(&report, place), "{name}: {what}: {place} is not in {report:#?}");
        }
        1
    }

    fn with(&self, place: usize, item: Item) -> Vec<Item> {
        let mut records = self.records.clone();
        records[place] = item;
        records
    }
}

/// The value with its byte in the middle changed.
fn changed(value: &Value) -> Value {
    match value {
        Value::N(number) => Value::N(number ^ 1),
        Value::B(bytes) => {
            let mut bytes = bytes.clone();
            let middle = bytes.len() / 2;
            if let Some(byte) = bytes.get_mut(middle) {
                *byte ^= 1;
            }
            Value::B(bytes)
        }
        Value::S(text) => {
            let middle = text.chars().count() / 2;
            let change = |(place, c): (usize, char)| match c {
                _ if place != middle => c,
                'x' => 'y',
                _ => 'x',
            };
            Value::S(text.chars().enumerate().map(change).collect())
        }
    }
}

/// Every attribute changed and removed, one added, both keys changed.
fn mutants(item: &Item) -> Vec<(String, Item)> {
    let mut mutants = vec![("an attribute added".to_owned(), item.clone().with("Added", "x"))];
    for (name, value) in &item.attributes {
        let mut without = item.clone();
        without.attributes.remove(name);
        mutants.push((format!("{name} changed"), item.clone().with(name, changed(value))));
        mutants.push((format!("{name} removed"), without));
    }
    let text = |key: &str| match changed(&Value::S(key.to_owned())) {
        Value::S(key) => key,
        _ => unreachable!("a text stays one"),
    };
    mutants.push(("SK changed".to_owned(), Item { sk: text(&item.sk), ..item.clone() }));
    mutants.push(("PK changed".to_owned(), Item { pk: text(&item.pk), ..item.clone() }));
    mutants
}

/// With a hash that fits, if its writer states one.
fn forged(item: &Item) -> Item {
    if item.attributes.contains_key(HASH) { item.clone().hashed() } else { item.clone() }
}

fn changes(session: &Session, now: Stamp) -> usize {
    let mut checked = 0;
    for (place, item) in session.records.iter().enumerate() {
        let wanted = session.place(item);
        for (what, mutant) in mutants(item) {
            let hashed = forged(&mutant);
            // Any change shows in a hash that was left as it was; one of each kind is enough.
            let careless = what.ends_with("changed").then_some(mutant);
            for mutant in std::iter::once(hashed).chain(careless).filter(|mutant| mutant != item) {
                let what = format!("{}: {what}", item.sk);
                checked += session.check(&what, session.with(place, mutant), &[&wanted], now);
            }
        }
    }
    checked
}

fn removals_and_cuts(session: &Session, now: Stamp) -> usize {
    let mut checked = 0;
    for (place, item) in session.records.iter().enumerate() {
        let mut records = session.records.clone();
        records.remove(place);
        let what = format!("{} removed", item.sk);
        checked += session.check(&what, records, &[&session.place(item)], now);

        let missing: Vec<_> = session.records[place..].iter().map(|i| session.place(i)).collect();
        // Without the verdict nothing says what else there was.
        let missing: Vec<_> = match missing.contains(&session.verdict) {
            true => vec![session.verdict.as_str()],
            false => missing.iter().map(String::as_str).collect(),
        };
        let records = session.records[..place].to_vec();
        checked += session.check(&format!("cut to {place}"), records, &missing, now);
    }
    checked
}

/// A record of the session under a key of its own, as it was and with a hash that fits.
fn additions(session: &Session, now: Stamp) -> usize {
    let keys: BTreeSet<_> = session.records.iter().map(|item| item.sk.as_str()).collect();
    let mut checked = 0;
    for item in &session.records {
        let sk = match Event::from_item(item) {
            Ok(event) => key::event(Stamp::from_nanos(event.stamp.nanos() - 3)),
            Err(_) => key::step(u32::try_from(session.records.len()).unwrap()),
        };
        assert!(!keys.contains(sk.as_str()), "{sk} is taken");
        let added = Item { sk: sk.clone(), ..item.clone() };
        for added in [
            forged(&added),
            added,
            Item { sk: format!("OTHER#{sk}"), ..item.clone() }.hashed(),
            Item { pk: key::blob(&session.id, "0"), sk: key::part(0), ..item.clone() },
        ] {
            let mut records = session.records.clone();
            records.push(added.clone());
            records.sort_by_key(|item| (item.pk != key::session(&session.id), item.sk.clone()));
            let what = format!("{} added as {}", item.sk, added.sk);
            checked += session.check(&what, records, &[&session.place(&added)], now);
        }
    }
    checked
}

fn duplications_and_moves(session: &Session, now: Stamp) -> usize {
    let mut checked = 0;
    for (from, item) in session.records.iter().enumerate() {
        let wanted = session.place(item);
        for to in [from, session.records.len()] {
            let mut records = session.records.clone();
            records.insert(to, item.clone());
            let what = format!("{} duplicated", item.sk);
            checked += session.check(&what, records, &[&wanted], now);
        }
        for to in (0..session.records.len()).filter(|to| *to != from) {
            let mut records = session.records.clone();
            let moved = records.remove(from);
            records.insert(to, moved);
            let report = session.verify(records, Some(&session.head), now);
            let neighbour = session.place(&session.records[to]);
            // Of two neighbours that changed places either was moved.
            let named = session.names(&report, &wanted)
                || (from.abs_diff(to) == 1 && session.names(&report, &neighbour));
            assert!(named, "{}: {} moved to {to}: {report:#?}", session.name, item.sk);
            checked += 1;
        }
    }
    checked
}

/// However much of it there is, a session without verdict is open.
fn openings(session: &Session, now: Stamp) -> usize {
    let place = session.records.iter().position(|item| item.sk == session.verdict).unwrap();
    let mut records = session.records.clone();
    records.remove(place);
    for length in 1..=records.len() {
        let report = session.verify(records[..length].to_vec(), None, now);
        assert_eq!(report.state, State::Open, "{}: {length} records", session.name);
        assert!(report.is_sound(), "{}: {length} records: {report:#?}", session.name);
    }
    records.len()
}

/// Runs a session of every bundled incident and a checkup, and exports them.
fn sessions(folder: &Path) -> Vec<Session> {
    let bundled = incident("").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut inputs: Vec<_> = bundled.filter(|path| path.join("incident.json").exists()).collect();
    inputs.sort_unstable();
    let dev = Dev::start(folder, &folder.join("data"));
    let session = |name: String, arguments: &[&str]| {
        let before = ["--endpoint", &dev.endpoint, "trigger", "--wait", "--json"];
        let ran = run_in(folder, &[&before[..], arguments].concat());
        assert_eq!(ran.exit, 0, "{name}: {ran:#?}");
        let id = ran.json()[0]["session_id"].as_str().unwrap().to_owned();
        let exported = run_in(folder, &["--endpoint", &dev.endpoint, "export", &id]);
        assert_eq!(exported.exit, 0, "{exported:#?}");
        Session::of(name, &exported.stdout)
    };
    let mut sessions = vec![session("checkup".to_owned(), &[])];
    for input in inputs {
        let name = input.file_name().unwrap().to_str().unwrap().to_owned();
        sessions.push(session(name, &["--input", input.to_str().unwrap()]));
    }
    assert_eq!(dev.stop("-TERM"), 0);
    sessions
}

#[test]
fn every_mutation_of_every_bundled_session_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = sessions(folder.path());
    assert!(sessions.len() >= 8, "seven incidents and a checkup");
    let now = Clock::system().now();
    let ways = [changes, removals_and_cuts, additions, duplications_and_moves, openings];
    let checked: usize = std::thread::scope(|scope| {
        let judged: Vec<_> = sessions
            .iter()
            .map(|session| {
                scope.spawn(move || ways.iter().map(|way| way(session, now)).sum::<usize>())
            })
            .collect();
        judged.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let records: usize = sessions.iter().map(|session| session.records.len()).sum();
    println!("{checked} mutants of {} sessions with {records} records", sessions.len());
    through_the_binary(&sessions[0], folder.path());
}

/// One mutant of each kind as a file, beside the head: exit 1, and the record by its key.
fn through_the_binary(session: &Session, folder: &Path) {
    let file = folder.join("mutant.jsonl");
    let verify = |records: &[Item], head: Option<&Hash>| {
        std::fs::write(&file, session.file(records)).unwrap();
        let head = head.map(|head| ["--head", head.as_str()]);
        let verify = ["verify", "--file", "mutant.jsonl"];
        run(daybook(folder).args(verify).args(head.into_iter().flatten()))
    };
    let records = &session.records;
    let sound = verify(records, Some(&session.head));
    assert_eq!((sound.exit, sound.stderr.as_str()), (0, ""), "{sound:#?}");
    let step = records.iter().position(|item| item.sk == key::step(2)).unwrap();
    let other = key::step(u32::try_from(records.len()).unwrap());
    let added = Item { sk: other.clone(), ..records[step].clone() }.hashed();
    let without = |place: usize| [&records[..place], &records[place + 1..]].concat();
    let and = |item: &Item| [&records[..], std::slice::from_ref(item)].concat();
    let moved = [&without(step)[..], std::slice::from_ref(&records[step])].concat();
    let changed = forged(&records[step].clone().with("Epoch", 9_i64));
    for (records, named) in [
        (session.with(step, changed), records[step].sk.as_str()),
        (without(step), &records[step].sk),
        (and(&added), &other),
        (and(&records[step]), &records[step].sk),
        (moved, &records[step].sk),
        (records[..records.len() - 1].to_vec(), &records.last().unwrap().sk),
    ] {
        let ran = verify(&records, Some(&session.head));
        assert_eq!(ran.exit, 1, "{named}: {ran:#?}");
        assert!(ran.stdout.contains(named), "{named}: {ran:#?}");
    }
    std::fs::write(&file, "").unwrap();
    let head = session.head.as_str();
    let empty = run_in(folder, &["verify", "--file", "mutant.jsonl", "--head", head]);
    assert_eq!(empty.exit, 1, "{empty:#?}");
    assert!(empty.stdout.contains("the verdict is missing"), "{empty:#?}");
    let verdict = records.iter().position(|item| item.sk == session.verdict).unwrap();
    let open = verify(&without(verdict), None);
    assert_eq!(open.exit, 0, "{open:#?}");
    assert!(open.stdout.contains("open, tail unprotected"), "{open:#?}");
    let missing = verify(&without(verdict), Some(&session.head));
    assert_eq!(missing.exit, 1, "{missing:#?}");
    assert!(missing.stdout.contains("the verdict is missing"), "{missing:#?}");
}
