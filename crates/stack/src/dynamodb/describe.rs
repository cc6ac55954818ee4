//! `DescribeTable`, `DescribeTimeToLive` and `ListTables`.

use journal::key::attribute::{DAY, EXPIRES_AT, TIMESTAMP};
use journal::sqlite::Size;
use serde_json::{Value as Json, json};

use super::error::ApiError;
use super::keys::{PK, SK, table_arn};
use super::request::Request;
use super::{INDEX_NAME, TABLE_NAME};
use crate::store::Database;

/// Largest page of ListTables.
///
/// Source: AWS, Amazon DynamoDB API Reference, ListTables.
const TABLES_MAX: i64 = 100;

pub(super) async fn describe_table(store: &Database, request: &Request) -> Result<Json, ApiError> {
    for_our_table(request)?;
    let Size { items, bytes } = store.size().await?;
    let definition = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
    let schema = |hash: &str, range: &str| {
        json!([
            { "AttributeName": hash, "KeyType": "HASH" },
            { "AttributeName": range, "KeyType": "RANGE" },
        ])
    };
    Ok(json!({ "Table": {
        "AttributeDefinitions": ([PK, SK, DAY, TIMESTAMP].map(definition)),
        "TableName": TABLE_NAME,
        "KeySchema": schema(PK, SK),
        "TableStatus": "ACTIVE",
        "ProvisionedThroughput":
            { "NumberOfDecreasesToday": 0, "ReadCapacityUnits": 0, "WriteCapacityUnits": 0 },
        "TableSizeBytes": bytes,
        "ItemCount": items,
        "TableArn": table_arn(),
        "BillingModeSummary": { "BillingMode": "PAY_PER_REQUEST" },
        "GlobalSecondaryIndexes": [{
            "IndexName": INDEX_NAME,
            "KeySchema": schema(DAY, TIMESTAMP),
            "Projection": { "ProjectionType": "ALL" },
            "IndexStatus": "ACTIVE",
            "IndexArn": format!("{}/index/{INDEX_NAME}", table_arn()),
        }],
        "DeletionProtectionEnabled": true,
    } }))
}

/// The stack removes what has expired, as DynamoDB does.
pub(super) fn describe_time_to_live(request: &Request) -> Result<Json, ApiError> {
    for_our_table(request)?;
    Ok(json!({ "TimeToLiveDescription": {
        "TimeToLiveStatus": "ENABLED", "AttributeName": EXPIRES_AT,
    } }))
}

fn for_our_table(request: &Request) -> Result<(), ApiError> {
    request.for_our_table().map_err(|error| match request.text("TableName") {
        Ok(Some(name)) if error.kind.ends_with("#ResourceNotFoundException") => {
            ApiError::not_found(format!("Requested resource not found: Table: {name} not found"))
        }
        _ => error,
    })
}

pub(super) fn list_tables(request: &Request) -> Result<Json, ApiError> {
    request.count("Limit", TABLES_MAX)?;
    let after = request.text("ExclusiveStartTableName")?;
    let names: Vec<&str> =
        [TABLE_NAME].into_iter().filter(|name| after.is_none_or(|after| after < *name)).collect();
    Ok(json!({ "TableNames": names }))
}
