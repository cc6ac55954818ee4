//! The agent host: claims a session on its invocation, and runs the agent in the background until the
//! journal holds an end or a question.
//!
//! - [`http`] serves the `AgentCore` contract and passes each invocation to [`host`]. The host
//!   journals the request, validates it, and claims the session.
//! - [`task`] is the background task of a session. It runs [`driver`], which performs the effects that
//!   the agent's graph requests and journals each outcome before the graph uses it, and [`heartbeat`],
//!   which renews the lease.
//! - [`model`] answers chats. [`tool`] calls built-in tools and MCP servers; [`progress`] broadcasts
//!   what running tools report.
//! - [`settings`] combines a trigger, the environment and the agent's profile. [`measure`] records metrics.
//! - The modules `container` (the program of the image) and `health` (its health check) exist in builds
//!   with the feature `container`.

pub mod callback;
pub mod config;
#[cfg(feature = "container")]
pub mod container;
pub mod driver;
mod halts;
#[cfg(feature = "container")]
pub mod health;
pub mod heartbeat;
pub mod host;
pub mod http;
pub mod http_agent;
mod jitter;
pub mod measure;
pub mod model;
pub mod program;
pub mod progress;
pub mod project;
pub mod session;
pub mod settings;
pub mod task;
pub mod tool;
pub mod trace;
