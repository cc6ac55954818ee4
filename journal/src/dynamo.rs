//! The DynamoDB store: one table.
//!
//! All names and values use placeholders, because `Status` and `Timestamp` are reserved words. The
//! SDK's retries are off: the writers of records decide when to retry.

mod expression;
mod transaction;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};

use crate::id::SessionId;
use crate::item::{Item, Value};
use crate::key::{EVENT_PREFIX, INDEX_BY_DAY, INDEX_OPEN_LEASES, attribute};
use crate::lease;
use crate::log::Leaf;
use crate::log::table::TableLog;
use crate::store::{Condition, Cursor, Error, Key, Page, Partition, Query, Store, Written};
use expression::Placeholders;

/// Polling interval of [`Store::changed`]; the table sends no notifications.
pub const POLL_INTERVAL: Duration = Duration::from_millis(500);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout of a request. DynamoDB normally replies within milliseconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct DynamoStore {
    client: Client,
    table: Arc<str>,
    is_logged: bool,
}

type Attributes = HashMap<String, AttributeValue>;

impl DynamoStore {
    /// Creates a store; `config` is an `aws_config` or a DynamoDB configuration.
    pub fn new(config: impl Into<aws_sdk_dynamodb::config::Builder>, table: &str) -> Self {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .operation_timeout(REQUEST_TIMEOUT)
            .build();
        let config =
            config.into().retry_config(RetryConfig::disabled()).timeout_config(timeouts).build();
        Self { client: Client::from_conf(config), table: table.into(), is_logged: false }
    }

    /// The same store, as in an account: it writes each SESSION_INITIATED record and each verdict together with its leaf
    /// in the log of sessions, updates no event, and has receipts for people's steps. A stack's local endpoint is used
    /// without it: it has no transactions, and the file behind it logs every record by itself.
    #[must_use]
    pub fn with_log(self) -> Self {
        Self { is_logged: true, ..self }
    }

    /// The table's name.
    pub fn table(&self) -> &str {
        &self.table
    }

    async fn put_one(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        let mut placeholders = Placeholders::default();
        let expression = placeholders.condition(&condition);
        let key = Key::new(item.pk.as_str(), item.sk.as_str());
        let request = self
            .client
            .put_item()
            .table_name(&*self.table)
            .set_item(Some(write_item(item)))
            .condition_expression(expression)
            .set_expression_attribute_names(placeholders.names())
            .set_expression_attribute_values(placeholders.values())
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let error = match Box::pin(request.send()).await {
            Ok(_) => return Ok(Written::Done),
            Err(error) => error,
        };
        if let Some(PutItemError::ConditionalCheckFailedException(failed)) =
            error.as_service_error()
        {
            return self.refused(key, failed.item()).await;
        }
        Err(write_error(error))
    }

    /// The item that made a condition fail: from the reply, or read again if the reply omits it.
    async fn refused(&self, key: Key, found: Option<&Attributes>) -> Result<Written, Error> {
        let found = match found {
            Some(attributes) if !attributes.is_empty() => Some(read_item(attributes)?),
            _ => self.get(key).await?,
        };
        Ok(Written::Refused(found))
    }
}

impl Store for DynamoStore {
    async fn put(&self, item: Item, condition: Condition) -> Result<Written, Error> {
        match Leaf::of(&item).filter(|_| self.is_logged) {
            Some(leaf) => Box::pin(TableLog::new(self.clone()).put(item, condition, &leaf)).await,
            None => self.put_one(item, condition).await,
        }
    }

    async fn update(
        &self,
        key: Key,
        set: BTreeMap<String, Value>,
        condition: Condition,
    ) -> Result<Written, Error> {
        if self.is_logged && key.sk.starts_with(EVENT_PREFIX) {
            let problem = format!("{} {} is an event, which is written as a whole", key.pk, key.sk);
            return Err(Error::Refused(problem.into()));
        }
        let mut placeholders = Placeholders::default();
        let update = placeholders.update(&set);
        let expression = placeholders.condition(&condition);
        let request = self
            .client
            .update_item()
            .table_name(&*self.table)
            .set_key(Some(write_key(&key)))
            .set_update_expression(update)
            .condition_expression(expression)
            .set_expression_attribute_names(placeholders.names())
            .set_expression_attribute_values(placeholders.values())
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let error = match Box::pin(request.send()).await {
            Ok(_) => return Ok(Written::Done),
            Err(error) => error,
        };
        if let Some(UpdateItemError::ConditionalCheckFailedException(failed)) =
            error.as_service_error()
        {
            return self.refused(key, failed.item()).await;
        }
        Err(write_error(error))
    }

    async fn get(&self, key: Key) -> Result<Option<Item>, Error> {
        let request = self
            .client
            .get_item()
            .table_name(&*self.table)
            .set_key(Some(write_key(&key)))
            .consistent_read(true);
        let answer = Box::pin(request.send()).await.map_err(read_error)?;
        answer.item().map(read_item).transpose()
    }

    async fn query(&self, query: Query) -> Result<Page, Error> {
        if let (Some(from), Some(to)) = (&query.from, &query.to)
            && from > to
        {
            // DynamoDB rejects a range whose end precedes its start; such a range is empty.
            return Ok(Page::default());
        }
        let mut placeholders = Placeholders::default();
        let expression = placeholders.key_condition(&query);
        let after = query.after.as_ref();
        let (index, start) = match &query.partition {
            Partition::Table(_) => (None, after.map(|after| write_key(&after.key))),
            Partition::Day(day) => {
                let hash = (attribute::DAY, day.as_str());
                let start = after.map(|after| write_cursor(after, hash, attribute::TIMESTAMP));
                (Some(INDEX_BY_DAY.to_owned()), start)
            }
            Partition::Open(shard) => {
                let hash = (lease::OPEN, shard.as_str());
                let start = after.map(|after| write_cursor(after, hash, lease::HEARTBEAT_AT));
                (Some(INDEX_OPEN_LEASES.to_owned()), start)
            }
        };
        let limit = query.limit.map(|limit| i32::try_from(limit.max(1)).unwrap_or(i32::MAX));
        let request = self
            .client
            .query()
            .table_name(&*self.table)
            // DynamoDB rejects consistent reads of an index.
            .consistent_read(index.is_none())
            .set_index_name(index)
            .key_condition_expression(expression)
            .set_expression_attribute_names(placeholders.names())
            .set_expression_attribute_values(placeholders.values())
            .scan_index_forward(!query.reverse)
            .set_limit(limit)
            .set_exclusive_start_key(start);
        let answer = Box::pin(request.send()).await.map_err(read_error)?;
        let items = answer.items().iter().map(read_item).collect::<Result<_, _>>()?;
        let next = answer.last_evaluated_key().map(read_cursor).transpose()?;
        Ok(Page { items, next })
    }

    async fn changed(&self, timeout: Duration) {
        tokio::time::sleep(timeout.min(POLL_INTERVAL)).await;
    }

    async fn log_session(&self, session: &SessionId) -> Result<(), Error> {
        if !self.is_logged {
            return Ok(());
        }
        Box::pin(TableLog::new(self.clone()).log_session(session)).await
    }

    fn has_receipts(&self) -> bool {
        self.is_logged
    }
}

fn write_value(value: Value) -> AttributeValue {
    match value {
        Value::S(text) => AttributeValue::S(text),
        Value::N(number) => AttributeValue::N(number.to_string()),
        Value::B(bytes) => AttributeValue::B(Blob::new(bytes)),
    }
}

/// `None` for a value of a type that the journal never writes.
fn read_value(value: &AttributeValue) -> Option<Value> {
    match value {
        AttributeValue::S(text) => Some(Value::S(text.clone())),
        AttributeValue::N(number) => number.parse().ok().map(Value::N),
        AttributeValue::B(bytes) => Some(Value::B(bytes.as_ref().to_vec())),
        _ => None,
    }
}

fn write_key(key: &Key) -> Attributes {
    HashMap::from([
        ("PK".to_owned(), AttributeValue::S(key.pk.clone())),
        ("SK".to_owned(), AttributeValue::S(key.sk.clone())),
    ])
}

fn write_item(item: Item) -> Attributes {
    let mut attributes = write_key(&Key { pk: item.pk, sk: item.sk });
    attributes.extend(item.attributes.into_iter().map(|(name, value)| (name, write_value(value))));
    attributes
}

fn read_key(attributes: &Attributes) -> Result<Key, Error> {
    let text = |name: &str| match attributes.get(name) {
        Some(AttributeValue::S(text)) => Ok(text.clone()),
        _ => Err(Error::Corrupt(format!("attribute `{name}` of an item is not a string").into())),
    };
    Ok(Key { pk: text("PK")?, sk: text("SK")? })
}

/// Reads an item. Other programs may add attributes of types that the journal does not write. The record stays
/// readable, but its hash no longer fits, so that verification names it.
fn read_item(attributes: &Attributes) -> Result<Item, Error> {
    let Key { pk, sk } = read_key(attributes)?;
    let foreign = || Value::S("an attribute of a type that the journal does not write".to_owned());
    let attributes = attributes
        .iter()
        .filter(|(name, _)| *name != "PK" && *name != "SK")
        .map(|(name, value)| (name.clone(), read_value(value).unwrap_or_else(foreign)))
        .collect();
    Ok(Item::of(pk, sk, attributes))
}

/// The start key in an index: the item's own key, and the index's keys `hash` and `range`.
fn write_cursor(cursor: &Cursor, hash: (&str, &str), range: &str) -> Attributes {
    let mut attributes = write_key(&cursor.key);
    attributes.insert(hash.0.to_owned(), AttributeValue::S(hash.1.to_owned()));
    let at = cursor.at.clone().unwrap_or_default();
    attributes.insert(range.to_owned(), AttributeValue::S(at));
    attributes
}

fn read_cursor(attributes: &Attributes) -> Result<Cursor, Error> {
    let range = [attribute::TIMESTAMP, lease::HEARTBEAT_AT].into_iter();
    let at = range.filter_map(|name| attributes.get(name)).find_map(|at| at.as_s().ok().cloned());
    Ok(Cursor { key: read_key(attributes)?, at })
}

/// A read has no side effects, so a request whose fate is unknown may be repeated.
fn read_error<E>(error: SdkError<E>) -> Error
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    match write_error(error) {
        Error::Unknown(cause) => Error::Unavailable(cause),
        other => other,
    }
}

fn write_error<E>(error: SdkError<E>) -> Error
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    match &error {
        SdkError::ConstructionFailure(_) => Error::Refused(error.into()),
        // A read timeout is a dispatch failure too, and the request may have arrived.
        SdkError::DispatchFailure(failure) if failure.is_user() => Error::Refused(error.into()),
        SdkError::DispatchFailure(failure) if !failure.is_timeout() && unconnected(&error) => {
            Error::Unavailable(error.into())
        }
        SdkError::ServiceError(answer) => {
            let status = answer.raw().status().as_u16();
            service_error(answer.err().code(), status)(error.into())
        }
        _ => Error::Unknown(error.into()),
    }
}

/// Classifies an error that DynamoDB returned. After an internal error (500) the item may have been
/// written; after 503 and throttling it was not.
///
/// Source: AWS, "Error handling with DynamoDB", error messages and codes.
fn service_error(
    code: Option<&str>,
    status: u16,
) -> fn(Box<dyn std::error::Error + Send + Sync>) -> Error {
    match code.unwrap_or_default() {
        "ProvisionedThroughputExceededException"
        | "RequestLimitExceeded"
        | "ThrottlingException"
        | "LimitExceededException"
        | "TransactionConflictException"
        | "TransactionInProgressException"
        | "ReplicatedWriteConflictException"
        | "ServiceUnavailable" => Error::Unavailable,
        _ if status == 503 || status == 429 => Error::Unavailable,
        _ if status >= 500 => Error::Unknown,
        _ => Error::Refused,
    }
}

/// Whether no connection was established, so that nothing was sent.
fn unconnected(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind as Kind;
    std::iter::successors(Some(error), |error| error.source()).any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| {
            matches!(
                error.kind(),
                Kind::ConnectionRefused
                    | Kind::HostUnreachable
                    | Kind::NetworkUnreachable
                    | Kind::AddrNotAvailable
            )
        })
    })
}

mod test_table;

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};

    use super::*;

    fn store_at(endpoint: &str) -> DynamoStore {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .endpoint_url(endpoint);
        DynamoStore::new(config, "journal")
    }

    /// Without its default features the SDK compiles without a connector and fails at run time.
    #[tokio::test]
    async fn a_refused_https_connection_has_sent_nothing() {
        let store = store_at("https://127.0.0.1:1");
        let put = store.put(Item::new("p", "s"), Condition::Absent).await.unwrap_err();
        assert!(matches!(put, Error::Unavailable(_)), "{put:?}");
        let get = store.get(Key::new("p", "s")).await.unwrap_err();
        assert!(matches!(get, Error::Unavailable(_)), "{get:?}");
    }

    #[tokio::test]
    async fn a_broken_connection_leaves_a_write_unknown() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut bytes = [0; 64];
                let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut bytes).await;
            }
        });
        let store = store_at(&format!("http://127.0.0.1:{port}"));
        let put = store.put(Item::new("p", "s"), Condition::Absent).await.unwrap_err();
        assert!(matches!(put, Error::Unknown(_)), "{put:?}");
        let get = store.get(Key::new("p", "s")).await.unwrap_err();
        assert!(matches!(get, Error::Unavailable(_)), "{get:?}");
    }

    /// An update would write a record without its leaf.
    #[tokio::test]
    async fn a_logged_store_updates_no_event() {
        let store = store_at("http://127.0.0.1:1");
        for (store, sk, expected) in [
            (store.clone().with_log(), "EVENT#2026-01-01T00:00:00.000000000Z", "rejected"),
            (store.clone().with_log(), "LEASE", "unavailable"),
            (store, "EVENT#2026-01-01T00:00:00.000000000Z", "unavailable"),
        ] {
            let set = BTreeMap::from([("Status".to_owned(), "SESSION_FAILED".into())]);
            let error = store.update(Key::new("p", sk), set, Condition::Absent).await.unwrap_err();
            assert!(error.to_string().contains(expected), "{sk}: {error}");
        }
    }

    #[test]
    fn an_error_reply_shows_whether_the_write_may_have_happened() {
        for (code, status, expected) in [
            ("ThrottlingException", 400, "unavailable"),
            ("ProvisionedThroughputExceededException", 400, "unavailable"),
            ("ServiceUnavailable", 503, "unavailable"),
            ("InternalServerError", 500, "unknown whether"),
            ("ValidationException", 400, "rejected"),
            ("ResourceNotFoundException", 400, "rejected"),
            ("AccessDeniedException", 400, "rejected"),
        ] {
            let error = service_error(Some(code), status)("cause".into());
            assert!(error.to_string().contains(expected), "{code}: {error}");
        }
    }

    #[test]
    fn an_attribute_of_another_type_breaks_the_hash() {
        let attributes = HashMap::from([
            ("PK".to_owned(), AttributeValue::S("p".to_owned())),
            ("SK".to_owned(), AttributeValue::S("s".to_owned())),
            ("Flag".to_owned(), AttributeValue::Bool(true)),
            ("Ratio".to_owned(), AttributeValue::N("0.5".to_owned())),
            ("Count".to_owned(), AttributeValue::N("5".to_owned())),
        ]);
        let item = read_item(&attributes).unwrap();
        let written = Item::new("p", "s").with("Count", 5_i64);
        assert_eq!(item.number("Count"), Ok(5));
        assert_ne!(item.hash(), written.hash(), "verification names the record");
    }
}
