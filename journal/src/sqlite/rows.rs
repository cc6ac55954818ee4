//! Items as rows.

use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row, ToSql, params};

use crate::item::{Item, Value};
use crate::json::Unique;
use crate::key::{self, attribute};
use crate::lease;
use crate::limits::ITEM_BYTES_MAX;
use crate::log::Leaf;
use crate::store::{Condition, Cursor, Error, Key, Page, Partition, Query, Written};

/// Most items on a page, whatever the query allows, to limit a reader's memory.
const PAGE_ITEMS_MAX: usize = 1_000;

const SELECT: &str = "SELECT partition.pk, item.sk, item.body, item.at, item.pos, item.day, item.open \
                      FROM item JOIN partition ON partition.id = item.partition";

/// The result of a write in its transaction: SQLite's own errors are the outer ones, the journal's
/// the inner ones.
pub(super) type Outcome = rusqlite::Result<Result<Written, Error>>;

/// An item encoded as a row. Encoded before it enters the writer's queue, because the writer's
/// thread is shared by all.
pub(super) struct Encoded {
    key: Key,
    body: String,
    day: Option<String>,
    at: Option<String>,
    open: Option<String>,
}

/// What the index columns of an item hold: `day`, `at` and `open`.
fn indexed(item: &Item) -> [Option<&str>; 3] {
    let (day, open) = (item.text_opt(attribute::DAY), item.text_opt(lease::OPEN));
    let at = match (day, open) {
        (Some(_), _) => item.text_opt(attribute::TIMESTAMP),
        (None, Some(_)) => item.text_opt(lease::HEARTBEAT_AT),
        (None, None) => None,
    };
    [day, at, open]
}

impl Encoded {
    pub(super) fn of(item: Item) -> Self {
        let [day, at, open] = indexed(&item).map(|text| text.map(str::to_owned));
        // The keys have columns of their own.
        let body = serde_json::to_string(&item.attributes)
            .unwrap_or_else(|error| unreachable!("texts and numbers are JSON: {error}"));
        Self { key: Key::new(item.pk, item.sk), body, day, at, open }
    }
}

pub(super) fn put(connection: &Connection, item: &Encoded, condition: &Condition) -> Outcome {
    let partition = intern(connection, &item.key.pk)?;
    if *condition == Condition::Absent {
        let sql = "INSERT INTO item (partition, sk, body, day, at, open) VALUES (?, ?, ?, ?, ?, ?) \
                   ON CONFLICT (partition, sk) DO NOTHING";
        if write(&mut connection.prepare_cached(sql)?, partition, item)? == 1 {
            return Ok(Ok(Written::Done));
        }
    }
    let there = match read(connection, &item.key)? {
        Ok(there) => there,
        Err(error) => return Ok(Err(error)),
    };
    if !condition.holds(there.as_ref()) {
        return Ok(Ok(Written::Refused(there)));
    }
    upsert(connection, partition, item)?;
    Ok(Ok(Written::Done))
}

/// Checks the item's size; the limit is the same as in DynamoDB.
pub(super) fn check_size(item: &Item) -> Result<(), Error> {
    let bytes = item.size_bytes();
    if bytes <= ITEM_BYTES_MAX {
        return Ok(());
    }
    let refusal = format!("the item of {bytes} bytes exceeds the limit of {ITEM_BYTES_MAX}");
    Err(Error::Refused(refusal.into()))
}

pub(super) fn update(
    connection: &Connection,
    key: &Key,
    set: BTreeMap<String, Value>,
    condition: &Condition,
) -> Outcome {
    let there = match read(connection, key)? {
        Ok(there) => there,
        Err(error) => return Ok(Err(error)),
    };
    if !condition.holds(there.as_ref()) {
        return Ok(Ok(Written::Refused(there)));
    }
    let mut item = there.unwrap_or_else(|| Item::new(key.pk.as_str(), key.sk.as_str()));
    item.attributes.extend(set);
    if let Err(error) = check_size(&item) {
        return Ok(Err(error));
    }
    let partition = intern(connection, &key.pk)?;
    upsert(connection, partition, &Encoded::of(item))?;
    Ok(Ok(Written::Done))
}

pub(super) fn get(connection: &Connection, key: &Key) -> Result<Option<Item>, Error> {
    read(connection, key)?
}

fn intern(connection: &Connection, pk: &str) -> rusqlite::Result<i64> {
    let mut find = connection.prepare_cached("SELECT id FROM partition WHERE pk = ?")?;
    if let Some(id) = find.query_row([pk], |row| row.get(0)).optional()? {
        return Ok(id);
    }
    connection.prepare_cached("INSERT INTO partition (pk) VALUES (?)")?.insert([pk])
}

fn upsert(connection: &Connection, partition: i64, item: &Encoded) -> rusqlite::Result<()> {
    let sql = "INSERT INTO item (partition, sk, body, day, at, open) VALUES (?, ?, ?, ?, ?, ?) \
               ON CONFLICT (partition, sk) DO UPDATE SET \
               body = excluded.body, day = excluded.day, at = excluded.at, open = excluded.open";
    write(&mut connection.prepare_cached(sql)?, partition, item).map(|_| ())
}

fn write(
    statement: &mut CachedStatement<'_>,
    partition: i64,
    item: &Encoded,
) -> rusqlite::Result<usize> {
    let Encoded { key, body, day, at, open } = item;
    statement.execute(params![partition, key.sk, body, day, at, open])
}

fn read(connection: &Connection, key: &Key) -> rusqlite::Result<Result<Option<Item>, Error>> {
    let sql = format!("{SELECT} WHERE partition.pk = ? AND item.sk = ?");
    let mut statement = connection.prepare_cached(&sql)?;
    let row = statement.query_row([&key.pk, &key.sk], Found::from_row).optional()?;
    Ok(Ok(row.map(Found::item)))
}

/// A key, whatever the column holds: verification names a record with a damaged key.
fn key(column: ValueRef<'_>) -> String {
    match column {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Null => String::new(),
    }
}

fn optional(column: ValueRef<'_>) -> Option<String> {
    (column != ValueRef::Null).then(|| key(column))
}

struct Found {
    pk: String,
    sk: String,
    /// Why the column holds no text, otherwise.
    body: Result<String, String>,
    /// The index columns, in the order of [`indexed`].
    index: [Option<String>; 3],
    /// Whether the key is text as queries compare it: a BLOB of the same bytes is greater than any text.
    is_text: bool,
    /// The same of the index columns.
    is_index_text: bool,
}

impl Found {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let is_index_text =
            |column| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str_or_null().is_ok());
        Ok(Self {
            pk: key(row.get_ref(0)?),
            sk: key(row.get_ref(1)?),
            body: row.get(2).map_err(|error| error.to_string()),
            index: [
                optional(row.get_ref(5)?),
                optional(row.get_ref(3)?),
                optional(row.get_ref(6)?),
            ],
            is_text: row.get_ref(0)?.as_str().is_ok() && row.get_ref(1)?.as_str().is_ok(),
            is_index_text: is_index_text(3)? && is_index_text(5)? && is_index_text(6)?,
        })
    }

    /// A damaged body is an item of its own kind: the others of the page must stay readable.
    fn item(self) -> Item {
        let read = |body: String| {
            let read = serde_json::from_str::<Unique<Value>>(&body);
            read.map(|unique| unique.0).map_err(|error| error.to_string())
        };
        // A list needs the place of a damaged record in the index.
        let [day, at, _] = &self.index;
        let at = at.as_ref().filter(|_| day.is_some()).map(String::as_str);
        let unreadable = |reason: &str| {
            Item::unreadable(&*self.pk, &*self.sk, reason).with_some(attribute::TIMESTAMP, at)
        };
        if !self.is_text {
            return unreadable("its key is not text, so that queries pass it over");
        }
        let item = match self.body.and_then(read) {
            Ok(attributes) => Item::of(self.pk.clone(), self.sk.clone(), attributes),
            Err(reason) => return unreadable(&reason),
        };
        if [key::PARTITION, key::SORT].iter().any(|name| item.attributes.contains_key(*name)) {
            return unreadable("its body repeats its key");
        }
        // A record that is missing in the index, or elsewhere in it, is in no list.
        let is_there = indexed(&item) == self.index.each_ref().map(Option::as_deref);
        if !is_there || !self.is_index_text {
            return unreadable("its place in the index differs from its content");
        }
        item
    }
}

pub(super) fn query(connection: &Connection, query: &Query) -> Result<Page, Error> {
    Ok(query_within(connection, query, usize::MAX)?.unwrap_or_default())
}

/// A page of items whose bodies have at most this many bytes in total; `None` if there are more.
pub(super) fn query_within(
    connection: &Connection,
    query: &Query,
    bytes: usize,
) -> Result<Option<Page>, Error> {
    let limit = query.limit.unwrap_or(PAGE_ITEMS_MAX).min(PAGE_ITEMS_MAX);
    let found = select(connection, query, limit + 1, bytes)?;
    let Some(mut found) = found else { return Ok(None) };
    let more = found.len() > limit;
    found.truncate(limit);
    let next = match found.last() {
        // Behind a key that is not text, a cursor would lead to the same page again. The item has been named.
        Some(last) if more && last.is_text => {
            let key = Key::new(last.pk.as_str(), last.sk.as_str());
            Some(Cursor { key, at: last.index[1].clone() })
        }
        _ => None,
    };
    let items = found.into_iter().map(Found::item).collect();
    Ok(Some(Page { items, next }))
}

pub(super) fn landed(
    connection: &Connection,
    partition: &str,
    after: i64,
) -> Result<Vec<(i64, Item)>, Error> {
    let sql = format!(
        "{SELECT} WHERE partition.pk = ? AND item.pos > ? ORDER BY item.pos LIMIT {PAGE_ITEMS_MAX}"
    );
    let select = || -> rusqlite::Result<Vec<(i64, Found)>> {
        let mut statement = connection.prepare_cached(&sql)?;
        let found = |row: &Row<'_>| Ok((row.get(4)?, Found::from_row(row)?));
        statement.query_map(params![partition, after], found)?.collect()
    };
    let found = select()?;
    Ok(found.into_iter().map(|(place, found)| (place, found.item())).collect())
}

/// Events of all sessions after a position, and the position of the last of `rows` rows.
pub(super) fn events_landed(
    connection: &Connection,
    after: i64,
    rows: u32,
) -> Result<(Vec<(i64, Item)>, i64), Error> {
    let last = "SELECT ifnull(max(pos), ?1) FROM \
                (SELECT pos FROM item WHERE pos > ?1 ORDER BY pos LIMIT ?2)";
    let examined: i64 =
        connection.prepare_cached(last)?.query_row(params![after, rows], |row| row.get(0))?;
    let sql = format!(
        "{SELECT} WHERE item.pos > ? AND item.pos <= ? AND item.sk >= 'EVENT#' AND item.sk < 'EVENT$' \
         ORDER BY item.pos"
    );
    let select = || -> rusqlite::Result<Vec<(i64, Found)>> {
        let mut statement = connection.prepare_cached(&sql)?;
        let found = |row: &Row<'_>| Ok((row.get(4)?, Found::from_row(row)?));
        statement.query_map(params![after, examined], found)?.collect()
    };
    let found = select()?;
    Ok((found.into_iter().map(|(place, found)| (place, found.item())).collect(), examined))
}

/// The newest items of partitions whose keys begin with a prefix that ends with `#`.
pub(super) fn newest_of(
    connection: &Connection,
    prefix: &str,
    limit: usize,
) -> Result<Vec<Item>, Error> {
    let after = format!("{}$", prefix.trim_end_matches('#'));
    let sql = format!(
        "{SELECT} WHERE partition.pk >= ? AND partition.pk < ? ORDER BY item.pos DESC LIMIT {limit}"
    );
    let select = || -> rusqlite::Result<Vec<Found>> {
        let mut statement = connection.prepare_cached(&sql)?;
        statement.query_map(params![prefix, after], Found::from_row)?.collect()
    };
    Ok(select()?.into_iter().map(Found::item).collect())
}

/// Items of all partitions in key order; all keys are greater than two empty texts.
pub(super) fn scan(
    connection: &Connection,
    after: Option<Key>,
    limit: usize,
) -> Result<Vec<Item>, Error> {
    let sql = format!(
        "{SELECT} WHERE (partition.pk, item.sk) > (?, ?) \
         ORDER BY partition.pk, item.sk LIMIT {}",
        limit.min(PAGE_ITEMS_MAX)
    );
    let after = after.unwrap_or_else(|| Key::new("", ""));
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![after.pk, after.sk], Found::from_row)?;
    Ok(rows.map(|found| Ok(found?.item())).collect::<rusqlite::Result<_>>()?)
}

/// The leaves of all records, in the order of their writing.
pub(super) fn leaves(
    connection: &Connection,
    mut take: impl FnMut(Leaf) -> Result<(), Error>,
) -> Result<(), Error> {
    let sql = format!(
        "{SELECT} WHERE item.sk LIKE 'EVENT#%' AND item.body LIKE '%SESSION_%' ORDER BY item.pos"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let leaf = Leaf::of(&Found::from_row(row)?.item());
        leaf.map(&mut take).transpose()?;
    }
    Ok(())
}

/// Keys of partitions with items, after one, in order. Those that are not text are left out: they are greater than
/// any text, so that paging would not end.
pub(super) fn partitions(
    connection: &Connection,
    after: &str,
    limit: usize,
) -> Result<Vec<String>, Error> {
    let sql = "SELECT pk FROM partition WHERE pk > ? AND typeof(pk) = 'text' \
               AND EXISTS (SELECT 1 FROM item WHERE item.partition = partition.id) \
               ORDER BY pk LIMIT ?";
    let read = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare_cached(sql)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        statement.query_map(params![after, limit], |row| Ok(key(row.get_ref(0)?)))?.collect()
    };
    Ok(read()?)
}

/// Keys of partitions with items that are not text, at most this many: no query finds their items.
pub(super) fn partitions_not_text(
    connection: &Connection,
    limit: usize,
) -> Result<Vec<String>, Error> {
    let sql = "SELECT pk FROM partition WHERE typeof(pk) <> 'text' \
               AND EXISTS (SELECT 1 FROM item WHERE item.partition = partition.id) LIMIT ?";
    let read = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare_cached(sql)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        statement.query_map([limit], |row| Ok(key(row.get_ref(0)?)))?.collect()
    };
    Ok(read()?)
}

/// Counts by `Status`. For the by-day index this reads only an index, which grouping in SQL would
/// not do.
pub(super) fn count_by_status(
    connection: &Connection,
    query: &Query,
) -> Result<BTreeMap<String, u64>, Error> {
    let mut sql = "SELECT json_extract(item.body, '$.Status.S') FROM item".to_owned();
    if matches!(query.partition, Partition::Table(_)) {
        sql.push_str(" JOIN partition ON partition.id = item.partition");
    }
    let (condition, values, _) = condition(query);
    sql.push_str(&condition);
    let count = || -> rusqlite::Result<BTreeMap<String, u64>> {
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(values.iter()))?;
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            // A damaged record counts as none; lists and verification name it.
            let ValueRef::Text(status) = row.get_ref(0)? else { continue };
            let Ok(status) = std::str::from_utf8(status) else { continue };
            match counts.get_mut(status) {
                Some(count) => *count += 1,
                None => drop(counts.insert(status.to_owned(), 1)),
            }
        }
        Ok(counts)
    };
    Ok(count()?)
}

/// The condition of a query, its values, and the column that orders the items.
fn condition(query: &Query) -> (String, Vec<Box<dyn ToSql>>, &'static str) {
    let mut sql = String::new();
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
    let column = match &query.partition {
        Partition::Table(pk) => {
            sql.push_str(" WHERE partition.pk = ?");
            values.push(Box::new(pk.clone()));
            "item.sk"
        }
        Partition::Day(day) => {
            sql.push_str(" WHERE item.day = ?");
            values.push(Box::new(day.clone()));
            "item.at"
        }
        Partition::Open(shard) => {
            sql.push_str(" WHERE item.open = ?");
            values.push(Box::new(shard.clone()));
            "item.at"
        }
    };
    for (bound, comparison) in [(&query.from, ">="), (&query.to, "<=")] {
        if let Some(bound) = bound {
            sql.push_str(&format!(" AND {column} {comparison} ?"));
            values.push(Box::new(bound.clone()));
        }
    }
    (sql, values, column)
}

fn select(
    connection: &Connection,
    query: &Query,
    limit: usize,
    bytes: usize,
) -> rusqlite::Result<Option<Vec<Found>>> {
    let (order, beyond) = if query.reverse { ("DESC", "<") } else { ("ASC", ">") };
    let (condition, mut values, column) = condition(query);
    let mut sql = format!("{SELECT}{condition}");
    if let Some(cursor) = &query.after {
        // Entries of an index with the same time are ordered by row position.
        let place = "(SELECT i.pos FROM item i JOIN partition p ON p.id = i.partition \
                     WHERE p.pk = ? AND i.sk = ?)";
        let at = match &query.partition {
            Partition::Table(_) => cursor.key.sk.clone(),
            Partition::Day(_) | Partition::Open(_) => cursor.at.clone().unwrap_or_default(),
        };
        sql.push_str(&format!(" AND ({column}, item.pos) {beyond} (?, {place})"));
        values.push(Box::new(at));
        values.push(Box::new(cursor.key.pk.clone()));
        values.push(Box::new(cursor.key.sk.clone()));
    }
    sql.push_str(&format!(" ORDER BY {column} {order}, item.pos {order} LIMIT {limit}"));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(values.iter()))?;
    let (mut found, mut left) = (Vec::new(), bytes);
    while let Some(row) = rows.next()? {
        let row = Found::from_row(row)?;
        let Some(rest) = left.checked_sub(row.body.as_ref().map_or(0, String::len)) else {
            return Ok(None);
        };
        left = rest;
        found.push(row);
    }
    Ok(Some(found))
}
