//! Crash points and prefixes of agents, on each store.

use std::path::Path;

use card_transactions::Remote;
use graph::agent::Agent;
use journal::event::EventStatus;
use serde_json::{Value, json};
use sim::crash_points::{Outcome, crash_points, sampled_crash_points};
use sim::payment_agent;
use sim::prefixes::prefixes;
use sim::scenario::Scenario;
use sim::tools::ToolServer;

use crate::stores::{Stores, memory};

fn checkup() -> Scenario {
    // Durations and clock differences vary between runs.
    let view = |result: &Value| {
        let checks = result["checks"].as_array().unwrap().iter();
        json!(checks.map(|check| json!([check["name"], check["ok"]])).collect::<Vec<_>>())
    };
    Scenario { view, ..Scenario::new(Agent::of(&checkup::GRAPH), json!({})) }
}

fn incident() -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packs/incident/incidents/s3-permission-revoked");
    let message = std::fs::read_to_string(folder.join("incident.json")).unwrap();
    let input = serde_json::from_str(&message).unwrap();
    let server = move |_: &Value| aws_diagnostics::server(folder.clone()).unwrap();
    Scenario {
        servers: vec![ToolServer::new("aws-diagnostics", server)],
        ..Scenario::new(Agent::of(&incident::graph::GRAPH), input)
    }
}

fn network() -> Scenario {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/network/networks/bgp-session-down");
    let server =
        move |_: &Value| network_inventory::server(Some(&folder.join("network.json"))).unwrap();
    let input = json!({"query": "Check BGP neighbors on pe2"});
    Scenario {
        servers: vec![ToolServer::new("network-inventory", server)],
        ..Scenario::new(Agent::of(&network::graph::GRAPH), input)
    }
}

fn fraud() -> Scenario {
    let data =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/fraud/transactions/sample.csv");
    let input = std::fs::read_to_string(data.with_file_name("account-takeover.json")).unwrap();
    let mut input: Value = serde_json::from_str(&input).unwrap();
    input["data"] = json!(data);
    let server = move |_: &Value| {
        card_transactions::server(data.to_str().unwrap(), Remote::Refused).unwrap()
    };
    // Times and durations vary between runs.
    let view = |result: &Value| {
        let executions = result["tool_executions"].as_array().unwrap().iter();
        json!([
            result["score"],
            result["confidence_score"],
            result["severity"],
            result["status"],
            result["findings"],
            result["rule_draft"],
            result["completed_steps"],
            executions.map(|done| json!([done["tool_name"], done["status"]])).collect::<Vec<_>>(),
        ])
    };
    Scenario {
        servers: vec![ToolServer::new("card-transactions", server)],
        view,
        ..Scenario::new(Agent::of(&fraud::graph::GRAPH), input)
    }
}

/// For the long session, tests every third write that is not a step, which takes a quarter of a minute on one core; or
/// every `SIM_CRASH_POINTS`-th, 1 meaning all.
#[expect(clippy::disallowed_methods, reason = "how to request all of them")]
fn nth() -> usize {
    std::env::var("SIM_CRASH_POINTS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

/// Fails with the violations and their runs.
fn hold(what: &str, outcome: &Outcome, runs_min: usize) {
    let store = if outcome.broken.is_empty() { "all hold" } else { "NOT all hold" };
    println!("{what}: {} runs, {store}; calls {:?}", outcome.runs, outcome.calls());
    let first: Vec<_> = outcome.broken.iter().take(20).cloned().collect();
    let broken = outcome.broken.len();
    assert!(broken == 0, "{what}: {broken} of {} runs:\n{}", outcome.runs, first.join("\n"));
    assert_eq!(outcome.undisturbed.verdict, Some(EventStatus::SessionSucceeded));
    assert!(outcome.runs >= runs_min, "{what}: only {} runs", outcome.runs);
}

fn checkup_holds_at_every_crash_point(mut stores: Stores) {
    hold("checkup", &crash_points(&checkup(), 1, &mut *stores), 60);
}

fn incident_holds_at_every_crash_point(mut stores: Stores) {
    hold("incident", &crash_points(&incident(), 1, &mut *stores), 60);
}

fn network_holds_at_every_crash_point(mut stores: Stores) {
    hold("network", &crash_points(&network(), nth(), &mut *stores), 60);
}

fn network_resumes_from_every_prefix(mut stores: Stores) {
    hold("network", &prefixes(&network(), &mut *stores), 15);
}

fn fraud_holds_at_every_crash_point(mut stores: Stores) {
    hold("fraud", &crash_points(&fraud(), nth(), &mut *stores), 30);
}

fn the_payment_agent_holds_at_every_crash_point(mut stores: Stores) {
    hold("payment agent", &crash_points(&payment_agent::scenario(), nth(), &mut *stores), 60);
}

fn a_conversation_holds_at_every_crash_point(mut stores: Stores) {
    hold(
        "assistant",
        &crash_points(&crate::assistant::scenario(), 2 * nth() + 1, &mut *stores),
        60,
    );
}

/// For the long conversation, tests every eleventh write, including steps; eleven and four are coprime, so all modes
/// occur. In memory, all of its steps are tested above.
fn a_conversation_holds_at_sampled_crash_points(mut stores: Stores) {
    let nth = if nth() == 1 { 1 } else { 11 };
    let scenario = crate::assistant::scenario();
    hold("assistant", &sampled_crash_points(&scenario, nth, &mut *stores), 30);
}

fn a_conversation_resumes_from_every_prefix(mut stores: Stores) {
    hold("assistant", &prefixes(&crate::assistant::scenario(), &mut *stores), 30);
}

fn checkup_resumes_from_every_prefix(mut stores: Stores) {
    hold("checkup", &prefixes(&checkup(), &mut *stores), 10);
}

fn incident_resumes_from_every_prefix(mut stores: Stores) {
    hold("incident", &prefixes(&incident(), &mut *stores), 10);
}

fn fraud_resumes_from_every_prefix(mut stores: Stores) {
    hold("fraud", &prefixes(&fraud(), &mut *stores), 20);
}

fn the_payment_agent_resumes_from_every_prefix(mut stores: Stores) {
    hold("payment agent", &prefixes(&payment_agent::scenario(), &mut *stores), 10);
}

#[test]
fn a_nondeterministic_result_is_detected() {
    let view = Value::clone;
    let outcome = prefixes(&Scenario { view, ..checkup() }, &mut *memory().unwrap());
    assert!(outcome.broken.iter().any(|broken| broken.contains("the result is")));
}

/// Generates a test per function for a store.
macro_rules! on {
    ($store:ident: $($name:ident),+ $(,)?) => {
        mod $store {
            $(#[test]
            fn $name() {
                let Some(stores) = crate::stores::$store() else { return };
                super::$name(stores);
            })+
        }
    };
}

// Every other store is compared with memory at each operation. These tests show that memory alone suffices, which most
// of the long conversation relies on.
on!(memory:
    checkup_holds_at_every_crash_point,
    checkup_resumes_from_every_prefix,
    a_conversation_holds_at_every_crash_point,
    a_conversation_resumes_from_every_prefix,
);
on!(sqlite:
    checkup_holds_at_every_crash_point,
    fraud_holds_at_every_crash_point,
    incident_holds_at_every_crash_point,
    network_holds_at_every_crash_point,
    the_payment_agent_holds_at_every_crash_point,
    checkup_resumes_from_every_prefix,
    fraud_resumes_from_every_prefix,
    incident_resumes_from_every_prefix,
    network_resumes_from_every_prefix,
    the_payment_agent_resumes_from_every_prefix,
    a_conversation_holds_at_sampled_crash_points,
);
on!(dynamodb:
    checkup_holds_at_every_crash_point,
    fraud_holds_at_every_crash_point,
    incident_holds_at_every_crash_point,
    network_holds_at_every_crash_point,
    the_payment_agent_holds_at_every_crash_point,
    checkup_resumes_from_every_prefix,
    fraud_resumes_from_every_prefix,
    incident_resumes_from_every_prefix,
    network_resumes_from_every_prefix,
    the_payment_agent_resumes_from_every_prefix,
);
