//! An Amazon States Language engine: give it a definition and a history and it says what happens
//! next.
//!
//! It is a pure interpreter. It never does a task, never reads a clock, never draws a random
//! number: `now` is an argument, randomness comes from the seed in [`execution::Start`], and what
//! has to be done comes back as a value. The history is the whole state of an execution, in Step
//! Functions' own events, so a shell that stores what [`execution::Execution::next`] tells it to
//! record can be killed at any instant and go on from there.
//!
//! How the modules meet: [`definition`] checks a text once, at the border, and compiles its
//! expressions with [`jsonata`], [`jsonpath`] and [`intrinsic`], which `expression` puts behind one
//! type; [`execution`] folds [`history`] events over a definition and decides the next ones;
//! [`error_name`] holds the names that `Retry` and `Catch` speak; [`token`] makes and reads task
//! tokens; [`time`] spells times as Step Functions does.
//!
//! [`rule`] stands beside them: what an EventBridge rule does with an event before an execution
//! begins. It is pure, shares the paths and is judged by the same recordings.
//!
//! A shell is a loop around [`execution::Execution::next`]:
//!
//! ```
//! use std::sync::Arc;
//! use states::definition::Definition;
//! use states::execution::{Execution, Next, Outcome, Start};
//! use states::time::Timestamp;
//!
//! let text = r#"{"QueryLanguage": "JSONata", "StartAt": "Add", "States": {
//!     "Add": {"Type": "Pass", "Output": "{% $states.input.a + 1 %}", "End": true}
//! }}"#;
//! let start = Start {
//!     execution_arn: "arn:aws:states:us-east-1:000000000000:execution:add:one".to_owned(),
//!     execution_name: "one".to_owned(),
//!     role_arn: "arn:aws:iam::000000000000:role/add".to_owned(),
//!     state_machine_arn: "arn:aws:states:us-east-1:000000000000:stateMachine:add".to_owned(),
//!     state_machine_name: "add".to_owned(),
//!     input: r#"{"a": 1}"#.to_owned(),
//!     started_at: Timestamp::from_millis(0),
//!     token_seed: "drawn once, stored with the rest".to_owned(),
//! };
//! let mut execution = Execution::new(Arc::new(Definition::parse(text)?), start)?;
//! let outcome = loop {
//!     match execution.next(Timestamp::from_millis(0)) {
//!         Next::Record(events) => {
//!             // Append them durably here, then:
//!             for event in &events {
//!                 execution.apply(event)?;
//!             }
//!         }
//!         Next::RunTasks { .. } => unreachable!("this machine has no task"),
//!         Next::WaitUntil(_time) => unreachable!("this machine never waits"),
//!         Next::Done(outcome) => break outcome,
//!     }
//! };
//! assert_eq!(outcome, Outcome::Succeeded("2".to_owned()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod definition;
mod digest;
pub mod error_name;
pub mod execution;
mod expression;
pub mod history;
pub mod intrinsic;
pub mod jsonata;
pub mod jsonpath;
pub mod rule;
pub mod time;
pub mod token;
mod value;
mod wildcard;
