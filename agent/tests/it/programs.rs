//! Agents that are programs, over a real journal: the suite that every kit passes.

mod long;

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::host::{Config, Host};
use agent::model::Models;
use agent::program::describe::describe;
use agent::settings::Defaults;
use agent::tool::{Servers, Timeouts};
use graph::agent::Agent;
use graph::program::Launch;
use graph::question::{Answer, Decision};
use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::id::{Runner, SessionId};
use journal::item::Item;
use journal::sqlite::{Durability, SqliteStore};
use journal::step::{EffectKind, Ending, Step, StepBody};
use journal::store::{Condition, Query, Store as _, query_all};
use journal::{key, read};
use serde_json::{Value, json};
use workflow::contract::AgentRequest;
use workflow::trigger::Trigger;

use crate::host::callbacks;

/// Generous timeout for a loaded machine.
const DEADLINE: Duration = Duration::from_secs(100);

/// A kit: the program of the suite in its language.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kit {
    Python,
    TypeScript,
    Rust,
}

impl Kit {
    /// The kits whose language is installed.
    fn all() -> Vec<Self> {
        let mut kits = vec![Self::Python];
        kits.extend(node().map(|_| Self::TypeScript));
        if rust().exists() {
            kits.push(Self::Rust);
        } else {
            eprintln!("skipped: build it with `cargo build -p daybook-kit --examples`");
        }
        kits
    }

    fn launch(self) -> Launch {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let kit = |name: &str| here.join("../sdk").join(name).to_string_lossy().into_owned();
        let (command, environment) = match self {
            Self::Python => {
                let environment =
                    [("PYTHONPATH", kit("python")), ("PYTHONDONTWRITEBYTECODE", "1".to_owned())];
                (["python3", "it.py"].map(str::to_owned).to_vec(), environment.to_vec())
            }
            Self::TypeScript => {
                let node = node().unwrap().to_string_lossy().into_owned();
                (vec![node, "it.mjs".to_owned()], vec![("KIT", kit("typescript"))])
            }
            Self::Rust => (vec![rust().to_string_lossy().into_owned()], Vec::new()),
        };
        let environment = environment.into_iter().map(|(name, value)| (name.to_owned(), value));
        Launch {
            command,
            folder: here.join("tests/it/programs"),
            environment: environment.collect(),
            idle: Duration::from_secs(6),
        }
    }

    async fn agent(self) -> Agent {
        let launch = self.launch();
        Agent::program(describe(&launch).await.unwrap(), launch).unwrap()
    }
}

#[expect(clippy::disallowed_methods, reason = "how the harness names Node")]
fn node() -> Option<PathBuf> {
    std::env::var_os("DAYBOOK_TEST_NODE").map(PathBuf::from)
}

/// The example of the Rust kit; cargo builds it with the tests.
fn rust() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples/it")
}

/// A session of a program.
struct World {
    folder: tempfile::TempDir,
    store: SqliteStore,
    host: Host<SqliteStore>,
    session: SessionId,
    agent: Agent,
}

impl World {
    fn new(agent: Agent, session: SessionId) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(&folder.path().join("journal.db"), Durability::Relaxed).unwrap();
        let config = Config {
            agents: [agent.clone()].into(),
            callbacks: callbacks(),
            progress: Default::default(),
            clock: Clock::system(),
            servers: Servers::default(),
            timeouts: Timeouts { connect: DEADLINE, init: DEADLINE },
            models: Models::default(),
            defaults: Defaults::default(),
        };
        let host = Host::new(store.clone(), config);
        Self { folder, store, host, session, agent }
    }

    async fn of(kit: Kit) -> Self {
        Self::new(kit.agent().await, SessionId::fresh())
    }

    /// Another journal with the first records of this one.
    async fn cut(&self, after: usize) -> Self {
        let world = Self::new(self.agent.clone(), self.session.clone());
        let pk = key::session(&self.session);
        let items = query_all(&self.store, Query::prefix(pk, key::STEP_PREFIX)).await.unwrap();
        for item in &items[..after] {
            world.store.put(Item::clone(item), Condition::Absent).await.unwrap();
        }
        world
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("done.log")
    }

    /// What the program did itself.
    fn did(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The process that the program named.
    async fn pid(&self) -> u32 {
        let waiting = async {
            loop {
                let did = self.did();
                if let Some(pid) = did.iter().find_map(|line| line.strip_prefix("pid ")) {
                    return pid.parse().unwrap();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.unwrap()
    }

    async fn steps(&self) -> Vec<Step<Value>> {
        read::resolved_steps(&self.store, &self.session).await.unwrap()
    }

    /// Appends a step as another process would.
    async fn append(&self, epoch: impl FnOnce(u32) -> u32, body: StepBody<Value>) {
        let steps = self.steps().await;
        let newest = steps.last().unwrap();
        let author = Author {
            session: self.session.clone(),
            runner: Runner::fresh("test"),
            expires_at: 4_000_000_000,
        };
        let hlc = Hlc::new(Clock::system(), newest.stamp);
        let (head, epoch) = (Head::after(newest), epoch(newest.epoch));
        append(&self.store, &hlc, &author, &head, epoch, body).await.unwrap();
    }

    async fn begin(&self, case: &str, count: u32, budget: Value) {
        let input = json!({ "case": case, "count": count, "log": self.log() });
        let detail = json!({ "agent": "it", "input": input, "budget": budget });
        let supersedes = self.steps().await.last().map_or(0, |step| step.epoch);
        let request = AgentRequest {
            session_id: self.session.clone(),
            invocation_id: "1".to_owned(),
            attempt: 10 * (supersedes + 1),
            supersedes,
            trigger: Trigger::parse(&detail).unwrap(),
            expires_at: 4_000_000_000,
            seen: Stamp::default(),
        };
        let answer = self.host.invoke(&serde_json::to_vec(&request).unwrap()).await;
        assert_eq!(
            (answer.status, &answer.body["outcome"]),
            (200, &json!("accepted")),
            "{answer:?}"
        );
    }

    async fn done(&self) {
        let waiting = async {
            while self.host.has(&self.session) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.unwrap();
    }

    /// Runs the session to its end. A person approves everything.
    async fn ended(
        &self,
        case: &str,
        count: u32,
        budget: Value,
    ) -> (Ending, Option<String>, Value) {
        loop {
            let steps = self.steps().await;
            match steps.last().map(|step| (step.seq, &step.body)) {
                Some((_, StepBody::End { ending, error, payload, .. })) => {
                    let error = error.as_ref().map(ToString::to_string);
                    return (*ending, error, payload.clone());
                }
                Some((seq, StepBody::Ask { .. })) => {
                    let answer = Answer::new(seq, Decision::Approve);
                    self.append(|epoch| epoch, answer.body()).await;
                }
                _ => {}
            }
            self.begin(case, count, budget.clone()).await;
            self.done().await;
        }
    }

    async fn completed(&self, case: &str, count: u32) -> Value {
        let (ending, error, result) = self.ended(case, count, json!({})).await;
        assert_eq!((ending, error), (Ending::Completed, None), "{case}");
        result
    }

    async fn failed(&self, case: &str, count: u32, budget: Value) -> String {
        let (ending, error, _) = self.ended(case, count, budget).await;
        assert_eq!(ending, Ending::Failed, "{case}");
        error.unwrap()
    }
}

fn outcomes(steps: &[Step<Value>]) -> Vec<(String, u32)> {
    let effects = steps.iter().filter(|step| matches!(step.body, StepBody::Outcome { .. }));
    let effects = effects.filter_map(|step| step.body.effect());
    let mut names: Vec<_> = effects.map(|effect| (effect.node.clone(), effect.call)).collect();
    names.sort_by_key(|(_, ordinal)| *ordinal);
    names
}

/// What the program does for an effect, as its log names it.
fn work_of(node: &str) -> Option<&'static str> {
    match node {
        "first" => Some("work 1"),
        "second" => Some("work 2"),
        "third" => Some("work 3"),
        "fails" => Some("fail"),
        "last" => Some("work 4"),
        _ => None,
    }
}

/// Waits until a process that was killed is gone.
async fn is_gone(pid: u32) -> bool {
    for _ in 0..200 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        // Its new parent may not have reaped it yet.
        if stat.map_or(true, |stat| stat.contains(") Z ")) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

/// A runner that dies between any two records loses nothing: this is each crash point of the journal.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_resumes_from_every_prefix_and_repeats_nothing() {
    for kit in Kit::all() {
        let whole = World::of(kit).await;
        let result = whole.completed("everything", 0).await;
        // One language writes a whole fraction as `1.0`, another as `1`.
        let alike = |value: &Value| value.to_string().replace(".0", "");
        let said = json!([
            { "n": 1, "half": 0.5 },
            [{ "n": 2, "half": 1 }, { "n": 3, "half": 1.5 }],
            "ValueError: no such thing",
            "hello",
            "approve",
            { "n": 4, "half": 2 },
        ]);
        assert_eq!(alike(&result["said"]), alike(&said), "{kit:?}");
        let steps = whole.steps().await;
        for cut in 1..steps.len() {
            let world = whole.cut(cut).await;
            // The input is that of the claim, so both write to one log.
            let before = whole.did().len();
            let resumed = world.completed("everything", 0).await;
            assert_eq!(alike(&resumed["said"]), alike(&said), "{kit:?}, cut after {cut}");
            let learned = outcomes(&world.steps().await);
            assert_eq!(learned, outcomes(&steps), "{kit:?}, cut after {cut}");
            let journaled = outcomes(&steps[..cut]);
            let missing = learned.iter().filter(|effect| !journaled.contains(effect));
            let mut expected: Vec<_> = missing.filter_map(|(node, _)| work_of(node)).collect();
            let mut did = whole.did().split_off(before);
            expected.sort_unstable();
            did.sort_unstable();
            assert_eq!(did, expected, "{kit:?}, cut after {cut}: nothing is performed twice");
        }
    }
}

/// Whether the effect was performed is unknown then, so it must not be performed again.
#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_outcome_that_cannot_be_read_ends_the_session() {
    let whole = World::of(Kit::Python).await;
    whole.completed("everything", 0).await;
    let steps = whole.steps().await;
    let is_first = |step: &Step<Value>| {
        step.body.effect().is_some_and(|effect| effect.node == "first")
            && matches!(step.body, StepBody::Outcome { .. })
    };
    let at = steps.iter().position(is_first).unwrap();
    for other in [json!({ "nonsense": 1 }), json!({ "woke": {} })] {
        let world = whole.cut(at).await;
        let before = whole.did();
        let mut body = steps[at].body.clone();
        if let StepBody::Outcome { payload, .. } = &mut body {
            *payload = other;
        }
        world.append(|epoch| epoch, body).await;
        world.failed("everything", 0, json!({})).await;
        assert_eq!(whole.did(), before, "nothing is performed again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_critical_step_has_an_intent_and_a_question_after_a_crash() {
    for kit in Kit::all() {
        let whole = World::of(kit).await;
        whole.completed("everything", 0).await;
        let steps = whole.steps().await;
        let intents: Vec<_> = (0..steps.len())
            .filter(|index| matches!(steps[*index].body, StepBody::Intent { .. }))
            .collect();
        assert_eq!(intents.len(), 1, "{kit:?}");
        let world = whole.cut(intents[0] + 1).await;
        let before = whole.did();
        world.begin("everything", 0, json!({})).await;
        world.done().await;
        let resumed = world.steps().await;
        let StepBody::Ask { payload, .. } = &resumed.last().unwrap().body else {
            panic!("{:?}", resumed.last())
        };
        let prompt = payload["question"]["prompt"].as_str().unwrap();
        assert!(prompt.starts_with("Step: last") && prompt.contains("is not known"), "{prompt}");
        assert_eq!(whole.did(), before, "{kit:?}: it is not performed before the answer");
        let said = Answer {
            text: Some("paid".to_owned()),
            ..Answer::new(resumed.last().unwrap().seq, Decision::Say)
        };
        world.append(|epoch| epoch, said.body()).await;
        let result = world.completed("everything", 0).await;
        assert_eq!(result["said"][5], "paid", "{kit:?}");
        assert_eq!(whole.did(), before, "{kit:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_misbehaves_fails_with_a_reason() {
    for kit in Kit::all() {
        for (case, error) in [
            ("exit", "ProgramError: Exited - the program exited without `end`: exit status: 3"),
            ("hang", "ProgramError: Idle - the program asked for nothing in 6 s"),
            ("garbage", "ProgramError: Malformed - stdout has a line that is no frame, `hello`"),
            ("flood", "ProgramError: FrameTooLarge"),
            ("fork", "ProgramError: Exited - the program exited without `end`: exit status: 4"),
            ("nonsense", "ProgramError: "),
        ] {
            let world = World::of(kit).await;
            let found = world.failed(case, 0, json!({})).await;
            assert!(found.starts_with(error), "{kit:?}, {case}: {found}");
            match case {
                "exit" => assert!(found.contains("the end is near"), "{kit:?}: {found}"),
                "fork" => assert!(is_gone(world.pid().await).await, "{kit:?}: its child is left"),
                // A Rust error has no line.
                "nonsense" if kit == Kit::Rust => {
                    assert!(found.contains("Error - no such case: nonsense"), "{found}");
                }
                "nonsense" => assert!(found.contains("no such case: nonsense (it."), "{found}"),
                _ => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_asks_for_another_effect_diverges() {
    for kit in Kit::all() {
        let whole = World::of(kit).await;
        whole.completed("count", 3).await;
        // Another program's first effect: the second of this one.
        let mut body = whole.steps().await[2].body.clone();
        let StepBody::Outcome { effect, .. } = &mut body else { panic!("{body:?}") };
        assert_eq!((effect.node.as_str(), effect.kind, effect.call), ("n", EffectKind::Tools, 2));
        effect.call = 1;
        let other = whole.cut(1).await;
        other.append(|epoch| epoch, body).await;
        let found = other.failed("count", 3, json!({})).await;
        let start = "ReplayError: Diverged - step 2 recorded effect 1, tools `n` digest ";
        assert!(found.starts_with(start), "{kit:?}: {found}");
        assert!(
            found.contains("under version 1; the program, version 1, asks for tools `n`"),
            "{found}"
        );
        let line = if kit == Kit::Rust { " at sdk/rust/examples/it.rs:" } else { " at it." };
        assert!(found.contains(line), "{kit:?}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_whose_session_was_claimed_again_is_stopped() {
    for kit in Kit::all() {
        let world = World::of(kit).await;
        world.begin("hang in a step", 3, json!({})).await;
        let pid = world.pid().await;
        let claim = StepBody::Claim {
            supersedes: 1,
            agent: "it".to_owned(),
            graph_version: "1".to_owned(),
            input: None,
        };
        world.append(|epoch| epoch + 1, claim).await;
        world.done().await;
        let steps = world.steps().await;
        assert!(matches!(steps.last().unwrap().body, StepBody::Claim { .. }), "{steps:?}");
        assert!(is_gone(pid).await, "{kit:?}: the program still runs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_stays_within_its_budget() {
    for kit in Kit::all() {
        let world = World::of(kit).await;
        let found = world.failed("chats", 5, json!({ "calls": 3 })).await;
        assert!(found.starts_with("BudgetError: "), "{kit:?}: {found}");
        assert_eq!(outcomes(&world.steps().await).len(), 3, "{kit:?}");
        let world = World::of(kit).await;
        let found = world.failed("hang in a step", 60, json!({ "seconds": 2 })).await;
        assert!(found.starts_with("BudgetError: "), "{kit:?}: {found}");
        assert!(is_gone(world.pid().await).await, "{kit:?}: the program still runs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_at_once_have_the_order_of_the_program() {
    for kit in Kit::all() {
        let world = World::of(kit).await;
        let found = world.completed("gather", 300).await["found"].clone();
        assert_eq!(found, json!((0..300).collect::<Vec<_>>()), "{kit:?}");
    }
}
