//! Errors of tool calls, written for a model or a person.

use super::arguments::SimulationId;
use super::parameter::ParameterPath;
use super::state::SIMULATIONS_MAX;

#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("unknown model_path {asked:?}; known models: {}", present.join(", "))]
    NoSuchModel { asked: String, present: Vec<String> },
    #[error(
        "unknown simulation_id {0}. \
         Load it with load_simulation; the {SIMULATIONS_MAX} most recently changed are kept"
    )]
    NoSuchSimulation(SimulationId),
    #[error("simulation_id {id} already exists for model {loaded}, not {asked}")]
    OtherModel { id: SimulationId, loaded: String, asked: String },
    #[error("unknown parameter_path {path:?}; {model} has {}", present.join(", "))]
    NoSuchParameter { path: String, model: String, present: Vec<&'static str> },
    #[error("unit must fit {path}: {accepted}, not {unit:?}")]
    Unit { path: ParameterPath, unit: String, accepted: &'static str },
    // `{:?}` writes a large number with an exponent.
    #[error("value must be from {min} to {max} {unit} for {path}, not {value:?} {unit}")]
    OutOfRange { path: ParameterPath, value: f64, min: f64, max: f64, unit: &'static str },
    #[error("value must be a whole number for {path}, not {value}")]
    NotWhole { path: ParameterPath, value: f64 },
    #[error(
        "Dosing|InfusionDuration ({duration} h) must not be longer than Dosing|Interval ({interval} h), \
         or infusions would overlap"
    )]
    Overlapping { duration: f64, interval: f64 },
    #[error("{0} has no results; run it with run_simulation")]
    NotRun(SimulationId),
    #[error("at_times must be at most {most} times from 0 to {until} h, the simulated time")]
    Times { most: usize, until: f64 },
    #[error("above must be a concentration of 0 mg/L or more, not {0}")]
    Level(f64),
    #[error("{0} was run by an earlier version; run it again")]
    RunAgain(SimulationId),
    #[error("the run was cancelled; {0} keeps its earlier results")]
    Cancelled(SimulationId),
    /// A file error, or what is wrong with a file. Nothing was changed.
    #[error("cannot use the state of {id}: {problem}")]
    State { id: String, problem: String },
}
