//! The journal's integration tests.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

mod golden;
#[cfg(all(feature = "sqlite", feature = "dynamodb", feature = "test-support"))]
#[macro_use]
mod stores;
#[cfg(all(feature = "sqlite", feature = "dynamodb", feature = "test-support"))]
mod late;
#[cfg(all(feature = "sqlite", feature = "dynamodb", feature = "test-support"))]
mod records;
#[cfg(all(feature = "sqlite", feature = "dynamodb", feature = "test-support"))]
mod suite;
mod verify;
#[cfg(all(feature = "sqlite", feature = "dynamodb", feature = "test-support"))]
mod writing;
