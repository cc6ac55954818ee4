//! Runs the workflow engine: a history, calls in flight, and a process that may die between any two
//! actions and resume from the history.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use asl::definition::Definition;
use asl::execution::{CallbackError, Execution, Next, Outcome, Start, TaskRequest};
use asl::history::{Event, Failure};
use asl::time::Timestamp;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use journal::clock::Clock;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::functions::{SUBSTITUTIONS, perform};
use crate::process::Process;
use crate::world::World;

/// A callback: with an output it ends the task, without one it is a heartbeat.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) token: String,
    pub(crate) output: Option<Value>,
    pub(crate) reply: oneshot::Sender<Result<(), CallbackError>>,
}

/// The end of an execution, and its history.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// `None` if it did not end in time.
    pub outcome: Option<Outcome>,
    pub history: Vec<Event>,
    /// Number of additions to the history.
    pub recorded: usize,
}

type Answer = (u64, Result<Value, Failure>);

#[derive(Debug)]
pub(crate) struct Shell {
    world: World,
    clock: Clock,
    process: Arc<Process>,
    execution: Execution,
    history: Vec<Event>,
    commands: mpsc::UnboundedReceiver<Command>,
    calls: FuturesUnordered<BoxFuture<'static, Answer>>,
    called: BTreeSet<u64>,
    /// Number of additions to the history.
    recorded: usize,
}

fn definition() -> Arc<Definition> {
    static PARSED: OnceLock<Arc<Definition>> = OnceLock::new();
    let parse = || {
        let text = workflow::state_machine::with_substitutions(SUBSTITUTIONS);
        Arc::new(Definition::parse(&text).unwrap_or_else(|e| unreachable!("the text parses: {e}")))
    };
    Arc::clone(PARSED.get_or_init(parse))
}

impl Shell {
    /// An execution of the real workflow, by a state machine with this clock.
    pub(crate) fn new(world: &World, clock: Clock, name: &str, input: &Value) -> Self {
        let arn = format!("arn:aws:states:us-east-1:000000000000:execution:sim:{name}");
        let start = Start {
            execution_arn: arn.clone(),
            execution_name: name.to_owned(),
            role_arn: "arn:aws:iam::000000000000:role/sim".to_owned(),
            state_machine_arn: "arn:aws:states:us-east-1:000000000000:stateMachine:sim".to_owned(),
            state_machine_name: "sim".to_owned(),
            input: input.to_string(),
            started_at: Timestamp::from_nanos(clock.now().nanos()),
            token_seed: format!("{:x}", world.chance().bits()),
        };
        let execution = Execution::new(definition(), start)
            .unwrap_or_else(|error| unreachable!("the input is small JSON: {error}"));
        Self {
            world: world.clone(),
            process: world.process("state-machine"),
            clock,
            execution,
            history: Vec::new(),
            commands: world.inbox(&arn),
            calls: FuturesUnordered::new(),
            called: BTreeSet::new(),
            recorded: 0,
        }
    }

    pub(crate) fn arn(&self) -> &str {
        &self.execution.start().execution_arn
    }

    pub(crate) async fn run(mut self) -> Ended {
        loop {
            match self.execution.next(self.now()) {
                Next::Record(events) => self.record(events),
                Next::RunTasks { requests, wake_at } => {
                    self.ensure_called(requests);
                    self.wait(wake_at).await;
                }
                Next::WaitUntil(at) => self.wait(at).await,
                Next::Done(outcome) => {
                    let (history, recorded) = (self.history, self.recorded);
                    return Ended { outcome: Some(outcome), history, recorded };
                }
            }
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.clock.now().nanos())
    }

    fn record(&mut self, events: Vec<Event>) {
        for event in &events {
            self.execution.apply(event).unwrap_or_else(|e| unreachable!("a proposal fits: {e}"));
        }
        self.history.extend(events);
        self.recorded += 1;
        if self.world.restart_after() == Some(self.recorded) {
            self.restart();
        }
        if self.world.chance().happens(self.world.faults().restart) {
            self.restart();
        }
    }

    /// Resumes from the history, as after a crash: calls in flight are dropped and made again.
    fn restart(&mut self) {
        let start = self.execution.start().clone();
        let now = self.now();
        self.execution = Execution::replay(definition(), start, &self.history)
            .unwrap_or_else(|error| unreachable!("a history replays: {error}"));
        self.calls = FuturesUnordered::new();
        self.called = BTreeSet::new();
        let tokens = self.execution.open_tokens().into_iter().map(str::to_owned);
        for token in tokens.collect::<Vec<_>>() {
            // The token belongs to the open task.
            let _ = self.execution.heartbeat(&token, now);
        }
    }

    fn ensure_called(&mut self, requests: Vec<TaskRequest>) {
        for request in requests {
            if !self.called.insert(request.event_id) {
                continue;
            }
            let (world, process) = (self.world.clone(), Arc::clone(&self.process));
            self.calls.push(Box::pin(async move {
                let call = perform(&world, &process, &request.resource, request.arguments);
                (request.event_id, Box::pin(call).await)
            }));
        }
    }

    async fn wait(&mut self, until: Timestamp) {
        let millis = until.as_millis().saturating_sub(self.now().as_millis()).max(0);
        let pause = Duration::from_millis(millis.unsigned_abs()).min(Duration::from_secs(3_600));
        // The losing branch loses nothing: calls stay in their list, commands in their queue, and a
        // sleep restarts from the clock. `biased` makes the run depend on the seed alone.
        tokio::select! {
            biased;
            Some((event_id, answer)) = self.calls.next(), if !self.calls.is_empty() => {
                self.answered(event_id, answer);
            }
            Some(command) = self.commands.recv() => self.obey(command),
            () = self.process.death() => {
                self.process = self.world.process("state-machine");
                self.restart();
            }
            () = tokio::time::sleep(pause) => {}
        }
    }

    fn answered(&mut self, event_id: u64, answer: Result<Value, Failure>) {
        let now = self.now();
        let proposal = match answer {
            Ok(output) => self.execution.task_succeeded(event_id, &output, now),
            Err(failure) => self.execution.task_failed(event_id, failure, now),
        };
        // The task timed out, or its callback came first: the reply is dropped.
        if let Ok(event) = proposal {
            self.record(vec![event]);
        }
    }

    fn obey(&mut self, command: Command) {
        let now = self.now();
        let done = match &command.output {
            None => self.execution.heartbeat(&command.token, now),
            Some(output) => self
                .execution
                .callback_succeeded(&command.token, output, now)
                .map(|event| self.record(vec![event])),
        };
        // The sender may have died; the command is executed anyway.
        let _ = command.reply.send(done);
    }
}
