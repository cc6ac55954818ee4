use graph::agent::{Agent, Settings};
use graph::definition::{Context, Finish, Graph, InputError, Node, Route};
use graph::effect::{Chat, Effect, Reply, ToolCall};
use graph::outcome::Outcome;
use serde_json::{Value, json};

static NODES: [Node<String>; 1] = [Node { name: "look_up", to: &[], ask, fold }];
static GREETER: Graph<String> = Graph::new("greeter", "Greets.", &NODES, init, policy);

/// The agent of the examples: looks up a name and greets it.
pub fn greeter() -> Agent {
    Agent::of(&GREETER)
}

fn init(input: &Value, _: &Settings) -> Result<String, InputError> {
    InputError::read(input)
}

fn ask(user: &String, _: &Context<'_>) -> Effect {
    Effect::Tools(vec![ToolCall::new("people", "name_of", json!({ "user": user }))])
}

fn fold(_: &mut String, outcome: Outcome) -> Route {
    let name = outcome.results()[0].ok().cloned();
    Route::End(Finish::Completed(json!({ "greeted": name })))
}

fn policy(_: &String, _: &Chat) -> Reply {
    Reply::says("")
}
