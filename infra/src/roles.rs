//! The permissions of each role: exactly what its program needs.
//!
//! No role may delete or update an item of the journal or write in batches. So even a faulty
//! program cannot change stored records, except by an overwriting put, which each writer's own
//! condition prevents.

use anyhow::{Context as _, Result};
use jsii::{Is, Kernel};
use serde_json::json;

use crate::cdk::aws_iam::{IPrincipal, PolicyDocument, Role, RoleProps, ServicePrincipal};
use crate::cdk::constructs::Construct;
use crate::cdk::{Acknowledgment, AcknowledgmentRequired, Stack, Validations};
use crate::config::Config;
use crate::names::{ArnParts, Names};
use crate::policy::{Statement, document};

const SESSIONS: &str = "SESSION#*";
/// Partitions of its large payloads.
const BLOBS: &str = "BLOB#*";
/// The holder of an agent's deduplication key.
const KEYS: &str = "DEDUPE#*";
const SLOTS: &str = "ADMIT#*";
/// The halts, which say which agents may begin nothing.
const HALTS: &str = journal::key::HALTS;
/// The receipts of people's answers, which no other role than the poller's may write.
const RECEIPTS: &str = "RECEIPT#*";
/// The deliveries of notices.
const NOTICES: &str = "NOTIFY#*";
/// What `checkup` writes and reads back.
const PROBES: &str = "PROBE#*";
/// The shards of the log of sessions. They are in one statement with the sessions: a transaction writes both.
const LOG: &str = "LOG#?";
/// What checkpoints are of.
const LOG_ROOT: &str = "LOG#root";
/// The index of open leases.
const LEASES: &str = "LEASE#*";

const GET: &str = "dynamodb:GetItem";
const PUT: &str = "dynamodb:PutItem";
const QUERY: &str = "dynamodb:Query";

/// The beginnings of an inference profile's id: the regions that it routes to.
///
/// Source: Amazon Bedrock User Guide, "Supported Regions and models for inference profiles".
const PROFILES: &[&str] = &["us.", "us-gov.", "eu.", "apac.", "jp.", "au.", "global."];

/// A role and the service that assumes it.
#[derive(Clone, Debug)]
pub struct Grant {
    pub id: &'static str,
    /// The service that assumes it.
    pub service: &'static str,
    pub statements: Vec<Statement>,
}

/// All roles of the stack.
pub fn all(names: &Names, config: &Config) -> Vec<Grant> {
    vec![
        grant("MachineRole", "states.amazonaws.com", machine(names)),
        grant("InvokerRole", "lambda.amazonaws.com", invoker(names)),
        grant("PollerRole", "lambda.amazonaws.com", poller(names, config)),
        grant("WatchdogRole", "lambda.amazonaws.com", watchdog(names, config)),
        grant("CheckpointsRole", "states.amazonaws.com", checkpoints(names)),
        grant("RuntimeRole", "bedrock-agentcore.amazonaws.com", runtime(names, config)),
        grant("TriggerRole", "events.amazonaws.com", trigger(names)),
        grant("MessagesRole", "pipes.amazonaws.com", messages(names, config)),
    ]
}

fn grant(id: &'static str, service: &'static str, statements: Vec<Statement>) -> Grant {
    Grant { id, service, statements }
}

fn machine(names: &Names) -> Vec<Statement> {
    let functions = ["invoker", "poller"].map(|function| names.function_arn(function));
    vec![
        Statement::allow("FirstRecord", &[PUT], &[names.table_arn()]).on_keys(&[SESSIONS]),
        Statement::allow("Functions", &["lambda:InvokeFunction"], &functions),
        deliver_logs(),
        traces(),
    ]
}

/// Writing to a log group that the state machine names.
fn deliver_logs() -> Statement {
    Statement::allow(
        "DeliverLogs",
        &[
            "logs:CreateLogDelivery",
            "logs:GetLogDelivery",
            "logs:UpdateLogDelivery",
            "logs:DeleteLogDelivery",
            "logs:ListLogDeliveries",
            "logs:PutResourcePolicy",
            "logs:DescribeResourcePolicies",
            "logs:DescribeLogGroups",
        ],
        &["*".to_owned()],
    )
    .wide("CloudWatch Logs has no resource type for log deliveries; Step Functions needs exactly these actions.")
}

fn checkpoints(names: &Names) -> Vec<Statement> {
    let copies = format!("arn:{}:s3:::{}-*", names.arn_parts().partition, names.of("checkpoints"));
    vec![
        Statement::allow("Sign", &["lambda:InvokeFunction"], &[names.function_arn("poller")]),
        Statement::allow("Copy", &["s3:PutObject"], &[format!("{copies}/*")])
            .when("StringEquals", "s3:ResourceAccount", names.arn_parts().account.as_str())
            .wide("CloudFormation chooses the last letters of the bucket's name."),
        deliver_logs(),
        traces(),
    ]
}

fn invoker(names: &Names) -> Vec<Statement> {
    let mut statements = function(names, "invoker");
    statements.extend([
        journal(names, "Journal", &[GET, PUT, QUERY], &[SESSIONS, BLOBS, LOG]),
        journal(names, "Keys", &[GET, PUT], &[KEYS]),
        journal(names, "Slots", &[GET, PUT, QUERY], &[SLOTS]),
        journal(names, "Halts", &[QUERY], &[HALTS]),
        on_runtime(names, "Invoke", &["bedrock-agentcore:InvokeAgentRuntime"]),
    ]);
    statements
}

fn poller(names: &Names, config: &Config) -> Vec<Statement> {
    let mut statements = function(names, "poller");
    statements.extend([
        journal(names, "Journal", &[GET, PUT, QUERY], &[SESSIONS, BLOBS, LOG, LOG_ROOT]),
        journal(names, "Receipts", &[GET, PUT], &[RECEIPTS]),
        // A person halts agents through its URL; those that an end of a halt lets go on are among the open leases.
        journal(names, "Halts", &[PUT, QUERY], &[HALTS]),
        open_leases(names),
        // To wake a session, and to resume one whose execution has ended.
        Statement::allow(
            "Wake",
            &["states:SendTaskSuccess", "states:StartExecution"],
            &[names.machine_arn()],
        ),
        Statement::allow("Executions", &["states:DescribeExecution"], &[names.executions_arn()])
            .wide("Executions of this state machine; their names are not known in advance."),
        on_runtime(names, "Stop", &["bedrock-agentcore:StopRuntimeSession"]),
    ]);
    statements.extend(notices(names, config));
    statements
}

/// Telling of sessions, if somebody wants that: events of one source, and the records of their deliveries.
fn notices(names: &Names, config: &Config) -> Vec<Statement> {
    if !config.notify {
        return Vec::new();
    }
    let bus = names.arn("events", &format!("event-bus/{}", config.bus));
    vec![
        journal(names, "Notices", &[PUT, QUERY], &[NOTICES]),
        Statement::allow("Notify", &["events:PutEvents"], &[bus]).when(
            "StringEquals",
            "events:source",
            notify::notice::SOURCE,
        ),
    ]
}

fn watchdog(names: &Names, config: &Config) -> Vec<Statement> {
    let mut statements = function(names, "watchdog");
    statements.extend([
        journal(names, "Journal", &[GET, PUT, QUERY], &[SESSIONS, BLOBS, LOG]),
        open_leases(names),
        Statement::allow("Executions", &["states:DescribeExecution"], &[names.executions_arn()])
            .wide("Executions of this state machine; their names are not known in advance."),
        on_runtime(names, "Stop", &["bedrock-agentcore:StopRuntimeSession"]),
        Statement::allow(
            "Undelivered",
            &["sqs:SendMessage"],
            &[names.arn("sqs", &names.of("dead-letters"))],
        ),
    ]);
    statements.extend(notices(names, config));
    statements
}

fn open_leases(names: &Names) -> Statement {
    let index = format!("{}/index/{}", names.table_arn(), journal::key::INDEX_OPEN_LEASES);
    Statement::allow("OpenLeases", &[QUERY], &[index]).on_keys(&[LEASES])
}

fn runtime(names: &Names, config: &Config) -> Vec<Statement> {
    let mut statements = vec![
        journal(names, "Journal", &[GET, PUT, QUERY], &[SESSIONS, BLOBS]),
        journal(names, "Probe", &[GET, PUT], &[PROBES]),
        journal(names, "Receipts", &[QUERY], &[RECEIPTS]),
        journal(names, "Halts", &[QUERY], &[HALTS]),
        Statement::allow(
            "Callback",
            &["states:SendTaskHeartbeat", "states:SendTaskSuccess"],
            &[names.machine_arn()],
        ),
    ];
    statements.extend(api_key(names, config));
    statements.extend(model(names, config));
    if config.diagnostics {
        statements.extend(diagnostics(names, config));
    }
    statements.extend(container(names));
    statements
}

/// Reading and decrypting these parameters alone.
fn api_key(names: &Names, config: &Config) -> [Statement; 2] {
    let parameters = [&config.api_key_parameter].into_iter().chain(&config.openai_key_parameter);
    let parameters: Vec<String> =
        parameters.map(|name| names.arn("ssm", &format!("parameter{name}"))).collect();
    let through = format!("ssm.{}.amazonaws.com", names.arn_parts().region);
    [
        Statement::allow("ApiKey", &["ssm:GetParameter"], &parameters),
        Statement::allow("DecryptApiKey", &["kms:Decrypt"], &[names.arn("kms", "key/*")])
            .when("StringEquals", "kms:ViaService", through)
            .when("StringEquals", "kms:EncryptionContext:PARAMETER_ARN", parameters)
            .wide("Any key that encrypts the parameter, but only to read that parameter."),
    ]
}

/// Converse and ConverseStream use these two actions. An inference profile needs the model in every
/// region that it routes to.
fn model(names: &Names, config: &Config) -> Option<Statement> {
    let id = config.model.as_deref()?.strip_prefix("bedrock:")?;
    let partition = &names.arn_parts().partition;
    let base = PROFILES.iter().find_map(|region| id.strip_prefix(region));
    let model = format!("arn:{partition}:bedrock:*::foundation-model/{}", base.unwrap_or(id));
    let mut resources = vec![model];
    if base.is_some() {
        resources.push(names.arn("bedrock", &format!("inference-profile/{id}")));
    }
    let actions = ["bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"];
    let statement = Statement::allow("Model", &actions, &resources);
    Some(statement.wide("This model, in each region that an inference profile routes to."))
}

/// The permissions of `packs/incident/iam/aws-diagnostics.json`, within this account. Logs are those of
/// functions, and the configured groups: other logs may hold anything.
fn diagnostics(names: &Names, config: &Config) -> [Statement; 4] {
    let because = "An incident may be about any function of the account; these calls only read.";
    let groups =
        std::iter::once("/aws/lambda/").chain(config.log_groups.iter().map(String::as_str));
    let logs: Vec<String> =
        groups.map(|prefix| names.arn("logs", &format!("log-group:{prefix}*"))).collect();
    let roles =
        format!("arn:{}:iam::{}:role/*", names.arn_parts().partition, names.arn_parts().account);
    [
        Statement::allow(
            "ReadFunctions",
            &["lambda:GetFunctionConfiguration", "lambda:GetFunctionConcurrency"],
            &[names.arn("lambda", "function:*")],
        )
        .wide(because),
        Statement::allow("ReadTheirLogs", &["logs:FilterLogEvents"], &logs).wide(because),
        Statement::allow(
            "ReadTheirRoles",
            &[
                "iam:GetRole",
                "iam:ListRolePolicies",
                "iam:GetRolePolicy",
                "iam:ListAttachedRolePolicies",
            ],
            &[roles],
        )
        .wide(because),
        // Source: AWS, Service Authorization Reference: both know no resources.
        Statement::allow(
            "ReadChangesAndSecurityGroups",
            &["cloudtrail:LookupEvents", "ec2:DescribeSecurityGroupRules"],
            &["*".to_owned()],
        )
        .wide(because),
    ]
}

/// The permissions that `AgentCore` itself needs.
///
/// Source: AWS, "IAM permissions for `AgentCore` Runtime", execution role.
fn container(names: &Names) -> [Statement; 8] {
    let runtime_logs = "log-group:/aws/bedrock-agentcore/runtimes/*";
    let identities = [
        names.arn("bedrock-agentcore", "workload-identity-directory/default"),
        names.arn(
            "bedrock-agentcore",
            &format!("workload-identity-directory/default/workload-identity/{}-*", names.runtime()),
        ),
    ];
    [
        Statement::allow(
            "PullImage",
            &["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            &[names.arn("ecr", &format!("repository/{}", names.of("agent")))],
        ),
        Statement::allow("SignIn", &["ecr:GetAuthorizationToken"], &["*".to_owned()]).wide(
            "The token is for the account's whole registry; the action has no resource type.",
        ),
        Statement::allow(
            "LogGroups",
            &["logs:CreateLogGroup", "logs:DescribeLogStreams"],
            &[names.arn("logs", runtime_logs)],
        )
        .wide("AgentCore names a runtime's log group after its id, which is not known in advance."),
        Statement::allow(
            "FindLogGroups",
            &["logs:DescribeLogGroups"],
            &[names.arn("logs", "log-group:*")],
        )
        .wide("It lists the account's log groups by a prefix; AgentCore looks for the runtime's."),
        Statement::allow(
            "LogStreams",
            &["logs:CreateLogStream", "logs:PutLogEvents"],
            &[names.arn("logs", &format!("{runtime_logs}:log-stream:*"))],
        )
        .wide("AgentCore names a runtime's log group after its id, which is not known in advance."),
        traces(),
        Statement::allow("Metrics", &["cloudwatch:PutMetricData"], &["*".to_owned()])
            .when("StringEquals", "cloudwatch:namespace", "bedrock-agentcore")
            .wide("Metrics have no resource type; the namespace is AgentCore's own."),
        Statement::allow(
            "Identity",
            &[
                "bedrock-agentcore:GetWorkloadAccessToken",
                "bedrock-agentcore:GetWorkloadAccessTokenForJWT",
                "bedrock-agentcore:GetWorkloadAccessTokenForUserId",
            ],
            &identities,
        )
        .wide("AgentCore chooses the last letters of the identity's name."),
    ]
}

fn trigger(names: &Names) -> Vec<Statement> {
    let machines = [names.machine_arn(), names.checkpoints_arn()];
    vec![Statement::allow("Start", &["states:StartExecution"], &machines)]
}

fn messages(names: &Names, config: &Config) -> Vec<Statement> {
    let queue = names.arn("sqs", &names.of("incidents"));
    let bus = names.arn("events", &format!("event-bus/{}", config.bus));
    vec![
        Statement::allow(
            "Receive",
            &["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
            &[queue],
        ),
        Statement::allow("Trigger", &["events:PutEvents"], &[bus])
            .when("StringEquals", "events:source", workflow::rule::SOURCE)
            .when("StringEquals", "events:detail-type", workflow::rule::DETAIL_TYPE),
    ]
}

/// The permissions of every function: logs and traces.
fn function(names: &Names, function: &str) -> Vec<Statement> {
    let streams = names.log_streams_arn(&names.function_log_group(function));
    vec![
        Statement::allow("Logs", &["logs:CreateLogStream", "logs:PutLogEvents"], &[streams])
            .wide("The streams of the function's own log group; Lambda chooses their names."),
        traces(),
    ]
}

fn traces() -> Statement {
    Statement::allow(
        "Traces",
        &[
            "xray:PutTraceSegments",
            "xray:PutTelemetryRecords",
            "xray:GetSamplingRules",
            "xray:GetSamplingTargets",
        ],
        &["*".to_owned()],
    )
    .wide("X-Ray has no resource type for segments and for the targets of sampling.")
}

fn journal(names: &Names, sid: &'static str, actions: &[&'static str], keys: &[&str]) -> Statement {
    Statement::allow(sid, actions, &[names.table_arn()]).on_keys(keys)
}

/// The id of the runtime ends with letters that AWS chooses.
fn on_runtime(names: &Names, sid: &'static str, actions: &[&'static str]) -> Statement {
    let runtime = names.arn("bedrock-agentcore", &format!("runtime/{}-*", names.runtime()));
    Statement::allow(sid, actions, &[runtime])
        .wide("AgentCore chooses the last letters of the runtime's id; endpoints are below it.")
}

/// Creates a role.
///
/// # Errors
/// The CDK rejects it.
pub(crate) fn make(stack: &Stack, names: &Names, config: &Config, id: &str) -> Result<Role> {
    let grant = all(names, config).into_iter().find(|grant| grant.id == id);
    let grant = grant.with_context(|| format!("unknown role {id}"))?;
    let kernel = jsii::Handle::object(stack).kernel();
    let policy = PolicyDocument::from_json(kernel, &document(&grant.statements))?;
    let props = RoleProps::new(&principal(kernel, names, &grant)?)
        .inline_policies(&[("Work", policy)])
        .description(format!(
            "Daybook: permissions of {}.",
            id.trim_end_matches("Role").to_lowercase()
        ));
    let props = if id == "PollerRole" { props.role_name(names.poller_role()) } else { props };
    let role = Role::new(stack, id, props)?;
    let spelt = all(&Names::new(config, ArnParts::spelt()), config);
    for grant in spelt.iter().filter(|grant| grant.id == id) {
        acknowledge(&role, grant)?;
    }
    Ok(role)
}

/// A service that acts for the whole account may assume the role only for resources in this
/// account.
fn principal(kernel: &Kernel, names: &Names, grant: &Grant) -> Result<IPrincipal> {
    let service = ServicePrincipal::new(kernel, grant.service)?;
    let account = &names.arn_parts().account;
    let mut conditions = vec![("StringEquals", json!({ "aws:SourceAccount": account }))];
    let source = match grant.service {
        "bedrock-agentcore.amazonaws.com" => Some(names.arn("bedrock-agentcore", "*")),
        "states.amazonaws.com" if grant.id == "CheckpointsRole" => Some(names.checkpoints_arn()),
        "states.amazonaws.com" => Some(names.machine_arn()),
        "pipes.amazonaws.com" => {
            Some(names.arn("pipes", &format!("pipe/{}", names.of("incidents"))))
        }
        "events.amazonaws.com" => Some(names.arn("events", "rule/*")),
        _ => None,
    };
    let Some(source) = source else { return Ok(service.upcast()) };
    conditions.push(("ArnLike", json!({ "aws:SourceArn": source })));
    Ok(service.with_conditions(&conditions)?.upcast())
}

/// Tells `cdk-nag` the reason for each wildcard.
fn acknowledge(role: &impl Is<Construct>, grant: &Grant) -> Result<()> {
    let reasons: Vec<Acknowledgment> = grant
        .statements
        .iter()
        .flat_map(|statement| {
            let wildcards = statement.resources.iter().filter(|arn| arn.contains('*'));
            wildcards.filter_map(|arn| Some((arn, statement.because?))).collect::<Vec<_>>()
        })
        .map(|(arn, because)| {
            let id = format!("AwsSolutions-IAM5[Resource::{arn}]");
            Acknowledgment::new(AcknowledgmentRequired { id: &id, reason: because })
        })
        .collect();
    let role: Construct = role.upcast();
    Ok(Validations::of(&role)?.acknowledge(&reasons)?)
}
