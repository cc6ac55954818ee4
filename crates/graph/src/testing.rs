//! Runs agents in memory, for tests. A [`World`] performs effects; a [`TestSession`] keeps the steps,
//! like a journal.
//!
//! [`script::Script`] is the short form for an agent's tests: it scripts the outcomes, and one call
//! runs a session, resumes it from every prefix, or tries every smaller budget.
//!
//! All functions panic when the test fails.

pub mod script;

use std::collections::BTreeMap;
use std::time::Duration;

use journal::clock::Stamp;
use journal::id::{Runner, SessionId};
use journal::item::Hash;
use journal::step::{EffectKind, EffectRef, Step, StepBody, Usage};
use serde_json::Value;

use crate::agent::{Agent, Opening, Settings};
use crate::definition::{Finish, InputError};
use crate::effect::{Chat, ToolCall};
use crate::error::{FoldError, ResumeError, StartError};
use crate::next::{Intent, Next, Request, Work};
use crate::outcome::{Brought, Failure};
use crate::question::{Answer, Decision, OpenQuestion};
use crate::run::Run;

/// Steps after which a session counts as endless.
pub const STEPS_MAX: u32 = 2_000;

/// Performs effects: tools, models and people. The policy is the agent's own.
pub struct World<'a> {
    tools: Performer<'a, ToolCall, Brought>,
    models: Performer<'a, Chat, (Brought, Usage)>,
    people: Performer<'a, OpenQuestion, Answer>,
}

type Performer<'a, What, Then> = Box<dyn FnMut(&What) -> Then + 'a>;

impl<'a> World<'a> {
    /// A world with these tools, no model, and people who approve everything.
    pub fn new(tools: impl FnMut(&ToolCall) -> Brought + 'a) -> Self {
        let no_model = |_: &Chat| {
            let failure = Failure::not_sent("unknown", "there is no model");
            (Brought::Failure(failure), Usage::default())
        };
        Self { tools: Box::new(tools), models: Box::new(no_model), people: Box::new(approve) }
    }

    /// Adds a model.
    #[must_use]
    pub fn models(self, models: impl FnMut(&Chat) -> (Brought, Usage) + 'a) -> Self {
        Self { models: Box::new(models), ..self }
    }

    /// Sets the people. They are not asked whether to repeat a call with an unknown outcome: it is
    /// repeated.
    #[must_use]
    pub fn people(self, people: impl FnMut(&OpenQuestion) -> Answer + 'a) -> Self {
        Self { people: Box::new(people), ..self }
    }
}

fn approve(open: &OpenQuestion) -> Answer {
    let offered = open.question.choices.contains(&Decision::Approve);
    let answer = Answer::new(open.question_id, Decision::Approve);
    if offered { answer } else { Answer::expired(open.question_id) }
}

/// A session in memory: its steps, one second apart, and the run that folded them.
#[derive(Debug)]
pub struct TestSession {
    agent: Agent,
    run: Run,
    steps: Vec<Step<Value>>,
    epoch: u32,
    now: Stamp,
    performed: Vec<EffectRef>,
}

impl TestSession {
    /// A session that was just claimed.
    ///
    /// # Errors
    /// If the input is not valid for this agent.
    ///
    /// # Panics
    /// If the agent's graph is invalid, with the message of [`Agent::check`].
    pub fn start(agent: &Agent, input: Value, settings: Settings) -> Result<Self, InputError> {
        agent.check().unwrap_or_else(|invalid| panic!("{invalid}"));
        let run = match agent.start(&input, &settings) {
            Ok(run) => run,
            Err(StartError::Input(error)) => return Err(error),
            Err(StartError::Panicked(panicked)) => panic!("{panicked}"),
        };
        let opening = Opening { input, settings };
        let mut session = Self::of(agent, run, Vec::new());
        session.claim(Some(opening.payload()));
        Ok(session)
    }

    /// A session whose runner was lost after `steps`; claimed again unless it is waiting or has
    /// ended.
    ///
    /// # Errors
    /// As [`Agent::resume`].
    pub fn resume(agent: &Agent, steps: Vec<Step<Value>>) -> Result<Self, ResumeError> {
        let run = agent.resume(&steps)?;
        let mut session = Self::of(agent, run, steps);
        if !matches!(session.run.next(), Next::Wait(_) | Next::Closed) {
            session.claim(None);
        }
        Ok(session)
    }

    fn of(agent: &Agent, run: Run, steps: Vec<Step<Value>>) -> Self {
        let now = steps.last().map_or(Stamp::from_millis(1_700_000_000_000), |step| step.stamp);
        let epoch = steps.last().map_or(0, |step| step.epoch);
        Self { agent: agent.clone(), run, steps, epoch, now, performed: Vec::new() }
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    pub fn steps(&self) -> &[Step<Value>] {
        &self.steps
    }

    /// The performed effects, in order: chats and tool calls.
    pub fn performed(&self) -> &[EffectRef] {
        &self.performed
    }

    /// Time of the newest step.
    pub fn now(&self) -> Stamp {
        self.now
    }

    /// Advances time before the next step.
    pub fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
    }

    /// Claims the session for a new runner.
    pub fn claim(&mut self, input: Option<Value>) {
        let supersedes = self.epoch;
        self.epoch += 1;
        self.append(StepBody::Claim {
            supersedes,
            agent: self.agent.name().to_owned(),
            graph_version: self.agent.version().to_owned(),
            input,
        });
    }

    /// Journals and folds a step.
    ///
    /// # Panics
    /// It cannot be folded.
    pub fn append(&mut self, body: StepBody<Value>) {
        self.try_append(body).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Journals and folds a step, one second after the newest.
    ///
    /// # Errors
    /// As [`Run::fold`].
    pub fn try_append(&mut self, body: StepBody<Value>) -> Result<(), FoldError> {
        self.pass(Duration::from_secs(1));
        let seq = self.run.seq() + 1;
        let step = step(seq, self.epoch, self.now, body);
        self.run.fold(&step)?;
        self.steps.push(step);
        Ok(())
    }

    /// Runs the session to its end.
    ///
    /// # Panics
    /// It does not end within [`STEPS_MAX`] steps.
    pub fn drive(&mut self, world: &mut World<'_>) -> Finish {
        while self.run.seq() < STEPS_MAX {
            match self.run.next() {
                Next::Claim => panic!("a session is claimed when it is made"),
                Next::Perform(requests) => self.perform(&requests[0], world),
                Next::Note(note) => self.append(note.body()),
                Next::Ask(ask) => self.append(ask.body()),
                Next::Wait(open) => {
                    if open.question.is_sleep() {
                        self.now = self.now.max(open.expires_at);
                    }
                    let answer = self.answer(&open, world);
                    self.append(answer.body());
                    self.claim(None);
                }
                Next::Sleep(sleep) => {
                    let started_at = self.now;
                    self.now = self.now.max(sleep.until);
                    self.append(sleep.body(started_at));
                }
                Next::End(finish) => {
                    let end = self.run.end(finish.clone());
                    self.append(end);
                    return finish;
                }
                Next::Idle => panic!("a program is tested with its kit"),
                Next::Closed => panic!("the session has ended before"),
            }
        }
        panic!("no end after {STEPS_MAX} steps");
    }

    /// Performs a request and journals its outcome, after an intent if one is needed.
    pub fn perform(&mut self, request: &Request, world: &mut World<'_>) {
        let (brought, usage) = match &request.work {
            Work::Tool { intent: Intent::Needed, .. } => return self.append(request.intent()),
            Work::Tool { call, .. } => ((world.tools)(call), Usage::default()),
            Work::Model { chat, .. } => (world.models)(chat),
            Work::Policy { chat } => {
                let reply = self.run.policy(chat);
                (reply.map_or_else(Brought::Failure, Brought::Reply), Usage::default())
            }
            Work::Local { .. } | Work::Sleep { .. } | Work::Probe(_) => {
                panic!("a program is tested with its kit")
            }
        };
        self.performed.push(request.effect.clone());
        let started_at = request.not_before.map_or(self.now, |time| time.max(self.now));
        self.now = started_at;
        self.append(request.outcome(brought, started_at, usage));
    }

    fn answer(&self, open: &OpenQuestion, world: &mut World<'_>) -> Answer {
        let ask = self.steps.iter().find(|step| step.seq == open.question_id);
        let about = ask.and_then(|step| step.body.payload()).map(|payload| &payload["about"]);
        if about.is_some_and(|about| about == "doubt") {
            return Answer::new(open.question_id, Decision::Approve);
        }
        if open.question.is_sleep() {
            Answer::expired(open.question_id)
        } else {
            (world.people)(open)
        }
    }
}

/// A step as read from a journal: its payload was serialised and parsed.
pub fn step(seq: u32, epoch: u32, stamp: Stamp, body: StepBody<Value>) -> Step<Value> {
    let session: SessionId =
        "00000000-0000-4000-8000-000000000000".parse().expect("a UUID is a session id");
    let step = Step {
        session,
        seq,
        epoch,
        runner: Runner::named("testing"),
        stamp,
        expires_at: 0,
        prev_hash: Hash::genesis(),
        hash: Hash::genesis(),
        body,
    };
    step.try_map(|payload| serde_json::from_str(&payload.to_string())).expect("JSON reads back")
}

/// Runs a session to its end, then again from every prefix of its steps, as if the runner had been
/// lost after each. Returns the steps of the first run.
///
/// # Panics
/// A resumed run ends differently, or repeats an effect whose outcome it had.
pub fn every_prefix<'a>(
    agent: &Agent,
    input: &Value,
    settings: &Settings,
    world: impl FnMut() -> World<'a>,
) -> Vec<Step<Value>> {
    every_prefix_by(agent, input, settings, world, Clone::clone)
}

/// [`every_prefix`] for agents whose result contains times or step numbers: compares `view` of the
/// end.
///
/// # Panics
/// As [`every_prefix`].
pub fn every_prefix_by<'a, V: PartialEq + std::fmt::Debug>(
    agent: &Agent,
    input: &Value,
    settings: &Settings,
    mut world: impl FnMut() -> World<'a>,
    view: impl Fn(&Finish) -> V,
) -> Vec<Step<Value>> {
    every_prefix_after(agent, input, settings, |_| world(), view)
}

/// [`every_prefix_by`] with worlds that depend on what has happened: each is built from the steps
/// of the prefix.
fn every_prefix_after<'a, V: PartialEq + std::fmt::Debug>(
    agent: &Agent,
    input: &Value,
    settings: &Settings,
    mut world: impl FnMut(&[Step<Value>]) -> World<'a>,
    view: impl Fn(&Finish) -> V,
) -> Vec<Step<Value>> {
    let mut whole = TestSession::start(agent, input.clone(), settings.clone()).expect("an input");
    let end = view(&whole.drive(&mut world(&[])));
    let once = times(whole.performed());
    for length in 1..whole.steps.len() {
        let prefix = whole.steps[..length].to_vec();
        let known = times(outcomes(&prefix));
        let mut world = world(&prefix);
        let mut resumed =
            TestSession::resume(agent, prefix).unwrap_or_else(|error| panic!("{length}: {error}"));
        assert_eq!(view(&resumed.drive(&mut world)), end, "resumed after step {length}");
        for (effect, again) in times(resumed.performed()) {
            let allowed = once.get(&effect).copied().unwrap_or(0);
            let before = known.get(&effect).copied().unwrap_or(0);
            assert!(
                again + before <= allowed,
                "resumed after step {length}: {effect:?} was performed again"
            );
        }
    }
    whole.steps
}

fn outcomes(steps: &[Step<Value>]) -> impl Iterator<Item = &EffectRef> {
    let outcomes = steps.iter().filter(|step| matches!(step.body, StepBody::Outcome { .. }));
    let effects = outcomes.filter_map(|step| step.body.effect());
    effects.filter(|effect| matches!(effect.kind, EffectKind::Chat | EffectKind::Tools))
}

/// Number of occurrences of each effect. A chat's digest contains step numbers, which change after
/// another claim, so chats are counted by node.
fn times<'a>(effects: impl IntoIterator<Item = &'a EffectRef>) -> BTreeMap<(String, String), u32> {
    let mut times = BTreeMap::new();
    for effect in effects {
        let what = match effect.kind {
            EffectKind::Chat => "chat".to_owned(),
            _ => format!("{} {}", effect.digest, effect.call),
        };
        *times.entry((effect.node.clone(), what)).or_insert(0) += 1;
    }
    times
}
