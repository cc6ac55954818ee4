//! The parameters of simulations, with their meaning and the widest range that a model may allow.

use std::fmt;

use super::unit::Dimension;

/// Most doses of one regimen.
pub(super) const DOSES_MAX: u32 = 2_000;

/// Most points of one time series. Together with [`DOSES_MAX`] it limits a run to a hundred million
/// evaluations, a few seconds of work.
pub(super) const POINTS_MAX: u32 = 50_001;

/// A parameter, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ParameterPath {
    Dose,
    InfusionDuration,
    Interval,
    Doses,
    Clearance,
    CentralVolume,
    IntercompartmentalClearance,
    PeripheralVolume,
    AbsorptionRate,
    Bioavailability,
    LagTime,
    Duration,
    Points,
}

use ParameterPath as P;

/// Every parameter, in listing order.
pub(super) const ALL: [ParameterPath; 13] = [
    P::Dose,
    P::InfusionDuration,
    P::Interval,
    P::Doses,
    P::Clearance,
    P::CentralVolume,
    P::IntercompartmentalClearance,
    P::PeripheralVolume,
    P::AbsorptionRate,
    P::Bioavailability,
    P::LagTime,
    P::Duration,
    P::Points,
];

impl ParameterPath {
    pub(super) fn of(text: &str) -> Option<Self> {
        ALL.into_iter().find(|path| path.as_str() == text)
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            P::Dose => "Dosing|Dose",
            P::InfusionDuration => "Dosing|InfusionDuration",
            P::Interval => "Dosing|Interval",
            P::Doses => "Dosing|Doses",
            P::Clearance => "Drug|Clearance",
            P::CentralVolume => "Drug|CentralVolume",
            P::IntercompartmentalClearance => "Drug|IntercompartmentalClearance",
            P::PeripheralVolume => "Drug|PeripheralVolume",
            P::AbsorptionRate => "Drug|AbsorptionRate",
            P::Bioavailability => "Drug|Bioavailability",
            P::LagTime => "Drug|LagTime",
            P::Duration => "Simulation|Duration",
            P::Points => "Simulation|Points",
        }
    }

    /// Dimension of its values.
    pub(super) const fn dimension(self) -> Dimension {
        match self {
            P::Dose => Dimension::Mass,
            P::CentralVolume | P::PeripheralVolume => Dimension::Volume,
            P::InfusionDuration | P::Interval | P::LagTime | P::Duration => Dimension::Time,
            P::Clearance | P::IntercompartmentalClearance => Dimension::Clearance,
            P::AbsorptionRate => Dimension::Rate,
            P::Bioavailability => Dimension::Fraction,
            P::Doses | P::Points => Dimension::Count,
        }
    }

    pub(super) const fn description(self) -> &'static str {
        match self {
            P::Dose => "Amount of drug in each dose",
            P::InfusionDuration => "How long each infusion runs",
            P::Interval => "Time from the start of one dose to the start of the next",
            P::Doses => "Number of doses, the first at time 0",
            P::Clearance => "Volume of plasma cleared of drug in a time",
            P::CentralVolume => "Volume of the central compartment",
            P::IntercompartmentalClearance => "Exchange between central and peripheral compartment",
            P::PeripheralVolume => "Volume of the peripheral compartment",
            P::AbsorptionRate => "First-order rate of absorption",
            P::Bioavailability => "Share of the dose that reaches the circulation",
            P::LagTime => "Time from a dose to the start of its absorption",
            P::Duration => "Simulated time, from the first dose",
            P::Points => "Points of the time series, both ends included",
        }
    }

    /// The widest range that a model may allow, in the canonical unit. It keeps every rate and
    /// exponent in the range where the solutions are exact.
    pub(super) fn widest(self) -> (f64, f64) {
        match self {
            P::Dose => (0.0, 1e6),
            P::InfusionDuration => (1e-3, 1e4),
            P::Interval => (1e-2, 1e4),
            P::Doses => (1.0, f64::from(DOSES_MAX)),
            P::Clearance | P::IntercompartmentalClearance => (1e-4, 1e4),
            P::CentralVolume | P::PeripheralVolume => (1e-2, 1e5),
            P::AbsorptionRate => (1e-3, 1e3),
            P::Bioavailability => (0.0, 1.0),
            P::LagTime => (0.0, 48.0),
            P::Duration => (1e-2, 1e5),
            P::Points => (2.0, f64::from(POINTS_MAX)),
        }
    }
}

impl fmt::Display for ParameterPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
