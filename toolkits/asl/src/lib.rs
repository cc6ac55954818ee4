//! An interpreter of the Amazon States Language, the language of AWS Step Functions.
//!
//! The interpreter is pure. It takes a definition, the history so far and the current time, and
//! returns what to do next: events to record, tasks to run, or a time to wait for. It performs no
//! IO and reads no clock; random values come from the seed in [`execution::Start`].
//!
//! The history is the whole state of an execution and consists of Step Functions' own events. A
//! program that stores these events before it acts on them can crash at any moment and resume.
//!
//! - [`definition`] parses and validates a state machine, and compiles its expressions with
//!   [`jsonata`], [`jsonpath`] and [`intrinsic`].
//! - [`execution`] folds [`history`] events over a definition and decides the next event.
//! - [`error_name`] lists the error names that `Retry` and `Catch` match.
//! - [`token`] creates and parses task tokens.
//! - [`time`] formats times as Step Functions does.
//! - [`rule`] implements EventBridge event patterns and input transformers.
//!
//! A caller loops around [`execution::Execution::next`]:
//!
//! ```
//! use std::sync::Arc;
//! use asl::definition::Definition;
//! use asl::execution::{Execution, Next, Outcome, Start};
//! use asl::time::Timestamp;
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
