//! Tests of the stack: its templates, third-party linters, and the permissions of its roles.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod access;
mod golden;
mod judges;
mod kernel;
mod template;
