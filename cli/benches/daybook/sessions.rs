//! Whole sessions: from an event on the bus to a verdict in the journal, every record durable.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::model::Models;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use journal::event::EventStatus;
use journal::id::SessionId;
use journal::read;
use journal::sqlite::Durability;
use journal::store::Store as _;
use local::functions;
use local::stack::{Config, Isolation, Stack};
use serde_json::{Value, json};
use workflow::admission::Limits;
use workflow::rule::{DETAIL_TYPE, SOURCE};

use crate::runs::STEPS;
use crate::{BURST, RECORD_BYTES, in_parallel, median, scratch};

/// A session that takes longer has got stuck.
const WITHIN: Duration = Duration::from_secs(60);

/// How many checkups are timed; the median counts.
const CHECKUPS: usize = 20;

/// Sessions a second, so many at once, of an agent of ten steps that asks nobody.
pub async fn rate(at_once: usize) -> f64 {
    let folder = scratch();
    let stack = Arc::new(start(folder.path()).await);
    let client = reqwest::Client::new();
    let running = Arc::clone(&stack);
    let detail = json!({
        "agent": STEPS.name(),
        "input": { "steps": 10, "bytes": RECORD_BYTES },
    });
    let rate = in_parallel(at_once, move |_| {
        let (stack, client, detail) = (Arc::clone(&running), client.clone(), detail.to_string());
        async move {
            let (began, mut done) = (Instant::now(), 0);
            while began.elapsed() < BURST {
                session(&stack, &client, &detail).await;
                done += 1;
            }
            done
        }
    })
    .await;
    Arc::try_unwrap(stack).unwrap_or_else(|_| unreachable!("all tasks are done")).shutdown().await;
    rate
}

/// From a trigger of `checkup` to its verdict, in milliseconds.
pub async fn checkup_ms() -> f64 {
    let folder = scratch();
    let stack = start(folder.path()).await;
    let client = reqwest::Client::new();
    let mut times = Vec::new();
    for _ in 0..CHECKUPS {
        let began = Instant::now();
        session(&stack, &client, "{}").await;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    stack.shutdown().await;
    median(&mut times)
}

async fn start(folder: &Path) -> Stack {
    let config = Config {
        listen: ([127, 0, 0, 1], 0).into(),
        data: folder.to_owned(),
        durability: Durability::Fsync,
        time_scale: 1,
        token: None,
        ttl_days: workflow::limits::TTL_DAYS,
        workflow: None,
        functions: functions::File::default(),
        isolation: Isolation::None,
        servers: Servers::bundled("/nonexistent".into()),
        timeouts: Timeouts { connect: BURST, init: BURST },
        models: Models::default(),
        defaults: Defaults::default(),
        admission: Limits::default(),
        agents: agents::all_and(vec![STEPS.clone()]).unwrap(),
    };
    Stack::start(config).await.unwrap()
}

/// Puts an event through the endpoint and waits for the verdict.
async fn session(stack: &Stack, client: &reqwest::Client, detail: &str) {
    let entry = json!({ "Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": detail });
    let answer: Value = client
        .post(stack.url())
        .header("x-amz-target", "AWSEvents.PutEvents")
        .header("content-type", "application/x-amz-json-1.1")
        .body(json!({ "Entries": [entry] }).to_string())
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let id: SessionId = answer["Entries"][0]["EventId"].as_str().unwrap().parse().unwrap();
    let deadline = Instant::now() + WITHIN;
    loop {
        // The verdict need not be the newest event: an announcement that comes late sorts behind it.
        let events = read::events(stack.store(), &id).await.unwrap();
        if let Some(verdict) = events.iter().find(|event| event.status.is_verdict()) {
            assert_eq!(verdict.status, EventStatus::SessionSucceeded, "{:?}", verdict.error);
            return;
        }
        assert!(Instant::now() < deadline, "a session took longer than {WITHIN:?}");
        stack.store().changed(Duration::from_millis(20)).await;
    }
}
