//! An agent that does all that an agent can do: it looks something up, asks a person, sleeps, makes
//! a call that a person must approve and one that may be made only once.
//!
//! It ships with the simulator, not with the product.

use std::time::Duration;

use agent::tool::BUILT_IN_SERVER;
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

use crate::person::Person;
use crate::scenario::Scenario;
use crate::tools::ToolServer;

/// Its MCP server.
pub const TILL: &str = "till";

/// Longer than the workflow is parked for at first.
const NAP: Duration = Duration::from_secs(35);

/// How long its question stays open.
pub const QUESTION_OPEN: Duration = Duration::from_secs(2 * 3_600);

const LOOK: &str = "look";
const ASK: &str = "ask";
const NAP_NODE: &str = "nap";
const PAY: &str = "pay";
const POST: &str = "post";

/// The clerk.
pub static GRAPH: Graph<State> = Graph {
    name: "clerk",
    version: "1",
    summary: "Pays a bill when somebody agrees.",
    start: LOOK,
    nodes: &[
        Node { name: LOOK, to: &[ASK], ask: ask_balances, fold: fold_balances },
        Node { name: ASK, to: &[NAP_NODE], ask: ask_person, fold: fold_answer },
        Node { name: NAP_NODE, to: &[PAY], ask: nap, fold: |_, _| Route::To(PAY) },
        Node { name: PAY, to: &[POST], ask: ask_payment, fold: fold_payment },
        Node { name: POST, to: &[], ask: ask_posting, fold: fold_posting },
    ],
    init,
    budget: Budget::UNLIMITED,
    scope: Scope::Session,
    on_limit,
    policy,
    attempts: Attempts::DEFAULT,
    at_most_once: &["till.post"],
    critical: &["till.pay"],
    servers: &[TILL],
    tool_timeout_s: 30,
};

/// What the clerk knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    balances: Vec<Value>,
    agreed: bool,
    paid: bool,
}

/// A clerk who is asked to pay, with a till, and with somebody who agrees.
pub fn scenario() -> Scenario {
    Scenario {
        servers: vec![ToolServer::new(TILL, |_| Till)],
        people: vec![Person::CAREFUL],
        ..Scenario::new(Agent::of(&GRAPH), json!({}))
    }
}

fn init(_: &Value, _: &Settings) -> Result<State, InputError> {
    Ok(State::default())
}

/// Two at once, and one built in.
fn ask_balances(_: &State, _: &Context<'_>) -> Effect {
    Effect::Tools(vec![
        ToolCall::new(TILL, "balance", json!({ "account": "ours" })),
        ToolCall::new(TILL, "balance", json!({ "account": "theirs" })),
        ToolCall::new(BUILT_IN_SERVER, agents::checkup::CONFIGURED_SERVERS, json!({})),
    ])
}

fn fold_balances(state: &mut State, outcome: Outcome) -> Route {
    let results = outcome.results();
    state.balances = results.iter().filter_map(|result| result.ok().cloned()).collect();
    Route::To(ASK)
}

fn ask_person(state: &State, context: &Context<'_>) -> Effect {
    let question = Question::open(format!("{:?}: pay the bill?", state.balances));
    Effect::Ask(Question { expires_at: Some(context.now.after(QUESTION_OPEN)), ..question })
}

fn fold_answer(state: &mut State, outcome: Outcome) -> Route {
    state.agreed = outcome.answer().text.as_deref() == Some("yes");
    Route::To(NAP_NODE)
}

fn nap(_: &State, context: &Context<'_>) -> Effect {
    Effect::Sleep(context.now.after(NAP))
}

fn ask_payment(state: &State, _: &Context<'_>) -> Effect {
    let payment = ToolCall::new(TILL, "pay", json!({ "to": "theirs", "amount": 40 }));
    Effect::Tools(state.agreed.then_some(payment).into_iter().collect())
}

/// Whoever settles a payment that was in doubt may say so in words of their own.
fn fold_payment(state: &mut State, outcome: Outcome) -> Route {
    state.paid = outcome.results().iter().any(|result| result.ok().is_some());
    Route::To(POST)
}

fn ask_posting(state: &State, _: &Context<'_>) -> Effect {
    Effect::Tools(vec![ToolCall::new(TILL, "post", json!({ "paid": state.paid }))])
}

fn fold_posting(state: &mut State, outcome: Outcome) -> Route {
    let posted = outcome.results().iter().all(|result| result.ok().is_some());
    let State { balances, agreed, paid } = state;
    Route::End(Finish::Completed(
        json!({ "balances": balances, "agreed": agreed, "paid": paid, "posted": posted }),
    ))
}

fn on_limit(_: &mut State, crossed: Crossed) -> Route {
    let why = format!("the limit of {} was reached", crossed.allowed);
    Route::End(Finish::failed("ClerkError", crossed.limit.as_str(), &why, "unknown"))
}

/// There is nothing to talk about.
fn policy(_: &State, _: &Chat) -> Reply {
    Reply::says("")
}

/// The clerk's server. What it did is in the simulator's log of calls.
#[derive(Clone, Copy, Debug)]
pub struct Till;

impl ServerHandler for Till {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let any = json!({ "type": "object" }).as_object().cloned().unwrap_or_default();
        let tool = |name| Tool::new(name, "Does what it is called.", any.clone());
        Ok(ListToolsResult::with_all_items(["balance", "pay", "post"].map(tool).to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = json!(request.arguments);
        let done = json!({ "tool": request.name, "arguments": arguments });
        Ok(CallToolResult::structured(done).into())
    }
}
