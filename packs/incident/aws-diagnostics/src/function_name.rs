//! The validated argument of every tool.

use std::fmt;

use serde::Deserialize;

/// Longest function name, in characters.
///
/// Source: AWS Lambda API reference, `CreateFunction`, FunctionName.
pub(super) const FUNCTION_NAME_CHARS_MAX: usize = 64;

/// Digits of an AWS account id.
const ACCOUNT_DIGITS: usize = 12;

/// The regular expression of [`FunctionName`], for the published schema.
pub(super) const FUNCTION_NAME_PATTERN: &str = "^[A-Za-z0-9_-]{1,64}$|^arn:aws[a-z-]*:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]{1,64}(:[$A-Za-z0-9_-]+)?$";

/// Name of a Lambda function, without its ARN.
///
/// It becomes part of a path, so its alphabet keeps callers inside the folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct FunctionName(String);

#[derive(Debug, thiserror::Error)]
#[error(
    "lambda_name must be a function name (1 to 64 letters, digits, - or _) or a function ARN, not {0:?}"
)]
pub(super) struct NotAFunctionName(String);

impl FunctionName {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    fn is_valid(name: &str) -> bool {
        name.len() <= FUNCTION_NAME_CHARS_MAX
            && of(name, |b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    }
}

impl TryFrom<String> for FunctionName {
    type Error = NotAFunctionName;

    /// Accepts a name, or a full function ARN with or without a version or alias.
    fn try_from(text: String) -> Result<Self, NotAFunctionName> {
        let name = name_in_arn(&text).unwrap_or(&text);
        if Self::is_valid(name) {
            Ok(Self(name.to_owned()))
        } else {
            // Shortened: the caller may have sent a text of any length.
            Err(NotAFunctionName(text.chars().take(2 * FUNCTION_NAME_CHARS_MAX).collect()))
        }
    }
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name in `arn:aws:lambda:REGION:ACCOUNT:function:NAME[:QUALIFIER]`.
fn name_in_arn(text: &str) -> Option<&str> {
    let parts: Vec<&str> = text.split(':').collect();
    let (partition, region, account, name, qualifier) = match parts[..] {
        ["arn", partition, "lambda", region, account, "function", name] => {
            (partition, region, account, name, "live")
        }
        ["arn", partition, "lambda", region, account, "function", name, qualifier] => {
            (partition, region, account, name, qualifier)
        }
        _ => return None,
    };
    let is_an_arn = partition
        .strip_prefix("aws")
        .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'))
        && of(region, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && of(account, |b| b.is_ascii_digit())
        && account.len() == ACCOUNT_DIGITS
        && of(qualifier, |b| b.is_ascii_alphanumeric() || b"$-_".contains(&b));
    is_an_arn.then_some(name)
}

/// Whether a text is not empty and has only bytes of this alphabet.
fn of(text: &str, alphabet: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(alphabet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let name = FunctionName::try_from(text.to_owned()).ok();
        assert_eq!(name.as_ref().map(FunctionName::as_str), expected, "{text:?}");
    }

    #[test]
    fn a_name_or_a_full_arn_names_a_function() {
        check("data-processor", Some("data-processor"));
        check("Data_Processor-2", Some("Data_Processor-2"));
        check(&"x".repeat(64), Some(&"x".repeat(64)));
        let arn = "arn:aws:lambda:ca-central-1:123456789012:function:data-processor";
        check(arn, Some("data-processor"));
        check(&format!("{arn}:$LATEST"), Some("data-processor"));
        check(&format!("{arn}:live"), Some("data-processor"));
        check(&arn.replace("aws:l", "aws-us-gov:l"), Some("data-processor"));
    }

    #[test]
    fn nothing_else_names_a_function() {
        for text in [
            "",
            " ",
            ".",
            "..",
            "../data-processor",
            "/etc/passwd",
            "a/b",
            "a\\b",
            "a.b",
            "a b",
            "a\0b",
            "a:b",
            "données",
            "arn:aws:lambda:ca-central-1:123456789012:function:",
            "arn:aws:lambda:ca-central-1:123456789012:function:../x",
            "arn:aws:lambda:ca-central-1:123456789012:function:a:b:c",
            "arn:aws:lambda:ca-central-1:12345:function:a",
            "arn:aws:s3:::bucket",
        ] {
            check(text, None);
        }
        check(&"x".repeat(65), None);
    }

    #[test]
    fn a_refusal_does_not_repeat_a_megabyte() {
        let refused = FunctionName::try_from("x".repeat(1 << 20)).unwrap_err();
        assert!(refused.to_string().len() < 300);
    }
}
