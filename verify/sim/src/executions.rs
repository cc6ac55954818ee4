//! The simulator's [`ExecutionStore`]: executions in memory, reached by processes that may die on the
//! way, with the faults of the table beside them.

use std::collections::BTreeMap;

use asl::execution::Outcome;
use asl::history::Event;
use asl::time::Timestamp;
use journal::store::Error;
use stack::executions::{
    ExecutionStore, Inserted, MachineRow, NewExecution, RUNNING, Record, Redriven,
};

use crate::store::SimStore;

/// The executions of a disk.
#[derive(Debug, Default)]
pub(crate) struct Executions {
    machines: Vec<Machine>,
    /// By id, which counts from 1 in the order of starting.
    rows: Vec<Record>,
    histories: BTreeMap<(i64, u64), Kept>,
}

#[derive(Debug)]
struct Machine {
    row: MachineRow,
    arn: String,
    definition: String,
}

/// An event as it is served.
#[derive(Debug)]
struct Kept {
    at: Timestamp,
    body: String,
}

impl Executions {
    fn open_machine(&mut self, arn: &str, definition: &str, now: Timestamp) -> MachineRow {
        let known = self.machines.iter().find(|m| m.arn == arn && m.definition == definition);
        if let Some(machine) = known {
            return machine.row;
        }
        let row = MachineRow { id: number(self.machines.len() + 1), created_at: now };
        let (arn, definition) = (arn.to_owned(), definition.to_owned());
        self.machines.push(Machine { row, arn, definition });
        row
    }

    fn machine(&self, id: i64) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.row.id == id)
    }

    fn newest_time(&self) -> Option<Timestamp> {
        let rows = self.rows.iter();
        let times = rows.flat_map(|record| [Some(record.started_at), record.stopped_at]).flatten();
        let events = self.histories.iter().filter(|((id, _), _)| self.is_running(*id));
        times.chain(events.map(|(_, kept)| kept.at)).max()
    }

    fn is_running(&self, id: i64) -> bool {
        self.rows.iter().any(|record| record.id == id && record.status == RUNNING)
    }

    fn start(&mut self, machine: i64, new: NewExecution) -> Inserted {
        if let Some(there) = self.rows.iter().find(|record| record.arn == new.arn) {
            let is_same = there.status == RUNNING && there.input == new.input;
            return if is_same { Inserted::Started(there.started_at) } else { Inserted::Taken };
        }
        let machine_arn = self.machine(machine).map(|machine| machine.arn.clone());
        self.rows.push(Record {
            id: number(self.rows.len() + 1),
            arn: new.arn,
            name: new.name,
            machine,
            machine_arn: machine_arn.unwrap_or_default(),
            status: RUNNING.to_owned(),
            input: new.input,
            output: None,
            error: None,
            cause: None,
            started_at: new.started_at,
            stopped_at: None,
            redriven: None,
            token_seed: new.token_seed,
        });
        Inserted::Started(new.started_at)
    }

    fn last_event(&self, execution: i64) -> u64 {
        let mut events = self.histories.range((execution, 0)..=(execution, u64::MAX));
        events.next_back().map_or(0, |((_, id), _)| *id)
    }

    fn redrive(&mut self, execution: i64, id: u64, kept: Kept, token: Option<String>) -> bool {
        let last = self.last_event(execution);
        let at = kept.at;
        let Some(record) = self.rows.iter_mut().find(|record| record.id == execution) else {
            return false;
        };
        let before = record.redriven.as_ref();
        if [RUNNING, "SUCCEEDED"].contains(&record.status.as_str()) || id != last + 1 {
            return id <= last && before.is_some_and(|redriven| redriven.at == at);
        }
        let count = before.map_or(0, |redriven| redriven.count) + 1;
        *record = Record {
            status: RUNNING.to_owned(),
            output: None,
            error: None,
            cause: None,
            stopped_at: None,
            redriven: Some(Redriven { count, at, token }),
            ..record.clone()
        };
        self.histories.insert((execution, id), kept);
        true
    }

    fn append(&mut self, execution: i64, events: Vec<(u64, Kept)>, ended: Option<Ended>) {
        let last = events.last().map_or(0, |(id, _)| *id);
        for (id, kept) in events {
            self.histories.entry((execution, id)).or_insert(kept);
        }
        let running = |record: &&mut Record| record.id == execution && record.status == RUNNING;
        if let Some((outcome, at)) = ended
            && self.last_event(execution) == last
            && let Some(record) = self.rows.iter_mut().find(running)
        {
            record.status = outcome.status().to_owned();
            record.stopped_at = Some(at);
            match outcome {
                Outcome::Succeeded(output) => record.output = Some(output),
                Outcome::Failed(failure) | Outcome::Aborted(failure) => {
                    (record.error, record.cause) = (failure.error, failure.cause);
                }
                Outcome::TimedOut => {}
            }
        }
    }

    fn counts(&self) -> Vec<(String, i64)> {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for record in &self.rows {
            *counts.entry(record.status.clone()).or_default() += 1;
        }
        counts.into_iter().collect()
    }

    fn history(&self, execution: i64, after: i64, reverse: bool, limit: usize) -> Vec<String> {
        let events = self.histories.range((execution, 0)..=(execution, u64::MAX));
        let body = |(_, kept): (_, &Kept)| kept.body.clone();
        let is_beyond = |id: u64| if reverse { number(id) < after } else { number(id) > after };
        let events = events.filter(|((_, id), _)| is_beyond(*id));
        if reverse {
            events.rev().take(limit).map(body).collect()
        } else {
            events.take(limit).map(body).collect()
        }
    }
}

type Ended = (Outcome, Timestamp);

fn number(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

impl ExecutionStore for SimStore {
    async fn open_machine(
        &self,
        arn: &str,
        definition: &str,
        now: Timestamp,
    ) -> Result<MachineRow, Error> {
        let (arn, definition) = (arn.to_owned(), definition.to_owned());
        self.change(move |executions| executions.open_machine(&arn, &definition, now)).await
    }

    async fn definition(&self, machine: i64) -> Result<String, Error> {
        let read = self.look(|executions| {
            executions.machine(machine).map(|machine| machine.definition.clone())
        });
        read.await?.ok_or_else(|| Error::Unavailable("no such machine".into()))
    }

    async fn holds_executions(&self) -> Result<bool, Error> {
        self.look(|_| true).await
    }

    async fn newest_time(&self) -> Result<Option<Timestamp>, Error> {
        self.look(|executions| executions.newest_time()).await
    }

    async fn start_all(
        &self,
        machine: i64,
        new: Vec<NewExecution>,
    ) -> Result<Vec<Inserted>, Error> {
        self.change(move |executions| {
            new.into_iter().map(|new| executions.start(machine, new)).collect()
        })
        .await
    }

    async fn append(
        &self,
        execution: i64,
        events: &[Event],
        ended: Option<&(Outcome, Timestamp)>,
    ) -> Result<(), Error> {
        let keep = |event: &Event| {
            let body = serde_json::to_string(event).map_err(|e| Error::Refused(e.into()))?;
            Ok((event.id, Kept { at: event.timestamp, body }))
        };
        let events = events.iter().map(keep).collect::<Result<Vec<_>, Error>>()?;
        let ended = ended.cloned();
        self.change(move |executions| executions.append(execution, events, ended)).await
    }

    async fn redrive(
        &self,
        execution: i64,
        event: &Event,
        token: Option<&str>,
    ) -> Result<bool, Error> {
        let body = serde_json::to_string(event).map_err(|e| Error::Refused(e.into()))?;
        let (id, kept) = (event.id, Kept { at: event.timestamp, body });
        let token = token.map(str::to_owned);
        self.change(move |executions| executions.redrive(execution, id, kept, token)).await
    }

    async fn running_after(&self, after: i64, limit: usize) -> Result<Vec<Record>, Error> {
        self.look(|executions| {
            let rows = executions.rows.iter().filter(|r| r.id > after && r.status == RUNNING);
            rows.take(limit).cloned().collect()
        })
        .await
    }

    async fn running(&self, ids: &[i64]) -> Result<Vec<Record>, Error> {
        self.look(|executions| {
            let rows = executions.rows.iter();
            rows.filter(|r| ids.contains(&r.id) && r.status == RUNNING).cloned().collect()
        })
        .await
    }

    async fn find(&self, arn: &str) -> Result<Option<Record>, Error> {
        self.look(|executions| executions.rows.iter().find(|r| r.arn == arn).cloned()).await
    }

    async fn newest_first(
        &self,
        status: Option<&str>,
        before: i64,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        self.look(|executions| {
            let rows = executions.rows.iter().rev().filter(|r| r.id < before);
            let wanted = rows.filter(|r| status.is_none_or(|status| r.status == status));
            wanted.take(limit).cloned().collect()
        })
        .await
    }

    async fn counts(&self) -> Result<Vec<(String, i64)>, Error> {
        self.look(|executions| executions.counts()).await
    }

    async fn history(
        &self,
        execution: i64,
        after: i64,
        reverse: bool,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        self.look(|executions| executions.history(execution, after, reverse, limit)).await
    }
}
