//! The journal: what happened to a session, as records that nobody changes.
//!
//! A session's **steps** decide ([`step`], [`chain`]): whoever writes number n + 1 has decided what
//! comes after n. Its **events** announce ([`event`], [`announce`]); what they add up to is a pure
//! fold ([`status`]). Both are [`item`]s in a [`store`], keyed as [`key`] says, with large contents
//! set apart by [`payload`]. [`lease`] and [`wait`] are the two mutable items: they say who is alive
//! and who is waiting, never what is true. [`seal`] closes a session and [`verify`] finds every later
//! change.
//!
//! Readers find sessions by [`listing`], which says of each what it adds up to ([`tally`]), watch one with [`follow`], read one with [`read`], and take
//! it elsewhere with [`export`]. With features there are two stores, `dynamo` and `sqlite`, and the
//! suite that both pass, `conformance`.
//!
//! Without features this crate does no IO and reads no clock.

pub mod announce;
pub mod chain;
pub mod clock;
pub mod error_message;
pub mod event;
pub mod export;
pub mod follow;
pub mod id;
pub mod item;
pub mod key;
pub mod lease;
pub mod limits;
pub mod listing;
pub mod payload;
pub mod read;
pub mod seal;
pub mod status;
pub mod step;
pub mod store;
pub mod tally;
pub mod verify;
pub mod wait;

#[cfg(feature = "test-support")]
pub mod conformance;
#[cfg(feature = "dynamodb")]
pub mod dynamo;
#[cfg(feature = "sqlite")]
pub mod sqlite;
