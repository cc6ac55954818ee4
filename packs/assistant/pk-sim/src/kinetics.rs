//! Closed-form solutions: concentrations of linear one- and two-compartment models.
//!
//! A unit of drug in the central compartment declines as a sum of exponentials. The response to one
//! dose is that sum convolved with the dose's input. The models are linear, so the response to
//! several doses is the sum of theirs. Units are mg, L and h throughout.

/// One exponential of the response to a unit bolus: `weight · e^(-rate·t)`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Term {
    /// 1/L.
    weight: f64,
    /// 1/h.
    rate: f64,
}

/// Distribution and elimination of a drug.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Disposition {
    clearance: f64,
    terms: Vec<Term>,
}

impl Disposition {
    /// One compartment.
    pub(super) fn one_compartment(clearance: f64, volume: f64) -> Self {
        let term = Term { weight: 1.0 / volume, rate: clearance / volume };
        Self { clearance, terms: vec![term] }
    }

    /// Two compartments, eliminated from the central one.
    ///
    /// Avoids cancellation: the differences follow from their known products, `α·β = k10·k21` and
    /// `(α - k21)(k21 - β) = k12·k21`.
    pub(super) fn two_compartments(
        clearance: f64,
        central: f64,
        exchange: f64,
        peripheral: f64,
    ) -> Self {
        let (k10, k12, k21) = (clearance / central, exchange / central, exchange / peripheral);
        let skew = k10 + k12 - k21;
        let spread = (skew * skew + 4.0 * k12 * k21).sqrt();
        let alpha = (k10 + k12 + k21 + spread) / 2.0;
        let beta = k10 * k21 / alpha;
        let (above, below) = if skew > 0.0 {
            let above = (spread + skew) / 2.0;
            (above, k12 * k21 / above)
        } else {
            let below = (spread - skew) / 2.0;
            (k12 * k21 / below, below)
        };
        let fast = Term { weight: above / (spread * central), rate: alpha };
        let slow = Term { weight: below / (spread * central), rate: beta };
        Self { clearance, terms: vec![fast, slow] }
    }

    fn slowest_rate(&self) -> f64 {
        self.terms.iter().map(|term| term.rate).fold(f64::INFINITY, f64::min)
    }
}

/// How a dose reaches the central compartment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Input {
    Bolus,
    /// At a constant rate for this many hours.
    Infusion {
        duration: f64,
    },
    /// At a rate proportional to the remaining amount, after a lag in hours.
    FirstOrder {
        rate: f64,
        lag: f64,
    },
}

/// Equal doses at equal intervals, the first at time 0.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Regimen {
    pub disposition: Disposition,
    /// The input of each dose.
    pub input: Input,
    /// The absorbed amount of each dose, in mg.
    pub dose: f64,
    /// Interval between doses, in h.
    pub interval: f64,
    /// Number of doses.
    pub doses: u32,
}

/// The highest concentration and its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Peak {
    /// h.
    pub time: f64,
    /// mg/L.
    pub concentration: f64,
}

/// Parts into which the search for the peak divides its interval.
const PEAK_PARTS: u32 = 64;

/// Steps of the golden-section search. Each keeps 0.618 of the bracket, so 60 reach the last digit.
const PEAK_STEPS: u32 = 60;

/// Parts between two events in which the search for a level's crossings looks.
const ABOVE_PARTS: u32 = 16;

/// e to the power of minus this is no digit of a double: the rest of a dose is gone.
const STEADY_EXPONENT: f64 = 40.0;

/// Most doses that are added up for the steady state.
const STEADY_DOSES_MAX: f64 = 100_000.0;

impl Regimen {
    /// Concentration in the central compartment, in mg/L. At the time of a bolus, the value just
    /// after it.
    pub(super) fn concentration(&self, time: f64) -> f64 {
        (0..self.given(time)).map(|dose| self.of_one(time - self.start(dose))).sum()
    }

    /// Doses given by this time.
    pub(super) fn given(&self, time: f64) -> u32 {
        self.doses_before(time / self.interval)
    }

    /// Area under the concentration from 0 to this time, in mg·h/L.
    pub(super) fn area(&self, time: f64) -> f64 {
        (0..self.given(time)).map(|dose| self.area_of_one(time - self.start(dose))).sum()
    }

    /// Area under the concentration from 0 to infinity, counting only the doses given by this time.
    pub(super) fn area_to_infinity(&self, time: f64) -> f64 {
        f64::from(self.given(time)) * self.dose / self.disposition.clearance
    }

    /// Half-life of the terminal phase, in h: of the slowest process, which is absorption if
    /// absorption is slower than elimination.
    pub(super) fn half_life(&self) -> f64 {
        let elimination = self.disposition.slowest_rate();
        let rate = match self.input {
            Input::FirstOrder { rate, .. } => rate.min(elimination),
            Input::Bolus | Input::Infusion { .. } => elimination,
        };
        std::f64::consts::LN_2 / rate
    }

    /// The highest concentration from 0 to `until`.
    ///
    /// Doses add up, so each interval is at least as high as the one before it at the same time
    /// after its dose. The peak is therefore in the last interval, or in the one before it if the
    /// last is cut short.
    pub(super) fn peak(&self, until: f64) -> Peak {
        let delay = match self.input {
            Input::FirstOrder { lag, .. } => lag,
            Input::Bolus | Input::Infusion { .. } => 0.0,
        };
        let begun = if until < delay { 0 } else { self.given(until - delay) };
        let mut best = Peak { time: 0.0, concentration: self.concentration(0.0) };
        for dose in begun.saturating_sub(2)..begun {
            let start = self.start(dose) + delay;
            for peak in self.peaks_after(start, until) {
                if peak.concentration > best.concentration {
                    best = peak;
                }
            }
        }
        best
    }

    /// Concentration just before the dose that follows this many doses, in mg/L.
    pub(super) fn trough(&self, doses: u32) -> f64 {
        (1..=doses).map(|since| self.of_one(f64::from(since) * self.interval)).sum()
    }

    /// The trough at steady state, in mg/L. `None` if it takes more than [`STEADY_DOSES_MAX`] doses.
    pub(super) fn steady_trough(&self) -> Option<f64> {
        let slowest = std::f64::consts::LN_2 / self.half_life();
        let doses = (STEADY_EXPONENT / (slowest * self.interval)).ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded")]
        (doses <= STEADY_DOSES_MAX).then(|| self.trough(doses as u32 + 1))
    }

    /// Time with a concentration above this level from 0 to `until`, in h.
    pub(super) fn time_above(&self, level: f64, until: f64) -> f64 {
        let mut stops = vec![until];
        for dose in 0..self.given(until) {
            let start = self.start(dose);
            stops.extend(match self.input {
                Input::Bolus => vec![start],
                Input::Infusion { duration } => vec![start, start + duration],
                Input::FirstOrder { lag, .. } => vec![start, start + lag],
            });
        }
        stops.retain(|stop| *stop <= until);
        stops.sort_by(f64::total_cmp);
        stops.windows(2).map(|stop| self.above_between(level, stop[0], stop[1])).sum()
    }

    /// Time above a level between two events.
    fn above_between(&self, level: f64, from: f64, to: f64) -> f64 {
        let given = self.given(from);
        // The doses before this part: a bolus at its end is not in it.
        let over = |time: f64| {
            (0..given).map(|dose| self.of_one(time - self.start(dose))).sum::<f64>() - level
        };
        let width = (to - from) / f64::from(ABOVE_PARTS);
        let mut total = 0.0;
        let mut left = (from, over(from));
        for part in 1..=ABOVE_PARTS {
            let time = from + f64::from(part) * width;
            let right = (time, over(time));
            total += match (left.1 > 0.0, right.1 > 0.0) {
                (true, true) => width,
                (false, false) => 0.0,
                (was_above, _) => {
                    let crossing = crossing(&over, left.0, right.0);
                    if was_above { crossing - left.0 } else { right.0 - crossing }
                }
            };
            left = right;
        }
        total
    }

    fn start(&self, dose: u32) -> f64 {
        f64::from(dose) * self.interval
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time is not negative, and a number that is too large becomes the largest"
    )]
    fn doses_before(&self, intervals: f64) -> u32 {
        (intervals.floor() as u32).saturating_add(1).min(self.doses)
    }

    /// Times after the start of a dose's input that can hold the peak.
    fn peaks_after(&self, start: f64, until: f64) -> Vec<Peak> {
        let at = |time: f64| Peak { time, concentration: self.concentration(time) };
        match self.input {
            Input::Bolus => vec![at(start)],
            Input::Infusion { duration } => vec![at(start), at(until.min(start + duration))],
            Input::FirstOrder { rate, .. } => {
                // Each exponential alone peaks at ln(ka/k)/(ka-k), which is before 1/min(ka, k).
                let last = start + 1.0 / rate.min(self.disposition.slowest_rate());
                let width = (until.min(last) - start) / f64::from(PEAK_PARTS);
                let highest = (0..=PEAK_PARTS)
                    .map(|part| at(start + f64::from(part) * width))
                    .reduce(|a, b| if b.concentration > a.concentration { b } else { a });
                let near = highest.map_or(start, |peak| peak.time);
                let bracket = ((near - width).max(start), (near + width).min(until));
                highest.into_iter().chain([self.highest_in(bracket)]).collect()
            }
        }
    }

    /// Golden-section search in a bracket with one peak.
    fn highest_in(&self, (mut low, mut high): (f64, f64)) -> Peak {
        let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
        for _ in 0..PEAK_STEPS {
            let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
            if self.concentration(left) < self.concentration(right) {
                low = left;
            } else {
                high = right;
            }
        }
        let time = f64::midpoint(low, high);
        Peak { time, concentration: self.concentration(time) }
    }

    /// The contribution of one dose, this many hours after it.
    fn of_one(&self, time: f64) -> f64 {
        let terms = self.disposition.terms.iter();
        let sum: f64 = match self.input {
            Input::Bolus => terms.map(|term| term.weight * (-term.rate * time).exp()).sum(),
            Input::Infusion { duration } => {
                let (during, after) = (time.min(duration), (time - duration).max(0.0));
                let of = |term: &Term| {
                    let reached = fallen(term.rate, during) / duration;
                    term.weight * reached * (-term.rate * after).exp()
                };
                terms.map(of).sum()
            }
            Input::FirstOrder { rate, lag } => {
                let time = (time - lag).max(0.0);
                terms.map(|term| term.weight * rate * passing(term.rate, rate, time)).sum()
            }
        };
        self.dose * sum
    }

    /// The integral of [`Regimen::of_one`] from 0.
    fn area_of_one(&self, time: f64) -> f64 {
        let terms = self.disposition.terms.iter();
        let sum: f64 = match self.input {
            Input::Bolus => terms.map(|term| term.weight * fallen(term.rate, time)).sum(),
            Input::Infusion { duration } => {
                let (during, after) = (time.min(duration), (time - duration).max(0.0));
                let of = |term: &Term| {
                    let reached = fallen(term.rate, during);
                    let rising = (during - reached) / term.rate;
                    term.weight * (rising + reached * fallen(term.rate, after)) / duration
                };
                terms.map(of).sum()
            }
            Input::FirstOrder { rate, lag } => {
                let time = (time - lag).max(0.0);
                let of = |term: &Term| {
                    // The absorbed part satisfies y' = e^(-ka·t) - k·y; this integrates it.
                    let left = passing(term.rate, rate, time);
                    term.weight * rate * (fallen(rate, time) - left) / term.rate
                };
                terms.map(of).sum()
            }
        };
        self.dose * sum
    }
}

/// Where a function changes its sign, by bisection.
fn crossing(over: &impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let is_above = over(low) > 0.0;
    for _ in 0..PEAK_STEPS {
        let middle = f64::midpoint(low, high);
        if (over(middle) > 0.0) == is_above { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// `(1 - e^(-rate·t)) / rate`, the integral of an exponential decline.
fn fallen(rate: f64, time: f64) -> f64 {
    -(-rate * time).exp_m1() / rate
}

/// `(e^(-a·t) - e^(-b·t)) / (b - a)`, one decline fed by another. Stays exact when the rates are
/// nearly or exactly equal.
fn passing(a: f64, b: f64, time: f64) -> f64 {
    let (slow, difference) = (a.min(b), (a - b).abs());
    let grown = if difference > 0.0 { fallen(difference, time) } else { time };
    (-slow * time).exp() * grown
}

#[cfg(test)]
mod tests;
