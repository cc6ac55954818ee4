//! The agent host: it takes a session's invocation, claims the session, and works on it in the
//! background until the journal holds its end or a question.
//!
//! [`host`] is the entrypoint: it journals that the request came, judges it, and claims. [`task`] is
//! the one background task of a session, with [`beat`] beside it saying that it lives and
//! [`driver`] doing what the agent's graph asks for, through [`tool`], and journaling each outcome
//! before it is used; [`investigation`] has the settings and figures of the fraud agent, [`model`]
//! those who answer chats. [`progress`] passes on what running tools say. [`http`] serves the
//! `AgentCore` contract in the container, whose whole program is the module `container` of builds
//! with that feature; `health` is what its image asks it.

pub mod beat;
pub mod callback;
pub mod config;
#[cfg(feature = "container")]
pub mod container;
pub mod driver;
#[cfg(feature = "container")]
pub mod health;
pub mod host;
pub mod http;
pub mod investigation;
pub mod measure;
pub mod model;
pub mod network;
pub mod progress;
pub mod session;
pub mod settings;
pub mod summary;
pub mod task;
pub mod tool;
pub mod trace;
