//! Erasing sessions of a whole stack: nothing of their contents is left in any file, and the rest still verifies.

use std::path::{Path, PathBuf};
use std::process::Command;

use graph::agent::Agent;
use graph::digest;
use graph::effect::{Effect, ToolCall};
use journal::cipher::{Erasure, KeyChange, KeyState};
use journal::clock::Stamp;
use journal::export;
use journal::id::SessionId;
use journal::item::Item;
use journal::key;
use journal::principal::Principal;
use journal::sqlite::{Durability, SESSION_KEYS_FILE, SqliteStore};
use journal::store::{Condition, Error, Key, Store};
use journal::verify::{Anchors, Damage, verify};
use serde_json::{Value, json};
use stack::stack::{Config, Isolation, JOURNAL_FILE, Stack, StartError};
use tempfile::TempDir;

use crate::people::{ASKER, answer, asked, begin, result};
use crate::stack::{Client, config, statuses};

/// In the trigger's input, in the arguments of a call, and in an answer.
const SECRETS: [&str; 3] = ["Zacharias-Kwiatkowski", "openai:pin-4711", "allergic-to-penicillin"];

async fn encrypting(folder: &Path) -> Stack {
    let agents = [Agent::of(&ASKER)].into();
    Stack::start(Config { agents, encrypt: true, ..config(folder, 1) }).await.unwrap()
}

/// A session that has asked twice and succeeded.
async fn told(stack: &Stack, client: &Client) -> String {
    let session =
        begin(client, json!({ "patient": SECRETS[0], "more": SECRETS[0].repeat(400) })).await;
    let id = asked(stack, client, &session, 0).await["question_id"].as_u64().unwrap();
    let edit = json!({ "question_id": id, "decision": "edit",
        "arguments": { "model": SECRETS[1] } });
    assert_eq!(answer(client, &session, &edit).await.0, 202);
    let last = asked(stack, client, &session, id).await["question_id"].clone();
    let said = json!({ "question_id": last, "decision": "say", "text": SECRETS[2] });
    assert_eq!(answer(client, &session, &said).await.0, 202);
    let result = result(client, &session).await;
    assert_eq!(result["answers"][1]["text"], SECRETS[2]);
    session
}

async fn erase(client: &Client, session: &str) -> (u16, Value) {
    let path = format!("/api/sessions/{session}/erase");
    client.post(&path, &json!({ "reason": "request 12" })).await
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|it| if it.is_dir() { files(&it) } else { vec![it] }).collect()
}

/// The files that contain these bytes.
fn holding(folder: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let holds = |file: &PathBuf| {
        std::fs::read(file).unwrap().windows(bytes.len()).any(|window| window == bytes)
    };
    files(folder).into_iter().filter(holds).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_holds_a_text_of_an_erased_session() {
    let folder = TempDir::new().unwrap();
    let stack = encrypting(folder.path()).await;
    let client = Client::new(&stack);
    let session = told(&stack, &client).await;
    let state = folder.path().join("pk-sim").join(&session);
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("run.json"), SECRETS[0]).unwrap();
    let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
    assert!(shown.to_string().contains(SECRETS[0]), "with its key, a session is readable");

    let key = std::fs::read(folder.path().join(SESSION_KEYS_FILE)).unwrap();
    assert_eq!(erase(&client, &session).await.0, 202);
    assert_eq!(erase(&client, &session).await.0, 202, "erasing again has no effect");
    let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
    let erased = &shown["session"]["erased"];
    assert_eq!(erased["reason"], "request 12", "{shown:#}");
    assert_eq!(statuses(&shown).iter().filter(|it| **it == "SESSION_ERASED").count(), 1);
    for path in ["timeline", "records", "verify"] {
        let (_, said) = client.get(&format!("/api/sessions/{session}/{path}")).await;
        assert!(SECRETS.iter().all(|secret| !said.to_string().contains(secret)), "{path}");
    }
    let (_, list) = client.get("/api/sessions").await;
    assert_eq!(list["sessions"][0]["erased"]["reason"], "request 12", "{list:#}");
    let arn = stack::names::execution_arn("daybook", &session);
    let (_, execution) =
        client.aws("AWSStepFunctions.DescribeExecution", &json!({ "executionArn": arn })).await;
    assert!(!execution.to_string().contains(SECRETS[0]));
    for moment in ["running", "stopped"] {
        for secret in SECRETS {
            assert_eq!(
                holding(folder.path(), secret.as_bytes()),
                Vec::<PathBuf>::new(),
                "{moment}"
            );
            let hex = hex::encode(secret);
            assert_eq!(holding(folder.path(), hex.as_bytes()), Vec::<PathBuf>::new(), "{moment}");
        }
        for guessed in guesses() {
            for bytes in [guessed.clone().into_bytes(), hex::decode(&guessed).unwrap()] {
                assert_eq!(holding(folder.path(), &bytes), Vec::<PathBuf>::new(), "{moment}");
            }
        }
        if moment == "running" {
            stack.executions().begin_stop();
        }
    }
    stack.shutdown().await;
    let now = std::fs::read(folder.path().join(SESSION_KEYS_FILE)).unwrap();
    assert_ne!(now, key);
    let root = root_of(&key, &session);
    assert_eq!(holding(folder.path(), &root), Vec::<PathBuf>::new(), "the key is overwritten");
}

/// The key of a session in a copy of the file of keys.
fn root_of(file: &[u8], session: &str) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("copy.db");
    std::fs::write(&path, file).unwrap();
    let copy = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT key FROM session_key WHERE session = ?";
    copy.query_row(sql, [session], |row| row.get(0)).unwrap()
}

/// What somebody who guesses the short secret would look for.
fn guesses() -> Vec<String> {
    let call = ToolCall::built_in("model_reachable", json!({ "model": SECRETS[1] }));
    [digest::call(&call), digest::effect("act", &Effect::Tools(vec![call]))]
        .map(|digest| digest.as_str().to_owned())
        .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_session_verifies_without_its_key() {
    let folder = TempDir::new().unwrap();
    let stack = encrypting(folder.path()).await;
    let client = Client::new(&stack);
    let session = told(&stack, &client).await;
    let id: SessionId = session.parse().unwrap();
    let before = export::records(stack.store(), &id).await.unwrap();
    assert_eq!(erase(&client, &session).await.0, 202);
    let after = export::records(stack.store(), &id).await.unwrap();
    for (when, records) in [("before", &before), ("after", &after)] {
        let report = verify(&id, records, &Anchors::default(), stack.clock().now());
        assert_eq!(report.damage, [], "{when}");
        let reason = report.erased.map(|erasure| erasure.reason);
        assert_eq!(reason.as_deref(), (when == "after").then_some("request 12"));
        let mut file = Vec::new();
        export::write(&id, records, &mut file).unwrap();
        let text = String::from_utf8(file.clone()).unwrap();
        assert!(
            SECRETS.iter().all(|secret| !text.contains(secret)),
            "{when}: an export is encrypted"
        );
        let path = folder.path().join(format!("{when}.jsonl"));
        std::fs::write(&path, &file).unwrap();
        assert!(python_accepts(&path), "{when}");
        let changed = text.replacen("\"Encrypted\":{\"B\":\"", "\"Encrypted\":{\"B\":\"AAAA", 1);
        assert_ne!(changed, text);
        let read = export::read(changed.as_bytes()).unwrap();
        assert_eq!(read.damage.len(), 1, "a changed line is named: {:?}", read.damage);
        std::fs::write(&path, &changed).unwrap();
        assert!(!python_accepts(&path), "{when}");
    }
    stack.shutdown().await;
}

/// What the reader that was written from the format's description says.
fn python_accepts(file: &Path) -> bool {
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verify/reader/reader.py");
    let output = Command::new("python3").arg(reader).arg(file).arg("--json").output().unwrap();
    output.status.success()
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_contents_are_named_even_with_a_new_hash() {
    let folder = TempDir::new().unwrap();
    let stack = encrypting(folder.path()).await;
    let client = Client::new(&stack);
    let session = told(&stack, &client).await;
    let id: SessionId = session.parse().unwrap();
    stack.shutdown().await;
    let file = rusqlite::Connection::open(folder.path().join(JOURNAL_FILE)).unwrap();
    // The contents of one step in the place of another.
    let sql = "UPDATE item SET body = json_set(body, '$.Encrypted.B', (SELECT \
               json_extract(body, '$.Encrypted.B') FROM item WHERE sk = 'STEP#00000002')) \
               WHERE sk = 'STEP#00000003'";
    assert_eq!(file.execute(sql, []).unwrap(), 1);
    drop(file);
    let store = SqliteStore::open_read_only(&folder.path().join(JOURNAL_FILE)).unwrap();
    let records = export::records(&store, &id).await.unwrap();
    let report = verify(&id, &records, &Anchors::default(), Stamp::default());
    let named = |damage: &Damage| {
        let text = damage.to_string();
        text.contains("STEP#00000003") && text.contains("encrypted contents were changed")
    };
    assert!(report.damage.iter().any(named), "{:?}", report.damage);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_cut_off_by_a_kill_is_finished_by_the_start() {
    let folder = TempDir::new().unwrap();
    let stack = encrypting(folder.path()).await;
    let client = Client::new(&stack);
    let session = told(&stack, &client).await;
    let id: SessionId = session.parse().unwrap();
    let kept = std::fs::read(folder.path().join(SESSION_KEYS_FILE)).unwrap();
    let erasure = Erasure {
        at: stack.clock().now(),
        by: "os-user:ann".parse::<Principal>().unwrap(),
        reason: "request 12".to_owned(),
    };
    stack.store().change_key(&id, KeyChange::Destroy(erasure)).await.unwrap();
    stack.shutdown().await;
    for kept in [None, Some(kept)] {
        // An older file of keys is put back, as from a backup of it.
        kept.iter()
            .for_each(|kept| std::fs::write(folder.path().join(SESSION_KEYS_FILE), kept).unwrap());
        let stack = encrypting(folder.path()).await;
        let client = Client::new(&stack);
        let (_, shown) = client.get(&format!("/api/sessions/{session}")).await;
        let erased = &shown["session"]["erased"];
        assert_eq!(
            (&erased["by"], &erased["reason"]),
            (&json!("os-user:ann"), &json!("request 12"))
        );
        assert_eq!(statuses(&shown).iter().filter(|it| **it == "SESSION_ERASED").count(), 1);
        assert!(!shown.to_string().contains(SECRETS[0]));
        assert_eq!(stack.store().unjournaled().unwrap(), []);
        stack.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_ended_session_without_a_hold_is_erased() {
    let folder = TempDir::new().unwrap();
    let stack = encrypting(folder.path()).await;
    let client = Client::new(&stack);
    let open = begin(&client, json!({})).await;
    asked(&stack, &client, &open, 0).await;
    let (status, refused) = erase(&client, &open).await;
    assert_eq!((status, &refused["code"]), (409, &json!("SessionNotEnded")), "{refused}");
    let session = told(&stack, &client).await;
    let path = |action: &str| format!("/api/sessions/{session}/{action}");
    let reason = json!({ "reason": "case 7" });
    assert_eq!(client.post(&path("hold"), &reason).await.0, 200);
    let (status, refused) = erase(&client, &session).await;
    assert_eq!((status, &refused["code"]), (409, &json!("SessionHeld")), "{refused}");
    assert!(refused.to_string().contains("case 7"), "{refused}");
    // The key file's own trigger refuses, whichever program deletes the key.
    let keys = rusqlite::Connection::open(folder.path().join(SESSION_KEYS_FILE)).unwrap();
    for attack in [
        "UPDATE session_key SET key = NULL, erased_at = '', erased_by = '', reason = ''",
        "DELETE FROM session_key",
    ] {
        assert!(keys.execute(attack, []).is_err(), "{attack}");
    }
    drop(keys);
    let (status, refused) = client.post(&path("erase"), &json!({})).await;
    assert_eq!((status, &refused["code"]), (400, &json!("InvalidReason")), "{refused}");
    assert_eq!(client.post(&path("release"), &reason).await.0, 200);
    assert_eq!(erase(&client, &session).await.0, 202);
    let (status, refused) = client.post(&path("resume"), &json!({})).await;
    assert_eq!((status, &refused["code"]), (409, &json!("SessionErased")), "{refused}");
    // Its records can still be kept from being pruned.
    assert_eq!(client.post(&path("hold"), &reason).await.0, 200);
    stack.shutdown().await;
}

/// Whoever writes the journal's file can write that row.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_alone_destroys_no_key() {
    let folder = TempDir::new().unwrap();
    let stack = encrypting(folder.path()).await;
    let client = Client::new(&stack);
    let (held, free) = (told(&stack, &client).await, told(&stack, &client).await);
    let reason = json!({ "reason": "case 7" });
    assert_eq!(client.post(&format!("/api/sessions/{held}/hold"), &reason).await.0, 200);
    for session in [&held, &free] {
        let row = Item::new(key::ERASED, session.as_str()).with("Reason", "forged");
        stack.store().put(row, Condition::Absent).await.unwrap();
    }
    stack.shutdown().await;
    let stack = encrypting(folder.path()).await;
    for session in [held, free] {
        let id: SessionId = session.parse().unwrap();
        let state = stack.store().session_key(&id).await.unwrap();
        assert!(matches!(state, KeyState::Usable { .. }), "{state:?}");
    }
    stack.shutdown().await;
}

#[tokio::test]
async fn a_deduplication_key_is_guarded_and_released() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(&folder.path().join(JOURNAL_FILE), Durability::Relaxed).unwrap();
    store.encrypt_new_sessions().unwrap();
    let id: SessionId = crate::world::SESSION.parse().unwrap();
    store.create_keys(std::slice::from_ref(&id)).unwrap();
    let guarded = store.guarded(SECRETS[0]).await.unwrap();
    assert!(!guarded.contains(SECRETS[0]));
    assert_eq!(store.guarded(SECRETS[0]).await.unwrap(), guarded);
    let pk = journal::key::dedupe("asker", &guarded);
    let held = Item::new(pk.as_str(), journal::key::HOLDER).with("Session", id.as_str());
    store.put(held, Condition::Absent).await.unwrap();
    let other = Item::new(journal::key::dedupe("asker", "other"), journal::key::HOLDER);
    let other = other.with("Session", "another");
    store.put(other.clone(), Condition::Absent).await.unwrap();
    let erasure =
        Erasure { at: Stamp::default(), by: Principal::Unknown, reason: "request 12".to_owned() };
    store.change_key(&id, KeyChange::Destroy(erasure)).await.unwrap();
    let get = async |pk: &str| store.get(Key::new(pk, journal::key::HOLDER)).await.unwrap();
    assert_eq!(get(&pk).await, None);
    assert_eq!(get(&other.pk).await, Some(other.clone()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unencrypted_session_is_not_erased() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let session = client.trigger(&json!({})).await;
    client.ended(&session).await;
    let (status, refused) = erase(&client, &session).await;
    assert_eq!((status, &refused["code"]), (409, &json!("NotEncrypted")), "{refused}");
    assert!(!folder.path().join(SESSION_KEYS_FILE).exists(), "it is off by default");
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_session_goes_on_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let stack = encrypting(folder.path()).await;
    let client = Client::new(&stack);
    let session = begin(&client, json!({ "patient": SECRETS[0] })).await;
    let id = asked(&stack, &client, &session, 0).await["question_id"].as_u64().unwrap();
    stack.shutdown().await;
    // Without the setting, sessions that have a key keep it.
    let agents = [Agent::of(&ASKER)].into();
    let stack = Stack::start(Config { agents, ..config(folder.path(), 1) }).await.unwrap();
    let client = Client::new(&stack);
    let reject = json!({ "question_id": id, "decision": "reject", "reason": SECRETS[2] });
    assert_eq!(answer(&client, &session, &reject).await.0, 202);
    asked(&stack, &client, &session, id).await;
    stack.shutdown().await;
    for secret in [SECRETS[0], SECRETS[2]] {
        assert_eq!(holding(folder.path(), secret.as_bytes()), Vec::<PathBuf>::new());
    }
    let isolation =
        Isolation::Processes { program: None, arguments: Vec::new(), environment: Vec::new() };
    let refused = Stack::start(Config { isolation, ..config(folder.path(), 1) }).await;
    assert!(matches!(refused, Err(StartError::EncryptedIsolation)), "{refused:?}");
}

#[tokio::test]
async fn a_writer_without_the_key_writes_nothing_in_plain_text() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(&folder.path().join(JOURNAL_FILE), Durability::Relaxed).unwrap();
    store.encrypt_new_sessions().unwrap();
    let id: SessionId = crate::world::SESSION.parse().unwrap();
    store.create_keys(std::slice::from_ref(&id)).unwrap();
    let step =
        Item::new(journal::key::session(&id), journal::key::step(1)).with("Payload", "{}").hashed();
    let refused = store.put(step, Condition::Absent).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(_)), "{refused:?}");
}
