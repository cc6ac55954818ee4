//! Query and GetItem.

use journal::item::Item;
use journal::store::{Cursor, Partition, Query, Store};
use serde_json::{Value as Json, json};

use super::capacity::{Consumed, Wanted};
use super::error::ApiError;
use super::expression::ast::Condition;
use super::expression::placeholders::Placeholders;
use super::expression::{self, Projection};
use super::key_condition::KeyCondition;
use super::keys::{self, Schema, Start, scalar_keys};
use super::request::Request;

/// Most bytes read for a page. The item that reaches this limit is the last.
///
/// Source: AWS, "Paginating table query results in DynamoDB".
pub(super) const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Items per read of the store; bounds the memory of a page of large items.
pub(super) const BATCH_ITEMS_MAX: usize = 64;

const FILTER: &str = "FilterExpression";
const PROJECTION: &str = "ProjectionExpression";
const KEY_CONDITION: &str = "KeyConditionExpression";

pub(super) async fn query<S: Store>(store: &S, request: &Request) -> Result<Json, ApiError> {
    request.for_our_table()?;
    request.without_legacy(
        &["KeyConditions", "QueryFilter", "AttributesToGet", "ConditionalOperator"],
        &[PROJECTION, FILTER, KEY_CONDITION],
    )?;
    let limit = limit(request)?;
    let mut placeholders = Placeholders::read(
        request,
        &[FILTER, PROJECTION, KEY_CONDITION],
        &[FILTER, KEY_CONDITION],
    )?;
    let view = View::parse(request, &mut placeholders)?;
    let key_condition = request
        .text(KEY_CONDITION)?
        .map(|text| expression::condition(KEY_CONDITION, text, &mut placeholders))
        .transpose()?;
    placeholders.all_used()?;
    let schema = Schema::read(request)?;
    let consistent = consistency(request, schema)?;
    let key_condition = key_condition.ok_or_else(|| {
        ApiError::validation(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the \
             request.",
        )
    })?;
    view.check_paths()?;
    scalar_keys(key_condition.paths())?;
    let key_condition = KeyCondition::from_condition(&key_condition, schema)?;
    let start = schema.start(request)?;
    check_start(start.as_ref(), &key_condition)?;
    view.keep_off_keys(schema)?;
    let view = view.select(request, schema)?;
    let wanted = Wanted::read(request)?;
    let reverse = request.flag("ScanIndexForward")? == Some(false);
    let mut page = Page::new(limit);
    read_partition(store, schema, &key_condition, reverse, start, &mut page).await?;
    let consumed = Consumed::Read { bytes: page.bytes, consistent };
    Ok(wanted.add_to(view.answer(&page, schema), schema, consumed))
}

pub(super) async fn get_item<S: Store>(store: &S, request: &Request) -> Result<Json, ApiError> {
    request.for_our_table()?;
    request.without_legacy(&["AttributesToGet"], &[PROJECTION])?;
    let mut placeholders = Placeholders::read(request, &[PROJECTION], &[])?;
    let projection = request
        .text(PROJECTION)?
        .map(|text| expression::projection(text, &mut placeholders))
        .transpose()?;
    placeholders.all_used()?;
    scalar_keys(projection.iter().flat_map(|projection| &projection.0))?;
    let key = keys::key(request)?;
    let consistent = request.flag("ConsistentRead")?.unwrap_or(false);
    let wanted = Wanted::read(request)?;
    let item = store.get(key).await?;
    let bytes = item.as_ref().map_or(0, Item::size_bytes);
    let mut answer = json!({});
    if let Some(item) = item {
        answer["Item"] = projection.map_or_else(|| item.to_json(), |wanted| wanted.of(&item));
    }
    Ok(wanted.add_to(answer, Schema::Table, Consumed::Read { bytes, consistent }))
}

/// Most items of the page, as requested.
pub(super) fn limit(request: &Request) -> Result<Option<usize>, ApiError> {
    request.count("Limit", i64::from(i32::MAX))
}

/// Whether the read is strongly consistent; an index does not support that.
pub(super) fn consistency(request: &Request, schema: Schema) -> Result<bool, ApiError> {
    let consistent = request.flag("ConsistentRead")?.unwrap_or(false);
    if consistent && schema != Schema::Table {
        return Err(ApiError::validation(
            "Consistent reads are not supported on global secondary indexes",
        ));
    }
    Ok(consistent)
}

fn check_start(start: Option<&Start>, condition: &KeyCondition) -> Result<(), ApiError> {
    match start {
        Some(start) if start.hash != condition.hash => Err(ApiError::validation(
            "The provided starting key is outside query boundaries based on provided conditions",
        )),
        Some(start) if !condition.range.admits(&start.range) => Err(ApiError::validation(
            "The provided starting key does not match the range key predicate",
        )),
        _ => Ok(()),
    }
}

/// A page before any filter.
pub(super) struct Page {
    items: Vec<Item>,
    /// The total size of the items.
    pub(super) bytes: usize,
    limit: Option<usize>,
    full: bool,
}

impl Page {
    pub(super) fn new(limit: Option<usize>) -> Self {
        Self { items: Vec::new(), bytes: 0, limit, full: false }
    }

    /// Adds an item. Returns whether the page has room for more.
    pub(super) fn take(&mut self, item: Item) -> bool {
        self.bytes += item.size_bytes();
        self.items.push(item);
        self.full = Some(self.items.len()) == self.limit || self.bytes >= PAGE_BYTES_MAX;
        !self.full
    }

    /// The number of items to read next.
    pub(super) fn batch(&self) -> usize {
        let left = self.limit.map_or(BATCH_ITEMS_MAX, |limit| limit - self.items.len());
        left.min(BATCH_ITEMS_MAX)
    }
}

async fn read_partition<S: Store>(
    store: &S,
    schema: Schema,
    condition: &KeyCondition,
    reverse: bool,
    start: Option<Start>,
    page: &mut Page,
) -> Result<(), ApiError> {
    let (from, to) = condition.range.bounds();
    let (partition, from) = match schema {
        Schema::Table => (Partition::Table(condition.hash.clone()), from),
        // The index has no items without a time. Every time is at least the empty text.
        Schema::ByDay => (Partition::Day(condition.hash.clone()), Some(from.unwrap_or_default())),
    };
    let after = start.map(|start| Cursor { key: start.key, at: Some(start.range) });
    let mut query = Query { partition, from, to, reverse, limit: None, after };
    loop {
        query.limit = Some(page.batch());
        let batch = store.query(query.clone()).await?;
        for item in batch.items {
            let sort_key = match schema {
                Schema::Table => item.sk.as_str(),
                Schema::ByDay => item.text_opt(schema.range()).unwrap_or_default(),
            };
            // The store's bounds are inclusive.
            if !condition.range.admits(sort_key) {
                continue;
            }
            // The table's last key has one item, so nothing follows it.
            let last = schema == Schema::Table && condition.range.ends_at(sort_key, reverse);
            if !page.take(item) {
                page.full = !last;
                return Ok(());
            }
        }
        match batch.next {
            Some(next) => query.after = Some(next),
            None => return Ok(()),
        }
    }
}

/// The caller's view of a page.
pub(super) struct View {
    filter: Option<Condition>,
    projection: Option<Projection>,
    only_count: bool,
}

impl View {
    /// Parses filter and projection.
    pub(super) fn parse(
        request: &Request,
        placeholders: &mut Placeholders,
    ) -> Result<Self, ApiError> {
        let filter = request
            .text(FILTER)?
            .map(|text| expression::condition(FILTER, text, placeholders))
            .transpose()?;
        let projection = request
            .text(PROJECTION)?
            .map(|text| expression::projection(text, placeholders))
            .transpose()?;
        Ok(Self { filter, projection, only_count: false })
    }

    pub(super) fn check_paths(&self) -> Result<(), ApiError> {
        scalar_keys(self.filter.iter().flat_map(Condition::paths))?;
        scalar_keys(self.projection.iter().flat_map(|projection| &projection.0))
    }

    /// Refuses a query's filter on keys: the key condition is for those.
    fn keep_off_keys(&self, schema: Schema) -> Result<(), ApiError> {
        let keys = [schema.hash(), schema.range()];
        match self
            .filter
            .iter()
            .flat_map(Condition::paths)
            .find(|path| keys.contains(&path.name.as_str()))
        {
            Some(path) => Err(ApiError::validation(format!(
                "Filter Expression can only contain non-primary key attributes: Primary key \
                 attribute: {}",
                path.name
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn select(mut self, request: &Request, schema: Schema) -> Result<Self, ApiError> {
        let choices =
            ["", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES", "COUNT"];
        let select = request.one_of("Select", &choices)?;
        let conflict = match (select, &self.projection) {
            ("COUNT", Some(_)) => "only the Count",
            ("ALL_ATTRIBUTES" | "ALL_PROJECTED_ATTRIBUTES", Some(_)) => select,
            ("ALL_PROJECTED_ATTRIBUTES", None) if schema == Schema::Table => {
                return Err(ApiError::validation(
                    "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
                ));
            }
            ("SPECIFIC_ATTRIBUTES", None) => {
                return Err(ApiError::validation(
                    "Must specify the AttributesToGet or ProjectionExpression when choosing to get \
                     SPECIFIC_ATTRIBUTES",
                ));
            }
            _ => {
                self.only_count = select == "COUNT";
                return Ok(self);
            }
        };
        Err(ApiError::validation(format!(
            "Cannot specify the ProjectionExpression when choosing to get {conflict}"
        )))
    }

    /// The response for a page.
    pub(super) fn answer(&self, page: &Page, schema: Schema) -> Json {
        let shown: Vec<&Item> = page
            .items
            .iter()
            .filter(|item| self.filter.as_ref().is_none_or(|filter| filter.holds(item)))
            .collect();
        let mut answer = json!({});
        if !self.only_count {
            let project = |item: &Item| match &self.projection {
                Some(projection) => projection.of(item),
                None => item.to_json(),
            };
            answer["Items"] = shown.iter().map(|item| project(item)).collect();
        }
        answer["Count"] = shown.len().into();
        answer["ScannedCount"] = page.items.len().into();
        if let (true, Some(last)) = (page.full, page.items.last()) {
            answer["LastEvaluatedKey"] = schema.last_key(last);
        }
        answer
    }
}
