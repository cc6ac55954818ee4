//! The bundled incidents: every result matches its published schema and has the evidence.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::harness::{TOOLS, answer, incident, incidents, named, open};

/// Each bundled incident and its function, as in `packs/incident/incidents/README.md`.
const BUNDLED: [(&str, &str); 7] = [
    ("cloudwatch-and-s3-revoked", "invoice-renderer"),
    ("cloudwatch-revoked", "session-cleanup"),
    ("network-blocked", "inventory-sync"),
    ("reserved-concurrency-zero", "payment-capture"),
    ("s3-permission-revoked", "data-processor"),
    ("throttled-and-s3-revoked", "thumbnail-generator"),
    ("unexplained-failure", "shipment-quote"),
];

/// Words that would reveal the cause to an agent.
const GIVEN_AWAY: [&str; 6] =
    ["fault_type", "permission_loss", "network_block", "root_cause", "revoked", "chaos"];

/// A summary of a result: role and configuration in full; of the logs the number of events, the time range
/// and the last error.
fn shape(tool: &str, answer: Value) -> Value {
    if tool != "get_recent_logs" {
        return answer;
    }
    let events = answer["events"].as_array().unwrap();
    let complaint = events.iter().rposition(|event| {
        let message = event["message"].as_str().unwrap();
        ["rror", "timed out", "ETIMEDOUT"].iter().any(|word| message.contains(word))
    });
    json!({
        "log_group": answer["log_group"],
        "events": events.len(),
        "first": events.first().map(|event| &event["timestamp"]),
        "last": events.last().map(|event| &event["timestamp"]),
        "last_complaint": complaint.map(|index| json!({ "index": index, "event": events[index] })),
    })
}

#[tokio::test]
async fn each_incident_is_answered_as_before() {
    for (name, function) in BUNDLED {
        let connection = open(&incident(name)).await;
        let mut answers = serde_json::Map::new();
        for tool in TOOLS {
            let answer = answer(&connection, tool, function).await;
            answers.insert(tool.to_owned(), shape(tool, answer));
        }
        insta::assert_json_snapshot!(name, answers);
        connection.close().await;
    }
}

#[tokio::test]
async fn every_answer_fits_its_published_schema() {
    for (name, _) in BUNDLED {
        let connection = open(&incident(name)).await;
        for tool in connection.client().list_all_tools().await.unwrap() {
            let schema = Value::Object((*tool.output_schema.unwrap()).clone());
            let schema = jsonschema::validator_for(&schema).unwrap();
            for function in functions(name).into_iter().filter(|_| TOOLS.contains(&&*tool.name)) {
                let answer = answer(&connection, &tool.name, &function).await;
                let errors: Vec<String> =
                    schema.iter_errors(&answer).map(|error| error.to_string()).collect();
                assert_eq!(errors, [""; 0], "{name} {function} {}", tool.name);
            }
        }
        connection.close().await;
    }
}

#[tokio::test]
async fn omitted_log_events_are_counted() {
    let connection = open(&incident("s3-permission-revoked")).await;
    let result = connection.call("get_recent_logs", named("data-processor")).await.unwrap();
    let events = result.structured_content.unwrap()["events"].as_array().unwrap().len();
    assert_eq!(events, 100);
    assert_eq!(result.meta.unwrap().0["daybook/events_left_out"], 33);
    let result = connection.call("get_recent_logs", named("data-archiver")).await.unwrap();
    assert_eq!(result.meta, None);
    connection.close().await;
}

#[test]
fn every_folder_is_listed_and_has_a_message() {
    let found: BTreeSet<String> = fs::read_dir(incidents())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, BUNDLED.map(|(name, _)| name.to_owned()).into());
    let readme = fs::read_to_string(incidents().join("README.md")).unwrap();
    for (name, function) in BUNDLED {
        assert!(readme.contains(&format!("| `{name}` | `{function}` |")), "{name}");
        let message = fs::read_to_string(incident(name).join("incident.json")).unwrap();
        assert!(serde_json::from_str::<Value>(&message).unwrap().is_object(), "{name}");
        assert!(message.contains(function), "{name}");
    }
}

#[test]
fn no_incident_gives_its_answer_away() {
    for (name, _) in BUNDLED {
        let mut folders = vec![incident(name)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = fs::read_to_string(&path).unwrap().to_lowercase();
                for word in GIVEN_AWAY {
                    assert!(!text.contains(word), "{}: {word}", path.display());
                }
            }
        }
    }
}

fn functions(name: &str) -> Vec<String> {
    fs::read_dir(incident(name).join("functions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}
