//! Converts AWS's responses to tool results. Pure.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat};
use serde::de::DeserializeOwned;

use super::function_name::FunctionName;
use super::refusal::Reason;
use super::response::{IamStateResponse, LambdaConfigResponse, LogEvent, LogsResponse};
use super::saved::{
    AttachedRolePolicies, FilterLogEvents, FilteredLogEvent, FunctionConcurrency,
    FunctionConfiguration, GetRole, LoggingConfiguration, RolePolicies, RolePolicy,
};

/// Most log events in a result; the newest are kept.
pub(super) const EVENTS_MAX: usize = 100;

/// Longest message in a result, in characters. With [`EVENTS_MAX`] it limits a result to about 25,000
/// tokens, a quarter of an incident's budget.
pub(super) const MESSAGE_CHARS_MAX: usize = 1_000;

/// Longest quote of an AWS CLI error, in characters.
const AWS_ERROR_CHARS_MAX: usize = 500;

/// Prefix of an AWS CLI error.
///
/// Source: botocore, `ClientError.MSG_TEMPLATE`.
pub(super) const AWS_ERROR_PREFIX: &str = "An error occurred (";

/// Logs, and the number of omitted older events.
#[derive(Debug)]
pub(super) struct RecentLogs {
    pub response: LogsResponse,
    pub left_out: usize,
}

/// Parses a file.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Reason> {
    // Windows editors and shells write a byte order mark.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    if bytes.is_empty() {
        return Err(Reason::Empty);
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && text.starts_with(AWS_ERROR_PREFIX)
    {
        let first_line = text.lines().next().unwrap_or_default();
        return Err(Reason::RefusedByAws(first_line.chars().take(AWS_ERROR_CHARS_MAX).collect()));
    }
    // Serde would accept an array of the members as the object.
    if !bytes.starts_with(b"{") {
        return Err(Reason::Malformed("a JSON object was expected".to_owned()));
    }
    serde_json::from_slice(bytes).map_err(|error| Reason::Malformed(mcp::json_problem(&error)))
}

/// The newest events, oldest first.
pub(super) fn recent_logs(
    log_group: String,
    mut saved: FilterLogEvents,
) -> Result<RecentLogs, Reason> {
    // Joined pages may be out of order.
    saved.events.sort_by_key(|event| event.timestamp);
    let left_out = saved.events.len().saturating_sub(EVENTS_MAX);
    let events = saved.events.iter().skip(left_out).map(log_event).collect::<Result<_, _>>()?;
    let error = saved.next_token.map(|_| {
        "logs:FilterLogEvents has a next page that was not read: events may be missing".to_owned()
    });
    Ok(RecentLogs { response: LogsResponse { log_group, events, error }, left_out })
}

/// The log group in a function's configuration, or Lambda's default.
pub(super) fn log_group(name: &FunctionName, saved: Option<LoggingConfiguration>) -> String {
    saved
        .and_then(|configuration| configuration.logging_config)
        .and_then(|logging| logging.log_group)
        .unwrap_or_else(|| format!("/aws/lambda/{name}"))
}

pub(super) fn iam_state(
    role: GetRole,
    names: &RolePolicies,
    policies: Vec<RolePolicy>,
    attached: AttachedRolePolicies,
) -> IamStateResponse {
    let unfinished: Vec<&str> = [
        (names.is_truncated, "iam:ListRolePolicies"),
        (attached.is_truncated, "iam:ListAttachedRolePolicies"),
    ]
    .into_iter()
    .filter_map(|(is_truncated, call)| is_truncated.then_some(call))
    .collect();
    let error = (!unfinished.is_empty()).then(|| {
        format!(
            "only the first page of {} was saved: policies may be missing",
            unfinished.join(" and ")
        )
    });
    IamStateResponse {
        role_name: role.role.role_name,
        inline_policies: policies
            .into_iter()
            .map(|policy| (policy.policy_name, policy.policy_document))
            .collect::<BTreeMap<_, _>>(),
        attached_policies: attached
            .attached_policies
            .into_iter()
            .map(|policy| policy.policy_arn)
            .collect(),
        error,
    }
}

/// The file must be about the requested function: people copy and rename folders by hand.
pub(super) fn lambda_config(
    name: &FunctionName,
    configuration: FunctionConfiguration,
    concurrency: &FunctionConcurrency,
) -> Result<LambdaConfigResponse, Reason> {
    belongs(&configuration.function_name, name.as_str())?;
    Ok(LambdaConfigResponse {
        function_name: configuration.function_name,
        runtime: configuration.runtime,
        handler: configuration.handler,
        role: configuration.role,
        memory_size: configuration.memory_size,
        timeout: configuration.timeout,
        state: configuration.state,
        reserved_concurrent_executions: concurrency.reserved_concurrent_executions,
        vpc_config: configuration.vpc_config,
    })
}

/// Refuses a response about something else.
pub(super) fn belongs(found: &str, asked: &str) -> Result<(), Reason> {
    if found == asked {
        Ok(())
    } else {
        Err(Reason::Malformed(format!("it is about {found:?}, not {asked:?}")))
    }
}

fn log_event(event: &FilteredLogEvent) -> Result<LogEvent, Reason> {
    let at = DateTime::from_timestamp_millis(event.timestamp).ok_or_else(|| {
        Reason::Malformed(format!("timestamp {} is not a time in milliseconds", event.timestamp))
    })?;
    Ok(LogEvent {
        timestamp: at.to_rfc3339_opts(SecondsFormat::Millis, true),
        message: cut(&event.message),
    })
}

/// A message without its line end, cut at [`MESSAGE_CHARS_MAX`].
fn cut(message: &str) -> String {
    let message = message.trim_end();
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        None => message.to_owned(),
        Some((end, _)) => {
            let left_out = message[end..].chars().count();
            format!("{} [{left_out} more characters]", &message[..end])
        }
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(cut(&exact), exact);
        assert_eq!(cut(&format!("{exact}éé")), format!("{exact} [2 more characters]"));
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
            @r#"
    the file is empty
    the file is empty
    not the output of this call: EOF while parsing an object at line 1 column 1
    not the output of this call: a JSON object was expected
    not the output of this call: missing field `events` at line 1 column 2
    not the output of this call: expected a sequence at line 1 column 11
    not the output of this call: expected i64 at line 1 column 31
    not the output of this call: timestamp 9223372036854775807 is not a time in milliseconds
    not the output of this call: missing field `message` at line 1 column 28
    An error occurred (AccessDeniedException) when calling the FilterLogEvents operation: no
    "#
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
        let state = iam_state(
            parse(br#"{"Role": {"RoleName": "r"}}"#).unwrap(),
            &parse(br#"{"PolicyNames": [], "IsTruncated": true}"#).unwrap(),
            vec![],
            parse(br#"{"AttachedPolicies": [], "IsTruncated": true}"#).unwrap(),
        );
        insta::assert_snapshot!(state.error.unwrap(), @"only the first page of iam:ListRolePolicies and iam:ListAttachedRolePolicies was saved: policies may be missing");
    }
}
