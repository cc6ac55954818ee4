//! Files that untrusted input names, and files that only their user may read.
//!
//! [`Roots`] decides which files a trigger may name; [`read`] opens them without waiting for a FIFO or a
//! device, and within a bound. [`private`] creates folders and files for this user alone. [`lock`] locks a file
//! itself, and [`disk`] says how much of a disk is left.

pub mod disk;
pub mod lock;
pub mod private;
pub mod read;
mod roots;

pub use roots::{GRANTS_FOLDER, Refusal, Roots, grant, remove_expired_grants};
