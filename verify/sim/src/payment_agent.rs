//! An agent that uses every effect: it looks something up, asks a person, sleeps, makes a call that
//! a person must approve, and one that is at-most-once.
//!
//! It is part of the simulator, not of the product.

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

pub const PAYMENT_SERVER: &str = "payments";

/// Longer than the workflow's first wait.
const NAP: Duration = Duration::from_secs(35);

pub const QUESTION_OPEN: Duration = Duration::from_secs(2 * 3_600);

const LOOK: &str = "look";
const ASK: &str = "ask";
const NAP_NODE: &str = "nap";
const PAY: &str = "pay";
const POST: &str = "post";

pub static GRAPH: Graph<State> = Graph {
    name: "payment",
    version: "1",
    summary: "Pays a bill if a person agrees.",
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
    on_limit_to: &[],
    policy,
    attempts: Attempts::DEFAULT,
    at_most_once: &["payments.post"],
    critical: &["payments.pay"],
    servers: &[PAYMENT_SERVER],
    tool_timeout_s: 30,
};

/// The agent's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    balances: Vec<Value>,
    agreed: bool,
    paid: bool,
}

/// A request to pay, the payment server, and a person who agrees.
pub fn scenario() -> Scenario {
    Scenario {
        servers: vec![ToolServer::new(PAYMENT_SERVER, |_| PaymentServer)],
        people: vec![Person::CAREFUL],
        ..Scenario::new(Agent::of(&GRAPH), json!({}))
    }
}

fn init(_: &Value, _: &Settings) -> Result<State, InputError> {
    Ok(State::default())
}

/// Two parallel calls, and a built-in one.
fn ask_balances(_: &State, _: &Context<'_>) -> Effect {
    Effect::Tools(vec![
        ToolCall::new(PAYMENT_SERVER, "balance", json!({ "account": "ours" })),
        ToolCall::new(PAYMENT_SERVER, "balance", json!({ "account": "theirs" })),
        ToolCall::new(BUILT_IN_SERVER, graph::built_in::CONFIGURED_SERVERS, json!({})),
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
    let payment = ToolCall::new(PAYMENT_SERVER, "pay", json!({ "to": "theirs", "amount": 40 }));
    Effect::Tools(state.agreed.then_some(payment).into_iter().collect())
}

/// A person who settles a payment in doubt may answer with text.
fn fold_payment(state: &mut State, outcome: Outcome) -> Route {
    state.paid = outcome.results().iter().any(|result| result.ok().is_some());
    Route::To(POST)
}

fn ask_posting(state: &State, _: &Context<'_>) -> Effect {
    Effect::Tools(vec![ToolCall::new(PAYMENT_SERVER, "post", json!({ "paid": state.paid }))])
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

/// The agent makes no chats.
fn policy(_: &State, _: &Chat) -> Reply {
    Reply::says("")
}

/// The payment server. The simulator's log of calls records what it did.
#[derive(Clone, Copy, Debug)]
pub struct PaymentServer;

impl ServerHandler for PaymentServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let any = json!({ "type": "object" }).as_object().cloned().unwrap_or_default();
        let tool = |name| Tool::new(name, "Does what its name says.", any.clone());
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
