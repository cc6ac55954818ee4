//! The test kit: accepts correct agents and finds broken ones.

use std::sync::atomic::{AtomicU32, Ordering};

use graph::agent::{Agent, Settings};
use graph::budget::Limit;
use graph::definition::{Context, Finish, Graph, InputError, Node, Route};
use graph::effect::{Chat, Effect, INPUT_STEP, Message, Reply, ToolCall};
use graph::outcome::{Brought, Failure, Outcome};
use graph::question::Decision;
use graph::testing::script::Script;
use serde_json::{Value, json};

/// Chats as often as its input says, then makes one critical call.
static CHATTY: Graph<u32> = Graph {
    critical: &["pay"],
    ..Graph::new("chatty", "Chats, then pays.", &NODES, init, |_, _| Reply::says("hm"))
};
static NODES: [Node<u32>; 2] = [
    Node { name: "chat", to: &["chat", "pay"], ask: chat, fold: chatted },
    Node { name: "pay", to: &[], ask: pay, fold: paid },
];

fn init(input: &Value, _: &Settings) -> Result<u32, InputError> {
    InputError::read(input)
}

fn chat(left: &u32, _: &Context<'_>) -> Effect {
    let messages = vec![Message::user(INPUT_STEP, left.to_string())];
    Effect::Chat(Chat::new("Count.", messages, vec![]))
}

fn chatted(left: &mut u32, _: Outcome) -> Route {
    *left = left.saturating_sub(1);
    Route::To(if *left == 0 { "pay" } else { "chat" })
}

fn pay(_: &u32, _: &Context<'_>) -> Effect {
    Effect::Tools(vec![
        ToolCall::new("bank", "pay", json!({})),
        ToolCall::new("bank", "see", json!({})),
    ])
}

fn paid(_: &mut u32, outcome: Outcome) -> Route {
    let results = outcome.results();
    let brought: Vec<_> =
        results.iter().map(|r| r.ok().cloned().or(r.error().map(Value::from))).collect();
    Route::End(Finish::Completed(json!(brought)))
}

fn chatty() -> Agent {
    Agent::of(&CHATTY)
}

fn paying() -> Script {
    let busy = Brought::Failure(Failure::not_sent("busy", "try again"));
    let script =
        Script::new().model(Reply::says("a")).model(Reply::says("b")).person(Decision::Approve);
    script.brings("bank.pay", busy).tool("pay", json!(7)).tool("see", json!("seen"))
}

#[test]
fn a_resumed_script_continues_where_the_prefix_ends() {
    let steps = paying().every_prefix(&chatty(), &json!(2));
    assert!(steps.len() > 8, "{steps:?}");
    assert_eq!(paying().play(&chatty(), &json!(2)), Finish::Completed(json!([7, "seen"])));
}

#[test]
fn every_budget_tries_each_smaller_allowance() {
    let cuts = paying().every_budget(&chatty(), &json!(2));
    for limit in [Limit::Visits, Limit::Calls, Limit::Tokens, Limit::MicroUsd] {
        assert!(
            cuts.iter().any(|cut| cut.limit == limit && cut.allowed == 0),
            "{limit:?}: {cuts:?}"
        );
    }
    let Finish::Failed { error, .. } = &cuts[0].finish else { panic!("{cuts:?}") };
    assert_eq!(error.to_string(), "BudgetError: Reached - 1 of 0 visits used");
}

#[test]
#[should_panic(expected = "no scripted outcome for see {}")]
fn a_call_without_scripted_outcome_fails_the_test() {
    Script::new().person(Decision::Reject).play(&chatty(), &json!(1));
}

#[test]
#[should_panic(expected = "unused tool outcomes: [(\"refund\"")]
fn an_unused_outcome_fails_the_test() {
    let script = Script::new().person(Decision::Reject).tool("see", json!(1));
    script.tool("refund", json!(2)).play(&chatty(), &json!(1));
}

#[test]
#[should_panic(expected = "no scripted answer to")]
fn a_question_without_scripted_answer_fails_the_test() {
    Script::new().tool("see", json!(1)).play(&chatty(), &json!(1));
}

#[test]
#[should_panic(expected = "the agent does not end by its own rule")]
fn an_agent_that_ignores_its_limit_fails_the_test() {
    static STUBBORN: Graph<u32> = Graph { on_limit: |_, _| Route::To("chat"), ..CHATTY };
    let script = Script::new().person(Decision::Reject).tool("see", json!(1));
    script.every_budget(&Agent::of(&STUBBORN), &json!(40));
}

#[test]
#[should_panic(
    expected = "node `chat` routes to `pays`, which is not a node (did you mean `pay`?)"
)]
fn a_misspelled_route_fails_the_test() {
    static NODES: [Node<u32>; 2] = [
        Node { name: "chat", to: &["chat", "pays"], ask: chat, fold: chatted },
        Node { name: "pay", to: &[], ask: pay, fold: paid },
    ];
    static MISSPELLED: Graph<u32> = Graph { nodes: &NODES, ..CHATTY };
    Script::new().play(&Agent::of(&MISSPELLED), &json!(1));
}

#[test]
#[should_panic(expected = "resumed after step")]
fn an_agent_with_hidden_state_fails_the_test() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    static IMPURE: Graph<u32> =
        Graph::new("impure", "Counts its runs.", &COUNTING, init, |_, _| Reply::says(""));
    static COUNTING: [Node<u32>; 1] = [Node { name: "pay", to: &[], ask: pay, fold: count }];
    fn count(_: &mut u32, _: Outcome) -> Route {
        Route::End(Finish::Completed(json!(CALLS.fetch_add(1, Ordering::Relaxed))))
    }
    let script = Script::new().tool("see", json!(1)).tool("pay", json!(2));
    script.every_prefix(&Agent::of(&IMPURE), &json!(1));
}
