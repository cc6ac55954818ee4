//! The Lambda that judges the journal.
