//! A local AWS for Daybook: an event bus, durable Step Functions executions, the Lambda functions that
//! they call, and a host for the agents, behind one AWS-compatible endpoint.
//!
//! - [`bus`] turns an event into an execution. [`executions`] runs it durably in the journal's file, and
//!   calls [`functions`], [`dynamodb`] and the other [`services`]. [`buckets`] are files as S3 has them.
//! - [`host`] runs the agents that the invoker function calls.
//! - [`endpoint`] is the HTTP server: AWS protocols, Daybook's own API and the web page.
//!   [`endpoint::Viewer`] serves the page over a journal whose sessions run elsewhere.
//! - [`load`] limits the sessions at work, queues further ones, throttles new ones, and drains the stack before a stop.
//! - [`recover`] takes sessions from runners that are dead. `restart` runs the stack's tasks again after a panic.
//! - [`stack`] starts all of it in order and shuts it down in order. `memory` returns free memory to the
//!   operating system after a burst.
//! - [`checkpoints`] signs the log of sessions with the [`keys`] of this machine. [`verifier`] holds sessions against
//!   everything that is known of them here.
//! - [`folder`] locks the data folder and knows whether its journal is missing. [`backup`] writes a journal as one file,
//!   and restores it. [`storage`] is what is stored, and when that is a problem.
//! - [`keeping`] holds, releases and prunes sessions, and removes what has expired.
//! - [`notices`] tells systems outside what became of sessions.
//! - [`rules`] are the event rules that users create; `executions` has their state machines.
//! - [`list`] and [`view`] are the JSON shapes of sessions, from either kind of journal ([`store`]).

pub mod backup;
pub mod buckets;
pub mod bus;
mod catch_up;
pub mod checkpoints;
mod clients;
pub mod dynamodb;
pub mod endpoint;
pub mod executions;
pub mod folder;
pub mod functions;
pub mod host;
pub mod keeping;
pub mod keys;
pub mod list;
pub mod load;
mod memory;
pub mod names;
pub mod notices;
mod process;
pub mod recover;
mod restart;
pub mod rules;
pub mod services;
pub mod stack;
pub mod steps;
pub mod storage;
pub mod store;
pub mod verifier;
pub mod view;
mod watch;
pub mod witness;
