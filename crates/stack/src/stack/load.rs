//! The load of a stack, from its settings.

use journal::clock::Clock;

use super::data::Data;
use super::{Config, Isolation};
use crate::host::PROCESSES_MAX;
use crate::load::disk::Budget;
use crate::load::{Limits, Load};
use crate::store::Database;

/// The load of a stack, with its disk budget.
pub(super) fn of(config: &Config, store: &Database, clock: &Clock, data: &Data) -> Load {
    let budget = config.load.disk_bytes.map(|bytes| Budget::new(store, &data.folder, bytes));
    Load::new(limits(config), clock, budget)
}

/// The limits of the load, as far as this stack's hosts can run as many sessions.
fn limits(config: &Config) -> Limits {
    let hosted = match config.isolation {
        Isolation::None => agent::host::SESSIONS_MAX,
        Isolation::Processes { .. } => PROCESSES_MAX,
    };
    Limits { at_work: config.load.at_work.min(hosted), ..config.load.clone() }
}
