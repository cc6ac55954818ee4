//! Alarms, the topic that they notify, and the dashboard.

use anyhow::Result;
use jsii::{Handle as _, Is as _, Kernel};
use serde_json::json;
use workflow::metric;

use crate::cdk::aws_cloudwatch::{
    Alarm, AlarmProps, AlarmPropsRequired, AlarmStatusWidget, AlarmStatusWidgetProps,
    ComparisonOperator, Dashboard, DashboardProps, GraphWidget, GraphWidgetProps, IMetric, IWidget,
    Metric, MetricProps, MetricPropsRequired, TreatMissingData,
};
use crate::cdk::aws_cloudwatch_actions::SnsAction;
use crate::cdk::aws_iam::PolicyStatement;
use crate::cdk::aws_sns::{Topic, TopicProps};
use crate::cdk::aws_sns_subscriptions::EmailSubscription;
use crate::cdk::{Duration, Stack};
use crate::config::Config;
use crate::names::Names;

/// Period of an alarm's metric, in minutes.
const PERIOD_MINUTES: u32 = 5;

/// An alarm: it fires from 1 on.
struct Watched {
    id: &'static str,
    about: &'static str,
    namespace: &'static str,
    metric: &'static str,
    /// Whether the metric is a level, of which the maximum counts, or a count, which is summed.
    level: bool,
    dimensions: Vec<(&'static str, String)>,
}

impl Watched {
    /// An alarm on a count.
    fn new(
        id: &'static str,
        about: &'static str,
        (namespace, metric): (&'static str, &'static str),
        dimensions: Vec<(&'static str, String)>,
    ) -> Self {
        Self { id, about, namespace, metric, level: false, dimensions }
    }
}

/// Creates the alarms, their topic and the dashboard. Returns the topic.
pub(crate) fn make(stack: &Stack, names: &Names, config: &Config) -> Result<Topic> {
    let kernel = stack.object().kernel();
    let props = TopicProps::new()
        .topic_name(names.of("alarms"))
        .display_name("Daybook: alarms")
        .enforce_ssl(true);
    let topic = Topic::new_with(stack, "AlarmTopic", props)?;
    let from = names.arn("cloudwatch", &format!("alarm:{}", names.of("*")));
    may_publish(&topic, &from)?;
    if let Some(address) = &config.alarm_email {
        topic.add_subscription(&EmailSubscription::new(kernel, address.as_str())?)?;
    }
    let mut alarms = Vec::new();
    for watched in all(names) {
        let metric: IMetric = metric(kernel, &watched)?.upcast();
        let props =
            AlarmProps::new(AlarmPropsRequired { metric, evaluation_periods: 1.0, threshold: 1.0 })
                .alarm_name(names.of(&hyphenated(watched.id)))
                .alarm_description(watched.about)
                .comparison_operator(ComparisonOperator::GreaterThanOrEqualToThreshold)
                .treat_missing_data(TreatMissingData::NotBreaching);
        let alarm = Alarm::new(stack, format!("{}Alarm", watched.id), props)?;
        alarm.add_alarm_action(&[SnsAction::new(&topic)?.upcast()])?;
        alarms.push(alarm);
    }
    dashboard(stack, names, &alarms)?;
    Ok(topic)
}

/// Lets alarms publish to a topic. The policy that enforces TLS replaces the topic's default policy, which would allow
/// it.
pub(crate) fn may_publish(topic: &Topic, alarms: &str) -> Result<()> {
    let statement = json!({
        "Sid": "Alarms",
        "Effect": "Allow",
        "Principal": { "Service": "cloudwatch.amazonaws.com" },
        "Action": "sns:Publish",
        "Resource": topic.topic_arn()?,
        "Condition": { "ArnLike": { "aws:SourceArn": alarms } },
    });
    let statement = PolicyStatement::from_json(topic.object().kernel(), &statement)?;
    topic.add_to_resource_policy(&statement)?;
    Ok(())
}

fn all(names: &Names) -> Vec<Watched> {
    let mut watched = Vec::from(of_sessions(names));
    watched.extend(of_queues(names));
    watched.extend(of_capacity(names));
    watched
}

fn of_sessions(names: &Names) -> [Watched; 7] {
    let execution = |id, about, metric| {
        let machine = vec![("StateMachineArn", names.machine_arn())];
        Watched::new(id, about, ("AWS/States", metric), machine)
    };
    let checkpoints = |id, about, metric| {
        let machine = vec![("StateMachineArn", names.checkpoints_arn())];
        Watched::new(id, about, ("AWS/States", metric), machine)
    };
    let unsigned = "The log of sessions was not signed, or its checkpoint was not copied.";
    let own = |id, about, metric, dimensions| {
        Watched::new(id, about, (metric::NAMESPACE, metric), dimensions)
    };
    let stage = vec![of_stage(names)];
    let incidents = vec![of_stage(names), ("agent", "incident".to_owned())];
    let (lost, refused) = (
        "An agent stopped responding and was invoked again.",
        "Incidents were rejected: too many in an hour.",
    );
    [
        execution(
            "ExecutionsFailed",
            "A session failed; its journal says why.",
            "ExecutionsFailed",
        ),
        execution("ExecutionsTimedOut", "An execution timed out.", "ExecutionsTimedOut"),
        execution(
            "ExecutionsThrottled",
            "Step Functions throttles executions.",
            "ExecutionThrottled",
        ),
        checkpoints("CheckpointsFailed", unsigned, "ExecutionsFailed"),
        checkpoints("CheckpointsTimedOut", unsigned, "ExecutionsTimedOut"),
        own("AgentsLost", lost, metric::AGENTS_LOST, stage),
        own("BreakerOpen", refused, metric::BREAKER_OPEN, incidents),
    ]
}

/// The dimension of all metrics of Daybook's own.
fn of_stage(names: &Names) -> (&'static str, String) {
    (metric::STAGE, names.stage().to_owned())
}

fn of_queues(names: &Names) -> [Watched; 2] {
    let queue = |id, about, queue| {
        let metric = ("AWS/SQS", "ApproximateNumberOfMessagesVisible");
        let watched = Watched::new(id, about, metric, vec![("QueueName", names.of(queue))]);
        Watched { level: true, ..watched }
    };
    let aside = "A message about an incident could not be converted to a trigger.";
    [
        queue("DeadLetters", "An event could not be delivered.", "dead-letters"),
        queue("IncidentsPutAside", aside, "incidents-put-aside"),
    ]
}

fn of_capacity(names: &Names) -> [Watched; 6] {
    let table = |id, about, metric| {
        let journal = vec![("TableName", names.of("journal"))];
        Watched::new(id, about, ("AWS/DynamoDB", metric), journal)
    };
    let function = |id, about, metric, function| {
        let function = vec![("FunctionName", names.of(function))];
        Watched::new(id, about, ("AWS/Lambda", metric), function)
    };
    let (writes, reads) =
        ("The journal's writes are throttled.", "The journal's reads are throttled.");
    [
        table("JournalWritesThrottled", writes, "WriteThrottleEvents"),
        table("JournalReadsThrottled", reads, "ReadThrottleEvents"),
        function("InvokerThrottled", "Lambda throttles the invoker.", "Throttles", "invoker"),
        function("PollerThrottled", "Lambda throttles the poller.", "Throttles", "poller"),
        function("WatchdogThrottled", "Lambda throttles the watchdog.", "Throttles", "watchdog"),
        function("WatchdogFailed", "The watchdog failed.", "Errors", "watchdog"),
    ]
}

fn metric(kernel: &Kernel, watched: &Watched) -> Result<Metric> {
    let props = MetricProps::new(MetricPropsRequired {
        metric_name: watched.metric,
        namespace: watched.namespace,
    })
    .dimensions_map(&watched.dimensions)
    .statistic(if watched.level { "Maximum" } else { "Sum" })
    .period(&Duration::minutes(kernel, PERIOD_MINUTES)?);
    Ok(Metric::new(kernel, props)?)
}

/// The names of alarms and dashboards are in lower case.
fn hyphenated(id: &str) -> String {
    let mut name = String::new();
    for letter in id.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

fn dashboard(stack: &Stack, names: &Names, alarms: &[Alarm]) -> Result<()> {
    let kernel = stack.object().kernel();
    let dashboard = Dashboard::new_with(
        stack,
        "Dashboard",
        // The dashboards of all regions of an account share their names.
        DashboardProps::new().dashboard_name(format!(
            "{}-{}",
            names.machine(),
            names.arn_parts().region
        )),
    )?;
    let alarms: Vec<_> = alarms.iter().map(jsii::Is::upcast).collect();
    let status = AlarmStatusWidgetProps::new(&alarms).title("Alarms").width(24).height(4);
    dashboard.add_widgets(&[AlarmStatusWidget::new(kernel, status)?.upcast()])?;
    for row in graphs(names) {
        let mut widgets: Vec<IWidget> = Vec::new();
        for (title, metrics) in row {
            let mut shown: Vec<IMetric> = Vec::new();
            for watched in &metrics {
                shown.push(metric(kernel, watched)?.upcast());
            }
            let props = GraphWidgetProps::new().title(title).width(12).left(&shown);
            widgets.push(GraphWidget::new(kernel, props)?.upcast());
        }
        dashboard.add_widgets(&widgets)?;
    }
    Ok(())
}

type Graph = (&'static str, Vec<Watched>);

/// The dashboard's graphs, row by row.
fn graphs(names: &Names) -> Vec<Vec<Graph>> {
    // Each metric in a graph needs a label of its own.
    let shown = |namespace, metric, dimensions: &[(&'static str, String)]| {
        Watched::new("", "", (namespace, metric), dimensions.to_vec())
    };
    let machine = [("StateMachineArn", names.machine_arn())];
    let table = [("TableName", names.of("journal"))];
    let of = |namespace, metrics: &[&'static str], dimensions: &[(&'static str, String)]| {
        metrics.iter().map(|metric| shown(namespace, *metric, dimensions)).collect::<Vec<_>>()
    };
    let each_function = |metric| {
        ["invoker", "poller", "watchdog"]
            .iter()
            .map(|function| shown("AWS/Lambda", metric, &[("FunctionName", names.of(function))]))
            .collect::<Vec<_>>()
    };
    let executions = [
        "ExecutionsStarted",
        "ExecutionsSucceeded",
        "ExecutionsFailed",
        "ExecutionsTimedOut",
        "ExecutionsAborted",
    ];
    let stage = [of_stage(names)];
    let waiting = shown(metric::NAMESPACE, metric::SESSIONS_WAITING_FOR_CAPACITY, &stage);
    let waiting = Watched { level: true, ..waiting };
    let units = ["ConsumedWriteCapacityUnits", "ConsumedReadCapacityUnits"];
    vec![
        vec![
            ("Executions", of("AWS/States", &executions, &machine)),
            ("Silent agents", of(metric::NAMESPACE, &[metric::AGENTS_LOST], &stage)),
        ],
        vec![
            (
                "Invocations without a place",
                of(metric::NAMESPACE, &[metric::INVOCATIONS_WITHOUT_CAPACITY], &stage),
            ),
            ("Sessions that wait for a place", vec![waiting]),
        ],
        vec![
            ("Errors of functions", each_function("Errors")),
            ("Duration of functions", each_function("Duration")),
        ],
        vec![
            ("Journal, capacity", of("AWS/DynamoDB", &units, &table)),
            (
                "Journal, throttled",
                of("AWS/DynamoDB", &["WriteThrottleEvents", "ReadThrottleEvents"], &table),
            ),
        ],
    ]
}
