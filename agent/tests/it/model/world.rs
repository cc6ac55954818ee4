//! Incident sessions with a real journal, a real diagnostics server and a loopback model.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::host::{Config, Host};
use agent::model::Models;
use agent::model::openai::{self, Key};
use agent::model::price::Prices;
use agent::model::settings::Settings;
use agent::settings::Defaults;
use agent::tool::Timeouts;
use graph::effect::Reply;
use graph::outcome::{Brought, Failure};
use journal::clock::{Clock, Stamp};
use journal::id::SessionId;
use journal::item::Item;
use journal::key;
use journal::read;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::{EffectKind, Ending, Step, StepBody, Usage};
use journal::store::{Query, query_all};
use serde_json::{Value, json};
use workflow::contract::AgentRequest;
use workflow::trigger::Trigger;

use super::server::{Say, Server, Wire};
use crate::host::{callbacks, incident, servers};

/// Generous timeout for a loaded machine.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The API key, which must never show up.
pub const KEY: &str = "sk-test-4711-very-secret";

/// The secret key of the AWS credentials. It signs requests and is never sent.
pub const AWS_SECRET: &str = "wJalr-very-secret-too";

pub const INCIDENT: &str = "s3-permission-revoked";

/// A host and its journal.
pub struct World {
    _folder: tempfile::TempDir,
    pub store: SqliteStore,
    pub host: Host<SqliteStore>,
    pub session: SessionId,
}

/// A finished session.
#[derive(Debug)]
pub struct Went {
    pub steps: Vec<Step<Value>>,
    pub items: Vec<Item>,
}

/// One attempt of a chat.
#[derive(Debug)]
pub struct Attempt {
    pub brought: Result<Reply, Failure>,
    pub usage: Usage,
    pub took: Duration,
    pub began: Stamp,
}

/// Models at this address.
pub fn models(url: &str) -> Models {
    models_with(url, Settings::default())
}

/// Models at this address, with these settings and the prices of the tests' models.
pub fn models_with(url: &str, settings: Settings) -> Models {
    let base_url = format!("{url}/v1").parse().unwrap();
    let openai = openai::Settings { base_url, key: Key::new(KEY) };
    let prices = Wire::ALL.iter().map(|wire| {
        format!("{:?} = {{ input = 3.0, output = 15.0, cache_read = 0.3 }}\n", wire.model())
    });
    let prices = format!("as_of = \"2026-01-01\"\n[models]\n{}", prices.collect::<String>());
    let prices = Prices::parse(&prices).unwrap();
    let models = Models::new(Settings { openai, prices, ..settings });
    models.with_bedrock(bedrock(url))
}

fn bedrock(url: &str) -> aws_sdk_bedrockruntime::Client {
    use aws_config::{BehaviorVersion, Region, SdkConfig};
    use aws_credential_types::Credentials;
    use aws_credential_types::provider::SharedCredentialsProvider;
    let credentials = Credentials::new("AKIATEST", AWS_SECRET, None, None, "test");
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build();
    let client = agent::model::bedrock::client(&config);
    let here = client.config().to_builder().endpoint_url(url).build();
    aws_sdk_bedrockruntime::Client::from_conf(here)
}

/// The trigger detail of an incident with this model.
pub fn detail(model: &str, more: &Value) -> Value {
    let message = std::fs::read_to_string(incident(INCIDENT).join("incident.json")).unwrap();
    let input: Value = serde_json::from_str(&message).unwrap();
    let mut detail = json!({ "agent": "incident", "input": input, "model": model });
    for (name, value) in more.as_object().unwrap() {
        detail[name] = value.clone();
    }
    detail
}

impl World {
    pub fn new(models: Models) -> Self {
        Self::at(models, Clock::system())
    }

    pub fn at(models: Models, clock: Clock) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let store = SqliteStore::open(&path, Durability::Relaxed).unwrap();
        let config = Config {
            agents: packs::all().into(),
            callbacks: callbacks(),
            progress: Default::default(),
            clock,
            servers: servers(&incident(INCIDENT)),
            timeouts: Timeouts { connect: Duration::MAX / 4, init: Duration::MAX / 4 },
            models,
            defaults: Defaults::default(),
        };
        let host = Host::new(store.clone(), config);
        Self { _folder: folder, store, host, session: SessionId::fresh() }
    }

    /// Runs a session until this runner is done with it.
    pub async fn work(&self, detail: &Value, supersedes: u32) -> Went {
        let request = AgentRequest {
            session_id: self.session.clone(),
            invocation_id: "1".to_owned(),
            attempt: 10 * (supersedes + 1),
            supersedes,
            trigger: Trigger::parse(detail).unwrap(),
            expires_at: 4_000_000_000,
            seen: Stamp::default(),
        };
        let body = serde_json::to_vec(&request).unwrap();
        let working = async {
            let response = self.host.invoke(&body).await;
            assert_eq!(response.body["outcome"], "accepted", "{response:?}");
            while self.host.has(&self.session) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(DEADLINE, working).await.unwrap();
        self.went().await
    }

    pub async fn went(&self) -> Went {
        let pk = key::session(&self.session);
        Went {
            steps: read::resolved_steps(&self.store, &self.session).await.unwrap(),
            items: query_all(&self.store, Query::prefix(pk, "")).await.unwrap(),
        }
    }
}

/// Runs an incident with a model of this wire format, whose server follows the script.
pub async fn went(
    wire: Wire,
    more: Value,
    script: impl Fn(usize, usize) -> Say + Send + Sync + 'static,
) -> (Went, Server) {
    let server = Server::start(move |heard, number| script(heard.turn(), number)).await;
    let world = World::new(models(&server.url));
    let went = world.work(&detail(wire.model(), &more), 0).await;
    (went, server)
}

/// The policy's replies in this incident, in the place of a good model's.
pub async fn good_replies() -> Vec<Say> {
    let world = World::new(Models::default());
    let went = world.work(&detail("policy", &json!({})), 0).await;
    let replies = went.attempts().into_iter().map(|attempt| attempt.brought.unwrap());
    let call = |call: &graph::effect::ToolCall| (call.tool.clone(), call.arguments.to_string());
    replies.map(|reply| Say::Reply(reply.text, reply.calls.iter().map(call).collect())).collect()
}

impl Went {
    pub fn end(&self) -> (Ending, Option<String>, Value) {
        match &self.steps.last().unwrap().body {
            StepBody::End { ending, category, payload, .. } => {
                (*ending, category.clone(), payload.clone())
            }
            other => panic!("{other:?}"),
        }
    }

    /// All journaled attempts of chats.
    pub fn attempts(&self) -> Vec<Attempt> {
        let attempt = |step: &Step<Value>| match &step.body {
            StepBody::Outcome { effect, started_at, usage, payload, .. }
                if effect.kind == EffectKind::Chat =>
            {
                let brought = match serde_json::from_value(payload.clone()).unwrap() {
                    Brought::Reply(reply) => Ok(reply),
                    Brought::Failure(failure) => Err(failure),
                    other => panic!("{other:?}"),
                };
                let took = step.stamp.since(*started_at);
                Some(Attempt { brought, usage: *usage, took, began: *started_at })
            }
            _ => None,
        };
        self.steps.iter().filter_map(attempt).collect()
    }

    /// The failures of a model, in order.
    pub fn failures(&self) -> Vec<Failure> {
        self.attempts().into_iter().filter_map(|attempt| attempt.brought.err()).collect()
    }

    /// The notes of a subject.
    pub fn notes(&self, asked: &str) -> Vec<Value> {
        let note = |step: &Step<Value>| match &step.body {
            StepBody::Note { subject, payload, .. } if subject == asked => Some(payload.clone()),
            _ => None,
        };
        self.steps.iter().filter_map(note).collect()
    }
}

/// Captures the log of this thread as text while the guard lives.
pub fn captured() -> (tracing::subscriber::DefaultGuard, impl Fn() -> String) {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    (guard, move || String::from_utf8(log.0.lock().unwrap().clone()).unwrap())
}
