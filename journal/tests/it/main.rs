//! The journal's integration tests.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

#[cfg(feature = "cipher")]
mod cipher;
#[cfg(feature = "sqlite")]
mod file;
mod format;
mod golden;
#[cfg(feature = "clock")]
mod log;
#[cfg(all(feature = "sqlite", feature = "dynamodb"))]
#[macro_use]
mod stores;
#[cfg(all(feature = "sqlite", feature = "dynamodb"))]
mod halts;
#[cfg(all(feature = "sqlite", feature = "dynamodb"))]
mod late;
#[cfg(all(feature = "sqlite", feature = "dynamodb"))]
mod records;
#[cfg(all(feature = "sqlite", feature = "dynamodb"))]
mod suite;
mod verify;
#[cfg(all(feature = "sqlite", feature = "dynamodb"))]
mod writing;
