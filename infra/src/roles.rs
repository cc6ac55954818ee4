//! What each role may do: what the program behind it does, and nothing else.
//!
//! Nobody may delete or update an item, nor write in batches: whatever is wrong with a program, the
//! journal's records stay as they were written, but for an overwriting put, which every writer's own
//! condition prevents.

use anyhow::{Context as _, Result};
use jsii::{Is, Kernel};
use serde_json::json;

use crate::cdk::aws_iam::{IPrincipal, PolicyDocument, Role, RoleProps, ServicePrincipal};
use crate::cdk::constructs::Construct;
use crate::cdk::{Acknowledgment, AcknowledgmentRequired, Stack, Validations};
use crate::config::Config;
use crate::names::{Names, Place};
use crate::policy::{Statement, document};

/// A session's partition.
const SESSIONS: &str = "SESSION#*";
/// The partitions of its large payloads.
const BLOBS: &str = "BLOB#*";
/// Who holds an agent's key.
const KEYS: &str = "DEDUPE#*";
/// An agent's slots.
const SLOTS: &str = "ADMIT#*";
/// What `checkup` writes and reads back.
const PROBES: &str = "PROBE#*";
/// The index of open leases.
const LEASES: &str = "LEASE#*";

const GET: &str = "dynamodb:GetItem";
const PUT: &str = "dynamodb:PutItem";
const QUERY: &str = "dynamodb:Query";

/// A role and who takes it.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Its construct's name.
    pub id: &'static str,
    /// The service that takes it.
    pub service: &'static str,
    /// What it may do.
    pub statements: Vec<Statement>,
}

/// Every role of the stack.
pub fn all(names: &Names, config: &Config) -> Vec<Grant> {
    vec![
        grant("MachineRole", "states.amazonaws.com", machine(names)),
        grant("InvokerRole", "lambda.amazonaws.com", invoker(names)),
        grant("PollerRole", "lambda.amazonaws.com", poller(names)),
        grant("WatchdogRole", "lambda.amazonaws.com", watchdog(names)),
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
        .wide("CloudWatch Logs has no resources for log deliveries; Step Functions asks for exactly these."),
        traces(),
    ]
}

fn invoker(names: &Names) -> Vec<Statement> {
    let mut statements = function(names, "invoker");
    statements.extend([
        journal(names, "Journal", &[GET, PUT, QUERY], &[SESSIONS, BLOBS]),
        journal(names, "Keys", &[GET, PUT], &[KEYS]),
        journal(names, "Slots", &[GET, PUT, QUERY], &[SLOTS]),
        on_runtime(names, "Invoke", &["bedrock-agentcore:InvokeAgentRuntime"]),
    ]);
    statements
}

fn poller(names: &Names) -> Vec<Statement> {
    let mut statements = function(names, "poller");
    statements.extend([
        journal(names, "Journal", &[GET, PUT, QUERY], &[SESSIONS, BLOBS]),
        Statement::allow("Wake", &["states:SendTaskSuccess"], &[names.machine_arn()]),
        on_runtime(names, "Stop", &["bedrock-agentcore:StopRuntimeSession"]),
    ]);
    statements
}

fn watchdog(names: &Names) -> Vec<Statement> {
    let index = format!("{}/index/{}", names.table_arn(), journal::key::INDEX_OPEN_LEASES);
    let mut statements = function(names, "watchdog");
    statements.extend([
        journal(names, "Journal", &[GET, PUT, QUERY], &[SESSIONS, BLOBS]),
        Statement::allow("OpenLeases", &[QUERY], &[index]).on_keys(&[LEASES]),
        Statement::allow("Executions", &["states:DescribeExecution"], &[names.executions_arn()])
            .wide("Executions of the one state machine; their names are not known before."),
        on_runtime(names, "Stop", &["bedrock-agentcore:StopRuntimeSession"]),
        Statement::allow(
            "Undelivered",
            &["sqs:SendMessage"],
            &[names.arn("sqs", &names.of("dead-letters"))],
        ),
    ]);
    statements
}

fn runtime(names: &Names, config: &Config) -> Vec<Statement> {
    let mut statements = vec![
        journal(names, "Journal", &[GET, PUT, QUERY], &[SESSIONS, BLOBS]),
        journal(names, "Probe", &[GET, PUT], &[PROBES]),
        Statement::allow(
            "Callback",
            &["states:SendTaskHeartbeat", "states:SendTaskSuccess"],
            &[names.machine_arn()],
        ),
    ];
    statements.extend(api_key(names, config));
    statements.extend(model(names, config));
    if config.diagnostics {
        statements.extend(diagnostics(names));
    }
    statements.extend(container(names));
    statements
}

/// Reading one parameter, and decrypting that one.
fn api_key(names: &Names, config: &Config) -> [Statement; 2] {
    let parameter = names.arn("ssm", &format!("parameter{}", config.api_key_parameter));
    let through = format!("ssm.{}.amazonaws.com", names.place().region);
    [
        Statement::allow("ApiKey", &["ssm:GetParameter"], std::slice::from_ref(&parameter)),
        Statement::allow("DecryptApiKey", &["kms:Decrypt"], &[names.arn("kms", "key/*")])
            .when("StringEquals", "kms:ViaService", through)
            .when("StringEquals", "kms:EncryptionContext:PARAMETER_ARN", parameter)
            .wide(
                "Whichever key the parameter is encrypted with, but only to read that parameter.",
            ),
    ]
}

/// Converse and its stream are these two actions; the model's inference profile needs the model behind
/// it in every region that it routes to.
fn model(names: &Names, config: &Config) -> Option<Statement> {
    let id = config.model.as_deref()?.strip_prefix("bedrock:")?;
    let partition = &names.place().partition;
    let base = ["us.", "eu.", "apac.", "global."].iter().find_map(|region| id.strip_prefix(region));
    let model = format!("arn:{partition}:bedrock:*::foundation-model/{}", base.unwrap_or(id));
    let mut resources = vec![model];
    if base.is_some() {
        resources.push(names.arn("bedrock", &format!("inference-profile/{id}")));
    }
    let actions = ["bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"];
    let statement = Statement::allow("Model", &actions, &resources);
    Some(statement.wide("The one model, in whichever region an inference profile routes to."))
}

/// What `tools/iam/aws-diagnostics.json` allows, within this account.
fn diagnostics(names: &Names) -> [Statement; 3] {
    let because = "An incident may be about any function of the account; these calls only read.";
    let roles = format!("arn:{}:iam::{}:role/*", names.place().partition, names.place().account);
    [
        Statement::allow(
            "ReadFunctions",
            &["lambda:GetFunctionConfiguration", "lambda:GetFunctionConcurrency"],
            &[names.arn("lambda", "function:*")],
        )
        .wide(because),
        Statement::allow(
            "ReadTheirLogs",
            &["logs:FilterLogEvents"],
            &[names.arn("logs", "log-group:*")],
        )
        .wide(because),
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
    ]
}

/// What `AgentCore` itself does with the role.
///
/// Source: AWS, "IAM permissions for `AgentCore` Runtime", execution role.
fn container(names: &Names) -> [Statement; 7] {
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
        Statement::allow("SignIn", &["ecr:GetAuthorizationToken"], &["*".to_owned()])
            .wide("A registry's token is the account's; the action has no resources."),
        Statement::allow(
            "LogGroups",
            &["logs:CreateLogGroup", "logs:DescribeLogStreams"],
            &[names.arn("logs", runtime_logs)],
        )
        .wide("AgentCore names a runtime's log group after its id, which is not known before."),
        Statement::allow(
            "LogStreams",
            &["logs:CreateLogStream", "logs:PutLogEvents"],
            &[names.arn("logs", &format!("{runtime_logs}:log-stream:*"))],
        )
        .wide("AgentCore names a runtime's log group after its id, which is not known before."),
        traces(),
        Statement::allow("Metrics", &["cloudwatch:PutMetricData"], &["*".to_owned()])
            .when("StringEquals", "cloudwatch:namespace", "bedrock-agentcore")
            .wide("Metrics are no resources; the namespace is AgentCore's own."),
        Statement::allow(
            "Identity",
            &[
                "bedrock-agentcore:GetWorkloadAccessToken",
                "bedrock-agentcore:GetWorkloadAccessTokenForJWT",
                "bedrock-agentcore:GetWorkloadAccessTokenForUserId",
            ],
            &identities,
        )
        .wide("AgentCore ends the identity's name with letters of its own."),
    ]
}

fn trigger(names: &Names) -> Vec<Statement> {
    vec![Statement::allow("Start", &["states:StartExecution"], &[names.machine_arn()])]
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

/// What every function does: it logs, and traces.
fn function(names: &Names, function: &str) -> Vec<Statement> {
    let streams = names.log_streams_arn(&names.function_log_group(function));
    vec![
        Statement::allow("Logs", &["logs:CreateLogStream", "logs:PutLogEvents"], &[streams])
            .wide("The streams of the function's own log group; Lambda names them."),
        traces(),
    ]
}

fn traces() -> Statement {
    Statement::allow(
        "Traces",
        &["xray:PutTraceSegments", "xray:PutTelemetryRecords"],
        &["*".to_owned()],
    )
    .wide("X-Ray has no resources for segments.")
}

fn journal(names: &Names, sid: &'static str, actions: &[&'static str], keys: &[&str]) -> Statement {
    Statement::allow(sid, actions, &[names.table_arn()]).on_keys(keys)
}

/// The runtime's id ends with letters that are not known before.
fn on_runtime(names: &Names, sid: &'static str, actions: &[&'static str]) -> Statement {
    let runtime = names.arn("bedrock-agentcore", &format!("runtime/{}-*", names.runtime()));
    Statement::allow(sid, actions, &[runtime]).wide(
        "AgentCore ends the runtime's id with letters of its own, and endpoints stand below it.",
    )
}

/// Makes a role.
///
/// # Errors
/// When the library refuses.
pub(crate) fn make(stack: &Stack, names: &Names, config: &Config, id: &str) -> Result<Role> {
    let grant = all(names, config).into_iter().find(|grant| grant.id == id);
    let grant = grant.with_context(|| format!("no role is called {id}"))?;
    let kernel = jsii::Handle::object(stack).kernel();
    let policy = PolicyDocument::from_json(kernel, &document(&grant.statements))?;
    let props = RoleProps::new(&principal(kernel, names, &grant)?)
        .inline_policies(&[("Work", policy)])
        .description(format!(
            "Daybook: what {} may do.",
            id.trim_end_matches("Role").to_lowercase()
        ));
    let role = Role::new(stack, id, props)?;
    let spelt = all(&Names::new(config, Place::spelt()), config);
    for grant in spelt.iter().filter(|grant| grant.id == id) {
        acknowledge(&role, grant)?;
    }
    Ok(role)
}

/// A service that acts for the whole account is only let in for its things in this account.
fn principal(kernel: &Kernel, names: &Names, grant: &Grant) -> Result<IPrincipal> {
    let service = ServicePrincipal::new(kernel, grant.service)?;
    let account = &names.place().account;
    let mut conditions = vec![("StringEquals", json!({ "aws:SourceAccount": account }))];
    let source = match grant.service {
        "bedrock-agentcore.amazonaws.com" => Some(names.arn("bedrock-agentcore", "*")),
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

/// Tells `cdk-nag` why a wildcard stands where one does.
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
