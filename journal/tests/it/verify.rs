//! Verification names every single mutation of a session's records.

use std::collections::BTreeSet;
use std::slice;

use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::Event;
use journal::export::{self, Export};
use journal::id::Runner;
use journal::item::{HASH, Hash, Item, Value};
use journal::key;
use journal::limits::STEPS_MAX;
use journal::log::{Entry, Extract, Leaf, Trust};
use journal::read;
use journal::receipt::{self, Receipts};
use journal::step::StepBody;
use journal::verify::{Anchor, Anchors, Damage, Outcome, Report, State, verify};

use crate::golden::{at, large, session, small};
use crate::log::memory::Memory;

fn anchors(records: &[Item]) -> Anchors {
    Anchors::of(export::witness(&session(), records).head)
}

fn now() -> Stamp {
    at(60_000)
}

fn place(item: &Item) -> String {
    if item.pk == key::session(&session()) {
        item.sk.clone()
    } else {
        format!("{} {}", item.pk, item.sk)
    }
}

/// Whether the report names this record.
fn names(report: &Report, wanted: &Item) -> bool {
    let wanted = place(wanted);
    report.damage.iter().any(|damage| match damage {
        Damage::Changed { place, .. }
        | Damage::Added { place, .. }
        | Damage::Unnamed { place }
        | Damage::Misplaced { place }
        | Damage::Duplicated { place }
        | Damage::RequestMissing { place, .. }
        | Damage::Unreadable { place, .. }
        | Damage::NotLogged { place }
        | Damage::NoReceipt { place }
        | Damage::Verdict { place, .. } => *place == wanted,
        Damage::FirstMissing => wanted == key::event(at(0)),
        Damage::Reordered { place, belongs } => *place == wanted || *belongs == wanted,
        Damage::Removed { first, last } | Damage::CutOff { first, last } => {
            (first..=last).contains(&&wanted)
        }
        // The verdict is the only record whose key no other record names.
        Damage::VerdictMissing { .. } => wanted == verdict_key(),
        Damage::Line { .. } | Damage::Witness { .. } | Damage::Log { .. } => false,
    })
}

fn verdict_key() -> String {
    key::event(at(1_100))
}

fn check(what: &str, records: &[Item], anchors: &Anchors, wanted: &[&Item]) {
    let report = verify(&session(), records, anchors, now());
    for item in wanted {
        let place = place(item);
        assert!(names(&report, item), "{what}: {place} is not named in {report:#?}");
        assert!(!report.damage.iter().any(|damage| damage.to_string().is_empty()));
    }
}

/// Values that differ in one byte: the first, the last or one in the middle.
fn changed(value: &Value) -> Vec<Value> {
    let places = |length: usize| BTreeSet::from([0, length / 2, length.saturating_sub(1)]);
    match value {
        Value::N(number) => vec![Value::N(number + 1), Value::N(-number - 1)],
        Value::B(bytes) => places(bytes.len())
            .into_iter()
            .filter(|place| *place < bytes.len())
            .map(|place| {
                let mut bytes = bytes.clone();
                bytes[place] ^= 1;
                Value::B(bytes)
            })
            .collect(),
        Value::S(text) => {
            let chars: Vec<char> = text.chars().collect();
            let change = |place: usize| {
                let mut chars = chars.clone();
                chars[place] = if chars[place] == 'x' { 'y' } else { 'x' };
                Value::S(chars.into_iter().collect())
            };
            places(chars.len())
                .into_iter()
                .filter(|place| *place < chars.len())
                .map(change)
                .collect()
        }
    }
}

/// Every way to change one field of a record, keys and hash included.
fn changed_fields(item: &Item) -> Vec<(String, Item)> {
    let mut mutants = Vec::new();
    for (name, value) in &item.attributes {
        for other in changed(value) {
            mutants.push((format!("{name} changed"), item.clone().with(name, other)));
        }
        let other = match value {
            Value::N(_) => Value::S("1".to_owned()),
            Value::S(text) => Value::B(text.clone().into_bytes()),
            Value::B(_) => Value::N(1),
        };
        mutants.push((format!("{name} of another type"), item.clone().with(name, other)));
        let mut without = item.clone();
        let value = without.attributes.remove(name).unwrap();
        mutants.push((format!("{name} removed"), without.clone()));
        mutants.push((format!("{name} renamed"), without.with(&format!("{name}x"), value)));
    }
    mutants.push(("an attribute added".to_owned(), item.clone().with("Added", "x")));
    for value in changed(&Value::S(item.sk.clone())) {
        let Value::S(sk) = value else { continue };
        mutants.push(("SK changed".to_owned(), Item { sk, ..item.clone() }));
    }
    for value in changed(&Value::S(item.pk.clone())) {
        let Value::S(pk) = value else { continue };
        mutants.push(("PK changed".to_owned(), Item { pk, ..item.clone() }));
    }
    mutants
}

/// The same record with a valid hash, as a careful forger would write it.
fn forged(item: &Item) -> Item {
    if item.attributes.contains_key(HASH) { item.clone().hashed() } else { item.clone() }
}

fn replaced(records: &[Item], place: usize, with: Item) -> Vec<Item> {
    let mut records = records.to_vec();
    records[place] = with;
    records
}

#[test]
fn an_undamaged_session_verifies() {
    for records in [small(), large()] {
        let report = verify(&session(), &records, &anchors(&records), now());
        let head = export::witness(&session(), &records).head.unwrap();
        assert_eq!(
            report,
            Report {
                state: State::Sealed { head },
                anchors: vec![Anchor::Given],
                consulted: vec![Anchor::Given],
                damage: vec![],
                unsealed: vec![],
                unmet: vec![],
                log: None,
                erased: None,
            }
        );
        assert!(report.is_sound());
    }
}

#[test]
fn a_step_beyond_the_largest_number_is_named() {
    let records = small();
    let step = records.iter().find(|item| item.sk == key::step(2)).unwrap();
    for seq in [STEPS_MAX + 1, u32::MAX] {
        let forged = Item { sk: key::step(seq), ..step.clone() }.with("Seq", seq).hashed();
        let forgeries = [vec![forged.clone()], [&records[..], slice::from_ref(&forged)].concat()];
        for records in forgeries {
            check("a step beyond the last", &records, &anchors(&records), &[&forged]);
            let last_step = Some((seq, forged.hash()));
            let anchors = Anchors { last_step, ..anchors(&records) };
            check("and a witness of it", &records, &anchors, &[&forged]);
        }
    }
}

#[test]
fn a_changed_field_of_any_record_is_named() {
    for records in [small(), large()] {
        let anchors = anchors(&records);
        let has_parts = records.len() > 21;
        for (place, item) in records.iter().enumerate() {
            // The other records of the large session equal those of the small one.
            if has_parts && !item.pk.starts_with("BLOB#") && place != 10 && place != 17 {
                continue;
            }
            for (what, mutant) in changed_fields(item) {
                let records = replaced(&records, place, mutant);
                check(&format!("{}: {what}", item.sk), &records, &anchors, &[item]);
            }
        }
    }
}

#[test]
fn a_changed_field_with_a_forged_hash_is_named() {
    let records = small();
    let anchors = anchors(&records);
    for (place, item) in records.iter().enumerate() {
        for (what, mutant) in changed_fields(item) {
            if forged(&mutant) == *item {
                continue;
            }
            let records = replaced(&records, place, forged(&mutant));
            check(&format!("{}: {what}, forged", item.sk), &records, &anchors, &[item]);
        }
    }
}

#[test]
fn a_forged_part_is_named_by_its_payload() {
    let records = large();
    let anchors = anchors(&records);
    for (place, item) in records.iter().enumerate().filter(|(_, item)| item.pk.starts_with("BLOB#"))
    {
        for (what, mutant) in changed_fields(item) {
            if forged(&mutant) == *item {
                continue;
            }
            let report =
                verify(&session(), &replaced(&records, place, forged(&mutant)), &anchors, now());
            let texts: Vec<_> = report.damage.iter().map(ToString::to_string).collect();
            assert!(texts.iter().any(|text| text.contains(&item.pk)), "{what}: {texts:?}");
        }
    }
}

#[test]
fn a_persons_step_without_its_receipt_is_named() {
    let records = small();
    let due: Vec<_> = records.iter().filter(|item| receipt::is_due_of(item)).collect();
    assert!(!due.is_empty(), "the golden session has an answer");
    let receipts: Receipts = due.iter().map(|item| item.hash()).collect();
    let with = |receipts| Anchors { receipts: Some(receipts), ..anchors(&records) };
    let report = verify(&session(), &records, &with(receipts.clone()), now());
    assert_eq!(report.damage, []);
    for item in due {
        let mut fewer = receipts.clone();
        fewer.remove(&item.hash());
        check("no receipt", &records, &with(fewer), &[item]);
    }
}

/// In a store of an account; a step of an agent has none.
#[tokio::test]
async fn the_writer_of_an_answer_leaves_a_receipt() {
    let store = Memory::default().with_log();
    let runner = Runner::fresh("test");
    let author = Author { session: session(), runner, expires_at: 4_000_000_000 };
    let hlc = Hlc::new(Clock::fixed(at(0)), at(0));
    let note = |principal| StepBody::Note {
        subject: "remark".to_owned(),
        principal,
        payload: serde_json::json!("text"),
    };
    let answer = StepBody::Answer {
        question: 1,
        principal: None,
        payload: serde_json::json!({ "decision": "approve" }),
    };
    let move_note = StepBody::Note {
        subject: journal::version::NOTE_VERSION.to_owned(),
        principal: None,
        payload: serde_json::json!({ "from": "1", "to": "2" }),
    };
    let (mut head, mut hashes) = (Head::genesis(), Receipts::new());
    let person = Some("os-user:ann".parse().unwrap());
    for (body, is_due) in
        [(note(None), false), (answer, true), (note(person), true), (move_note, true)]
    {
        let step = append(&store, &hlc, &author, &head, 1, body).await.unwrap();
        head = Head::after(&step);
        hashes.extend(is_due.then_some(step.hash));
    }
    assert_eq!(receipt::read(&store, &session()).await.unwrap(), hashes);
    let steps = read::resolved_steps(&store, &session()).await.unwrap();
    assert_eq!(receipt::missing(&store, &session(), &steps).await.unwrap(), None);
    let of_answer = steps[1].hash.to_string();
    store.tamper(&key::receipts(&session()), &of_answer, |item| *item = None);
    assert_eq!(receipt::missing(&store, &session(), &steps).await.unwrap(), Some(2));
}

#[test]
fn a_removed_record_is_named() {
    for records in [small(), large()] {
        let anchors = anchors(&records);
        for (place, item) in records.iter().enumerate() {
            let mut records = records.clone();
            records.remove(place);
            check(&format!("{} removed", item.sk), &records, &anchors, &[item]);
        }
    }
}

#[test]
fn a_truncated_tail_is_named() {
    for records in [small(), large()] {
        let anchors = anchors(&records);
        for length in 0..records.len() {
            let missing: Vec<_> = if length <= 10 {
                // Without the verdict nothing lists the events.
                vec![&records[10]]
            } else {
                // A missing step cannot name the parts of its payload.
                let whole = records[length..].iter();
                whole.filter(|item| length > 20 || !item.pk.starts_with("BLOB#")).collect()
            };
            check(&format!("cut to {length}"), &records[..length], &anchors, &missing);
        }
    }
}

#[test]
fn a_truncated_tail_of_steps_is_named_as_such() {
    let records = small();
    let report = verify(&session(), &records[..14], &anchors(&records), now());
    assert_eq!(
        report.damage.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["the tail is truncated: STEP#00000004 to STEP#00000010 are missing"]
    );
}

#[test]
fn an_added_record_is_named() {
    let records = small();
    let anchors = anchors(&records);
    let steps = records.iter().filter(|item| item.sk.starts_with(key::STEP_PREFIX)).count();
    for item in &records {
        let sk = if item.sk.starts_with(key::STEP_PREFIX) {
            key::step(u32::try_from(steps).unwrap() + 1)
        } else if item.sk == verdict_key() {
            key::event(at(1_099))
        } else {
            item.sk.replace("00Z", "07Z")
        };
        for added in [
            Item { sk: sk.clone(), ..item.clone() },
            Item { sk: sk.clone(), ..item.clone() }.hashed(),
            Item { sk: format!("OTHER#{sk}"), ..item.clone() }.hashed(),
            Item { pk: item.pk.to_lowercase(), ..item.clone() },
            Item { pk: key::blob(&session(), "0"), sk: key::part(0), ..item.clone() },
        ] {
            let mut records = records.clone();
            records.push(added.clone());
            records.sort_by_key(|item| (item.pk != key::session(&session()), item.sk.clone()));
            check(&format!("{} added as {}", item.sk, added.sk), &records, &anchors, &[&added]);
        }
    }
}

#[test]
fn a_step_announced_again_in_other_words_is_forged() {
    let records = small();
    let anchors = anchors(&records);
    let completed = records
        .iter()
        .find(|item| item.text_opt("Status") == Some("AGENT_BACKGROUND_TASK_COMPLETED"))
        .unwrap();
    let stamp = Stamp::parse(completed.text("Timestamp").unwrap()).unwrap().next();
    let twin = Item { sk: key::event(stamp), ..completed.clone() }
        .with("Timestamp", stamp.to_string())
        .with("Writer", "poller");
    let with = |added: &Item| {
        let mut records = records.clone();
        records.push(added.clone());
        records.sort_by(|a, b| a.sk.cmp(&b.sk));
        verify(&session(), &records, &anchors, now())
    };
    let twin = twin.hashed();
    let report = with(&twin);
    assert_eq!((report.damage, report.unsealed), (vec![], vec![twin.sk.clone()]));
    let forged = twin.with("ErrorMessage", "nothing to see here").hashed();
    assert!(names(&with(&forged), &forged));
}

#[test]
fn a_duplicated_record_is_named() {
    for records in [small(), large()] {
        let anchors = anchors(&records);
        for (place, item) in records.iter().enumerate() {
            for to in [place, records.len()] {
                let mut records = records.clone();
                records.insert(to, item.clone());
                check(&format!("{} duplicated", item.sk), &records, &anchors, &[item]);
            }
        }
    }
}

#[test]
fn a_reordered_record_is_named() {
    for records in [small(), large()] {
        let anchors = anchors(&records);
        for from in 0..records.len() {
            for to in (0..records.len()).filter(|to| *to != from) {
                let mut moved = records.clone();
                let item = moved.remove(from);
                moved.insert(to, item);
                let report = verify(&session(), &moved, &anchors, now());
                // If two neighbours were swapped, either may be reported.
                let other = &records[to];
                let named = names(&report, &records[from])
                    || (from.abs_diff(to) == 1 && names(&report, other));
                assert!(named, "{from} moved to {to}: {report:?}");
                assert_eq!(report.damage.len(), 1, "{from} moved to {to}: {report:?}");
            }
        }
    }
}

#[test]
fn records_that_changed_keys_are_named() {
    let records = small();
    let anchors = anchors(&records);
    for one in 0..records.len() {
        for two in one + 1..records.len() {
            let (first, second) = (&records[one], &records[two]);
            let mut swapped = records.clone();
            swapped[one] = Item { sk: first.sk.clone(), ..second.clone() };
            swapped[two] = Item { sk: second.sk.clone(), ..first.clone() };
            let what = format!("{} and {} swapped", first.sk, second.sk);
            check(&what, &swapped, &anchors, &[first, second]);
            swapped[one] = forged(&swapped[one]);
            swapped[two] = forged(&swapped[two]);
            let report = verify(&session(), &swapped, &anchors, now());
            for item in [first, second] {
                // A record in the verdict's place may seem later than the moved one.
                let named = names(&report, item) || report.unsealed.contains(&item.sk);
                assert!(named && !report.is_sound(), "{what}, forged: {report:?}");
            }
        }
    }
}

#[test]
fn steps_with_changed_numbers_are_named_with_their_own() {
    let mut records = small();
    let (one, two) = (records[12].clone(), records[13].clone());
    let anchors = anchors(&records);
    records[12] = Item { sk: one.sk.clone(), ..two.clone() };
    records[13] = Item { sk: two.sk.clone(), ..one.clone() };
    let report = verify(&session(), &records, &anchors, now());
    let reordered = |place: &Item, belongs: &Item| Damage::Reordered {
        place: place.sk.clone(),
        belongs: belongs.sk.clone(),
    };
    assert_eq!(report.damage, [reordered(&one, &two), reordered(&two, &one)]);
}

#[test]
fn an_event_after_the_verdict_is_unsealed_not_damage() {
    let records = small();
    let late = Item { sk: key::event(at(1_200)), ..records[3].clone() }.hashed();
    let mut more = records.clone();
    more.insert(11, late.clone());
    let report = verify(&session(), &more, &anchors(&records), now());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.unsealed, [late.sk]);
}

#[test]
fn the_tail_of_a_session_without_verdict_is_unprotected() {
    let mut records = small();
    records.remove(10);
    for length in [20, 19, 13, 10, 1, 0] {
        let report = verify(&session(), &records[..length], &Anchors::default(), now());
        assert_eq!(report.state, State::Open);
        assert!(report.is_sound(), "{report:?}");
    }
    assert_eq!(State::Open.to_string(), "open, tail unprotected");
    let last_step = export::witness(&session(), &records).last_step;
    let anchors = Anchors { last_step, ..Anchors::default() };
    let report = verify(&session(), &records[..17], &anchors, now());
    assert!(matches!(&report.damage[..], [Damage::CutOff { .. }]), "{report:?}");
}

#[test]
fn expiry_excuses_absence_and_is_not_provable() {
    let records = small();
    let expired = Stamp::from_millis(1_803_033_000_000);
    let just_before = Stamp::from_millis(1_803_032_999_999);
    for length in [11, 15, 21] {
        let report = verify(&session(), &records[..length], &anchors(&records), expired);
        assert_eq!((&report.state, report.outcome()), (&State::Expired, Outcome::NotProvable));
        assert!(report.damage.is_empty(), "{length}: {report:?}");
    }
    assert!(!verify(&session(), &records[..5], &anchors(&records), just_before).is_sound());
    // One record changed to look expired does not hide the rest.
    let mutant = replaced(&records, 4, records[4].clone().with("ExpiresAt", 5_i64));
    check("ExpiresAt", &mutant, &anchors(&records), &[&records[4]]);
}

/// The state machine's record states no hash, so its expiry is anybody's claim.
#[test]
fn an_unhashed_expiry_excuses_nothing() {
    let initiated = small()[0].clone().with("ExpiresAt", 1_i64);
    let report = verify(&session(), &[initiated], &anchors(&small()), now());
    assert!(matches!(&report.damage[..], [Damage::VerdictMissing { .. }]), "{report:?}");
}

/// Whoever wrote the record computed its hash, too: no other hash vouches for its expiry.
#[test]
fn an_unvouched_expiry_excuses_no_missing_verdict() {
    let records = small();
    for place in [3, 15] {
        let claim = records[place].clone().with("ExpiresAt", 1_i64).hashed();
        let report = verify(&session(), slice::from_ref(&claim), &anchors(&records), now());
        assert_eq!(report.outcome(), Outcome::Damaged, "{report:?}");
        let missing = |damage: &Damage| matches!(damage, Damage::VerdictMissing { .. });
        assert!(report.damage.iter().any(missing), "{report:?}");
        assert_eq!(report.consulted, [Anchor::Given]);
    }
    let claim = records[3].clone().with("ExpiresAt", 1_i64).hashed();
    let report = verify(&session(), &[claim], &Anchors::default(), now());
    assert_eq!(report.outcome(), Outcome::NotProvable, "{report:?}");
}

/// A leaf proves that its record was there, and nothing expires before it is written.
#[test]
fn a_leaf_with_an_absurd_expiry_excuses_nothing() {
    let records = small();
    let leaf = Leaf::of(&records[0]).unwrap();
    // What is left of the session claims to have expired.
    let claim = records[3].clone().with("ExpiresAt", 1_i64).hashed();
    for absurd in [0, 1, -1, i64::MIN] {
        let leaf = Leaf { expires_at: absurd, ..leaf.clone() }.to_bytes();
        let entries = vec![Entry { index: 0, leaf, proof: None }];
        let extract = Extract { checkpoint: None, entries };
        let log = extract.judge(&session(), &Trust::default()).with_problems(&[]);
        let anchors = Anchors { log: Some(log), ..Anchors::default() };
        for left in [&[][..], slice::from_ref(&claim)] {
            let report = verify(&session(), left, &anchors, now());
            assert_eq!(report.outcome(), Outcome::Damaged, "{absurd}: {report:?}");
        }
    }
}

/// The records of the small session, and its verdict's place.
fn with_late(late: Item) -> Report {
    let mut records = small();
    let anchors = anchors(&records);
    records.insert(11, late);
    verify(&session(), &records, &anchors, now())
}

#[test]
fn a_later_verdict_must_say_the_same() {
    let verdict = small()[10].clone();
    let late = |item: Item| {
        let (sk, stamp) = (key::event(at(1_101)), at(1_101).to_string());
        Item { sk, ..item }.with("Timestamp", stamp).with("Writer", "watchdog").hashed()
    };
    let twin = late(verdict.clone());
    let report = with_late(twin.clone());
    assert_eq!((report.damage, report.unsealed), (vec![], vec![twin.sk]));
    for (name, value) in [("Status", "SESSION_FAILED"), ("ErrorMessage", "x"), ("EndHash", "x")] {
        let other = late(verdict.clone().with(name, value));
        let report = with_late(other.clone());
        assert!(names(&report, &other) && report.unsealed.is_empty(), "{name}: {report:?}");
    }
}

#[test]
fn a_verdict_must_fit_the_end_that_it_seals() {
    for (name, value) in [
        ("Status", Some(Value::S("SESSION_FAILED".to_owned()))),
        ("Step", Some(Value::N(9))),
        ("Step", None),
    ] {
        let mut records = small();
        let mut verdict = records[10].clone();
        match value {
            Some(value) => drop(verdict.attributes.insert(name.to_owned(), value)),
            None => drop(verdict.attributes.remove(name)),
        }
        records[10] = verdict.hashed();
        if name == "Step" {
            let end = records[19].hash();
            records[10] = records[10].clone().with("EndHash", end.as_str()).hashed();
        }
        let report = verify(&session(), &records, &anchors(&records), now());
        let unfit = |damage: &Damage| matches!(damage, Damage::Verdict { .. });
        assert!(report.damage.iter().any(unfit), "{name}: {report:?}");
    }
}

#[test]
fn an_event_that_cannot_be_read_is_named_in_an_open_session() {
    let encoded = small()[3].clone().with("Payload", vec![1_u8]).with("PayloadBytes", 1_u32);
    for unreadable in [
        small()[3].clone().with("Status", "AGENT_DREAMT").hashed(),
        small()[3].clone().with("V", 2_i64).hashed(),
        encoded.clone().hashed(),
        encoded.with("PayloadEncoding", "brotli").hashed(),
    ] {
        let mut records = replaced(&small(), 3, unreadable.clone());
        records.remove(10);
        let report = verify(&session(), &records, &Anchors::default(), now());
        assert!(names(&report, &unreadable), "{report:?}");
    }
}

#[test]
fn an_open_session_without_its_first_record_is_damaged() {
    let records = &small()[1..9];
    let report = verify(&session(), records, &Anchors::default(), now());
    assert_eq!(report.damage, [Damage::FirstMissing]);
}

#[test]
fn duplicate_members_and_numbers_of_other_forms_are_refused() {
    let text = String::from_utf8(file(&small())).unwrap();
    for (of, forged) in [
        (r#""V":{"N":"1"}"#, r#""V":{"N":"2"},"V":{"N":"1"}"#),
        (r#""V":{"N":"1"}"#, r#""V":{"N":"2","N":"1"}"#),
        (r#""V":{"N":"1"}"#, r#""V":{"N":"+1"}"#),
        (r#""V":{"N":"1"}"#, r#""V":{"N":"01"}"#),
        (r#","hash":"#, r#","hash":"x","hash":"#),
    ] {
        assert!(text.contains(of), "{of}");
        let (_, report) = judge(text.replacen(of, forged, 1).as_bytes(), None);
        let named = |damage: &Damage| matches!(damage, Damage::Line { line: 1, .. });
        assert!(report.damage.iter().any(named), "{forged}: {report:?}");
    }
}

#[test]
fn expiry_never_excuses_a_changed_record() {
    let expired = Stamp::from_millis(1_803_033_000_000);
    let junk: Vec<_> = small().into_iter().map(|item| item.with("Junk", "x")).collect();
    let report = verify(&session(), &junk, &anchors(&small()), expired);
    assert_eq!(report.outcome(), Outcome::Damaged);
    let one = replaced(&small(), 7, small()[7].clone().with("Junk", "x"));
    let report = verify(&session(), &one, &anchors(&small()), expired);
    assert!(names(&report, &small()[7]), "{report:?}");
}

#[test]
fn an_earlier_copy_of_an_announcement_is_forged() {
    let records = small();
    let announced = records
        .iter()
        .find(|item| Event::from_item(item).is_ok_and(|event| event.status.announces_a_step()))
        .unwrap();
    let early = at(-86_400_000);
    let copy = Item { sk: key::event(early), ..announced.clone() };
    let copy = copy.with("Timestamp", early.to_string()).with("Writer", "agent").hashed();
    let mut forged = records.clone();
    forged.insert(0, copy.clone());
    check("an earlier copy", &forged, &anchors(&records), &[&copy]);
}

#[test]
fn a_verdict_without_a_seal_seals_nothing() {
    let mut records = small();
    let verdict = records.iter_mut().find(|item| item.sk == verdict_key()).unwrap();
    for name in ["EndHash", "Payload"] {
        verdict.attributes.remove(name);
    }
    verdict.attributes.retain(|name, _| !name.starts_with("Payload"));
    *verdict = verdict.clone().hashed();
    let head = verdict.hash();
    let report = verify(&session(), &records, &Anchors::of(Some(head)), now());
    assert_eq!((&report.state, &report.anchors[..]), (&State::Open, &[][..]), "{report:?}");
}

#[test]
fn an_unreadable_record_is_named() {
    for place in 0..small().len() {
        let item = &small()[place];
        let unreadable = Item::unreadable(item.pk.as_str(), item.sk.as_str(), "it is a BLOB");
        check("unreadable", &replaced(&small(), place, unreadable), &anchors(&small()), &[item]);
    }
}

#[test]
fn a_verdict_is_held_against_every_anchor() {
    let head = export::witness(&session(), &small()).head.unwrap();
    let heads = vec![(Anchor::Execution, Hash::of(b"another")), (Anchor::Witness, head.clone())];
    let report = verify(&session(), &small(), &Anchors { heads, ..Anchors::default() }, now());
    assert_eq!((report.outcome(), &report.anchors[..]), (Outcome::Damaged, &[Anchor::Witness][..]));
    let heads = vec![(Anchor::Given, head.clone()), (Anchor::Execution, head)];
    let report = verify(&session(), &small(), &Anchors { heads, ..Anchors::default() }, now());
    assert_eq!(report.anchors, [Anchor::Execution, Anchor::Given]);
    assert_eq!(verify(&session(), &small(), &Anchors::default(), now()).anchors, []);
    // Whatever the order, the strongest of those that contradict the verdict is named.
    let mut heads = vec![
        (Anchor::Log, Hash::of(b"one")),
        (Anchor::Checkpoint, Hash::of(b"another")),
        (Anchor::Execution, Hash::of(b"a third")),
    ];
    for _ in 0..heads.len() {
        heads.rotate_left(1);
        let anchors = Anchors { heads: heads.clone(), ..Anchors::default() };
        let report = verify(&session(), &small(), &anchors, now());
        let [damage] = &report.damage[..] else { panic!("{report:?}") };
        assert!(damage.to_string().contains("a signed checkpoint"), "{damage}");
    }
}

#[test]
fn the_wrong_head_is_named() {
    let anchors = Anchors::of(Some(Hash::of(b"another")));
    check("another head", &small(), &anchors, &[&small()[10]]);
    let report = verify(&session(), &small()[..10], &anchors, now());
    assert!(matches!(&report.damage[..], [Damage::VerdictMissing { .. }]), "{report:?}");
}

fn file(records: &[Item]) -> Vec<u8> {
    let mut bytes = Vec::new();
    export::write(&session(), records, &mut bytes).unwrap();
    bytes
}

fn judge(bytes: &[u8], head: Option<&Hash>) -> (Export, Report) {
    let export = export::read(bytes).unwrap();
    let report = export.verify(head, now());
    (export, report)
}

#[test]
fn every_changed_byte_of_an_exported_file_is_found() {
    let records = small();
    let bytes = file(&records);
    let head = export::witness(&session(), &records).head.unwrap();
    assert!(judge(&bytes, Some(&head)).1.is_sound());
    assert!(judge(&bytes, None).1.is_sound());
    let lines: Vec<usize> = bytes
        .iter()
        .scan(0, |line, byte| {
            let here = *line;
            *line += usize::from(*byte == b'\n');
            Some(here)
        })
        .collect();
    // Every byte of the witness; of the records every n-th, which covers each kind of field.
    for place in 0..bytes.len() {
        let line = lines[place];
        if line < records.len() && place % 23 != 0 {
            continue;
        }
        let mut mutant = bytes.clone();
        mutant[place] ^= 1;
        let (_, report) = judge(&mutant, Some(&head));
        let line_named = report.damage.iter().any(|damage| match damage {
            Damage::Line { line: named, .. } => *named == line + 1,
            Damage::Witness { .. } => line == records.len(),
            _ => false,
        });
        let line_named =
            line_named || records.get(line).is_some_and(|record| names(&report, record));
        assert!(line_named, "byte {place} of line {}: {report:?}", line + 1);
    }
}

#[test]
fn a_truncated_file_is_reported() {
    let bytes = file(&small());
    let head = export::witness(&session(), &small()).head.unwrap();
    // Without its final newline the file is still complete.
    for length in (0..bytes.len() - 1).rev().step_by(29) {
        let (_, report) = judge(&bytes[..length], Some(&head));
        assert!(!report.is_sound(), "cut to {length} bytes");
    }
}

#[test]
fn an_empty_file_lacks_the_verdict_of_its_head() {
    let head = export::witness(&session(), &small()).head.unwrap();
    let (_, report) = judge(b"", Some(&head));
    assert!(
        report.damage.contains(&Damage::VerdictMissing { anchor: Anchor::Given, head }),
        "{report:?}"
    );
    assert!(matches!(&judge(b"", None).1.damage[..], [Damage::Witness { .. }]));
}

#[test]
fn moved_removed_or_duplicated_lines_are_named() {
    let text = String::from_utf8(file(&small())).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let head = export::witness(&session(), &small()).head.unwrap();
    let unsound = |lines: &[&str], what: String| {
        let (_, report) = judge(lines.join("\n").as_bytes(), Some(&head));
        assert!(!report.is_sound(), "{what}");
    };
    for one in 0..lines.len() {
        let mut removed = lines.clone();
        let line = removed.remove(one);
        unsound(&removed, format!("line {one} removed"));
        for to in (0..lines.len()).filter(|to| *to != one) {
            let mut moved = removed.clone();
            moved.insert(to, line);
            unsound(&moved, format!("line {one} moved to {to}"));
            let mut doubled = lines.clone();
            doubled.insert(to, line);
            unsound(&doubled, format!("line {one} doubled at {to}"));
        }
    }
}

#[test]
fn a_reader_limits_line_length_and_names_the_line() {
    let mut bytes = file(&small());
    bytes.extend(vec![b' '; export::LINE_BYTES_MAX + 1]);
    let error = export::read(&bytes[..]).unwrap_err();
    assert_eq!(error.to_string(), "line 23 is longer than 4194304 bytes");
    let (export, report) = judge(b"garbage\n{\"record\": 5, \"hash\": \"\"}\n[]\n\xff\n", None);
    assert_eq!(export.damage.len(), 5);
    assert_eq!(report.damage.len(), 5);
    assert_eq!(report.damage[0].to_string(), "line 1 was changed: it is not JSON");
}
