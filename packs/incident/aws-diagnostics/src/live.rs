//! Makes the calls to an AWS account.
//!
//! Each response is converted to the AWS CLI's output, so that accounts and incident folders share a
//! parser and a recording has the same content. A function's environment is removed: it has secrets,
//! and no tool needs it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_cloudwatchlogs::types::FilteredLogEvent;
use aws_sdk_iam::types::AttachedPolicy;
use aws_sdk_lambda::operation::get_function_configuration::GetFunctionConfigurationOutput;
use aws_smithy_types::date_time::Format;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

use super::answer;
use super::call::{Call, Subject};
use super::ec2;
use super::function_name::FunctionName;
use super::refusal::{Reason, RefusedCall};
use super::signed::Signed;
use super::source::INLINE_POLICIES_MAX;
use crate::account::{Account, CallError, policy_document};

/// Age of the oldest log events that are read. An alarm fires within minutes, and an engineer looks
/// within hours.
const LOOK_BACK: Duration = Duration::from_secs(24 * 60 * 60);

/// Most log events fetched; a result has the newest hundred of them.
const EVENTS_MAX: usize = 1_000;

/// Most bytes of log messages kept, well within the limit of a file.
const MESSAGES_BYTES_MAX: usize = 1024 * 1024;

/// Age of the oldest changes that are looked up.
const CHANGES_LOOK_BACK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Most pages of changes per resource. CloudTrail answers two calls a second.
///
/// Source: CloudTrail API reference, `LookupEvents`.
const CHANGE_PAGES_MAX: usize = 2;

/// Most changes per page.
///
/// Source: CloudTrail API reference, `LookupEvents`, MaxResults.
const CHANGES_PER_PAGE: u32 = 50;

/// Most pages fetched per list.
const PAGES_MAX: usize = 10;

#[derive(Debug)]
pub(super) struct Live {
    logs: aws_sdk_cloudwatchlogs::Client,
    iam: aws_sdk_iam::Client,
    lambda: aws_sdk_lambda::Client,
    signed: Signed,
}

/// A function during one tool call; its configuration is fetched once.
#[derive(Debug)]
pub(super) struct Function<'a> {
    live: &'a Live,
    name: &'a FunctionName,
    configuration: OnceCell<Result<Value, CallError>>,
}

impl Live {
    pub(super) fn new(account: &Account) -> Self {
        Self {
            logs: aws_sdk_cloudwatchlogs::Client::new(&account.config),
            iam: aws_sdk_iam::Client::new(&account.config),
            lambda: aws_sdk_lambda::Client::new(&account.config),
            signed: Signed::new(account),
        }
    }

    /// The function of this name. The first call fails if it does not exist.
    pub(super) fn function<'a>(&'a self, name: &'a FunctionName) -> Function<'a> {
        Function { live: self, name, configuration: OnceCell::new() }
    }
}

impl Function<'_> {
    /// Makes a call and parses its response.
    pub(super) async fn ask<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, RefusedCall> {
        answer::parse(&self.fetch(call).await?).map_err(|reason| RefusedCall {
            call: call.action(),
            file: None,
            reason,
        })
    }

    /// Makes a call and returns its response as the AWS CLI prints it.
    pub(super) async fn fetch(&self, call: Call<'_>) -> Result<Vec<u8>, RefusedCall> {
        let role = match call {
            Call::GetRole
            | Call::ListRolePolicies
            | Call::GetRolePolicy(_)
            | Call::LookupEvents(Subject::Role)
            | Call::ListAttachedRolePolicies => match self.role().await {
                Ok(role) => role,
                // The call needs the role from the configuration.
                Err(reason) => return Err(refused(Call::GetFunctionConfiguration, reason)),
            },
            _ => "",
        };
        let answer = match call {
            Call::FilterLogEvents => self.log_events().await,
            Call::GetFunctionConfiguration => self.configuration().await.clone(),
            Call::GetFunctionConcurrency => self.concurrency().await,
            Call::GetRole => self.live.role(role).await,
            Call::ListRolePolicies => self.live.role_policies(role).await,
            Call::GetRolePolicy(policy) => self.live.role_policy(role, policy).await,
            Call::ListAttachedRolePolicies => self.live.attached_role_policies(role).await,
            Call::DescribeSecurityGroupRules => self.security_group_rules().await,
            Call::LookupEvents(Subject::Function) => {
                self.live.changes(&[self.name.as_str()], self.live.signed.region()).await
            }
            Call::LookupEvents(Subject::Role) => {
                let region = self.live.signed.region().map(region_of_iam);
                self.live.changes(&[role], region).await
            }
            Call::LookupEvents(Subject::SecurityGroups) => {
                let groups = self.security_groups().await;
                let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
                self.live.changes(&groups, self.live.signed.region()).await
            }
        };
        let answer = answer.map_err(|error| refused(call, error.into()))?;
        let text = format!("{answer:#}\n");
        let bytes_max = call.bytes_max();
        if text.len() as u64 > bytes_max {
            return Err(refused(call, Reason::TooLarge { bytes_max }));
        }
        Ok(text.into_bytes())
    }

    async fn configuration(&self) -> &Result<Value, CallError> {
        let fetch = || async {
            let request = self.live.lambda.get_function_configuration();
            let answer = request.function_name(self.name.as_str()).send().await;
            let answer =
                answer.map_err(|error| CallError::of("GetFunctionConfiguration", &error))?;
            Ok(configuration(&answer))
        };
        self.configuration.get_or_init(fetch).await
    }

    /// The function's role, from the end of its ARN.
    async fn role(&self) -> Result<&str, Reason> {
        let configuration = self.configuration().await.as_ref();
        let arn = configuration.map_err(|error| Reason::from(error.clone()))?["Role"].as_str();
        let name = arn.and_then(|arn| arn.split_once(":role/")?.1.rsplit('/').next());
        name.ok_or_else(|| Reason::Malformed("it names no role".to_owned()))
    }

    async fn security_groups(&self) -> Vec<String> {
        let configuration = self.configuration().await.as_ref().ok();
        let groups = configuration.and_then(|c| c["VpcConfig"]["SecurityGroupIds"].as_array());
        let groups = groups.into_iter().flatten();
        groups.filter_map(|group| group.as_str().map(str::to_owned)).collect()
    }

    async fn security_group_rules(&self) -> Result<Value, CallError> {
        let groups = self.security_groups().await;
        if groups.is_empty() {
            return Ok(json!({"SecurityGroupRules": []}));
        }
        let mut fields = vec![("Filter.1.Name".to_owned(), "group-id".to_owned())];
        let numbered = groups.into_iter().zip(1..);
        fields.extend(numbered.map(|(group, n)| (format!("Filter.1.Value.{n}"), group)));
        ec2::rules(&self.live.signed, fields, PAGES_MAX).await
    }

    async fn concurrency(&self) -> Result<Value, CallError> {
        let request = self.live.lambda.get_function_concurrency();
        let answer = request.function_name(self.name.as_str()).send().await;
        let answer = answer.map_err(|error| CallError::of("GetFunctionConcurrency", &error))?;
        Ok(object([(
            "ReservedConcurrentExecutions",
            answer.reserved_concurrent_executions().map(Value::from),
        )]))
    }

    /// The newest events of the function's log group.
    async fn log_events(&self) -> Result<Value, CallError> {
        let configuration = self.configuration().await.as_ref().ok();
        let group = configuration
            .and_then(|configuration| configuration["LoggingConfig"]["LogGroup"].as_str())
            .map_or_else(|| format!("/aws/lambda/{}", self.name), str::to_owned);
        let mut events = Vec::new();
        let mut token = None;
        for _ in 0..PAGES_MAX {
            let request = self.live.logs.filter_log_events().log_group_name(&group);
            // Newest first: a page of a busy function may cover only minutes.
            let request = request.start_time(millis_ago(LOOK_BACK)).start_from_head(false);
            let request = request.limit(EVENTS_MAX as i32).set_next_token(token);
            let page = request.send().await;
            let page = page.map_err(|error| CallError::of("FilterLogEvents", &error))?;
            token = page.next_token;
            events.extend(page.events.unwrap_or_default());
            if token.is_none() || events.len() >= EVENTS_MAX {
                break;
            }
        }
        // Older events are dropped silently: a result has only a hundred anyway.
        let token = token.filter(|_| events.len() < EVENTS_MAX);
        let mut answer = object([("nextToken", token.map(Value::from))]);
        answer["events"] = newest(events).iter().map(log_event).collect();
        answer["searchedLogStreams"] = json!([]);
        Ok(answer)
    }
}

/// The region that records IAM's events.
///
/// Source: CloudTrail User Guide, "Global service events".
fn region_of_iam(region: &str) -> &'static str {
    match region {
        _ if region.starts_with("cn-") => "cn-north-1",
        _ if region.starts_with("us-gov-") => "us-gov-west-1",
        _ => "us-east-1",
    }
}

impl Live {
    /// The newest write events about each resource.
    async fn changes(&self, names: &[&str], region: Option<&str>) -> Result<Value, CallError> {
        const LOOKUP: &str = "LookupEvents";
        let cause = "no region is set".to_owned();
        let unanswered = || CallError::Unanswered { operation: LOOKUP, cause };
        let region = region.ok_or_else(unanswered)?;
        let (mut events, mut rest) = (Vec::new(), None);
        for name in names {
            let mut token: Option<Value> = None;
            for _ in 0..CHANGE_PAGES_MAX {
                let mut request = json!({
                    "LookupAttributes": [{"AttributeKey": "ResourceName", "AttributeValue": name}],
                    "StartTime": millis_ago(CHANGES_LOOK_BACK) / 1_000,
                    "MaxResults": CHANGES_PER_PAGE,
                });
                if let Some(token) = &token {
                    request["NextToken"] = token.clone();
                }
                let page = self.signed.cloudtrail(LOOKUP, region, &request).await?;
                events.extend(page["Events"].as_array().into_iter().flatten().map(change));
                token = page.get("NextToken").filter(|token| token.is_string()).cloned();
                if token.is_none() {
                    break;
                }
            }
            rest = rest.or(token);
        }
        let mut answer = object([("NextToken", rest)]);
        answer["Events"] = events.into();
        Ok(answer)
    }

    async fn role(&self, role: &str) -> Result<Value, CallError> {
        let answer = self.iam.get_role().role_name(role).send().await;
        let answer = answer.map_err(|error| CallError::of("GetRole", &error))?;
        let role = answer.role().map_or_else(
            || json!({}),
            |role| {
                object([
                    ("Path", Some(role.path().into())),
                    ("RoleName", Some(role.role_name().into())),
                    ("RoleId", Some(role.role_id().into())),
                    ("Arn", Some(role.arn().into())),
                    ("CreateDate", role.create_date().fmt(Format::DateTime).ok().map(Value::from)),
                    ("Description", role.description().map(Value::from)),
                    ("MaxSessionDuration", role.max_session_duration().map(Value::from)),
                ])
            },
        );
        Ok(json!({ "Role": role }))
    }

    async fn role_policies(&self, role: &str) -> Result<Value, CallError> {
        let mut names: Vec<String> = Vec::new();
        let mut marker = None;
        for _ in 0..PAGES_MAX {
            let request = self.iam.list_role_policies().role_name(role).set_marker(marker);
            let page = request.send().await;
            let page = page.map_err(|error| CallError::of("ListRolePolicies", &error))?;
            names.extend(page.policy_names);
            marker = page.marker.filter(|_| page.is_truncated);
            if marker.is_none() || names.len() > INLINE_POLICIES_MAX {
                break;
            }
        }
        let is_truncated = marker.is_some().then_some(Value::Bool(true));
        let mut answer = object([("IsTruncated", is_truncated)]);
        answer["PolicyNames"] = names.into();
        Ok(answer)
    }

    async fn role_policy(&self, role: &str, policy: &str) -> Result<Value, CallError> {
        let request = self.iam.get_role_policy().role_name(role).policy_name(policy);
        let answer = request.send().await;
        let answer = answer.map_err(|error| CallError::of("GetRolePolicy", &error))?;
        Ok(json!({
            "RoleName": answer.role_name(),
            "PolicyName": answer.policy_name(),
            "PolicyDocument": policy_document(answer.policy_document()),
        }))
    }

    async fn attached_role_policies(&self, role: &str) -> Result<Value, CallError> {
        let mut policies: Vec<AttachedPolicy> = Vec::new();
        let mut marker = None;
        for _ in 0..PAGES_MAX {
            let request = self.iam.list_attached_role_policies().role_name(role);
            let page = request.set_marker(marker).send().await;
            let page = page.map_err(|error| CallError::of("ListAttachedRolePolicies", &error))?;
            policies.extend(page.attached_policies.unwrap_or_default());
            marker = page.marker.filter(|_| page.is_truncated);
            if marker.is_none() {
                break;
            }
        }
        let is_truncated = marker.is_some().then_some(Value::Bool(true));
        let mut answer = object([("IsTruncated", is_truncated)]);
        let attached = policies.iter().map(
            |policy| json!({"PolicyName": policy.policy_name(), "PolicyArn": policy.policy_arn()}),
        );
        answer["AttachedPolicies"] = attached.collect();
        Ok(answer)
    }
}

impl From<CallError> for Reason {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused { .. } => Self::RefusedByAws(error.to_string()),
            CallError::Unanswered { .. } => Self::Unanswered(error.to_string()),
        }
    }
}

fn refused(call: Call<'_>, reason: Reason) -> RefusedCall {
    RefusedCall { call: call.action(), file: None, reason }
}

/// An object of the members with a value.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let present = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}

fn configuration(answer: &GetFunctionConfigurationOutput) -> Value {
    let text = |text: Option<&str>| text.map(Value::from);
    let vpc = answer.vpc_config().map(|vpc| {
        object([
            ("SubnetIds", Some(vpc.subnet_ids().into())),
            ("SecurityGroupIds", Some(vpc.security_group_ids().into())),
            ("VpcId", text(vpc.vpc_id())),
            ("Ipv6AllowedForDualStack", vpc.ipv6_allowed_for_dual_stack().map(Value::from)),
        ])
    });
    let logging = answer.logging_config().map(|logging| {
        object([
            ("LogFormat", text(logging.log_format().map(|format| format.as_str()))),
            ("LogGroup", text(logging.log_group())),
        ])
    });
    let architectures: Vec<&str> =
        answer.architectures().iter().map(|kind| kind.as_str()).collect();
    let architectures = (!architectures.is_empty()).then(|| architectures.into());
    // A recording has the names of the variables: their values are often secrets.
    let environment = answer.environment().map(|environment| {
        let names = environment.variables().map(|variables| {
            let names = variables.keys().map(|name| (name.clone(), Value::from("")));
            Value::Object(names.collect())
        });
        let error = environment.error().map(|error| {
            object([("ErrorCode", text(error.error_code())), ("Message", text(error.message()))])
        });
        object([("Variables", names), ("Error", error)])
    });
    object([
        ("FunctionName", text(answer.function_name())),
        ("FunctionArn", text(answer.function_arn())),
        ("Runtime", text(answer.runtime().map(|runtime| runtime.as_str()))),
        ("Role", text(answer.role())),
        ("Handler", text(answer.handler())),
        ("Description", text(answer.description())),
        ("Timeout", answer.timeout().map(Value::from)),
        ("MemorySize", answer.memory_size().map(Value::from)),
        ("LastModified", text(answer.last_modified())),
        ("Version", text(answer.version())),
        ("VpcConfig", vpc),
        ("State", text(answer.state().map(|state| state.as_str()))),
        ("StateReason", text(answer.state_reason())),
        ("StateReasonCode", text(answer.state_reason_code().map(|code| code.as_str()))),
        ("Architectures", architectures),
        ("KMSKeyArn", text(answer.kms_key_arn())),
        ("Environment", environment),
        ("LastUpdateStatus", text(answer.last_update_status().map(|status| status.as_str()))),
        ("PackageType", text(answer.package_type().map(|kind| kind.as_str()))),
        ("LoggingConfig", logging),
    ])
}

/// An event without keys and addresses, which no tool needs.
fn change(event: &Value) -> Value {
    let whole = event["CloudTrailEvent"].as_str().and_then(|text| serde_json::from_str(text).ok());
    let whole: Value = whole.unwrap_or_default();
    let kept = object([
        ("readOnly", whole.get("readOnly").cloned()),
        ("userIdentity", Some(json!({"arn": whole["userIdentity"]["arn"]}))),
        ("requestParameters", whole.get("requestParameters").cloned()),
        ("errorCode", whole.get("errorCode").cloned()),
    ]);
    let mut slim = object(
        ["EventId", "EventName", "EventTime", "Username", "Resources"]
            .map(|name| (name, event.get(name).cloned())),
    );
    slim["CloudTrailEvent"] = kept.to_string().into();
    slim
}

fn log_event(event: &FilteredLogEvent) -> Value {
    object([
        ("logStreamName", event.log_stream_name().map(Value::from)),
        ("timestamp", event.timestamp().map(Value::from)),
        ("message", event.message().map(Value::from)),
        ("ingestionTime", event.ingestion_time().map(Value::from)),
        ("eventId", event.event_id().map(Value::from)),
    ])
}

/// The newest events within the limits, oldest first.
fn newest(mut events: Vec<FilteredLogEvent>) -> Vec<FilteredLogEvent> {
    events.sort_by_key(|event| event.timestamp());
    let mut bytes = 0;
    let fit = events.iter().rev().take(EVENTS_MAX).take_while(|event| {
        bytes += event.message().map_or(0, str::len);
        bytes <= MESSAGES_BYTES_MAX
    });
    let left_out = events.len() - fit.count();
    events.split_off(left_out)
}

#[expect(clippy::disallowed_methods, reason = "log events of now are asked for, and kept nowhere")]
fn millis_ago(span: Duration) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.saturating_sub(span).as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(timestamp: i64, message: &str) -> FilteredLogEvent {
        FilteredLogEvent::builder().timestamp(timestamp).message(message).build()
    }

    #[test]
    fn the_newest_events_that_fit_are_kept_in_order() {
        let times = |events: Vec<FilteredLogEvent>| -> Vec<_> {
            newest(events).iter().filter_map(FilteredLogEvent::timestamp).collect()
        };
        assert_eq!(times(vec![event(3, "c"), event(1, "a"), event(2, "b")]), [1, 2, 3]);
        let half = "x".repeat(MESSAGES_BYTES_MAX / 2);
        assert_eq!(times((0..4).map(|at| event(at, &half)).collect()), [2, 3]);
        let many = (0..EVENTS_MAX as i64 + 5).map(|at| event(at, ""));
        assert_eq!(times(many.collect())[..2], [5, 6]);
    }
}
