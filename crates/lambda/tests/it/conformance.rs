//! The conformance suite of the packaged functions.

use std::path::Path;
use std::time::Duration;

use lambda::Ends;
use serde_json::Value;

use crate::events::{ENVIRONMENT, answering};
use crate::fake::{Answer, Function, Services};

/// Ample time for any event.
const PLENTY: Duration = Duration::from_secs(60);

/// Less than the timeout of a service call.
const LITTLE: Duration = Duration::from_millis(1_500);

pub struct Subject {
    pub program: &'static Path,
    /// A valid event.
    pub event: Value,
    /// Invalid events; empty if any JSON is valid.
    pub malformed: Vec<Value>,
    pub ends: Ends,
}

/// Generates the tests for the `subject()` of a module.
macro_rules! conforms {
    () => {
        #[tokio::test]
        async fn the_function_rejects_malformed_events_and_continues() {
            crate::conformance::malformed_events_are_refused(&subject()).await;
        }

        #[tokio::test]
        async fn the_function_ends_an_event_before_its_deadline() {
            crate::conformance::a_deadline_is_kept(&subject()).await;
        }

        #[tokio::test]
        async fn the_function_stops_on_sigterm() {
            crate::conformance::a_stop_is_obeyed(&subject()).await;
        }

        #[tokio::test]
        async fn the_function_names_a_missing_variable() {
            crate::conformance::a_missing_variable_is_named(&subject()).await;
        }
    };
}

impl Subject {
    async fn start(&self, services: &Services) -> Function {
        let mut environment: Vec<_> =
            ENVIRONMENT.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        environment.push(("AWS_ENDPOINT_URL", services.endpoint.clone()));
        Function::start(self.program, &environment).await
    }

    async fn is_served(&self, function: &mut Function) {
        let answer = function.send(self.event.to_string(), PLENTY).await;
        assert!(matches!(answer, Answer::Response(_)), "{answer:?}: {}", function.log());
    }
}

/// Answers an event and the next one. Returns the first answer and the requests to services.
pub async fn events_are_answered(subject: &Subject) -> (Answer, Vec<(String, Value)>) {
    let services = Services::start(answering).await;
    let mut function = subject.start(&services).await;
    function.ready().await;
    let answer = function.send(subject.event.to_string(), PLENTY).await;
    let heard = services.heard();
    subject.is_served(&mut function).await;
    (answer, heard)
}

/// Rejects a malformed event with its error name, logs it, and continues with the next event.
pub async fn malformed_events_are_refused(subject: &Subject) {
    let services = Services::start(answering).await;
    let mut function = subject.start(&services).await;
    let nested = "[".repeat(100_000);
    for body in [&b""[..], b"{", b"\xff\xfe", b"{\"a\": 1e999}", nested.as_bytes()] {
        let answer = function.send(body.to_vec(), PLENTY).await;
        assert!(matches!(answer, Answer::Error(_)), "{answer:?}");
        subject.is_served(&mut function).await;
    }
    assert!(function.log().contains("deserialization"), "{}", function.log());
    for event in &subject.malformed {
        let answer = function.send(event.to_string(), PLENTY).await;
        assert_eq!(answer.error_name(), Some(subject.ends.malformed), "{event}: {answer:?}");
        subject.is_served(&mut function).await;
    }
}

/// If no service answers, ends an event before its deadline, with its error name and a log line.
pub async fn a_deadline_is_kept(subject: &Subject) {
    let services = Services::start(|_| None).await;
    let mut function = subject.start(&services).await;
    function.ready().await;
    for time in [LITTLE, Duration::ZERO] {
        // A timed-out service call would have another error name.
        let answer = function.send(subject.event.to_string(), time).await;
        assert_eq!(answer.error_name(), Some(subject.ends.late), "{answer:?}: {}", function.log());
    }
    assert!(function.log().contains("before its deadline"), "{}", function.log());
}

/// Stops at once on SIGTERM, whether idle or busy, and logs it.
pub async fn a_stop_is_obeyed(subject: &Subject) {
    for busy in [false, true] {
        let services = Services::start(|_| None).await;
        let mut function = subject.start(&services).await;
        function.ready().await;
        if busy {
            function.give(subject.event.to_string(), PLENTY).await;
            tokio::time::timeout(PLENTY, async {
                while services.heard().is_empty() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            })
            .await
            .unwrap();
        }
        function.terminate().await;
        let (status, log) = function.ended().await;
        assert!(status.success(), "{status}: {log}");
        assert!(log.contains("Lambda stops this function"), "{log}");
    }
}

/// Stops if a variable is missing, and names it.
pub async fn a_missing_variable_is_named(subject: &Subject) {
    for (missing, _) in ENVIRONMENT {
        let environment: Vec<_> = (ENVIRONMENT.iter())
            .filter(|(name, _)| name != missing)
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        let function = Function::start(subject.program, &environment).await;
        let (status, log) = function.ended().await;
        assert!(!status.success() && log.contains(missing), "{status}: {log}");
    }
}
