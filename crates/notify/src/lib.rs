//! Notices: tells systems outside of Daybook that a session concluded, failed, or asks a person.
//!
//! [`target`] reads who wants to know what. [`notice`] words a notice from a session's records, [`signature`] signs it
//! for a webhook, and [`delivery`] journals each attempt and says when the next one is due. A local stack sends to
//! its targets itself; in an account [`bus`] puts events on a bus.

#[cfg(feature = "eventbridge")]
pub mod bus;
pub mod delivery;
pub mod notice;
pub mod signature;
pub mod target;

pub use delivery::{Delivery, Outcome};
pub use notice::{Notice, Why};
pub use target::{Kind, Settings, Target};
