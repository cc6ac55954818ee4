//! Finds two signals in a line: a denied call and a failed connection.

use super::log_lines::{find, quote, word_start};

/// A denied call, with the details that the text has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Denial {
    /// The IAM action: `s3:GetObject`.
    pub action: Option<String>,
    /// The resource's ARN.
    pub resource: Option<String>,
    /// The role of the caller.
    pub role: Option<String>,
    pub reason: Reason,
    /// Verbatim quote of the text.
    pub quote: String,
}

/// AWS's reason for a denial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reason {
    #[default]
    Unstated,
    /// No policy of the role allows it, attached ones included.
    NoIdentityPolicy,
    /// A statement somewhere denies it.
    ExplicitDeny,
}

/// Parses a denial.
pub(super) fn denial(text: &str) -> Option<Denial> {
    let mut denial = authorization_failure(text).or_else(|| bare_denial(text))?;
    if denial.action.is_none() {
        denial.action = operation(text).and_then(action_of);
    }
    if denial.resource.is_none() && denial.action.as_deref().is_some_and(is_of_s3) {
        denial.resource = s3_url(text);
    }
    Some(denial)
}

pub(super) fn is_of_s3(action: &str) -> bool {
    action.starts_with("s3:")
}

/// `User: ARN is not authorized to perform: ACTION on resource: ARN because …`
///
/// Source: IAM User Guide, "Troubleshoot access denied error messages".
fn authorization_failure(text: &str) -> Option<Denial> {
    const PHRASE: &str = "is not authorized to perform: ";
    let at = text.find(PHRASE)?;
    let rest = &text[at + PHRASE.len()..];
    let action = token(rest)?;
    if !action.contains(':') {
        return None;
    }
    let sentence = rest.lines().next().unwrap_or_default();
    let resource = sentence.split_once("on resource: ").and_then(|(_, rest)| token(rest));
    let user = text[..at].rfind("User: ");
    let principal = user.and_then(|user| token(&text[user + "User: ".len()..at]));
    let start = word_start(text, user.unwrap_or(at));
    // The reason comes last; in a structured line a quotation mark ends it.
    let reason_at = sentence.find(" because ");
    let reason = reason_at.map(|at| &sentence[at..]);
    let reason = reason.map(|reason| reason.split('"').next().unwrap_or_default());
    let contains = |words: &str| sentence.contains(words);
    let end = match (reason_at, reason) {
        (Some(at), Some(reason)) => at + reason.trim_end_matches('\\').len(),
        // A quotation mark may precede it.
        _ => rest.find(action)? + action.len(),
    };
    let quoted = &text[start..at + PHRASE.len() + end];
    Some(Denial {
        action: Some(action.to_owned()),
        resource: resource.filter(|r| r.starts_with("arn:")).map(str::to_owned),
        role: principal.and_then(role_of).map(str::to_owned),
        reason: if contains("explicit deny") {
            Reason::ExplicitDeny
        } else if contains("no identity-based policy allows") {
            Reason::NoIdentityPolicy
        } else {
            Reason::Unstated
        },
        quote: quoted.trim().to_owned(),
    })
}

/// `An error occurred (AccessDenied) when calling the GetObject operation: …` and similar.
fn bare_denial(text: &str) -> Option<Denial> {
    const CODES: [&str; 6] = [
        "AccessDenied",
        "AccessDeniedException",
        "Access Denied",
        "UnauthorizedOperation",
        "AuthorizationError",
        "AuthorizationErrorException",
    ];
    const FORBIDDEN: &str = "An error occurred (403) when calling the ";
    let at =
        CODES.iter().filter_map(|code| find(text, code)).min().or_else(|| text.find(FORBIDDEN))?;
    let start = text[..at].rfind("An error occurred (").unwrap_or(at);
    Some(Denial { quote: quote(text, start).to_owned(), ..Denial::default() })
}

/// The API operation that a text names.
fn operation(text: &str) -> Option<&str> {
    // botocore, then the AWS SDK for Go.
    if let Some((_, rest)) = text.split_once("when calling the ") {
        return rest.split_once(" operation").map(|(name, _)| name);
    }
    let (_, rest) = text.split_once("operation error ")?;
    let (_, rest) = rest.split_once(": ")?;
    token(rest)
}

/// The action of an operation, if the operation's name determines its service.
///
/// Source: Service Authorization Reference.
fn action_of(operation: &str) -> Option<String> {
    let action = match operation {
        "GetObject" | "HeadObject" | "SelectObjectContent" => "s3:GetObject",
        "PutObject"
        | "CopyObject"
        | "CreateMultipartUpload"
        | "UploadPart"
        | "CompleteMultipartUpload" => "s3:PutObject",
        "DeleteObject" | "DeleteObjects" => "s3:DeleteObject",
        "ListObjects" | "ListObjectsV2" | "HeadBucket" => "s3:ListBucket",
        "ListBuckets" => "s3:ListAllMyBuckets",
        "GetObjectTagging" => "s3:GetObjectTagging",
        "PutObjectTagging" => "s3:PutObjectTagging",
        "PutMetricData" => "cloudwatch:PutMetricData",
        "PutLogEvents" => "logs:PutLogEvents",
        "CreateLogStream" => "logs:CreateLogStream",
        "CreateLogGroup" => "logs:CreateLogGroup",
        "GetItem" | "PutItem" | "UpdateItem" | "DeleteItem" | "Query" | "Scan" | "BatchGetItem"
        | "BatchWriteItem" => return Some(format!("dynamodb:{operation}")),
        "SendMessage" | "ReceiveMessage" | "DeleteMessage" => {
            return Some(format!("sqs:{operation}"));
        }
        "Publish" => "sns:Publish",
        "GetSecretValue" => "secretsmanager:GetSecretValue",
        "GetParameter" | "GetParameters" | "GetParametersByPath" => {
            return Some(format!("ssm:{operation}"));
        }
        "Decrypt" | "GenerateDataKey" => return Some(format!("kms:{operation}")),
        "Invoke" => "lambda:InvokeFunction",
        "PutEvents" => "events:PutEvents",
        "AssumeRole" => "sts:AssumeRole",
        _ => return None,
    };
    Some(action.to_owned())
}

/// The role in `arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION`.
fn role_of(principal: &str) -> Option<&str> {
    principal.split_once(":assumed-role/")?.1.split('/').next()
}

/// The first `s3://BUCKET/KEY` of a text, as an ARN.
pub(super) fn s3_url(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("s3://")?;
    Some(format!("arn:aws:s3:::{}", token(rest)?))
}

/// The bucket that a call's arguments in a stack trace name: `Bucket='b'`.
pub(super) fn bucket(text: &str) -> Option<&str> {
    let (_, rest) =
        ["Bucket=", "Bucket: ", "bucket: "].iter().find_map(|key| text.split_once(key))?;
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let name = rest[1..].split(quote).next()?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    (name.len() >= 3 && name.chars().all(is_name)).then_some(name)
}

/// The next word, without surrounding quotation marks and punctuation.
fn token(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(['"', '\\', '\'', ' ']);
    let end = text.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\\' | '\''));
    let word = text[..end.unwrap_or(text.len())].trim_end_matches([',', '.', ';', ')', ':']);
    (!word.is_empty()).then_some(word)
}

/// A failed connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreachable<'a> {
    /// The remote host, if the text names it.
    pub peer: Option<&'a str>,
    /// Verbatim quote of the text.
    pub quote: &'a str,
}

/// Parses a failed connection. A read timeout is not one: the request reached the peer.
pub(super) fn unreachable(text: &str) -> Option<Unreachable<'_>> {
    const PHRASES: [&str; 17] = [
        "ETIMEDOUT",
        "EHOSTUNREACH",
        "ENETUNREACH",
        "UND_ERR_CONNECT_TIMEOUT",
        "ConnectTimeoutError",
        "ConnectTimeout",
        "ConnectionTimeout",
        "Connect timeout on endpoint URL",
        "Could not connect to the endpoint URL",
        "connect timed out",
        "Connect timed out",
        "Connection timed out",
        "connection timed out",
        "Network is unreachable",
        "No route to host",
        "i/o timeout",
        "HttpConnectionTimeoutException",
    ];
    let at = PHRASES.iter().filter_map(|phrase| find(text, phrase)).min()?;
    if text[..at].ends_with("read ") {
        return None;
    }
    let start = text[..at].strip_suffix("connect ").map_or(at, str::len);
    let rest = text[at..].lines().next().unwrap_or_default();
    // In a structured line the sentence ends with its JSON string.
    let is_structured = text[..at].contains('{');
    let sentence = if is_structured { rest.split('"').next().unwrap_or(rest) } else { rest };
    let quoted = quote(&text[..at + sentence.len()], start);
    Some(Unreachable { peer: peer(rest).or_else(|| peer(&text[..at])), quote: quoted })
}

/// The first URL's host, the host that a client names, or the first `HOST:PORT`.
pub(super) fn peer(text: &str) -> Option<&str> {
    // libpq, then urllib3.
    let named = ["server at \"", "host='"].iter().find_map(|key| text.split_once(key));
    if let Some((_, rest)) = named.filter(|_| !text.contains("://")) {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-')))?;
        return (end > 0).then(|| &rest[..end]);
    }
    if let Some((_, rest)) = text.split_once("://") {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':')));
        let host = rest[..end.unwrap_or(rest.len())].trim_end_matches([':', '.']);
        return (!host.is_empty()).then_some(host);
    }
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':')))
        .map(|word| word.trim_end_matches([':', '.']))
        .find(|word| {
            word.split_once(':').is_some_and(|(host, port)| {
                host.contains('.') && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, action: Option<&str>, resource: Option<&str>) {
        let denial = denial(text).unwrap_or_else(|| panic!("no denial in {text}"));
        assert_eq!(denial.action.as_deref(), action, "{text}");
        assert_eq!(denial.resource.as_deref(), resource, "{text}");
        assert!(text.contains(&denial.quote), "{}", denial.quote);
    }

    #[test]
    fn denials_are_read_from_sdk_messages() {
        let object = Some("arn:aws:s3:::b/k");
        check(
            "[ERROR] ClientError: An error occurred (AccessDenied) when calling the GetObject operation: User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform: s3:GetObject on resource: \"arn:aws:s3:::b/k\" because no identity-based policy allows the s3:GetObject action\nTraceback",
            Some("s3:GetObject"),
            object,
        );
        check(
            r#"{"errorMessage":"User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform: s3:PutObject on resource: \"arn:aws:s3:::b/k\" because no identity-based policy allows the s3:PutObject action","name":"AccessDenied"}"#,
            Some("s3:PutObject"),
            object,
        );
        check(
            "An error occurred (AccessDenied) when calling the ListObjectsV2 operation: Access Denied",
            Some("s3:ListBucket"),
            None,
        );
        check(
            "An error occurred (403) when calling the HeadObject operation: Forbidden, s3://b/k",
            Some("s3:GetObject"),
            object,
        );
        check(
            "operation error S3: PutObject, https response error StatusCode: 403, api error AccessDenied: Access Denied",
            Some("s3:PutObject"),
            None,
        );
        check("AmazonS3Exception: Access Denied (Service: S3; Status Code: 403)", None, None);
        check(
            "An error occurred (AccessDeniedException) when calling the Frobnicate operation",
            None,
            None,
        );
    }

    #[test]
    fn a_denial_tells_the_role_and_the_reason() {
        let text = "User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform: s3:GetObject on resource: arn:aws:s3:::b/k with an explicit deny in a resource-based policy";
        let read = denial(text).unwrap();
        assert_eq!(read.role.as_deref(), Some("r"));
        assert_eq!(read.reason, Reason::ExplicitDeny);
    }

    #[test]
    fn a_quotation_has_whole_words() {
        // Found by the property test of the policy's evidence.
        for text in [
            "is not authorized to perform: \"é:x\" é",
            "XUser: a is not authorized to perform: s3:GetObject",
        ] {
            assert!(text.contains(&denial(text).unwrap().quote));
        }
        assert_eq!(
            denial("XUser: a is not authorized to perform: s3:G").unwrap().quote,
            "XUser: a is not authorized to perform: s3:G"
        );
        assert_eq!(
            unreachable("secondsconnect ETIMEDOUT").unwrap().quote,
            "secondsconnect ETIMEDOUT"
        );
    }

    #[test]
    fn a_mentioned_word_is_not_a_denial() {
        for text in [
            "stored reports/AccessDenied-2026.csv",
            "AccessDeniedReport finished",
            "user is not authorized to perform: checkout",
            "HTTP 403",
        ] {
            assert_eq!(denial(text), None, "{text}");
        }
    }

    #[test]
    fn failures_to_connect_are_read() {
        let check = |text: &str, peer: Option<&str>, quote: &str| {
            let read = unreachable(text).unwrap_or_else(|| panic!("reachable in {text}"));
            assert_eq!((read.peer, read.quote), (peer, quote), "{text}");
        };
        check(
            "t\tid\tWARN\tinventory database: connect ETIMEDOUT 10.42.17.86:5432, attempt 1 of 2",
            Some("10.42.17.86:5432"),
            "connect ETIMEDOUT 10.42.17.86:5432, attempt 1 of 2",
        );
        check(
            r#"ERROR Invoke Error {"errorMessage":"connect ETIMEDOUT 10.42.17.86:5432","code":"ETIMEDOUT"}"#,
            Some("10.42.17.86:5432"),
            "connect ETIMEDOUT 10.42.17.86:5432",
        );
        check(
            "ConnectTimeoutError: Connect timeout on endpoint URL: \"https://s3.amazonaws.com/b\"",
            Some("s3.amazonaws.com"),
            "ConnectTimeoutError: Connect timeout on endpoint URL: \"https://s3.amazonaws.com/b\"",
        );
        check("dial tcp 10.0.0.1:443: i/o timeout", Some("10.0.0.1:443"), "i/o timeout");
    }

    #[test]
    fn read_timeouts_and_refusals_reached_the_peer() {
        for text in [
            "read ETIMEDOUT",
            "connect ECONNREFUSED 10.0.0.1:5432",
            "ReadTimeoutError: Read timed out",
        ] {
            assert_eq!(unreachable(text), None, "{text}");
        }
    }
}
