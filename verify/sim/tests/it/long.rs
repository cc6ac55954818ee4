//! Compares the requests of sessions of hours and days with the cost model.

use std::time::Duration;

use asl::history::EventKind;
use graph::agent::{Agent, Settings};
use graph::budget::{Budget, Crossed};
use graph::definition::{Attempts, Context, Finish, Graph, InputError, Node, Route, Scope};
use graph::effect::{Chat, Effect, Reply, ToolCall};
use graph::outcome::Outcome;
use graph::question::Question;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sim::faults::Faults;
use sim::person::Person;
use sim::scenario::Scenario;
use sim::tools::ToolServer;
use sim::{Report, run_scenario};
use workflow::cost::{Counters, Plan, Polling, planned};

use crate::{paused, trace};

/// Duration of one unit of work.
const PIECE: Duration = Duration::from_secs(300);

/// As many as fit into the eight hours that a host lives.
const PIECES: u32 = 95;

const THREE_DAYS: Duration = Duration::from_secs(3 * 86_400);

/// Works for a long time, then asks if requested.
static GRAPH: Graph<State> = Graph {
    name: "worker",
    version: "1",
    summary: "Works for a long time.",
    start: "work",
    nodes: &[
        Node { name: "work", to: &["work", "ask"], ask: ask_work, fold: fold_work },
        Node { name: "ask", to: &[], ask: ask_person, fold: |_, _| end() },
    ],
    init,
    budget: Budget::UNLIMITED,
    scope: Scope::Session,
    on_limit: |_: &mut State, _: Crossed| end(),
    on_limit_to: &[],
    policy,
    attempts: Attempts::DEFAULT,
    at_most_once: &[],
    critical: &[],
    servers: &["bench"],
    tool_timeout_s: 600,
};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    left: u32,
    asks: bool,
}

fn init(input: &Value, _: &Settings) -> Result<State, InputError> {
    let left = input["pieces"].as_u64().and_then(|pieces| u32::try_from(pieces).ok());
    Ok(State { left: left.unwrap_or(0), asks: input["asks"] == json!(true) })
}

fn ask_work(state: &State, _: &Context<'_>) -> Effect {
    Effect::Tools(vec![ToolCall::new("bench", "work", json!({ "left": state.left }))])
}

fn fold_work(state: &mut State, _: Outcome) -> Route {
    state.left = state.left.saturating_sub(1);
    match (state.left, state.asks) {
        (0, true) => Route::To("ask"),
        (0, false) => end(),
        _ => Route::To("work"),
    }
}

fn ask_person(_: &State, context: &Context<'_>) -> Effect {
    let expires_at = Some(context.now.after(2 * THREE_DAYS));
    Effect::Ask(Question { expires_at, ..Question::open("is it good?") })
}

fn end() -> Route {
    Route::End(Finish::Completed(Value::Null))
}

fn policy(_: &State, _: &Chat) -> Reply {
    Reply::says("")
}

struct Bench;

impl ServerHandler for Bench {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let any = json!({ "type": "object" }).as_object().cloned().unwrap_or_default();
        Ok(ListToolsResult::with_all_items(vec![Tool::new("work", "Works.", any)]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tokio::time::sleep(PIECE).await;
        Ok(CallToolResult::structured(json!({ "piece": "x".repeat(400) })).into())
    }
}

fn run(pieces: u32, asks: bool) -> Report {
    let input = json!({ "pieces": pieces, "asks": asks });
    let scenario = Scenario {
        servers: vec![ToolServer::new("bench", |_| Bench)],
        people: vec![Person::taking(THREE_DAYS, THREE_DAYS)],
        ..Scenario::new(Agent::of(&GRAPH), input)
    };
    let report = paused(run_scenario(&scenario, 1, &Faults::NONE));
    assert_eq!(report.broken, Vec::<String>::new(), "{}", trace(&report));
    assert_eq!(report.verdict.map(|verdict| verdict.as_str()), Some("SESSION_SUCCEEDED"));
    report
}

fn plan(report: &Report, questions: u32) -> Plan {
    let waiting = if questions == 0 { Duration::ZERO } else { THREE_DAYS };
    Plan {
        effects: PIECES,
        outcome_bytes: 900,
        running: report.took.saturating_sub(waiting),
        busy: Duration::ZERO,
        questions,
        waiting,
        polling: Polling::Parked,
    }
}

/// The requests of a run, as far as the simulator sees them.
fn counted(report: &Report) -> Counters {
    let entered = |wanted: &dyn Fn(&str) -> bool| {
        let history = report.executions.iter().flat_map(|execution| &execution.history);
        let entered = history.filter(
            |event| matches!(&event.kind, EventKind::StateEntered { name, .. } if wanted(name)),
        );
        entered.count() as u64
    };
    let table = |item: &journal::item::Item| item.size_bytes().div_ceil(1_024) as u64;
    let indexes = |item: &journal::item::Item| {
        // A heartbeat removes the entry in the index of open leases and adds another.
        u64::from(item.text_opt("Day").is_some())
            + 2 * u64::from(item.text_opt("OpenLease").is_some())
    };
    Counters {
        polls: entered(&|name| name == "CheckStatus"),
        transitions: entered(&|_| true),
        history_events: report.executions.iter().map(|end| end.history.len() as u64).sum(),
        write_units: report.log.iter().map(|write| table(&write.item) + indexes(&write.item)).sum(),
        ..Counters::default()
    }
}

/// Fails if the plan differs by more than a tenth, and by more than a few.
#[track_caller]
fn assert_near(planned: u64, counted: u64, what: &str) {
    let off = planned.abs_diff(counted);
    assert!(off <= 5.max(counted / 10), "{planned} {what} planned, {counted} counted");
}

fn assert_planned(planned: &Counters, counted: &Counters) {
    assert_near(planned.polls, counted.polls, "polls");
    assert_near(planned.transitions, counted.transitions, "transitions");
    assert_near(planned.history_events, counted.history_events, "history events");
    assert_near(planned.write_units, counted.write_units, "write units");
}

#[test]
fn a_session_of_eight_hours_costs_what_the_model_says() {
    let report = run(PIECES, false);
    assert!(report.took > Duration::from_secs(7 * 3_600 + 50 * 60), "{:?}", report.took);
    let counted = counted(&report);
    println!("{counted:?}");
    assert!(counted.polls < 65, "{counted:?}");
    assert!(counted.transitions < 250, "{counted:?}");
    assert!(counted.history_events < 1_000, "{counted:?}");
    assert_planned(&planned(&plan(&report, 0)), &counted);
}

/// Its host lives for eight hours.
#[test]
fn a_session_of_a_day_is_handed_over_and_loses_nothing() {
    const PIECES_OF_A_DAY: u32 = 288;
    let report = run(PIECES_OF_A_DAY, false);
    assert!(report.took > Duration::from_secs(24 * 3_600), "{:?}", report.took);
    let counted = counted(&report);
    println!("{counted:?}");
    let history = report.executions.iter().flat_map(|execution| &execution.history);
    let invoked = history.filter(
        |event| matches!(&event.kind, EventKind::StateEntered { name, .. } if name == "InvokeAgent"),
    );
    assert_eq!(invoked.count(), 4, "one, and three after hand-overs");
    let lost = report.items.iter().filter(|item| item.text_opt("Status") == Some("AGENT_LOST"));
    assert_eq!(lost.count(), 0);
    // The call under way is waited for, so none is made twice.
    assert_eq!(report.calls.len(), PIECES_OF_A_DAY as usize);
    assert_planned(&planned(&Plan { effects: PIECES_OF_A_DAY, ..plan(&report, 0) }), &counted);
}

#[test]
fn a_wait_of_three_days_costs_what_the_model_says() {
    let report = run(2, true);
    assert!(report.took > THREE_DAYS, "{:?}", report.took);
    let counted = counted(&report);
    println!("{counted:?}");
    assert!(counted.polls < 60, "{counted:?}");
    assert_planned(&planned(&Plan { effects: 2, ..plan(&report, 1) }), &counted);
}
