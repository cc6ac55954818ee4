//! Scan: every item of the table or of its index, in key order.

use journal::store::Key;
use serde_json::Value as Json;

use super::capacity::{Consumed, Wanted};
use super::error::ApiError;
use super::expression::placeholders::Placeholders;
use super::keys::Schema;
use super::read::{BATCH_ITEMS_MAX, Page, View, consistency, limit};
use super::request::Request;
use crate::store::Database;

/// Most segments of a parallel scan.
///
/// Source: AWS, Amazon DynamoDB API Reference, Scan.
const SEGMENTS_MAX: i64 = 1_000_000;

pub(super) async fn scan(store: &Database, request: &Request) -> Result<Json, ApiError> {
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
    let mut after = start.map(|start| start.key);
    'pages: loop {
        let batch = store.scan(after, BATCH_ITEMS_MAX).await?;
        let Some(last) = batch.last() else { break };
        after = Some(Key::new(last.pk.as_str(), last.sk.as_str()));
        for item in batch {
            if schema.holds(&item) && segment.holds(&item.pk) && !page.take(item) {
                break 'pages;
            }
        }
    }
    let consumed = Consumed::Read { bytes: page.bytes, consistent };
    Ok(wanted.add_to(view.answer(&page, schema), schema, consumed))
}

/// A segment of a parallel scan.
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

    /// Whether the segment has the partition. Uses FNV-1a, which is the same on every machine.
    fn holds(&self, pk: &str) -> bool {
        let hash = pk
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        usize::try_from(hash).is_ok_and(|hash| hash % self.total == self.number)
    }
}
