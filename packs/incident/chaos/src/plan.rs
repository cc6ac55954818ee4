//! Computes the changes of a fault. Only reads.

use serde_json::{Map, Value};

use super::change::{Change, Clients};
use super::iam::{Left, without};
use super::{Error, Fault, Services};
use aws_diagnostics::account::{CallError, policy_document};

/// Most pages of a role's policies.
const PAGES_MAX: usize = 10;

/// The changes of a fault, in order.
pub(super) async fn plan(
    clients: &Clients,
    function: &str,
    fault: Fault,
) -> Result<Vec<Change>, Error> {
    match fault {
        Fault::Permission(services) => permission(clients, function, services).await,
        Fault::Throttle(executions) => {
            let request = clients.lambda.get_function_concurrency().function_name(function);
            let answer = request.send().await;
            let answer = answer.map_err(|error| CallError::of("GetFunctionConcurrency", &error))?;
            let before = answer.reserved_concurrent_executions();
            let (function, after) = (function.to_owned(), i32::from(executions));
            Ok(vec![Change::Concurrency { function, before, after }])
        }
        Fault::Network => network(clients, function).await,
    }
}

async fn permission(
    clients: &Clients,
    function: &str,
    services: Services,
) -> Result<Vec<Change>, Error> {
    let role = role(clients, function).await?;
    let mut changes = Vec::new();
    for policy in inline_policies(clients, &role).await? {
        let request = clients.iam.get_role_policy().role_name(&role).policy_name(&policy);
        let answer = request.send().await;
        let answer = answer.map_err(|error| CallError::of("GetRolePolicy", &error))?;
        let before = document(&policy, answer.policy_document())?;
        let after = match left(&policy, &before, services)? {
            Left::All => continue,
            Left::Less(after) => Some(after),
            Left::Nothing => None,
        };
        changes.push(Change::RolePolicy { role: role.clone(), policy, before, after });
    }
    for policy_arn in attached_policies(clients, &role).await? {
        let allowed = managed_policy(clients, &policy_arn).await?;
        if left(&policy_arn, &allowed, services)? != Left::All {
            changes.push(Change::AttachedPolicy { role: role.clone(), policy_arn });
        }
    }
    if changes.is_empty() {
        let nothing = format!("no policy of role {role} allows these services");
        return Err(Error::NothingToBreak(nothing));
    }
    Ok(changes)
}

async fn network(clients: &Clients, function: &str) -> Result<Vec<Change>, Error> {
    let request = clients.lambda.get_function_configuration().function_name(function);
    let answer = request.send().await;
    let answer = answer.map_err(|error| CallError::of("GetFunctionConfiguration", &error))?;
    let groups = answer.vpc_config().map(|vpc| vpc.security_group_ids()).unwrap_or_default();
    let mut changes = Vec::new();
    for group in groups {
        let rules = clients.ec2.egress(group).await?;
        changes.extend(rules.into_iter().map(|rule| Change::Egress { rule }));
    }
    if changes.is_empty() {
        let nothing = format!("no security group of {function} has outbound rules");
        return Err(Error::NothingToBreak(nothing));
    }
    Ok(changes)
}

async fn role(clients: &Clients, function: &str) -> Result<String, Error> {
    let request = clients.lambda.get_function_configuration().function_name(function);
    let answer = request.send().await;
    let answer = answer.map_err(|error| CallError::of("GetFunctionConfiguration", &error))?;
    let name = answer.role().and_then(|arn| arn.split_once(":role/")?.1.rsplit('/').next());
    let malformed = || Error::Malformed(format!("the configuration of {function} names no role"));
    name.map(str::to_owned).ok_or_else(malformed)
}

async fn inline_policies(clients: &Clients, role: &str) -> Result<Vec<String>, Error> {
    let (mut names, mut marker) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let request = clients.iam.list_role_policies().role_name(role).set_marker(marker);
        let page = request.send().await;
        let page = page.map_err(|error| CallError::of("ListRolePolicies", &error))?;
        names.extend(page.policy_names);
        marker = page.marker.filter(|_| page.is_truncated);
        if marker.is_none() {
            return Ok(names);
        }
    }
    Err(Error::Malformed(format!("role {role} has too many policies")))
}

async fn attached_policies(clients: &Clients, role: &str) -> Result<Vec<String>, Error> {
    let (mut arns, mut marker) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let request = clients.iam.list_attached_role_policies().role_name(role);
        let page = request.set_marker(marker).send().await;
        let page = page.map_err(|error| CallError::of("ListAttachedRolePolicies", &error))?;
        let attached = page.attached_policies.unwrap_or_default();
        arns.extend(attached.into_iter().filter_map(|policy| policy.policy_arn));
        marker = page.marker.filter(|_| page.is_truncated);
        if marker.is_none() {
            return Ok(arns);
        }
    }
    Err(Error::Malformed(format!("role {role} has too many attached policies")))
}

async fn managed_policy(clients: &Clients, arn: &str) -> Result<Map<String, Value>, Error> {
    let policy = clients.iam.get_policy().policy_arn(arn).send().await;
    let policy = policy.map_err(|error| CallError::of("GetPolicy", &error))?;
    let version = policy.policy().and_then(|policy| policy.default_version_id());
    let request = clients.iam.get_policy_version().policy_arn(arn);
    let answer = request.version_id(version.unwrap_or("v1")).send().await;
    let answer = answer.map_err(|error| CallError::of("GetPolicyVersion", &error))?;
    let text = answer.policy_version().and_then(|version| version.document());
    document(arn, text.unwrap_or_default())
}

fn document(policy: &str, encoded: &str) -> Result<Map<String, Value>, Error> {
    match policy_document(encoded) {
        Value::Object(document) => Ok(document),
        _ => Err(Error::Malformed(format!("the document of policy {policy} is not a JSON object"))),
    }
}

fn left(policy: &str, document: &Map<String, Value>, services: Services) -> Result<Left, Error> {
    without(document, services)
        .map_err(|broad| Error::TooBroad { policy: policy.to_owned(), action: broad.0 })
}
