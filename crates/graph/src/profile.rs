//! What an agent asks of its host besides running its graph.
//!
//! A [`Profile`] is data and pure functions: settings from the environment, how triggers are
//! deduplicated and limited, what to count and log, and which MCP servers ship with the agent. Hosts
//! know agents by their profiles alone. [`Profile::PLAIN`] serves an agent that needs none of this.

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

/// What an agent asks of its host.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Whether the agent runs when a trigger names none.
    pub is_default: bool,
    /// The environment variables that [`Self::defaults`] reads. A host passes them on to agents that
    /// run in processes of their own.
    pub variables: &'static [&'static str],
    /// Reads the environment, once, at the program's start.
    pub defaults: fn(&Environment<'_>) -> Result<Defaults, Unusable>,
    /// What makes an input the same as another one, for triggers that carry no key of their own.
    pub dedupe_key: fn(&Value) -> Option<String>,
    /// How many sessions may begin; any number if absent.
    pub rate_limit: Option<RateLimit>,
    /// The metrics that [`Self::observe`] adds to.
    pub metrics: &'static [&'static Metric],
    /// What a step that was just journaled adds to metrics, spans and the log. The run has folded it,
    /// unless it is the end. Steps that a resumed session reads again are not observed again.
    pub observe: fn(&Run, &Step<Value>) -> Observed,
    /// The MCP servers that ship with the agent.
    pub servers: &'static [Server],
}

impl Profile {
    /// The profile of an agent that asks for nothing.
    pub const PLAIN: Self = Self {
        is_default: false,
        variables: &[],
        defaults: |_| Ok(Defaults::default()),
        dedupe_key: |_| None,
        rate_limit: None,
        metrics: &[],
        observe: |_, _| Observed::default(),
        servers: &[],
    };
}

/// What the environment sets for all sessions of an agent, where their triggers set nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    /// The model, as a trigger names it.
    pub model: Option<String>,
    /// Whether the policy answers even if a trigger names a model.
    pub is_policy_only: bool,
    /// What happens when the model fails for good.
    pub on_model_failure: Option<OnModelFailure>,
    /// Limits that take precedence over the agent's own.
    pub budget: Budget,
    /// How long a tool call may take, in seconds.
    pub tool_timeout_s: Option<u32>,
    /// The agent's own options, an object or null.
    pub options: Value,
    /// The option that gets the session's id.
    pub session_option: Option<&'static str>,
}

/// How many sessions of an agent may begin in an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The number if the variable is not set.
    pub per_hour: u32,
    /// The variable that sets it.
    pub variable: Option<&'static str>,
    /// What sessions are about, in the plural, for the message of a refusal.
    pub plural: &'static str,
}

impl RateLimit {
    /// Highest limit. Each admission may read all slots of its agent.
    pub const PER_HOUR_MAX: u32 = 1_000;
}

/// The rate limits that the environment sets, by agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits(BTreeMap<&'static str, u32>);

impl Limits {
    /// Reads the variables of these agents.
    ///
    /// # Errors
    /// When one is set to something else than a whole number from 1 to [`RateLimit::PER_HOUR_MAX`].
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
        Ok(Self(limits))
    }

    /// The limits that set `per_hour` for one agent and nothing for others.
    pub fn of(agent: &'static str, per_hour: u32) -> Self {
        Self(BTreeMap::from([(agent, per_hour)]))
    }

    /// How many sessions of this agent may begin in an hour; any number if absent.
    pub fn per_hour(&self, agent: &Agent) -> Option<u32> {
        let limit = agent.profile().rate_limit?;
        Some(self.0.get(agent.name()).copied().unwrap_or(limit.per_hour))
    }
}

/// A metric.
#[derive(Debug, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub description: &'static str,
}

/// How a metric adds up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
    /// A sum of whole numbers.
    Counter,
    /// A histogram of seconds, in the host's buckets.
    Seconds,
    /// A histogram of counts, in buckets with these upper bounds.
    Histogram(&'static [f64]),
}

/// What a step adds to metrics, spans and the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    pub samples: Vec<Sample>,
    /// Attributes of the span of the step's effect: texts, whole numbers and flags.
    pub attributes: Vec<(&'static str, Value)>,
    /// Objects that are logged, each on a line of its own. Payloads do not belong into logs; an agent
    /// whose specification asks for one says so.
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

/// An MCP server that ships: the program `daybook mcp NAME`.
#[derive(Debug, PartialEq, Eq)]
pub struct Server {
    pub name: &'static str,
    /// Options whose values are texts of the session's input: the field and the option.
    pub options: &'static [(&'static str, &'static str)],
    /// How it reads the account that the host runs in.
    pub in_account: Option<InAccount>,
    /// The option that names the folder for what outlives the server's process.
    pub state_option: Option<&'static str>,
}

/// How a server reads the account that its host runs in. It gets the host's credentials.
#[derive(Debug, PartialEq, Eq)]
pub struct InAccount {
    /// The argument that asks for it.
    pub argument: &'static str,
    /// The field of the session's input that names data to read instead.
    pub unless: &'static str,
}

/// The environment of a program, as its agents may read it.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    folder: Option<&'a ReadFolder<'a>>,
}

/// Reads files of a folder.
pub type ReadFolder<'a> = dyn Fn(&FolderQuery<'_>) -> Result<Vec<TextFile>, Unreadable> + 'a;

/// Which files of a folder are read.
#[derive(Clone, Copy, Debug)]
pub struct FolderQuery<'a> {
    pub folder: &'a Path,
    /// The ending of the files' names, without the dot.
    pub extension: &'static str,
    /// Most files; further ones are left out.
    pub files_max: usize,
    /// Most bytes of a file; what follows is cut off.
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

/// Why an environment cannot be used. The program stops before its first request.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// A variable has a value that it does not take.
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
    #[error("{} is no {what}: {problem}", path.display())]
    Malformed { what: &'static str, path: PathBuf, problem: String },
}

impl<'a> Environment<'a> {
    /// An environment without variables.
    pub const EMPTY: Environment<'static> = Environment { variable: &|_: &str| None, folder: None };

    /// An environment with these variables, which reads no files.
    pub fn of(variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { variable, folder: None }
    }

    /// The same, which reads files like this.
    #[must_use]
    pub fn with_folders(self, folder: &'a ReadFolder<'a>) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// A variable's value, if it is set and not empty.
    pub fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// What `read` makes of a variable's value, if it is set.
    ///
    /// # Errors
    /// When `read` makes nothing of it.
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

    /// A whole number within bounds, if it is set.
    ///
    /// # Errors
    /// When it is set to something else.
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
    /// When it is set to something else than `true` and `false`.
    pub fn flag(&self, name: &'static str) -> Result<Option<bool>, Unusable> {
        self.read(name, "true or false", |text| text.parse().ok())
    }

    /// Files of a folder, by name. `what` says in the plural what they should be.
    ///
    /// # Errors
    /// When the folder or a file cannot be read.
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
