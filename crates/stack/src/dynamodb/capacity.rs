//! Consumed capacity: what a request would cost.

use serde_json::{Value as Json, json};

use super::error::ApiError;
use super::keys::Schema;
use super::request::Request;
use super::{INDEX_NAME, TABLE_NAME};

/// Size of a read unit, in bytes.
///
/// Source: AWS, "Amazon DynamoDB read and write operations", capacity unit consumption.
const READ_UNIT_BYTES: usize = 4096;

/// Size of a write unit, in bytes.
///
/// Source: as [`READ_UNIT_BYTES`].
const WRITE_UNIT_BYTES: usize = 1024;

/// The level of detail that the caller requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    None,
    Total,
    Indexes,
}

/// The bytes that a request read or wrote.
#[derive(Clone, Copy, Debug)]
pub(super) enum Consumed {
    Read { bytes: usize, consistent: bool },
    Written { bytes: usize },
}

impl Wanted {
    pub(super) fn read(request: &Request) -> Result<Self, ApiError> {
        Ok(match request.one_of("ReturnConsumedCapacity", &["NONE", "TOTAL", "INDEXES"])? {
            "TOTAL" => Self::Total,
            "INDEXES" => Self::Indexes,
            _ => Self::None,
        })
    }

    /// Adds the consumed capacity to the response, if the caller requests it.
    pub(super) fn add_to(self, mut answer: Json, schema: Schema, consumed: Consumed) -> Json {
        if self == Self::None {
            return answer;
        }
        let units = consumed.units();
        let mut capacity = json!({ "TableName": TABLE_NAME, "CapacityUnits": units });
        if self == Self::Indexes {
            let of_table = if schema == Schema::Table { units } else { 0.0 };
            capacity["Table"] = json!({ "CapacityUnits": of_table });
            if schema == Schema::ByDay {
                capacity["GlobalSecondaryIndexes"] =
                    json!({ INDEX_NAME: { "CapacityUnits": units } });
            }
        }
        answer["ConsumedCapacity"] = capacity;
        answer
    }
}

impl Consumed {
    fn units(self) -> f64 {
        let (bytes, unit_bytes, factor) = match self {
            Self::Read { bytes, consistent: true } => (bytes, READ_UNIT_BYTES, 1.0),
            Self::Read { bytes, consistent: false } => (bytes, READ_UNIT_BYTES, 0.5),
            Self::Written { bytes } => (bytes, WRITE_UNIT_BYTES, 1.0),
        };
        // A page is at most 1 MB and one item, so the count is exact in 32 bits.
        f64::from(u32::try_from(bytes.div_ceil(unit_bytes).max(1)).unwrap_or(u32::MAX)) * factor
    }
}
