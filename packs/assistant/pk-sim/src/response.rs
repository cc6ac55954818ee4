//! The tools' answers.

use schemars::JsonSchema;
use serde::Serialize;

use super::kinetics::Regimen;
use super::model::{Compartments, Model, Range, Route};
use super::parameter::ParameterPath;
use super::simulation::{Results, Simulation};
use mcp::schema::portable;

/// Units of results that belong to no parameter.
const CONCENTRATION: &str = "mg/L";
const AREA: &str = "mg*h/L";
const TIME: &str = "h";

/// A number with its unit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub(super) struct Quantity {
    value: f64,
    unit: &'static str,
}

impl Quantity {
    pub(super) fn of(path: ParameterPath, value: f64) -> Self {
        Self { value, unit: path.dimension().canonical() }
    }
}

/// Answer of `list_models`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Models {
    /// The models that can be loaded.
    models: Vec<ModelEntry>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = portable)]
struct ModelEntry {
    /// The model_path for load_simulation.
    model_path: String,
    drug: String,
    description: String,
    /// Source of its data.
    source: String,
    /// iv_bolus, iv_infusion or oral.
    route: &'static str,
    /// 1 or 2.
    compartments: u8,
    /// Its parameters with default values and ranges.
    parameters: Vec<Default>,
}

/// A parameter's default value and range.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = portable)]
struct Default {
    parameter_path: &'static str,
    value: f64,
    /// The unit of value, min and max.
    unit: &'static str,
    min: f64,
    max: f64,
}

impl Default {
    fn of((path, range): (&ParameterPath, &Range)) -> Self {
        let (unit, Range { initial, min, max }) = (path.dimension().canonical(), *range);
        Self { parameter_path: path.as_str(), value: initial, unit, min, max }
    }
}

impl Models {
    pub(super) fn of<'a>(models: impl Iterator<Item = &'a Model>) -> Self {
        Self { models: models.map(ModelEntry::of).collect() }
    }
}

impl ModelEntry {
    fn of(model: &Model) -> Self {
        Self {
            model_path: model.name.clone(),
            drug: model.drug.clone(),
            description: model.description.clone(),
            source: model.source.clone(),
            route: match model.route {
                Route::IvBolus => "iv_bolus",
                Route::IvInfusion => "iv_infusion",
                Route::Oral => "oral",
            },
            compartments: Compartments::into(model.compartments),
            parameters: model.ranges.iter().map(Default::of).collect(),
        }
    }
}

/// Answer of `load_simulation`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub(super) struct Loaded {
    pub simulation_id: String,
    pub model_path: String,
    /// False if it already existed and was left unchanged.
    pub created: bool,
    /// Number of value changes since it was loaded.
    pub revision: u32,
    /// The least recently changed simulation, evicted for this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evicted: Option<String>,
}

/// Answer of `list_parameters`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub(super) struct Parameters {
    simulation_id: String,
    model_path: String,
    revision: u32,
    parameters: Vec<ParameterEntry>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = portable)]
struct ParameterEntry {
    parameter_path: &'static str,
    description: &'static str,
    value: f64,
    /// The unit of value, min and max.
    unit: &'static str,
    min: f64,
    max: f64,
    /// Units that set_parameter_value accepts.
    accepted_units: &'static str,
}

impl Parameters {
    pub(super) fn of(simulation: &Simulation) -> Self {
        let entry = |(path, value): (&ParameterPath, &f64)| {
            let (dimension, Range { min, max, .. }) =
                (path.dimension(), simulation.model.ranges[path]);
            ParameterEntry {
                parameter_path: path.as_str(),
                description: path.description(),
                value: *value,
                unit: dimension.canonical(),
                min,
                max,
                accepted_units: dimension.accepted(),
            }
        };
        Self {
            simulation_id: simulation.id.to_string(),
            model_path: simulation.model.name.clone(),
            revision: simulation.revision,
            parameters: simulation.values.iter().map(entry).collect(),
        }
    }
}

/// Answer of `get_parameter_value`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub(super) struct ParameterValue {
    pub simulation_id: String,
    pub parameter_path: &'static str,
    pub value: f64,
    pub unit: &'static str,
}

/// Answer of `set_parameter_value`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub(super) struct ParameterSet {
    pub simulation_id: String,
    pub parameter_path: &'static str,
    pub previous: Quantity,
    pub value: f64,
    pub unit: &'static str,
    /// Number of value changes since the simulation was loaded.
    pub revision: u32,
}

/// Answer of `run_simulation`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub(super) struct Ran {
    simulation_id: String,
    /// The revision that was run.
    revision: u32,
    /// Number of points that get_results can return.
    points: usize,
    summary: Summary,
}

impl Ran {
    pub(super) fn of(simulation: &Simulation, results: &Results) -> Self {
        Self {
            simulation_id: simulation.id.to_string(),
            revision: results.revision,
            points: results.concentrations.len(),
            summary: Summary::of(simulation, results),
        }
    }
}

/// Summary of a time series.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = portable)]
struct Summary {
    /// Doses given within the simulated time.
    doses_given: u32,
    /// The highest concentration, including between points.
    cmax: Quantity,
    /// Time of the highest concentration.
    tmax: Quantity,
    /// Area under the concentration over the simulated time.
    auc_0_t: Quantity,
    /// The area extrapolated to infinity without further doses.
    auc_0_inf: Quantity,
    /// Half-life of the terminal phase.
    half_life: Quantity,
    /// The concentration before the next dose, after the last whole interval. Absent for one dose.
    #[serde(skip_serializing_if = "Option::is_none")]
    trough: Option<Quantity>,
    /// That trough as a share of the one at steady state.
    #[serde(skip_serializing_if = "Option::is_none")]
    steady_state_share: Option<f64>,
}

/// Number of whole intervals after a dose within the simulated time; 0 for one dose.
fn troughs(regimen: &Regimen, until: f64) -> u32 {
    let whole = (1..=regimen.doses).rev().find(|n| f64::from(*n) * regimen.interval <= until);
    whole.filter(|_| regimen.doses > 1).unwrap_or(0)
}

impl Summary {
    fn of(simulation: &Simulation, results: &Results) -> Self {
        let summary = results.summary;
        let regimen = simulation.regimen_run(results);
        let doses = regimen.as_ref().map_or(0, |regimen| troughs(regimen, results.duration));
        let last = regimen.as_ref().filter(|_| doses > 0).map(|regimen| regimen.trough(doses));
        let steady = regimen.as_ref().filter(|_| doses > 0).and_then(Regimen::steady_trough);
        let share = last.zip(steady).filter(|(_, steady)| *steady > 0.0);
        Self {
            doses_given: summary.doses_given,
            cmax: Quantity { value: summary.peak_concentration, unit: CONCENTRATION },
            tmax: Quantity { value: summary.peak_time, unit: TIME },
            auc_0_t: Quantity { value: summary.area, unit: AREA },
            auc_0_inf: Quantity { value: summary.area_to_infinity, unit: AREA },
            half_life: Quantity { value: summary.half_life, unit: TIME },
            trough: last.map(|value| Quantity { value, unit: CONCENTRATION }),
            steady_state_share: share.map(|(last, steady)| last / steady),
        }
    }
}

/// Answer of `get_results`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub(super) struct Fetched {
    simulation_id: String,
    model_path: String,
    /// The revision that was run.
    revision: u32,
    /// Whether no value has changed since that run.
    is_current: bool,
    summary: Summary,
    /// Number of computed points; the series may have fewer.
    points: usize,
    series: Series,
    /// Concentrations just before the next dose, of the last whole intervals, at most 24.
    troughs: Vec<Point>,
    /// Concentrations at at_times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    at: Vec<Point>,
    /// Time above `above`.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_above: Option<Quantity>,
}

/// Most troughs of one result.
const TROUGHS_MAX: u32 = 24;

/// A concentration at a time.
#[derive(Debug, Serialize, JsonSchema)]
struct Point {
    time: Quantity,
    concentration: Quantity,
}

impl Point {
    fn of(time: f64, value: f64) -> Self {
        let time = Quantity { value: time, unit: TIME };
        Self { time, concentration: Quantity { value, unit: CONCENTRATION } }
    }
}

/// Concentration in the central compartment over time.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transform = portable)]
struct Series {
    time_unit: &'static str,
    times: Vec<f64>,
    concentration_unit: &'static str,
    concentrations: Vec<f64>,
}

impl Fetched {
    /// Returns at most this many points of the series, and at least two.
    pub(super) fn of(simulation: &Simulation, results: &Results, points_max: usize) -> Self {
        let points = results.concentrations.len();
        let chosen = points.min(points_max);
        let of = |index: usize| index * (points - 1) / (chosen - 1);
        let series = Series {
            time_unit: TIME,
            times: (0..chosen).map(|index| results.time(of(index))).collect(),
            concentration_unit: CONCENTRATION,
            concentrations: (0..chosen).map(|index| results.concentrations[of(index)]).collect(),
        };
        let listed = simulation.regimen_run(results).map(|regimen| {
            let last = troughs(&regimen, results.duration);
            let point = |n: u32| Point::of(f64::from(n) * regimen.interval, regimen.trough(n));
            (last.saturating_sub(TROUGHS_MAX)..last).map(|n| point(n + 1)).collect()
        });
        Self {
            simulation_id: simulation.id.to_string(),
            model_path: simulation.model.name.clone(),
            revision: results.revision,
            is_current: results.revision == simulation.revision,
            summary: Summary::of(simulation, results),
            points,
            series,
            troughs: listed.unwrap_or_default(),
            at: Vec::new(),
            time_above: None,
        }
    }

    /// Adds the concentrations at these times, and the time above a level.
    pub(super) fn with(
        mut self,
        regimen: &Regimen,
        times: &[f64],
        above: Option<f64>,
        until: f64,
    ) -> Self {
        self.at = times.iter().map(|time| Point::of(*time, regimen.concentration(*time))).collect();
        let time = above.map(|level| regimen.time_above(level, until));
        self.time_above = time.map(|value| Quantity { value, unit: TIME });
        self
    }
}
