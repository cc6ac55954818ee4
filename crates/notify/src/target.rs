//! The notify file: the targets, and what each of them wants to know.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;

use crate::notice::Why;
use crate::signature::{InvalidSecret, Secret};

/// Most targets of one stack.
pub const TARGETS_MAX: usize = 20;

/// Longest name of a target, in characters.
pub const NAME_CHARS_MAX: usize = 40;

/// Who wants to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The base of links to sessions, without a trailing slash; `None` for the stack's own address.
    pub link: Option<String>,
    pub targets: Vec<Target>,
}

#[derive(Clone, Debug)]
pub struct Target {
    /// Journaled with each attempt. A renamed target is another one.
    pub name: String,
    pub kind: Kind,
    /// What it wants to know.
    pub on: BTreeSet<Why>,
    /// The agents that it wants to know of; `None` for all.
    pub agents: Option<BTreeSet<String>>,
}

#[derive(Clone)]
pub enum Kind {
    Webhook {
        /// May hold a secret: never logged, never journaled.
        url: String,
        secret: Secret,
    },
    /// An event on the stack's own bus.
    EventBridge,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Kind {
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Webhook { .. } => "webhook",
            Self::EventBridge => "eventbridge",
        }
    }
}

/// Why a notify file is invalid.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    #[error("it is not of the form {{\"targets\": [{{\"name\", \"kind\", …}}]}}: {0}")]
    Form(#[from] serde_json::Error),
    #[error("it has {0} targets, expected 1 to {TARGETS_MAX}")]
    Count(usize),
    #[error(
        "invalid target name `{0}`: expected 1 to {NAME_CHARS_MAX} lower-case letters, digits and hyphens"
    )]
    Name(String),
    #[error("two targets have the name `{0}`")]
    Twice(String),
    #[error("target `{name}`: {why}")]
    Target { name: String, why: String },
    #[error("target `{name}`: the variable {variable} {problem}")]
    Secret { name: String, variable: String, problem: InvalidSecret },
    #[error("invalid link `{0}`: expected an http or https URL")]
    Link(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    link: Option<String>,
    targets: Vec<WrittenTarget>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTarget {
    name: String,
    kind: String,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    secret_env: Option<String>,
    #[serde(default)]
    on: Option<BTreeSet<Why>>,
    #[serde(default)]
    agents: Option<BTreeSet<String>>,
}

impl Settings {
    /// Reads a notify file. `lookup` reads the variables that hold the secrets.
    ///
    /// # Errors
    /// The text is invalid, or a secret is missing.
    pub fn parse(text: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let written: Written = serde_json::from_str(text)?;
        if !(1..=TARGETS_MAX).contains(&written.targets.len()) {
            return Err(Invalid::Count(written.targets.len()));
        }
        let link = written.link.map(|link| link.trim_end_matches('/').to_owned());
        if let Some(link) = link.as_deref().filter(|link| !is_url(link)) {
            return Err(Invalid::Link(link.to_owned()));
        }
        let mut names = BTreeSet::new();
        let mut targets = Vec::new();
        for written in written.targets {
            let target = target(written, &lookup)?;
            if !names.insert(target.name.clone()) {
                return Err(Invalid::Twice(target.name));
            }
            targets.push(target);
        }
        Ok(Self { link, targets })
    }

    /// The names of the targets.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.targets.iter().map(|target| target.name.as_str())
    }
}

impl Target {
    /// Whether it wants to know this of this agent's sessions. Of a session whose agent is not known, every target does.
    pub fn wants(&self, why: Why, agent: Option<&str>) -> bool {
        let is_wanted =
            |agents: &BTreeSet<String>| agent.is_none_or(|agent| agents.contains(agent));
        self.on.contains(&why) && self.agents.as_ref().is_none_or(is_wanted)
    }
}

fn target(
    written: WrittenTarget,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Target, Invalid> {
    let WrittenTarget { name, kind, url, secret_env, on, agents } = written;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(1..=NAME_CHARS_MAX).contains(&name.len()) || !name.chars().all(is_plain) {
        return Err(Invalid::Name(name));
    }
    let wrong = |why: &str| Invalid::Target { name: name.clone(), why: why.to_owned() };
    let kind = match kind.as_str() {
        "webhook" => {
            let url = url.filter(|url| is_url(url));
            let url = url.ok_or_else(|| wrong("a webhook needs `url`, an http or https URL"))?;
            let variable = secret_env.ok_or_else(|| {
                wrong("a webhook needs `secret_env`, the name of the variable with its secret")
            })?;
            let secret = lookup(&variable).ok_or(InvalidSecret::Unset);
            let secret = secret.and_then(|text| text.parse());
            let secret = secret.map_err(|problem| Invalid::Secret {
                name: name.clone(),
                variable,
                problem,
            })?;
            Kind::Webhook { url, secret }
        }
        "eventbridge" if url.is_some() || secret_env.is_some() => {
            return Err(wrong("`url` and `secret_env` belong to a webhook"));
        }
        "eventbridge" => Kind::EventBridge,
        "sns" => {
            return Err(wrong(
                "kind `sns` is a rule of EventBridge: use `eventbridge`, and a rule that sends its events to the topic",
            ));
        }
        _ => return Err(wrong("expected kind `webhook` or `eventbridge`")),
    };
    let on = on.unwrap_or_else(|| Why::ALL.into());
    if on.is_empty() {
        return Err(wrong("`on` is empty, so it would never be told anything"));
    }
    Ok(Target { name, kind, on, agents })
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        !rest.is_empty() && !rest.starts_with('/') && !text.contains(char::is_whitespace)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn lookup(name: &str) -> Option<String> {
        match name {
            "HOOK" => Some(SECRET.to_owned()),
            "SHORT" => Some("whsec_c2hvcnQ=".to_owned()),
            _ => None,
        }
    }

    fn parse(text: &str) -> Result<Settings, String> {
        Settings::parse(text, lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_names_targets_and_what_they_want() {
        let settings = parse(
            r#"{"link": "https://daybook.example/", "targets": [
                {"name": "pager", "kind": "webhook", "url": "https://h.example/x?k=1", "secret_env": "HOOK",
                 "on": ["question", "failure"], "agents": ["incident"]},
                {"name": "bus", "kind": "eventbridge"}]}"#,
        )
        .unwrap();
        assert_eq!(settings.link.as_deref(), Some("https://daybook.example"));
        let [pager, bus] = &settings.targets[..] else { panic!("{settings:?}") };
        for (why, agent, expected) in [
            (Why::Question, Some("incident"), true),
            (Why::Question, Some("fraud"), false),
            (Why::Failure, None, true),
            (Why::Diagnosis, Some("incident"), false),
        ] {
            assert_eq!(pager.wants(why, agent), expected, "{why:?} {agent:?}");
            assert!(bus.wants(why, agent));
        }
        let shown = format!("{settings:?}");
        assert!(!shown.contains("h.example") && !shown.contains("whsec"), "{shown}");
    }

    #[test]
    fn a_wrong_file_names_the_target_and_the_reason() {
        for (targets, expected) in [
            (r"", "it has 0 targets"),
            (r#"{"name": "A b", "kind": "eventbridge"}"#, "invalid target name `A b`"),
            (r#"{"name": "a", "kind": "sns"}"#, "is a rule of EventBridge"),
            (r#"{"name": "a", "kind": "mail"}"#, "target `a`: expected kind"),
            (r#"{"name": "a", "kind": "webhook", "url": "h.example"}"#, "needs `url`"),
            (r#"{"name": "a", "kind": "webhook", "url": "https://h"}"#, "needs `secret_env`"),
            (
                r#"{"name": "a", "kind": "webhook", "url": "https://h", "secret_env": "NONE"}"#,
                "the variable NONE is not set",
            ),
            (
                r#"{"name": "a", "kind": "webhook", "url": "https://h", "secret_env": "SHORT"}"#,
                "the variable SHORT has no secret of 24 to 64 bytes",
            ),
            (r#"{"name": "a", "kind": "eventbridge", "on": []}"#, "`on` is empty"),
            (r#"{"name": "a", "kind": "eventbridge", "on": ["success"]}"#, "unknown variant"),
            (r#"{"name": "a", "kind": "eventbridge", "agent": ["x"]}"#, "unknown field"),
            (
                r#"{"name": "a", "kind": "eventbridge"}, {"name": "a", "kind": "eventbridge"}"#,
                "two targets have the name `a`",
            ),
        ] {
            let error = parse(&format!("{{\"targets\": [{targets}]}}")).unwrap_err();
            assert!(error.contains(expected), "{targets}: {error}");
            assert!(!error.contains("c2hvcnQ"), "{error}");
        }
    }
}
