//! Runs of the driver over the journal. The graph's policy answers every effect, so only Daybook's own
//! work is measured.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use agent::driver::{Driven, Driver};
use agent::model::Models;
use agent::progress::Broadcast;
use agent::session::ClaimedSession;
use agent::tool::{Servers, Timeouts, Toolbox};
use agent::trace::Spans;
use graph::agent::{Agent, Opening, Settings};
use graph::budget::Budget;
use graph::definition::{Attempts, Finish, Graph, InputError, Node, Route, Scope};
use graph::effect::{Chat, Effect, Reply};
use journal::chain::{Author, Head, append};
use journal::clock::{Clock, Hlc, Stamp};
use journal::id::{Runner, SessionId};
use journal::sqlite::SqliteStore;
use journal::step::StepBody;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{Pace, RECORD_BYTES, in_parallel, scratch, store};

/// No effect takes time here.
const AT_ONCE: Duration = Duration::from_secs(30);

/// The agent.
pub static STEPS: LazyLock<Agent> = LazyLock::new(|| Agent::of(&GRAPH));

/// How many effects, and how long the text is that each brings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    steps: u32,
    bytes: usize,
    /// Seconds of sleep before each of them, by the stack's clock.
    #[serde(default)]
    nap_s: u64,
    #[serde(default)]
    napped: bool,
    #[serde(default)]
    done: u32,
}

static GRAPH: Graph<Work> = Graph {
    name: "steps",
    version: "1",
    summary: "So many effects that need nobody.",
    start: "work",
    nodes: &[Node {
        name: "work",
        to: &["work"],
        ask: |work, context| match work.nap_s {
            0 => Effect::Chat(Chat::default()),
            _ if work.napped => Effect::Chat(Chat::default()),
            nap => Effect::Sleep(context.now.after(Duration::from_secs(nap))),
        },
        fold: |work, _| {
            if work.nap_s > 0 {
                work.napped = !work.napped;
                if work.napped {
                    return Route::To("work");
                }
            }
            work.done += 1;
            if work.done < work.steps {
                Route::To("work")
            } else {
                Route::End(Finish::Completed(Value::Null))
            }
        },
    }],
    init: |input, _| {
        let work = serde_json::from_value(input.clone());
        work.map_err(|_| InputError::new("input", "how many steps, and how many bytes each"))
    },
    budget: Budget::UNLIMITED,
    scope: Scope::Session,
    on_limit: |_, _| Route::End(Finish::Completed(Value::Null)),
    on_limit_to: &[],
    policy: |work, _| Reply::says(text(work.done, work.bytes)),
    attempts: Attempts { chat: 1, tool: 1 },
    at_most_once: &[],
    critical: &[],
    servers: &[],
    tool_timeout_s: 30,
};

/// A text that no compression makes much shorter: what a model says is not the letter x.
pub fn text(seed: u32, bytes: usize) -> String {
    let mut state = u64::from(seed) + 1;
    let letter = || {
        // xorshift64. Source: Marsaglia, "Xorshift RNGs", 2003.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b" abcdefghijklmnopqrstuvwxyzABCDE"[usize::try_from(state >> 59).unwrap()])
    };
    std::iter::repeat_with(letter).take(bytes).collect()
}

/// Runs of ten steps a second, so many at once.
pub async fn of_ten(runs: usize, within: Duration) -> Pace {
    let folder = scratch();
    let store = store(folder.path());
    in_parallel(runs, move |_| {
        let store = store.clone();
        async move {
            let (began, mut done) = (Instant::now(), 0);
            while began.elapsed() < within {
                run(&store, 10, RECORD_BYTES).await;
                done += 1;
            }
            done
        }
    })
    .await
}

/// One claim, so many effects, and an end.
pub async fn run(store: &SqliteStore, steps: u32, bytes: usize) -> SessionId {
    let author = Author {
        session: SessionId::fresh(),
        runner: Runner::fresh("agent"),
        expires_at: i64::from(u32::MAX),
    };
    let id = author.session.clone();
    let hlc = Arc::new(Hlc::new(Clock::system(), Stamp::default()));
    let session = ClaimedSession { store: store.clone(), hlc, author, epoch: 1, agent: "steps" };
    let input = json!({ "steps": steps, "bytes": bytes });
    let opening = Opening { input, settings: Settings::default() };
    let claim = StepBody::Claim {
        supersedes: 0,
        agent: STEPS.name().to_owned(),
        graph_version: STEPS.version().to_owned(),
        input: Some(opening.payload()),
    };
    let genesis = Head::genesis();
    let claimed = append(store, &session.hlc, &session.author, &genesis, 1, claim).await.unwrap();
    let servers = Servers::bundled("/nonexistent".as_ref(), packs::all());
    let timeouts = Timeouts { connect: AT_ONCE, init: AT_ONCE };
    let models = Models::default();
    let driver = Driver {
        toolbox: Arc::new(Toolbox::new(
            session.clone(),
            servers,
            timeouts,
            models.clone(),
            &Broadcast::default(),
            &Value::Null,
        )),
        models,
        session,
        head: Head::after(&claimed),
        requests: graph::request::Log::default(),
        run: STEPS.resume(&[claimed]).unwrap(),
        tool_timeout: AT_ONCE,
        stop: CancellationToken::new(),
        hands_over: Default::default(),
        spans: Spans::default(),
        profile: STEPS.profile(),
        local: agent::program::Local::default(),
    };
    match Box::pin(driver.drive()).await {
        Driven::Ended(end) => assert_eq!(end.seq, steps + 2),
        other => panic!("{other:?}"),
    }
    id
}
