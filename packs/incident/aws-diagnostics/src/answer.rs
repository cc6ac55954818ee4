//! Converts AWS's responses to tool results. Pure.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::function_name::FunctionName;
use super::refusal::{Reason, RefusedCall};
use super::response::{
    Change, ChangesResponse, GroupRules, IamStateResponse, LambdaConfigResponse, LogEvent,
    LogsResponse, Rule, SecurityGroupsResponse,
};
use super::saved::{
    AttachedRolePolicies, EnvironmentError, FilterLogEvents, FilteredLogEvent, FunctionConcurrency,
    FunctionConfiguration, LoggingConfiguration, LookedUpEvent, LookedUpEvents, RolePolicies,
    RolePolicy, SecurityGroupRule, SecurityGroupRules,
};

/// Most log events in a result; the newest are kept.
pub(super) const EVENTS_MAX: usize = 100;

/// Longest message in a result, in characters. With [`EVENTS_MAX`] it limits a result to about 25,000
/// tokens, a quarter of an incident's budget.
pub(super) const MESSAGE_CHARS_MAX: usize = 1_000;

/// Longest quote of an AWS CLI error, in characters.
const AWS_ERROR_CHARS_MAX: usize = 500;

/// Start of an AWS CLI error.
///
/// Source: botocore, `ClientError.MSG_TEMPLATE`.
pub(super) const AWS_ERROR_PREFIX: &str = "An error occurred (";

/// What newer versions of the AWS CLI print before it.
///
/// Source: AWS CLI 2, `errorhandler.py`.
const AWS_CLI_PREFIX: &str = "aws: [ERROR]: ";

/// Most changes in a result; the newest are kept.
const CHANGES_MAX: usize = 50;

/// Longest parameters of a change, in characters.
const REQUEST_CHARS_MAX: usize = 600;

/// Logs, and the number of omitted older events.
#[derive(Debug)]
pub(super) struct RecentLogs {
    pub response: LogsResponse,
    pub left_out: usize,
}

/// Parses a file.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Reason> {
    let wide = utf16(bytes);
    let bytes = wide.as_deref().map_or(bytes, str::as_bytes);
    // Windows editors and shells write a byte order mark.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    if bytes.is_empty() {
        return Err(Reason::Empty);
    }
    if let Some(refusal) = std::str::from_utf8(bytes).ok().and_then(refusal) {
        return Err(Reason::RefusedByAws(refusal.chars().take(AWS_ERROR_CHARS_MAX).collect()));
    }
    // Serde would accept an array of the members as the object.
    if !bytes.starts_with(b"{") {
        return Err(Reason::Malformed("a JSON object was expected".to_owned()));
    }
    serde_json::from_slice(bytes).map_err(|error| Reason::Malformed(mcp::json_problem(&error)))
}

/// The text of a file in UTF-16, which PowerShell 5 writes when it redirects output.
fn utf16(bytes: &[u8]) -> Option<String> {
    let order: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return None,
    };
    let units = bytes[2..].as_chunks::<2>().0.iter().map(|pair| order(*pair));
    char::decode_utf16(units).collect::<Result<String, _>>().ok()
}

/// AWS's refusal, as the AWS CLI prints it or as a service answers it.
fn refusal(text: &str) -> Option<String> {
    let first_line = text.strip_prefix(AWS_CLI_PREFIX).unwrap_or(text).lines().next()?;
    if first_line.starts_with(AWS_ERROR_PREFIX) {
        return Some(first_line.to_owned());
    }
    let answer: Value = serde_json::from_str(text).ok()?;
    let error = answer.get("Error").unwrap_or(&answer);
    let code = error.get("Code").or(error.get("__type"))?.as_str()?;
    let message = error.get("Message").or(error.get("message")).and_then(Value::as_str);
    Some(format!("{AWS_ERROR_PREFIX}{code}): {}", message.unwrap_or("no reason given")))
}

/// The newest events, oldest first.
pub(super) fn recent_logs(log_group: String, saved: FilterLogEvents) -> Result<RecentLogs, Reason> {
    let count = saved.events.len();
    let mut first_problem = None;
    let mut events: Vec<(i64, LogEvent)> = Vec::new();
    for event in saved.events {
        match log_event(event) {
            Ok(event) => events.push(event),
            Err(problem) => first_problem = first_problem.or(Some(problem)),
        }
    }
    let lost = count - events.len();
    let mut gaps = Vec::new();
    if let Some(problem) = first_problem {
        if events.is_empty() {
            return Err(problem);
        }
        gaps.push(format!("{lost} of {count} events are unreadable ({problem})"));
    }
    if saved.next_token.is_some() {
        gaps.push("logs:FilterLogEvents has a next page that was not read".to_owned());
    }
    // Joined pages may be out of order.
    events.sort_by_key(|(at, _)| *at);
    let left_out = events.len().saturating_sub(EVENTS_MAX);
    let events = events.into_iter().skip(left_out).map(|(_, event)| event).collect();
    let error = (!gaps.is_empty()).then(|| format!("{}: events may be missing", gaps.join("; ")));
    Ok(RecentLogs { response: LogsResponse { log_group, events, error }, left_out })
}

/// The log group in a function's configuration, or Lambda's default.
pub(super) fn log_group(name: &FunctionName, saved: Option<LoggingConfiguration>) -> String {
    saved
        .and_then(|configuration| configuration.logging_config)
        .and_then(|logging| logging.log_group)
        .unwrap_or_else(|| format!("/aws/lambda/{name}"))
}

/// What is known of a role. An absent list could not be read.
#[derive(Debug, Default)]
pub(super) struct Role {
    pub name: String,
    pub names: Option<RolePolicies>,
    pub policies: Vec<RolePolicy>,
    pub attached: Option<AttachedRolePolicies>,
}

/// The parts of a role that were read, and what is missing.
pub(super) fn iam_state(role: Role, refused: &[RefusedCall]) -> IamStateResponse {
    let is_cut = |is_truncated: Option<bool>, call| is_truncated.unwrap_or(false).then_some(call);
    let unfinished: Vec<&str> = [
        is_cut(role.names.as_ref().map(|names| names.is_truncated), "iam:ListRolePolicies"),
        is_cut(role.attached.as_ref().map(|a| a.is_truncated), "iam:ListAttachedRolePolicies"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut gaps: Vec<String> = refused.iter().map(ToString::to_string).collect();
    if !unfinished.is_empty() {
        gaps.push(format!("only the first page of {} was saved", unfinished.join(" and ")));
    }
    let policies = role.policies.into_iter();
    let attached = role.attached.map(|attached| attached.attached_policies).unwrap_or_default();
    IamStateResponse {
        role_name: role.name,
        inline_policies: policies
            .map(|policy| (policy.policy_name, policy.policy_document))
            .collect::<BTreeMap<_, _>>(),
        attached_policies: attached.into_iter().map(|policy| policy.policy_arn).collect(),
        error: (!gaps.is_empty()).then(|| format!("{}: policies may be missing", gaps.join("\n"))),
    }
}

/// The parts of a configuration that were read, and what is missing.
pub(super) fn lambda_config(
    name: &FunctionName,
    configuration: Option<FunctionConfiguration>,
    concurrency: Option<FunctionConcurrency>,
    refused: &[RefusedCall],
) -> LambdaConfigResponse {
    let mut configuration = configuration.unwrap_or_default();
    let environment = configuration.environment.take().unwrap_or_default();
    let gaps: Vec<String> = refused.iter().map(ToString::to_string).collect();
    LambdaConfigResponse {
        function_name: name.to_string(),
        runtime: configuration.runtime,
        handler: configuration.handler,
        role: configuration.role,
        memory_size: configuration.memory_size,
        timeout: configuration.timeout,
        state: configuration.state,
        state_reason: configuration.state_reason,
        state_reason_code: configuration.state_reason_code,
        architectures: configuration.architectures,
        environment_variables: environment.variables.map(|names| names.into_keys().collect()),
        environment_error: environment.error.map(environment_error),
        kms_key_arn: configuration.kms_key_arn,
        reserved_concurrent_executions: concurrency
            .and_then(|concurrency| concurrency.reserved_concurrent_executions),
        vpc_config: configuration.vpc_config,
        error: (!gaps.is_empty())
            .then(|| format!("{}: what it would show is unknown", gaps.join("\n"))),
    }
}

fn environment_error(error: EnvironmentError) -> String {
    let text = [error.error_code, error.message].into_iter().flatten().collect::<Vec<_>>();
    cut(&text.join(": "), AWS_ERROR_CHARS_MAX)
}

/// The rules of these groups. A group without a rule has none, unless the answer is about other groups.
pub(super) fn security_groups(
    groups: &[String],
    saved: SecurityGroupRules,
) -> Result<SecurityGroupsResponse, Reason> {
    let mut found: BTreeMap<String, GroupRules> = BTreeMap::new();
    for rule in saved.security_group_rules {
        let of_group = found.entry(rule.group_id.clone()).or_default();
        let list = if rule.is_egress { &mut of_group.egress } else { &mut of_group.ingress };
        list.push(security_group_rule(rule));
    }
    let is_asked = |group: &String| groups.contains(group);
    if !groups.is_empty()
        && let Some(other) = found.keys().find(|group| !is_asked(group))
        && !found.keys().any(is_asked)
    {
        return Err(Reason::Malformed(format!(
            "it is about {other:?}, not {:?}",
            groups.join(", ")
        )));
    }
    let mut gaps = Vec::new();
    if found.is_empty() {
        found.extend(groups.iter().map(|group| (group.clone(), GroupRules::default())));
    }
    let absent: Vec<&str> =
        groups.iter().filter(|group| !found.contains_key(*group)).map(String::as_str).collect();
    if !absent.is_empty() {
        gaps.push(format!(
            "no rule of {} is listed; it was not asked about or has none",
            absent.join(", ")
        ));
    }
    if saved.next_token.is_some() {
        gaps.push("ec2:DescribeSecurityGroupRules has a next page that was not read".to_owned());
    }
    found.retain(|group, _| groups.is_empty() || is_asked(group));
    let error = (!gaps.is_empty()).then(|| format!("{}: rules may be missing", gaps.join("; ")));
    Ok(SecurityGroupsResponse { security_groups: found, error })
}

fn security_group_rule(rule: SecurityGroupRule) -> Rule {
    let referenced = rule.referenced_group_info.and_then(|group| group.group_id);
    let peer = rule.cidr_ipv4.or(rule.cidr_ipv6).or(rule.prefix_list_id).or(referenced);
    let has_ports = rule.ip_protocol != "-1";
    Rule {
        protocol: rule.ip_protocol,
        from_port: rule.from_port.filter(|_| has_ports),
        to_port: rule.to_port.filter(|_| has_ports),
        peer: peer.unwrap_or_else(|| "unknown".to_owned()),
        description: rule.description.filter(|text| !text.is_empty()),
    }
}

/// The newest changes, oldest first. Read-only calls are none.
pub(super) fn changes(saved: Vec<LookedUpEvents>, refused: &[RefusedCall]) -> ChangesResponse {
    let mut gaps: Vec<String> = refused.iter().map(ToString::to_string).collect();
    let (mut seen, mut unreadable) = (BTreeSet::new(), 0);
    let mut events = Vec::new();
    for page in saved {
        if page.next_token.is_some() {
            gaps.push("cloudtrail:LookupEvents has a next page that was not read".to_owned());
        }
        for event in page.events {
            let is_new = event.event_id.as_ref().is_none_or(|id| seen.insert(id.clone()));
            match change(event) {
                Some(Some(change)) if is_new => events.push(change),
                Some(_) => {}
                None => unreadable += 1,
            }
        }
    }
    if unreadable > 0 {
        gaps.push(format!("{unreadable} events have no readable time"));
    }
    events.sort_by(|a: &Change, b| a.time.cmp(&b.time));
    let left_out = events.len().saturating_sub(CHANGES_MAX);
    if left_out > 0 {
        gaps.push(format!("{left_out} older events are left out"));
    }
    let events = events.split_off(left_out);
    let error = (!gaps.is_empty()).then(|| format!("{}: changes may be missing", gaps.join("\n")));
    ChangesResponse { events, error }
}

/// A change; `Some(None)` for a read-only call, `None` without a time.
fn change(event: LookedUpEvent) -> Option<Option<Change>> {
    let time = match &event.event_time {
        Value::String(text) => DateTime::parse_from_rfc3339(text).ok()?.to_utc(),
        number => DateTime::from_timestamp_millis((number.as_f64()? * 1_000.0) as i64)?,
    };
    let whole = event.cloud_trail_event.as_deref();
    let whole: Value = whole.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if whole["readOnly"] == true {
        return Some(None);
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let request = Some(&whole["requestParameters"]).filter(|parameters| !parameters.is_null());
    let user = text(&whole["userIdentity"]["arn"]).or(event.username);
    let resources = event.resources.into_iter().filter_map(|resource| resource.resource_name);
    Some(Some(Change {
        time: time.to_rfc3339_opts(SecondsFormat::Secs, true),
        name: event.event_name,
        user: user.unwrap_or_else(|| "unknown".to_owned()),
        resources: resources.collect(),
        request: request.map(|parameters| cut(&parameters.to_string(), REQUEST_CHARS_MAX)),
        error_code: text(&whole["errorCode"]),
    }))
}

/// Refuses a response about something else.
pub(super) fn belongs(found: &str, asked: &str) -> Result<(), Reason> {
    if found == asked {
        Ok(())
    } else {
        Err(Reason::Malformed(format!("it is about {found:?}, not {asked:?}")))
    }
}

fn log_event(event: Value) -> Result<(i64, LogEvent), Reason> {
    let event: FilteredLogEvent = serde_json::from_value(event)
        .map_err(|error| Reason::Malformed(mcp::json_problem(&error)))?;
    let at = DateTime::from_timestamp_millis(event.timestamp).ok_or_else(|| {
        Reason::Malformed(format!("timestamp {} is not a time in milliseconds", event.timestamp))
    })?;
    let timestamp = at.to_rfc3339_opts(SecondsFormat::Millis, true);
    Ok((event.timestamp, LogEvent { timestamp, message: cut(&event.message, MESSAGE_CHARS_MAX) }))
}

/// A text without its line end, cut at this many characters.
fn cut(message: &str, chars_max: usize) -> String {
    let message = message.trim_end();
    match message.char_indices().nth(chars_max) {
        None => message.to_owned(),
        Some((end, _)) => {
            let left_out = message[end..].chars().count();
            format!("{} [{left_out} more characters]", &message[..end])
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn logs(json: &str) -> Result<RecentLogs, Reason> {
        recent_logs("/aws/lambda/f".into(), parse(json.as_bytes())?)
    }

    fn refused(json: &str) -> String {
        logs(json).unwrap_err().to_string()
    }

    #[test]
    fn times_become_rfc_3339() {
        let logs = logs(r#"{"events": [{"timestamp": 1790000000007, "message": "a\n"}]}"#);
        let event = logs.unwrap().response.events.remove(0);
        assert_eq!(event.timestamp, "2026-09-21T14:13:20.007Z");
        assert_eq!(event.message, "a");
    }

    #[test]
    fn events_are_in_the_order_of_their_time() {
        let logs = logs(
            r#"{"events": [{"timestamp": 3, "message": "c"}, {"timestamp": 1, "message": "a"},
                           {"timestamp": 1, "message": "b"}]}"#,
        );
        let messages: Vec<String> =
            logs.unwrap().response.events.into_iter().map(|event| event.message).collect();
        assert_eq!(messages, ["a", "b", "c"]);
    }

    #[test]
    fn the_newest_events_are_kept() {
        let count = i64::try_from(EVENTS_MAX).unwrap() + 7;
        let events: Vec<_> = (0..count)
            .map(|at| serde_json::json!({"timestamp": at, "message": at.to_string()}))
            .collect();
        let logs = logs(&serde_json::json!({ "events": events }).to_string()).unwrap();
        assert_eq!(logs.left_out, 7);
        assert_eq!(logs.response.events.len(), EVENTS_MAX);
        assert_eq!(logs.response.events[0].message, "7");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let exact = "é".repeat(MESSAGE_CHARS_MAX);
        assert_eq!(cut(&exact, MESSAGE_CHARS_MAX), exact);
        assert_eq!(
            cut(&format!("{exact}éé"), MESSAGE_CHARS_MAX),
            format!("{exact} [2 more characters]")
        );
    }

    #[test]
    fn a_page_that_is_not_the_last_says_so() {
        for token in ["nextToken", "NextToken"] {
            let logs = logs(&format!(r#"{{"events": [], "{token}": "x"}}"#)).unwrap();
            assert!(logs.response.error.unwrap().contains("events may be missing"));
        }
        assert_eq!(logs(r#"{"events": []}"#).unwrap().response.error, None);
    }

    #[test]
    fn an_invalid_answer_is_refused() {
        insta::assert_snapshot!(
            [
                "",
                "\u{feff}\n ",
                "{",
                "[]",
                "{}",
                r#"{"events": {}}"#,
                r#"{"events": [{"timestamp": "now", "message": ""}]}"#,
                r#"{"events": [{"timestamp": 9223372036854775807, "message": ""}]}"#,
                r#"{"events": [{"timestamp": 1}]}"#,
                "\nAn error occurred (AccessDeniedException) when calling the FilterLogEvents operation: no\nx",
            ]
            .map(refused)
            .join("\n"),
            @r"
        the file is empty
        the file is empty
        not the output of this call: EOF while parsing an object at line 1 column 1
        not the output of this call: a JSON object was expected
        not the output of this call: missing field `events` at line 1 column 2
        not the output of this call: expected a sequence at line 1 column 11
        not the output of this call: expected i64
        not the output of this call: timestamp 9223372036854775807 is not a time in milliseconds
        not the output of this call: missing field `message`
        An error occurred (AccessDeniedException) when calling the FilterLogEvents operation: no
        "
        );
    }

    #[test]
    fn invalid_utf8_is_refused() {
        assert!(matches!(parse::<RolePolicies>(b"\xff\xfe{\0}\0"), Err(Reason::Malformed(_))));
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let names: RolePolicies = parse(b"\xef\xbb\xbf{\"PolicyNames\": [\"a\"]}\r\n").unwrap();
        assert_eq!(names.policy_names, ["a"]);
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = format!("{{\"events\": {}", "[".repeat(1 << 20));
        assert!(refused(&deep).starts_with("not the output of this call"));
    }

    #[test]
    fn logs_come_from_the_group_that_the_configuration_names() {
        let name = FunctionName::try_from("f".to_owned()).unwrap();
        let custom = parse(br#"{"LoggingConfig": {"LogGroup": "/team/f"}}"#).unwrap();
        assert_eq!(log_group(&name, Some(custom)), "/team/f");
        assert_eq!(log_group(&name, Some(parse(b"{}").unwrap())), "/aws/lambda/f");
        assert_eq!(log_group(&name, None), "/aws/lambda/f");
    }

    #[test]
    fn a_truncated_list_of_policies_says_so() {
        let role = Role {
            name: "r".to_owned(),
            names: parse(br#"{"PolicyNames": [], "IsTruncated": true}"#).ok(),
            policies: vec![],
            attached: parse(br#"{"AttachedPolicies": [], "IsTruncated": true}"#).ok(),
        };
        insta::assert_snapshot!(iam_state(role, &[]).error.unwrap(), @"only the first page of iam:ListRolePolicies and iam:ListAttachedRolePolicies was saved: policies may be missing");
    }

    #[test]
    fn a_bad_event_loses_no_other() {
        let read = logs(
            r#"{"events": [{"timestamp": 1, "message": "a"}, {"timestamp": "x", "message": "b"},
            {"timestamp": 3}, {"timestamp": 4, "message": "d"}]}"#,
        )
        .unwrap();
        assert_eq!(read.response.events.len(), 2);
        let error = read.response.error.unwrap();
        assert!(error.starts_with("2 of 4 events are unreadable"), "{error}");
    }

    /// Source: AWS CLI 2, `errorhandler.py`; boto3, `ClientError.response`; AWS JSON protocol, `__type`.
    #[test]
    fn a_saved_refusal_is_no_answer() {
        for text in [
            "\nAn error occurred (AccessDenied) when calling the GetRole operation: no",
            "\naws: [ERROR]: An error occurred (AccessDenied) when calling the GetRole operation: no",
            r#"{"Error": {"Code": "AccessDenied", "Message": "no"}}"#,
            r#"{"__type": "AccessDenied", "message": "no"}"#,
        ] {
            let read = parse::<FunctionConcurrency>(text.as_bytes());
            let Err(Reason::RefusedByAws(said)) = read else { panic!("{text}: {read:?}") };
            assert!(said.starts_with("An error occurred (AccessDenied)"), "{said}");
        }
    }

    #[test]
    fn powershell_s_utf_16_is_read() {
        let text = r#"{"ReservedConcurrentExecutions": 5}"#;
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            let bytes: Vec<u8> = units.flat_map(order).collect();
            let read: FunctionConcurrency = parse(&bytes).unwrap();
            assert_eq!(read.reserved_concurrent_executions, Some(5));
        }
    }

    /// Source: CloudTrail API reference, `LookupEvents`; the AWS CLI, versions 1 and 2.
    #[test]
    fn changes_are_the_write_events_in_order() {
        let page = json!({"Events": [
            {"EventId": "2", "EventName": "PutFunctionConcurrency20171031", "EventTime": 1_767_225_660.0,
             "Username": "dana", "Resources": [{"ResourceType": "AWS::Lambda::Function", "ResourceName": "f"}],
             "CloudTrailEvent": json!({"userIdentity": {"arn": "arn:aws:iam::1:user/dana"}, "readOnly": false,
                "requestParameters": {"functionName": "f", "reservedConcurrentExecutions": 0}}).to_string()},
            {"EventId": "1", "EventName": "DeleteRolePolicy", "EventTime": "2026-01-01T00:00:00+00:00",
             "Username": "eve", "CloudTrailEvent": json!({"errorCode": "AccessDenied"}).to_string()},
            {"EventId": "2", "EventName": "PutFunctionConcurrency20171031", "EventTime": 1_767_225_660.0},
            {"EventId": "3", "EventName": "GetRole", "EventTime": "2026-01-01T00:00:00Z",
             "CloudTrailEvent": json!({"readOnly": true}).to_string()},
            {"EventName": "DeleteRoute", "EventTime": "soon"}]});
        let read = changes(vec![serde_json::from_value(page).unwrap()], &[]);
        insta::assert_json_snapshot!(read, @r#"
        {
          "events": [
            {
              "time": "2026-01-01T00:00:00Z",
              "name": "DeleteRolePolicy",
              "user": "eve",
              "resources": [],
              "error_code": "AccessDenied"
            },
            {
              "time": "2026-01-01T00:01:00Z",
              "name": "PutFunctionConcurrency20171031",
              "user": "arn:aws:iam::1:user/dana",
              "resources": [
                "f"
              ],
              "request": "{\"functionName\":\"f\",\"reservedConcurrentExecutions\":0}"
            }
          ],
          "error": "1 events have no readable time: changes may be missing"
        }
        "#);
    }

    #[test]
    fn a_group_without_rules_is_told_from_one_that_is_absent() {
        let groups = ["sg-1".to_owned(), "sg-2".to_owned()];
        let rules = |of: &[&str]| {
            let rule = |group: &&str| {
                json!({"GroupId": group, "IsEgress": true, "IpProtocol": "-1",
                "FromPort": -1, "ToPort": -1, "CidrIpv4": "0.0.0.0/0"})
            };
            let rules: Vec<Value> = of.iter().map(rule).collect();
            let saved = serde_json::from_value(json!({"SecurityGroupRules": rules})).unwrap();
            security_groups(&groups, saved)
        };
        let none = rules(&[]).unwrap();
        assert!(none.error.is_none() && none.security_groups["sg-2"].egress.is_empty());
        let one = rules(&["sg-1", "sg-9"]).unwrap();
        assert_eq!(one.security_groups.keys().collect::<Vec<_>>(), ["sg-1"]);
        assert!(one.error.unwrap().starts_with("no rule of sg-2 is listed"));
        assert!(matches!(rules(&["sg-9"]), Err(Reason::Malformed(_))));
    }
}
