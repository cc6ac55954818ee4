//! One simulation: a model, its parameter values, and the results of its last run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::arguments::SimulationId;
use super::kinetics::Regimen;
use super::model::{Model, NotAModel, whole};
use super::parameter::ParameterPath;
use super::refusal::Refusal;
use super::unit::Dimension;

/// Evaluations between two checks for cancellation: at most a tenth of a second of work.
const EVALUATIONS_A_PART: usize = 1 << 20;

#[derive(Debug, Clone)]
pub(super) struct Simulation {
    pub id: SimulationId,
    pub model: Model,
    /// A value for every parameter of the model, each within its range.
    pub values: BTreeMap<ParameterPath, f64>,
    /// Number of value changes.
    pub revision: u32,
    /// Results of the last run.
    pub results: Option<Results>,
}

/// Results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Results {
    /// The revision that was run.
    pub revision: u32,
    /// Simulated time in h, divided evenly by the points.
    pub duration: f64,
    /// mg/L, one per point.
    pub concentrations: Vec<f64>,
    pub summary: Summary,
    /// The values that were run, by path. Results of earlier versions have none.
    #[serde(default)]
    pub values: BTreeMap<String, f64>,
}

/// Summary of a time series, in mg, L and h.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Summary {
    pub doses_given: u32,
    pub peak_concentration: f64,
    pub peak_time: f64,
    pub area: f64,
    pub area_to_infinity: f64,
    pub half_life: f64,
}

impl Results {
    /// Time of a point, in h.
    pub(super) fn time(&self, point: usize) -> f64 {
        time(point, self.concentrations.len(), self.duration)
    }
}

/// Time of a point. The last one is exactly at the end, despite rounding.
#[expect(clippy::cast_precision_loss, reason = "there are fewer points than a double has digits")]
fn time(point: usize, points: usize, duration: f64) -> f64 {
    duration * (point as f64 / (points - 1) as f64)
}

/// A parameter's previous and new value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Changed {
    pub before: f64,
    pub now: f64,
}

impl Simulation {
    /// A simulation with the model's default values.
    pub(super) fn new(id: SimulationId, model: Model) -> Self {
        let values = model.initial();
        Self { id, model, values, revision: 0, results: None }
    }

    pub(super) fn value(&self, path: ParameterPath) -> Result<f64, Refusal> {
        self.values.get(&path).copied().ok_or_else(|| self.lacks(path.as_str()))
    }

    /// Sets a parameter. Setting the current value changes nothing, so a caller that lost the
    /// response may repeat the call.
    pub(super) fn set(
        &mut self,
        path: ParameterPath,
        value: f64,
        unit: &str,
    ) -> Result<Changed, Refusal> {
        let before = self.value(path)?;
        let now = self.checked(path, value, unit)?;
        if before.to_bits() != now.to_bits() {
            self.values.insert(path, now);
            self.revision = self.revision.saturating_add(1);
        }
        Ok(Changed { before, now })
    }

    /// The parameter with this path, if the model has it.
    pub(super) fn path(&self, path: &str) -> Result<ParameterPath, Refusal> {
        let known = ParameterPath::of(path).filter(|path| self.values.contains_key(path));
        known.ok_or_else(|| self.lacks(path))
    }

    /// The regimen of the last run, unless an earlier version ran it with other values.
    pub(super) fn regimen_run(&self, results: &Results) -> Option<Regimen> {
        let of = |(path, value): (&String, &f64)| Some((ParameterPath::of(path)?, *value));
        let values: Option<BTreeMap<_, _>> = results.values.iter().map(of).collect();
        let values = values.filter(|values| values.keys().eq(self.values.keys()));
        let current = || (results.revision == self.revision).then(|| self.values.clone());
        Some(self.model.regimen(&values.or_else(current)?))
    }

    /// Starts a run with the current values.
    pub(super) fn run(&self) -> Result<Run, Refusal> {
        let regimen = self.model.regimen(&self.values);
        let of = |path: ParameterPath| self.values[&path];
        if let Some(duration) = self.values.get(&ParameterPath::InfusionDuration)
            && regimen.doses > 1
            && *duration > regimen.interval
        {
            return Err(Refusal::Overlapping { duration: *duration, interval: regimen.interval });
        }
        Ok(Run {
            regimen,
            revision: self.revision,
            duration: of(ParameterPath::Duration),
            points: whole(of(ParameterPath::Points)) as usize,
            concentrations: Vec::new(),
            values: self.values.iter().map(|(path, v)| (path.as_str().to_owned(), *v)).collect(),
        })
    }

    fn checked(&self, path: ParameterPath, value: f64, unit: &str) -> Result<f64, Refusal> {
        let dimension = path.dimension();
        let converted = dimension.convert(value, unit);
        let converted = converted.ok_or_else(|| Refusal::Unit {
            path,
            unit: unit.to_owned(),
            accepted: dimension.accepted(),
        })?;
        let range = self.model.ranges[&path];
        if !(range.min..=range.max).contains(&converted) {
            return Err(Refusal::OutOfRange {
                path,
                value: converted,
                min: range.min,
                max: range.max,
                unit: dimension.canonical(),
            });
        }
        if dimension == Dimension::Count && converted.fract() != 0.0 {
            return Err(Refusal::NotWhole { path, value: converted });
        }
        // Turns -0 into 0, which prints without a sign.
        Ok(converted + 0.0)
    }

    fn lacks(&self, path: &str) -> Refusal {
        Refusal::NoSuchParameter {
            path: path.to_owned(),
            model: self.model.name.clone(),
            present: self.values.keys().map(|path| path.as_str()).collect(),
        }
    }
}

/// A run in progress. It runs in parts, so that a long one can report progress and be cancelled.
#[derive(Debug)]
pub(super) struct Run {
    regimen: Regimen,
    revision: u32,
    duration: f64,
    points: usize,
    concentrations: Vec<f64>,
    values: BTreeMap<String, f64>,
}

impl Run {
    /// Computes the next part; returns whether it was the last.
    pub(super) fn advance(&mut self) -> bool {
        let mut evaluations = 0;
        while self.concentrations.len() < self.points && evaluations < EVALUATIONS_A_PART {
            let time = time(self.concentrations.len(), self.points, self.duration);
            self.concentrations.push(self.regimen.concentration(time));
            evaluations += self.regimen.given(time) as usize;
        }
        self.concentrations.len() == self.points
    }

    /// Points computed, and the total.
    pub(super) fn progress(&self) -> (usize, usize) {
        (self.concentrations.len(), self.points)
    }

    /// Results of a finished run.
    pub(super) fn results(self) -> Results {
        let peak = self.regimen.peak(self.duration);
        let summary = Summary {
            doses_given: self.regimen.given(self.duration),
            peak_concentration: peak.concentration,
            peak_time: peak.time,
            area: self.regimen.area(self.duration),
            area_to_infinity: self.regimen.area_to_infinity(self.duration),
            half_life: self.regimen.half_life(),
        };
        Results {
            revision: self.revision,
            duration: self.duration,
            concentrations: self.concentrations,
            summary,
            values: self.values,
        }
    }
}

/// A simulation in a file. It includes the model, so a change of the model file does not change it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved {
    model: String,
    model_text: String,
    revision: u32,
    values: BTreeMap<String, f64>,
    results: Option<Results>,
}

impl From<&Simulation> for Saved {
    fn from(simulation: &Simulation) -> Self {
        let values = simulation.values.iter();
        Self {
            model: simulation.model.name.clone(),
            model_text: simulation.model.text.clone(),
            revision: simulation.revision,
            values: values.map(|(path, value)| (path.as_str().to_owned(), *value)).collect(),
            results: simulation.results.clone(),
        }
    }
}

/// Why a file is not a valid simulation.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotASimulation {
    #[error("its model: {0}")]
    Model(#[from] NotAModel),
    #[error("its values: {0}")]
    Values(Refusal),
    #[error("its results hold {0} points")]
    Results(usize),
}

impl Saved {
    /// The simulation with this id, if the file holds one.
    pub(super) fn read(self, id: SimulationId) -> Result<Simulation, NotASimulation> {
        let mut simulation = Simulation::new(id, Model::parse(&self.model, &self.model_text)?);
        for (path, value) in &self.values {
            let path = simulation.path(path).map_err(NotASimulation::Values)?;
            let unit = path.dimension().canonical();
            simulation.set(path, *value, unit).map_err(NotASimulation::Values)?;
        }
        simulation.revision = self.revision;
        let points = self.results.as_ref().map(|results| results.concentrations.len());
        if let Some(points) = points.filter(|points| *points < 2) {
            return Err(NotASimulation::Results(points));
        }
        simulation.results = self.results;
        Ok(simulation)
    }
}
