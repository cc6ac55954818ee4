//! `trigger`: puts the event and follows the session.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use graph::check::nearest;
use journal::id::SessionId;
use serde_json::{Value, json};

use super::cloud::{Clients, Execution};
use super::watch::{self, Watch};
use super::{grant, own_stack};
use crate::args::Target;
use crate::endpoint::Endpoint;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::{self, Reader};
use crate::resolve::{Context, Order};

/// Intervals between polls of an execution in AWS: the first, and the longest.
const CLOUD_POLL_FIRST: Duration = Duration::from_secs(1);
const CLOUD_POLL: Duration = Duration::from_secs(5);

/// How long the end of a session may take to be shown after a drain.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);

/// Consecutive failed polls, or polls without an execution, before the command gives up.
const CLOUD_MISSES_MAX: u32 = 6;

/// Starts a session and, with `--wait`, follows it until it ends.
///
/// # Errors
/// When the event is not accepted, or the session's result is unknown.
pub async fn trigger(context: &Context, order: Order) -> Result<Exit, Failure> {
    match context.target {
        Target::Local => here(context, order).await,
        Target::Aws => in_cloud(context, order).await,
    }
}

async fn here(context: &Context, order: Order) -> Result<Exit, Failure> {
    let endpoint = Endpoint::new(context)?;
    if let Some(running) = endpoint.health().await? {
        known_agent(&order, running.agents.as_deref())?;
        if running.load.is_some_and(|load| load.draining) {
            let problem =
                format!("the stack at {} is draining: it admits no new sessions", endpoint.address);
            return Err(Failure::unknown(problem).hint("trigger again when it has started again"));
        }
        if let Some(why) = running.problems.get("disk_budget") {
            let why = why.as_str().unwrap_or_default();
            let problem = format!("the stack at {} admits no new session: {why}", endpoint.address);
            return Err(Failure::unknown(problem)
                .hint("daybook prune --before 30d, or start the stack with a larger --disk-max"));
        }
        let folder = running.data.or_else(|| context.data.clone());
        let folder = folder.unwrap_or_else(|| reader::DEFAULT_FOLDER.into());
        return triggered(context, &endpoint, &order, &folder).await;
    }
    let Some(environment) = &order.with_stack else {
        let hint = "start the local stack with: daybook dev; \
                    or add --wait --with-stack to start one for this run";
        return Err(endpoint.nothing_listens().hint(hint));
    };
    let own: Vec<String> = context.agents.iter().map(|agent| agent.name().to_owned()).collect();
    known_agent(&order, Some(&own))?;
    output::say(&format!("nothing listens at {}: starting a stack for this run", endpoint.address));
    let stack = own_stack::for_a_run(context, environment).await?;
    let following = Box::pin(triggered(context, &endpoint, &order, stack.folder()));
    let outcome = until_drained(following, stack.drained()).await;
    if !matches!(outcome, Ok(Exit::Succeeded | Exit::Failed)) {
        output::hint(
            "the stack of this run stops now; start one that keeps running with: daybook dev",
        );
    }
    stack.stop().await;
    outcome
}

/// Follows the session, unless the stack is drained before the session ends: it waits for a person then, or was stopped.
async fn until_drained(
    following: impl Future<Output = Result<Exit, Failure>>,
    drained: impl Future<Output = usize>,
) -> Result<Exit, Failure> {
    tokio::pin!(following);
    // Following goes on after the drain: the session may have ended within it.
    tokio::select! {
        outcome = &mut following => return outcome,
        _ = drained => {}
    }
    let last = tokio::time::timeout(SHOWN_WITHIN, following).await;
    last.unwrap_or_else(|_| {
        Err(Failure::unknown("the stack of this run was drained before the session ended")
            .hint("the session goes on with the next stack of this folder: daybook dev"))
    })
}

/// Refuses an agent that the stack does not know; an older stack does not say which it knows.
fn known_agent(order: &Order, known: Option<&[String]>) -> Result<(), Failure> {
    let (Some(name), Some(known)) = (order.detail.get("agent").and_then(Value::as_str), known)
    else {
        return Ok(());
    };
    if known.iter().any(|agent| agent == name) {
        return Ok(());
    }
    let nearest = nearest(name, known.iter().map(String::as_str));
    let hint = match nearest {
        Some(nearest) => format!("did you mean `{nearest}`? `daybook agents` lists them"),
        None => format!("the stack has: {}", known.join(", ")),
    };
    Err(Failure::usage(format!("no agent is named `{name}`")).hint(hint))
}

async fn triggered(
    context: &Context,
    endpoint: &Endpoint,
    order: &Order,
    folder: &Path,
) -> Result<Exit, Failure> {
    let clients = Clients::new(context).await;
    grant(folder, &order.files);
    let id = clients.trigger(&order.detail).await?;
    announce(context, &id)?;
    // A stack of this run serves its page for no longer than the run.
    if order.with_stack.is_none() {
        output::say(&format!("page: {}", endpoint.page_of(&id)));
    }
    if !order.wait {
        return Ok(Exit::Succeeded);
    }
    let reader = Reader::open_in(context, folder)?;
    Box::pin(Watch::new(context, endpoint, &clients, &reader, id).until_the_end()).await
}

fn announce(context: &Context, id: &SessionId) -> Result<(), Failure> {
    if context.json {
        output::json(&json!({"session_id": id}))?;
    } else {
        output::line(id.as_str())?;
    }
    Ok(())
}

/// Follows the journal in AWS, or polls the execution if this build cannot read the journal.
async fn in_cloud(context: &Context, order: Order) -> Result<Exit, Failure> {
    let clients = Clients::new(context).await;
    let id = clients.trigger(&order.detail).await?;
    announce(context, &id)?;
    if !order.wait {
        return Ok(Exit::Succeeded);
    }
    if cfg!(feature = "live") && context.cloud.table.is_some() {
        let (endpoint, reader) = (Endpoint::new(context)?, Reader::open(context).await?);
        let watch = Watch::new(context, &endpoint, &clients, &reader, id);
        return Box::pin(watch.until_the_end()).await;
    }
    if !clients.knows_state_machine() {
        let problem = "the event was put, but this build cannot wait for its session";
        return Err(Failure::unknown(problem)
            .hint("set STATE_MACHINE_ARN to wait for its execution, or build with --features live to read its journal"));
    }
    output::say("waiting for the execution; a build with --features live also shows the journal");
    let (status, output, error) = outcome(&clients, &id).await?;
    if context.json {
        output::json(
            &json!({"session_id": id, "execution": status, "output": output, "error": error}),
        )?;
    } else {
        let error = error.map(|error| format!(": {error}")).unwrap_or_default();
        output::line(&crate::render::text::clean(&format!("execution {status}{error}")))?;
        match output.get("answered_by").and_then(Value::as_str) {
            Some("policy") => output::line("  answered by the policy: the model failed")?,
            Some(_) => output::line("  answered in part by the policy: the model failed")?,
            None => {}
        }
    }
    Ok(watch::exit_of_execution(&status, &output))
}

/// Waits until the session's execution has ended; returns its status, output and error.
async fn outcome(
    clients: &Clients,
    id: &SessionId,
) -> Result<(String, Value, Option<String>), Failure> {
    let (mut first, mut others) = (None, BTreeSet::new());
    let (mut misses, mut pause) = (0, CLOUD_POLL_FIRST);
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(CLOUD_POLL);
        let looked = async {
            if first.is_none() {
                first = clients.began(id, &mut others).await?;
            }
            clients.execution(id, first.as_deref()).await
        };
        misses = match looked.await {
            Ok(Execution::Over { status, output, error }) => return Ok((status, output, error)),
            Ok(Execution::Running) => 0,
            Ok(Execution::Absent) if misses + 1 >= CLOUD_MISSES_MAX => {
                return Err(Failure::unknown("the event started no execution").hint(
                    "check the rule and the dead-letter queue: DEPLOYMENT.md, \"Troubleshooting\"",
                ));
            }
            Err(error) if misses + 1 >= CLOUD_MISSES_MAX => {
                return Err(error).context("cannot query Step Functions").map_err(Failure::from);
            }
            Ok(Execution::Absent) | Err(_) => misses + 1,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_drain_of_its_own_stack_ends_a_trigger() {
        let drained = || std::future::ready(0);
        let never = until_drained(std::future::pending(), drained()).await.unwrap_err();
        assert!(never.to_string().contains("drained before the session ended"), "{never}");
        let ended = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(Exit::Failed)
        };
        assert!(matches!(until_drained(ended, drained()).await, Ok(Exit::Failed)));
        let first = until_drained(std::future::ready(Ok(Exit::Succeeded)), std::future::pending());
        assert!(matches!(first.await, Ok(Exit::Succeeded)));
    }
}
