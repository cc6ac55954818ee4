//! What every finished function must do, however it is spoken to: one suite that each of them runs.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and says where")]

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::stand_in::{Answer, Answering, Function, Services};

/// As long as nobody is pressed for time.
const PLENTY: Duration = Duration::from_secs(60);

/// A deadline that comes before a service that never answers is given up on.
const LITTLE: Duration = Duration::from_millis(1_500);

/// A function and how to speak to it.
pub struct Subject {
    /// The binary.
    pub program: &'static Path,
    /// What the stack sets for it, but for where the services are.
    pub environment: &'static [(&'static str, &'static str)],
    /// An event that it answers.
    pub event: Value,
    /// JSON that it does not take; empty if it takes any and does nothing.
    pub malformed: Vec<Value>,
    /// How the services answer.
    pub answering: Answering,
    /// How its events end otherwise.
    pub ends: crate::Ends,
}

impl Subject {
    async fn start(&self, services: &Services) -> Function {
        let mut environment: Vec<_> =
            self.environment.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        environment.push(("AWS_ENDPOINT_URL", services.endpoint.clone()));
        Function::start(self.program, &environment).await
    }

    async fn is_served(&self, function: &mut Function) {
        let answer = function.send(self.event.to_string(), PLENTY).await;
        assert!(matches!(answer, Answer::Response(_)), "{answer:?}: {}", function.log());
    }
}

/// An event is answered, and so is the next one: what it answered first, and what it asked services for.
pub async fn events_are_answered(subject: &Subject) -> (Answer, Vec<(String, Value)>) {
    let services = Services::start(subject.answering).await;
    let mut function = subject.start(&services).await;
    function.ready().await;
    let answer = function.send(subject.event.to_string(), PLENTY).await;
    let heard = services.heard();
    subject.is_served(&mut function).await;
    (answer, heard)
}

/// What is no event ends by name, in the log too, and the function goes on with the next.
pub async fn malformed_events_are_refused(subject: &Subject) {
    let services = Services::start(subject.answering).await;
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
        // Nothing else ends it by this name: a service that is given up on has another.
        let answer = function.send(subject.event.to_string(), time).await;
        assert_eq!(answer.error_name(), Some(subject.ends.late), "{answer:?}: {}", function.log());
    }
    assert!(function.log().contains("before its deadline"), "{}", function.log());
}

/// Told to stop, it stops at once and says so: while it waits for an event, and in the midst of one.
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

/// Without one of its variables it names that one, and never asks for an event.
pub async fn a_missing_variable_is_named(subject: &Subject) {
    for (missing, _) in subject.environment {
        let environment: Vec<_> = (subject.environment.iter())
            .filter(|(name, _)| name != missing)
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        let function = Function::start(subject.program, &environment).await;
        let (status, log) = function.ended().await;
        assert!(!status.success() && log.contains(missing), "{status}: {log}");
    }
}
