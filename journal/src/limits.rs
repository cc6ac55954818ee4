//! The journal's bounds, each with what happens there.

use std::time::Duration;

/// Largest payload kept inside its record, in stored bytes; above it the payload becomes parts.
pub const INLINE_BYTES_MAX: usize = 96 * 1024;

/// Raw payloads larger than this, in bytes, are compressed.
pub const COMPRESS_BYTES_MIN: usize = 4 * 1024;

/// Largest part of a payload, in bytes: below DynamoDB's item size with room for the key.
pub const PART_BYTES_MAX: usize = 350 * 1024;

/// Largest payload, in raw bytes. A larger one is refused before any write, and never retried.
pub const PAYLOAD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Largest event detail, in bytes of JSON. A larger one is replaced by a note of its size.
pub const DETAIL_BYTES_MAX: usize = 4 * 1024;

/// Longest error message, in characters. A longer one is cut and ends with an ellipsis.
pub const ERROR_MESSAGE_CHARS_MAX: usize = 500;

/// Most events that a session may have. Beyond it only the verdict is still written.
pub const EVENTS_MAX: usize = 1_000;

/// Most steps of one session, the largest number that the eight digits of a step's key hold.
pub const STEPS_MAX: u32 = 99_999_999;

/// Largest item the table stores, in bytes, attribute names included.
///
/// Source: AWS, "Quotas in Amazon DynamoDB", item size.
pub const ITEM_BYTES_MAX: usize = 400 * 1024;

/// How often an announcement moves to the next nanosecond before it gives up.
pub const STAMP_COLLISIONS_MAX: u32 = 1_000;

/// How often one record is sent again when the store was unavailable or its answer was lost.
pub const WRITE_ATTEMPTS_MAX: u32 = 5;

/// How often a writer that ends a session steps over records that came first.
pub const END_COLLISIONS_MAX: u32 = 1_000;

/// A stamp further than this from its writer's clock also stores that clock.
pub const SKEW_NOTED: Duration = Duration::from_secs(1);

/// A stamp further than this ahead of the reader's clock is reported.
pub const SKEW_REPORTED: Duration = Duration::from_secs(600);

/// How long before its records expire a session's or a question's deadline ends, at the latest.
pub const DEADLINE_BEFORE_EXPIRY: Duration = Duration::from_secs(2 * 86_400);
