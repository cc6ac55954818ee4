//! The entry point for reported incidents: a topic, its queue, and a pipe that converts each
//! message to a trigger.

use anyhow::Result;
use incident::alarms::MESSAGE_TEMPLATE;
use jsii::{Handle as _, Is as _};
use workflow::rule;

use crate::alarms::may_publish;
use crate::cdk::aws_events::IEventBus;
use crate::cdk::aws_pipes::{
    CfnPipe, CfnPipePipeSourceParametersProperty, CfnPipePipeSourceSqsQueueParametersProperty,
    CfnPipePipeTargetEventBridgeEventBusParametersProperty, CfnPipePipeTargetParametersProperty,
    CfnPipeProps, CfnPipePropsRequired,
};
use crate::cdk::aws_sns::{Topic, TopicProps};
use crate::cdk::aws_sns_subscriptions::SqsSubscription;
use crate::cdk::aws_sqs::{DeadLetterQueue, Queue, QueueProps};
use crate::cdk::{Duration, Stack};
use crate::config::Config;
use crate::names::Names;
use crate::roles;
use crate::triggers::queue;

/// Attempts per message before it goes to the queue of failed messages.
const RECEIVES_MAX: u32 = 5;

/// Visibility timeout of a message that the pipe is processing, in seconds.
const HIDDEN_SECONDS: u32 = 60;

pub(crate) struct Incidents {
    pub(crate) topic: Topic,
    /// Messages that could not be converted to a trigger.
    pub(crate) put_aside: Queue,
}

pub(crate) fn make(
    stack: &Stack,
    names: &Names,
    config: &Config,
    bus: &IEventBus,
) -> Result<Incidents> {
    let kernel = stack.object().kernel();
    let put_aside = queue(stack, "PutAside", &names.of("incidents-put-aside"), QueueProps::new())?;
    let props = QueueProps::new()
        .visibility_timeout(&Duration::seconds(kernel, HIDDEN_SECONDS)?)
        .dead_letter_queue(DeadLetterQueue::new(RECEIVES_MAX, &put_aside));
    let messages = queue(stack, "Incidents", &names.of("incidents"), props)?;
    let props = TopicProps::new()
        .topic_name(names.of("incidents"))
        .display_name("Daybook: incidents to diagnose")
        .enforce_ssl(true);
    let topic = Topic::new_with(stack, "IncidentTopic", props)?;
    may_publish(&topic, &names.arn("cloudwatch", "alarm:*"))?;
    topic.add_subscription(&SqsSubscription::new(&messages)?)?;

    let role = roles::make(stack, names, config, "MessagesRole")?;
    let source = CfnPipePipeSourceParametersProperty::new().sqs_queue_parameters(
        // One trigger per message, so that a message that fails does not delay others.
        CfnPipePipeSourceSqsQueueParametersProperty::new().batch_size(1),
    );
    let target = CfnPipePipeTargetParametersProperty::new()
        .input_template(MESSAGE_TEMPLATE)
        .event_bridge_event_bus_parameters(
            CfnPipePipeTargetEventBridgeEventBusParametersProperty::new()
                .source(rule::SOURCE)
                .detail_type(rule::DETAIL_TYPE),
        );
    let (role, from, to) = (role.role_arn()?, messages.queue_arn()?, bus.event_bus_arn()?);
    let props =
        CfnPipeProps::new(CfnPipePropsRequired { role_arn: &role, source: &from, target: &to })
            .name(names.of("incidents"))
            .description("Converts each message to a trigger of the incident agent.")
            .source_parameters(source)
            .target_parameters(target);
    CfnPipe::new(stack, "Messages", props)?;
    Ok(Incidents { topic: topic.upcast(), put_aside })
}
