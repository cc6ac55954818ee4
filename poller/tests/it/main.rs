//! The poller as the state machine sees it: requests in, judgements out, over a real journal.

mod judging;
mod sealing;
