//! The poller as the state machine sees it: requests in, judgements out, over a real journal.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod checkpoints;
mod judging;
mod notices;
mod parking;
mod people;
mod sealing;
