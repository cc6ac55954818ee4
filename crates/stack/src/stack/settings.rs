//! The settings of a running stack.

use journal::sqlite::Durability;
use serde_json::{Value, json};

use super::{Config, Isolation};
use crate::checkpoints::Signing;
use crate::endpoint::Running;
use crate::executions::Executions;
use crate::notices::Notices;
use crate::steps::ClockSteps;

/// What the endpoint tells of the stack.
pub(super) fn running(
    config: &Config,
    executions: &Executions,
    signing: &Signing,
    steps: &ClockSteps,
    notices: &Notices,
) -> Running {
    Running {
        executions: executions.clone(),
        admission: config.admission.clone(),
        signing: signing.clone(),
        clock_steps: steps.clone(),
        settings: settings(config),
        notices: notices.clone(),
    }
}

/// What the stack was started with, for `doctor`. No secrets.
fn settings(config: &Config) -> Value {
    let isolation = match config.isolation {
        Isolation::None => "none",
        Isolation::Processes { .. } => "processes",
    };
    let durability = match config.durability {
        Durability::Fsync => "fsync",
        Durability::Relaxed => "relaxed",
    };
    json!({
        "model": config.defaults.model, "servers": config.servers.names().collect::<Vec<_>>(),
        "ttl_days": config.ttl_days, "durability": durability, "isolation": isolation,
        "time_scale": config.time_scale, "own_workflow": config.workflow.is_some(),
        "witnesses": config.witnesses.len(), "token": config.token.is_some(),
        "disk_bytes_max": config.load.disk_bytes,
    })
}
