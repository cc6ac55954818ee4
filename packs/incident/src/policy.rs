//! The rules that diagnose without a model.
//!
//! The kind of error selects the first tool, the results select the next. When no other tool is
//! useful, the results become a diagnosis. The same rules diagnose when a model reaches a limit.

use super::changes::{self, Suspicion};
use super::diagnosis::{Diagnosis, EvidencePointer, FaultType, RemediationStep, Severity};
use super::error_text;
use super::failures::{self, Explained};
use super::field_path::FieldPath;
use super::findings::{self, Finding, log_pointer, newest_event, pointer};
use super::log_lines::{self, Level, LogLines};
use super::logging;
use super::message::Incident;
use super::permissions;
use super::remediation;
use super::reported;
use super::signals;
use super::times::minutes;
use super::tool::{LogsResponse, Observations, Tool};

/// Most kinds of errors that an unexplained failure quotes.
const ERRORS_QUOTED_MAX: usize = 3;

/// How much older than the report the newest log event may be without mention, in minutes.
const LOG_AGE_MIN: i64 = 60;

/// The kind of the reported error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    Access,
    Throttling,
    Other,
}

/// Classifies an incident by its error's type, else by the error's text.
pub fn classify(incident: &Incident) -> ErrorClass {
    let texts = [&incident.error_type, &incident.error_message];
    let classes = texts.into_iter().flatten().map(|text| classify_text(text));
    classes.into_iter().find(|class| *class != ErrorClass::Other).unwrap_or(ErrorClass::Other)
}

fn classify_text(text: &str) -> ErrorClass {
    const THROTTLING: [&str; 8] = [
        "Throttling",
        "Throttles",
        "Throttled",
        "ThrottlingException",
        "TooManyRequestsException",
        "TooManyRequests",
        "Rate Exceeded",
        "ReservedFunctionConcurrentInvocationLimitExceeded",
    ];
    const ACCESS: [&str; 6] = [
        "Forbidden",
        "NotAuthorized",
        "UnauthorizedException",
        "AccessDeniedError",
        "PermissionError",
        "permission denied",
    ];
    let has = |words: &[&str]| words.iter().any(|word| log_lines::find(text, word).is_some());
    if signals::denial(text).is_some() || has(&ACCESS) {
        ErrorClass::Access
    } else if has(&THROTTLING) {
        ErrorClass::Throttling
    } else {
        ErrorClass::Other
    }
}

/// The tool to call next and why, or `None` when no other is useful. `offered`: the server's tools.
pub fn next_tool(
    incident: &Incident,
    seen: &Observations,
    offered: &[Tool],
) -> Option<(Tool, &'static str)> {
    let is_open = |tool: Tool| offered.contains(&tool) && !seen.has(tool);
    let wanted = |tool: Tool, why: &'static str| is_open(tool).then_some((tool, why));
    let class = classify(incident);
    let first = match class {
        ErrorClass::Access => {
            wanted(Tool::IamState, "A call was denied: what may the function's role do?")
        }
        ErrorClass::Throttling => {
            wanted(Tool::LambdaConfig, "Invocations were throttled: what concurrency is reserved?")
        }
        ErrorClass::Other => None,
    };
    let logs = seen.logs();
    let denied = || logs.as_ref().is_some_and(has_denial);
    let silent = || logs.as_ref().is_none_or(|logs| logs.events.is_empty());
    let explained =
        || logs.as_ref().is_some_and(has_error) || !diagnose(incident, seen).is_unknown();
    first
        .or_else(|| wanted(Tool::RecentLogs, "What do the logs say?"))
        .or_else(|| {
            let why = "The logs show a denied call: does the role allow it?";
            denied().then(|| wanted(Tool::IamState, why)).flatten()
        })
        .or_else(|| {
            let why = "There are no logs: may the role write them?";
            silent().then(|| wanted(Tool::IamState, why)).flatten()
        })
        // Throttled invocations log nothing, so the logs cannot rule throttling out; and a timeout
        // has another meaning in a VPC.
        .or_else(|| wanted(Tool::LambdaConfig, "Is it throttled, and is it in a VPC?"))
        .or_else(|| {
            let why = "Nothing explains the failure yet: is it the role?";
            (!explained()).then(|| wanted(Tool::IamState, why)).flatten()
        })
        .or_else(|| {
            let why = "Connections time out: do the security groups let them out?";
            let is_blocked = || findings::network(incident, seen).is_some();
            let tool = wanted(Tool::SecurityGroupRules, why)?;
            is_blocked().then_some(tool)
        })
        .or_else(|| {
            let tool = wanted(Tool::RecentChanges, "What is wrong is known: who changed it?")?;
            (!diagnose(incident, seen).is_unknown()).then_some(tool)
        })
        .or_else(|| {
            let why = "The logs show no failure: was what invokes it stopped or limited?";
            let is_quiet = logs.as_ref().is_some_and(|logs| !has_error(logs));
            is_quiet.then(|| wanted(Tool::RecentChanges, why)).flatten()
        })
}

fn has_denial(logs: &LogsResponse) -> bool {
    let read = LogLines::of(logs);
    read.lines.iter().any(|line| {
        matches!(line.level, Level::Warn | Level::Error | Level::Plain)
            && signals::denial(line.message).is_some()
    })
}

fn has_error(logs: &LogsResponse) -> bool {
    LogLines::of(logs).errors().next().is_some()
}

impl Diagnosis {
    fn is_unknown(&self) -> bool {
        self.fault_types == [FaultType::Unknown]
    }
}

/// Diagnoses from the tool results. Passes the evidence check if any tool was called.
pub fn diagnose(incident: &Incident, seen: &Observations) -> Diagnosis {
    let class = classify(incident);
    let mut findings = permissions::denied_calls(incident, seen, class == ErrorClass::Access);
    let denials = !findings.is_empty();
    findings.extend(logging::revoked(incident, seen));
    let is_throttled = class == ErrorClass::Throttling;
    let throttling = findings::throttling(incident, seen, is_throttled)
        .or_else(|| is_throttled.then(|| findings::lowered_concurrency(incident, seen)).flatten());
    // What was lowered after the failures is no cause of them, so it follows them.
    let (cause, reaction) = if changes::is_concurrency_a_reaction(seen) {
        (None, throttling)
    } else {
        (throttling, None)
    };
    findings.extend(cause);
    let network = findings::network(incident, seen);
    let explained = Explained { denials, network: network.is_some() };
    findings.extend(network);
    findings.extend(failures::known(incident, seen, explained));
    findings.extend(reaction);
    findings.extend(before_the_code(incident, seen, &findings));
    if findings.is_empty() {
        findings.push(unexplained(incident, seen));
    }
    compose(incident, seen, findings)
}

/// The failures that keep Lambda from running the code.
fn before_the_code(
    incident: &Incident,
    seen: &Observations,
    others: &[Finding],
) -> Option<Finding> {
    let environment = || reported::environment(incident, seen);
    let state = reported::state(incident, seen).or_else(environment);
    state.or_else(|| {
        others
            .is_empty()
            .then(|| reported::refused(incident, seen))
            .flatten()
            .or_else(|| others.is_empty().then(|| reported::stopped(incident, seen)).flatten())
    })
}

/// Merges findings: their pointers in order, each fault type once.
fn compose(incident: &Incident, seen: &Observations, findings: Vec<Finding>) -> Diagnosis {
    let mut diagnosis = Diagnosis {
        root_cause: String::new(),
        fault_types: vec![],
        affected_resources: vec![],
        severity: Severity::Low,
        evidence: vec![],
        remediation_plan: vec![],
    };
    let (mut sentences, mut suspicions) = (Vec::new(), Vec::new());
    for finding in findings {
        let places: Vec<usize> =
            finding.evidence.into_iter().map(|pointer| diagnosis.cite(pointer)).collect();
        for step in finding.steps {
            diagnosis.plan(step, |local| places[local]);
        }
        for resource in finding.resources {
            if !diagnosis.affected_resources.contains(&resource) {
                diagnosis.affected_resources.push(resource);
            }
        }
        if !diagnosis.fault_types.contains(&finding.fault) {
            diagnosis.fault_types.push(finding.fault);
        }
        diagnosis.severity = diagnosis.severity.max(finding.severity);
        sentences.push(finding.sentence);
        suspicions.push((finding.fault, finding.suspicion));
    }
    if diagnosis.fault_types.len() > 1 {
        diagnosis.severity = Severity::Critical;
    }
    for (fault, suspicion) in suspicions {
        let Some(change) = changes::that_fits(seen, fault, &suspicion) else { continue };
        diagnosis.cite(change.evidence);
        if !sentences.contains(&change.sentence) {
            sentences.push(change.sentence);
        }
    }
    diagnosis.cite_errors(incident, seen, &mut sentences);
    diagnosis.root_cause = sentences.iter().map(|s| format!("{s}.")).collect::<Vec<_>>().join(" ");
    diagnosis
}

impl Diagnosis {
    /// Adds a pointer unless an equal one exists, and returns its index.
    fn cite(&mut self, pointer: EvidencePointer) -> usize {
        let is_same = |other: &EvidencePointer| {
            (&other.tool, &other.field, &other.value, &other.interpretation)
                == (&pointer.tool, &pointer.field, &pointer.value, &pointer.interpretation)
        };
        self.evidence.iter().position(is_same).unwrap_or_else(|| {
            self.evidence.push(pointer);
            self.evidence.len() - 1
        })
    }

    /// Adds a step if evidence justifies it.
    fn plan(&mut self, step: remediation::Step, place: impl Fn(usize) -> usize) {
        let evidence_basis: Vec<usize> = step.basis.into_iter().map(place).collect();
        if evidence_basis.iter().any(|index| !self.evidence[*index].is_gap()) {
            self.remediation_plan.push(RemediationStep {
                action: step.action,
                details: step.details,
                evidence_basis,
                risk_level: step.risk_level,
                requires_approval: step.requires_approval,
            });
        }
    }

    /// Cites the tools that returned no data: their faults cannot be ruled out.
    fn cite_errors(
        &mut self,
        incident: &Incident,
        seen: &Observations,
        sentences: &mut Vec<String>,
    ) {
        let mut silent = Vec::new();
        let mut partial = Vec::new();
        for tool in Tool::ALL {
            let (problem, meaning) = match (seen.error(tool), seen.gap(tool)) {
                (Some(error), _) => {
                    (error, "the tool returned no data, so what it would show is unknown")
                }
                (None, Some(gap)) => {
                    (gap, "a part of the answer is missing, so what it would show is unknown")
                }
                (None, None) => continue,
            };
            let quote = log_lines::first_words(problem);
            let at = self.cite(pointer(tool, &FieldPath::key("error"), quote, meaning));
            self.plan(remediation::repair_access(tool.name(), vec![at]), |at| at);
            let list = if seen.error(tool).is_some() { &mut silent } else { &mut partial };
            list.push(tool.name());
        }
        let name = &incident.lambda_name;
        for (tools, what) in [(silent, "returned no data"), (partial, "returned only a part")] {
            if !tools.is_empty() {
                sentences.push(format!("For {name}, {} {what}", findings::listed(&tools)));
            }
        }
    }
}

/// The finding when no known fault explains the failure.
fn unexplained(incident: &Incident, seen: &Observations) -> Finding {
    let name = incident.lambda_name.clone();
    let logs = seen.logs().unwrap_or_default();
    let read = LogLines::of(&logs);
    let mut evidence = Vec::new();
    let mut kinds: Vec<&str> = Vec::new();
    for line in read.errors().rev() {
        let said = error_text::said(line.message, None);
        let error = said.text;
        let of_text = error.split([':', '\'', '"', '(']).next().unwrap_or_default();
        let kind = said.kind.unwrap_or(of_text);
        let is_known = error.is_empty() || kinds.contains(&kind);
        if !is_known && evidence.len() < ERRORS_QUOTED_MAX {
            kinds.push(kind);
            evidence.push(log_pointer(line, error, "a failure that no known fault explains"));
        }
    }
    let place = common_place(&read);
    let uncertainty = logging::uncertainty(incident, seen);
    let failures = evidence.len();
    let known = common_meaning(&read);
    let sentence = match (kinds.is_empty(), seen.has(Tool::RecentLogs)) {
        (false, _) => {
            let at = place.map_or_else(String::new, |place| format!(", raised at {place}"));
            let is_passing = read.errors().next().is_some_and(|line| read.is_clean_after(line));
            let how = if is_passing { "fails at times with" } else { "fails with" };
            let why = known.map_or_else(String::new, |kind| format!("; {kind}"));
            format!(
                "{name} {how} {}{at}: an error in its own code or in a service it calls, which \
                 its {} do not explain{why}",
                findings::listed(&kinds),
                answered_tools(seen)
            )
        }
        (true, true) if !logs.events.is_empty() => {
            let end = old_end(incident, &logs);
            format!("The cause is unknown: the recent logs of {name} show no failure{end}")
        }
        (true, true) if seen.logs().is_some() => {
            let reason = if uncertainty.is_some() {
                ", and whether its role may write them is unknown"
            } else {
                ", and nothing else explains why; whether something still invokes it (a rule, a \
                 schedule, an event source mapping) is not among what the tools read"
            };
            format!("The cause is unknown: there are no logs of {name}{reason}")
        }
        (true, _) => format!("The cause is unknown: no tool returned data about {name}"),
    };
    if failures == 0 {
        evidence.extend(uncertainty);
    }
    evidence.extend(counter_evidence(seen, &logs, failures == 0));
    let steps = if failures == 0 {
        vec![]
    } else {
        vec![remediation::follow_up(place, (0..failures).collect())]
    };
    Finding {
        fault: FaultType::Unknown,
        sentence,
        severity: if failures == 0 { Severity::Low } else { Severity::Medium },
        resources: vec![name],
        evidence,
        steps,
        suspicion: Suspicion::default(),
    }
}

/// That the logs end long before the report, as the end of a sentence.
fn old_end(incident: &Incident, logs: &LogsResponse) -> String {
    let newest = logs.events.last().map(|event| event.timestamp.as_str());
    let reported = incident.timestamp.as_deref();
    let age = || Some(minutes(reported?)? - minutes(newest?)?);
    match (newest, reported) {
        (Some(newest), Some(reported)) if age().is_some_and(|age| age > LOG_AGE_MIN) => {
            format!("; they end at {newest}, before what was reported at {reported}")
        }
        _ => String::new(),
    }
}

/// What the tools returned, as the subject of a sentence.
fn answered_tools(seen: &Observations) -> String {
    let answered: Vec<&str> = [
        seen.logs().map(|_| "logs"),
        seen.iam().map(|_| "role"),
        seen.config().map(|_| "configuration"),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings::listed(&answered)
}

/// Evidence against the known faults.
fn counter_evidence(
    seen: &Observations,
    logs: &LogsResponse,
    is_quiet: bool,
) -> Vec<EvidencePointer> {
    let mut evidence = Vec::new();
    if is_quiet && seen.logs().is_some() {
        let none = || pointer(Tool::RecentLogs, &FieldPath::key("events"), "[]", "no log event");
        let newest = newest_event(logs, "the newest event; no earlier event is a failure");
        evidence.push(newest.unwrap_or_else(none));
    }
    if let Some(config) = seen.config() {
        let field = FieldPath::key("ReservedConcurrentExecutions");
        evidence.push(match config.reserved_concurrent_executions {
            None if config.error.is_some() => pointer(
                Tool::LambdaConfig,
                &field,
                "",
                "whether concurrency is reserved is unknown: a part of the answer is missing",
            ),
            None => pointer(Tool::LambdaConfig, &field, "", "no concurrency is reserved"),
            Some(reserved @ 0..=1) => pointer(
                Tool::LambdaConfig,
                &field,
                reserved.to_string(),
                "low concurrency, which does not explain the logged failures",
            ),
            Some(reserved) => pointer(
                Tool::LambdaConfig,
                &field,
                reserved.to_string(),
                "enough concurrency to rule out throttling",
            ),
        });
    }
    let state = seen.config().and_then(|config| config.state).filter(|state| state != "Active");
    if let Some(state) = state {
        let field = FieldPath::key("State");
        evidence.push(pointer(Tool::LambdaConfig, &field, state, "the function is not active"));
    }
    if let Some(iam) = seen.iam() {
        let field = FieldPath::key("role_name");
        let meaning = "nothing in its policies explains the failure";
        evidence.push(pointer(Tool::IamState, &field, iam.role_name, meaning));
    }
    evidence
}

/// What every error means, if it is the same.
fn common_meaning(read: &LogLines<'_>) -> Option<&'static str> {
    let mut meanings = read.errors().map(|line| failures::meaning(line.message));
    let first = meanings.next()??;
    meanings.all(|meaning| meaning == Some(first)).then_some(first)
}

/// The file of the function's own code that every stack trace ends in.
fn common_place<'a>(read: &LogLines<'a>) -> Option<&'a str> {
    let mut places = read.errors().filter_map(|line| {
        let (_, rest) = line.message.rsplit_once("/var/task/")?;
        rest.split(['"', ':', ')']).next().filter(|place| !place.is_empty())
    });
    let first = places.next()?;
    places.all(|place| place == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::evidence;
    use super::super::tool::Observation;
    use super::*;

    fn incident(error_type: &str, error_message: &str) -> Incident {
        let message =
            json!({"lambda_name": "f", "error_type": error_type, "error_message": error_message});
        Incident::parse(&message).unwrap()
    }

    fn logs(messages: &[&str]) -> Value {
        let event = |message: &&str| json!({"timestamp": "t", "message": message});
        json!({"log_group": "/aws/lambda/f", "events": messages.iter().map(event).collect::<Vec<_>>()})
    }

    const BASIC: &str = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole";

    fn iam(statements: Value, attached: &[&str]) -> Value {
        json!({"role_name": "r", "inline_policies": {"f-access": {"Statement": statements}},
               "attached_policies": attached})
    }

    fn config(reserved: Option<u64>) -> Value {
        let mut config = json!({"FunctionName": "f", "State": "Active"});
        if let Some(reserved) = reserved {
            config["ReservedConcurrentExecutions"] = reserved.into();
        }
        config
    }

    fn seen(answers: &[(Tool, Value)]) -> Observations {
        let mut seen = Observations::default();
        for (tool, answer) in answers {
            seen.push(match answer {
                Value::String(error) => Observation::of_error(*tool, error),
                answer => Observation::of_result(*tool, answer, false),
            });
        }
        seen
    }

    use Tool::{IamState as Iam, LambdaConfig as Config, RecentLogs as Logs};

    #[test]
    fn incidents_are_classified_by_their_report() {
        use ErrorClass::{Access, Other, Throttling};
        let table = [
            ("AccessDenied", "", Access),
            ("AccessDeniedException", "", Access),
            (
                "ClientError",
                "An error occurred (AccessDenied) when calling the GetObject operation",
                Access,
            ),
            ("Forbidden", "", Access),
            ("Throttling", "", Throttling),
            ("", "TooManyRequestsException: Rate Exceeded.", Throttling),
            ("AccessDenied", "Rate Exceeded", Access),
            ("KeyError", "'throttling_enabled'", Other),
            ("Error", "cannot parse reports/AccessDenied-2026.csv", Other),
            ("Sandbox.Timedout", "Task timed out after 3.00 seconds", Other),
            ("", "", Other),
        ];
        for (error_type, message, expected) in table {
            assert_eq!(
                classify(&incident(error_type, message)),
                expected,
                "{error_type} {message}"
            );
        }
    }

    #[test]
    fn the_next_tool_follows_from_error_and_findings() {
        let denied = logs(&[
            "[ERROR] ClientError: An error occurred (AccessDenied) when calling the GetObject operation: Access Denied",
        ]);
        let crash = logs(&["[ERROR] KeyError: 'x'"]);
        let healthy = logs(&["[INFO] done"]);
        let none = logs(&[]);
        let error = || json!("no such file");
        let role = || iam(json!([]), &[BASIC]);
        type Case = (&'static str, Vec<(Tool, Value)>, Option<Tool>);
        let table: Vec<Case> = vec![
            ("AccessDenied", vec![], Some(Iam)),
            ("AccessDenied", vec![(Iam, role())], Some(Logs)),
            ("AccessDenied", vec![(Iam, error())], Some(Logs)),
            ("AccessDenied", vec![(Iam, role()), (Logs, denied.clone())], Some(Config)),
            (
                "AccessDenied",
                vec![(Iam, role()), (Logs, denied.clone()), (Config, config(None))],
                None,
            ),
            ("Throttling", vec![], Some(Config)),
            ("Throttling", vec![(Config, config(Some(0)))], Some(Logs)),
            ("Throttling", vec![(Config, config(Some(0))), (Logs, healthy.clone())], None),
            ("Throttling", vec![(Config, config(Some(0))), (Logs, denied.clone())], Some(Iam)),
            ("Throttling", vec![(Config, config(None)), (Logs, healthy.clone())], Some(Iam)),
            ("KeyError", vec![], Some(Logs)),
            ("KeyError", vec![(Logs, crash.clone())], Some(Config)),
            ("KeyError", vec![(Logs, crash), (Config, config(None))], None),
            ("KeyError", vec![(Logs, denied)], Some(Iam)),
            ("KeyError", vec![(Logs, none.clone())], Some(Iam)),
            ("KeyError", vec![(Logs, none), (Iam, role())], Some(Config)),
            ("KeyError", vec![(Logs, error())], Some(Iam)),
            ("KeyError", vec![(Logs, healthy.clone())], Some(Config)),
            ("KeyError", vec![(Logs, healthy), (Config, config(None))], Some(Iam)),
        ];
        for (error_type, answers, expected) in table {
            let next = next_tool(&incident(error_type, ""), &seen(&answers), &[Iam, Logs, Config]);
            assert_eq!(next.map(|(tool, _)| tool), expected, "{error_type} {answers:?}");
        }
    }

    #[test]
    fn tools_that_the_server_lacks_are_not_called() {
        let next = next_tool(&incident("AccessDenied", ""), &seen(&[]), &[Config]);
        assert_eq!(next.map(|(tool, _)| tool), Some(Config));
        assert_eq!(next_tool(&incident("AccessDenied", ""), &seen(&[]), &[]), None);
    }

    /// Fault types and root cause, after the diagnosis passed its check.
    fn diagnosed(incident: &Incident, answers: &[(Tool, Value)]) -> String {
        let seen = seen(answers);
        let diagnosis = diagnose(incident, &seen);
        assert_eq!(evidence::check(&diagnosis, &seen), [], "{diagnosis:#?}");
        let faults: Vec<String> = diagnosis.fault_types.iter().map(ToString::to_string).collect();
        format!("[{}] {}", faults.join(", "), diagnosis.root_cause)
    }

    const DENIED: &str = "[ERROR] ClientError: An error occurred (AccessDenied) when calling the GetObject operation: User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform: s3:GetObject on resource: \"arn:aws:s3:::b/k\" because no identity-based policy allows the s3:GetObject action";

    #[test]
    fn denied_calls_are_compared_with_the_role() {
        let allow = |action: &str, resource: &str| json!([{"Effect": "Allow", "Action": action, "Resource": resource}]);
        let deny = json!([{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}, {"Effect": "Deny", "Action": ["s3:Get*"], "Resource": "*"}]);
        let condition = json!([{"Effect": "Allow", "Action": "s3:*", "Resource": "*", "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}]);
        let bare = &DENIED[..DENIED.find(": User").unwrap()];
        let own = "arn:aws:iam::1:policy/team-baseline";
        let two = [DENIED, &DENIED.replace("GetObject", "PutObject")].map(str::to_owned);
        let plain = incident("AccessDenied", "");
        let of = |line: &str, statements: Value, attached: &[&str]| {
            let role = iam(statements, attached);
            diagnosed(&plain, &[(Iam, role), (Logs, logs(&[line])), (Config, config(None))])
        };
        let diagnoses = [
            of(DENIED, json!([]), &[BASIC]),
            of(DENIED, allow("s3:PutObject", "*"), &[BASIC]),
            of(DENIED, allow("s3:GetObject", "arn:aws:s3:::other/*"), &[BASIC]),
            of(DENIED, json!([]), &[BASIC, own]),
            of(bare, json!([]), &[BASIC, own]),
            of(DENIED, deny, &[BASIC]),
            of(DENIED, condition, &[BASIC]),
            of(DENIED, allow("s3:*", "*"), &[BASIC]),
            of(bare, allow("s3:*", "*"), &[BASIC]),
            of(bare, json!([]), &[BASIC, "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"]),
            of("[ERROR] AccessDenied: Access Denied s3://b/k", json!([]), &[BASIC]),
            of("[ERROR] AccessDenied: Access Denied", json!([]), &[BASIC]),
            diagnosed(&plain, &[(Iam, json!("iam:GetRole failed")), (Logs, logs(&[DENIED]))]),
            diagnosed(
                &plain,
                &[(Iam, iam(json!([]), &[BASIC])), (Logs, logs(&[&two[0], &two[1]]))],
            ),
        ];
        insta::assert_snapshot!(diagnoses.join("\n"), @r"
        [permission_loss] The S3 permission s3:GetObject on arn:aws:s3:::b/* was revoked from inline policy f-access of role r: neither an inline nor an attached policy allows it any more.
        [permission_loss] The S3 permission s3:GetObject on arn:aws:s3:::b/* was revoked from inline policy f-access of role r: neither an inline nor an attached policy allows it any more.
        [permission_loss] S3 denies s3:GetObject on arn:aws:s3:::b/k to f: policy f-access of role r allows it on arn:aws:s3:::other/* only.
        [permission_loss] The S3 permission s3:GetObject on arn:aws:s3:::b/* was revoked from inline policy f-access of role r: neither an inline nor an attached policy allows it any more.
        [permission_loss] S3 denies s3:GetObject to f: no inline policy of role r allows it, and what its attached policies allow could not be read.
        [permission_loss] The S3 permission s3:GetObject on arn:aws:s3:::b/k was revoked: a Deny statement in inline policy f-access of role r denies it.
        [permission_loss] S3 denies s3:GetObject on arn:aws:s3:::b/k to f: inline policy f-access of role r allows it under a condition that the call does not meet.
        [permission_loss] S3 denied s3:GetObject on arn:aws:s3:::b/k to f because no policy of role r allowed it; one does now, but no invocation has succeeded since.
        [permission_loss] S3 denied s3:GetObject to f although the policies of role r allow it, so another policy denies the call: a resource policy, a VPC endpoint's policy, an organisation policy or a permissions boundary.
        [permission_loss] S3 denied s3:GetObject to f although the policies of role r allow it, so another policy denies the call: a resource policy, a VPC endpoint's policy, an organisation policy or a permissions boundary.
        [permission_loss] The S3 permission s3:* on arn:aws:s3:::b/* was revoked from inline policy f-access of role r: neither an inline nor an attached policy allows it any more.
        [permission_loss] AWS access of f was lost: role r is denied a call that the error does not name; the reason is unknown: its policies could not be compared with the call.
        [permission_loss] S3 access of f was lost: role r is denied s3:GetObject on arn:aws:s3:::b/*; none of its policies allows it. For f, get_iam_state returned no data.
        [permission_loss] The S3 permission s3:PutObject, s3:GetObject on arn:aws:s3:::b/* was revoked from inline policy f-access of role r: neither an inline nor an attached policy allows it any more.
        ");
    }

    #[test]
    fn only_faults_are_claimed() {
        let s3 = json!([{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]);
        let ok = || iam(s3.clone(), &[BASIC]);
        let start = "START RequestId: aaaa Version: $LATEST";
        let report = "REPORT RequestId: aaaa\tDuration: 1 ms";
        let fine = [start, "[INFO]\tt\taaaa\tdone", report];
        let of = |messages: &[&str], reserved| {
            let answers = [(Logs, logs(messages)), (Iam, ok()), (Config, config(reserved))];
            diagnosed(&incident("", ""), &answers)
        };
        let warned = DENIED.replace("[ERROR]", "[WARNING]");
        let elsewhere = DENIED.replace("assumed-role/r/", "assumed-role/partner/");
        let diagnoses = [
            of(&fine, None),
            of(&fine, Some(100)),
            of(&[start, &warned, "[ERROR] KeyError: 'x'", report], None),
            of(&[&[DENIED][..], &fine].concat(), None),
            of(&[&elsewhere], None),
            of(&["[ERROR] ValueError: cannot parse reports/AccessDenied-ETIMEDOUT-1.csv"], None),
            of(&["[WARNING]\tt\ti\tDynamoDB: ThrottlingException, retry 1 of 5"], Some(50)),
            of(&["[ERROR] KeyError: 'x'"], Some(1)),
            of(&["t aaaa Task timed out after 3.00 seconds"], None),
            diagnosed(
                &incident("AccessDenied", "s3:GetObject was denied"),
                &[(Iam, ok()), (Logs, logs(&fine)), (Config, config(None))],
            ),
        ];
        insta::assert_snapshot!(diagnoses.join("\n"), @r"
        [unknown] The cause is unknown: the recent logs of f show no failure.
        [unknown] The cause is unknown: the recent logs of f show no failure.
        [unknown] f fails with KeyError: an error in its own code or in a service it calls, which its logs, role and configuration do not explain.
        [unknown] f fails at times with ClientError: an error in its own code or in a service it calls, which its logs, role and configuration do not explain.
        [unknown] f fails with ClientError: an error in its own code or in a service it calls, which its logs, role and configuration do not explain.
        [unknown] f fails with ValueError: an error in its own code or in a service it calls, which its logs, role and configuration do not explain.
        [unknown] The cause is unknown: the recent logs of f show no failure.
        [unknown] f fails with KeyError: an error in its own code or in a service it calls, which its logs, role and configuration do not explain.
        [timeout] f fails with Task timed out after 3.00 seconds: the invocation took longer than the configured timeout.
        [unknown] The cause is unknown: the recent logs of f show no failure.
        ");
    }

    #[test]
    fn a_role_that_cannot_write_logs_is_a_fault() {
        let s3 = json!([{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]);
        let deny = json!([{"Effect": "Deny", "Action": "logs:*", "Resource": "*"}]);
        let mut truncated = iam(s3.clone(), &[]);
        truncated["error"] = json!("policies may be missing");
        let of = |role: Value, messages: &[&str]| {
            diagnosed(
                &incident("", ""),
                &[(Logs, logs(messages)), (Iam, role), (Config, config(None))],
            )
        };
        let diagnoses = [
            of(iam(s3.clone(), &[]), &[]),
            of(iam(s3.clone(), &[]), &["[INFO] old"]),
            of(iam(deny, &[BASIC]), &[]),
            of(iam(s3.clone(), &[BASIC]), &[]),
            of(iam(s3, &["arn:aws:iam::1:policy/own"]), &[]),
            of(truncated, &[]),
        ];
        insta::assert_snapshot!(diagnoses.join("\n"), @r"
        [permission_loss] The CloudWatch permission to write logs (logs:CreateLogStream and logs:PutLogEvents on /aws/lambda/f) was revoked from role r: neither an inline nor an attached policy allows it any more, so f runs without logs.
        [permission_loss] The CloudWatch permission to write logs (logs:CreateLogStream and logs:PutLogEvents on /aws/lambda/f) was revoked from role r: neither an inline nor an attached policy allows it any more, so f runs without logs.
        [permission_loss] The CloudWatch permission to write logs (logs:CreateLogStream and logs:PutLogEvents on /aws/lambda/f) was revoked from role r: a Deny statement in inline policy f-access denies it, so f runs without logs.
        [unknown] The cause is unknown: there are no logs of f, and nothing else explains why; whether something still invokes it (a rule, a schedule, an event source mapping) is not among what the tools read.
        [unknown] The cause is unknown: there are no logs of f, and whether its role may write them is unknown.
        [unknown] The cause is unknown: there are no logs of f, and whether its role may write them is unknown. For f, get_iam_state returned only a part.
        ");
    }

    #[test]
    fn all_faults_are_reported_together() {
        let vpc = json!({"FunctionName": "f", "ReservedConcurrentExecutions": 1,
            "VpcConfig": {"SubnetIds": ["s-1"], "SecurityGroupIds": ["sg-1"], "VpcId": "vpc-1"}});
        let timeout = "[ERROR] ConnectTimeoutError: Connect timeout on endpoint URL: \"https://sqs.amazonaws.com/\"";
        let answers = [(Iam, iam(json!([]), &[])), (Logs, logs(&[DENIED, timeout])), (Config, vpc)];
        let diagnosis = diagnose(&incident("AccessDenied", ""), &seen(&answers));
        let faults: Vec<String> = diagnosis.fault_types.iter().map(ToString::to_string).collect();
        assert_eq!(faults, ["permission_loss", "throttling", "network_block"]);
        assert_eq!(diagnosis.severity, Severity::Critical);
        assert!(diagnosis.remediation_plan.len() >= 5);
        diagnosed(&incident("AccessDenied", ""), &answers);
    }

    /// Fragments of log lines, so that random lines have a meaning.
    fn message() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "START RequestId: aaaa Version: 1",
            "REPORT RequestId: aaaa\tStatus: timeout",
            "[ERROR] ",
            "[WARNING]\tt\taaaa\t",
            "[INFO]\tt\taaaa\tUploading s3://b/k ",
            "t aaaa Task timed out after 3.00 seconds",
            "connect ETIMEDOUT 10.0.0.1:443",
            "Connect timeout on endpoint URL: \"https://x.example/\"",
            DENIED,
            "(AccessDenied) when calling the PutObject operation",
            "Access Denied",
            "is not authorized to perform: ",
            " on resource: ",
            " because ",
            "An error occurred (",
            "KeyError: 'é'",
            "{\"level\":\"ERROR\",\"message\":\"",
            "\"}",
            "\n",
            "\t",
            "",
        ]);
        let random = prop_oneof![8 => piece.prop_map(str::to_owned), 1 => "\\PC{0,400}"];
        prop::collection::vec(random, 0..5).prop_map(|pieces| pieces.concat())
    }

    fn text() -> impl Strategy<Value = String> {
        let known =
            ["Allow", "Deny", "s3:*", "s3:Get*", "logs:*", "*", "arn:aws:s3:::b/*", BASIC, ""];
        prop_oneof![prop::sample::select(known.to_vec()).prop_map(str::to_owned), "\\PC{0,8}"]
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            3 => text().prop_map(Value::from),
            1 => any::<i32>().prop_map(Value::from),
            1 => Just(Value::Null),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            let name = prop_oneof![
                4 => prop::sample::select(vec!["Statement", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"]).prop_map(str::to_owned),
                1 => text(),
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(name, inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn statements() -> impl Strategy<Value = Value> {
        let statement = (text(), json_value(), json_value(), any::<bool>()).prop_map(
            |(effect, action, resource, is_conditional)| {
                let mut statement =
                    json!({"Effect": effect, "Action": action, "Resource": resource});
                if is_conditional {
                    statement["Condition"] = json!({"Bool": {"x": "y"}});
                }
                statement
            },
        );
        prop::collection::vec(statement, 0..4).prop_map(Value::from)
    }

    fn answers() -> impl Strategy<Value = Vec<(Tool, Value)>> {
        let error = || "\\PC{0,40}".prop_map(Value::from);
        let logs = (text(), prop::collection::vec((text(), message()), 0..8)).prop_map(
            |(log_group, events)| {
                let event = |(timestamp, message)| json!({"timestamp": timestamp, "message": message});
                json!({"log_group": log_group, "events": events.into_iter().map(event).collect::<Vec<_>>()})
            },
        );
        let document = prop_oneof![2 => statements().prop_map(|list| json!({"Statement": list})), 1 => json_value()];
        let iam = (
            prop_oneof![Just("r".to_owned()), text()],
            prop::collection::hash_map(text(), document, 0..4),
            prop::collection::vec(text(), 0..3),
        )
            .prop_map(|(role, policies, attached)| {
                let policies: serde_json::Map<String, Value> =
                    policies.into_iter().filter(|(_, document)| document.is_object()).collect();
                json!({"role_name": role, "inline_policies": policies, "attached_policies": attached})
            });
        let vpc = prop::option::of(prop::collection::vec(text(), 0..2)).prop_map(|ids| {
            ids.map(|ids| json!({"SubnetIds": ids, "SecurityGroupIds": ids, "VpcId": ids.first()}))
        });
        let config = (text(), prop::option::of(0..3_u64), vpc).prop_map(|(name, reserved, vpc)| {
            json!({"FunctionName": name, "ReservedConcurrentExecutions": reserved, "VpcConfig": vpc,
                   "State": "Pending"})
        });
        (
            prop::option::of(prop_oneof![6 => logs, 1 => error()]),
            prop::option::of(prop_oneof![6 => iam, 1 => error()]),
            prop::option::of(prop_oneof![6 => config, 1 => error()]),
        )
            .prop_map(|(logs, iam, config)| {
                let all = [(Logs, logs), (Iam, iam), (Config, config)];
                all.into_iter().filter_map(|(tool, answer)| Some((tool, answer?))).collect()
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

        #[test]
        fn the_policys_diagnosis_holds_whatever_was_seen(
            answers in answers(),
            error_type in prop::sample::select(vec!["AccessDenied", "Throttling", "KeyError"]),
            error_message in message(),
        ) {
            let incident = incident(error_type, &error_message);
            let seen = seen(&answers);
            let diagnosis = diagnose(&incident, &seen);
            let refusals = evidence::check(&diagnosis, &seen);
            if answers.is_empty() {
                prop_assert_eq!(refusals, [evidence::Refusal::NoEvidence]);
            } else {
                prop_assert_eq!(refusals, [], "{:#?}", diagnosis);
            }
            prop_assert_eq!(Diagnosis::parse(&diagnosis.json()), Ok(diagnosis));
        }

        #[test]
        fn the_policy_comes_to_an_end(answers in answers()) {
            let incident = incident("AccessDenied", "");
            let mut called = Vec::new();
            let mut shown = Vec::new();
            while let Some((tool, _)) = next_tool(&incident, &seen(&shown), &Tool::ALL) {
                prop_assert!(!called.contains(&tool));
                called.push(tool);
                let answer = answers.iter().find(|(of, _)| *of == tool);
                shown.push(answer.cloned().unwrap_or((tool, json!("no answer"))));
            }
        }
    }
}
