//! An agent's requirements of its host, besides running its graph.
//!
//! A [`Profile`] consists of data and pure functions: settings from the environment, deduplication and
//! rate limit of triggers, metrics and log lines, and the agent's MCP servers. Hosts know agents only by
//! their profiles. [`Profile::PLAIN`] is for agents that need none of this.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use journal::step::Step;
use serde_json::Value;

use crate::agent::{Agent, OnModelFailure};
use crate::budget::Budget;
use crate::run::Run;

/// An agent's requirements of its host.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Whether the agent runs when a trigger names none.
    pub is_default: bool,
    /// The environment variables that [`Self::defaults`] reads. A host passes them on to agents that
    /// run in processes of their own.
    pub variables: &'static [&'static str],
    /// Reads the environment, once, at startup.
    pub defaults: fn(&Environment<'_>) -> Result<Defaults, Unusable>,
    /// Derives the deduplication key from the input, for triggers without a key.
    pub dedupe_key: fn(&Value) -> Option<String>,
    /// Which triggers attach to an earlier session; none if absent.
    pub repeats: Option<Repeats>,
    /// Masks the input, and each result of a tool, before the journal and a model get it. Gets the
    /// session's options; null for a trigger that has no session yet.
    pub mask: fn(&Value, &mut Value),
    /// The rate limit; unlimited if absent.
    pub rate_limit: Option<RateLimit>,
    /// The metrics that [`Self::observe`] records.
    pub metrics: &'static [&'static Metric],
    /// Metrics, span attributes and log lines for a step that was just journaled. The run has folded it,
    /// unless it is the end. Steps that a resumed session reads again are not observed again.
    pub observe: fn(&Run, &Step<Value>) -> Observed,
    /// The MCP servers that ship with the agent.
    pub servers: &'static [Server],
}

impl Profile {
    /// The profile of an agent without requirements.
    pub const PLAIN: Self = Self {
        is_default: false,
        variables: &[],
        defaults: |_| Ok(Defaults::default()),
        dedupe_key: |_| None,
        repeats: None,
        mask: |_, _| {},
        rate_limit: None,
        metrics: &[],
        observe: |_, _| Observed::default(),
        servers: &[],
    };
}

/// Triggers about one subject within a window are one: the first has a session, the others name it.
#[derive(Clone, Copy, Debug)]
pub struct Repeats {
    /// The subject of an input.
    pub subject: fn(&Value) -> Option<String>,
    /// The window after the first, in seconds.
    pub window_s: u64,
}

/// Defaults from the environment for an agent's sessions; a trigger overrides them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    /// The model, as a trigger names it.
    pub model: Option<String>,
    /// Whether the policy answers even if a trigger names a model.
    pub is_policy_only: bool,
    /// The reaction to a model that fails permanently.
    pub on_model_failure: Option<OnModelFailure>,
    /// Limits that take precedence over the agent's own.
    pub budget: Budget,
    /// The most tokens and seconds that a trigger may ask for. Those that the environment sets in
    /// `budget` are such limits, too.
    pub ceiling: Budget,
    /// Timeout of a tool call, in seconds.
    pub tool_timeout_s: Option<u32>,
    /// The agent's own options, an object or null.
    pub options: Value,
    /// The option that gets the session's id.
    pub session_option: Option<&'static str>,
}

/// The rate limit of an agent: sessions per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The limit if the variable is not set.
    pub per_hour: u32,
    /// The environment variable that overrides it.
    pub variable: Option<&'static str>,
    /// The subject of the sessions, in the plural, for the error message.
    pub plural: &'static str,
}

impl RateLimit {
    /// Highest limit. Each admission may read all slots of its agent.
    pub const PER_HOUR_MAX: u32 = 1_000;
}

/// The rate limits that the environment sets, by agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    set: BTreeMap<&'static str, u32>,
    is_off: bool,
}

impl Limits {
    /// Reads the variables of these agents.
    ///
    /// # Errors
    /// If a value is not a whole number from 1 to [`RateLimit::PER_HOUR_MAX`].
    pub fn read(agents: &[Agent], environment: &Environment<'_>) -> Result<Self, Unusable> {
        let mut limits = BTreeMap::new();
        for agent in agents {
            let Some(name) = agent.profile().rate_limit.and_then(|limit| limit.variable) else {
                continue;
            };
            let range = 1..=u64::from(RateLimit::PER_HOUR_MAX);
            let expected = "a whole number from 1 to 1000";
            if let Some(number) = environment.whole_number(name, range, expected)? {
                limits.insert(agent.name(), u32::try_from(number).unwrap_or(u32::MAX));
            }
        }
        Ok(Self { set: limits, is_off: false })
    }

    /// A limit for one agent only.
    pub fn of(agent: &'static str, per_hour: u32) -> Self {
        Self { set: BTreeMap::from([(agent, per_hour)]), is_off: false }
    }

    /// No limit for any agent, for an evaluation.
    pub fn off() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    /// The sessions per hour of this agent; `None` if unlimited.
    pub fn per_hour(&self, agent: &Agent) -> Option<u32> {
        let limit = agent.profile().rate_limit.filter(|_| !self.is_off)?;
        Some(self.set.get(agent.name()).copied().unwrap_or(limit.per_hour))
    }
}

#[derive(Debug, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub description: &'static str,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
    /// A sum of whole numbers.
    Counter,
    /// A histogram of seconds, in the host's buckets.
    Seconds,
    /// A histogram of counts, in buckets with these upper bounds.
    Histogram(&'static [f64]),
}

/// Metrics, span attributes and log lines for a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    pub samples: Vec<Sample>,
    /// Attributes of the effect's span: strings, integers and booleans.
    pub attributes: Vec<(&'static str, Value)>,
    /// Objects to log, one per line. They contain no payloads, unless the agent's specification requires
    /// it.
    pub log: Vec<Value>,
}

/// An observation of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub metric: &'static Metric,
    /// Values are from closed sets, never from input.
    pub labels: Vec<(&'static str, String)>,
    pub value: f64,
}

/// A bundled MCP server: `daybook mcp NAME`.
#[derive(Debug, PartialEq, Eq)]
pub struct Server {
    pub name: &'static str,
    /// Options from fields of the session's input, as pairs of field and option. Each field names a file
    /// or a folder, which the host must allow, or an `http` URL.
    pub options: &'static [(&'static str, &'static str)],
    /// Its access to the host's AWS account, if it supports that.
    pub in_account: Option<InAccount>,
    /// The option with the folder for state that outlives the server's process.
    pub state_option: Option<&'static str>,
}

/// A server's access to the host's AWS account, with the host's credentials.
#[derive(Debug, PartialEq, Eq)]
pub struct InAccount {
    /// The argument that enables it.
    pub argument: &'static str,
    /// The field of the session's input that names another source, which disables it.
    pub unless: &'static str,
}

/// A program's environment, as agents may read it.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    folder: Option<&'a ReadFolder<'a>>,
}

/// Reads files of a folder.
pub type ReadFolder<'a> = dyn Fn(&FolderQuery<'_>) -> Result<Vec<TextFile>, Unreadable> + 'a;

/// The files of a folder to read.
#[derive(Clone, Copy, Debug)]
pub struct FolderQuery<'a> {
    pub folder: &'a Path,
    /// The file name extension, without the dot.
    pub extension: &'static str,
    /// Most files; further ones are ignored.
    pub files_max: usize,
    /// Most bytes of a file; the rest is truncated.
    pub file_bytes_max: u64,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    pub path: PathBuf,
    pub text: String,
}

/// A folder or file that cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    pub path: PathBuf,
    pub source: io::Error,
}

/// The environment is invalid. The program stops before its first request.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// A variable has an invalid value.
    #[error("{name} is `{value}`, expected {expected}")]
    Variable { name: &'static str, value: String, expected: &'static str },
    /// A folder, or a file in it, cannot be read.
    #[error("cannot read the {what} in {}", path.display())]
    Unreadable {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} is not a valid {what}: {problem}", path.display())]
    Malformed { what: &'static str, path: PathBuf, problem: String },
}

impl<'a> Environment<'a> {
    /// An environment without variables.
    pub const EMPTY: Environment<'static> = Environment { variable: &|_: &str| None, folder: None };

    /// An environment with these variables, which reads no files.
    pub fn of(variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { variable, folder: None }
    }

    /// Sets the function that reads files.
    #[must_use]
    pub fn with_folders(self, folder: &'a ReadFolder<'a>) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// A variable's value, if it is set and not empty.
    pub fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// Parses a variable's value with `read`, if it is set.
    ///
    /// # Errors
    /// If `read` returns `None`.
    pub fn read<T>(
        &self,
        name: &'static str,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Unusable> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match read(&value) {
            Some(read) => Ok(Some(read)),
            None => Err(Unusable::Variable { name, value, expected }),
        }
    }

    /// A whole number within a range, if it is set.
    ///
    /// # Errors
    /// If the value is anything else.
    pub fn whole_number(
        &self,
        name: &'static str,
        range: RangeInclusive<u64>,
        expected: &'static str,
    ) -> Result<Option<u64>, Unusable> {
        self.read(name, expected, |text| text.parse().ok().filter(|number| range.contains(number)))
    }

    /// A flag, if it is set.
    ///
    /// # Errors
    /// If the value is neither `true` nor `false`.
    pub fn flag(&self, name: &'static str) -> Result<Option<bool>, Unusable> {
        self.read(name, "true or false", |text| text.parse().ok())
    }

    /// The files of a folder, sorted by name. `what` names them in errors, in the plural.
    ///
    /// # Errors
    /// If the folder or a file cannot be read.
    pub fn files(
        &self,
        what: &'static str,
        query: &FolderQuery<'_>,
    ) -> Result<Vec<TextFile>, Unusable> {
        let read = self.folder.map_or_else(
            || {
                let source = io::ErrorKind::Unsupported.into();
                Err(Unreadable { path: query.folder.to_owned(), source })
            },
            |read| read(query),
        );
        read.map_err(|Unreadable { path, source }| Unusable::Unreadable { what, path, source })
    }
}

impl fmt::Debug for Environment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}

/// The agent that runs when a trigger names none.
pub fn default_agent(agents: &[Agent]) -> Option<&Agent> {
    agents.iter().find(|agent| agent.profile().is_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Attempts, Finish, Graph, Route, Scope};
    use crate::effect::Reply;

    static GRAPH: Graph<()> = Graph {
        name: "own",
        version: "1",
        summary: "Ends.",
        start: "end",
        nodes: &[],
        init: |_, _| Ok(()),
        budget: Budget::UNLIMITED,
        scope: Scope::Session,
        on_limit: |(), _| Route::End(Finish::Completed(Value::Null)),
        on_limit_to: &[],
        policy: |(), _| Reply::says(""),
        attempts: Attempts::DEFAULT,
        at_most_once: &[],
        critical: &[],
        servers: &[],
        tool_timeout_s: 1,
    };

    static PROFILE: Profile = Profile {
        is_default: true,
        rate_limit: Some(RateLimit {
            per_hour: 7,
            variable: Some("OWN_PER_HOUR"),
            plural: "things",
        }),
        ..Profile::PLAIN
    };

    #[test]
    fn an_agent_without_a_profile_asks_for_nothing() {
        let plain = Agent::of(&GRAPH);
        let profile = plain.profile();
        assert_eq!((profile.defaults)(&Environment::EMPTY).unwrap(), Defaults::default());
        assert_eq!((profile.dedupe_key)(&Value::Null), None);
        assert_eq!(Limits::default().per_hour(&plain), None);
        assert!(default_agent(std::slice::from_ref(&plain)).is_none());
        let named = [plain, Agent::of(&GRAPH).with_profile(&PROFILE)];
        assert!(std::ptr::eq(default_agent(&named).unwrap(), &named[1]));
    }

    #[test]
    fn a_rate_limit_is_a_whole_number_from_one() {
        let agent = Agent::of(&GRAPH).with_profile(&PROFILE);
        let agents = [agent.clone()];
        let set = |value: &str| {
            let lookup = |name: &str| (name == "OWN_PER_HOUR").then(|| value.to_owned());
            Limits::read(&agents, &Environment::of(&lookup)).map(|limits| limits.per_hour(&agent))
        };
        assert_eq!(set("").unwrap(), Some(7));
        assert_eq!(set("20").unwrap(), Some(20));
        for wrong in ["0", "1001", "-1", "many"] {
            let expected =
                format!("OWN_PER_HOUR is `{wrong}`, expected a whole number from 1 to 1000");
            assert_eq!(set(wrong).unwrap_err().to_string(), expected);
        }
    }
}
