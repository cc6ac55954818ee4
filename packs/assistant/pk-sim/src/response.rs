//! The tools' answers.

use schemars::JsonSchema;
use serde::Serialize;

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
            summary: Summary::of(results),
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
}

impl Summary {
    fn of(results: &Results) -> Self {
        let summary = results.summary;
        Self {
            doses_given: summary.doses_given,
            cmax: Quantity { value: summary.peak_concentration, unit: CONCENTRATION },
            tmax: Quantity { value: summary.peak_time, unit: TIME },
            auc_0_t: Quantity { value: summary.area, unit: AREA },
            auc_0_inf: Quantity { value: summary.area_to_infinity, unit: AREA },
            half_life: Quantity { value: summary.half_life, unit: TIME },
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
        Self {
            simulation_id: simulation.id.to_string(),
            model_path: simulation.model.name.clone(),
            revision: results.revision,
            is_current: results.revision == simulation.revision,
            summary: Summary::of(results),
            points,
            series,
        }
    }
}
