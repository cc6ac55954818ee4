//! Runs an agent's code for a viewer: on a thread of its own, with a time limit.
//!
//! A viewer asks an agent's functions for a title and a conclusion, and its graph for the calls of tools. If they do not
//! answer in time, the viewer goes on without, and asks no function of that agent again until the program ends. So an
//! endless loop costs one thread and one wait. A stack overflow cannot be contained: it ends the process.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use graph::conclusion::Conclusion;
use graph::presentation::Presentation;
use serde_json::Value;

/// How long an agent may take to answer a viewer once. Its functions take microseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Most threads for viewers: one for each page that is open, and those that never ended.
const THREADS_MAX: usize = 128;

static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The agents that did not answer in time.
static SILENT: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// One of [`THREADS_MAX`]; given back when its thread ends.
struct Slot;

impl Slot {
    fn take() -> Option<Self> {
        let more = |count: usize| (count < THREADS_MAX).then_some(count + 1);
        THREADS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The title and the conclusion of a session, as its agent's functions word them, or without them.
pub(super) fn asked(
    presentation: Presentation,
    agent: Option<&str>,
    input: Option<&Value>,
    result: Option<&Value>,
) -> (Option<String>, Option<Conclusion>) {
    let own =
        agent.filter(|_| !presentation.has_default_functions() && (input, result) != (None, None));
    let own = own.and_then(|agent| {
        let (input, result) = (input.cloned(), result.cloned());
        bounded(agent, move || {
            let title = input.and_then(|input| presentation.title_of(&input));
            (title, result.and_then(|result| presentation.conclusion_of(&result)))
        })
    });
    own.unwrap_or_else(|| {
        (None, result.and_then(|result| Presentation::DEFAULT.conclusion_of(result)))
    })
}

/// What an agent's code answers; `None` if it does not answer in time, or did not before.
fn bounded<T: Send + 'static>(agent: &str, ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let mut ask = Some(ask);
    let asked = Asked::start(agent, move || move |()| ask.take().map(|ask| ask()));
    asked?.answer(()).flatten()
}

/// An agent's code on a thread that answers one question after the other.
pub(super) struct Asked<Q, A> {
    agent: String,
    questions: Sender<Q>,
    answers: Receiver<A>,
}

impl<Q: Send + 'static, A: Send + 'static> Asked<Q, A> {
    /// `make` makes what answers, on the thread. `None` if the agent did not answer in time before, or there are too
    /// many threads.
    pub(super) fn start<F: FnMut(Q) -> A>(
        agent: &str,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Option<Self> {
        if silent(|silent| silent.contains(agent)) {
            return None;
        }
        let slot = Slot::take()?;
        let (questions, asked) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let work = move || {
            let _slot = slot;
            let mut ask = make();
            while let Ok(question) = asked.recv() {
                if answer.send(ask(question)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("viewed-agent".to_owned());
        thread.spawn(work).ok()?;
        Some(Self { agent: agent.to_owned(), questions, answers })
    }

    /// The answer to the next question; `None` if it does not come in time, or the code panicked. Then ask no more.
    pub(super) fn answer(&self, question: Q) -> Option<A> {
        self.questions.send(question).ok()?;
        let answer = self.answers.recv_timeout(ANSWER_TIMEOUT);
        if matches!(answer, Err(mpsc::RecvTimeoutError::Timeout)) {
            silent(|silent| silent.insert(self.agent.clone()));
            tracing::warn!(
                agent = %self.agent,
                "The agent's code did not answer a viewer in time. Its sessions are shown without it until the next start."
            );
        }
        answer.ok()
    }
}

fn silent<T>(with: impl FnOnce(&mut BTreeSet<String>) -> T) -> T {
    with(&mut SILENT.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_loop_costs_a_viewer_one_wait() {
        let (told, hears) = mpsc::channel::<()>();
        let endless = move || {
            let _ = hears.recv();
        };
        assert_eq!(bounded("quick", || 7), Some(7));
        assert_eq!(bounded("endless", endless), None);
        // Not asked again, and no other agent is affected.
        assert_eq!(bounded("endless", || panic!("it is asked again")), None::<()>);
        assert_eq!(bounded("quick", || 8), Some(8));
        drop(told);
    }

    #[test]
    fn a_conclusion_without_end_falls_back_to_the_generic_one() {
        let endless: fn(&Value) -> Option<Conclusion> = |_| {
            loop {
                thread::park();
            }
        };
        let presentation = Presentation { conclude: endless, ..Presentation::DEFAULT };
        let result = serde_json::json!({ "a": 1 });
        let (title, conclusion) = asked(presentation, Some("endless-view"), None, Some(&result));
        assert_eq!((title, conclusion), (None, Presentation::DEFAULT.conclusion_of(&result)));
    }

    #[test]
    fn a_panic_is_no_answer_and_no_silence() {
        assert_eq!(bounded("panics", || panic!("no answer")), None::<()>);
        assert_eq!(bounded("panics", || 9), Some(9));
    }
}
