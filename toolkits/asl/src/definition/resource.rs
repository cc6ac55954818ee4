//! The `Resource` of a task.

use super::fields::{Fields, Result};
use super::{Problem, Workflow};

/// What a task calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// A Lambda function's ARN, the form that predates service integrations.
    Function { arn: String },
    /// `arn:aws:states:::{resource_type}:{resource}`; the resource includes `.waitForTaskToken`.
    Service { arn: String, resource_type: String, resource: String, waits_for_token: bool },
    /// An activity; this engine does not support activities.
    Activity { arn: String },
}

impl Resource {
    pub(crate) fn arn(&self) -> &str {
        match self {
            Resource::Function { arn }
            | Resource::Service { arn, .. }
            | Resource::Activity { arn } => arn,
        }
    }

    /// Whether the task stays open after the call returns. A job (`.sync`) is like a callback: the
    /// program that watches the job sends the token.
    pub(crate) fn waits_for_token(&self) -> bool {
        matches!(self, Resource::Service { waits_for_token: true, .. })
    }
}

/// Services with a known list of actions. Other services, and `aws-sdk`, accept any action.
///
/// Source: AWS, "Integrating optimized services with Step Functions".
const ACTIONS: [(&str, &[&str]); 8] = [
    ("batch", &["submitJob"]),
    ("dynamodb", &["getItem", "putItem", "updateItem", "deleteItem"]),
    ("ecs", &["runTask"]),
    ("events", &["putEvents"]),
    ("lambda", &["invoke"]),
    ("sns", &["publish"]),
    ("sqs", &["sendMessage"]),
    ("states", &["startExecution"]),
];

/// Optimised services other than those in [`ACTIONS`].
///
/// Source: as [`ACTIONS`].
const SERVICES: [&str; 15] = [
    "apigateway",
    "athena",
    "aws-sdk",
    "bedrock",
    "codebuild",
    "databrew",
    "eks",
    "elasticmapreduce",
    "emr-containers",
    "emr-serverless",
    "glue",
    "http",
    "mediaconvert",
    "redshift-data",
    "sagemaker",
];

/// Services whose calls end with the call: they have no `.sync`.
///
/// Source: diagnostics of `ValidateStateMachineDefinition` that badmintoncryer/cdk-preflight
/// measured; AWS, "Integrating optimized services with Step Functions".
const WITHOUT_JOB: [&str; 8] =
    ["lambda", "sns", "sqs", "dynamodb", "events", "apigateway", "aws-sdk", "bedrock-agentcore"];

/// Services without `.waitForTaskToken`.
///
/// Source: as [`WITHOUT_JOB`].
const WITHOUT_TOKEN: [&str; 12] = [
    "athena",
    "batch",
    "codebuild",
    "elasticmapreduce",
    "emr-containers",
    "emr-serverless",
    "glue",
    "databrew",
    "mediaconvert",
    "sagemaker",
    "dynamodb",
    "bedrock-agentcore",
];

pub(super) fn resource(fields: &Fields<'_>, workflow: Workflow) -> Result<Resource> {
    let text = fields.required_text("Resource")?;
    let arn = text.to_owned();
    let wrong = || fields.error_at("Resource", Problem::Resource(arn.clone()));
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        ["arn", _, "lambda", _, _, "function", ..] => Ok(Resource::Function { arn }),
        ["arn", _, "states", _, _, "activity", _] if workflow == Workflow::Express => {
            let problem = "Express state machine does not support Activity ARN";
            Err(fields.error_at("Resource", Problem::Conflict(problem)))
        }
        ["arn", _, "states", _, _, "activity", _] => Ok(Resource::Activity { arn }),
        ["arn", _, "states", "", "", service @ .., "2"] if text.ends_with(".sync:2") => {
            let Some((action, service)) = service.split_last() else { return Err(wrong()) };
            let resource = format!("{action}:2");
            integration(fields, arn.clone(), service, &resource, workflow)?.ok_or_else(wrong)
        }
        ["arn", _, "states", "", "", service @ .., resource] => {
            integration(fields, arn.clone(), service, resource, workflow)?.ok_or_else(wrong)
        }
        ["arn", ..] => Err(wrong()),
        _ => {
            let problem = "Value is not a valid resource ARN";
            Err(fields.error_at("Resource", Problem::Conflict(problem)))
        }
    }
}

/// Parses a service integration; `None` if unknown.
fn integration(
    fields: &Fields<'_>,
    arn: String,
    service: &[&str],
    resource: &str,
    workflow: Workflow,
) -> Result<Option<Resource>> {
    let (action, pattern) = resource.split_once('.').unwrap_or((resource, ""));
    let known = match service {
        ["aws-sdk", _] => true,
        [name] => match ACTIONS.iter().find(|(known, _)| known == name) {
            Some((_, actions)) => actions.contains(&action),
            None => SERVICES.contains(name),
        },
        _ => false,
    };
    let waits_for_token = !pattern.is_empty();
    let name = service.first().copied().unwrap_or_default();
    let offered = match pattern {
        "" => true,
        "waitForTaskToken" => !WITHOUT_TOKEN.contains(&name),
        "sync" => !WITHOUT_JOB.contains(&name),
        "sync:2" => name == "states",
        _ => false,
    };
    if !known || !offered {
        return Ok(None);
    }
    if workflow == Workflow::Express && waits_for_token {
        let problem = match pattern {
            "waitForTaskToken" => {
                "Express state machine does not support '.waitForTaskToken' service integration "
            }
            _ => "Express state machine does not support '.sync' service integration",
        };
        return Err(fields.error_at("Resource", Problem::Conflict(problem)));
    }
    let (resource_type, resource) = (service.join(":"), resource.to_owned());
    Ok(Some(Resource::Service { arn, resource_type, resource, waits_for_token }))
}
