//! One run of an agent's function: gives ordinals to effects, makes frames, and gives results back in a fixed order.
//!
//! It does no IO. `serving` connects it to a host's pipes, and `testing` to a script in memory.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::VALUE_BYTES_MAX;
use crate::error::{EffectError, ErrorFrame, Kind};

/// Longest text of a line, in characters.
const LINE_CHARS_MAX: usize = 300;

/// Polls of the agent's function without a pause.
const POLLS_MAX: u32 = 1_000;

/// What the agent's function fails with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raised {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) at: Option<String>,
}

impl Raised {
    pub(crate) fn new(kind: &str, message: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), message: message.into(), at: None }
    }

    fn frame(&self) -> Value {
        let mut frame = json!({"type": self.kind, "message": self.message});
        if let Some(at) = &self.at {
            frame["at"] = json!(at);
        }
        frame
    }
}

/// The effects of a run.
#[derive(Debug, Default)]
pub(crate) struct Program(RefCell<State>);

#[derive(Debug, Default)]
struct State {
    ordinal: u64,
    open: BTreeMap<u64, Open>,
    /// Results that wait for those of lower ordinals.
    arrived: BTreeMap<u64, Value>,
    delivered: u64,
    /// Frames for the host.
    frames: VecDeque<Value>,
    /// The step or policy whose code runs.
    inside: Option<String>,
}

#[derive(Debug)]
struct Open {
    at: String,
    has_work: bool,
    /// The host has asked for the work.
    is_asked: bool,
    /// The agent has dropped the effect's future.
    is_dropped: bool,
    waker: Option<Waker>,
    outcome: Option<Result<Value, EffectError>>,
}

/// What comes next for an effect.
pub(crate) enum Turn {
    /// The host asks for the program's own work.
    Work,
    Done(Result<Value, EffectError>),
}

/// An effect that was asked for.
#[derive(Debug)]
pub(crate) struct Ticket {
    program: Rc<Program>,
    ordinal: u64,
}

impl Program {
    /// Asks for an effect.
    ///
    /// # Panics
    /// Inside of a step's function or a policy: such an effect would not be asked for again in a replay.
    pub(crate) fn ask(
        self: &Rc<Self>,
        mut fields: Value,
        has_work: bool,
        at: &Location<'_>,
    ) -> Result<Ticket, EffectError> {
        let mut state = self.0.borrow_mut();
        let at = line(at);
        if let Some(inside) = state.inside.clone() {
            let kind = fields["kind"].as_str().unwrap_or_default().to_owned();
            drop(state);
            panic!(
                "an effect ({kind}) inside {inside} at {at}; ask for it outside, and pass its result"
            );
        }
        // Before the number is used: a value that cannot be sent is no effect.
        let bytes = fields.to_string().len();
        if bytes > VALUE_BYTES_MAX {
            let message =
                format!("the arguments have {bytes} bytes; at most {VALUE_BYTES_MAX} are possible");
            return Err(EffectError {
                kind: Kind::Arguments,
                category: "arguments".to_owned(),
                message,
                at,
            });
        }
        state.ordinal += 1;
        let ordinal = state.ordinal;
        fields["type"] = json!("effect");
        fields["ordinal"] = json!(ordinal);
        fields["at"] = json!(at);
        state.frames.push_back(fields);
        let open =
            Open { at, has_work, is_asked: false, is_dropped: false, waker: None, outcome: None };
        state.open.insert(ordinal, open);
        Ok(Ticket { program: self.clone(), ordinal })
    }

    /// Takes a frame of the host.
    ///
    /// # Errors
    /// The host breaks the protocol.
    pub(crate) fn receive(&self, frame: Value) -> Result<(), String> {
        let mut state = self.0.borrow_mut();
        let ordinal = frame["ordinal"].as_u64().unwrap_or_default();
        match frame["type"].as_str() {
            Some("run") => {
                let open = state.open.get_mut(&ordinal).filter(|open| open.has_work);
                let open = open.ok_or_else(|| {
                    format!("the host asked for the work of effect {ordinal}, which has none")
                })?;
                open.is_asked = true;
                let waker = open.waker.take();
                if open.is_dropped {
                    let raised = Raised::new("Dropped", "the agent waits for it no longer");
                    state.frames.push_back(performed(ordinal, &Err(raised)));
                }
                drop(state);
                waker.into_iter().for_each(Waker::wake);
                Ok(())
            }
            Some("result") => {
                state.arrived.insert(ordinal, frame);
                Ok(())
            }
            _ => Err(format!("unknown frame of the host: {frame}")),
        }
    }

    /// Gives the next result to the agent, if it has arrived. Results are given in the order of ordinals, one at a time,
    /// each when no task can run: so the ordinals of what is asked for next follow from the program alone.
    pub(crate) fn deliver(&self) -> Result<bool, String> {
        let mut state = self.0.borrow_mut();
        let next = state.delivered + 1;
        let Some(frame) = state.arrived.remove(&next) else { return Ok(false) };
        state.delivered = next;
        let Some(open) = state.open.get_mut(&next) else {
            return Err(format!("a result of effect {next}, which is not open"));
        };
        open.outcome = Some(match frame.get("error") {
            None => Ok(frame.get("ok").cloned().unwrap_or_default()),
            Some(error) => Err(ErrorFrame::deserialize(error)
                .map_err(|error| format!("an unknown error of the host: {error}"))?
                .at(&open.at)),
        });
        let waker = open.waker.take();
        if open.is_dropped {
            state.open.remove(&next);
        }
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        Ok(true)
    }

    /// The frames that the host has not got.
    pub(crate) fn frames(&self) -> Vec<Value> {
        self.0.borrow_mut().frames.drain(..).collect()
    }

    /// Whether it waits for a result of the host.
    pub(crate) fn awaits(&self) -> bool {
        !self.0.borrow().open.is_empty()
    }

    fn performed(&self, ordinal: u64, outcome: &Result<Value, Raised>) {
        let mut state = self.0.borrow_mut();
        state.frames.push_back(performed(ordinal, outcome));
        if let Some(open) = state.open.get_mut(&ordinal) {
            open.is_asked = false;
        }
    }

    /// Polls with the mark that a step's code runs.
    fn within<T>(&self, name: &str, poll: impl FnOnce() -> T) -> T {
        struct Restore<'a>(&'a Program);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.0.borrow_mut().inside = None;
            }
        }
        self.0.borrow_mut().inside = Some(name.to_owned());
        let _restore = Restore(self);
        poll()
    }
}

fn performed(ordinal: u64, outcome: &Result<Value, Raised>) -> Value {
    match outcome {
        Ok(value) => json!({"type": "performed", "ordinal": ordinal, "ok": value}),
        Err(raised) => {
            let error = json!({"type": raised.kind, "message": raised.message});
            json!({"type": "performed", "ordinal": ordinal, "error": error})
        }
    }
}

fn line(at: &Location<'_>) -> String {
    let line = format!("{}:{}", at.file(), at.line());
    // The end of a long path says more than its start.
    let cut = line.chars().count().saturating_sub(LINE_CHARS_MAX);
    line.chars().skip(cut).collect()
}

impl Ticket {
    pub(crate) fn at(&self) -> String {
        let state = self.program.0.borrow();
        state.open.get(&self.ordinal).map(|open| open.at.clone()).unwrap_or_default()
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Turn> {
        let mut state = self.program.0.borrow_mut();
        let Some(open) = state.open.get_mut(&self.ordinal) else { return Poll::Pending };
        if let Some(outcome) = open.outcome.take() {
            state.open.remove(&self.ordinal);
            return Poll::Ready(Turn::Done(outcome));
        }
        if open.is_asked {
            return Poll::Ready(Turn::Work);
        }
        open.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    async fn turn(&self) -> Turn {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// The outcome of an effect that the host performs.
    pub(crate) async fn outcome(self) -> Result<Value, EffectError> {
        loop {
            if let Turn::Done(outcome) = self.turn().await {
                return outcome;
            }
        }
    }

    /// The outcome of an effect that the program performs if the host asks for it.
    pub(crate) async fn outcome_of(
        self,
        name: &str,
        work: impl Future<Output = Result<Value, Raised>>,
    ) -> Result<Value, EffectError> {
        let mut work = Box::pin(work);
        loop {
            match self.turn().await {
                Turn::Done(outcome) => return outcome,
                Turn::Work => {
                    let polled = std::future::poll_fn(|cx| {
                        self.program.within(name, || work.as_mut().poll(cx))
                    });
                    let outcome = polled.await.and_then(|value| bounded(name, value));
                    self.program.performed(self.ordinal, &outcome);
                }
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.program.0.borrow_mut();
        let Some(open) = state.open.get_mut(&self.ordinal) else { return };
        open.is_dropped = true;
        let was_asked = open.is_asked;
        if open.outcome.is_some() {
            state.open.remove(&self.ordinal);
        } else if was_asked {
            let raised = Raised::new("Dropped", "the agent waits for it no longer");
            state.frames.push_back(performed(self.ordinal, &Err(raised)));
        }
    }
}

fn bounded(name: &str, value: Value) -> Result<Value, Raised> {
    let bytes = value.to_string().len();
    if bytes <= VALUE_BYTES_MAX {
        return Ok(value);
    }
    let text = format!("{name} returned {bytes} bytes; at most {VALUE_BYTES_MAX} are possible");
    Err(Raised::new("TooLarge", text))
}

/// The agent's function, and what it asked for.
pub(crate) struct Run {
    pub(crate) program: Rc<Program>,
    main: Pin<Box<dyn Future<Output = Result<Value, Raised>>>>,
}

/// Remembers that the function can go on.
struct Woken {
    is_woken: AtomicBool,
    outer: Waker,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.outer.wake_by_ref();
    }
}

impl Run {
    pub(crate) fn new(
        program: Rc<Program>,
        main: Pin<Box<dyn Future<Output = Result<Value, Raised>>>>,
    ) -> Self {
        Self { program, main }
    }

    /// Runs the function until it cannot go on. Returns the frame `end` if it has returned.
    pub(crate) fn advance(&mut self, outer: &Waker) -> Option<Value> {
        let woken = Arc::new(Woken { is_woken: AtomicBool::new(false), outer: outer.clone() });
        let waker = Waker::from(woken.clone());
        for _ in 0..POLLS_MAX {
            woken.is_woken.store(false, Ordering::Release);
            let mut cx = Context::from_waker(&waker);
            let polled = catch_unwind(AssertUnwindSafe(|| self.main.as_mut().poll(&mut cx)));
            match polled {
                Ok(Poll::Ready(result)) => return Some(end(result)),
                Err(panic) => return Some(end(Err(panicked(&*panic)))),
                Ok(Poll::Pending) if woken.is_woken.load(Ordering::Acquire) => {}
                Ok(Poll::Pending) => return None,
            }
        }
        outer.wake_by_ref();
        None
    }
}

fn end(result: Result<Value, Raised>) -> Value {
    match result.and_then(|value| bounded("the agent", value)) {
        Ok(result) => json!({"type": "end", "result": result}),
        Err(raised) => json!({"type": "end", "error": raised.frame()}),
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Raised {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    Raised::new("panic", text.unwrap_or("the agent panicked"))
}
