//! Reads across partitions, and in the order of writing.

use super::{SqliteStore, rows};
use crate::item::Item;
use crate::store::{Error, Key};

impl SqliteStore {
    /// The items of a partition written after a position, with their positions, in the order of their first write; at
    /// most a thousand. Positions only increase.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn landed(&self, partition: &str, after: i64) -> Result<Vec<(i64, Item)>, Error> {
        let partition = partition.to_owned();
        let mut landed =
            self.read(move |connection| rows::landed(connection, &partition, after)).await?;
        self.open_items(landed.iter_mut().map(|(_, item)| item))?;
        Ok(landed)
    }

    /// The events of all sessions written after a position, with their positions, in the order of their first write; and
    /// the position up to which `rows` rows were examined, which is `after` if there are no more.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn events_landed(
        &self,
        after: i64,
        rows: u32,
    ) -> Result<(Vec<(i64, Item)>, i64), Error> {
        let (mut landed, examined) =
            self.read(move |connection| rows::events_landed(connection, after, rows)).await?;
        self.open_items(landed.iter_mut().map(|(_, item)| item))?;
        Ok((landed, examined))
    }

    /// The position of the newest row; 0 in an empty file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn newest_position(&self) -> Result<i64, Error> {
        let newest = "SELECT ifnull(max(pos), 0) FROM item";
        self.read(move |connection| Ok(connection.query_row(newest, [], |row| row.get(0))?)).await
    }

    /// The items of partitions whose keys begin with `prefix`, the newest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn newest_of(&self, prefix: &str, limit: usize) -> Result<Vec<Item>, Error> {
        let prefix = prefix.to_owned();
        self.read(move |connection| rows::newest_of(connection, &prefix, limit)).await
    }

    /// The items of all partitions after a key, ordered by partition and sort key.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn scan(&self, after: Option<Key>, limit: usize) -> Result<Vec<Item>, Error> {
        let mut items = self.read(move |connection| rows::scan(connection, after, limit)).await?;
        self.open_items(&mut items)?;
        Ok(items)
    }

    /// The partition keys of all sessions and payloads after one, in order: of a session without listed records, too.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn partitions(&self, after: String, limit: usize) -> Result<Vec<String>, Error> {
        self.read(move |connection| rows::partitions(connection, &after, limit)).await
    }

    /// Keys of partitions with items that are not text, which [`Self::partitions`] leaves out.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn partitions_not_text(&self, limit: usize) -> Result<Vec<String>, Error> {
        self.read(move |connection| rows::partitions_not_text(connection, limit)).await
    }
}
