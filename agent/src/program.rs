//! Agents that are programs: starts the program, serves its effects, and stops it.
//!
//! `process` owns the program's process. `drive` is the loop of one run; the effects themselves are
//! performed and journaled by the [driver](crate::driver). [`describe`] asks a program what it is.

pub mod describe;
mod drive;
mod process;

pub use drive::Local;

/// Variables of this process that a program gets.
pub const INHERITED: [&str; 6] = ["PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH"];
