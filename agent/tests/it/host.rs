//! The entrypoint and the background task, over a real journal and a real MCP server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent::host::{Config, Host};
use agent::model::Models;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use futures_util::future::BoxFuture;
use graph::agent::{Agent, Settings};
use graph::definition::{Context, Finish, Graph, InputError, Node, Route};
use graph::effect::{Chat, Effect, Reply};
use graph::outcome::Outcome;
use graph::profile::Profile;
use journal::cipher::is_encrypted;
use journal::clock::{Clock, Stamp};
use journal::event::EventStatus;
use journal::id::SessionId;
use journal::item::Item;
use journal::key;
use journal::lease::Lease;
use journal::read;
use journal::sqlite::{Durability, SESSION_KEYS_FILE, SqliteStore};
use journal::step::{AnsweredBy, EffectKind, EffectRef, Ending, Step, StepBody};
use journal::store::{Condition, Query, Store as _, query_all};
use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use workflow::contract::{AgentRequest, InvokeOutcome};
use workflow::trigger::Trigger;

/// Generous timeout for a loaded machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A closed port: these tests park no workflow.
const NOWHERE: &str = "http://127.0.0.1:9";

struct World {
    _folder: tempfile::TempDir,
    store: SqliteStore,
    host: Host<SqliteStore>,
    session: SessionId,
}

/// Not a test: serves the shipped diagnostics server when the test binary runs as its process.
#[test]
#[expect(clippy::disallowed_methods, reason = "how this binary knows its role")]
fn diagnostics_server() {
    let Ok(snapshot) = std::env::var("HOST_SNAPSHOT") else { return };
    let delay = std::env::var("HOST_DELAY_MS").unwrap_or_default().parse().unwrap_or(0);
    std::thread::sleep(Duration::from_millis(delay));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(aws_diagnostics::serve_stdio(PathBuf::from(snapshot))).unwrap();
    std::process::exit(0);
}

pub fn incident(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packs/incident/incidents").join(name)
}

pub fn servers(snapshot: &Path) -> Servers {
    slow_servers(snapshot, Duration::ZERO)
}

/// The diagnostics server with a delayed start.
fn slow_servers(snapshot: &Path, delay: Duration) -> Servers {
    let file = json!({ "mcpServers": { "aws-diagnostics": {
        "command": std::env::current_exe().unwrap(),
        "args": ["host::diagnostics_server", "--exact", "--nocapture"],
        "env": { "HOST_SNAPSHOT": snapshot, "HOST_DELAY_MS": delay.as_millis().to_string() },
    } } });
    Servers::parse(&file.to_string(), |_| None).unwrap()
}

pub fn callbacks() -> aws_sdk_sfn::Client {
    let credentials = aws_sdk_sfn::config::Credentials::new("local", "local", None, None, "test");
    let config = aws_sdk_sfn::Config::builder()
        .behavior_version_latest()
        .region(aws_sdk_sfn::config::Region::new("us-east-1"))
        .credentials_provider(credentials)
        .endpoint_url(NOWHERE);
    aws_sdk_sfn::Client::from_conf(config.build())
}

fn host_over(store: &SqliteStore, servers: Servers) -> Host<SqliteStore> {
    host_of(store, servers, packs::all())
}

fn host_of(store: &SqliteStore, servers: Servers, agents: &[Agent]) -> Host<SqliteStore> {
    Host::new(
        store.clone(),
        Config {
            agents: agents.into(),
            callbacks: callbacks(),
            progress: Default::default(),
            clock: Clock::system(),
            servers,
            timeouts: Timeouts { connect: DEADLINE, init: DEADLINE },
            models: Models::default(),
            defaults: Defaults::default(),
        },
    )
}

/// A host with the specification's timeouts, whose clock is `speed` times as fast as the machine's.
fn host_of_clock(store: &SqliteStore, servers: Servers, speed: u32) -> Host<SqliteStore> {
    let within = Duration::from_secs(10);
    Host::new(
        store.clone(),
        Config {
            agents: packs::all().into(),
            callbacks: callbacks(),
            progress: Default::default(),
            clock: Clock::scaled(Stamp::from_millis(1_795_000_000_000), speed),
            servers,
            timeouts: Timeouts { connect: within, init: within },
            models: Models::default(),
            defaults: Defaults::default(),
        },
    )
}

fn world(servers: Servers) -> World {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("journal.db"), Durability::Relaxed).unwrap();
    let host = host_over(&store, servers);
    World { _folder: folder, host, store, session: SessionId::fresh() }
}

fn diagnosing() -> (Value, World) {
    diagnosing_by(servers(&incident("s3-permission-revoked")))
}

fn diagnosing_by(servers: Servers) -> (Value, World) {
    let folder = incident("s3-permission-revoked");
    let message = std::fs::read_to_string(folder.join("incident.json")).unwrap();
    let input: Value = serde_json::from_str(&message).unwrap();
    (json!({ "agent": "incident", "input": input }), world(servers))
}

impl World {
    fn request(&self, detail: &Value, supersedes: u32) -> AgentRequest {
        AgentRequest {
            session_id: self.session.clone(),
            invocation_id: "1".to_owned(),
            attempt: 10 * (supersedes + 1),
            supersedes,
            trigger: Trigger::parse_or(detail, Some("checkup")).unwrap(),
            expires_at: 4_000_000_000,
            seen: Stamp::default(),
        }
    }

    async fn invoke(&self, detail: &Value, supersedes: u32) -> (u16, Value) {
        let body = serde_json::to_vec(&self.request(detail, supersedes)).unwrap();
        let response = tokio::time::timeout(DEADLINE, self.host.invoke(&body)).await.unwrap();
        (response.status, response.body)
    }

    async fn accepted(&self, detail: &Value, supersedes: u32) {
        let (status, body) = self.invoke(detail, supersedes).await;
        assert_eq!((status, &body["outcome"]), (200, &json!("accepted")), "{body}");
    }

    async fn done(&self) {
        let waiting = async {
            while self.host.has(&self.session) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.unwrap();
    }

    async fn steps(&self) -> Vec<Step<Value>> {
        read::resolved_steps(&self.store, &self.session).await.unwrap()
    }

    async fn statuses(&self) -> Vec<EventStatus> {
        let events = read::events(&self.store, &self.session).await.unwrap();
        events.iter().map(|event| event.status).collect()
    }
}

fn ending(steps: &[Step<Value>]) -> (Ending, Option<String>, Value) {
    match &steps.last().unwrap().body {
        StepBody::End { ending, error, payload, .. } => {
            (*ending, error.as_ref().map(ToString::to_string), payload.clone())
        }
        other => panic!("{other:?}"),
    }
}

/// A name for each outcome. It leaves out a chat's digest: the digest has the numbers of the steps that
/// its messages come from, and each further claim shifts these by one.
fn outcomes(steps: &[Step<Value>]) -> Vec<String> {
    let effects = steps.iter().filter(|step| matches!(step.body, StepBody::Outcome { .. }));
    let name = |effect: &EffectRef| match effect.kind {
        EffectKind::Chat => effect.node.clone(),
        _ => format!("{} {} {}", effect.node, effect.digest, effect.call),
    };
    effects.filter_map(|step| step.body.effect()).map(name).collect()
}

#[tokio::test]
async fn a_session_is_announced_claimed_run_and_ended() {
    let world = world(Servers::bundled("/nonexistent".as_ref(), packs::all()));
    world.accepted(&json!({}), 0).await;
    world.done().await;
    use EventStatus as E;
    let announced =
        [E::AgentEntrypointStarted, E::AgentBackgroundTaskStarted, E::AgentBackgroundTaskCompleted];
    assert_eq!(world.statuses().await, announced);
    let steps = world.steps().await;
    assert!(matches!(steps[0].body, StepBody::Claim { supersedes: 0, .. }));
    let (ended, error, result) = ending(&steps);
    assert_eq!((ended, error), (Ending::Completed, None));
    assert!(
        result["checks"].as_array().unwrap().iter().all(|check| check["ok"] == true),
        "{result}"
    );
    let lease = Lease::read(&world.store, &world.session).await.unwrap().unwrap();
    assert_eq!((lease.epoch, lease.runner()), (1, None), "the lease is released");
}

#[tokio::test]
async fn an_incident_is_diagnosed_with_the_shipped_server() {
    let (detail, world) = diagnosing();
    world.accepted(&detail, 0).await;
    world.done().await;
    let (ended, error, result) = ending(&world.steps().await);
    assert_eq!((ended, error), (Ending::Completed, None));
    assert_eq!(result["fault_types"], json!(["permission_loss"]));
    assert_eq!(result["incident_state"], "DIAGNOSED");
}

#[tokio::test]
async fn an_in_process_server_works_like_any_other() {
    let folder = incident("s3-permission-revoked");
    let serve = move |_: &Value, stream: tokio::io::DuplexStream| -> BoxFuture<'static, ()> {
        let server = aws_diagnostics::server(folder.clone()).unwrap();
        Box::pin(async move {
            server.serve(tokio::io::split(stream)).await.unwrap().waiting().await.unwrap();
        })
    };
    let (detail, world) = diagnosing_by(Servers::in_process("aws-diagnostics", Arc::new(serve)));
    world.accepted(&detail, 0).await;
    world.done().await;
    let (ended, error, result) = ending(&world.steps().await);
    assert_eq!((ended, error), (Ending::Completed, None));
    assert_eq!(result["fault_types"], json!(["permission_loss"]));
}

#[tokio::test]
async fn an_in_process_server_that_exits_is_a_failed_connection() {
    let hangs_up = |_: &Value, _| -> BoxFuture<'static, ()> { Box::pin(async {}) };
    let (detail, world) = diagnosing_by(Servers::in_process("aws-diagnostics", Arc::new(hangs_up)));
    world.accepted(&detail, 0).await;
    world.done().await;
    let (ended, error, _) = ending(&world.steps().await);
    assert_eq!(ended, Ending::Failed);
    assert!(error.unwrap().contains("closed the connection before the handshake was done"));
}

/// Source: the incident specification, section 7, "Timeouts" and "Retry logic": 10 s for a connection, and one retry
/// after 1 s.
#[tokio::test]
async fn a_dead_server_ends_an_incident_in_the_specified_times() {
    // Accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/mcp", silent.local_addr().unwrap());
    for (url, least_s) in [
        (address.as_str(), 21),
        ("http://127.0.0.1:9/mcp", 1),
        ("http://no-such-host.invalid/mcp", 1),
    ] {
        let ended = ["http", "sse"].map(async |transport| {
            let server = json!({ "url": url, "transport": transport });
            let file = json!({ "mcpServers": { "aws-diagnostics": server } }).to_string();
            let servers = Servers::parse(&file, |_| None).unwrap();
            let (detail, mut world) = diagnosing_by(Servers::default());
            world.host = host_of_clock(&world.store, servers, 5);
            world.accepted(&detail, 0).await;
            world.done().await;
            let steps = world.steps().await;
            let (ended, error, result) = ending(&steps);
            let error = error.unwrap();
            assert_eq!(ended, Ending::Failed, "{transport} {url}");
            assert!(error.starts_with("McpConnection: aws-diagnostics - "), "{url}: {error}");
            assert_eq!(result["incident_state"], "ERROR", "{url}");
            let took = steps.last().unwrap().stamp.since(steps[0].stamp);
            let times = Duration::from_secs(least_s)..Duration::from_secs(45);
            assert!(times.contains(&took), "{transport} {url}: {took:?}");
        });
        futures_util::future::join_all(ended).await;
    }
}

#[tokio::test]
async fn a_tool_call_ends_by_the_deadline_of_its_session() {
    // Accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let serve = move |_: &Value, stream: tokio::io::DuplexStream| -> BoxFuture<'static, ()> {
        let remote = card_transactions::Remote::Refused;
        let server = card_transactions::server(&address, remote).unwrap();
        Box::pin(async move {
            server.serve(tokio::io::split(stream)).await.unwrap().waiting().await.unwrap();
        })
    };
    let world = world(Servers::in_process("card-transactions", Arc::new(serve)));
    let input = json!({ "transaction_id": "t1", "data": "elsewhere" });
    let detail = json!({ "agent": "fraud", "input": input, "budget": { "seconds": 1 } });
    world.accepted(&detail, 0).await;
    world.done().await;
    let (ended, _, result) = ending(&world.steps().await);
    assert_eq!((ended, &result["status"]), (Ending::Completed, &json!("TIMED_OUT")));
    let called = result["tool_executions"].as_array().unwrap();
    assert_eq!((called.len(), &called[0]["status"]), (1, &json!("TIMED_OUT")), "{called:?}");
    let said = called[0]["error_message"].as_str().unwrap();
    assert!(said.ends_with("when the investigation's time was up"), "{said}");
}

#[tokio::test]
async fn a_host_knows_only_its_own_agents() {
    let mut world = world(Servers::default());
    world.host = host_of(&world.store, Servers::default(), &packs::all()[1..]);
    let (status, body) = world.invoke(&json!({ "agent": "checkup" }), 0).await;
    assert_eq!(status, 400);
    let error = "InvalidTrigger: UnknownAgent - detail.agent: no agent is named `checkup`; known \
                 agents: incident, fraud, network, assistant";
    assert_eq!(body["error"], error);
}

#[tokio::test]
async fn a_session_resumes_from_every_prefix_and_repeats_nothing() {
    resumes_from_every_prefix(false).await;
}

#[tokio::test]
async fn an_encrypted_session_resumes_from_every_prefix() {
    resumes_from_every_prefix(true).await;
}

/// Encrypts the session of a world, with the key that it has in an earlier one.
fn encrypt(world: &World, earlier: Option<&World>) {
    let keys = |world: &World| world.store.path().with_file_name(SESSION_KEYS_FILE);
    if let Some(earlier) = earlier {
        std::fs::copy(keys(earlier), keys(world)).unwrap();
    }
    world.store.encrypt_new_sessions().unwrap();
    world.store.create_keys(std::slice::from_ref(&world.session)).unwrap();
}

async fn resumes_from_every_prefix(encrypted: bool) {
    let (detail, first) = diagnosing();
    if encrypted {
        encrypt(&first, None);
    }
    first.accepted(&detail, 0).await;
    first.done().await;
    let steps = first.steps().await;
    let (whole, learned) = (ending(&steps), outcomes(&steps));
    let pk = key::session(&first.session);
    let items = query_all(&first.store, Query::prefix(pk, key::STEP_PREFIX)).await.unwrap();
    for cut in 0..items.len() {
        let (_, mut world) = diagnosing();
        world.session = first.session.clone();
        if encrypted {
            encrypt(&world, Some(&first));
        }
        assert!(items.iter().all(|item| is_encrypted(item) == encrypted));
        for item in &items[..cut] {
            world.store.put(Item::clone(item), Condition::Absent).await.unwrap();
        }
        world.accepted(&detail, u32::from(cut > 0)).await;
        world.done().await;
        let resumed = world.steps().await;
        assert_eq!(ending(&resumed), whole, "cut after {cut}");
        assert_eq!(outcomes(&resumed), learned, "cut after {cut}: nothing learned twice or lost");
        assert_eq!(
            resumed.iter().filter(|step| matches!(step.body, StepBody::Claim { .. })).count(),
            1 + usize::from(cut > 0)
        );
    }
    let (status, body) = first.invoke(&detail, 1).await;
    assert_eq!((status, &body["outcome"]), (200, &json!(InvokeOutcome::Ended)));
}

#[tokio::test]
async fn one_of_many_concurrent_invocations_claims() {
    let world = world(Servers::bundled("/nonexistent".as_ref(), packs::all()));
    let hosts: Vec<_> = (0..8)
        .map(|_| host_over(&world.store, Servers::bundled("/nonexistent".as_ref(), packs::all())))
        .collect();
    let body = serde_json::to_vec(&world.request(&json!({}), 0)).unwrap();
    let answers = futures_util::future::join_all(hosts.iter().map(|host| host.invoke(&body))).await;
    let accepted = answers.iter().filter(|answer| answer.body["outcome"] == "accepted").count();
    assert_eq!(accepted, 1, "{answers:?}");
    for host in &hosts {
        host.shutdown().await;
    }
    let claims = world
        .steps()
        .await
        .iter()
        .filter(|step| matches!(step.body, StepBody::Claim { .. }))
        .count();
    assert_eq!(claims, 1);
}

#[tokio::test]
async fn a_runner_superseded_by_another_writes_nothing_more() {
    let (detail, mut world) = diagnosing();
    let folder = incident("s3-permission-revoked");
    let quick = host_over(&world.store, servers(&folder));
    world.host = host_over(&world.store, slow_servers(&folder, Duration::from_secs(2)));
    world.accepted(&detail, 0).await;
    let slow = std::mem::replace(&mut world.host, quick);
    world.accepted(&detail, 1).await;
    world.done().await;
    let (steps, statuses) = (world.steps().await, world.statuses().await);
    assert_eq!(ending(&steps).0, Ending::Completed);
    // The slow runner's server has started by now. Its outcome collides with the claim.
    let fenced = async {
        while slow.has(&world.session) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(DEADLINE, fenced).await.unwrap();
    assert_eq!(world.steps().await, steps);
    assert_eq!(world.statuses().await, statuses);
    let lease = Lease::read(&world.store, &world.session).await.unwrap().unwrap();
    assert_eq!((lease.epoch, lease.runner()), (2, None));
}

#[tokio::test]
async fn a_refused_request_names_the_reason_and_leaves_no_claim() {
    for (detail, expected) in [
        (
            json!({ "agent": "nobody" }),
            "InvalidTrigger: UnknownAgent - detail.agent: no agent is named `nobody`; known agents: checkup, incident, fraud, network, assistant",
        ),
        (
            json!({ "agent": "checkup", "input": { "x": 1 } }),
            "InputError: InvalidInput - input field `x`: expected no fields: checkup takes no input",
        ),
    ] {
        let world = world(Servers::bundled("/nonexistent".as_ref(), packs::all()));
        let (status, body) = world.invoke(&detail, 0).await;
        assert_eq!((status, body["error"].as_str().unwrap()), (400, expected));
        assert_eq!(
            world.statuses().await,
            [EventStatus::AgentEntrypointStarted, EventStatus::AgentEntrypointFailed]
        );
        assert!(world.steps().await.is_empty());
    }
}

#[tokio::test]
async fn a_malformed_request_is_refused() {
    let world = world(Servers::bundled("/nonexistent".as_ref(), packs::all()));
    let response = world.host.invoke(b"{\"session_id\": 7}").await;
    assert_eq!(response.status, 400);
    assert!(
        response.body["error"].as_str().unwrap().starts_with("EntrypointError: InvalidRequest")
    );
}

#[tokio::test]
async fn a_server_that_does_not_start_fails_the_session() {
    let (detail, _) = diagnosing();
    let file = r#"{"mcpServers": {"aws-diagnostics": {"command": "/nonexistent/server"}}}"#;
    let world = world(Servers::parse(file, |_| None).unwrap());
    world.accepted(&detail, 0).await;
    world.done().await;
    let steps = world.steps().await;
    let (ended, error, _) = ending(&steps);
    assert_eq!(ended, Ending::Failed);
    let StepBody::End { category, .. } = &steps.last().unwrap().body else { unreachable!() };
    assert_eq!(category.as_deref(), Some("mcp_connection"));
    assert!(error.as_ref().unwrap().contains("/nonexistent/server"), "{error:?}");
    assert_eq!(world.statuses().await.last(), Some(&EventStatus::AgentBackgroundTaskFailed));
}

#[tokio::test]
async fn an_unavailable_model_falls_back_to_the_policy_or_fails() {
    for (on_failure, expected) in [("policy", Ending::Completed), ("fail", Ending::Failed)] {
        let (mut detail, world) = diagnosing();
        detail["model"] = json!("transcript:/nonexistent");
        detail["on_model_failure"] = json!(on_failure);
        world.accepted(&detail, 0).await;
        world.done().await;
        let steps = world.steps().await;
        assert_eq!(ending(&steps).0, expected, "{on_failure}");
        let noted = steps.iter().any(
            |step| matches!(&step.body, StepBody::Note { subject, .. } if subject == "fallback"),
        );
        assert_eq!(noted, on_failure == "policy", "the journal records the fallback to the policy");
        let StepBody::End { answered_by, .. } = &steps.last().unwrap().body else { unreachable!() };
        let expected = (on_failure == "policy").then_some(AnsweredBy::Policy);
        assert_eq!(*answered_by, expected, "the end says who answered");
    }
}

#[tokio::test]
async fn a_ping_changes_its_time_only_with_its_status() {
    let world = world(Servers::bundled("/nonexistent".as_ref(), packs::all()));
    let idle = world.host.pulse().ping();
    assert_eq!(idle.status, "Healthy");
    assert_eq!(world.host.pulse().ping(), idle);
    world.accepted(&json!({}), 0).await;
    world.done().await;
    assert_eq!(world.host.pulse().ping().status, "Healthy");
    assert!(world.host.pulse().ping().time_of_last_update >= idle.time_of_last_update);
}

/// An agent whose input names the function that panics.
static PANICKING: Graph<Value> = Graph::new(
    "panicking",
    "Panics where its input says.",
    &[Node { name: "do", to: &[], ask: panicking_ask, fold: panicking_fold }],
    panicking_init,
    |at, _| if *at == "policy" { panic!("in the policy") } else { Reply::says("fine") },
);

fn panicking_init(input: &Value, _: &Settings) -> Result<Value, InputError> {
    assert_ne!(input["at"], "init", "in the start");
    Ok(input["at"].clone())
}

fn panicking_ask(at: &Value, _: &Context<'_>) -> Effect {
    assert_ne!(*at, "ask", "in the request");
    Effect::Chat(Chat::default())
}

fn panicking_fold(at: &mut Value, _: Outcome) -> Route {
    assert_ne!(*at, "fold", "in the fold");
    Route::End(Finish::Completed(json!(1)))
}

static OBSERVING: Profile =
    Profile { observe: |_, _| panic!("in the observation"), ..Profile::PLAIN };

fn panicking() -> [Agent; 1] {
    [Agent::of(&PANICKING).with_profile(&OBSERVING)]
}

#[tokio::test]
async fn a_panic_in_an_agents_code_ends_its_session() {
    for at in ["ask", "fold", "policy"] {
        let mut world = world(Servers::default());
        world.host = host_of(&world.store, Servers::default(), &panicking());
        world.accepted(&json!({"agent": "panicking", "input": {"at": at}}), 0).await;
        world.done().await;
        let steps = world.steps().await;
        let StepBody::End { ending, error, category, .. } = &steps.last().unwrap().body else {
            panic!("{at}: {steps:?}");
        };
        assert_eq!((*ending, category.as_deref()), (Ending::Failed, Some("graph")), "{at}");
        let error = error.as_ref().unwrap().as_str();
        assert!(error.starts_with("GraphError: Panicked - "), "{error}");
        assert_eq!(world.statuses().await.last(), Some(&EventStatus::AgentBackgroundTaskFailed));
        let lease = Lease::read(&world.store, &world.session).await.unwrap().unwrap();
        assert_eq!(lease.runner(), None, "the lease is released");
    }
}

#[tokio::test]
async fn a_panic_in_an_observation_ends_nothing() {
    let mut world = world(Servers::default());
    world.host = host_of(&world.store, Servers::default(), &panicking());
    world.accepted(&json!({"agent": "panicking", "input": {"at": "observe"}}), 0).await;
    world.done().await;
    assert_eq!(ending(&world.steps().await), (Ending::Completed, None, json!(1)));
}

#[tokio::test]
async fn a_panic_at_the_start_refuses_the_request() {
    let mut world = world(Servers::default());
    world.host = host_of(&world.store, Servers::default(), &panicking());
    let (status, body) =
        world.invoke(&json!({"agent": "panicking", "input": {"at": "init"}}), 0).await;
    let error = body["error"].as_str().unwrap();
    assert_eq!(status, 400, "{error}");
    assert!(error.starts_with("GraphError: Panicked - the start of the graph"), "{error}");
    assert!(world.steps().await.is_empty());
}
