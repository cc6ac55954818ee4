//! Creates tables for tests.

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::operation::create_table::builders::CreateTableFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType,
};

use super::DynamoStore;
use crate::key::{INDEX_BY_DAY, INDEX_OPEN_LEASES, PARTITION, SORT, attribute};
use crate::lease;
use crate::store::Error;

impl DynamoStore {
    /// Creates a table at a DynamoDB that accepts any credentials.
    ///
    /// # Errors
    /// The table cannot be created.
    pub async fn fresh_for_tests(endpoint: &str) -> Result<Self, Error> {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .endpoint_url(endpoint);
        let store = Self::new(config, &format!("journal-{}", uuid::Uuid::new_v4()));
        let request = table_definition(store.client.create_table().table_name(&*store.table))
            .map_err(|error| Error::Refused(error.into()))?;
        Box::pin(request.send()).await.map_err(|error| Error::Refused(error.into()))?;
        Ok(store)
    }
}

/// The table's keys and indexes. In an AWS account `infra` defines the table.
fn table_definition(
    table: CreateTableFluentBuilder,
) -> Result<CreateTableFluentBuilder, aws_sdk_dynamodb::error::BuildError> {
    let mut table = table.billing_mode(BillingMode::PayPerRequest);
    let of_indexes = [attribute::DAY, attribute::TIMESTAMP, lease::OPEN, lease::HEARTBEAT_AT];
    for name in [PARTITION, SORT].into_iter().chain(of_indexes) {
        table = table.attribute_definitions(
            AttributeDefinition::builder()
                .attribute_name(name)
                .attribute_type(ScalarAttributeType::S)
                .build()?,
        );
    }
    Ok(table
        .key_schema(key(PARTITION, KeyType::Hash)?)
        .key_schema(key(SORT, KeyType::Range)?)
        .global_secondary_indexes(index(INDEX_BY_DAY, attribute::DAY, attribute::TIMESTAMP)?)
        .global_secondary_indexes(index(INDEX_OPEN_LEASES, lease::OPEN, lease::HEARTBEAT_AT)?))
}

fn index(
    name: &str,
    hash: &str,
    range: &str,
) -> Result<GlobalSecondaryIndex, aws_sdk_dynamodb::error::BuildError> {
    GlobalSecondaryIndex::builder()
        .index_name(name)
        .key_schema(key(hash, KeyType::Hash)?)
        .key_schema(key(range, KeyType::Range)?)
        .projection(Projection::builder().projection_type(ProjectionType::All).build())
        .build()
}

fn key(
    name: &str,
    key_type: KeyType,
) -> Result<KeySchemaElement, aws_sdk_dynamodb::error::BuildError> {
    KeySchemaElement::builder().attribute_name(name).key_type(key_type).build()
}
