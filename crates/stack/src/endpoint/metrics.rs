//! `GET /metrics`: what the stack knows now, and this process's metrics, in Prometheus' text format. `docs/alerts.yml`
//! has rules for alerts.

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use journal::store::Error;

use super::Told;
use super::wire::{self, Refusal};

pub(super) async fn metrics(State(told): State<Told>) -> Response<Body> {
    match page(&told).await {
        Ok(page) => wire::respond(200, "text/plain; version=0.0.4", page, None),
        Err(error) => wire::api(Err(Refusal::journal(&error))),
    }
}

async fn page(told: &Told) -> Result<String, Error> {
    let (store, load) = (told.executions.store(), &told.load);
    let mut page = head("executions", "gauge", "Executions in the journal's file, by status.");
    for (status, count) in told.executions.counts().await? {
        page.push_str(&format!("daybook_executions{{status=\"{status}\"}} {count}\n"));
    }
    let stuck = told.executions.failing().await?.len();
    let what = "Executions whose runner has failed within the last minute.";
    page.push_str(&single("executions_stuck", "gauge", what, stuck));
    let question = load.oldest_question(store, told.clock.now()).await?;
    let what = "Age of the oldest open question; 0 without one.";
    let name = "oldest_open_question_age_seconds";
    page.push_str(&single(name, "gauge", what, question.as_secs()));
    let what = "Commits to the journal that failed, since the start.";
    page.push_str(&single("commit_failures_total", "counter", what, store.commit_failures()));
    let storage = told.storage();
    for (name, what, bytes) in [
        ("disk_left_bytes", "Left on the disk of the data folder.", storage.disk_left()),
        ("disk_left_bytes_min", "Less than this left is a problem.", storage.disk_left_min()),
    ] {
        // Left out if the system does not say: 0 would be an alarm.
        page.extend(bytes.map(|bytes| single(name, "gauge", what, bytes)));
    }
    let used = load.used().await?;
    for (name, what, bytes) in [
        ("disk_used_bytes", "Used of the disk budget.", used.map(|used| used.bytes)),
        ("disk_used_bytes_max", "The disk budget.", used.map(|used| used.bytes_max)),
    ] {
        // Without a budget there is no number.
        page.push_str(&head(name, "gauge", what));
        page.extend(bytes.map(|bytes| format!("daybook_{name} {bytes}\n")));
    }
    page.push_str(&load.metrics(&told.agents()));
    page.push_str(&exporters::metrics::render());
    Ok(page)
}

fn single(name: &str, kind: &str, what: &str, value: impl std::fmt::Display) -> String {
    format!("{}daybook_{name} {value}\n", head(name, kind, what))
}

fn head(name: &str, kind: &str, what: &str) -> String {
    format!("# HELP daybook_{name} {what}\n# TYPE daybook_{name} {kind}\n")
}
