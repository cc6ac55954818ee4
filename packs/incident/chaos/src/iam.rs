//! Removes services from a policy document. Pure.

use serde_json::{Map, Value};

use super::Services;

/// A document with a wildcard service or `NotAction`.
#[derive(Debug, PartialEq)]
pub(super) struct TooBroad(pub String);

impl Services {
    const fn prefixes(self) -> &'static [&'static str] {
        match self {
            Self::S3 => &["s3"],
            Self::CloudWatch => &["logs", "cloudwatch"],
            Self::Both => &["s3", "logs", "cloudwatch"],
        }
    }

    fn include(self, action: &str) -> Result<bool, TooBroad> {
        let service = action.split(':').next().unwrap_or(action);
        if service.contains(['*', '?']) {
            return Err(TooBroad(action.to_owned()));
        }
        Ok(self.prefixes().iter().any(|prefix| service.eq_ignore_ascii_case(prefix)))
    }
}

/// A document without the services.
#[derive(Debug, PartialEq)]
pub(super) enum Left {
    /// Unchanged: it does not allow them.
    All,
    Less(Map<String, Value>),
    /// No statement is left.
    Nothing,
}

/// Removes the services from every Allow statement.
pub(super) fn without(document: &Map<String, Value>, services: Services) -> Result<Left, TooBroad> {
    let statements = match document.get("Statement") {
        Some(Value::Array(statements)) => statements.clone(),
        Some(statement) => vec![statement.clone()],
        None => Vec::new(),
    };
    let mut left = Vec::new();
    let mut is_less = false;
    for mut statement in statements {
        if statement["Effect"] != "Allow" {
            left.push(statement);
            continue;
        }
        if statement.get("NotAction").is_some() {
            return Err(TooBroad("NotAction".to_owned()));
        }
        let actions = match &statement["Action"] {
            Value::Array(actions) => actions.clone(),
            action => vec![action.clone()],
        };
        let mut others = Vec::new();
        for action in &actions {
            if !services.include(action.as_str().unwrap_or_default())? {
                others.push(action.clone());
            }
        }
        if others.len() == actions.len() {
            left.push(statement);
            continue;
        }
        is_less = true;
        if !others.is_empty() {
            statement["Action"] = others.into();
            left.push(statement);
        }
    }
    Ok(match (is_less, left.is_empty()) {
        (false, _) => Left::All,
        (true, true) => Left::Nothing,
        (true, false) => {
            let mut document = document.clone();
            document.insert("Statement".to_owned(), left.into());
            Left::Less(document)
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(statement: Value, services: Services, expected: Result<Value, &str>) {
        let document = json!({"Version": "2012-10-17", "Statement": statement});
        let left = without(document.as_object().unwrap(), services).map(|left| match left {
            Left::All => json!("all"),
            Left::Less(document) => document["Statement"].clone(),
            Left::Nothing => json!("nothing"),
        });
        assert_eq!(left, expected.map_err(|action| TooBroad(action.to_owned())), "{statement}");
    }

    #[test]
    fn only_the_services_are_taken_out() {
        let allow = |action: Value| json!({"Effect": "Allow", "Action": action, "Resource": "*"});
        let mixed = allow(json!(["s3:GetObject", "S3:*", "logs:PutLogEvents", "sqs:SendMessage"]));
        let left = |action| Ok(json!([allow(action)]));
        check(json!([mixed]), Services::S3, left(json!(["logs:PutLogEvents", "sqs:SendMessage"])));
        check(mixed.clone(), Services::Both, left(json!(["sqs:SendMessage"])));
        let other = allow(json!("dynamodb:PutItem"));
        check(json!([allow(json!("s3:*")), other]), Services::S3, Ok(json!([other])));
        check(
            json!([allow(json!("cloudwatch:PutMetricData"))]),
            Services::CloudWatch,
            Ok(json!("nothing")),
        );
        check(json!([other]), Services::Both, Ok(json!("all")));
        check(json!([allow(json!("s3-object-lambda:Get"))]), Services::S3, Ok(json!("all")));
        let deny = json!({"Effect": "Deny", "Action": "s3:*", "Resource": "*"});
        check(json!([deny]), Services::S3, Ok(json!("all")));
        check(json!([deny, allow(json!("s3:Get*"))]), Services::S3, Ok(json!([deny])));
    }

    #[test]
    fn what_allows_everything_is_left_alone() {
        let allow = |action: &str| json!([{"Effect": "Allow", "Action": action, "Resource": "*"}]);
        check(allow("*"), Services::S3, Err("*"));
        check(allow("s*:GetObject"), Services::S3, Err("s*:GetObject"));
        check(allow("??:GetObject"), Services::S3, Err("??:GetObject"));
        let not = json!({"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"});
        check(not, Services::S3, Err("NotAction"));
    }
}
