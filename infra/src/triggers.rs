//! Rules on the event bus, and the queue for events that cannot be delivered.

use anyhow::{Context as _, Result};
use incident::alarms;
use jsii::{Handle as _, Is as _, Value};
use serde_json::json;
use workflow::limits::SWEEP_EVERY;
use workflow::rule;

use crate::cdk::Stack;
use crate::cdk::aws_events::{
    CfnEventBusPolicy, CfnEventBusPolicyProps, CfnRule, CfnRuleDeadLetterConfigProperty,
    CfnRuleInputTransformerProperty, CfnRuleProps, CfnRuleRetryPolicyProperty,
    CfnRuleTargetProperty, CfnRuleTargetPropertyRequired, EventBus, EventBusProps, IEventBus,
};
use crate::cdk::aws_iam::PolicyStatement;
use crate::cdk::aws_lambda::{CfnPermission, CfnPermissionProps, CfnPermissionPropsRequired};
use crate::cdk::aws_sqs::{Queue, QueueEncryption, QueueProps};
use crate::cdk::{Duration, RemovalPolicy};
use crate::config::{Config, DEFAULT_BUS};
use crate::functions::Functions;
use crate::names::Names;
use crate::roles;

/// Maximum age of an event until delivery, in seconds: an older incident is over.
const EVENT_AGE_SECONDS_MAX: u32 = 3_600;

/// How often a delivery is retried.
const EVENT_RETRIES_MAX: u32 = 24;

/// Retention of undelivered events, in days: the longest that SQS supports.
const DEAD_LETTER_DAYS: u32 = 14;

/// Time between two checkpoints of the log of sessions, in minutes. What was removed before the next one is not shown by it.
const CHECKPOINT_EVERY_MINUTES: u32 = 5;

/// Creates the queue of undelivered events.
pub(crate) fn dead_letters(stack: &Stack, names: &Names) -> Result<Queue> {
    queue(stack, "DeadLetters", &names.of("dead-letters"), QueueProps::new())
}

/// Creates a queue that is encrypted, requires TLS, and keeps messages as long as possible.
pub(crate) fn queue(stack: &Stack, id: &str, name: &str, props: QueueProps) -> Result<Queue> {
    let kept = Duration::days(stack.object().kernel(), DEAD_LETTER_DAYS)?;
    let props = props
        .queue_name(name)
        .encryption(QueueEncryption::SqsManaged)
        .enforce_ssl(true)
        .retention_period(&kept)
        .removal_policy(RemovalPolicy::Destroy);
    Ok(Queue::new_with(stack, id, props)?)
}

/// The bus for triggers: the account's default, one that exists, or a new one.
pub(crate) fn bus(stack: &Stack, config: &Config) -> Result<IEventBus> {
    if config.bus == DEFAULT_BUS || !config.creates_bus {
        return Ok(EventBus::from_event_bus_name(stack, "Bus", config.bus.as_str())?);
    }
    let props = EventBusProps::new().event_bus_name(&config.bus);
    Ok(EventBus::new_with(stack, "Bus", props)?.upcast())
}

/// Creates the bus for a person's actions; returns its ARN, which makes its rules wait for it. Only the
/// configured people may put events on it, whatever their own policies allow.
fn actions_bus(stack: &Stack, names: &Names, config: &Config) -> Result<String> {
    let props = EventBusProps::new().event_bus_name(names.actions_bus());
    let bus: IEventBus = EventBus::new_with(stack, "Actions", props)?.upcast();
    let bus = bus.event_bus_arn()?;
    let mut statement = json!({
        "Sid": "OnlyThesePeople",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "events:PutEvents",
        "Resource": &bus,
    });
    if !config.people.is_empty() {
        statement["Condition"] = json!({ "ArnNotLike": { "aws:PrincipalArn": config.people } });
    }
    let props = CfnEventBusPolicyProps::new("OnlyThesePeople")
        .event_bus_name(names.actions_bus())
        .statement(&statement);
    CfnEventBusPolicy::new(stack, "ActionsPolicy", props)?;
    Ok(bus)
}

pub(crate) fn make(
    stack: &Stack,
    names: &Names,
    config: &Config,
    functions: &Functions,
    dead_letters: &Queue,
) -> Result<()> {
    let role = roles::make(stack, names, config, "TriggerRole")?.role_arn()?;
    let rules = Rules { stack, names, dead_letters };
    let machine = names.machine_arn();
    let start = |id: &str, paths: &[(&str, &str)], template: &str| {
        let transformer = CfnRuleInputTransformerProperty::new(template).input_paths_map(paths);
        Ok::<_, anyhow::Error>(
            rules.target(id, &machine)?.role_arn(&role).input_transformer(transformer),
        )
    };
    rules.make(
        "Trigger",
        "trigger",
        CfnRuleProps::new()
            .description("Starts a session of an agent.")
            .event_bus_name(&config.bus)
            .event_pattern(&parse(rule::PATTERN)?),
        start("Machine", rule::INPUT_PATHS, rule::INPUT_TEMPLATE)?,
    )?;
    // AWS services send their events to the default bus only.
    if config.function_alarms {
        rules.make(
            "Alarms",
            "alarms",
            CfnRuleProps::new()
                .description("Starts the diagnosis of an alarm on a function.")
                .event_pattern(&parse(alarms::PATTERN)?),
            start("Machine", alarms::INPUT_PATHS, alarms::INPUT_TEMPLATE)?,
        )?;
    }
    if let Some(hours) = config.schedule_hours {
        let template = scheduled(config.schedule_agent.as_deref());
        let unit = if hours == 1 { "hour" } else { "hours" };
        rules.make(
            "Schedule",
            "schedule",
            CfnRuleProps::new()
                .description("Starts a session at fixed times.")
                .schedule_expression(format!("rate({hours} {unit})")),
            start("Machine", &rule::INPUT_PATHS[..2], &template)?,
        )?;
    }
    actions(stack, names, config, functions, &rules)?;
    let every = CHECKPOINT_EVERY_MINUTES;
    rules.make(
        "Checkpoint",
        "checkpoint",
        CfnRuleProps::new()
            .description("Signs the log of sessions.")
            .schedule_expression(format!("rate({every} minutes)")),
        rules.target("Checkpoints", &names.checkpoints_arn())?.role_arn(&role),
    )?;
    to_watchdog(stack, &rules, &machine, &functions.watchdog.function_arn()?)
}

/// The template of a trigger at a fixed time.
fn scheduled(agent: Option<&str>) -> String {
    let detail = agent.map_or_else(|| json!({}), |agent| json!({ "agent": agent }));
    format!(r#"{{"session_id": <session_id>, "time": <time>, "detail": {detail}}}"#)
}

/// Creates the rules that pass a person's actions to the poller.
fn actions(
    stack: &Stack,
    names: &Names,
    config: &Config,
    functions: &Functions,
    rules: &Rules<'_>,
) -> Result<()> {
    let poller = functions.poller.function_arn()?;
    let bus = actions_bus(stack, names, config)?;
    for action in rule::ACTIONS {
        let id = format!("{}{}", action.action[..1].to_uppercase(), &action.action[1..]);
        let transformer = CfnRuleInputTransformerProperty::new(action.input_template)
            .input_paths_map(action.input_paths);
        let made = rules.make(
            &id,
            action.action,
            CfnRuleProps::new()
                .description(format!("Passes a person's request to the poller: {}.", action.action))
                .event_bus_name(&bus)
                .event_pattern(&parse(action.pattern)?),
            rules.target("Poller", &poller)?.input_transformer(transformer),
        )?;
        may_call(stack, &format!("{id}MayCall"), &poller, &made)?;
    }
    Ok(())
}

/// Creates the rules that call the watchdog: for executions that ended, and at fixed times.
fn to_watchdog(stack: &Stack, rules: &Rules<'_>, machine: &str, watchdog: &str) -> Result<()> {
    let ended = rules.make(
        "Ended",
        "ended",
        CfnRuleProps::new().description("Reports ended executions to the watchdog.").event_pattern(
            &json!({
                "source": [rule::EXECUTION_SOURCE],
                "detail-type": [rule::EXECUTION_STATUS_CHANGE],
                "detail": { "status": rule::EXECUTION_BROKEN, "stateMachineArn": [machine] },
            }),
        ),
        rules.target("Watchdog", watchdog)?,
    )?;
    let every = SWEEP_EVERY.as_secs() / 60;
    let sweep = rules.make(
        "Sweep",
        "sweep",
        CfnRuleProps::new()
            .description("Starts the watchdog's sweep for abandoned sessions.")
            .schedule_expression(format!("rate({every} minutes)")),
        rules.target("Watchdog", watchdog)?,
    )?;
    may_call(stack, "EndedMayCall", watchdog, &ended)?;
    may_call(stack, "SweepMayCall", watchdog, &sweep)
}

/// Lets a rule invoke a function.
fn may_call(stack: &Stack, id: &str, function: &str, rule: &CfnRule) -> Result<()> {
    let props = CfnPermissionProps::new(CfnPermissionPropsRequired {
        action: "lambda:InvokeFunction",
        function_name: function,
        principal: "events.amazonaws.com",
    });
    CfnPermission::new(stack, id, props.source_arn(rule.attr_arn()?))?;
    Ok(())
}

struct Rules<'a> {
    stack: &'a Stack,
    names: &'a Names,
    dead_letters: &'a Queue,
}

impl Rules<'_> {
    fn target(&self, id: &str, arn: &str) -> Result<CfnRuleTargetProperty> {
        let queue = CfnRuleDeadLetterConfigProperty::new().arn(self.dead_letters.queue_arn()?);
        let retries = CfnRuleRetryPolicyProperty::new()
            .maximum_event_age_in_seconds(EVENT_AGE_SECONDS_MAX)
            .maximum_retry_attempts(EVENT_RETRIES_MAX);
        Ok(CfnRuleTargetProperty::new(CfnRuleTargetPropertyRequired { arn, id })
            .dead_letter_config(queue)
            .retry_policy(retries))
    }

    /// Creates a rule, and lets it send undeliverable events to the queue.
    fn make(
        &self,
        id: &str,
        name: &str,
        props: CfnRuleProps,
        target: CfnRuleTargetProperty,
    ) -> Result<CfnRule> {
        let props = props.name(self.names.of(name)).state("ENABLED").targets(&[target]);
        let rule = CfnRule::new_with(self.stack, id, props)?;
        let statement = json!({
            "Sid": format!("{id}Undelivered"),
            "Effect": "Allow",
            "Principal": { "Service": "events.amazonaws.com" },
            "Action": "sqs:SendMessage",
            "Resource": self.dead_letters.queue_arn()?,
            "Condition": { "ArnEquals": { "aws:SourceArn": rule.attr_arn()? } },
        });
        let kernel = self.stack.object().kernel();
        self.dead_letters
            .add_to_resource_policy(&PolicyStatement::from_json(kernel, &statement)?)?;
        Ok(rule)
    }
}

fn parse(pattern: &str) -> Result<Value> {
    serde_json::from_str(pattern).context("the event pattern is not JSON")
}
