//! A small IAM policy evaluation: may this role do this?
//!
//! It reads only the identity policies of one role. So `NotAllowed` is certain, but a call that is
//! `Allowed` may still be denied by a bucket policy, a permissions boundary or an organisation's
//! policy. Attached managed policies come as ARNs without documents. The common ones of AWS are
//! known here; any other makes the verdict uncertain.
//!
//! Source: IAM User Guide, "Policy evaluation logic" and "IAM JSON policy elements".

use serde_json::{Map, Value};

use super::field_path::FieldPath;
use super::managed_policies;
use super::tool::IamStateResponse;

/// The verdict of the role's policies on an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A statement denies it; a Deny overrides every Allow.
    Denied(InlineStatement),
    /// A statement or a known managed policy allows it.
    Allowed(By),
    /// A statement allows it under conditions that cannot be evaluated here.
    Conditional(InlineStatement),
    /// No known policy allows it, but a managed policy that is not known here might.
    Uncertain,
    NotAllowed,
}

/// What allows a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum By {
    Statement(InlineStatement),
    /// An attached managed policy, by its position.
    Managed(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InlineStatement {
    pub policy: String,
    /// Path of the statement in the tool's result.
    pub path: FieldPath,
}

/// The resource of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource<'a> {
    /// Unknown: a statement on any resource matches.
    Any,
    Arn(&'a str),
    /// A log group in an unknown region and account.
    LogGroup(&'a str),
}

/// A statement and its path.
pub(super) struct Statement<'a> {
    pub place: InlineStatement,
    body: &'a Map<String, Value>,
}

/// All statements of the role's inline policies, in the order of the result.
pub(super) fn statements(iam: &IamStateResponse) -> Vec<Statement<'_>> {
    let mut statements = Vec::new();
    for (policy, document) in &iam.inline_policies {
        let path = FieldPath::key("inline_policies").then(policy).then("Statement");
        match document.get("Statement") {
            Some(Value::Object(body)) => {
                statements.push(Statement {
                    place: InlineStatement { policy: policy.clone(), path },
                    body,
                });
            }
            Some(Value::Array(list)) => {
                for (index, statement) in list.iter().enumerate() {
                    let Some(body) = statement.as_object() else { continue };
                    let place = InlineStatement { policy: policy.clone(), path: path.at(index) };
                    statements.push(Statement { place, body });
                }
            }
            _ => {}
        }
    }
    statements
}

/// Evaluates an action, such as `s3:GetObject`, on a resource.
pub(super) fn evaluate(iam: &IamStateResponse, action: &str, resource: Resource<'_>) -> Verdict {
    let statements = statements(iam);
    let mut matching = statements.iter().filter(|s| s.is_about(action, resource));
    let denial = matching.clone().find(|s| s.denies() && !s.is_conditional());
    if let Some(denial) = denial {
        return Verdict::Denied(denial.place.clone());
    }
    let mut allowing = matching.clone().filter(|s| s.allows());
    if let Some(allowed) = allowing.find(|s| !s.is_conditional()) {
        return Verdict::Allowed(By::Statement(allowed.place.clone()));
    }
    let managed = iam.attached_policies.iter().map(|arn| managed_policies::grants(arn));
    let mut is_certain = iam.error.is_none();
    for (position, grants) in managed.enumerate() {
        match grants {
            None => is_certain = false,
            Some(grants) => {
                if grants.iter().any(|grant| grant.covers(action, resource)) {
                    return Verdict::Allowed(By::Managed(position));
                }
            }
        }
    }
    match matching.find(|s| s.allows()) {
        Some(conditional) => Verdict::Conditional(conditional.place.clone()),
        None if is_certain => Verdict::NotAllowed,
        None => Verdict::Uncertain,
    }
}

impl Statement<'_> {
    /// The actions in its `Action` or `NotAction`.
    pub(super) fn actions(&self) -> Vec<&str> {
        texts(self.body.get("Action").or(self.body.get("NotAction")))
    }

    /// Path of its `Action` or `NotAction`.
    pub(super) fn actions_path(&self) -> FieldPath {
        let name = if self.body.contains_key("Action") { "Action" } else { "NotAction" };
        self.place.path.then(name)
    }

    /// Path of its `Resource` or `NotResource`.
    pub(super) fn resource_path(&self) -> FieldPath {
        let name = if self.body.contains_key("Resource") { "Resource" } else { "NotResource" };
        self.place.path.then(name)
    }

    /// The patterns in its `Resource`.
    pub(super) fn resources(&self) -> Vec<&str> {
        texts(self.body.get("Resource"))
    }

    pub(super) fn member(&self, name: &str) -> Option<&Value> {
        self.body.get(name)
    }

    /// Whether it names a service: `s3` of `s3:Get*`.
    pub(super) fn names_service(&self, service: &str) -> bool {
        self.actions().iter().any(|action| {
            action.split_once(':').is_some_and(|(prefix, _)| prefix.eq_ignore_ascii_case(service))
        })
    }

    /// Whether it allows an action on some resource.
    pub(super) fn allows_action(&self, action: &str) -> bool {
        self.allows() && self.covers_action(action)
    }

    fn allows(&self) -> bool {
        self.effect_is("Allow")
    }

    fn denies(&self) -> bool {
        self.effect_is("Deny")
    }

    fn effect_is(&self, effect: &str) -> bool {
        self.body.get("Effect").and_then(Value::as_str) == Some(effect)
    }

    fn is_conditional(&self) -> bool {
        let condition = self.body.get("Condition").and_then(Value::as_object);
        condition.is_some_and(|condition| !condition.is_empty())
    }

    fn is_about(&self, action: &str, resource: Resource<'_>) -> bool {
        self.covers_action(action) && self.covers_resource(resource)
    }

    fn covers_action(&self, action: &str) -> bool {
        match (self.body.get("Action"), self.body.get("NotAction")) {
            (Some(actions), _) => any_action(Some(actions), action),
            (None, Some(actions)) => !any_action(Some(actions), action),
            (None, None) => false,
        }
    }

    fn covers_resource(&self, resource: Resource<'_>) -> bool {
        match (self.body.get("Resource"), self.body.get("NotResource")) {
            (Some(patterns), _) => texts(Some(patterns)).iter().any(|p| resource.fits(p)),
            // Only a known resource can be compared with the excluded ones.
            (None, Some(patterns)) => {
                resource == Resource::Any || !texts(Some(patterns)).iter().any(|p| resource.fits(p))
            }
            (None, None) => false,
        }
    }
}

fn any_action(patterns: Option<&Value>, action: &str) -> bool {
    texts(patterns).iter().any(|pattern| action_fits(pattern, action))
}

/// A string, or the strings of an array.
fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(elements)) => elements.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    }
}

impl Resource<'_> {
    /// Whether a policy's pattern matches it.
    pub(super) fn fits(self, pattern: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Arn(arn) => fits(&without_variables(pattern), arn),
            Self::LogGroup(group) => log_group_fits(&without_variables(pattern), group),
        }
    }
}

/// Replaces policy variables such as `${aws:username}`, whose values are unknown, by `*`.
fn without_variables(pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((_, after)) = after.split_once('}') else { break };
        out.push('*');
        rest = after;
    }
    out + rest
}

/// Takes region and account from the pattern: a role that may write to this log group in some account
/// may write to the function's.
fn log_group_fits(pattern: &str, group: &str) -> bool {
    let parts: Vec<&str> = pattern.splitn(6, ':').collect();
    let ["arn", partition, "logs", region, account, _] = parts[..] else {
        return fits(pattern, &format!("arn:aws:logs:r:a:log-group:{group}:log-stream:s"));
    };
    let of_group = format!("arn:{partition}:logs:{region}:{account}:log-group:{group}");
    fits(pattern, &of_group) || fits(pattern, &format!("{of_group}:log-stream:s"))
}

/// Whether a pattern matches an action, ignoring case.
pub(super) fn action_fits(pattern: &str, action: &str) -> bool {
    fits(&pattern.to_ascii_lowercase(), &action.to_ascii_lowercase())
}

/// `*` matches any characters, `?` one.
///
/// Backtracks only to the last star, which gives the same result in time proportional to the product of
/// the lengths. Policies are untrusted.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == b'?' || pattern[p] == text[t]) {
            p += 1;
            t += 1;
        } else if let Some((star_p, star_t)) = star {
            star = Some((star_p, star_t + 1));
            p = star_p + 1;
            t = star_t + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn role(statements: Value, attached: &[&str]) -> IamStateResponse {
        let document = json!({"Version": "2012-10-17", "Statement": statements});
        IamStateResponse {
            role_name: "r".to_owned(),
            inline_policies: [("p".to_owned(), document.as_object().unwrap().clone())].into(),
            attached_policies: attached.iter().map(|name| (*name).to_owned()).collect(),
            error: None,
        }
    }

    fn check(statements: Value, action: &str, arn: &str, expected: &str) {
        let verdict = evaluate(&role(statements.clone(), &[]), action, Resource::Arn(arn));
        let name = match verdict {
            Verdict::Denied(place) => format!("denied by {}", place.path),
            Verdict::Allowed(By::Statement(place)) => format!("allowed by {}", place.path),
            Verdict::Allowed(By::Managed(at)) => format!("allowed by managed {at}"),
            Verdict::Conditional(place) => format!("conditional in {}", place.path),
            Verdict::Uncertain => "uncertain".to_owned(),
            Verdict::NotAllowed => "not allowed".to_owned(),
        };
        assert_eq!(name, expected, "{action} on {arn} under {statements}");
    }

    #[test]
    fn statements_are_evaluated_as_iam_does() {
        let arn = "arn:aws:s3:::b/k";
        let allow = |action: Value, resource: Value| json!({"Effect": "Allow", "Action": action, "Resource": resource});
        let p = "inline_policies.p.Statement";
        check(json!([]), "s3:GetObject", arn, "not allowed");
        check(json!("x"), "s3:GetObject", arn, "not allowed");
        check(allow("s3:*".into(), "*".into()), "s3:GetObject", arn, &format!("allowed by {p}"));
        let list = json!([allow(json!(["sqs:*", "S3:get*"]), json!(["arn:aws:s3:::b/*"]))]);
        check(list.clone(), "s3:GetObject", arn, &format!("allowed by {p}[0]"));
        check(list.clone(), "s3:PutObject", arn, "not allowed");
        check(list, "s3:GetObject", "arn:aws:s3:::other/k", "not allowed");
        check(
            json!([allow("s3:GetObject".into(), "arn:aws:s3:::b".into())]),
            "s3:GetObject",
            arn,
            "not allowed",
        );
        check(
            json!([allow("s3:Get?bject".into(), "arn:aws:s3:::${x}/k".into())]),
            "s3:GetObject",
            arn,
            &format!("allowed by {p}[0]"),
        );
        check(
            json!([{"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}]),
            "s3:GetObject",
            arn,
            &format!("allowed by {p}[0]"),
        );
        check(
            json!([{"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"}]),
            "s3:GetObject",
            arn,
            "not allowed",
        );
        check(
            json!([{"Effect": "Allow", "Action": "*", "NotResource": "arn:aws:s3:::b/*"}]),
            "s3:GetObject",
            arn,
            "not allowed",
        );
        check(
            json!([allow("s3:*".into(), "*".into()), {"Effect": "Deny", "Action": "s3:GetObject", "Resource": "*"}]),
            "s3:GetObject",
            arn,
            &format!("denied by {p}[1]"),
        );
        let condition = json!({"Bool": {"aws:SecureTransport": "false"}});
        check(
            json!([allow("s3:*".into(), "*".into()),
                   {"Effect": "Deny", "Action": "s3:*", "Resource": "*", "Condition": condition}]),
            "s3:GetObject",
            arn,
            &format!("allowed by {p}[0]"),
        );
        check(
            json!([{"Effect": "Allow", "Action": "s3:*", "Resource": "*", "Condition": condition}]),
            "s3:GetObject",
            arn,
            &format!("conditional in {p}[0]"),
        );
    }

    #[test]
    fn log_groups_match_in_any_account() {
        let may_write = |resource: &str| {
            let role =
                role(json!([{"Effect": "Allow", "Action": "logs:*", "Resource": resource}]), &[]);
            let group = Resource::LogGroup("/aws/lambda/f");
            evaluate(&role, "logs:PutLogEvents", group) != Verdict::NotAllowed
        };
        for resource in [
            "*",
            "arn:aws:logs:*:*:*",
            "arn:aws:logs:eu-west-1:123456789012:*",
            "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/lambda/f:*",
            "arn:aws:logs:*:*:log-group:/aws/lambda/*:log-stream:*",
        ] {
            assert!(may_write(resource), "{resource}");
        }
        for resource in ["arn:aws:logs:*:*:log-group:/aws/lambda/g:*", "arn:aws:s3:::b"] {
            assert!(!may_write(resource), "{resource}");
        }
    }

    #[test]
    fn known_managed_policies_grant_and_unknown_ones_make_uncertain() {
        let verdict = |attached: &[&str], action: &str| {
            evaluate(&role(json!([]), attached), action, Resource::LogGroup("/aws/lambda/f"))
        };
        let basic = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole";
        let read = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess";
        let own = "arn:aws:iam::123456789012:policy/AWSLambdaBasicExecutionRole";
        let allowed = |at| Verdict::Allowed(By::Managed(at));
        assert_eq!(verdict(&[read, basic], "logs:PutLogEvents"), allowed(1));
        assert_eq!(verdict(&[read, basic], "s3:GetObject"), allowed(0));
        assert_eq!(verdict(&[read, basic], "s3:PutObject"), Verdict::NotAllowed);
        assert_eq!(verdict(&[own], "logs:PutLogEvents"), Verdict::Uncertain);
        assert_eq!(verdict(&[own, basic], "logs:PutLogEvents"), allowed(1));
    }

    #[test]
    fn wildcard_matching_is_not_exponential() {
        let pattern = "*a".repeat(500) + "b";
        assert!(!fits(&pattern, &"a".repeat(5_000)));
    }
}
