//! Derives the faults and their evidence from the tool results.
//!
//! Only a tool result proves a fault. The report only says where to look.

use serde_json::Value;

use super::changes::{self, Suspicion};
use super::diagnosis::{EvidencePointer, FaultType, Severity};
use super::egress;
use super::field_path::FieldPath;
use super::log_lines::{self, Level, Line, LogLines};
use super::message::Incident;
use super::remediation::{self, Step};
use super::signals;
use super::tool::{LambdaConfigResponse, LogsResponse, Observations, Tool};

/// Most peers that a sentence names.
const PEERS_NAMED_MAX: usize = 3;

/// One fault, or the lack of an explanation.
#[derive(Debug)]
pub(super) struct Finding {
    pub fault: FaultType,
    /// A sentence without its full stop.
    pub sentence: String,
    pub severity: Severity,
    pub resources: Vec<String>,
    pub evidence: Vec<EvidencePointer>,
    /// Their basis counts from this finding's first pointer.
    pub steps: Vec<Step>,
    /// What a change must be to have caused it.
    pub suspicion: Suspicion,
}

pub(super) fn pointer(
    tool: Tool,
    field: &FieldPath,
    value: impl Into<String>,
    interpretation: impl Into<String>,
) -> EvidencePointer {
    EvidencePointer {
        tool: tool.name().to_owned(),
        field: field.to_string(),
        value: value.into(),
        interpretation: interpretation.into(),
    }
}

/// A pointer at a part of a log line.
pub(super) fn log_pointer(
    line: &Line<'_>,
    quote: &str,
    interpretation: impl Into<String>,
) -> EvidencePointer {
    let field = FieldPath::key("events").at(line.index).then("message");
    pointer(Tool::RecentLogs, &field, quote, interpretation)
}

/// A pointer at the time of the newest log event.
pub(super) fn newest_event(
    logs: &LogsResponse,
    interpretation: impl Into<String>,
) -> Option<EvidencePointer> {
    let (index, event) = logs.events.iter().enumerate().next_back()?;
    let field = FieldPath::key("events").at(index).then("timestamp");
    Some(pointer(Tool::RecentLogs, &field, event.timestamp.as_str(), interpretation))
}

/// A value as evidence quotes it: a string as it is, others as compact JSON.
pub(super) fn as_quoted(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// Reserved concurrency of 0 or 1.
///
/// A concurrency of 1 can be intended. So it is not claimed when the logs show another cause.
pub(super) fn throttling(
    incident: &Incident,
    seen: &Observations,
    is_reported: bool,
) -> Option<Finding> {
    let config = seen.config()?;
    let reserved = config.reserved_concurrent_executions.filter(|reserved| *reserved <= 1)?;
    let logs = seen.logs();
    let is_elsewhere = || logs.as_ref().is_some_and(has_application_error);
    if reserved == 1 && !is_reported && is_elsewhere() {
        return None;
    }
    let name = &incident.lambda_name;
    let (effect, severity) = if reserved == 0 {
        ("Lambda rejects every invocation", Severity::Critical)
    } else {
        ("Lambda rejects every invocation that arrives while another one runs", Severity::High)
    };
    let field = FieldPath::key("ReservedConcurrentExecutions");
    let mut evidence = vec![pointer(
        Tool::LambdaConfig,
        &field,
        reserved.to_string(),
        format!("with a reserved concurrency of {reserved}, {effect}"),
    )];
    if reserved == 0 {
        let meaning = "nothing was logged after this: rejected invocations log nothing";
        evidence.extend(logs.as_ref().and_then(|logs| newest_event(logs, meaning)));
    }
    Some(Finding {
        fault: FaultType::Throttling,
        sentence: format!("Reserved concurrency of {name} is {reserved}, so {effect}"),
        severity,
        resources: vec![name.clone()],
        steps: vec![remediation::restore_concurrency(name, reserved)],
        evidence,
        suspicion: Suspicion {
            calls: changes::CONCURRENCY,
            limit: Some(("reservedConcurrentExecutions", reserved)),
            ..Suspicion::default()
        },
    })
}

/// Throttling by a reservation that somebody has set, of more than 1.
///
/// The report alone does not prove it, and neither does the change.
pub(super) fn lowered_concurrency(incident: &Incident, seen: &Observations) -> Option<Finding> {
    let reserved =
        seen.config()?.reserved_concurrent_executions.filter(|reserved| *reserved > 1)?;
    let has_failed = seen.logs().is_some_and(|logs| LogLines::of(&logs).errors().next().is_some());
    let suspicion = Suspicion {
        calls: changes::CONCURRENCY,
        limit: Some(("reservedConcurrentExecutions", reserved)),
        ..Suspicion::default()
    };
    if has_failed || !changes::is_found(seen, &suspicion) {
        return None;
    }
    let name = &incident.lambda_name;
    let field = FieldPath::key("ReservedConcurrentExecutions");
    Some(Finding {
        fault: FaultType::Throttling,
        sentence: format!(
            "Invocations of {name} are throttled, and its reserved concurrency is {reserved}: Lambda \
             rejects every invocation that arrives while {reserved} others run"
        ),
        severity: Severity::High,
        resources: vec![name.clone()],
        evidence: vec![pointer(
            Tool::LambdaConfig,
            &field,
            reserved.to_string(),
            format!("at most {reserved} invocations run at a time"),
        )],
        steps: vec![remediation::restore_concurrency(name, reserved)],
        suspicion,
    })
}

/// Whether an invocation failed with an error that is not a denial, a connection or a timeout.
fn has_application_error(logs: &LogsResponse) -> bool {
    let read = LogLines::of(logs);
    read.errors().any(|line| is_application_error(line))
}

fn is_application_error(line: &Line<'_>) -> bool {
    signals::denial(line.message).is_none()
        && signals::unreachable(line.message).is_none()
        && !log_lines::is_task_timeout(line.message)
}

/// Connections from a VPC time out, and none has succeeded since.
pub(super) fn network(incident: &Incident, seen: &Observations) -> Option<Finding> {
    let (logs, config) = (seen.logs()?, seen.config()?);
    let vpc = config.vpc_config.as_ref().filter(|vpc| !vpc.subnet_ids.is_empty())?;
    let read = LogLines::of(&logs);
    let stuck = failed_connections(&read);
    let first = stuck.first()?;
    // A later connection succeeded, so the network is open and the peer is slow.
    if read.is_clean_after(&first.line) || stuck.iter().any(|s| connects_later(&read, &s.line)) {
        return None;
    }
    let shown = one_per_peer(&stuck);
    let peers: Vec<&str> = shown.iter().filter_map(|stuck| stuck.peer).collect();
    let cite = |stuck: &&FailedConnection<'_>| {
        let meaning = match stuck.peer {
            Some(peer) => format!("connections to {peer} time out"),
            None => {
                "the invocation waited for an outbound call until Lambda timed it out".to_owned()
            }
        };
        log_pointer(&stuck.line, stuck.quote, meaning)
    };
    let mut evidence: Vec<EvidencePointer> = shown.iter().map(cite).collect();
    let proofs = evidence.len();
    evidence.extend(vpc_pointers(&config));
    let calls: Vec<_> = shown.iter().map(|stuck| (stuck.line.message, stuck.peer)).collect();
    let egress = egress::of(seen, &calls);
    let fits = match &egress {
        Some(egress) => {
            evidence.extend(egress.evidence.iter().cloned());
            egress.fits.clone()
        }
        None if seen.security_groups().is_some() => {
            "which fits rules of its security groups that do not let this out, removed routes of its \
             subnets, or a peer that does not answer"
                .to_owned()
        }
        None => format!(
            "which fits removed outbound rules of its security groups ({}) or removed routes of its subnets",
            vpc.security_group_ids.join(", ")
        ),
    };
    let targets = if peers.is_empty() { "what it calls".to_owned() } else { listed(&peers) };
    let name = &incident.lambda_name;
    let groups = vpc.security_group_ids.join(", ");
    let vpc_id = vpc.vpc_id.clone().unwrap_or_else(|| "its VPC".to_owned());
    Some(Finding {
        fault: FaultType::NetworkBlock,
        sentence: format!(
            "{name} cannot connect to {targets} from {vpc_id}: connections time out and no \
             invocation has connected since, {fits}"
        ),
        severity: Severity::High,
        resources: [name.clone()]
            .into_iter()
            .chain(vpc.vpc_id.clone())
            .chain(vpc.security_group_ids.iter().cloned())
            .collect(),
        steps: remediation::restore_egress(&groups, (0..evidence.len()).collect(), proofs),
        evidence,
        suspicion: Suspicion {
            calls: changes::NETWORK,
            since: Some(first.line.timestamp.to_owned()),
            ..Suspicion::default()
        },
    })
}

fn vpc_pointers(config: &LambdaConfigResponse) -> Vec<EvidencePointer> {
    let Some(vpc) = &config.vpc_config else { return vec![] };
    let field = FieldPath::key("VpcConfig");
    let texts = |texts: &[String]| Value::from(texts.to_vec()).to_string();
    let subnets = pointer(
        Tool::LambdaConfig,
        &field.then("SubnetIds"),
        texts(&vpc.subnet_ids),
        "the function runs in these subnets, so all that it sends takes their routes",
    );
    let groups = pointer(
        Tool::LambdaConfig,
        &field.then("SecurityGroupIds"),
        texts(&vpc.security_group_ids),
        "what these security groups do not let out is dropped, which shows as a timeout",
    );
    if vpc.security_group_ids.is_empty() { vec![subnets] } else { vec![groups, subnets] }
}

/// A failed connection that made its invocation fail.
struct FailedConnection<'a> {
    line: Line<'a>,
    quote: &'a str,
    peer: Option<&'a str>,
}

/// The newest failure of each peer and the newest without a peer, oldest first.
fn one_per_peer<'s, 'a>(stuck: &'s [FailedConnection<'a>]) -> Vec<&'s FailedConnection<'a>> {
    let mut shown: Vec<&FailedConnection<'_>> = Vec::new();
    for stuck in stuck.iter().rev() {
        let is_known = shown.iter().any(|other| other.peer == stuck.peer);
        if !is_known && shown.len() <= PEERS_NAMED_MAX {
            shown.push(stuck);
        }
    }
    shown.sort_by_key(|stuck| stuck.line.index);
    shown
}

fn failed_connections<'a>(read: &LogLines<'a>) -> Vec<FailedConnection<'a>> {
    let mut stuck = Vec::new();
    for line in &read.lines {
        if let Some(unreachable) = signals::unreachable(line.message) {
            if has_failed_invocation(read, line) {
                let (quote, peer) = (unreachable.quote, unreachable.peer);
                stuck.push(FailedConnection { line: *line, quote, peer });
            }
        } else if let Some(at) = log_lines::task_timeout(line.message)
            && waited_for_a_call(read, line)
        {
            let quote = log_lines::quote(line.message, at);
            stuck.push(FailedConnection { line: *line, quote, peer: None });
        }
    }
    stuck
}

/// Whether the invocation failed. A warning needs a later timeout or failed connection.
fn has_failed_invocation(read: &LogLines<'_>, line: &Line<'_>) -> bool {
    match line.level {
        Level::Error | Level::Plain => true,
        Level::Platform | Level::Info => false,
        Level::Warn => read.invocation(line).is_some_and(|of| {
            of.is_timed_out
                || read.failure(of).is_some_and(|f| signals::unreachable(f.message).is_some())
        }),
    }
}

/// Whether the last line before a timeout announces an outbound call, and none tells of a connection: a
/// slow answer is no blocked network.
fn waited_for_a_call(read: &LogLines<'_>, timeout: &Line<'_>) -> bool {
    const CALLS_OUT: [&str; 9] = [
        "://",
        "onnecting",
        "alling",
        "equesting",
        "etching",
        "ownloading",
        "ploading",
        "ending to",
        "uerying",
    ];
    let previous = read.lines.iter().rfind(|line| {
        line.invocation == timeout.invocation
            && line.index < timeout.index
            && line.level != Level::Platform
    });
    let has_connected = || {
        read.lines.iter().any(|line| {
            line.invocation == timeout.invocation
                && line.level == Level::Info
                && ["connected", "Connected"]
                    .iter()
                    .any(|word| log_lines::find(line.message, word).is_some())
        })
    };
    timeout.invocation.is_some()
        && !has_connected()
        && previous.is_some_and(|line| CALLS_OUT.iter().any(|word| line.message.contains(word)))
}

/// Whether the same invocation connected successfully.
fn connects_later(read: &LogLines<'_>, stuck: &Line<'_>) -> bool {
    const DONE: [&str; 8] =
        ["status=2", "HTTP 200", "ploaded", "etched", "tored", "ownloaded", "ushed", "esponse 200"];
    stuck.invocation.is_some()
        && read.lines.iter().any(|line| {
            line.invocation == stuck.invocation
                && line.level == Level::Info
                && line.message.contains("://")
                && DONE.iter().any(|word| line.message.contains(word))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::log_lines::tests::logs;
    use super::super::tool::Observation;
    use super::*;

    const FAILS: [&str; 4] = [
        "START RequestId: aaaa Version: $LATEST",
        "[WARNING]\tt\taaaa\tconnect ETIMEDOUT 10.0.0.1:5432",
        "t aaaa Task timed out after 3.00 seconds",
        "REPORT RequestId: aaaa\tStatus: timeout",
    ];
    const WORKS: [&str; 2] =
        ["START RequestId: bbbb Version: $LATEST", "REPORT RequestId: bbbb\tDuration: 1 ms"];

    fn seen(messages: &[&str], config: Value) -> Observations {
        let events: Vec<Value> = logs(messages)
            .events
            .iter()
            .map(|event| json!({"timestamp": event.timestamp, "message": event.message}))
            .collect();
        let mut seen = Observations::default();
        let logs = json!({"log_group": "/aws/lambda/f", "events": events});
        seen.push(Observation::of_result(Tool::RecentLogs, &logs, false));
        let mut all = json!({"FunctionName": "f"});
        for (name, value) in config.as_object().unwrap() {
            all[name] = value.clone();
        }
        seen.push(Observation::of_result(Tool::LambdaConfig, &all, false));
        seen
    }

    fn incident() -> Incident {
        Incident::parse(&json!({"lambda_name": "f"})).unwrap()
    }

    fn vpc() -> Value {
        json!({"VpcConfig": {"SubnetIds": ["s"], "SecurityGroupIds": ["sg"], "VpcId": "vpc"}})
    }

    fn is_blocked(messages: &[&str], config: Value) -> bool {
        network(&incident(), &seen(messages, config)).is_some()
    }

    #[test]
    fn timeouts_out_of_a_vpc_are_a_network_block() {
        assert!(is_blocked(&FAILS, vpc()));
        assert!(is_blocked(&[&WORKS[..], &FAILS].concat(), vpc()));
        let waits = [FAILS[0], "[INFO]\tt\taaaa\tUploading s3://b/k", FAILS[2], FAILS[3]];
        assert!(is_blocked(&waits, vpc()));
    }

    #[test]
    fn timeouts_with_open_egress_are_not_a_network_block() {
        assert!(!is_blocked(&FAILS, json!({})));
        assert!(!is_blocked(&FAILS, json!({"VpcConfig": {"SubnetIds": [], "VpcId": ""}})));
        assert!(!is_blocked(&[&FAILS[..], &WORKS].concat(), vpc()));
        assert!(!is_blocked(&[FAILS[0], FAILS[1], WORKS[1], "REPORT RequestId: aaaa\t"], vpc()));
        let got_out = [FAILS[0], "[INFO]\tt\taaaa\tfetched https://x.example/", FAILS[1], FAILS[2]];
        assert!(!is_blocked(&got_out, vpc()));
        let computes = [FAILS[0], "[INFO]\tt\taaaa\tSorting 9e9 rows", FAILS[2], FAILS[3]];
        assert!(!is_blocked(&computes, vpc()));
        let fails_otherwise =
            [FAILS[0], FAILS[1], "[ERROR] KeyError: 'x'", "REPORT RequestId: aaaa"];
        assert!(!is_blocked(&fails_otherwise, vpc()));
    }

    #[test]
    fn little_concurrency_is_throttling() {
        let severity = |reserved: u64, messages: &[&str], is_reported: bool| {
            let seen = seen(messages, json!({ "ReservedConcurrentExecutions": reserved }));
            throttling(&incident(), &seen, is_reported).map(|finding| finding.severity)
        };
        let crash = &["[ERROR] KeyError: 'x'"][..];
        assert_eq!(severity(0, crash, false), Some(Severity::Critical));
        assert_eq!(severity(1, &WORKS, false), Some(Severity::High));
        assert_eq!(severity(1, crash, true), Some(Severity::High));
        assert_eq!(severity(1, crash, false), None);
        assert_eq!(severity(2, &WORKS, true), None);
    }
}
