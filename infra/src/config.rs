//! The stack's settings, read from the CDK's context and validated.

mod forms;

use graph::profile::RateLimit;
use incident::profile::INCIDENTS_PER_HOUR;
use jsii::Value;
use workflow::env;
use workflow::limits::{TTL_DAYS, TTL_DAYS_MIN};

use crate::cdk::aws_logs::RetentionDays;
use crate::variables;
use forms::{
    is_agent, is_email, is_link, is_log_group, is_model, is_name, is_parameter, is_person, is_stage,
};

/// The names of all settings: those of the stack, and the agent's variables.
pub fn names() -> Vec<&'static str> {
    NAMES.iter().copied().chain(variables::names()).collect()
}

const NAMES: &[&str] = &[
    STAGE,
    BUS,
    CREATE_BUS,
    IMAGE_TAG,
    FUNCTIONS,
    ARCHITECTURE,
    MEMORY,
    LOG_DAYS,
    TTL,
    PER_HOUR,
    IDLE,
    MODEL,
    API_KEY,
    OPENAI_KEY,
    DIAGNOSTICS,
    LOG_GROUPS,
    MCP_SERVERS,
    PEOPLE,
    FUNCTION_ALARMS,
    ALARM_EMAIL,
    SCHEDULE_HOURS,
    SCHEDULE_AGENT,
    WARM_WRITES,
    CHECKPOINT_LOCK,
    PROTECT,
    NOTIFY,
    LINK,
];

const STAGE: &str = "stage";
const BUS: &str = "bus";
const CREATE_BUS: &str = "createBus";
const IMAGE_TAG: &str = "imageTag";
const FUNCTIONS: &str = "functions";
const ARCHITECTURE: &str = "architecture";
const MEMORY: &str = "functionMemoryMb";
const LOG_DAYS: &str = "logRetentionDays";
const TTL: &str = "journalTtlDays";
const PER_HOUR: &str = "incidentsPerHour";
const IDLE: &str = "idleSeconds";
const MODEL: &str = "model";
const API_KEY: &str = "mcpApiKeyParameter";
const OPENAI_KEY: &str = "openaiApiKeyParameter";
const DIAGNOSTICS: &str = "diagnostics";
const LOG_GROUPS: &str = "logGroups";
const MCP_SERVERS: &str = "mcpServers";
const PEOPLE: &str = "people";
const FUNCTION_ALARMS: &str = "functionAlarms";
const ALARM_EMAIL: &str = "alarmEmail";
const SCHEDULE_HOURS: &str = "scheduleHours";
const SCHEDULE_AGENT: &str = "scheduleAgent";
const WARM_WRITES: &str = "warmWriteUnits";
const CHECKPOINT_LOCK: &str = "checkpointLock";
const PROTECT: &str = "protect";
const NOTIFY: &str = "notify";
const LINK: &str = "link";

/// Longest stage name. With prefix and suffix the longest name stays within 64 characters, the
/// limit for functions and roles.
const STAGE_CHARS_MAX: usize = 20;

/// The account's default bus.
pub const DEFAULT_BUS: &str = "default";

/// The default parameter with the MCP servers' key.
///
/// Source: the incident specification, section 7.
const API_KEY_PARAMETER: &str = "/incident-response/mcp-api-key";

const LOG_GROUPS_FORM: &str =
    "prefixes of log groups with commas between them, each of A-Z, a-z, 0-9, ., _, -, / and #";

const PEOPLE_FORM: &str =
    "ARNs of IAM roles and users with commas between them; * matches any text";

const PARAMETER_FORM: &str = "a parameter's full name: /, then A-Z, a-z, 0-9, ., _, - and /";

/// Default log retention, in days.
const LOG_DAYS_DEFAULT: u32 = 90;

/// The retentions that CloudWatch Logs supports, in days.
///
/// Source: AWS, CloudWatch Logs API reference, `PutRetentionPolicy`.
const RETENTIONS: &[(u32, RetentionDays)] = &[
    (1, RetentionDays::OneDay),
    (3, RetentionDays::ThreeDays),
    (5, RetentionDays::FiveDays),
    (7, RetentionDays::OneWeek),
    (14, RetentionDays::TwoWeeks),
    (30, RetentionDays::OneMonth),
    (60, RetentionDays::TwoMonths),
    (90, RetentionDays::ThreeMonths),
    (120, RetentionDays::FourMonths),
    (150, RetentionDays::FiveMonths),
    (180, RetentionDays::SixMonths),
    (365, RetentionDays::OneYear),
    (400, RetentionDays::ThirteenMonths),
    (545, RetentionDays::EighteenMonths),
    (731, RetentionDays::TwoYears),
    (1_827, RetentionDays::FiveYears),
    (3_653, RetentionDays::TenYears),
];

/// Range of a function's memory, in MiB.
///
/// Source: AWS, "Lambda quotas".
const MEMORY_MIB: std::ops::RangeInclusive<u32> = 128..=10_240;

/// Range of an idle runtime session's timeout, in seconds.
///
/// Source: AWS, Bedrock `AgentCore` control plane, `LifecycleConfiguration`.
const IDLE_SECONDS: std::ops::RangeInclusive<u32> = 60..=28_800;

/// Longest value of a variable of the agent runtime, in characters.
///
/// Source: AWS, Bedrock `AgentCore` control plane, `CreateAgentRuntime`, `environmentVariables`.
pub const VALUE_CHARS_MAX: usize = 5_000;

/// Range of the writes a second that a table takes at once. A new table takes 4,000.
///
/// Source: Amazon DynamoDB Developer Guide, "Understanding DynamoDB warm throughput".
const WARM_WRITES_RANGE: std::ops::RangeInclusive<u32> = 4_001..=1_000_000;

/// `AgentCore`'s default, in seconds.
const IDLE_SECONDS_DEFAULT: u32 = 900;

/// The settings of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Distinguishes the stacks of one account: `dev`.
    pub stage: String,
    /// The bus for triggers.
    pub bus: String,
    /// Whether the stack creates the bus, unless it is the default one.
    pub creates_bus: bool,
    /// Tag of the agent's image.
    pub image_tag: String,
    /// A folder with one folder per function, each with its `bootstrap`.
    pub functions: String,
    pub architecture: Architecture,
    /// In MiB.
    pub function_memory_mib: u32,
    pub log_retention: RetentionDays,
    /// How long records are kept, in days.
    pub ttl_days: u32,
    /// Most sessions of the incident agent started per hour.
    pub incidents_per_hour: u32,
    /// Timeout of an idle runtime session, in seconds.
    pub idle_seconds: u32,
    /// The model of sessions that name none; `None` for the agent's rules.
    pub model: Option<String>,
    /// The SSM parameter with the MCP servers' key.
    pub api_key_parameter: String,
    /// The SSM parameter with the key of the OpenAI-compatible server, if it needs one.
    pub openai_key_parameter: Option<String>,
    /// Further variables of the agent.
    pub variables: Vec<(&'static str, String)>,
    /// Whether the agent may inspect the account's functions, their logs and roles.
    pub diagnostics: bool,
    /// Prefixes of the log groups that it may read besides those of functions.
    pub log_groups: Vec<String>,
    /// The servers file whose text is in the agents' environment.
    pub mcp_servers: Option<String>,
    /// ARNs of the IAM roles and users that may put a person's actions on the bus for them.
    pub people: Vec<String>,
    /// Whether an alarm on any function of the account starts the incident agent.
    pub function_alarms: bool,
    /// Who is told of the stack's own alarms.
    pub alarm_email: Option<String>,
    /// Time between two sessions that start by themselves, in hours.
    pub schedule_hours: Option<u32>,
    /// Their agent, if not the default one.
    pub schedule_agent: Option<String>,
    /// Writes a second that the journal takes at once, without growing first.
    pub warm_writes: Option<u32>,
    /// Whether the journal outlives its stack.
    pub protect: bool,
    pub checkpoint_lock: Lock,
    /// Whether events about sessions are put on the bus for triggers.
    pub notify: bool,
    /// The base of the links to sessions in those events.
    pub link: Option<String>,
}

/// The processor architecture of the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    Arm64,
    X86,
}

/// Who may delete the log's checkpoints before their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Those who have a permission of its own for it.
    Governance,
    /// Nobody, the account's root user included.
    Compliance,
}

impl Lock {
    /// As S3 names it.
    pub fn mode(self) -> &'static str {
        match self {
            Self::Governance => "GOVERNANCE",
            Self::Compliance => "COMPLIANCE",
        }
    }
}

/// An invalid setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    Value {
        name: &'static str,
        value: String,
        expected: String,
    },
    /// An agent cannot use its variables, for this reason.
    Agent {
        agent: &'static str,
        why: String,
    },
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value { name, value, expected } => {
                write!(f, "invalid context `{name}={value}`: expected {expected}")
            }
            Self::Agent { agent, why } => {
                write!(f, "the agent `{agent}` cannot use its variables: {why}")
            }
        }
    }
}

impl std::error::Error for Invalid {}

/// A context value as text: on a command line all values are text, in a file they may be numbers or
/// booleans.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

impl Config {
    /// Reads the settings.
    ///
    /// # Errors
    /// A setting has an invalid value.
    pub fn read(lookup: &impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let stage = matching(
            lookup,
            STAGE,
            "dev",
            is_stage,
            "1 to 20 characters of a-z, 0-9 and -, starting with a letter",
        )?;
        let config = Self {
            bus: matching(
                lookup,
                BUS,
                DEFAULT_BUS,
                is_name,
                "1 to 64 of A-Z, a-z, 0-9, ., _ and -",
            )?,
            creates_bus: truth(lookup, CREATE_BUS, true)?,
            image_tag: matching(
                lookup,
                IMAGE_TAG,
                env!("CARGO_PKG_VERSION"),
                is_name,
                "an image tag",
            )?,
            functions: matching(
                lookup,
                FUNCTIONS,
                "target/lambdas/arm64",
                |v| !v.is_empty(),
                "a folder",
            )?,
            architecture: architecture(lookup)?,
            function_memory_mib: within(lookup, MEMORY, 256, MEMORY_MIB)?,
            log_retention: log_retention(lookup)?,
            ttl_days: within(lookup, TTL, TTL_DAYS, TTL_DAYS_MIN..=3_650)?,
            incidents_per_hour: within(
                lookup,
                PER_HOUR,
                INCIDENTS_PER_HOUR,
                1..=RateLimit::PER_HOUR_MAX,
            )?,
            idle_seconds: within(lookup, IDLE, IDLE_SECONDS_DEFAULT, IDLE_SECONDS)?,
            model: optional(lookup, MODEL, is_model, "bedrock:ID or openai:NAME")?,
            api_key_parameter: matching(
                lookup,
                API_KEY,
                API_KEY_PARAMETER,
                is_parameter,
                PARAMETER_FORM,
            )?,
            openai_key_parameter: optional(lookup, OPENAI_KEY, is_parameter, PARAMETER_FORM)?,
            variables: variables::read(lookup)?,
            diagnostics: truth(lookup, DIAGNOSTICS, true)?,
            log_groups: list(lookup, LOG_GROUPS, is_log_group, LOG_GROUPS_FORM)?,
            mcp_servers: optional(lookup, MCP_SERVERS, |_| true, "a servers file")?,
            people: list(lookup, PEOPLE, is_person, PEOPLE_FORM)?,
            function_alarms: truth(lookup, FUNCTION_ALARMS, true)?,
            alarm_email: optional(lookup, ALARM_EMAIL, is_email, "an e-mail address")?,
            schedule_hours: some_within(lookup, SCHEDULE_HOURS, 1..=8_760)?,
            schedule_agent: optional(lookup, SCHEDULE_AGENT, is_agent, "the name of an agent")?,
            warm_writes: some_within(lookup, WARM_WRITES, WARM_WRITES_RANGE)?,
            checkpoint_lock: checkpoint_lock(lookup)?,
            protect: truth(lookup, PROTECT, true)?,
            notify: truth(lookup, NOTIFY, false)?,
            link: optional(lookup, LINK, is_link, "an https URL")?,
            stage,
        };
        config.check_needless()?;
        Ok(config)
    }

    /// Refuses settings that would have no effect.
    fn check_needless(&self) -> Result<(), Invalid> {
        Self::needless(
            SCHEDULE_AGENT,
            &self.schedule_agent,
            self.schedule_hours.is_some(),
            SCHEDULE_HOURS,
        )?;
        Self::needless(LINK, &self.link, self.notify, NOTIFY)?;
        let of_path = self.variables.iter().find(|(name, _)| *name == env::DAYBOOK_MCP_SERVERS);
        let path = of_path.map(|(_, path)| path.clone());
        Self::needless(
            env::DAYBOOK_MCP_SERVERS,
            &path,
            self.mcp_servers.is_none(),
            "an image with the file, not mcpServers",
        )
    }

    /// Refuses a setting that would have no effect.
    fn needless(
        name: &'static str,
        value: &Option<String>,
        has_effect: bool,
        needs: &str,
    ) -> Result<(), Invalid> {
        match value {
            Some(value) if !has_effect => {
                let expected = format!("no value: it has an effect only with {needs}");
                Err(Invalid::Value { name, value: value.clone(), expected })
            }
            _ => Ok(()),
        }
    }
}

fn matching(
    lookup: &impl Fn(&str) -> Option<String>,
    name: &'static str,
    default: &str,
    fits: impl Fn(&str) -> bool,
    expected: &str,
) -> Result<String, Invalid> {
    let value = lookup(name).unwrap_or_else(|| default.to_owned());
    if fits(&value) {
        return Ok(value);
    }
    Err(Invalid::Value { name, value, expected: expected.to_owned() })
}

/// A value that need not be set; an empty one is none.
fn optional(
    lookup: &impl Fn(&str) -> Option<String>,
    name: &'static str,
    fits: impl Fn(&str) -> bool,
    expected: &str,
) -> Result<Option<String>, Invalid> {
    let value = matching(lookup, name, "", |v| v.is_empty() || fits(v), expected)?;
    Ok(Some(value).filter(|value| !value.is_empty()))
}

fn list(
    lookup: &impl Fn(&str) -> Option<String>,
    name: &'static str,
    fits: impl Fn(&str) -> bool,
    expected: &str,
) -> Result<Vec<String>, Invalid> {
    let all = |value: &str| value.is_empty() || value.split(',').all(|each| fits(each.trim()));
    let value = matching(lookup, name, "", all, expected)?;
    let each = value.split(',').map(|each| each.trim().to_owned());
    Ok(each.filter(|each| !each.is_empty()).collect())
}

fn within(
    lookup: &impl Fn(&str) -> Option<String>,
    name: &'static str,
    default: u32,
    range: std::ops::RangeInclusive<u32>,
) -> Result<u32, Invalid> {
    let Some(value) = lookup(name) else { return Ok(default) };
    let expected = || format!("a whole number from {} to {}", range.start(), range.end());
    match value.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(Invalid::Value { name, value, expected: expected() }),
    }
}

fn some_within(
    lookup: &impl Fn(&str) -> Option<String>,
    name: &'static str,
    range: std::ops::RangeInclusive<u32>,
) -> Result<Option<u32>, Invalid> {
    let set = |asked: &str| lookup(asked).filter(|value| !value.is_empty());
    let least = *range.start();
    set(name).map(|_| within(&set, name, least, range)).transpose()
}

fn truth(
    lookup: &impl Fn(&str) -> Option<String>,
    name: &'static str,
    default: bool,
) -> Result<bool, Invalid> {
    let Some(value) = lookup(name) else { return Ok(default) };
    value.parse().map_err(|_| Invalid::Value { name, value, expected: "true or false".to_owned() })
}

fn log_retention(lookup: &impl Fn(&str) -> Option<String>) -> Result<RetentionDays, Invalid> {
    let value = lookup(LOG_DAYS).unwrap_or_else(|| LOG_DAYS_DEFAULT.to_string());
    let chosen = RETENTIONS.iter().find(|(days, _)| days.to_string() == value);
    if let Some((_, retention)) = chosen {
        return Ok(*retention);
    }
    let known: Vec<String> = RETENTIONS.iter().map(|(days, _)| days.to_string()).collect();
    Err(Invalid::Value { name: LOG_DAYS, value, expected: format!("one of {}", known.join(", ")) })
}

fn architecture(lookup: &impl Fn(&str) -> Option<String>) -> Result<Architecture, Invalid> {
    let known = [("arm64", Architecture::Arm64), ("x86_64", Architecture::X86)];
    one_of(lookup, ARCHITECTURE, known)
}

fn checkpoint_lock(lookup: &impl Fn(&str) -> Option<String>) -> Result<Lock, Invalid> {
    let known = [("governance", Lock::Governance), ("compliance", Lock::Compliance)];
    one_of(lookup, CHECKPOINT_LOCK, known)
}

/// One of two values, by its name; the first if it is not set.
fn one_of<T: Copy>(
    lookup: &impl Fn(&str) -> Option<String>,
    name: &'static str,
    [first, second]: [(&'static str, T); 2],
) -> Result<T, Invalid> {
    match lookup(name) {
        None => Ok(first.1),
        Some(given) if given == first.0 => Ok(first.1),
        Some(given) if given == second.0 => Ok(second.1),
        Some(value) => {
            Err(Invalid::Value { name, value, expected: format!("{} or {}", first.0, second.0) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, Invalid> {
        Config::read(&|name: &str| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn every_setting_has_a_default() {
        let config = read(&[]).unwrap();
        assert_eq!((config.stage.as_str(), config.bus.as_str()), ("dev", "default"));
        assert_eq!((config.ttl_days, config.incidents_per_hour), (90, 20));
        assert_eq!(config.model, None);
        assert!(config.protect && config.diagnostics);
    }

    #[test]
    fn every_setting_can_be_set() {
        let config = read(&[
            (STAGE, "prod-eu"),
            (BUS, "agents"),
            (ARCHITECTURE, "x86_64"),
            (MODEL, "bedrock:eu.anthropic.claude-sonnet-4-5-20250929-v1:0"),
            (LOG_DAYS, "731"),
            (PROTECT, "false"),
        ])
        .unwrap();
        assert_eq!((config.stage.as_str(), config.architecture), ("prod-eu", Architecture::X86));
        assert_eq!(
            config.model.as_deref(),
            Some("bedrock:eu.anthropic.claude-sonnet-4-5-20250929-v1:0")
        );
        assert_eq!((config.log_retention, config.protect), (RetentionDays::TwoYears, false));
    }

    #[test]
    fn an_invalid_setting_is_named_with_the_accepted_form() {
        for (name, value, message) in [
            (
                STAGE,
                "Prod",
                "invalid context `stage=Prod`: expected 1 to 20 characters of a-z, 0-9 and -, starting with a letter",
            ),
            (
                STAGE,
                "",
                "invalid context `stage=`: expected 1 to 20 characters of a-z, 0-9 and -, starting with a letter",
            ),
            (
                MEMORY,
                "64",
                "invalid context `functionMemoryMb=64`: expected a whole number from 128 to 10240",
            ),
            (
                TTL,
                "2",
                "invalid context `journalTtlDays=2`: expected a whole number from 3 to 3650",
            ),
            (
                PER_HOUR,
                "lots",
                "invalid context `incidentsPerHour=lots`: expected a whole number from 1 to 1000",
            ),
            (
                IDLE,
                "30",
                "invalid context `idleSeconds=30`: expected a whole number from 60 to 28800",
            ),
            (ARCHITECTURE, "mips", "invalid context `architecture=mips`: expected arm64 or x86_64"),
            (MODEL, "claude", "invalid context `model=claude`: expected bedrock:ID or openai:NAME"),
            (
                CHECKPOINT_LOCK,
                "on",
                "invalid context `checkpointLock=on`: expected governance or compliance",
            ),
            (PROTECT, "yes", "invalid context `protect=yes`: expected true or false"),
        ] {
            assert_eq!(read(&[(name, value)]).unwrap_err().to_string(), message);
        }
        assert!(read(&[(LOG_DAYS, "8")]).unwrap_err().to_string().contains("one of 1, 3, 5"));
        assert!(read(&[(API_KEY, "key")]).is_err());
        for people in ["*", "arn:aws:iam::123456789012:role/*", "arn:aws:iam::*:role/Ops", "alice"]
        {
            assert!(read(&[(PEOPLE, people)]).is_err(), "{people}");
        }
        let (one, two) = ("arn:aws:iam::123456789012:role/Ops", "arn:aws:iam::123456789012:user/a");
        assert_eq!(read(&[(PEOPLE, &format!("{one}, {two}"))]).unwrap().people, [one, two]);
        assert!(read(&[(LOG_GROUPS, "*")]).is_err());
        assert_eq!(read(&[(LOG_GROUPS, "/orders/,api")]).unwrap().log_groups, ["/orders/", "api"]);
    }
}
