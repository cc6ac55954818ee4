//! The HTTP endpoint of a stack: the AWS JSON protocol, the `AgentCore` data plane, and Daybook's own API,
//! on one port.
//!
//! [`Reader`] serves reads: it has a journal and, if the sessions run here, the stack. [`Aws`] and
//! [`actions`] serve writes. [`Viewer`] serves the page over a journal whose sessions run elsewhere; its
//! actions go to where they run.

pub mod actions;
mod agentcore;
mod begin;
mod changes;
mod compare;
mod compression;
mod drain;
mod elsewhere;
mod events;
mod executions;
mod guard;
mod halts;
mod health;
mod keeping;
mod lambda;
mod machine;
mod machines;
mod map_runs;
mod metrics;
mod page;
mod principal;
mod redrives;
mod sessions;
mod step_functions;
mod stream;
mod test_state;
mod versions;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Extension;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Response};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use control::Control;
use graph::agent::Agent;
use graph::profile::Limits;
use journal::clock::Clock;
use journal::halt::Halts;
use journal::listing::SummaryCache;
use journal::principal::Principal;
use serde_json::{Map, Value, json};

use crate::bus::{Bus, Refused};
use crate::checkpoints::Signing;
use crate::dynamodb;
use crate::executions::Executions;
use crate::host::Agents;
use crate::keeping::Keeper;
use crate::keys::Keys;
use crate::load::Load;
use crate::notices::Notices;
pub(crate) use wire::unsupported;

use crate::stack::chain;
use crate::steps::ClockSteps;
use crate::storage::Storage;
use crate::store::Journal;
use wire::Refusal;

pub use self::guard::Guard;
pub(crate) use self::guard::random;
pub use self::principal::{Callers, TOKEN_NAME};
pub use elsewhere::{Serving, Viewer};
pub use stream::{Slots, Streams};

/// Largest request, in bytes: ten entries of an event bus.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most executions that a health check names.
const NAMED_MAX: usize = 10;

const EVENTS: &str = "AWSEvents.";
const STEP_FUNCTIONS: &str = "AWSStepFunctions.";
const CALLBACKS: &str = "AWSStepFunctions.SendTask";

/// What read requests need.
#[derive(Clone, Debug)]
pub struct Reader {
    pub store: Journal,
    pub clock: Clock,
    /// The agents whose graphs name the tool calls of recorded sessions.
    pub graphs: Arc<[Agent]>,
    /// Summaries of sessions that were listed before.
    pub summary_cache: Arc<SummaryCache>,
    pub slots: Slots,
    /// The keys of the journal's log of sessions, if this machine has them.
    pub keys: Option<Keys>,
    /// The stack that runs the sessions, if it is this one.
    pub stack: Option<Running>,
}

/// What the page shows of the stack that runs the sessions.
#[derive(Clone, Debug)]
pub struct Running {
    pub executions: Executions,
    /// Admission limits, in sessions per agent and hour.
    pub admission: Limits,
    /// Why the log of sessions is not signed, if it is not.
    pub signing: Signing,
    /// The steps of the machine's clock since the start.
    pub clock_steps: ClockSteps,
    /// The settings that it was started with, without secrets.
    pub settings: Value,
    /// What is known of notices.
    pub notices: Notices,
}

/// The AWS services of a local stack.
#[derive(Clone, Debug)]
pub struct Aws {
    pub executions: Executions,
    pub bus: Bus,
    pub agents: Agents,
    pub load: Load,
}

/// Everything that a stack serves.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub reader: Reader,
    pub streams: Streams,
    pub aws: Aws,
    /// The folder of the journal; an absolute path.
    pub data: PathBuf,
}

impl Endpoint {
    /// The routes behind a guard, for these callers.
    pub fn router(self, guard: Guard, callers: Callers) -> Router {
        let Self { reader, streams, aws, data } = self;
        let control = Control {
            store: reader.store.clone(),
            clock: reader.clock.clone(),
            executions: aws.clone(),
        };
        let keeper = Keeper {
            store: aws.executions.store().clone(),
            keys: reader.keys.clone(),
            clock: reader.clock.clone(),
        };
        let stack = reader.stack.as_ref();
        let told = Told {
            data,
            agents: Arc::clone(&reader.graphs),
            signing: stack.map(|it| it.signing.clone()).unwrap_or_default(),
            clock_steps: stack.map(|it| it.clock_steps.clone()).unwrap_or_default(),
            executions: aws.executions.clone(),
            load: aws.load.clone(),
            clock: reader.clock.clone(),
            settings: stack.map(|it| it.settings.clone()).unwrap_or_default(),
            notices: stack.map(|it| it.notices.clone()).unwrap_or_default(),
        };
        let state = Router::new()
            .route("/healthz", get(health))
            .route("/readyz", get(health))
            .route("/livez", get(liveness))
            .route("/metrics", get(metrics::metrics))
            .with_state(told)
            .merge(drain::routes(aws.load.clone()));
        let streaming = Router::new()
            .route("/api/sessions/{id}/events", get(stream::events))
            .route("/api/changes", get(changes::changes))
            .with_state(streams);
        let begun_by = aws.bus.clone();
        let of_users = executions::router(aws.clone());
        let aws = Router::new()
            .route("/", post(of_anyone))
            .route("/2015-03-31/functions/{name}/invocations", post(lambda::invoke))
            .route("/runtimes/{arn}/invocations", post(agentcore::invoke))
            .route("/runtimes/{arn}/stopruntimesession", post(agentcore::stop))
            .with_state(aws);
        let halting = halts::router(control.clone(), Arc::clone(&reader.graphs));
        let keeping = keeping::router(keeper);
        let beginning = begin::routes(begun_by, Arc::clone(&reader.graphs));
        let routes = aws.merge(of_users).merge(beginning).merge(state).merge(streaming);
        let routes = routes.merge(halting).merge(keeping);
        guarded(routes.merge(reading(reader)).merge(actions::router(control)), guard, callers)
    }
}

/// The routes of agents' processes: the table, and the callbacks of the workflow. Of the actions that
/// change records, only these routes have the table's writes.
pub fn of_agents(aws: Aws, guard: Guard) -> Router {
    Router::new()
        .route("/", post(of_agent))
        .with_state(aws)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(guard, guard::check_agent))
}

/// The read routes, except for streams.
fn reading(reader: Reader) -> Router {
    Router::new()
        .route("/api/sessions", get(sessions::list))
        .route("/api/histogram", get(sessions::histogram))
        .route("/api/sessions/{id}", get(sessions::show))
        .route("/api/agents", get(begin::agents))
        .merge(page::views())
        .with_state(reader)
        .layer(from_fn(compression::compress))
}

/// The routes behind a guard, with the page's files and the login.
fn guarded(routes: Router, guard: Guard, callers: Callers) -> Router {
    let log_in = Router::new().route("/login", post(guard::log_in)).with_state(guard.clone());
    routes
        .merge(log_in)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(callers, principal::identify))
        .layer(from_fn_with_state(guard.clone(), guard::check))
        // The files are not secret. A browser without the token gets the page that asks for it.
        .merge(page::files().layer(from_fn_with_state(guard, guard::check_address)))
}

/// Who sends a request to `POST /`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sender {
    Anyone,
    /// A process that runs an agent, with the token of this run.
    Agent,
}

impl Sender {
    /// Agents write records and call back; they start and stop nothing. Everyone else reads records, which
    /// only the journal's own rules may write.
    fn may(self, target: &str) -> bool {
        let table = target.strip_prefix(dynamodb::TARGET_PREFIX);
        match self {
            Self::Anyone => !matches!(table, Some("PutItem" | "UpdateItem")),
            Self::Agent => table.is_some() || target.starts_with(CALLBACKS),
        }
    }
}

async fn of_anyone(
    State(aws): State<Aws>,
    Extension(by): Extension<Principal>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response<Body> {
    dispatched(Sender::Anyone, &aws, &headers, body, &by).await
}

async fn of_agent(
    State(aws): State<Aws>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response<Body> {
    dispatched(Sender::Agent, &aws, &headers, body, &Principal::Unknown).await
}

/// `POST /`: `X-Amz-Target` names the service and the action.
async fn dispatched(
    sender: Sender,
    aws: &Aws,
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
    by: &Principal,
) -> Response<Body> {
    let target = headers.get("x-amz-target").and_then(|value| value.to_str().ok());
    let target = target.unwrap_or_default();
    let answer = match body {
        Ok(_) if !sender.may(target) => Err(Refusal::bad(ACCESS_DENIED, NOT_HERE)),
        Ok(body) => dispatch(aws, target, &body, by).await,
        Err(rejection) => {
            Err(Refusal::new(rejection.status().as_u16(), SERIALIZATION, rejection.body_text()))
        }
    };
    wire::aws(answer, wire::protocol(headers))
}

const SERIALIZATION: &str = "com.amazon.coral.service#SerializationException";
const ACCESS_DENIED: &str = "com.amazon.coral.service#AccessDeniedException";

const NOT_HERE: &str = "this action is refused here: records are written by agents alone, on a port of \
                        their own, which starts and stops nothing";

async fn dispatch(aws: &Aws, target: &str, body: &[u8], by: &Principal) -> Result<Value, Refusal> {
    if let Some(action) = target.strip_prefix(dynamodb::TARGET_PREFIX) {
        return Ok(dynamodb::handle(aws.executions.store(), action, body).await?);
    }
    let parsed = || match serde_json::from_slice::<Value>(body) {
        Ok(body @ Value::Object(_)) => Ok(body),
        Ok(_) => Err(Refusal::bad(SERIALIZATION, "the body is not a JSON object")),
        Err(error) => Err(Refusal::bad(SERIALIZATION, error.to_string())),
    };
    if let Some(action) = target.strip_prefix(STEP_FUNCTIONS) {
        return step_functions::handle(&aws.executions, &aws.load, action, &parsed()?, by).await;
    }
    match target.strip_prefix(EVENTS) {
        Some("PutEvents") => {
            aws.bus.put_events(&parsed()?, by).await.map_err(|refused| match refused {
                Refused::Validation(message) => Refusal::bad("ValidationException", message),
                Refused::Serialization(message) => Refusal::bad(SERIALIZATION, message),
                Refused::NoSuchBus(_) => {
                    Refusal::bad("ResourceNotFoundException", refused.to_string())
                }
                Refused::NotAdmitted(why) => Refusal::not_admitted(why),
            })
        }
        Some(action) => events::handle(&aws.executions, action, &parsed()?).await,
        None => Err(Refusal::unknown_operation(target)),
    }
}

/// What `/healthz` tells of a stack.
#[derive(Clone)]
struct Told {
    data: PathBuf,
    /// Those that a trigger may name.
    agents: Arc<[Agent]>,
    signing: Signing,
    clock_steps: ClockSteps,
    executions: Executions,
    load: Load,
    clock: Clock,
    settings: Value,
    notices: Notices,
}

impl Told {
    fn agents(&self) -> Vec<&str> {
        self.agents.iter().map(Agent::name).collect()
    }

    fn storage(&self) -> Storage {
        Storage::of(self.executions.store(), &self.data)
    }

    /// What is stored, with the disk budget; null without one, or if the journal cannot be read.
    async fn stored(&self) -> Value {
        let mut stored = self.storage().to_json();
        let used = self.load.used().await.ok().flatten();
        stored["used_bytes"] = json!(used.map(|used| used.bytes));
        stored["used_bytes_max"] = json!(used.map(|used| used.bytes_max));
        stored
    }

    /// Why sessions do not go on as they should, by what is concerned.
    async fn problems(&self) -> Map<String, Value> {
        let mut problems = self.storage().problems();
        let store = self.executions.store();
        if let Some(damage) = store.damage_met() {
            problems.insert("integrity".to_owned(), damage.into());
        }
        if store.write_problem().is_some_and(|problem| !problem.is_lasting) {
            // Whether the next commit fails, too, is known only after one.
            let _ = store.try_commit().await;
        }
        if let Some(problem) = store.write_problem() {
            problems.insert("journal".to_owned(), problem.why.into());
        }
        if let Ok(Some(refusal)) = self.load.disk_refusal(&self.executions).await {
            problems.insert("disk_budget".to_owned(), refusal.to_string().into());
        }
        if let Some(problem) = self.load.drain_problem() {
            problems.insert("draining".to_owned(), problem.into());
        }
        match self.executions.failing().await {
            Ok(failing) if failing.is_empty() => {}
            Ok(failing) => {
                let arns: Vec<_> = failing.iter().take(NAMED_MAX).map(|it| &it.arn).collect();
                let count = failing.len();
                problems
                    .insert("executions".to_owned(), json!({ "failing": count, "first": arns }));
            }
            Err(error) => {
                problems.insert("executions".to_owned(), chain(&error).into());
            }
        }
        problems
    }
}

/// 503 if this process cannot recover: a commit does not end, or the journal's file is not the one that was opened.
async fn liveness(State(told): State<Told>) -> Response<Body> {
    let problem = told.executions.store().write_problem().filter(|problem| problem.is_lasting);
    let (status, word) = if problem.is_some() { (503, "failing") } else { (200, "ok") };
    wire::api(Ok((
        status,
        json!({ "status": word, "problem": problem.map(|problem| problem.why) }),
    )))
}

/// 503 if something keeps sessions from going on. Null for `log_problem`: the log of sessions is signed.
async fn health(State(told): State<Told>) -> Response<Body> {
    let problems = told.problems().await;
    let (status, word) = if problems.is_empty() { (200, "ok") } else { (503, "failing") };
    wire::api(Ok((
        status,
        json!({
            "status": word,
            "problems": problems,
            "data": told.data.display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
            "log_problem": told.signing.problem(),
            "clock": told.clock_steps.to_json(),
            "agents": told.agents(),
            "load": told.load.to_json(&told.agents()),
            "storage": told.stored().await,
            "settings": told.settings,
            "notices": told.notices.to_json(told.clock.now()),
            "halts": Halts::read(told.executions.store()).await.ok().map(|halts| halts.in_force),
        }),
    )))
}
