//! `doctor`: diagnoses problems with running sessions and suggests fixes. It changes nothing.

use std::path::Path;

use agent::model::settings::Unusable;
use serde_json::{Value, json};
use stack::stack::JOURNAL_FILE;
use stack::store::Database;

use super::servers;
use crate::args::Target;
use crate::config::{ServersEnvironment, StackEnvironment};
use crate::endpoint::{Clock, ClockStep, Endpoint, Health};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader;
use crate::render::checks::{self, Check, Found};
use crate::resolve::Context;

#[cfg(feature = "live")]
mod account;

/// Runs all checks, each after those that it depends on.
///
/// # Errors
/// When stdout is closed, or this build has no AWS support.
pub async fn doctor(
    context: &Context,
    environment: Result<StackEnvironment, Unusable>,
) -> Result<Exit, Failure> {
    let checks = match context.target {
        Target::Local => here(context, environment).await,
        Target::Aws => there(context).await?,
    };
    if context.json {
        for (name, found) in &checks {
            let (state, detail, fix) = match found {
                Found::Good(seen) => ("ok", seen, None),
                Found::Bad { wrong, fix } => ("failed", wrong, Some(fix)),
                Found::Unknown { why, fix } => ("unknown", why, Some(fix)),
            };
            output::json(&json!({
                "type": "check", "name": name, "state": state, "detail": detail, "fix": fix,
            }))?;
        }
    } else {
        output::lines(checks::checks(context.look, &checks))?;
    }
    let any = |wanted: fn(&Found) -> bool| checks.iter().any(|(_, found)| wanted(found));
    Ok(if any(|found| matches!(found, Found::Bad { .. })) {
        Exit::Failed
    } else if any(|found| matches!(found, Found::Unknown { .. })) {
        Exit::Unknown
    } else {
        Exit::Succeeded
    })
}

#[cfg(feature = "live")]
async fn there(context: &Context) -> Result<Vec<Check>, Failure> {
    Ok(account::checks(context).await)
}

#[cfg(not(feature = "live"))]
async fn there(_: &Context) -> Result<Vec<Check>, Failure> {
    Err(Failure::not_live("AWS accounts"))
}

async fn here(context: &Context, environment: Result<StackEnvironment, Unusable>) -> Vec<Check> {
    let mut checks = Vec::new();
    match environment {
        Ok(environment) => {
            let model = json!(environment.defaults.model).as_str().unwrap_or_default().to_owned();
            checks.push(("environment", Found::good("all variables are valid")));
            checks.push(("model", Found::good(model)));
            checks.push(("tool servers", tool_servers(context, &environment.servers).await));
        }
        Err(error) => {
            let fix = "set it as described in LOCAL_DEVELOPMENT.md, or unset it";
            checks.push(("environment", Found::bad(error.to_string(), fix)));
        }
    }
    checks.push(("stack", stack(context).await));
    checks.push(("log of sessions", signing(context).await));
    checks.push(("journal", file(context).await));
    checks.push(("clock", clock(context).await));
    checks
}

async fn tool_servers(context: &Context, environment: &ServersEnvironment) -> Found {
    match (servers::configured(context, environment).await, &environment.file) {
        (Err(failure), _) => of_failure(&failure),
        (Ok(_), None) => Found::good("bundled"),
        (Ok(_), Some(file)) => Found::good(format!("bundled, and those in {}", file.display())),
    }
}

async fn stack(context: &Context) -> Found {
    let endpoint = match Endpoint::new(context) {
        Ok(endpoint) => endpoint,
        Err(failure) => return of_failure(&failure),
    };
    match endpoint.health().await {
        Ok(Some(health)) => match health.problems.iter().next() {
            None => Found::good(format!("running at {}", endpoint.address)),
            Some((about, why)) => Found::bad(
                format!("running at {}, but failing: {about}: {}", endpoint.address, plain(why)),
                "see docs/recovery.md",
            ),
        },
        Ok(None) if context.is_endpoint_named => of_failure(&endpoint.nothing_listens()),
        Ok(None) => Found::good(format!(
            "not running at {}; start it with `daybook dev`, or for one run with `daybook trigger --wait --with-stack`",
            endpoint.address
        )),
        Err(failure) => of_failure(&failure),
    }
}

/// A text as it is, and anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether a running stack noticed a step of the machine's clock.
async fn clock(context: &Context) -> Found {
    let health = match Endpoint::new(context) {
        Ok(endpoint) => endpoint.health().await,
        Err(failure) => return of_failure(&failure),
    };
    let clock = match health {
        Ok(Some(Health { clock, .. })) => clock,
        Ok(None) => return Found::good("not watched now, because no stack runs"),
        Err(failure) => return of_failure(&failure),
    };
    match clock {
        None => Found::unknown(
            "the stack does not say whether the clock was set",
            "run the stack and this program in the same version",
        ),
        Some(Clock { newest: None, .. }) => Found::good("not set since the stack began"),
        Some(Clock { steps, newest: Some(ClockStep { at, by_ms }) }) => {
            let seconds = by_ms.unsigned_abs() as f64 / 1_000.0;
            let way = if by_ms < 0 { "back" } else { "forward" };
            Found::bad(
                format!(
                    "set {steps} times since the stack began; last {way} by {seconds:.1} s, to {at}"
                ),
                "have the machine's time synchronized; a machine that slept shows this, too, and needs nothing. Budgets and waits do not count such a step",
            )
        }
    }
}

/// Whether a running stack signs the log of sessions.
async fn signing(context: &Context) -> Found {
    let health = match Endpoint::new(context) {
        Ok(endpoint) => endpoint.health().await,
        Err(failure) => return of_failure(&failure),
    };
    match health {
        Ok(Some(health)) => match health.signing {
            Some(Ok(())) => Found::good("the stack signs it"),
            Some(Err(problem)) => Found::bad(
                format!("not signed: {problem}"),
                "see docs/verification.md; `daybook verify --all` says what the journal holds",
            ),
            None => Found::unknown(
                "the stack does not say whether it signs it",
                "run the stack and this program in the same version",
            ),
        },
        Ok(None) => Found::good("not signed now, because no stack runs"),
        Err(failure) => of_failure(&failure),
    }
}

async fn file(context: &Context) -> Found {
    let folder = match reader::folder(context).await {
        Ok(folder) => folder,
        Err(failure) => return of_failure(&failure),
    };
    let file = folder.join(JOURNAL_FILE);
    if !file.exists() {
        if is_used(context, &folder).await {
            return Found::bad(
                format!("{} is gone, and the running stack writes nothing", file.display()),
                "put the same file back, or restore it from a copy; see docs/recovery.md",
            );
        }
        return Found::good(format!("none yet; the first stack creates {}", file.display()));
    }
    match Database::open_read_only(&file) {
        Ok(_) => Found::good(file.display().to_string()),
        Err(error) => {
            Found::bad(format!("{}: {error}", file.display()), reader::unusable_hint(&error))
        }
    }
}

/// Whether a running stack has this folder.
async fn is_used(context: &Context, folder: &Path) -> bool {
    let Ok(endpoint) = Endpoint::new(context) else { return false };
    let used = endpoint.health().await.ok().flatten().and_then(|health| health.data);
    used.is_some_and(|used| folder.canonicalize().is_ok_and(|folder| folder == used))
}

fn of_failure(failure: &Failure) -> Found {
    let fix = failure.next().unwrap_or("fix the problem that it names");
    Found::bad(failure.to_string(), fix)
}
