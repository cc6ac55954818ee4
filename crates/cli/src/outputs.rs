//! Looks up a stack's resource names from its outputs, where the environment does not set them.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_cloudformation::Client;

use crate::commands::said;
use crate::failure::Failure;
use crate::resolve::cloud::Cloud;

/// Timeout of the lookup in `CloudFormation`, including retries.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(15);

/// Names of the outputs in the synthesised template.
const TABLE: &str = "JournalTableName";
const STATE_MACHINE: &str = "StateMachineArn";
const LOG_KEY: &str = "JournalLogKey";
const RUNTIME: &str = "AgentRuntimeArn";
const EVENT_BUS: &str = "EventBusName";
const ACTIONS_URL: &str = "ActionsUrl";
const ACTIONS_BUS: &str = "ActionsBusName";

/// The resource names of a stack. Queries `CloudFormation` only if the environment leaves out the journal's
/// table or the state machine; names from the environment take precedence.
///
/// # Errors
/// When the stack does not exist, or the caller may not describe it.
pub async fn named(cloud: &Cloud, aws: &SdkConfig) -> Result<Cloud, Failure> {
    if cloud.is_named() {
        return Ok(cloud.clone());
    }
    let stack = cloud.stack();
    let mut outputs = outputs(aws, &stack).await.map_err(|why| {
        Failure::unknown(format!("cannot describe the stack {stack}: {why}")).hint(
            "set DAYBOOK_STAGE and AWS_REGION to those of the deployment; this requires \
             cloudformation:DescribeStacks",
        )
    })?;
    let mut output = |known: &Option<String>, name| known.clone().or_else(|| outputs.remove(name));
    Ok(Cloud {
        stage: cloud.stage.clone(),
        table: output(&cloud.table, TABLE),
        state_machine_arn: output(&cloud.state_machine_arn, STATE_MACHINE),
        log_key: output(&cloud.log_key, LOG_KEY),
        runtime_arn: output(&cloud.runtime_arn, RUNTIME),
        event_bus_name: output(&cloud.event_bus_name, EVENT_BUS),
        actions_url: output(&cloud.actions_url, ACTIONS_URL),
        actions_bus: output(&cloud.actions_bus, ACTIONS_BUS),
    })
}

async fn outputs(aws: &SdkConfig, stack: &str) -> Result<BTreeMap<String, String>, String> {
    let timeouts = TimeoutConfig::builder().operation_timeout(LOOKUP_TIMEOUT).build();
    let config =
        aws_sdk_cloudformation::config::Builder::from(aws).timeout_config(timeouts).build();
    let described = Client::from_conf(config).describe_stacks().stack_name(stack).send().await;
    let described = described.map_err(|error| said(&error))?;
    let outputs = described.stacks().iter().flat_map(|stack| stack.outputs());
    let known = outputs.filter_map(|output| {
        Some((output.output_key()?.to_owned(), output.output_value()?.to_owned()))
    });
    Ok(known.collect())
}
