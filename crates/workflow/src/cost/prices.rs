//! On-demand list prices in us-east-1, in dollars, without free tiers and discounts, as of [`AS_OF`];
//! and the quota on history events, with which usage is compared.

/// The day of the newest public page that states these prices.
pub const AS_OF: &str = "2026-06-13";

/// A custom event on an EventBridge bus.
///
/// Source: AWS, "Amazon EventBridge pricing": 1.00 a million.
pub const EVENT: f64 = 1.00 / 1e6;

/// A state transition of a standard workflow.
///
/// Source: AWS, "AWS Step Functions pricing": 0.025 a thousand.
pub const TRANSITION: f64 = 0.025 / 1e3;

/// A call of a function.
///
/// Source: AWS, "AWS Lambda pricing": 0.20 a million.
pub const FUNCTION_CALL: f64 = 0.20 / 1e6;

/// A second of a gibibyte of an ARM64 function.
///
/// Source: AWS, "AWS Lambda pricing", Arm.
pub const FUNCTION_GIB_SECOND: f64 = 0.000_013_333_4;

/// A write unit on demand.
///
/// Source: AWS, "Pricing for on-demand capacity", DynamoDB: 0.625 a million.
pub const WRITE_UNIT: f64 = 0.625 / 1e6;

/// A read unit on demand.
///
/// Source: as above: 0.125 a million.
pub const READ_UNIT: f64 = 0.125 / 1e6;

/// A gigabyte of the table for a month.
///
/// Source: as above.
pub const TABLE_GB_MONTH: f64 = 0.25;

/// An hour of a virtual processor that an agent runtime really uses.
///
/// Source: AWS, "Amazon Bedrock AgentCore pricing", Runtime.
pub const RUNTIME_VCPU_HOUR: f64 = 0.0895;

/// An hour of a gigabyte that an agent runtime has, idle or not.
///
/// Source: as above.
pub const RUNTIME_GB_HOUR: f64 = 0.00945;

/// Events that an execution's history takes before Step Functions fails it.
///
/// Source: AWS, "Step Functions service quotas", maximum execution history size.
pub const HISTORY_EVENTS_MAX: u64 = 25_000;
