//! What can be chosen of a stack, read from the CDK's context and checked.

use jsii::Value;
use workflow::admission::{INCIDENTS_PER_HOUR, PER_HOUR_MAX};
use workflow::limits::{TTL_DAYS, TTL_DAYS_MIN};

use crate::cdk::aws_logs::RetentionDays;

/// The names of all choices.
pub const NAMES: &[&str] = &[
    STAGE,
    BUS,
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
    DIAGNOSTICS,
    PROTECT,
];

const STAGE: &str = "stage";
const BUS: &str = "bus";
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
const DIAGNOSTICS: &str = "diagnostics";
const PROTECT: &str = "protect";

/// Longest stage: with what is put around it the shortest limit, 64 characters for a function's or a
/// role's name, is kept.
const STAGE_CHARS_MAX: usize = 20;

/// The bus that every account has.
pub const DEFAULT_BUS: &str = "default";

/// Where the incident specification keeps the MCP servers' key.
///
/// Source: the incident specification, section 7.
const API_KEY_PARAMETER: &str = "/incident-response/mcp-api-key";

/// How long logs are kept, in days, unless something else is chosen.
const LOG_DAYS_DEFAULT: u32 = 90;

/// The retentions that CloudWatch Logs has, in days.
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

/// A function's memory in MiB, from and to.
///
/// Source: AWS, "Lambda quotas".
const MEMORY_MIB: std::ops::RangeInclusive<u32> = 128..=10_240;

/// How long an idle runtime session is kept, in seconds, from and to.
///
/// Source: AWS, Bedrock `AgentCore` control plane, `LifecycleConfiguration`.
const IDLE_SECONDS: std::ops::RangeInclusive<u32> = 60..=28_800;

/// `AgentCore`'s own default for it, in seconds.
const IDLE_SECONDS_DEFAULT: u32 = 900;

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Tells the stacks of one account apart: `dev`.
    pub stage: String,
    /// The bus that triggers come on; one that is not the default is made.
    pub bus: String,
    /// The tag of the agent's image.
    pub image_tag: String,
    /// The folder with a folder for each function, in which its `bootstrap` is.
    pub functions: String,
    /// What the functions are built for.
    pub architecture: Architecture,
    /// A function's memory in MiB.
    pub function_memory_mib: u32,
    /// How long logs are kept.
    pub log_retention: RetentionDays,
    /// How long records are kept, in days.
    pub ttl_days: u32,
    /// How many sessions of the incident agent may begin in an hour.
    pub incidents_per_hour: u32,
    /// How long an idle runtime session is kept, in seconds.
    pub idle_seconds: u32,
    /// The Bedrock model that sessions without one get, if any.
    pub model: Option<String>,
    /// The SSM parameter with the MCP servers' key.
    pub api_key_parameter: String,
    /// Whether the agent may look into the account's functions, their logs and roles.
    pub diagnostics: bool,
    /// Whether the journal outlives its stack.
    pub protect: bool,
}

/// What a function is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Graviton.
    Arm64,
    /// Intel and AMD.
    X86,
}

/// A choice that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    name: &'static str,
    value: String,
    expected: String,
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, value, expected } = self;
        write!(f, "context `{name}` is `{value}`, expected {expected}")
    }
}

impl std::error::Error for Invalid {}

/// A context value as text: on a command line all are, in a file a number or a truth is one.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

impl Config {
    /// Reads the choices.
    ///
    /// # Errors
    /// When one is set to what it does not take.
    pub fn read(lookup: &impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let stage =
            matching(lookup, STAGE, "dev", is_stage, "1 to 20 of a-z, 0-9 and -, a letter first")?;
        Ok(Self {
            bus: matching(
                lookup,
                BUS,
                DEFAULT_BUS,
                is_name,
                "1 to 64 of A-Z, a-z, 0-9, ., _ and -",
            )?,
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
            incidents_per_hour: within(lookup, PER_HOUR, INCIDENTS_PER_HOUR, 1..=PER_HOUR_MAX)?,
            idle_seconds: within(lookup, IDLE, IDLE_SECONDS_DEFAULT, IDLE_SECONDS)?,
            model: match matching(lookup, MODEL, "", |v| v.is_empty() || is_model(v), "bedrock:ID")?
            {
                none if none.is_empty() => None,
                model => Some(model),
            },
            api_key_parameter: matching(
                lookup,
                API_KEY,
                API_KEY_PARAMETER,
                is_parameter,
                "a parameter's full name: /, then A-Z, a-z, 0-9, ., _, - and /",
            )?,
            diagnostics: truth(lookup, DIAGNOSTICS, true)?,
            protect: truth(lookup, PROTECT, true)?,
            stage,
        })
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
    Err(Invalid { name, value, expected: expected.to_owned() })
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
        _ => Err(Invalid { name, value, expected: expected() }),
    }
}

fn truth(
    lookup: &impl Fn(&str) -> Option<String>,
    name: &'static str,
    default: bool,
) -> Result<bool, Invalid> {
    let Some(value) = lookup(name) else { return Ok(default) };
    value.parse().map_err(|_| Invalid { name, value, expected: "true or false".to_owned() })
}

fn log_retention(lookup: &impl Fn(&str) -> Option<String>) -> Result<RetentionDays, Invalid> {
    let value = lookup(LOG_DAYS).unwrap_or_else(|| LOG_DAYS_DEFAULT.to_string());
    let chosen = RETENTIONS.iter().find(|(days, _)| days.to_string() == value);
    if let Some((_, retention)) = chosen {
        return Ok(*retention);
    }
    let known: Vec<String> = RETENTIONS.iter().map(|(days, _)| days.to_string()).collect();
    Err(Invalid { name: LOG_DAYS, value, expected: format!("one of {}", known.join(", ")) })
}

fn architecture(lookup: &impl Fn(&str) -> Option<String>) -> Result<Architecture, Invalid> {
    match lookup(ARCHITECTURE).as_deref() {
        None | Some("arm64") => Ok(Architecture::Arm64),
        Some("x86_64") => Ok(Architecture::X86),
        Some(other) => Err(Invalid {
            name: ARCHITECTURE,
            value: other.to_owned(),
            expected: "arm64 or x86_64".to_owned(),
        }),
    }
}

fn is_stage(value: &str) -> bool {
    let of = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=STAGE_CHARS_MAX).contains(&value.len())
        && value.starts_with(|c: char| c.is_ascii_lowercase())
        && !value.ends_with('-')
        && value.chars().all(of)
}

fn is_name(value: &str) -> bool {
    let of = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    (1..=64).contains(&value.len())
        && value.starts_with(|c: char| c.is_ascii_alphanumeric())
        && value.chars().all(of)
}

fn is_model(value: &str) -> bool {
    let of = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    value
        .strip_prefix("bedrock:")
        .is_some_and(|id| (1..=256).contains(&id.len()) && id.chars().all(of))
}

fn is_parameter(value: &str) -> bool {
    let of = |c: char| c.is_ascii_alphanumeric() || ".-_/".contains(c);
    (2..=1011).contains(&value.len()) && value.starts_with('/') && value.chars().all(of)
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
    fn what_is_not_chosen_has_a_default() {
        let config = read(&[]).unwrap();
        assert_eq!((config.stage.as_str(), config.bus.as_str()), ("dev", "default"));
        assert_eq!((config.ttl_days, config.incidents_per_hour), (90, 20));
        assert_eq!(config.model, None);
        assert!(config.protect && config.diagnostics);
    }

    #[test]
    fn every_choice_can_be_made() {
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
    fn a_wrong_choice_is_named_with_its_value_and_what_is_taken() {
        for (name, value, message) in [
            (
                STAGE,
                "Prod",
                "context `stage` is `Prod`, expected 1 to 20 of a-z, 0-9 and -, a letter first",
            ),
            (
                STAGE,
                "",
                "context `stage` is ``, expected 1 to 20 of a-z, 0-9 and -, a letter first",
            ),
            (
                MEMORY,
                "64",
                "context `functionMemoryMb` is `64`, expected a whole number from 128 to 10240",
            ),
            (TTL, "2", "context `journalTtlDays` is `2`, expected a whole number from 3 to 3650"),
            (
                PER_HOUR,
                "lots",
                "context `incidentsPerHour` is `lots`, expected a whole number from 1 to 1000",
            ),
            (IDLE, "30", "context `idleSeconds` is `30`, expected a whole number from 60 to 28800"),
            (ARCHITECTURE, "mips", "context `architecture` is `mips`, expected arm64 or x86_64"),
            (MODEL, "claude", "context `model` is `claude`, expected bedrock:ID"),
            (PROTECT, "yes", "context `protect` is `yes`, expected true or false"),
        ] {
            assert_eq!(read(&[(name, value)]).unwrap_err().to_string(), message);
        }
        assert!(read(&[(LOG_DAYS, "8")]).unwrap_err().to_string().contains("one of 1, 3, 5"));
        assert!(read(&[(API_KEY, "key")]).is_err());
    }
}
