//! The main stack: everything except the journal and the image's repository.

use anyhow::Result;
use jsii::Is;

use crate::cdk::constructs::Construct;
use crate::cdk::{App, CfnOutput, CfnOutputProps, Stack, StackProps, Tags};
use crate::config::Config;
use crate::names::{ArnParts, Names};
use crate::{alarms, functions, incidents, log, machine, runtime, triggers};

/// Creates the stack; the others are deployed before it.
///
/// # Errors
/// The CDK rejects it.
pub fn stack(app: &App, config: &Config, before: &[Stack]) -> Result<Stack> {
    let name = Names::prefix(config);
    let props = StackProps::new()
        .stack_name(&name)
        .description("Daybook: an event-journaling workflow for AI agents.")
        .termination_protection(config.protect);
    let stack = Stack::new_with(&of(app), &name, props)?;
    for other in before {
        stack.add_stack_dependency(other)?;
    }
    tag(&stack, config)?;
    let names = names(&stack, config)?;

    let dead_letters = triggers::dead_letters(&stack, &names)?;
    let bus = triggers::bus(&stack, config)?;
    let runtime = runtime::make(&stack, &names, config)?;
    let runtime_arn = runtime.agent_runtime_arn()?;
    let functions = functions::make(&stack, &names, config, &runtime_arn, &dead_letters)?;
    let machine = machine::make(&stack, &names, config, &functions)?;
    let bucket = log::bucket(&stack, config)?.r#ref()?;
    log::machine(&stack, &names, config, &functions.poller.function_arn()?, &bucket)?;
    triggers::make(&stack, &names, config, &functions, &dead_letters)?;
    let actions_url = functions::actions_url(&stack, &functions)?;
    let incidents = incidents::make(&stack, &names, config, &bus)?;
    let alarms = alarms::make(&stack, &names, config)?;

    for (id, value, description) in [
        ("JournalTableName", names.of("journal"), "JOURNAL_TABLE_NAME of daybook --target aws"),
        ("StateMachineArn", machine.state_machine_arn()?, "STATE_MACHINE_ARN"),
        ("AgentRuntimeArn", runtime_arn, "AGENT_RUNTIME_ARN"),
        ("EventBusName", config.bus.clone(), "EVENT_BUS_NAME; the bus for triggers"),
        ("ActionsUrl", actions_url.attr_function_url()?, "Answers, cancellations and resumptions"),
        ("ActionsBusName", names.actions_bus(), "The same as events, for the people in `people`"),
        ("JournalLogKey", names.log_key_alias(), "JOURNAL_LOG_KEY; signs the log of sessions"),
        ("CheckpointsBucket", bucket, "Copies of the log's checkpoints"),
        ("IncidentTopicArn", incidents.topic.topic_arn()?, "Topic for messages about incidents"),
        (
            "IncidentsPutAsideUrl",
            incidents.put_aside.queue_url()?,
            "Messages that could not be converted to a trigger",
        ),
        ("AlarmTopicArn", alarms.topic_arn()?, "Subscribe to be notified of alarms"),
    ] {
        CfnOutput::new(&stack, id, CfnOutputProps::new(value).description(description))?;
    }
    Ok(stack)
}

/// The names for a stack's account and region.
pub(crate) fn names(stack: &Stack, config: &Config) -> Result<Names> {
    let arn_parts = ArnParts {
        partition: stack.partition()?,
        region: stack.region()?,
        account: stack.account()?,
    };
    Ok(Names::new(config, arn_parts))
}

pub(crate) fn tag(stack: &Stack, config: &Config) -> Result<()> {
    let tags = Tags::of(&of(stack))?;
    tags.add("project", "daybook")?;
    tags.add("stage", &config.stage)?;
    Ok(())
}

pub(crate) fn of(construct: &impl Is<Construct>) -> Construct {
    construct.upcast()
}
