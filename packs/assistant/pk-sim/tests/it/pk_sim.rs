//! The pharmacokinetic simulator as a client sees it.

use std::path::Path;

use rmcp::ServiceExt;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ProgressNotificationParam, ServerResult,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RoleClient, RunningService};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use mcp::testing::{Connection, DEADLINE, text};

async fn open() -> Connection {
    Connection::serve(pk_sim::server(None, None).unwrap()).await
}

async fn open_in(state: &Path) -> Connection {
    Connection::serve(pk_sim::server(None, Some(state)).unwrap()).await
}

async fn ok(connection: &Connection, tool: &str, arguments: Value) -> Value {
    let result = connection.call(tool, arguments).await.unwrap();
    assert_eq!(result.is_error, Some(false), "{tool}: {:?}", result.content);
    result.structured_content.unwrap()
}

async fn refusal(connection: &Connection, tool: &str, arguments: Value) -> String {
    let result = connection.call(tool, arguments).await.unwrap();
    assert_eq!(result.is_error, Some(true), "{tool}: {:?}", result.content);
    assert_eq!(result.structured_content, None, "a refusal does not look like data");
    text(&result)
}

fn set(path: &str, value: impl Into<Value>, unit: &str) -> Value {
    let value = value.into();
    json!({"simulation_id": "s", "parameter_path": path, "value": value, "unit": unit})
}

async fn loaded(connection: &Connection, model: &str) {
    ok(connection, "load_simulation", json!({"model_path": model, "simulation_id": "s"})).await;
}

#[track_caller]
fn near(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() <= 1e-6 * expected, "{found} is not {expected}");
}

#[tokio::test]
async fn the_tools_of_pk_sim_are_published_with_their_schemas() {
    let connection = open().await;
    let tools = connection.client().list_all_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, pk_sim::INFO.tools);
    insta::assert_json_snapshot!(tools);
    connection.close().await;
}

#[tokio::test]
async fn an_oral_dose_of_theophylline_matches_the_textbook() {
    let connection = open().await;
    loaded(&connection, "theophylline-oral").await;
    let ran = ok(&connection, "run_simulation", json!({"simulation_id": "s"})).await;
    let (dose, clearance, volume, ka) = (320.0, 2.8, 35.0, 1.5);
    let k: f64 = clearance / volume;
    let bateman = |t: f64| dose * ka / (volume * (ka - k)) * ((-k * t).exp() - (-ka * t).exp());
    let highest = (ka / k).ln() / (ka - k);
    let summary = &ran["summary"];
    near(&summary["cmax"]["value"], bateman(highest));
    near(&summary["tmax"]["value"], highest);
    near(&summary["auc_0_inf"]["value"], dose / clearance);
    near(&summary["half_life"]["value"], 2.0_f64.ln() / k);
    let rest = bateman(24.0) / k
        + dose * ka / (volume * (ka - k)) * (-ka * 24.0).exp() * (1.0 / k - 1.0 / ka);
    near(&summary["auc_0_t"]["value"], dose / clearance - rest);

    let fetched =
        ok(&connection, "get_results", json!({"simulation_id": "s", "points_max": 25})).await;
    let (times, concentrations) =
        (&fetched["series"]["times"], &fetched["series"]["concentrations"]);
    assert_eq!(times.as_array().unwrap().len(), 25);
    for (time, concentration) in
        times.as_array().unwrap().iter().zip(concentrations.as_array().unwrap())
    {
        near(concentration, bateman(time.as_f64().unwrap()));
    }
    assert_eq!((&times[0], &times[24]), (&json!(0.0), &json!(24.0)));
    connection.close().await;
}

/// One compartment, boluses: C(t) = C0·e^(-kt), and the sum of three of them.
#[tokio::test]
async fn levels_times_and_troughs_match_the_textbook() {
    let connection = open().await;
    loaded(&connection, "gentamicin-bolus").await;
    let one = json!({"simulation_id": "s"});
    ok(&connection, "run_simulation", one.clone()).await;
    // The values that were run count, not those set later.
    ok(&connection, "set_parameter_value", set("Dosing|Dose", 1, "mg")).await;
    let fetch = |extra: Value| {
        let mut arguments = json!({"simulation_id": "s", "points_max": 2});
        arguments.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        arguments
    };
    let extra = json!({"at_times": [4.0, 12.0], "above": 2.0});
    let found = ok(&connection, "get_results", fetch(extra)).await;
    let (k, c0): (f64, f64) = (5.4 / 17.5, 120.0 / 17.5);
    let left = (-k * 8.0).exp();
    near(&found["at"][0]["concentration"]["value"], c0 * (-k * 4.0).exp());
    near(&found["at"][1]["concentration"]["value"], c0 * (1.0 + left) * (-k * 4.0).exp());
    let steady = c0 * left / (1.0 - left);
    let troughs = [1, 2, 3].map(|n| steady * (1.0 - left.powi(n)));
    for (point, expected) in found["troughs"].as_array().unwrap().iter().zip(troughs) {
        near(&point["concentration"]["value"], expected);
    }
    assert_eq!(found["troughs"].as_array().unwrap().len(), 3);
    near(&found["summary"]["trough"]["value"], troughs[2]);
    near(&found["summary"]["steady_state_share"], troughs[2] / steady);
    let above: f64 = [1.0, 1.0 + left, 1.0 + left + left * left]
        .map(|share| ((c0 * share / 2.0).ln() / k).min(8.0))
        .iter()
        .sum();
    near(&found["time_above"]["value"], above);
    for (extra, said) in [
        (json!({"at_times": [25.0]}), "at_times must be at most 50 times from 0 to 24 h"),
        (json!({"above": -1.0}), "above must be a concentration of 0 mg/L or more, not -1"),
    ] {
        let text = refusal(&connection, "get_results", fetch(extra)).await;
        assert!(text.contains(said), "{text}");
    }
    connection.close().await;
}

#[tokio::test]
async fn every_model_that_ships_loads_lists_and_runs() {
    let connection = open().await;
    let models = ok(&connection, "list_models", json!({})).await;
    let mut said = String::new();
    for model in models["models"].as_array().unwrap() {
        let path = model["model_path"].as_str().unwrap();
        let load = json!({"model_path": path, "simulation_id": path});
        assert_eq!(ok(&connection, "load_simulation", load).await["created"], true);
        let one = json!({"simulation_id": path});
        let listed = ok(&connection, "list_parameters", one.clone()).await;
        for parameter in listed["parameters"].as_array().unwrap() {
            said.push_str(&format!(
                "{path} {} {} {}\n",
                parameter["parameter_path"], parameter["value"], parameter["unit"]
            ));
        }
        let summary = &ok(&connection, "run_simulation", one).await["summary"];
        let figure =
            |name: &str| (summary[name]["value"].as_f64().unwrap() * 100.0).round() / 100.0;
        let figures = ["cmax", "tmax", "auc_0_t", "auc_0_inf", "half_life"].map(figure);
        said.push_str(&format!("{path}: {} doses, {figures:?}\n", summary["doses_given"]));
    }
    insta::assert_snapshot!(said);
    connection.close().await;
}

#[tokio::test]
async fn setting_a_value_accepts_any_unit_and_discards_results() {
    let connection = open().await;
    loaded(&connection, "gentamicin-bolus").await;
    let one = json!({"simulation_id": "s"});
    assert_eq!(
        refusal(&connection, "get_results", one.clone()).await,
        "s has no results; run it with run_simulation"
    );
    ok(&connection, "run_simulation", one.clone()).await;
    let changed = ok(&connection, "set_parameter_value", set("Drug|Clearance", 60, "mL/min")).await;
    assert_eq!(changed["value"], 3.6);
    assert_eq!((&changed["unit"], &changed["revision"]), (&json!("L/h"), &json!(1)));
    assert_eq!(changed["previous"], json!({"value": 5.4, "unit": "L/h"}));
    let get = json!({"simulation_id": "s", "parameter_path": "Drug|Clearance"});
    assert_eq!(ok(&connection, "get_parameter_value", get).await["value"], 3.6);
    assert_eq!(ok(&connection, "get_results", one.clone()).await["is_current"], false);
    let ran = ok(&connection, "run_simulation", one.clone()).await;
    near(&ran["summary"]["auc_0_inf"]["value"], 3.0 * 120.0 / 3.6);
    assert_eq!(ok(&connection, "get_results", one).await["is_current"], true);
    connection.close().await;
}

#[tokio::test]
async fn calls_are_idempotent() {
    let connection = open().await;
    let load = json!({"model_path": "gentamicin-bolus", "simulation_id": "s"});
    let call = set("Dosing|Dose", 0.24, "g");
    let mut said = Vec::new();
    for _ in 0..2 {
        let loaded = ok(&connection, "load_simulation", load.clone()).await;
        let set = ok(&connection, "set_parameter_value", call.clone()).await;
        let ran = ok(&connection, "run_simulation", json!({"simulation_id": "s"})).await;
        said.push((loaded["created"].clone(), set["revision"].clone(), ran));
    }
    assert_eq!((&said[0].0, &said[1].0), (&json!(true), &json!(false)));
    assert_eq!((&said[0].1, &said[0].2), (&said[1].1, &said[1].2));
    let other = json!({"model_path": "theophylline-oral", "simulation_id": "s"});
    assert!(
        refusal(&connection, "load_simulation", other).await.contains("already exists for model")
    );
    let unnamed = json!({"model_path": "gentamicin-bolus.json"});
    for expected in ["sim-1", "sim-2"] {
        let loaded = ok(&connection, "load_simulation", unnamed.clone()).await;
        assert_eq!(loaded["simulation_id"], expected);
    }
    connection.close().await;
}

#[tokio::test]
async fn an_error_names_the_argument_and_the_accepted_form() {
    let connection = open().await;
    loaded(&connection, "vancomycin-infusion").await;
    let mut said = Vec::new();
    let bad_sets = [
        set("Dosing|Dose", -5, "mg"),
        set("Dosing|Dose", 5, "mL"),
        set("Dosing|Dose", 5, "milligrams"),
        set("Dosing|Dose", 1e300, "kg"),
        set("Dosing|Dose", "NaN", "mg"),
        set("Dosing|Dose", Value::Null, "mg"),
        set("Dosing|Dose", "100", "mg"),
        set("Dosing|Doses", 2.5, "count"),
        set("Simulation|Points", 1_000_000_000, "count"),
        set("Drug|AbsorptionRate", 1, "1/h"),
        set("Drug|Colour", 1, "1/h"),
        set("", 1, "h"),
        set(&"x".repeat(10_000), 1, "h"),
        json!({"simulation_id": "s", "parameter_path": "Dosing|Dose", "value": 1}),
        json!({"simulation_id": "../s", "parameter_path": "Dosing|Dose", "value": 1, "unit": "g"}),
        json!({"simulation_id": "t", "parameter_path": "Dosing|Dose", "value": 1, "unit": "g"}),
    ];
    for arguments in bad_sets {
        said.push(refusal(&connection, "set_parameter_value", arguments).await);
    }
    for (tool, arguments) in [
        ("load_simulation", json!({"model_path": "aspirin"})),
        ("load_simulation", json!({"model_path": 7})),
        ("load_simulation", json!({"model_path": "../../etc/passwd"})),
        ("load_simulation", json!({"model_path": "gentamicin-bolus", "simulation_id": "-"})),
        ("run_simulation", json!({})),
        ("run_simulation", json!({"simulation_id": "s", "points": 10})),
        ("get_results", json!({"simulation_id": "s", "points_max": 1})),
        ("get_results", json!({"simulation_id": "s", "points_max": 1e9})),
        ("list_models", json!({"folder": "/"})),
    ] {
        said.push(refusal(&connection, tool, arguments).await);
    }
    ok(&connection, "set_parameter_value", set("Dosing|InfusionDuration", 13, "h")).await;
    said.push(refusal(&connection, "run_simulation", json!({"simulation_id": "s"})).await);
    insta::assert_snapshot!(said.join("\n"));
    let listed = ok(&connection, "list_parameters", json!({"simulation_id": "s"})).await;
    assert_eq!(listed["revision"], 1, "what was refused changed nothing");
    connection.close().await;
}

#[tokio::test]
async fn simulations_in_a_folder_survive_restarts_and_are_shared() {
    let folder = tempfile::tempdir().unwrap();
    let first = open_in(folder.path()).await;
    loaded(&first, "theophylline-oral").await;
    ok(&first, "set_parameter_value", set("Dosing|Dose", 400, "mg")).await;
    let ran = ok(&first, "run_simulation", json!({"simulation_id": "s"})).await;
    let second = open_in(folder.path()).await;
    first.close().await;
    let fetched = ok(&second, "get_results", json!({"simulation_id": "s"})).await;
    assert_eq!((&fetched["summary"], &fetched["is_current"]), (&ran["summary"], &json!(true)));
    let load = json!({"model_path": "theophylline-oral", "simulation_id": "s"});
    assert_eq!(ok(&second, "load_simulation", load.clone()).await["created"], false);

    let file = folder.path().join("s.json");
    let whole = std::fs::read_to_string(&file).unwrap();
    let mut said = Vec::new();
    for damaged in [
        whole[..whole.len() / 2].to_owned(),
        whole.replace("\"Dosing|Dose\":400.0", "\"Dosing|Dose\":-1.0"),
        whole.replace("oral", "nasal"),
        "{}".to_owned(),
    ] {
        std::fs::write(&file, damaged).unwrap();
        let refused = refusal(&second, "list_parameters", json!({"simulation_id": "s"})).await;
        assert_eq!(refusal(&second, "load_simulation", load.clone()).await, refused);
        assert!(refused.starts_with("cannot use the state of s: "), "{refused}");
        said.push(refused);
    }
    said.dedup();
    assert_eq!(said.len(), 4);
    second.close().await;
}

#[tokio::test]
async fn the_least_recently_changed_simulations_are_evicted() {
    let connection = open().await;
    let load = |number: u32| json!({"model_path": "gentamicin-bolus", "simulation_id": format!("n{number}")});
    for number in 0..128 {
        assert_eq!(ok(&connection, "load_simulation", load(number)).await.get("evicted"), None);
    }
    let mut touch = set("Dosing|Dose", 100, "mg");
    touch["simulation_id"] = json!("n0");
    ok(&connection, "set_parameter_value", touch).await;
    assert_eq!(ok(&connection, "load_simulation", load(128)).await["evicted"], "n1");
    let gone = refusal(&connection, "list_parameters", json!({"simulation_id": "n1"})).await;
    assert!(gone.contains("the 128 most recently changed are kept"), "{gone}");
    ok(&connection, "list_parameters", json!({"simulation_id": "n0"})).await;
    connection.close().await;
}

#[tokio::test]
async fn models_of_a_folder_extend_the_bundled_ones() {
    let folder = tempfile::tempdir().unwrap();
    let shipped = include_str!("../../src/models/theophylline-oral.json");
    let mine = shipped.replace("\"value\": 320", "\"value\": 100");
    std::fs::write(folder.path().join("mine.json"), mine).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "not a model").unwrap();
    let server = pk_sim::server(Some(folder.path()), None).unwrap();
    let connection = Connection::serve(server).await;
    loaded(&connection, "mine").await;
    let get = json!({"simulation_id": "s", "parameter_path": "Dosing|Dose"});
    assert_eq!(ok(&connection, "get_parameter_value", get).await["value"], 100.0);
    loaded_as(&connection, "theophylline-oral", "t").await;
    connection.close().await;

    let problem = |name: &str, text: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        pk_sim::server(Some(folder.path()), None).unwrap_err().to_string()
    };
    assert!(problem("Bad Name.json", shipped).contains("its name must be"));
    assert!(problem("bad.json", "{}").contains("bad.json is not a valid model: missing field"));
    assert!(problem("big.json", &" ".repeat(1 << 20)).contains("cannot read"));
    let nowhere = pk_sim::server(Some(Path::new("/nonexistent")), None).unwrap_err();
    assert!(nowhere.to_string().contains("cannot read /nonexistent"), "{nowhere}");
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = pk_sim::server(None, Some(file.path())).unwrap_err();
    assert!(refused.to_string().starts_with("cannot keep simulations in"), "{refused}");
}

async fn loaded_as(connection: &Connection, model: &str, id: &str) {
    ok(connection, "load_simulation", json!({"model_path": model, "simulation_id": id})).await;
}

/// A client that records progress notifications.
#[derive(Clone)]
struct Listener(mpsc::UnboundedSender<ProgressNotificationParam>);

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(progress);
    }
}

/// A recording client of a server with one simulation that takes seconds.
async fn listening()
-> (RunningService<RoleClient, Listener>, mpsc::UnboundedReceiver<ProgressNotificationParam>) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let server = pk_sim::server(None, None).unwrap();
    tokio::spawn(async move { server.serve(far).await.unwrap().waiting().await.unwrap() });
    let (sender, received) = mpsc::unbounded_channel();
    let client =
        tokio::time::timeout(DEADLINE, Listener(sender).serve(near)).await.unwrap().unwrap();
    let calls = [
        ("load_simulation", json!({"model_path": "gentamicin-bolus", "simulation_id": "s"})),
        ("set_parameter_value", set("Dosing|Doses", 2000, "count")),
        ("set_parameter_value", set("Dosing|Interval", 1, "h")),
        ("set_parameter_value", set("Simulation|Duration", 2000, "h")),
        ("set_parameter_value", set("Simulation|Points", 3001, "count")),
    ];
    for (tool, arguments) in calls {
        let params =
            CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone());
        assert_eq!(client.call_tool(params).await.unwrap().is_error, Some(false));
    }
    (client, received)
}

fn run_request() -> ClientRequest {
    let arguments = json!({"simulation_id": "s"}).as_object().unwrap().clone();
    ClientRequest::CallToolRequest(CallToolRequest::new(
        CallToolRequestParams::new("run_simulation").with_arguments(arguments),
    ))
}

#[tokio::test]
async fn a_long_run_tells_how_far_it_is() {
    let (client, mut received) = listening().await;
    let request = client
        .send_cancellable_request(run_request(), PeerRequestOptions::no_options())
        .await
        .unwrap();
    let answer = tokio::time::timeout(DEADLINE, request.await_response()).await.unwrap().unwrap();
    let ServerResult::CallToolResult(result) = answer else { panic!("{answer:?}") };
    assert_eq!(result.is_error, Some(false), "{result:?}");
    let mut last = 0.0;
    let mut times = 0;
    while let Ok(progress) = received.try_recv() {
        assert!(progress.progress > last && progress.total == Some(3001.0), "{progress:?}");
        last = progress.progress;
        times += 1;
    }
    assert!(times >= 2, "three million evaluations are more than two parts");
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_cancelled_run_leaves_no_results() {
    let (client, mut received) = listening().await;
    let most = set("Simulation|Points", 50_001, "count").as_object().unwrap().clone();
    let most = CallToolRequestParams::new("set_parameter_value").with_arguments(most);
    client.call_tool(most).await.unwrap();
    let request = client
        .send_cancellable_request(run_request(), PeerRequestOptions::no_options())
        .await
        .unwrap();
    tokio::time::timeout(DEADLINE, received.recv()).await.unwrap().unwrap();
    request.cancel(Some("no longer wanted".to_owned())).await.unwrap();
    let fetch = json!({"simulation_id": "s"}).as_object().unwrap().clone();
    let fetch = CallToolRequestParams::new("get_results").with_arguments(fetch);
    let answer = tokio::time::timeout(DEADLINE, client.call_tool(fetch)).await.unwrap().unwrap();
    assert_eq!(text(&answer), "s has no results; run it with run_simulation");
    while received.try_recv().is_ok() {}
    client.cancel().await.unwrap();
}
