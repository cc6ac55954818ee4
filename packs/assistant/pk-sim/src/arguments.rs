//! The tools' arguments, validated on arrival. An error names the argument.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use mcp::argument;
use mcp::argument::{text, whole, wrong};
use mcp::schema::portable;

/// Longest id of a simulation, in characters.
const ID_CHARS_MAX: usize = 64;

/// Most times of one call of get_results.
pub(super) const TIMES_MAX: usize = 50;

/// Pattern of [`SimulationId`] in the published schema.
const ID_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";

/// Default number of points of a time series.
const POINTS_DEFAULT: u32 = 101;

/// Most points in one result: about 60 KiB with the digits of two numbers each.
pub(super) const POINTS_ANSWERED_MAX: u32 = 1_000;

/// The name of a simulation. It becomes a file name, so its alphabet keeps callers inside the
/// folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "Value", into = "String")]
pub(super) struct SimulationId(String);

impl SimulationId {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn of(text: &str) -> Option<Self> {
        let is_fit = (1..=ID_CHARS_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
            && text.as_bytes()[0].is_ascii_alphanumeric();
        is_fit.then(|| Self(text.to_owned()))
    }
}

impl TryFrom<Value> for SimulationId {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        value.as_str().and_then(Self::of).ok_or_else(|| {
            let form = "1 to 64 letters, digits, - and _, starting with a letter or digit";
            wrong("simulation_id", form, &value)
        })
    }
}

impl From<SimulationId> for String {
    fn from(id: SimulationId) -> Self {
        id.0
    }
}

impl fmt::Display for SimulationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

argument!(
    /// With or without the file's ending.
    ModelPath(String),
    |value| {
        let text = text("model_path", "the name of a model, such as theophylline-oral", value)?;
        Ok(text.strip_suffix(".json").unwrap_or(&text).to_owned())
    }
);

argument!(Path(String), |value| {
    text("parameter_path", "the path of a parameter, such as Dosing|Dose", value)
});

argument!(Unit(String), |value| text("unit", "the unit of the value, such as mg", value));

argument!(
    #[derive(Copy)]
    Number(f64),
    |value| {
        let number = value.as_f64().filter(|number| number.is_finite());
        number.ok_or_else(|| wrong("value", "a finite number", &value))
    }
);

argument!(
    /// Number of points of a time series to return.
    #[derive(Copy)]
    PointsMax(u32),
    |value| whole("points_max", 2..=POINTS_ANSWERED_MAX, &value)
);

impl Default for PointsMax {
    fn default() -> Self {
        Self(POINTS_DEFAULT)
    }
}

/// Arguments of `list_models`: none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// Arguments of `load_simulation`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Load {
    /// Model name from list_models.
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub model_path: ModelPath,
    /// Name for the new simulation, which makes the call idempotent. By default, each call creates one.
    #[serde(default)]
    #[schemars(with = "String", regex(pattern = ID_PATTERN))]
    pub simulation_id: Option<SimulationId>,
}

/// Arguments of the tools for a whole simulation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct One {
    /// Name of a loaded simulation.
    #[schemars(with = "String", regex(pattern = ID_PATTERN))]
    pub simulation_id: SimulationId,
}

/// Arguments of `get_parameter_value`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Get {
    /// Name of a loaded simulation.
    #[schemars(with = "String", regex(pattern = ID_PATTERN))]
    pub simulation_id: SimulationId,
    /// Parameter path from list_parameters.
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub parameter_path: Path,
}

/// Arguments of `set_parameter_value`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = portable)]
pub(super) struct Set {
    /// Name of a loaded simulation.
    #[schemars(with = "String", regex(pattern = ID_PATTERN))]
    pub simulation_id: SimulationId,
    /// Parameter path from list_parameters.
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub parameter_path: Path,
    /// The new value, in `unit`.
    #[schemars(with = "f64")]
    pub value: Number,
    /// The value's unit; list_parameters lists the accepted ones.
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub unit: Unit,
}

/// Arguments of `get_results`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = portable)]
pub(super) struct Fetch {
    /// Name of a simulation that has been run.
    #[schemars(with = "String", regex(pattern = ID_PATTERN))]
    pub simulation_id: SimulationId,
    /// Maximum number of points returned, evenly spaced including both ends; default 101.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 2, max = POINTS_ANSWERED_MAX))]
    pub points_max: PointsMax,
    /// Times in h at which to return the concentration, at most 50.
    #[serde(default)]
    #[schemars(with = "Vec<f64>", length(max = 50))]
    pub at_times: Vec<f64>,
    /// A concentration in mg/L; returns the time above it.
    #[serde(default)]
    #[schemars(with = "f64")]
    pub above: Option<f64>,
}
