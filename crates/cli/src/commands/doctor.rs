//! `doctor`: diagnoses problems with running sessions and suggests fixes. It changes nothing.

use std::path::Path;
use std::time::Duration;

use agent::model::settings::Unusable;
use journal::sqlite::{Pages, check_pages};
use serde_json::{Value, json};
use stack::folder;
use stack::keys::Keys;
use stack::stack::JOURNAL_FILE;
use stack::store::Database;

use super::{check, halts, servers};
use crate::args::Target;
use crate::config::{ServersEnvironment, StackEnvironment};
use crate::endpoint::{
    Clock, ClockStep, Endpoint, FailingTarget, Health, Load, Notices, Settings, Storage,
};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader;
use crate::render::checks::{self, Check, Found};
use crate::resolve::Context;

#[cfg(feature = "live")]
mod account;
mod stopped;

/// How long `doctor` reads the pages of the journal. A disk reads ten gigabytes in less.
const PAGES_TIMEOUT: Duration = Duration::from_secs(60);

/// How often it says that it still reads.
const TICK: Duration = Duration::from_secs(1);

/// What was learned of the stack at the endpoint.
enum Seen {
    Running(Box<Health>),
    NotRunning,
    Unclear(Failure),
}

impl Seen {
    async fn at(endpoint: &Result<Endpoint, Failure>) -> Self {
        match endpoint {
            Ok(endpoint) => match endpoint.health().await {
                Ok(Some(health)) => Self::Running(Box::new(health)),
                Ok(None) => Self::NotRunning,
                Err(failure) => Self::Unclear(failure),
            },
            Err(failure) => Self::Unclear(Failure::unknown(failure.to_string())),
        }
    }

    /// What a check finds in the health of a running stack.
    fn find(&self, running: impl FnOnce(&Health) -> Found) -> Found {
        match self {
            Self::Running(health) => running(health),
            Self::NotRunning => Found::Skipped("not checked: no stack is running".to_owned()),
            Self::Unclear(failure) => of_failure(failure),
        }
    }
}

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
                Found::Skipped(why) => ("skipped", why, None),
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
    let endpoint = Endpoint::new(context);
    let seen = Seen::at(&endpoint).await;
    let servers = environment.as_ref().ok().map(|environment| environment.servers.clone());
    let mut checks = match &seen {
        Seen::Running(health) => of_stack(health.settings.as_ref()),
        _ => of_environment(context, environment).await,
    };
    checks.extend(project(context, servers.as_ref()).await.map(|found| ("daybook.toml", found)));
    checks.push(("stack", stack(context, &endpoint, &seen)));
    checks.extend(journal(context, &seen).await);
    match &seen {
        Seen::NotRunning => checks.extend(stopped::checks(context).await),
        _ => checks.extend([
            ("log of sessions", signing(&seen)),
            ("disk", disk(&seen)),
            ("halts", halted(&seen)),
        ]),
    }
    checks.push(("disk budget", disk_budget(&seen)));
    checks.push(("clock", clock(&seen)));
    checks.push(("load", load(&seen)));
    checks.push(("notices", notices(&seen)));
    checks
}

/// Whether `daybook.toml` can be used, and each agent of it can be started; `None` without the file.
async fn project(context: &Context, environment: Option<&ServersEnvironment>) -> Option<Found> {
    if let Some(problem) = &context.project_problem {
        return Some(Found::bad(
            problem.as_str(),
            "correct the file; `daybook check FILE` checks it",
        ));
    }
    let project = &context.project;
    project.path.as_ref()?;
    Some(match project.agents().await {
        Ok(agents) => {
            let lacking = match environment {
                Some(environment) => check::lacking(context, &agents, environment).await,
                None => Ok(Vec::new()),
            };
            let problem = match lacking {
                Ok(problems) => problems.join("; "),
                Err(failure) => failure.to_string(),
            };
            if !problem.is_empty() {
                return Some(Found::bad(
                    problem,
                    "correct the file; `daybook check FILE` checks it",
                ));
            }
            let agent =
                |it: &graph::agent::Agent| format!("{} version {}", it.name(), it.version());
            let agents: Vec<_> = agents.iter().map(agent).collect();
            let settings = project.settings.len();
            Found::good(format!("agents: {}; {settings} settings", agents.join(", ")))
        }
        Err(error) => {
            let failure = crate::project::failure(error);
            let fix = failure.next().unwrap_or("correct the file").to_owned();
            Found::bad(failure.to_string(), fix)
        }
    })
}

/// The settings of the running stack. Those of this environment would be another stack's.
fn of_stack(settings: Option<&Settings>) -> Vec<Check> {
    let Some(settings) = settings else { return vec![("environment", unsaid("its settings"))] };
    let Settings { model, servers, ttl_days, durability, isolation, time_scale } = settings;
    let told = format!(
        "of the running stack: records are kept {ttl_days} days, durability {durability}, isolation {isolation}, time scale {time_scale}"
    );
    vec![
        ("environment", Found::good(told)),
        ("model", Found::good(model.as_str())),
        ("tool servers", Found::good(servers.join(", "))),
    ]
}

/// The settings that a stack would have which is started here now.
async fn of_environment(
    context: &Context,
    environment: Result<StackEnvironment, Unusable>,
) -> Vec<Check> {
    match environment {
        Ok(environment) => {
            let model = json!(environment.defaults.model).as_str().unwrap_or_default().to_owned();
            let servers = tool_servers(context, &environment.servers).await;
            vec![
                ("environment", Found::good("all variables are valid")),
                ("model", Found::good(model)),
                ("tool servers", servers),
            ]
        }
        Err(error) => {
            let fix = "set it as described in LOCAL_DEVELOPMENT.md, or unset it";
            vec![("environment", Found::bad(error.to_string(), fix))]
        }
    }
}

async fn tool_servers(context: &Context, environment: &ServersEnvironment) -> Found {
    match (servers::configured(context, environment).await, &environment.file) {
        (Err(failure), _) => of_failure(&failure),
        (Ok(_), None) => Found::good("bundled"),
        (Ok(_), Some(file)) => Found::good(format!("bundled, and those in {}", file.display())),
    }
}

fn stack(context: &Context, endpoint: &Result<Endpoint, Failure>, seen: &Seen) -> Found {
    let endpoint = match endpoint {
        Ok(endpoint) => endpoint,
        Err(failure) => return of_failure(failure),
    };
    let address = &endpoint.address;
    match seen {
        Seen::Running(health) => match health.problems.iter().next() {
            None => Found::good(format!("running at {address}")),
            Some(_) => {
                let why: Vec<_> = health
                    .problems
                    .iter()
                    .map(|(about, why)| format!("{about}: {}", plain(why)))
                    .collect();
                let wrong = format!("running at {address}, but failing: {}", why.join("; "));
                Found::bad(wrong, "see docs/recovery.md and docs/keeping.md")
            }
        },
        Seen::NotRunning if context.is_endpoint_named => of_failure(&endpoint.nothing_listens()),
        Seen::NotRunning => Found::good(format!(
            "not running at {address}; start it with `daybook dev`, or for one run with `daybook trigger --wait --with-stack`"
        )),
        Seen::Unclear(failure) => of_failure(failure),
    }
}

/// Whether a running stack holds agents back.
fn halted(seen: &Seen) -> Found {
    let running = |health: &Health| {
        if health.halts.is_null() {
            return unsaid("which agents are halted");
        }
        of_halts(&health.halts)
    };
    seen.find(running)
}

/// What is found of the halts in force, as the API lists them.
fn of_halts(in_force: &Value) -> Found {
    let halts = halts::in_force(in_force);
    if halts.is_empty() {
        return Found::good("no agent is halted");
    }
    let said: Vec<String> = halts.iter().map(halts::describe).collect();
    Found::bad(said.join("; "), "daybook unhalt --agent NAME, or --all, when it is over")
}

/// How many sessions are at work, and how many wait for their turn.
fn load(seen: &Seen) -> Found {
    let running = |health: &Health| match health.load {
        Some(Load { at_work, at_work_max, queued, queue_max, .. })
            if queued >= queue_max && queued > 0 =>
        {
            Found::bad(
                format!(
                    "{at_work} sessions are at work, of at most {at_work_max}, and the queue is full: {queued} wait, and new ones are throttled"
                ),
                "raise --agents-max or --agent-max if the machine and the models allow it: see docs/load.md",
            )
        }
        Some(Load { at_work, at_work_max, queued, .. }) => Found::good(format!(
            "{at_work} sessions at work, of at most {at_work_max}; {queued} wait for their turn"
        )),
        None => unsaid("how many sessions are at work"),
    };
    seen.find(running)
}

/// Whether a running stack delivers its notices.
fn notices(seen: &Seen) -> Found {
    let running = |health: &Health| {
        let Some(Notices { targets, failing, undelivered }) = &health.notices else {
            return Found::good("no target is configured");
        };
        let fix = "look at the target, and at the session's deliveries: see docs/notify.md";
        if let Some(first) = undelivered.first() {
            let (count, target, why) = (undelivered.len(), &first.target, &first.reason);
            let session = &first.session_id;
            return Found::bad(
                format!(
                    "{count} undelivered in the last day; the newest is of session {session} to {target}: {why}"
                ),
                fix,
            );
        }
        match failing.first() {
            Some(FailingTarget { target, notices, reason }) => {
                let wrong = format!("{target}: {reason}; {notices} notices are tried again");
                Found::bad(wrong, fix)
            }
            None => Found::good(targets.join(", ")),
        }
    };
    seen.find(running)
}

/// A text as it is, and anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a check finds if the stack is of a version that does not say it.
fn unsaid(what: &str) -> Found {
    let why = format!("the stack does not say {what}");
    Found::unknown(why, "run the stack and this program in the same version")
}

/// Whether a running stack noticed a step of the machine's clock.
fn clock(seen: &Seen) -> Found {
    let running = |health: &Health| match &health.clock {
        None => unsaid("whether the clock was set"),
        Some(Clock { newest: None, .. }) => Found::good("not set since the stack began"),
        Some(Clock { steps, newest: Some(ClockStep { at, by_ms }) }) => {
            let seconds = by_ms.unsigned_abs() as f64 / 1_000.0;
            let way = if *by_ms < 0 { "back" } else { "forward" };
            Found::bad(
                format!(
                    "set {steps} times since the stack began; last {way} by {seconds:.1} s, to {at}"
                ),
                "have the machine's time synchronized; a machine that slept shows this, too, and needs nothing. Budgets and waits do not count such a step",
            )
        }
    };
    seen.find(running)
}

/// Whether a running stack signs the log of sessions.
fn signing(seen: &Seen) -> Found {
    let running = |health: &Health| match &health.signing {
        Some(Ok(())) => Found::good("the stack signs it"),
        Some(Err(problem)) => Found::bad(
            format!("not signed: {problem}"),
            "see docs/verification.md; `daybook verify --all` says what the journal holds; after a restore, see docs/keeping.md",
        ),
        None => unsaid("whether it signs it"),
    };
    seen.find(running)
}

/// How much of the disk is left. The stack's own threshold decides whether that is a problem.
fn disk(seen: &Seen) -> Found {
    let running = |health: &Health| match (&health.problems.get("disk"), health.storage) {
        (Some(why), _) => {
            Found::bad(plain(why), "make room on the disk of the data folder: see docs/keeping.md")
        }
        (None, Some(Storage { disk_left_bytes: Some(left), journal_bytes, log_bytes, .. })) => {
            let journal = journal_bytes.unwrap_or(0);
            Found::good(format!(
                "{left} bytes left; the journal has {journal}, its write-ahead log {log_bytes}"
            ))
        }
        (None, Some(_)) => Found::good("the system does not say how much is left"),
        (None, None) => unsaid("how much of the disk is left"),
    };
    seen.find(running)
}

/// How much of a running stack's disk budget is used.
fn disk_budget(seen: &Seen) -> Found {
    let running = |health: &Health| match (health.problems.get("disk_budget"), health.storage) {
        (Some(why), _) => Found::bad(
            plain(why),
            "daybook prune --before 30d, or start the stack with a larger --disk-max: see docs/keeping.md",
        ),
        (None, Some(Storage { used_bytes: Some(used), used_bytes_max: Some(most), .. })) => {
            Found::good(format!("{used} bytes used, of at most {most}"))
        }
        (None, Some(_)) => Found::good("none; set one with --disk-max"),
        (None, None) => unsaid("its disk budget"),
    };
    seen.find(running)
}

async fn journal(context: &Context, seen: &Seen) -> Vec<Check> {
    let folder = match reader::folder(context).await {
        Ok(folder) => folder,
        Err(failure) => return vec![("journal", of_failure(&failure))],
    };
    let file = folder.join(JOURNAL_FILE);
    if !file.exists() && is_used(seen, &folder) {
        return vec![("journal", gone(&file))];
    }
    let keys = context.keys.as_deref().map(|keys| Keys::of(keys, &folder));
    let is_signed = keys.is_some_and(|keys| matches!(keys.checkpoint(), Ok(Some(_))));
    if let Some(missing) = folder::missing(&folder, is_signed) {
        let fix = "put the file back, or restore a backup: see docs/keeping.md";
        return vec![("journal", Found::bad(missing.to_string(), fix))];
    }
    if !file.exists() {
        let none = format!("none yet; the first stack creates {}", file.display());
        return vec![("journal", Found::good(none))];
    }
    match Database::open_read_only(&file) {
        Ok(_) => vec![
            ("journal", Found::good(file.display().to_string())),
            ("integrity", pages(&file).await),
        ],
        Err(error) => {
            let wrong = format!("{}: {error}", file.display());
            vec![("journal", Found::bad(wrong, reader::unusable_hint(&error)))]
        }
    }
}

fn gone(file: &Path) -> Found {
    Found::bad(
        format!("{} is gone, and the running stack writes nothing", file.display()),
        "put the same file back, or restore a backup: see docs/keeping.md",
    )
}

/// Reads every page of the journal, while a line on the terminal says so.
async fn pages(file: &Path) -> Found {
    let checking = check_pages(file, PAGES_TIMEOUT);
    tokio::pin!(checking);
    let mut seconds = 0;
    let found = loop {
        // A tick only shows a line; the check goes on.
        tokio::select! {
            found = &mut checking => break found,
            () = tokio::time::sleep(TICK) => {
                seconds += 1;
                output::idle_on_terminal(&format!("checking every page · {seconds} s"));
            }
        }
    };
    match found {
        Ok(Pages::Whole) => Found::good("every page was read, and the tables are whole"),
        Ok(Pages::Damaged(findings)) => Found::bad(
            format!("the file is damaged: {}", findings.join("; ")),
            "stop the stack, and restore a backup: daybook restore FILE --replace",
        ),
        Ok(Pages::NotInTime) => Found::unknown(
            format!(
                "no damage was found in {} s, but not every page was read",
                PAGES_TIMEOUT.as_secs()
            ),
            "`daybook backup FILE` reads every page, however long it takes",
        ),
        Err(error) => Found::bad(error.to_string(), reader::unusable_hint(&error)),
    }
}

/// Whether a running stack has this folder.
fn is_used(seen: &Seen, folder: &Path) -> bool {
    let Seen::Running(health) = seen else { return false };
    let canonical = folder.canonicalize();
    health.data.as_ref().is_some_and(|used| canonical.is_ok_and(|folder| folder == *used))
}

fn of_failure(failure: &Failure) -> Found {
    let fix = failure.next().unwrap_or("fix the problem that it names");
    Found::bad(failure.to_string(), fix)
}
