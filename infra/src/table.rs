//! The journal's table, with the keys and indexes that the crate `journal` defines.

use anyhow::Result;
use journal::key::{self, attribute};
use journal::lease;

use crate::cdk::aws_dynamodb::{
    Attribute, AttributeType, BillingMode, GlobalSecondaryIndexProps,
    PointInTimeRecoverySpecification, ProjectionType, Table, TableEncryption, TableProps,
    WarmThroughput,
};
use crate::cdk::{RemovalPolicy, Stack};
use crate::config::Config;
use crate::names::Names;

/// Reads that a table takes at once for each write: 12,000 for 4,000 of a new table.
const READS_PER_WRITE: u32 = 3;

pub(crate) fn make(stack: &Stack, names: &Names, config: &Config) -> Result<Table> {
    let text = |name: &str| Attribute::new(name, AttributeType::String);
    let warm = config.warm_writes.map(|writes| {
        let reads = writes.saturating_mul(READS_PER_WRITE);
        move || WarmThroughput::new().write_units_per_second(writes).read_units_per_second(reads)
    });
    let props = TableProps::new()
        .table_name(names.of("journal"))
        .partition_key(text(key::PARTITION))
        .sort_key(text(key::SORT))
        .billing_mode(BillingMode::PayPerRequest)
        .time_to_live_attribute(attribute::EXPIRES_AT)
        .point_in_time_recovery_specification(PointInTimeRecoverySpecification::new(true))
        // The account's key for DynamoDB: its uses appear in CloudTrail.
        .encryption(TableEncryption::AwsManaged)
        .deletion_protection(config.protect)
        .removal_policy(if config.protect {
            // If the stack cannot be created, nothing remains.
            RemovalPolicy::RetainOnUpdateOrDelete
        } else {
            RemovalPolicy::Destroy
        });
    let props = match &warm {
        Some(warm) => props.warm_throughput(warm()),
        None => props,
    };
    let table = Table::new(stack, "Journal", props)?;
    for (index, partition, sort) in [
        (key::INDEX_BY_DAY, attribute::DAY, attribute::TIMESTAMP),
        (key::INDEX_OPEN_LEASES, lease::OPEN, lease::HEARTBEAT_AT),
    ] {
        let props = GlobalSecondaryIndexProps::new(index)
            .partition_key(text(partition))
            .sort_key(text(sort))
            .projection_type(ProjectionType::All);
        let props = match &warm {
            Some(warm) => props.warm_throughput(warm()),
            None => props,
        };
        table.add_global_secondary_index(props)?;
    }
    Ok(table)
}
