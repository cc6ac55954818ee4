//! The promises that every finished function keeps.

use std::path::Path;
use std::time::Duration;

use lambda::Ends;
use serde_json::Value;

use crate::events::{ENVIRONMENT, answering};
use crate::fake::{Answer, Function, Services};

/// Time that no event uses up.
const PLENTY: Duration = Duration::from_secs(60);

/// Less time than a service that never answers is given.
const LITTLE: Duration = Duration::from_millis(1_500);

pub struct Subject {
    pub program: &'static Path,
    /// An event that it answers.
    pub event: Value,
    /// JSON that it refuses; empty if it takes any.
    pub malformed: Vec<Value>,
    /// How events end that it does not answer.
    pub ends: Ends,
}

/// Tests that the `subject()` of a module keeps the promises.
macro_rules! conforms {
    () => {
        #[tokio::test]
        async fn the_function_refuses_malformed_events_by_name_and_goes_on() {
            crate::conformance::malformed_events_are_refused(&subject()).await;
        }

        #[tokio::test]
        async fn the_function_ends_an_event_before_its_deadline() {
            crate::conformance::a_deadline_is_kept(&subject()).await;
        }

        #[tokio::test]
        async fn the_function_stops_when_it_is_told_to() {
            crate::conformance::a_stop_is_obeyed(&subject()).await;
        }

        #[tokio::test]
        async fn the_function_names_a_variable_that_is_missing() {
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

/// An event is answered, and so is the next one. Returns the first answer and the requests to services.
pub async fn events_are_answered(subject: &Subject) -> (Answer, Vec<(String, Value)>) {
    let services = Services::start(answering).await;
    let mut function = subject.start(&services).await;
    function.ready().await;
    let answer = function.send(subject.event.to_string(), PLENTY).await;
    let heard = services.heard();
    subject.is_served(&mut function).await;
    (answer, heard)
}

/// A malformed event ends by name, also in the log, and the function goes on with the next.
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

/// Where no service answers, an event ends before its deadline, by name and in the log.
pub async fn a_deadline_is_kept(subject: &Subject) {
    let services = Services::start(|_| None).await;
    let mut function = subject.start(&services).await;
    function.ready().await;
    for time in [LITTLE, Duration::ZERO] {
        // A service that the function gives up on would have another name.
        let answer = function.send(subject.event.to_string(), time).await;
        assert_eq!(answer.error_name(), Some(subject.ends.late), "{answer:?}: {}", function.log());
    }
    assert!(function.log().contains("before its deadline"), "{}", function.log());
}

/// SIGTERM stops it at once, whether it waits for an event or works on one, and it says so.
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

/// Without one of its variables it names that variable and stops.
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
