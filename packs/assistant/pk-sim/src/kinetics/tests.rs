//! Compares the solutions with textbook formulas and with numerical integration.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64) {
    let error = (found - expected).abs() / expected.abs().max(f64::MIN_POSITIVE);
    assert!(error <= tolerance, "{found} is not {expected}: off by {error:e}");
}

fn single(disposition: Disposition, input: Input, dose: f64) -> Regimen {
    Regimen { disposition, input, dose, interval: 24.0, doses: 1 }
}

#[test]
fn a_bolus_declines_with_the_textbook_s_exponential() {
    let regimen = single(Disposition::one_compartment(5.4, 17.5), Input::Bolus, 350.0);
    let k: f64 = 5.4 / 17.5;
    for time in [0.0, 0.5, 2.0, 12.0, 48.0] {
        near(regimen.concentration(time), 20.0 * (-k * time).exp(), 1e-12);
        near(
            regimen.area(time).max(1e-300),
            (20.0 / k * (1.0 - (-k * time).exp())).max(1e-300),
            1e-12,
        );
    }
    near(regimen.area_to_infinity(0.0), 350.0 / 5.4, 1e-15);
    near(regimen.half_life(), 2.0_f64.ln() / k, 1e-15);
    assert_eq!(regimen.peak(24.0), Peak { time: 0.0, concentration: 20.0 });
}

#[test]
fn an_infusion_rises_to_its_end_and_declines() {
    let (clearance, volume, dose, duration) = (4.0, 30.0, 1000.0, 2.0);
    let input = Input::Infusion { duration };
    let regimen = single(Disposition::one_compartment(clearance, volume), input, dose);
    let k: f64 = clearance / volume;
    let plateau = dose / duration / clearance;
    let end = plateau * (1.0 - (-k * duration).exp());
    near(regimen.concentration(1.0), plateau * (1.0 - (-k).exp()), 1e-12);
    near(regimen.concentration(9.0), end * (-k * 7.0).exp(), 1e-12);
    let peak = regimen.peak(24.0);
    near(peak.concentration, end, 1e-12);
    near(peak.time, duration, 1e-12);
    near(regimen.area(2000.0), dose / clearance, 1e-9);
}

#[test]
fn an_oral_dose_follows_bateman_s_function() {
    let (clearance, volume, ka, lag, dose) = (2.8, 35.0, 1.5, 0.25, 320.0);
    let input = Input::FirstOrder { rate: ka, lag };
    let regimen = single(Disposition::one_compartment(clearance, volume), input, dose);
    let k: f64 = clearance / volume;
    let bateman = |t: f64| dose * ka / (volume * (ka - k)) * ((-k * t).exp() - (-ka * t).exp());
    for time in [0.5, 1.0, 4.0, 24.0] {
        near(regimen.concentration(time), bateman(time - lag), 1e-10);
    }
    assert_eq!(regimen.concentration(0.2), 0.0);
    let highest = (ka / k).ln() / (ka - k);
    let peak = regimen.peak(24.0);
    near(peak.time, highest + lag, 1e-7);
    near(peak.concentration, bateman(highest), 1e-12);
    near(regimen.half_life(), 2.0_f64.ln() / k, 1e-15);
}

#[test]
fn equal_absorption_and_elimination_rates_do_not_divide_by_zero() {
    let input = Input::FirstOrder { rate: 0.5, lag: 0.0 };
    let regimen = single(Disposition::one_compartment(5.0, 10.0), input, 100.0);
    for time in [0.1, 2.0, 10.0] {
        near(regimen.concentration(time), 10.0 * 0.5 * time * (-0.5 * time).exp(), 1e-12);
    }
    near(regimen.peak(24.0).time, 2.0, 1e-7);
    let input = Input::FirstOrder { rate: 0.5 + 1e-13, lag: 0.0 };
    let nearly = single(Disposition::one_compartment(5.0, 10.0), input, 100.0);
    near(nearly.concentration(2.0), regimen.concentration(2.0), 1e-11);
}

#[test]
fn slow_absorption_is_what_the_last_decline_shows() {
    let input = Input::FirstOrder { rate: 0.02, lag: 0.0 };
    let regimen = single(Disposition::one_compartment(5.0, 10.0), input, 100.0);
    near(regimen.half_life(), 2.0_f64.ln() / 0.02, 1e-15);
}

#[test]
fn repeated_boluses_accumulate_as_the_geometric_series_says() {
    let disposition = Disposition::one_compartment(5.4, 17.5);
    let regimen =
        Regimen { disposition, input: Input::Bolus, dose: 120.0, interval: 8.0, doses: 12 };
    let k: f64 = 5.4 / 17.5;
    let ratio = (1.0 - (-12.0 * k * 8.0).exp()) / (1.0 - (-k * 8.0).exp());
    let peak = regimen.peak(96.0);
    near(peak.concentration, 120.0 / 17.5 * ratio, 1e-12);
    near(peak.time, 88.0, 1e-15);
    assert_eq!((regimen.given(7.9), regimen.given(8.0), regimen.given(1e9)), (1, 2, 12));
}

/// Source: M. Rowland, T. Tozer, Clinical Pharmacokinetics and Pharmacodynamics, multiple-dose
/// regimens: C(min,n) = C0·e^(-kτ)·(1 - e^(-nkτ)) / (1 - e^(-kτ)), and its limit.
#[test]
fn troughs_and_steady_state_are_the_textbook_s() {
    let disposition = Disposition::one_compartment(5.4, 17.5);
    let regimen =
        Regimen { disposition, input: Input::Bolus, dose: 120.0, interval: 8.0, doses: 3 };
    let (k, c0): (f64, f64) = (5.4 / 17.5, 120.0 / 17.5);
    let left = (-k * 8.0).exp();
    near(regimen.trough(3), c0 * left * (1.0 - left.powi(3)) / (1.0 - left), 1e-12);
    near(regimen.steady_trough().unwrap(), c0 * left / (1.0 - left), 1e-12);
}

#[test]
fn the_time_above_a_level_is_the_textbook_s() {
    let (k, c0): (f64, f64) = (5.4 / 17.5, 120.0 / 17.5);
    let one = single(Disposition::one_compartment(5.4, 17.5), Input::Bolus, 120.0);
    near(one.time_above(2.0, 24.0), (c0 / 2.0).ln() / k, 1e-9);
    assert_eq!(one.time_above(100.0, 24.0), 0.0);
    near(one.time_above(0.0, 24.0), 24.0, 1e-12);
    let disposition = Disposition::one_compartment(5.4, 17.5);
    let three = Regimen { disposition, input: Input::Bolus, dose: 120.0, interval: 8.0, doses: 3 };
    let left = (-k * 8.0).exp();
    let each = |start: f64| (start / 2.0).ln() / k;
    let expected =
        each(c0) + each(c0 * (1.0 + left)) + each(c0 * (1.0 + left + left * left)).min(8.0);
    near(three.time_above(2.0, 24.0), expected, 1e-9);
}

/// The amounts in the gut, the central and the peripheral compartment, in mg.
type Amounts = [f64; 3];

/// The same model as differential equations.
struct Equations {
    clearance: f64,
    central: f64,
    exchange: f64,
    peripheral: f64,
    input: Input,
    dose: f64,
    interval: f64,
    doses: u32,
}

impl Equations {
    fn regimen(&self) -> Regimen {
        Regimen {
            disposition: Disposition::two_compartments(
                self.clearance,
                self.central,
                self.exchange,
                self.peripheral,
            ),
            input: self.input,
            dose: self.dose,
            interval: self.interval,
            doses: self.doses,
        }
    }

    fn slope(&self, amounts: Amounts, infused: f64) -> Amounts {
        let [gut, central, peripheral] = amounts;
        let absorbed = match self.input {
            Input::FirstOrder { rate, .. } => rate * gut,
            Input::Bolus | Input::Infusion { .. } => 0.0,
        };
        let out = self.exchange * central / self.central;
        let back = self.exchange * peripheral / self.peripheral;
        let cleared = self.clearance * central / self.central;
        [-absorbed, absorbed + infused - cleared - out + back, out - back]
    }

    /// Times at which an input begins or ends, and the requested time.
    fn stops(&self, until: f64) -> Vec<f64> {
        let mut stops = vec![until];
        for dose in 0..self.doses {
            let start = f64::from(dose) * self.interval;
            stops.extend(match self.input {
                Input::Bolus => vec![start],
                Input::Infusion { duration } => vec![start, start + duration],
                Input::FirstOrder { lag, .. } => vec![start + lag],
            });
        }
        stops.retain(|stop| *stop <= until);
        stops.sort_by(f64::total_cmp);
        stops
    }

    /// Fourth-order Runge-Kutta with small steps from event to event. Returns the concentration and
    /// the area under it.
    fn integrate(&self, until: f64) -> (f64, f64) {
        let (mut amounts, mut area, mut time) = ([0.0; 3], 0.0, 0.0);
        for stop in self.stops(until) {
            let steps = ((stop - time) / 2e-3).ceil().max(1.0);
            let width = (stop - time) / steps;
            let middle = f64::midpoint(time, stop);
            let infused = match self.input {
                Input::Infusion { duration } => (0..self.doses)
                    .map(|dose| middle - f64::from(dose) * self.interval)
                    .filter(|since| (0.0..duration).contains(since))
                    .map(|_| self.dose / duration)
                    .sum(),
                Input::Bolus | Input::FirstOrder { .. } => 0.0,
            };
            for _ in 0..steps as u64 {
                let k1 = self.slope(amounts, infused);
                let k2 = self.slope(moved(amounts, k1, width / 2.0), infused);
                let k3 = self.slope(moved(amounts, k2, width / 2.0), infused);
                let k4 = self.slope(moved(amounts, k3, width), infused);
                let before = amounts;
                for (index, amount) in amounts.iter_mut().enumerate() {
                    *amount +=
                        width / 6.0 * (k1[index] + 2.0 * (k2[index] + k3[index]) + k4[index]);
                }
                // Hermite's rule, of the same order: the values and slopes at both ends.
                let slopes = k1[1] - self.slope(amounts, infused)[1];
                area += (width / 2.0 * (before[1] + amounts[1]) + width * width / 12.0 * slopes)
                    / self.central;
            }
            time = stop;
            for dose in 0..self.doses {
                let start = f64::from(dose) * self.interval;
                match self.input {
                    Input::Bolus if start == stop => amounts[1] += self.dose,
                    Input::FirstOrder { lag, .. } if start + lag == stop => amounts[0] += self.dose,
                    _ => {}
                }
            }
        }
        (amounts[1] / self.central, area)
    }
}

fn moved(amounts: Amounts, slope: Amounts, by: f64) -> Amounts {
    [0, 1, 2].map(|index| amounts[index] + by * slope[index])
}

fn vancomycin(input: Input) -> Equations {
    Equations {
        clearance: 5.7,
        central: 14.7,
        exchange: 16.5,
        peripheral: 34.3,
        input,
        dose: 1000.0,
        interval: 12.0,
        doses: 3,
    }
}

#[test]
fn two_compartments_match_numerical_integration() {
    for input in
        [Input::Bolus, Input::Infusion { duration: 1.5 }, Input::FirstOrder { rate: 0.8, lag: 0.4 }]
    {
        let equations = vancomycin(input);
        let regimen = equations.regimen();
        for time in [0.7, 1.5, 5.0, 11.9, 13.1, 30.0, 60.0] {
            let (concentration, area) = equations.integrate(time);
            near(regimen.concentration(time), concentration, 1e-8);
            near(regimen.area(time), area, 1e-8);
        }
        near(regimen.area(3000.0), regimen.area_to_infinity(3000.0), 1e-9);
    }
}

#[test]
fn one_compartment_equals_two_with_almost_no_exchange() {
    let two = Disposition::two_compartments(5.0, 20.0, 1e-9, 20.0);
    let one = single(Disposition::one_compartment(5.0, 20.0), Input::Bolus, 100.0);
    let two = single(two, Input::Bolus, 100.0);
    for time in [0.0, 1.0, 12.0] {
        near(two.concentration(time), one.concentration(time), 1e-7);
    }
}

#[test]
fn nothing_is_there_before_the_lag_is_over() {
    let input = Input::FirstOrder { rate: 1.0, lag: 30.0 };
    let regimen = single(Disposition::one_compartment(5.0, 20.0), input, 100.0);
    assert_eq!(regimen.peak(24.0), Peak { time: 0.0, concentration: 0.0 });
    assert_eq!(regimen.area(24.0), 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn samples_are_at_most_the_peak_and_never_negative(
        (clearance, central, exchange, peripheral) in (0.1..50.0, 1.0..100.0, 0.01..50.0, 1.0..300.0),
        kind in 0..3,
        (rate, lag, duration) in (0.05..5.0, 0.0..2.0, 0.1..4.0),
        doses in 1_u32..6,
    ) {
        let input = match kind {
            0 => Input::Bolus,
            1 => Input::Infusion { duration },
            _ => Input::FirstOrder { rate, lag },
        };
        let equations =
            Equations { clearance, central, exchange, peripheral, input, dose: 100.0, interval: 8.0, doses };
        let regimen = equations.regimen();
        let until = 41.0;
        let peak = regimen.peak(until);
        let mut area = 0.0;
        for point in 0..=2000 {
            let time = until * f64::from(point) / 2000.0;
            let concentration = regimen.concentration(time);
            prop_assert!(concentration >= 0.0 && concentration.is_finite());
            prop_assert!(concentration <= peak.concentration * (1.0 + 1e-12), "{time}: {concentration} {peak:?}");
            let next = regimen.area(time);
            prop_assert!(next >= area * (1.0 - 1e-9));
            area = next;
        }
        prop_assert!(area <= regimen.area_to_infinity(until) * (1.0 + 1e-9));
    }
}
