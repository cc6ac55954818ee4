//! Limits of the journal, and what happens when one is reached.

use std::time::Duration;

/// Largest payload inside its record, in stored bytes; a larger one is split into parts.
pub const INLINE_BYTES_MAX: usize = 96 * 1024;

/// Payloads larger than this, in bytes, are compressed.
pub const COMPRESS_BYTES_MIN: usize = 4 * 1024;

/// Largest part of a payload, in bytes: below DynamoDB's item size with room for the key.
pub const PART_BYTES_MAX: usize = 350 * 1024;

/// Largest payload, in uncompressed bytes. A larger one is rejected before any write and never
/// retried.
pub const PAYLOAD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Largest event detail, in bytes of JSON. A larger one is replaced by a note of its size.
pub const DETAIL_BYTES_MAX: usize = 4 * 1024;

/// Longest error message, in characters. A longer one is truncated and ends with an ellipsis.
pub const ERROR_MESSAGE_CHARS_MAX: usize = 500;

/// Most events of a session. After that only the verdict is written.
pub const EVENTS_MAX: usize = 1_000;

/// Most steps of a session: the largest number with the eight digits of a step's key.
pub const STEPS_MAX: u32 = 99_999_999;

/// Largest item the table stores, in bytes, attribute names included.
///
/// Source: AWS, "Quotas in Amazon DynamoDB", item size.
pub const ITEM_BYTES_MAX: usize = 400 * 1024;

/// Most items of one transaction.
///
/// Source: AWS, "Quotas in Amazon DynamoDB", transactions: 100 items and 4 MB.
pub const TRANSACTION_ITEMS_MAX: usize = 100;

/// How often an announcement tries the next nanosecond before it fails.
pub const STAMP_COLLISIONS_MAX: u32 = 1_000;

/// How often a record is sent when the store is unavailable or its reply is lost.
pub const WRITE_ATTEMPTS_MAX: u32 = 5;

/// How often a writer that ends a session tries the next number.
pub const END_COLLISIONS_MAX: u32 = 1_000;

/// A timestamp that differs more than this from its writer's clock also stores that clock.
pub const SKEW_NOTED: Duration = Duration::from_secs(1);

/// A timestamp further ahead of the reader's clock than this is reported.
pub const SKEW_REPORTED: Duration = Duration::from_secs(600);

/// A session's or question's deadline precedes the expiry of its records by at least this.
pub const DEADLINE_BEFORE_EXPIRY: Duration = Duration::from_secs(2 * 86_400);
