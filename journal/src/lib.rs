//! The event journal of agent sessions: append-only records, their hashes, and the stores for them.
//!
//! A session has two kinds of immutable records:
//!
//! - **Steps** decide ([`step`], [`chain`]). They form one numbered hash chain. A writer appends step
//!   n + 1 on the condition that it does not exist; the writer that succeeds decides what follows n.
//! - **Events** announce the lifecycle ([`event`], [`announce`]). A pure fold over them gives the
//!   session's [`status`].
//!
//! Both are [`item`]s in a [`store`], under the keys of [`key`]. Large contents are stored separately
//! by [`payload`], and [`cipher`] encrypts those of sessions that may be erased. Two items are mutable and decide nothing: [`lease`] shows that a runner is alive,
//! and [`wait`] holds the token of a waiting workflow. [`seal`] closes a session; [`verify`] finds
//! every later change. The [`log`] of sessions shows that none was removed. [`principal`] says who acted, and a
//! [`receipt`] that the step of a person was not written by an agent.
//!
//! Readers find sessions with [`listing`], sum them up with [`tally`], watch one with [`follow`], read
//! one with [`read`] and copy one with [`export`]. [`halt`] says which agents may begin nothing. [`version`] says which version of its agent a session goes on with,
//! and [`request`] what a model was sent.
//!
//! The features `dynamo` and `sqlite` add a store each, `cipher` the keys of encrypted sessions, and `test-support` the `conformance` suite
//! that both pass. Without features this crate performs no IO and reads no clock.

pub mod announce;
pub mod chain;
pub mod cipher;
pub mod clock;
pub mod error_message;
pub mod event;
pub mod export;
pub mod follow;
pub mod halt;
pub mod id;
pub mod item;
mod json;
pub mod key;
pub mod lease;
pub mod limits;
pub mod listing;
pub mod log;
pub mod payload;
pub mod principal;
pub mod read;
pub mod receipt;
pub mod request;
pub mod seal;
pub mod status;
pub mod step;
pub mod store;
pub mod tally;
pub mod verify;
pub mod version;
pub mod wait;

#[cfg(feature = "clock")]
pub mod conformance;
#[cfg(feature = "dynamodb")]
pub mod dynamo;
#[cfg(feature = "sqlite")]
pub mod sqlite;
