//! `halt` and `unhalt`.

use control::halt::HaltRequest;
use journal::halt::{Change, Halt, Scope};
use serde_json::{Value, json};

use super::cloud::Clients;
use crate::args::Target;
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::resolve::Context;

/// Halts or unhalts agents of the local stack, or of an account.
///
/// # Errors
/// When the stack or the account's poller cannot be reached, or refuses.
pub async fn change(
    context: &Context,
    change: Change,
    request: &HaltRequest,
) -> Result<Exit, Failure> {
    let said = match context.target {
        Target::Local => {
            let path = format!("/api/{}", change.as_str());
            Endpoint::new(context)?.post_to(&path, &json!(request)).await?
        }
        Target::Aws => Clients::new(context).await.change_halts(change, request).await?,
    };
    if context.json {
        output::json(&said)?;
        return Ok(Exit::Succeeded);
    }
    let of = match &request.scope {
        Scope::All => "all agents".to_owned(),
        Scope::Agent(name) => format!("agent {name}"),
    };
    match change {
        Change::Halt => {
            output::say(&format!("halted {of}: effects under way end, and nothing new begins"));
            output::hint(&format!("end it with: daybook unhalt {}", option(&request.scope)));
        }
        Change::Unhalt => {
            output::say(&format!("unhalted {of}; woke {} sessions", said["woken"]));
        }
    }
    for halt in in_force(&said["halts"]) {
        output::say(&format!("in force: {}", describe(&halt)));
    }
    Ok(Exit::Succeeded)
}

fn option(scope: &Scope) -> String {
    match scope {
        Scope::All => "--all".to_owned(),
        Scope::Agent(name) => format!("--agent {name}"),
    }
}

/// The halts in a stack's reply.
pub(super) fn in_force(halts: &Value) -> Vec<Halt> {
    serde_json::from_value(halts.clone()).unwrap_or_default()
}

/// A halt in words.
pub(super) fn describe(halt: &Halt) -> String {
    format!("{} halted by {} since {}: {}", halt.scope, halt.by, halt.at, halt.reason)
}
