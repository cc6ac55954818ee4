//! The way in for incidents that somebody reports: a topic, a queue behind it, and a pipe that makes a
//! trigger of each message.

use anyhow::Result;
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

/// How often a message is tried before it is put aside.
const RECEIVES_MAX: u32 = 5;

/// How long a message is hidden while the pipe has it, in seconds.
const HIDDEN_SECONDS: u32 = 60;

pub(crate) struct Incidents {
    pub(crate) topic: Topic,
    /// Messages that the pipe could not make a trigger of.
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
        .display_name("Daybook: incidents to be diagnosed")
        .enforce_ssl(true);
    let topic = Topic::new_with(stack, "IncidentTopic", props)?;
    may_publish(&topic, &names.arn("cloudwatch", "alarm:*"))?;
    topic.add_subscription(&SqsSubscription::new(&messages)?)?;

    let role = roles::make(stack, names, config, "MessagesRole")?;
    let source = CfnPipePipeSourceParametersProperty::new().sqs_queue_parameters(
        // Each message is a trigger of its own, so that one that fails holds no other up.
        CfnPipePipeSourceSqsQueueParametersProperty::new().batch_size(1),
    );
    let target = CfnPipePipeTargetParametersProperty::new()
        .input_template(rule::MESSAGE_TEMPLATE)
        .event_bridge_event_bus_parameters(
            CfnPipePipeTargetEventBridgeEventBusParametersProperty::new()
                .source(rule::SOURCE)
                .detail_type(rule::DETAIL_TYPE),
        );
    let (role, from, to) = (role.role_arn()?, messages.queue_arn()?, bus.event_bus_arn()?);
    let props =
        CfnPipeProps::new(CfnPipePropsRequired { role_arn: &role, source: &from, target: &to })
            .name(names.of("incidents"))
            .description("Makes a trigger of the incident agent of each message.")
            .source_parameters(source)
            .target_parameters(target);
    CfnPipe::new(stack, "Messages", props)?;
    Ok(Incidents { topic: topic.upcast(), put_aside })
}
