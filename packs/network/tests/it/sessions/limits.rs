//! Unusual servers, failing tools, limits and invalid input.

use graph::agent::Settings;
use graph::budget::Budget;
use graph::effect::{CATALOGUE, ToolCall};
use graph::outcome::{Brought, Failure};
use graph::testing::World;
use serde_json::{Value, json};

use super::{TOOLS, by_rules, completed, failed, offering, offering_to_read, run, texts};

fn with_devices() -> Vec<&'static str> {
    TOOLS.into_iter().chain(["get_devices"]).collect()
}

fn devices(call: &ToolCall) -> Option<Brought> {
    let is_asked = call.tool == "get_devices";
    is_asked.then(|| Brought::Ok(json!({"devices": [{"name": "pe1"}, {"name": "pe2"}]})))
}

fn well(call: &ToolCall) -> Brought {
    let offered = offering(call, &with_devices()).or_else(|| devices(call));
    offered.unwrap_or_else(|| Brought::Ok(json!({"neighbors": [], "interfaces": []})))
}

#[test]
fn the_states_fields_are_the_specification_s() {
    let agent = network::agent();
    let mut session = graph::testing::TestSession::start(
        agent,
        json!({"query": "Check BGP on pe1"}),
        Settings::default(),
    )
    .unwrap();
    session.drive(&mut World::new(well));
    let state = serde_json::to_value(network::state::State::default()).unwrap();
    let fields: Vec<&str> = state.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "user_query",
            "device_name",
            "objective",
            "working_plan_steps",
            "execution_results",
            "tool_limitations_report",
            "max_retries",
            "current_retries",
            "objective_achieved_assessment",
            "assessor_feedback_for_retry",
            "assessor_notes_for_final_report",
            "summary",
            "work",
        ]
    );
    let result = completed(by_rules("Check BGP on pe1", well));
    for (number, step) in result["execution_results"].as_array().unwrap().iter().enumerate() {
        let fields: Vec<&str> = step.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["step_index", "natural_language_instruction", "executed_calls"]);
        assert_eq!(step["step_index"], number, "from 0");
        for call in step["executed_calls"].as_array().unwrap() {
            let fields: Vec<&str> = call.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(fields, ["function", "params", "result", "error"]);
        }
    }
    assert!(result["summary"].is_array());
}

#[test]
fn an_unknown_device_is_refused_with_the_known_ones() {
    let said = failed(by_rules("Check BGP neighbors on pe9", well));
    assert_eq!(
        said,
        "NetworkError: UnknownDevice - unknown device `pe9`; known devices: pe1, pe2 [invalid_input]"
    );
    let said = failed(by_rules("Check BGP neighbors", well));
    assert!(said.contains("the query names no device; known devices: pe1, pe2"), "{said}");
}

#[test]
fn a_failed_device_list_fails_the_session_with_the_reason() {
    let said = failed(by_rules("Check BGP on pe1", |call| match call.tool.as_str() {
        "get_devices" => Brought::Error("the inventory is locked".to_owned()),
        _ => well(call),
    }));
    assert_eq!(
        said,
        "NetworkError: DevicesUnavailable - cannot list the devices: the inventory is locked [unknown]"
    );
}

#[test]
fn a_server_without_a_device_list_is_a_limitation() {
    let result = completed(by_rules("Check BGP on pe7", |call| {
        let offered = offering(call, &TOOLS);
        offered.unwrap_or_else(|| Brought::Ok(json!({"neighbors": []})))
    }));
    assert_eq!(result["device_name"], "pe7");
    let limitations = result["tool_limitations_report"].as_str().unwrap();
    assert!(limitations.contains("no server offers get_devices"), "{limitations}");
    let said = failed(by_rules("Check BGP", |call| offering(call, &TOOLS).unwrap()));
    assert!(said.contains("the query names no device"), "{said}");
}

#[test]
fn a_query_without_an_intent_gets_the_general_check() {
    let result = completed(by_rules("What about pe1", well));
    assert_eq!(result["intent"], "general_device_health_check");
    let summary = texts(&result["summary"]).join("\n");
    assert!(summary.contains("names no known intent"), "{summary}");
}

#[test]
fn a_named_interface_and_vrf_are_passed_on() {
    let mut asked: Vec<Value> = Vec::new();
    let query = "Troubleshoot VRF BLUE behind Gi0/0/0/1 on pe1";
    let result = completed(by_rules(query, |call| {
        if call.tool == "get_vrfs" {
            asked.push(call.arguments.clone());
        }
        well(call)
    }));
    let expected = json!({"device_name": "pe1", "interface": "Gi0/0/0/1", "vrf": "BLUE"});
    assert!(!asked.is_empty() && asked.iter().all(|arguments| *arguments == expected), "{asked:?}");
    let objective = result["objective"].as_str().unwrap();
    assert!(objective.ends_with(" Interface Gi0/0/0/1. VRF BLUE."), "{objective}");
}

#[test]
fn a_tool_that_always_fails_is_retried_within_bounds() {
    for retries in [None, Some(0), Some(1)] {
        let mut calls = 0;
        let options = retries.map_or(Value::Null, |retries| json!({ "max_retries": retries }));
        let settings = Settings { options, ..Settings::default() };
        let mut world = World::new(|call: &ToolCall| {
            if call.tool != "get_bgp_routing" {
                return well(call);
            }
            calls += 1;
            Brought::Error("gNMI: deadline exceeded".to_owned())
        });
        let result = completed(run("Check BGP on pe1", settings, &mut world));
        drop(world);
        let retries = retries.unwrap_or(2);
        assert_eq!(result["current_retries"], retries);
        let failing = 2;
        assert_eq!(calls, failing * (1 + retries), "steps of the plan that need the tool");
        let notes = result["assessor_notes_for_final_report"].as_str().unwrap();
        assert!(notes.contains(&format!("Proceeding after max retries ({retries}).")), "{notes}");
        let limitations = result["tool_limitations_report"].as_str().unwrap();
        assert!(
            limitations.contains("get_bgp_routing failed: gNMI: deadline exceeded"),
            "{limitations}"
        );
        let first = result["execution_results"][0]["executed_calls"][0].clone();
        assert_eq!(
            (&first["result"], &first["error"]),
            (&Value::Null, &json!("gNMI: deadline exceeded"))
        );
        let summary = texts(&result["summary"]).join("\n");
        assert!(summary.starts_with("pe1: nothing could be checked."), "{summary}");
        assert!(summary.contains("Not checked: "), "{summary}");
    }
}

#[test]
fn what_the_tool_cannot_do_is_not_retried() {
    // The words of Cisco IOS, gRPC, Junos, Arista EOS and Nokia SR Linux.
    for refusal in [
        "% Invalid input detected at '^' marker.",
        "rpc error: code = Unimplemented desc = Get is not supported for this path",
        "rpc error: code = PermissionDenied desc = user is not authorized",
        "unknown command.",
        "% Unavailable command (not supported on this hardware platform)",
        "% Authorization failed: command authorization failed",
    ] {
        let mut calls = 0;
        let result = completed(by_rules("Check BGP on pe1", |call| {
            if call.tool != "get_bgp_routing" {
                return well(call);
            }
            calls += 1;
            Brought::Error(refusal.to_owned())
        }));
        assert_eq!((&result["current_retries"], calls), (&json!(0), 2), "{refusal}");
        assert_eq!(result["verdict"], "unknown");
        let notes = result["assessor_notes_for_final_report"].as_str().unwrap();
        let said = "Objective partially met due to limitations: ";
        assert!(
            notes.starts_with(said) && notes.contains(refusal.trim_end_matches('.')),
            "{notes}"
        );
    }
}

#[test]
fn only_passing_failures_are_repeated_among_limitations() {
    let lasting = "gNMI: path not supported";
    let result = completed(by_rules("Is pe1 healthy?", |call| match call.tool.as_str() {
        "get_bgp_routing" => Brought::Error(lasting.to_owned()),
        "get_interfaces" => Brought::Error("connection reset by peer".to_owned()),
        _ => well(call),
    }));
    assert_eq!(result["current_retries"], 2);
    let done = result["execution_results"].as_array().unwrap();
    let first: Vec<_> = done
        .iter()
        .scan(None, |last, step| {
            let index = step["step_index"].as_u64();
            (index > *last).then(|| *last = index)
        })
        .collect();
    let (attempted, repeated) = done.split_at(first.len());
    assert!(json!(attempted).to_string().contains(lasting), "{attempted:#?}");
    assert!(!repeated.is_empty());
    for step in repeated {
        assert!(step.to_string().contains("connection reset by peer"), "{step:#}");
    }
    let notes = result["assessor_notes_for_final_report"].as_str().unwrap();
    assert!(notes.ends_with("Proceeding after max retries (2)."), "{notes}");
}

#[test]
fn only_a_failed_step_is_retried() {
    let mut asked: Vec<String> = Vec::new();
    let mut is_first = true;
    let result = completed(by_rules("Check interfaces on pe1", |call| {
        asked.push(call.tool.clone());
        if call.tool == "get_interfaces" && std::mem::take(&mut is_first) {
            return Brought::Error("busy".to_owned());
        }
        well(call)
    }));
    assert_eq!(result["current_retries"], 1);
    assert_eq!(
        result["assessor_notes_for_final_report"].as_str().unwrap().find("max retries"),
        None
    );
    let repeated = result["execution_results"].as_array().unwrap().last().unwrap();
    assert_eq!(repeated["step_index"], 0);
    // One failed call, one answer shared by all interface steps, and the retried first step.
    assert_eq!(asked.iter().filter(|tool| *tool == "get_interfaces").count(), 3);
}

#[test]
fn tools_that_may_write_are_never_called() {
    let tools = ["configure_bgp_routing", "reset_interfaces", "get_devices"];
    let result = completed(by_rules("Check BGP on pe1", |call| {
        let offered = offering(call, &tools).or_else(|| devices(call));
        offered.unwrap_or_else(|| panic!("{} was called", call.tool))
    }));
    let limitations = result["tool_limitations_report"].as_str().unwrap();
    assert!(limitations.contains("are not used: configure_bgp_routing, reset_interfaces"));
    assert!(limitations.contains("step 1: no available tool covers bgp"), "{limitations}");
    assert_eq!(texts(&result["summary"])[0], "pe1: nothing could be checked.");
    let notes = result["assessor_notes_for_final_report"].as_str().unwrap();
    assert!(notes.starts_with("Objective partially met: 0 of 4 steps answered"), "{notes}");
}

#[test]
fn a_name_that_sounds_like_reading_is_not_enough() {
    let tools =
        ["get_devices", "fetch_and_delete", "query_exec", "search_replace", "get_bgp_routing"];
    for reads in [&[][..], &["get_devices"]] {
        let result = completed(by_rules("Check BGP on pe1", |call| {
            let offered = offering_to_read(call, &tools, reads);
            let offered = offered.or_else(|| devices(call).filter(|_| !reads.is_empty()));
            offered.unwrap_or_else(|| panic!("{} was called", call.tool))
        }));
        let limitations = result["tool_limitations_report"].as_str().unwrap();
        for said in ["fetch_and_delete", "query_exec", "search_replace", "readOnlyHint", "`reads`"]
        {
            assert!(limitations.contains(said), "{said}: {limitations}");
        }
    }
}

#[test]
fn an_unreachable_server_fails_only_without_another() {
    let refused = || Brought::Failure(Failure::refused("mcp_connection", "no such command"));
    let said = failed(by_rules("Check BGP on pe1", |call| match call.tool.as_str() {
        CATALOGUE => refused(),
        _ => well(call),
    }));
    assert_eq!(said, "McpConnection: theirs - mcp_connection: no such command [mcp_connection]");
    let result = completed(by_rules("Check BGP on pe1", |call| {
        match (call.tool.as_str(), call.server.as_deref()) {
            ("configured_servers", _) => Brought::Ok(json!({"servers": ["gone", "theirs"]})),
            (CATALOGUE, Some("gone")) => refused(),
            _ => well(call),
        }
    }));
    let limitations = result["tool_limitations_report"].as_str().unwrap();
    assert!(limitations.contains("the server gone cannot be used"), "{limitations}");
}

#[test]
fn servers_of_other_agents_are_not_used() {
    let servers = |configured: Value| {
        let mut asked: Vec<String> = Vec::new();
        by_rules("Check BGP on pe1", |call| {
            if call.tool == CATALOGUE {
                asked.extend(call.server.clone());
            }
            match call.tool.as_str() {
                "configured_servers" => Brought::Ok(json!({ "servers": configured })),
                _ => Brought::Error("unavailable".to_owned()),
            }
        });
        asked
    };
    assert_eq!(servers(json!([])), ["network-inventory"]);
    assert_eq!(servers(json!(["aws-diagnostics"])), ["network-inventory"]);
    assert_eq!(servers(json!(["aws-diagnostics", "gNMIBuddy"])), ["gNMIBuddy"]);
    let input = json!({"query": "Check BGP on pe1", "inventory": "n.json"});
    let agent = network::agent();
    let mut asked = Vec::new();
    let mut world = World::new(|call: &ToolCall| {
        asked.push((call.server.clone(), call.tool.clone()));
        Brought::Error("unavailable".to_owned())
    });
    graph::testing::TestSession::start(agent, input, Settings::default())
        .unwrap()
        .drive(&mut world);
    drop(world);
    assert_eq!(asked, [(Some("network-inventory".to_owned()), CATALOGUE.to_owned())]);
}

#[test]
fn a_limit_ends_in_a_report() {
    for visits in [3, 8, 20] {
        let budget = Budget { visits: Some(visits), ..Budget::UNLIMITED };
        let settings = Settings { budget, ..Settings::default() };
        let result = completed(run("Check BGP on pe1", settings, &mut World::new(well)));
        assert_eq!(
            result["limit_reached"],
            if visits < 20 { json!("visits") } else { Value::Null }
        );
        assert!(!texts(&result["summary"]).is_empty());
    }
}

#[test]
fn a_limit_before_the_device_is_known_names_the_asked_one() {
    let cut_off = |query: &str, visits: u64| {
        let budget = Budget { visits: Some(visits), ..Budget::UNLIMITED };
        let settings = Settings { budget, ..Settings::default() };
        completed(run(query, settings, &mut World::new(well)))
    };
    for visits in [1, 2] {
        let result = cut_off("Check BGP on pe1", visits);
        assert_eq!(result["limit_reached"], "visits");
        assert_eq!(result["verdict"], "unknown");
        let summary = texts(&result["summary"]);
        assert_eq!(summary[0], "pe1: nothing could be checked.");
        let limitations = result["tool_limitations_report"].as_str().unwrap();
        assert!(limitations.contains("whether the device exists was not checked"), "{limitations}");
    }
    let result = cut_off("Check BGP", 2);
    assert_eq!(texts(&result["summary"])[0], "Nothing could be checked: no device was looked up.");
}

#[test]
fn invalid_input_is_refused_by_field() {
    let agent = network::agent();
    let refused = |input: Value, options: Value| {
        let settings = Settings { options, ..Settings::default() };
        agent.start(&input, &settings).err().unwrap().to_string()
    };
    let query = json!({"query": "q"});
    let said = [
        refused(json!([]), Value::Null),
        refused(json!({}), Value::Null),
        refused(json!({"query": "  "}), Value::Null),
        refused(json!({"query": "x".repeat(2_001)}), Value::Null),
        refused(json!({"query": "q", "inventory": 7}), Value::Null),
        refused(json!({"query": "q", "device": "pe1"}), Value::Null),
        refused(query.clone(), json!({"retries": 1})),
        refused(
            query,
            json!({"plans": {"a": {"intent": "b", "description": "d", "steps": ["s"]}}}),
        ),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn plans_of_the_settings_take_precedence() {
    let plan = json!({"intent": "check_bgp_neighbors", "description": "Short.", "steps": ["Check the BGP sessions."]});
    let options = json!({"plans": {"check_bgp_neighbors": plan}});
    let settings = Settings { options, ..Settings::default() };
    let result = completed(run("Check BGP on pe1", settings, &mut World::new(well)));
    assert_eq!(result["objective"], "check bgp neighbors on pe1: Short.");
    assert_eq!(result["execution_results"].as_array().unwrap().len(), 1);
}
