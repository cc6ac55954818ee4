//! DynamoDB's JSON protocol over the local journal. The AWS CLI, boto3 and an isolated agent find the
//! same table as in the cloud.
//!
//! [`handle`] takes an action's name and body. Results and error messages are DynamoDB's.
//!
//! - `read` and `scan` are the reads; `key_condition` parses a query's key condition.
//! - `write` has the writes. All are conditional, because the journal is append-only.
//! - [`expression`] is the expression language, without IO.
//!
//! The caller handles HTTP, headers and signatures.

use journal::store::Store;
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

use crate::store::Database;
pub use error::ApiError;
use request::Request;

/// The only table.
pub const TABLE_NAME: &str = "daybook-journal";

/// The index over SESSION_INITIATED and verdict events.
pub const INDEX_NAME: &str = "ByDay";

/// The prefix of every action in `X-Amz-Target`.
pub const TARGET_PREFIX: &str = "DynamoDB_20120810.";

/// Handles a request. `action` is the name without [`TARGET_PREFIX`].
///
/// # Errors
/// Errors of DynamoDB and of the journal; for an unsupported action,
/// [`ApiError::is_unknown_operation`].
pub async fn handle(store: &Database, action: &str, body: &[u8]) -> Result<Json, ApiError> {
    match action {
        "Scan" => scan::scan(store, &Request::parse(body)?).await,
        "DescribeTable" => describe::describe_table(store, &Request::parse(body)?).await,
        "DescribeTimeToLive" => describe::describe_time_to_live(&Request::parse(body)?),
        "ListTables" => describe::list_tables(&Request::parse(body)?),
        _ => handle_items(store, action, body).await,
    }
}

/// Handles a request about items of the table, over any [`Store`].
///
/// # Errors
/// As for [`handle`].
pub(crate) async fn handle_items<S: Store>(
    store: &S,
    action: &str,
    body: &[u8],
) -> Result<Json, ApiError> {
    match action {
        "Query" => read::query(store, &Request::parse(body)?).await,
        "GetItem" => read::get_item(store, &Request::parse(body)?).await,
        "PutItem" => write::put_item(store, &Request::parse(body)?).await,
        "UpdateItem" => write::update_item(store, &Request::parse(body)?).await,
        "DeleteItem" | "DeleteTable" | "BatchWriteItem" | "TransactWriteItems" => {
            Err(ApiError::access_denied(format!("{action} is refused: the journal is append-only")))
        }
        _ => Err(ApiError::unknown_operation(action)),
    }
}
