//! `open`: the page of a session in a browser.

use std::io::IsTerminal as _;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::args::Target;
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::Reader;
use crate::resolve::Context;

/// Programs that open an address in the user's browser; the first that is installed counts.
const OPENERS: &[&str] = &["xdg-open", "open"];

/// Prints the address of a session's page and, in a terminal, opens it.
///
/// # Errors
/// When there is no such session, or no stack serves its page.
pub async fn open(context: &Context, session: &str) -> Result<Exit, Failure> {
    if context.target == Target::Aws {
        let problem = "an account serves no page";
        return Err(Failure::usage(problem).hint("serve it here with: daybook ui --target aws"));
    }
    let endpoint = Endpoint::new(context)?;
    if endpoint.health().await?.is_none() {
        return Err(endpoint.nothing_listens().hint("start the stack with: daybook dev"));
    }
    let reader = Reader::open(context).await?;
    let id = reader.load(session).await?.id;
    let page = endpoint.page_of(&id);
    if context.json {
        output::json(&json!({ "session_id": id, "url": page }))?;
        return Ok(Exit::Succeeded);
    }
    output::line(&page)?;
    if std::io::stdout().is_terminal() && !OPENERS.iter().any(|opener| started(opener, &page)) {
        output::hint("no program opens a browser here: open the address above");
    }
    Ok(Exit::Succeeded)
}

/// Starts a program that outlives this one.
fn started(opener: &str, page: &str) -> bool {
    let mut command = Command::new(opener);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
