//! Checks of an AWS account: region, credentials, the stack's resources, and permissions on them.

use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_sfn::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sfn::types::{StateMachineStatus, StateMachineType};
use journal::clock::Clock;
use journal::dynamo::DynamoStore;
use journal::id::SessionId;
use journal::key::INDEX_BY_DAY;
use journal::listing;
use journal::store::{Key, Store as _};
use workflow::env;

use super::of_failure;
use crate::outputs;
use crate::render::checks::{Check, Found};
use crate::resolve::Context;
use crate::resolve::cloud::Cloud;

/// Where resource names come from.
const OUTPUTS: &str = "set it from the outputs of the stack: see DEPLOYMENT.md";

/// The fix when permissions cannot be simulated.
const BY_HAND: &str =
    "allow iam:SimulatePrincipalPolicy, or compare your policy with the one in DEPLOYMENT.md";

/// Runs all checks.
pub(super) async fn checks(context: &Context) -> Vec<Check> {
    let aws = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let Some(region) = aws.region() else {
        let found = Found::bad("no region is set", "set AWS_REGION, or a region in ~/.aws/config");
        return vec![("region", found)];
    };
    let mut checks = vec![("region", Found::good(region.as_ref()))];
    let caller = caller(&aws).await;
    let arn = caller.as_ref().ok().cloned();
    checks.push(("credentials", caller.map_or_else(|found| found, Found::good)));
    // Without the outputs, check the names from the environment.
    let cloud = match outputs::named(&context.cloud, &aws).await {
        Ok(cloud) => cloud,
        Err(failure) => {
            checks.push(("stack", of_failure(&failure)));
            context.cloud.clone()
        }
    };
    checks.push(("journal", journal(&aws, &cloud).await));
    checks.push(("state machine", machine(&aws, &cloud).await));
    checks.push(("agent runtime", runtime(&aws, &cloud).await));
    checks.push(("permissions", permissions(&aws, arn.as_deref(), &cloud).await));
    checks
}

async fn caller(aws: &SdkConfig) -> Result<String, Found> {
    let answer = aws_sdk_sts::Client::new(aws).get_caller_identity().send().await;
    let fix = "log in again (aws sso login), or set AWS_PROFILE";
    match answer {
        Ok(caller) => Ok(caller.arn().unwrap_or("unnamed").to_owned()),
        Err(error) => Err(Found::bad(said(&error), fix)),
    }
}

async fn journal(aws: &SdkConfig, cloud: &Cloud) -> Found {
    let Some(table) = cloud.table.as_deref() else {
        return Found::bad(format!("{} is not set", env::JOURNAL_TABLE_NAME), OUTPUTS);
    };
    let store = DynamoStore::new(aws, table);
    let wrong = |error: &dyn std::error::Error| {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        let fix = "set the stack's table and region; reading it requires dynamodb:GetItem and \
                   dynamodb:Query on the table and its indexes";
        Found::bad(format!("{table}: {text}"), fix)
    };
    if let Err(error) = store.get(Key::new("SESSION#doctor", "LEASE")).await {
        return wrong(&error);
    }
    let now = Clock::system().now();
    match listing::list(&store, now, now, 1).await {
        Ok(_) => Found::good(format!("{table} and its index by day are readable")),
        Err(error) => wrong(&error),
    }
}

async fn machine(aws: &SdkConfig, cloud: &Cloud) -> Found {
    let Some(arn) = cloud.state_machine_arn.as_deref() else {
        return Found::bad(format!("{} is not set", env::STATE_MACHINE_ARN), OUTPUTS);
    };
    let client = aws_sdk_sfn::Client::new(aws);
    match client.describe_state_machine().state_machine_arn(arn).send().await {
        Ok(machine) if *machine.r#type() != StateMachineType::Standard => Found::bad(
            format!("{arn} is an express workflow"),
            "express workflows end after five minutes and have no callbacks; deploy the stack again",
        ),
        Ok(machine) if machine.status().is_some_and(|s| *s != StateMachineStatus::Active) => {
            Found::bad(format!("{arn} is being deleted"), "deploy the stack again")
        }
        Ok(_) => Found::good(arn),
        Err(error) => Found::bad(
            said(&error),
            "set the stack's state machine; this requires states:DescribeStateMachine",
        ),
    }
}

/// Checks the runtime by stopping a session that does not exist: a person's policy has no read-only call,
/// and this one changes nothing.
async fn runtime(aws: &SdkConfig, cloud: &Cloud) -> Found {
    let Some(arn) = cloud.runtime_arn.as_deref() else {
        let why = format!("{} is not set", env::AGENT_RUNTIME_ARN);
        return Found::unknown(why, format!("{OUTPUTS}; no command needs it"));
    };
    let client = aws_sdk_bedrockagentcore::Client::new(aws);
    let nobody = SessionId::fresh();
    let stop = client.stop_runtime_session().agent_runtime_arn(arn);
    match stop.runtime_session_id(nobody.as_str()).send().await {
        Ok(_) => Found::good(arn),
        Err(error) => match error.code() {
            Some("ResourceNotFoundException") => Found::good(format!("{arn} responds")),
            Some("AccessDeniedException") => Found::unknown(
                said(&error),
                "this check requires bedrock-agentcore:StopRuntimeSession; no command needs it",
            ),
            _ => Found::bad(said(&error), "set the stack's runtime and region"),
        },
    }
}

async fn permissions(aws: &SdkConfig, caller: Option<&str>, cloud: &Cloud) -> Found {
    let Some(caller) = caller else {
        return Found::unknown("the caller is unknown", BY_HAND);
    };
    let Some(principal) = principal(caller) else {
        let why = format!(
            "{caller} is neither a user nor a role, so its permissions cannot be simulated"
        );
        return Found::unknown(why, BY_HAND);
    };
    let Some(asked) = asked(cloud) else {
        return Found::unknown("the stack's table and state machine are unknown", OUTPUTS);
    };
    let client = aws_sdk_iam::Client::new(aws);
    let principal = with_path(&client, principal).await;
    let mut refused = Vec::new();
    for (resource, actions) in asked {
        let simulate = client.simulate_principal_policy().policy_source_arn(&principal);
        let actions = actions.iter().map(|action| (*action).to_owned()).collect();
        let simulate = simulate.set_action_names(Some(actions)).resource_arns(&resource);
        match simulate.send().await {
            Err(error) => return Found::unknown(said(&error), BY_HAND),
            Ok(answer) => refused.extend(
                (answer.evaluation_results().iter())
                    .filter(|result| result.eval_decision().as_str() != "allowed")
                    .map(|result| format!("{} on {resource}", result.eval_action_name())),
            ),
        }
    }
    if refused.is_empty() {
        return Found::good(format!("{principal} has all permissions that commands need"));
    }
    Found::bad(
        format!("{principal} is not allowed {}", refused.join(", ")),
        "add the missing permissions from DEPLOYMENT.md; to read only, events:PutEvents is \
         not needed",
    )
}

/// A role's ARN with its path, which the simulation needs and an assumed-role ARN leaves out.
async fn with_path(client: &aws_sdk_iam::Client, principal: String) -> String {
    let Some((_, role)) = principal.split_once(":role/") else { return principal };
    match client.get_role().role_name(role).send().await {
        Ok(answer) => answer.role().map_or(principal, |role| role.arn().to_owned()),
        Err(_) => principal,
    }
}

/// The actions that a person's commands need, by resource.
fn asked(cloud: &Cloud) -> Option<Vec<(String, &'static [&'static str])>> {
    let (table, machine) = (cloud.table.as_deref()?, cloud.state_machine_arn.as_deref()?);
    let (head, name) = machine.split_once(":stateMachine:")?;
    let [arn, partition, _, region, account] = head.split(':').collect::<Vec<_>>()[..] else {
        return None;
    };
    let of = |service: &str, thing: String| {
        format!("{arn}:{partition}:{service}:{region}:{account}:{thing}")
    };
    let bus = cloud.event_bus_name.as_deref().unwrap_or("default");
    Some(vec![
        (
            of("cloudformation", format!("stack/{}/*", cloud.stack())),
            &["cloudformation:DescribeStacks"],
        ),
        (of("events", format!("event-bus/{bus}")), &["events:PutEvents"]),
        (of("dynamodb", format!("table/{table}")), &["dynamodb:GetItem", "dynamodb:Query"]),
        (of("dynamodb", format!("table/{table}/index/{INDEX_BY_DAY}")), &["dynamodb:Query"]),
        (machine.to_owned(), &["states:DescribeStateMachine"]),
        (
            of("states", format!("execution:{name}:*")),
            &["states:DescribeExecution", "states:GetExecutionHistory"],
        ),
    ])
}

/// The role of an assumed-role session, or else the caller; `None` for an account's root.
fn principal(arn: &str) -> Option<String> {
    let parts: Vec<_> = arn.splitn(6, ':').collect();
    let [head, partition, service, _, account, name] = parts[..] else { return None };
    match (service, name.strip_prefix("assumed-role/").and_then(|rest| rest.split_once('/'))) {
        ("sts", Some((role, _))) => Some(format!("{head}:{partition}:iam::{account}:role/{role}")),
        ("iam", _) if name != "root" => Some(arn.to_owned()),
        _ => None,
    }
}

/// AWS's error code and message, or else the causes; truncated.
fn said<E>(error: &SdkError<E>) -> String
where
    E: std::error::Error + ProvideErrorMetadata + 'static,
{
    crate::commands::cloud::said(error).chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_checked_per_resource() {
        let cloud = Cloud {
            stage: "dev".to_owned(),
            state_machine_arn: Some("arn:aws-cn:states:cn-north-1:1:stateMachine:m".to_owned()),
            event_bus_name: Some("b".to_owned()),
            table: Some("t".to_owned()),
            actions_url: None,
            actions_bus: None,
            log_key: None,
            runtime_arn: None,
        };
        let things: Vec<_> = asked(&cloud).unwrap().into_iter().map(|(thing, _)| thing).collect();
        let expected = [
            "arn:aws-cn:cloudformation:cn-north-1:1:stack/daybook-dev/*",
            "arn:aws-cn:events:cn-north-1:1:event-bus/b",
            "arn:aws-cn:dynamodb:cn-north-1:1:table/t",
            "arn:aws-cn:dynamodb:cn-north-1:1:table/t/index/ByDay",
            "arn:aws-cn:states:cn-north-1:1:stateMachine:m",
            "arn:aws-cn:states:cn-north-1:1:execution:m:*",
        ];
        assert_eq!(things, expected);
        assert!(asked(&Cloud { table: None, ..cloud }).is_none());
    }

    #[test]
    fn an_assumed_role_session_maps_to_its_role() {
        let of = |arn: &str| principal(arn);
        let role = "arn:aws:iam::123456789012:role/admin";
        assert_eq!(of("arn:aws:sts::123456789012:assumed-role/admin/me").as_deref(), Some(role));
        let user = "arn:aws:iam::123456789012:user/me";
        assert_eq!(of(user).as_deref(), Some(user));
        assert_eq!(of("arn:aws:iam::123456789012:root"), None);
        assert_eq!(of("nobody"), None);
    }
}
