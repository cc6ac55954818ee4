//! Scan: every item of the table or of its index, in order of its key.

use journal::item::Item;
use journal::sqlite::SqliteStore;
use journal::store::{Error, Key};
use serde_json::Value as Json;

use super::capacity::{Consumed, Wanted};
use super::error::ApiError;
use super::expression::placeholders::Placeholders;
use super::keys::Schema;
use super::read::{BATCH_ITEMS_MAX, Page, View, consistency, limit};
use super::request::Request;

/// Most parts that a scan may be divided into.
///
/// Source: AWS, Amazon DynamoDB API Reference, Scan.
const SEGMENTS_MAX: i64 = 1_000_000;

/// The journal's view in order; every item has a key greater than the two empty texts.
const SELECT: &str = "SELECT pk, sk, body FROM journal WHERE (pk, sk) > (?, ?) \
                      ORDER BY pk, sk LIMIT";

pub(super) async fn scan(store: &SqliteStore, request: &Request) -> Result<Json, ApiError> {
    request.for_our_table()?;
    request.without_legacy(
        &["ScanFilter", "AttributesToGet", "ConditionalOperator"],
        &["ProjectionExpression", "FilterExpression"],
    )?;
    let limit = limit(request)?;
    let mut placeholders = Placeholders::read(
        request,
        &["FilterExpression", "ProjectionExpression"],
        &["FilterExpression"],
    )?;
    let view = View::parse(request, &mut placeholders)?;
    placeholders.all_used()?;
    let schema = Schema::read(request)?;
    let consistent = consistency(request, schema)?;
    view.check_paths()?;
    let segment = Segment::read(request)?;
    let start = schema.start(request)?;
    let view = view.select(request, schema)?;
    let wanted = Wanted::read(request)?;
    let mut page = Page::new(limit);
    let mut after = start.map_or_else(|| Key::new("", ""), |start| start.key);
    'pages: loop {
        let batch = read(store, after.clone()).await?;
        let Some(last) = batch.last() else { break };
        after = Key::new(last.pk.as_str(), last.sk.as_str());
        for item in batch {
            if schema.holds(&item) && segment.holds(&item.pk) && !page.take(item) {
                break 'pages;
            }
        }
    }
    let consumed = Consumed::Read { bytes: page.bytes, consistent };
    Ok(wanted.add_to(view.answer(&page, schema), schema, consumed))
}

async fn read(store: &SqliteStore, after: Key) -> Result<Vec<Item>, Error> {
    store
        .read(move |connection| {
            let unavailable = |error: rusqlite::Error| Error::Unavailable(error.into());
            let sql = format!("{SELECT} {BATCH_ITEMS_MAX}");
            let mut statement = connection.prepare_cached(&sql).map_err(unavailable)?;
            let rows = statement
                .query_map([&after.pk, &after.sk], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?))
                })
                .map_err(unavailable)?;
            rows.map(|row| {
                let (pk, sk, body): (String, String, String) = row.map_err(unavailable)?;
                item(&pk, &sk, &body)
            })
            .collect()
        })
        .await
}

fn item(pk: &str, sk: &str, body: &str) -> Result<Item, Error> {
    let mut json: Json =
        serde_json::from_str(body).map_err(|error| Error::Corrupt(error.into()))?;
    json["PK"] = serde_json::json!({ "S": pk });
    json["SK"] = serde_json::json!({ "S": sk });
    Ok(Item::from_json(&json)?)
}

/// One part of a divided scan.
struct Segment {
    number: usize,
    total: usize,
}

impl Segment {
    fn read(request: &Request) -> Result<Self, ApiError> {
        let total = request.count("TotalSegments", SEGMENTS_MAX)?;
        let number = request.whole("Segment")?;
        match (number, total) {
            (None, None) => Ok(Self { number: 0, total: 1 }),
            (Some(number), Some(total)) => match usize::try_from(number) {
                Ok(number) if number < total => Ok(Self { number, total }),
                _ => Err(ApiError::validation(
                    "The Segment parameter is zero-based and must be less than parameter \
                     TotalSegments: Segment: out of range",
                )),
            },
            (None, Some(_)) => Err(ApiError::validation(
                "The Segment parameter is required but was not present in the request when \
                 parameter TotalSegments is present",
            )),
            (Some(_), None) => Err(ApiError::validation(
                "The TotalSegments parameter is required but was not present in the request when \
                 Segment parameter is present",
            )),
        }
    }

    /// Whether this part has the partition: by FNV-1a, which is the same on every machine.
    fn holds(&self, pk: &str) -> bool {
        let hash = pk
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        usize::try_from(hash).is_ok_and(|hash| hash % self.total == self.number)
    }
}
