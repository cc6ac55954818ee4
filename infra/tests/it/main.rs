//! The stack: its template, before judges that are not ours, and what its roles allow.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod access;
mod golden;
mod judges;
mod kernel;
mod template;
