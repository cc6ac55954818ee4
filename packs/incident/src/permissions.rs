//! Finds calls that are denied to the function, and why its role's policies deny them.

mod named;
mod words;

use super::citations;
use super::diagnosis::{EvidencePointer, FaultType, Severity};
use super::field_path::FieldPath;
use super::findings::{Finding, log_pointer, pointer};
use super::iam::{self, By, InlineStatement, Resource, Verdict};
use super::log_lines::{self, Level, Line, LogLines};
use super::message::Incident;
use super::remediation::{self, Grant, Step};
use super::signals::{self, Denial, Reason};
use super::tool::{IamStateResponse, Observations, Tool};

/// Most denied actions in a diagnosis.
const ACTIONS_MAX: usize = 5;

/// A denied call and its log line; none when only the report names the call.
struct Denied<'a> {
    denial: Denial,
    line: Option<Line<'a>>,
}

impl Denied<'_> {
    /// The service of the action; empty when the action is unknown.
    fn service(&self) -> &str {
        let action = self.denial.action.as_deref().unwrap_or_default();
        action.split(':').next().unwrap_or_default()
    }
}

pub(super) fn denied_calls(
    incident: &Incident,
    seen: &Observations,
    is_reported: bool,
) -> Vec<Finding> {
    let logs = seen.logs().unwrap_or_default();
    let iam = seen.iam();
    let read = LogLines::of(&logs);
    let role = iam.as_ref().map(|iam| iam.role_name.as_str());
    let mut denials = denials(incident, &read, role, is_reported);
    denials.truncate(ACTIONS_MAX);
    for denied in &mut denials {
        guess_service(&read, iam.as_ref(), denied);
        guess_bucket(iam.as_ref(), denied);
    }
    let mut cases: Vec<Case<'_>> = Vec::new();
    for denied in &denials {
        let verdict = verdict(iam.as_ref(), &denied.denial);
        if !is_proven(&read, denied, verdict.as_ref()) {
            continue;
        }
        // One statement probably allowed all lost actions of a service.
        let same = cases.iter_mut().find(|case| {
            verdict == Some(Verdict::NotAllowed)
                && case.verdict == verdict
                && case.denied[0].service() == denied.service()
        });
        match same {
            Some(case) => case.denied.push(denied),
            None => cases.push(Case::new(incident, iam.as_ref(), denied, verdict)),
        }
    }
    cases.into_iter().filter_map(|case| case.finding(&read)).collect()
}

/// Some SDKs print `AccessDenied: Access Denied` without the call. If the invocation used S3 and the
/// role has no S3 permissions, the denied call was one to S3.
fn guess_service(read: &LogLines<'_>, iam: Option<&IamStateResponse>, denied: &mut Denied<'_>) {
    const USUAL: [&str; 3] = ["s3:GetObject", "s3:PutObject", "s3:ListBucket"];
    let (Some(iam), Some(line), None) = (iam, denied.line, &denied.denial.action) else { return };
    let is_barred =
        |action: &&str| iam::evaluate(iam, action, Resource::Any) == Verdict::NotAllowed;
    let own = signals::s3_url(line.message);
    let url = own.or_else(|| {
        let before = read.lines.iter().rev().filter(|other| {
            line.invocation.is_some()
                && other.invocation == line.invocation
                && other.index < line.index
        });
        before.filter_map(|line| signals::s3_url(line.message)).next()
    });
    let is_of_s3 = url.is_some() || log_lines::find(line.message, "S3").is_some();
    if is_of_s3 && USUAL.iter().all(is_barred) {
        denied.denial.action = Some("s3:*".to_owned());
        denied.denial.resource = denied.denial.resource.take().or(url);
    }
}

/// The bucket that the failed call names in the stack trace, if the role's policies do not name it: which
/// of a bucket's keys was meant is not known.
fn guess_bucket(iam: Option<&IamStateResponse>, denied: &mut Denied<'_>) {
    let (Some(iam), Some(line), None) = (iam, denied.line, &denied.denial.resource) else { return };
    let is_of_s3 = denied.denial.action.as_deref().is_some_and(signals::is_of_s3);
    let Some(bucket) = signals::bucket(line.message).filter(|_| is_of_s3) else { return };
    let arn = format!("arn:aws:s3:::{bucket}");
    let names = |statement: &iam::Statement<'_>| {
        statement.resources().iter().any(|pattern| {
            *pattern == arn || pattern.starts_with(&format!("{arn}/")) || iam::fits(pattern, &arn)
        })
    };
    if !iam::statements(iam).iter().any(names) {
        denied.denial.resource = Some(format!("{arn}/*"));
    }
}

/// The policies' verdict on a denied call, if both are known.
fn verdict(iam: Option<&IamStateResponse>, denial: &Denial) -> Option<Verdict> {
    let resource = denial.resource.as_deref().map_or(Resource::Any, Resource::Arn);
    let verdict = iam::evaluate(iam?, denial.action.as_deref()?, resource);
    // AWS has evaluated the attached policies that are not known here.
    let is_certain = denial.reason == Reason::NoIdentityPolicy && verdict == Verdict::Uncertain;
    Some(if is_certain { Verdict::NotAllowed } else { verdict })
}

/// Whether a tool result proves the denial, and that it persists.
fn is_proven(read: &LogLines<'_>, denied: &Denied<'_>, verdict: Option<&Verdict>) -> bool {
    match (verdict, &denied.line) {
        // Only the report claims it, or the policies contradict it.
        (None | Some(Verdict::Allowed(_)), None) => false,
        // It was denied, but succeeds now.
        (Some(Verdict::Allowed(_)), Some(line)) => !read.is_clean_after(line),
        _ => true,
    }
}

/// The newest denial of each action, those in the logs first.
fn denials<'a>(
    incident: &Incident,
    read: &LogLines<'a>,
    role: Option<&str>,
    is_reported: bool,
) -> Vec<Denied<'a>> {
    // The logs may show a denial of another role.
    let is_own = |denial: &Denial| match (denial.role.as_deref(), role) {
        (Some(denied), Some(role)) => denied == role,
        _ => true,
    };
    let of_level = |is_wanted: fn(Level) -> bool| {
        let lines = read.lines.iter().rev().filter(move |line| is_wanted(line.level));
        lines.filter_map(|line| Some((signals::denial(line.message)?, *line)))
    };
    let mut found: Vec<Denied<'a>> = Vec::new();
    for (denial, line) in of_level(|level| matches!(level, Level::Error | Level::Plain)) {
        push_new(&mut found, is_own(&denial).then_some(Denied { denial, line: Some(line) }));
    }
    if found.is_empty() && is_reported {
        for (denial, line) in of_level(|level| level == Level::Warn) {
            push_new(&mut found, is_own(&denial).then_some(Denied { denial, line: Some(line) }));
        }
    }
    if is_reported {
        let texts = [&incident.error_message, &incident.error_type];
        let denial = texts.into_iter().flatten().find_map(|text| signals::denial(text));
        push_new(&mut found, denial.filter(is_own).map(|denial| Denied { denial, line: None }));
    }
    found
}

fn push_new<'a>(found: &mut Vec<Denied<'a>>, denied: Option<Denied<'a>>) {
    let Some(denied) = denied else { return };
    // A denial without an action adds nothing to one with an action.
    let action = &denied.denial.action;
    let is_known = found.iter().any(|other| action.is_none() || other.denial.action == *action);
    if !is_known {
        found.push(denied);
    }
}

/// The denied calls of one fault.
struct Case<'a> {
    incident: &'a Incident,
    iam: Option<&'a IamStateResponse>,
    verdict: Option<Verdict>,
    /// Never empty.
    denied: Vec<&'a Denied<'a>>,
    evidence: Vec<EvidencePointer>,
}

impl<'a> Case<'a> {
    fn new(
        incident: &'a Incident,
        iam: Option<&'a IamStateResponse>,
        denied: &'a Denied<'a>,
        verdict: Option<Verdict>,
    ) -> Self {
        Self { incident, iam, verdict, denied: vec![denied], evidence: vec![] }
    }

    fn finding(mut self, read: &LogLines<'_>) -> Option<Finding> {
        if self.is_over(read) {
            return None;
        }
        self.cite_logs(read);
        let named = self.conclude_named();
        let (sentence, step) = named.unwrap_or_else(|| self.conclude());
        let policy = self.iam.and_then(|iam| {
            citations::suspect(iam, self.denied[0].service(), &self.incident.lambda_name)
        });
        let suspicion = self.suspicion(policy, self.first_denial(read));
        let mut resources = vec![self.incident.lambda_name.clone()];
        resources.extend(self.iam.map(|iam| iam.role_name.clone()));
        for arn in self.denied.iter().filter_map(|denied| denied.denial.resource.as_deref()) {
            let bucket = bucket_of(arn).map(|bucket| format!("arn:aws:s3:::{bucket}"));
            resources.push(bucket.unwrap_or_else(|| arn.to_owned()));
        }
        (!self.evidence.is_empty()).then_some(Finding {
            fault: FaultType::PermissionLoss,
            sentence,
            severity: Severity::High,
            resources,
            evidence: self.evidence,
            steps: vec![step],
            suspicion,
        })
    }

    /// When the logs first show one of the denials.
    fn first_denial<'r>(&self, read: &LogLines<'r>) -> Option<&'r str> {
        let actions = self.actions();
        let is_same = |line: &&Line<'_>| {
            matches!(line.level, Level::Warn | Level::Error | Level::Plain)
                && signals::denial(line.message).is_some_and(|denial| {
                    denial.action.is_none_or(|action| actions.contains(&action))
                })
        };
        read.lines.iter().find(is_same).map(|line| line.timestamp)
    }

    fn conclude(&mut self) -> (String, Step) {
        match self.verdict.clone() {
            Some(Verdict::NotAllowed) => self.conclude_revoked(),
            Some(Verdict::Uncertain) => self.conclude_uncertain(),
            Some(Verdict::Denied(place)) => self.conclude_denied(&place),
            Some(Verdict::Conditional(place)) => self.conclude_conditional(&place),
            Some(Verdict::Allowed(by)) => self.conclude_allowed(&by),
            None => self.conclude_unread(),
        }
    }

    /// Whether the role is allowed the call now, and the function has failed otherwise since.
    fn is_over(&self, read: &LogLines<'_>) -> bool {
        let first = self.denied[0];
        let is_allowed = matches!(self.verdict, Some(Verdict::Allowed(_)));
        let Some(denied) =
            first.line.filter(|_| is_allowed && first.denial.reason == Reason::NoIdentityPolicy)
        else {
            return false;
        };
        read.errors().any(|line| {
            line.index > denied.index
                && line.invocation != denied.invocation
                && signals::denial(line.message).is_none()
        })
    }

    fn cite_logs(&mut self, read: &LogLines<'_>) {
        for denied in &self.denied {
            let Some(line) = &denied.line else { continue };
            let action = denied.denial.action.as_deref().unwrap_or("a call");
            let meaning = format!("the function is denied {action}");
            self.evidence.push(log_pointer(line, log_lines::cut(&denied.denial.quote), meaning));
        }
        let first = self.denied[0];
        let Some(bucket) = first.denial.resource.as_deref().and_then(bucket_of) else { return };
        if let Some((line, at)) = earlier_use(read, first.line, bucket) {
            let meaning = format!("at {} it could still access s3://{bucket}", line.timestamp);
            self.evidence.push(log_pointer(&line, log_lines::quote(line.message, at), meaning));
        }
    }

    fn conclude_revoked(&mut self) -> (String, Step) {
        let suspect = self.cite_policies();
        let role = self.role();
        if let Some(other) = self.other_resource() {
            let sentence = format!(
                "{} denies {} to {}: {other}",
                self.service_name(),
                self.denied_calls(),
                self.incident.lambda_name
            );
            return (sentence, self.restore(suspect.as_deref()));
        }
        let place = suspect.as_ref().map_or_else(
            || format!("the inline policies of role {role}"),
            |policy| format!("inline policy {policy} of role {role}"),
        );
        let sentence = format!(
            "The {} permission {} was revoked from {place}: neither an inline nor an \
             attached policy allows it any more",
            self.service_name(),
            self.denied_calls()
        );
        (sentence, self.restore(suspect.as_deref()))
    }

    fn conclude_uncertain(&mut self) -> (String, Step) {
        let suspect = self.cite_policies();
        let sentence = format!(
            "{} denies {} to {}: no inline policy of role {} allows it, and what its \
             attached policies allow could not be read",
            self.service_name(),
            self.denied_calls(),
            self.incident.lambda_name,
            self.role()
        );
        (sentence, self.restore(suspect.as_deref()))
    }

    fn conclude_denied(&mut self, place: &InlineStatement) -> (String, Step) {
        self.cite_place(place, "Effect", "this statement denies, and a Deny overrides every Allow");
        self.cite_place(place, "Action", "it covers the call");
        let (policy, role) = (&place.policy, self.role());
        let sentence = format!(
            "The {} permission {} was revoked: a Deny statement in inline policy {policy} \
             of role {role} denies it",
            self.service_name(),
            self.denied_calls()
        );
        (sentence, remediation::remove_denial(&self.actions(), policy, role, self.basis()))
    }

    fn conclude_conditional(&mut self, place: &InlineStatement) -> (String, Step) {
        self.cite_place(place, "Condition", "it allows the call only under this condition");
        let sentence = format!(
            "{} denies {} to {}: inline policy {} of role {} allows it under a condition \
             that the call does not meet",
            self.service_name(),
            self.denied_calls(),
            self.incident.lambda_name,
            place.policy,
            self.role()
        );
        (sentence, self.restore(Some(&place.policy)))
    }

    fn conclude_allowed(&mut self, by: &By) -> (String, Step) {
        self.cite_allowing(by);
        let refused = format!(
            "{} denied {} to {}",
            self.service_name(),
            self.denied_calls(),
            self.incident.lambda_name
        );
        let role = self.role();
        if self.denied[0].denial.reason == Reason::NoIdentityPolicy {
            let sentence = format!(
                "{refused} because no policy of role {role} allowed it; one does now, but no \
                 invocation has succeeded since"
            );
            return (sentence, remediation::confirm_restored(self.basis()));
        }
        let missing = self.may_be_missing();
        let sentence = match missing {
            Some(bucket) => format!(
                "{refused} although the policies of role {role} allow it: the object does not exist, \
                 for which S3 answers 403 to a caller without s3:ListBucket on {bucket}, or another \
                 policy denies the call"
            ),
            None => format!(
                "{refused} although the policies of role {role} allow it, so another policy denies the \
                 call: a resource policy, a VPC endpoint's policy, an organisation policy or a \
                 permissions boundary"
            ),
        };
        (sentence, remediation::look_beyond_the_role(&self.resource_or_all(), self.basis()))
    }

    /// The bucket of a read that S3 may have refused because the object does not exist: it answers 403 for it to a caller
    /// who may not list the bucket.
    ///
    /// Source: Amazon S3 API Reference, `HeadObject` and `GetObject`, "Permissions".
    fn may_be_missing(&self) -> Option<String> {
        let first = self.denied[0];
        let is_read = first.denial.action.as_deref() == Some("s3:GetObject");
        let is_bare = first.denial.reason == Reason::Unstated && self.named_policy().is_none();
        let lists = self.iam.is_some_and(|iam| {
            let inline = serde_json::to_string(&iam.inline_policies).unwrap_or_default();
            let is_wide = |arn: &String| {
                ["S3", "ReadOnly", "Administrator", "PowerUser"]
                    .iter()
                    .any(|name| arn.contains(name))
            };
            ["s3:ListBucket", "s3:List*", "s3:*", "\"*\""].iter().any(|name| inline.contains(name))
                || iam.attached_policies.iter().any(is_wide)
        });
        let bucket = first.denial.resource.as_deref().and_then(bucket_of).unwrap_or("the bucket");
        (is_read && is_bare && !lists).then(|| bucket.to_owned())
    }

    fn conclude_unread(&mut self) -> (String, Step) {
        let why = match self.denied[0].denial.reason {
            Reason::ExplicitDeny => "a policy denies it explicitly",
            Reason::NoIdentityPolicy => "none of its policies allows it",
            Reason::Unstated => {
                "the reason is unknown: its policies could not be compared with the call"
            }
        };
        let sentence = format!(
            "{} access of {} was lost: role {} is denied {}; {why}",
            self.service_name(),
            self.incident.lambda_name,
            self.role(),
            self.denied_calls()
        );
        (sentence, self.restore(None))
    }

    /// All evidence so far.
    fn basis(&self) -> Vec<usize> {
        (0..self.evidence.len()).collect()
    }

    fn restore(&self, policy: Option<&str>) -> Step {
        let service = self.service_name();
        let resource = self.resource_or_all();
        let grant = Grant {
            service: &service,
            actions: &self.actions(),
            resource: &resource,
            role: self.role(),
            policy,
        };
        remediation::restore_permission(&grant, self.basis())
    }

    /// Cites the policies that do not allow the calls, and returns the one that should.
    fn cite_policies(&mut self) -> Option<String> {
        let iam = self.iam?;
        let service = self.denied[0].service();
        let suspect = citations::suspect(iam, service, &self.incident.lambda_name);
        let actions = self.actions();
        let actions: Vec<&str> = actions.iter().map(String::as_str).collect();
        self.evidence.extend(citations::cite_policies(iam, service, &actions, suspect.as_deref()));
        suspect
    }

    fn cite_place(&mut self, place: &InlineStatement, member: &str, meaning: &str) {
        let Some(iam) = self.iam else { return };
        self.evidence.extend(citations::cite_member(iam, place, member, meaning));
    }

    fn cite_allowing(&mut self, by: &By) {
        let Some(iam) = self.iam else { return };
        match by {
            By::Statement(place) => self.cite_place(place, "Action", "this statement allows it"),
            By::Managed(position) => {
                let field = FieldPath::key("attached_policies").at(*position);
                let arn = iam.attached_policies[*position].as_str();
                self.evidence.push(pointer(Tool::IamState, &field, arn, "this policy allows it"));
            }
        }
    }
}

fn bucket_of(arn: &str) -> Option<&str> {
    let (_, rest) = arn.split_once(":s3:::")?;
    rest.split('/').next().filter(|bucket| !bucket.is_empty())
}

/// The newest line before the denial of a successful invocation that used the bucket.
fn earlier_use<'a>(
    read: &LogLines<'a>,
    denied: Option<Line<'_>>,
    bucket: &str,
) -> Option<(Line<'a>, usize)> {
    let url = format!("s3://{bucket}/");
    let is_before = |line: &&Line<'_>| denied.is_none_or(|denied| line.index < denied.index);
    let used = read.lines.iter().rev().filter(is_before).find(|line| {
        line.level == Level::Info
            && line.message.contains(&url)
            && read.invocation(line).is_some_and(log_lines::Invocation::is_clean)
    })?;
    // The sentence starts after the last tab of a text line.
    let at = used.message.find(&url)?;
    let start = used.message[..at].rfind(['\t', '"']).map_or(0, |tab| tab + 1);
    Some((*used, start))
}
