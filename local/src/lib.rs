//! One machine's cloud: an event bus, durable executions, the functions they call, and a host for
//! the agents, behind one AWS-compatible endpoint.
//!
//! [`bus`] turns an event into an execution; [`executions`] drives it in the journal's file, calling
//! [`functions`], [`dynamodb`] and the other [`services`]; [`host`] runs the agents that the invoker
//! calls; [`endpoint`] is where clients reach all of it; [`stack`] puts them together and takes them
//! down in order, and has `memory` that a burst took given back. [`list`] and [`view`] are what people
//! see of sessions, wherever those are kept; [`desk`] serves the page over a [`store`] elsewhere.

pub mod bus;
mod catch_up;
mod clients;
pub mod desk;
pub mod dynamodb;
pub mod endpoint;
pub mod executions;
pub mod functions;
pub mod host;
pub mod list;
mod memory;
pub mod names;
mod process;
pub mod services;
pub mod stack;
pub mod store;
pub mod view;
mod watch;
