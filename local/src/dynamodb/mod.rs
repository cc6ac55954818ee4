//! DynamoDB's JSON protocol over the local journal, so that the AWS CLI, boto3 and an isolated agent
//! find the table that they would find in the cloud.
//!
//! [`handle`] takes an action's name and body and answers as DynamoDB does, in its own words where
//! it refuses. `read` and `scan` are the reads, with the key condition taken apart by
//! `key_condition`; `write` are the writes, all of them conditional, because the journal only grows.
//! [`expression`] is the expression language, without IO. What carries the JSON (HTTP, signatures,
//! headers) is the caller's.

use journal::sqlite::SqliteStore;
use serde_json::Value as Json;

mod capacity;
mod describe;
mod error;
pub mod expression;
mod key_condition;
mod keys;
pub mod number;
mod read;
pub mod request;
mod scan;
pub mod value;
mod write;

pub use error::ApiError;
use request::Request;

/// The one table.
pub const TABLE_NAME: &str = "daybook-journal";

/// The index over SESSION_INITIATED and verdict events.
pub const INDEX_NAME: &str = "ByDay";

/// What every action's name begins with in `X-Amz-Target`.
pub const TARGET_PREFIX: &str = "DynamoDB_20120810.";

/// Answers one request. `action` is the name without [`TARGET_PREFIX`].
///
/// # Errors
/// What DynamoDB would refuse, and what the journal refuses; for an action that this endpoint does
/// not have, [`ApiError::is_unknown_operation`].
pub async fn handle(store: &SqliteStore, action: &str, body: &[u8]) -> Result<Json, ApiError> {
    match action {
        "Query" => read::query(store, &Request::parse(body)?).await,
        "Scan" => scan::scan(store, &Request::parse(body)?).await,
        "GetItem" => read::get_item(store, &Request::parse(body)?).await,
        "DescribeTable" => describe::describe_table(store, &Request::parse(body)?).await,
        "ListTables" => describe::list_tables(&Request::parse(body)?),
        "PutItem" => write::put_item(store, &Request::parse(body)?).await,
        "UpdateItem" => write::update_item(store, &Request::parse(body)?).await,
        "DeleteItem" | "DeleteTable" | "BatchWriteItem" | "TransactWriteItems" => {
            Err(ApiError::access_denied(format!("{action} is refused: the journal is append-only")))
        }
        _ => Err(ApiError::unknown_operation()),
    }
}
