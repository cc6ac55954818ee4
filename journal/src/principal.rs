//! Who acted on a session, as far as the component that wrote the record could know.
//!
//! A principal is part of a hashed record: the step of an answer or of a move to another version, and
//! the events of a trigger, a cancellation and a resumption. It comes from the request's channel, never
//! from its body.

use std::fmt;
use std::str::FromStr;

use crate::item::{Item, ItemError};
use crate::key::attribute::PRINCIPAL;

/// Longest name of a principal, in characters.
///
/// Source: AWS, "IAM and AWS STS quotas": no ARN of a principal is longer.
pub const NAME_CHARS_MAX: usize = 2048;

/// Who answered, cancelled, resumed or triggered.
///
/// As text `os-user:NAME`, `token:NAME`, `aws-arn:ARN`, `service:NAME` or `unknown`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// A user of the operating system, stated by the client. Loopback TCP does not prove it.
    OsUser(Name),
    /// The holder of a stack's token, by the token's name. The stack checked the token.
    Token(Name),
    /// The caller's ARN. AWS checked the request's signature.
    AwsArn(Name),
    /// A component of Daybook that acted by itself.
    Service(Name),
    /// The channel says nothing about its caller.
    Unknown,
}

/// A principal's name: 1 to [`NAME_CHARS_MAX`] visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(String);

/// A text that is no principal, or no name of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("expected 1 to {NAME_CHARS_MAX} visible ASCII characters")]
    Name,
    #[error("expected os-user:NAME, token:NAME, aws-arn:ARN, service:NAME or unknown")]
    Kind,
}

const OS_USER: &str = "os-user";
const TOKEN: &str = "token";
const AWS_ARN: &str = "aws-arn";
const SERVICE: &str = "service";
const UNKNOWN: &str = "unknown";

impl Principal {
    /// A component of Daybook.
    pub fn service(name: crate::event::Writer) -> Self {
        Self::Service(Name(name.as_str().to_owned()))
    }

    /// The principal that a step names; `None` if it names none.
    pub(crate) fn read_from(item: &Item) -> Result<Option<Self>, ItemError> {
        let named = item.text_opt(PRINCIPAL).map(str::parse).transpose();
        named.map_err(|_| item.malformed(PRINCIPAL, "a principal"))
    }

    pub const fn kind(&self) -> &'static str {
        match self {
            Self::OsUser(_) => OS_USER,
            Self::Token(_) => TOKEN,
            Self::AwsArn(_) => AWS_ARN,
            Self::Service(_) => SERVICE,
            Self::Unknown => UNKNOWN,
        }
    }

    pub fn name(&self) -> Option<&str> {
        match self {
            Self::OsUser(name) | Self::Token(name) | Self::AwsArn(name) | Self::Service(name) => {
                Some(name.as_str())
            }
            Self::Unknown => None,
        }
    }

    /// Who checked the name; `None` if the client only stated it, or there is none.
    pub const fn vouched_by(&self) -> Option<&'static str> {
        match self {
            Self::OsUser(_) | Self::Unknown => None,
            Self::Token(_) => Some("stack"),
            Self::AwsArn(_) => Some("aws"),
            Self::Service(_) => Some("daybook"),
        }
    }

    /// For people: `alice (OS user, stated)`.
    pub fn describe(&self) -> String {
        match self {
            Self::OsUser(name) => format!("{name} (OS user, stated)"),
            Self::Token(name) => format!("{name} (token)"),
            Self::AwsArn(name) => name.to_string(),
            Self::Service(name) => format!("{name} (service)"),
            Self::Unknown => UNKNOWN.to_owned(),
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{}:{name}", self.kind()),
            None => f.write_str(self.kind()),
        }
    }
}

impl FromStr for Principal {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text == UNKNOWN {
            return Ok(Self::Unknown);
        }
        let (kind, name) = text.split_once(':').ok_or(Invalid::Kind)?;
        let of: fn(Name) -> Self = match kind {
            OS_USER => Self::OsUser,
            TOKEN => Self::Token,
            AWS_ARN => Self::AwsArn,
            SERVICE => Self::Service,
            _ => return Err(Invalid::Kind),
        };
        Ok(of(name.parse()?))
    }
}

impl Name {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let fits = (1..=NAME_CHARS_MAX).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Invalid::Name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_is_read_as_it_was_written() {
        let arn = "aws-arn:arn:aws:sts::123456789012:assumed-role/Ops/alice@example.com";
        for (text, description, vouched_by) in [
            ("os-user:alice", "alice (OS user, stated)", None),
            ("token:ci", "ci (token)", Some("stack")),
            (arn, "arn:aws:sts::123456789012:assumed-role/Ops/alice@example.com", Some("aws")),
            ("service:poller", "poller (service)", Some("daybook")),
            ("unknown", "unknown", None),
        ] {
            let principal: Principal = text.parse().unwrap();
            assert_eq!(principal.to_string(), text);
            assert_eq!(principal.describe(), description);
            assert_eq!(principal.vouched_by(), vouched_by, "{text}");
        }
    }

    #[test]
    fn another_text_is_no_principal() {
        let long = format!("token:{}", "n".repeat(NAME_CHARS_MAX + 1));
        for text in [
            "",
            "alice",
            "root:alice",
            "os-user:",
            "os-user:a b",
            "token:a\u{202e}b",
            "token:\u{3164}",
            &long,
        ] {
            assert!(text.parse::<Principal>().is_err(), "{text}");
        }
    }
}
