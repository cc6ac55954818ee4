//! What a request makes of a simulation's values, and how the whole regimen is shown.

use std::collections::BTreeMap;

use serde_json::Value;

use super::request::{
    Amount, Change, Model, Question, Request, Route, dimension_of, number, path, quoted, rounded,
};

/// Doses below this share of the model's default, or above its inverse, are pointed out.
const UNUSUAL_SHARE: f64 = 0.1;

/// A dose of more than so many times the model's is warned about.
const UNUSUAL_FACTOR: f64 = 5.0;

/// Smaller relative differences are rounding errors.
pub(crate) const SAME: f64 = 1e-9;

/// Longest time after "for" that can be an infusion's, in h.
const INFUSION_HOURS_MAX: f64 = 12.0;

/// A parameter's value, unit and range.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    pub value: f64,
    pub unit: String,
    pub range: Option<(f64, f64)>,
}

/// The values of a simulation or the defaults of a model, by path.
pub(crate) type Values = BTreeMap<String, Setting>;

/// Reads `[{"parameter_path", "value", "unit", "min"?, "max"?}]`. `None` if there is none.
pub(crate) fn values(listed: &Value) -> Option<Values> {
    let setting = |entry: &Value| {
        let number = |name: &str| entry.get(name)?.as_f64();
        let path = entry.get("parameter_path")?.as_str()?.to_owned();
        let unit = entry.get("unit")?.as_str()?.to_owned();
        let range = number("min").zip(number("max"));
        Some((path, Setting { value: number("value")?, unit, range }))
    };
    let values: Values = listed.as_array()?.iter().filter_map(setting).collect();
    (!values.is_empty()).then_some(values)
}

/// The value that a parameter gets, in the canonical unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub path: &'static str,
    pub value: f64,
    /// How it was computed.
    pub computed: Option<String>,
}

/// The values that a request sets, in the order of the request.
///
/// # Errors
/// The request contradicts itself, the model or the current values.
pub(crate) fn targets(
    request: &Request,
    model: &Model,
    base: &Values,
    is_new: bool,
) -> Result<Vec<Target>, Question> {
    let mut planned = Planned { request, model, base, is_new, targets: Vec::new() };
    for change in &request.changes {
        planned.apply(change)?;
    }
    planned.complete()?;
    planned.check()?;
    Ok(planned.targets)
}

struct Planned<'a> {
    request: &'a Request,
    model: &'a Model,
    base: &'a Values,
    is_new: bool,
    targets: Vec<Target>,
}

impl Planned<'_> {
    fn value(&self, path: &str) -> Option<f64> {
        let target = self.targets.iter().find(|target| target.path == path);
        target.map(|target| target.value).or_else(|| Some(self.base.get(path)?.value))
    }

    fn put(&mut self, target: Target) {
        self.targets.retain(|other| other.path != target.path);
        self.targets.push(target);
    }

    fn apply(&mut self, change: &Change) -> Result<(), Question> {
        let said = quoted(&change.said);
        let Some(now) = self.value(change.path) else {
            let has: Vec<&str> = self.base.keys().map(String::as_str).collect();
            return Err(Question::new(format!(
                "{said}: {} has no {}. It has {}. What do you mean?",
                self.model.path,
                change.path,
                has.join(", ")
            )));
        };
        let is_relative =
            matches!(change.amount, Amount::By(..) | Amount::Times(_) | Amount::Toward(..));
        let is_stated = self.targets.iter().any(|target| target.path == change.path);
        if self.is_new && is_relative && !is_stated && !change.path.starts_with("Drug|") {
            let unit = &self.base[change.path].unit;
            return Err(Question::new(format!(
                "{said}: of which value? The model's default is {} {unit}.",
                number(now)
            )));
        }
        let unit = dimension_of(change.path).map_or("", |dimension| dimension.canonical());
        let shown = |value: f64| format!("{} {unit}", number(value));
        let value = match change.amount {
            Amount::To(quantity) => quantity.canonical(),
            Amount::FromTo(before, _) if !same(before.canonical(), now) => {
                return Err(Question::new(format!(
                    "{said}: {} is {} now. Which value is to change?",
                    change.path,
                    shown(now)
                )));
            }
            Amount::FromTo(_, after) => after.canonical(),
            Amount::Toward(sign, quantity) => {
                let value = quantity.canonical();
                if (value - now) * sign <= 0.0 {
                    return Err(Question::new(format!(
                        "{said}: {} is {} now. Is the new value {}?",
                        change.path,
                        shown(now),
                        shown(value)
                    )));
                }
                value
            }
            Amount::By(sign, quantity) => now + sign * quantity.canonical(),
            Amount::Times(factor) => now * factor,
        };
        let value = rounded(value);
        let computed = change.computed.clone().or_else(|| match change.amount {
            Amount::By(..) | Amount::Times(_) => Some(format!("{} before", shown(now))),
            _ => None,
        });
        self.put(Target { path: change.path, value, computed });
        Ok(())
    }

    /// Number of doses and simulated time, where one follows from the other.
    fn complete(&mut self) -> Result<(), Question> {
        let said = |path: &str| self.request.sets(path);
        let (every, count, long) = (said(path::INTERVAL), said(path::DOSES), said(path::DURATION));
        let (Some(interval), Some(doses), Some(duration)) =
            (self.value(path::INTERVAL), self.value(path::DOSES), self.value(path::DURATION))
        else {
            return Ok(());
        };
        if self.is_new {
            self.ask_for_missing(every, count, long, doses)?;
        }
        let fill = |why: &str| Target {
            path: path::DOSES,
            value: (duration / interval - SAME).ceil().max(1.0),
            computed: Some(format!("{why} {} h", number(duration))),
        };
        match (every, count, long) {
            (true, false, true) => self.put(fill("fill the simulated")),
            (true, false, false) if !self.is_new && self.was_filled() => {
                self.put(fill("fill the simulated"));
            }
            (true, false, false) if self.is_new => {
                let target = fill("not stated; fill the model's simulated");
                if target.value < 2.0 {
                    return Err(Question::new(format!(
                        "Every {} h for how long, or how many doses?",
                        number(interval)
                    )));
                }
                self.put(target);
            }
            (_, true, false) if (self.is_new || every) && doses > 1.0 => self.put(Target {
                path: path::DURATION,
                value: rounded(doses * interval),
                computed: Some(format!("{} intervals", number(doses))),
            }),
            _ => {}
        }
        Ok(())
    }

    /// Whether the doses went on until the end of the simulated time.
    fn was_filled(&self) -> bool {
        let of = |path: &str| self.base.get(path).map(|setting| setting.value);
        let (Some(doses), Some(interval), Some(duration)) =
            (of(path::DOSES), of(path::INTERVAL), of(path::DURATION))
        else {
            return false;
        };
        doses > 1.0 && same(doses, (duration / interval - SAME).ceil())
    }

    /// A new simulation needs a dose and how often it is given, unless all of it is the default.
    fn ask_for_missing(
        &self,
        every: bool,
        count: bool,
        long: bool,
        doses: f64,
    ) -> Result<(), Question> {
        let dose = self.request.sets(path::DOSE);
        let (drug, default) = (&self.model.drug, self.base.get(path::DOSE));
        if !dose && (every || count || long) {
            let default =
                default.map(|d| format!(" The model's default is {} {}.", number(d.value), d.unit));
            let default = default.unwrap_or_default();
            return Err(Question::new(format!("Which dose of {drug}?{default}")));
        }
        let is_repeated = doses > 1.0;
        if dose && !every && (long && !count || is_repeated) {
            let said = self.request.changes.iter().find(|change| change.path == path::DOSE);
            let said = said.map(|change| quoted(&change.said)).unwrap_or_default();
            return Err(Question::new(format!("{said}: once, or how often? Such as: every 12 h.")));
        }
        let is_short = self.value(path::DURATION).is_some_and(|hours| hours <= INFUSION_HOURS_MAX);
        if long
            && is_short
            && self.model.route == "iv_infusion"
            && !self.request.sets(path::INFUSION)
        {
            return Err(Question::new(
                "Is this time the infusion's (infused over) or the simulated one (simulate for)?",
            ));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Question> {
        let fits = match (self.request.route, self.model.route.as_str()) {
            (Some(Route::Oral), route) => route == "oral",
            (Some(Route::Intravenous), route) => route.starts_with("iv"),
            (Some(Route::Bolus), route) => route == "iv_bolus",
            (Some(Route::Infusion), route) => route == "iv_infusion",
            (Some(Route::Unknown) | None, _) => true,
        };
        if !fits {
            return Err(Question::new(format!(
                "{} has a different route: {}. Which do you mean?",
                self.model.path, self.model.route
            )));
        }
        for target in &self.targets {
            let Some(setting) = self.base.get(target.path) else { continue };
            let (min, max) = setting.range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
            let is_dose = target.path == path::DOSE && target.value <= 0.0;
            if !(min..=max).contains(&target.value) || is_dose || target.value.is_nan() {
                return Err(Question::new(format!(
                    "{} {} {} is outside of the model's range, {} to {} {}. Which value?",
                    target.path,
                    number(target.value),
                    setting.unit,
                    number(min),
                    number(max),
                    setting.unit
                )));
            }
        }
        let by_weight = self.request.changes.iter().any(|change| change.computed.is_some());
        match self.request.weight {
            Some(weight) if !by_weight && !self.is_new => Err(Question::new(format!(
                "`{} kg`: the dose of the loaded simulation would stay as it is. State the dose for \
                 this weight, in mg or in mg/kg.",
                number(weight)
            ))),
            Some(weight) if !by_weight && !self.is_of(weight) => Err(Question::new(format!(
                "`{} kg`: the model does not scale with weight. State its clearance and volume, or \
                 leave the weight out.",
                number(weight)
            ))),
            _ => Ok(()),
        }
    }

    fn is_of(&self, weight: f64) -> bool {
        is_of_weight(self.model, weight)
    }
}

fn is_of_weight(model: &Model, weight: f64) -> bool {
    model.description.contains(&format!(" {} kg", number(weight)))
}

pub(crate) fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME * a.abs().max(b.abs()).max(1.0)
}

/// A regimen to show.
pub(crate) struct Shown<'a> {
    pub model: &'a Model,
    pub values: &'a Values,
    pub defaults: Option<&'a Values>,
    pub weight: Option<f64>,
    pub targets: &'a [Target],
}

impl Shown<'_> {
    fn value(&self, path: &str) -> Option<f64> {
        self.values.get(path).map(|setting| setting.value)
    }

    /// The regimen, what differs from the defaults, and warnings.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("Regimen: {}", self.regimen())];
        let computed = self.targets.iter().filter_map(|target| {
            let computed = target.computed.as_ref()?;
            Some(format!("Computed: {} {} ({computed})", target.path, number(target.value)))
        });
        lines.extend(computed);
        lines.extend(self.differences());
        lines.extend(self.warnings().into_iter().map(|warning| format!("Warning: {warning}")));
        lines
    }

    fn regimen(&self) -> String {
        let hours = |path: &str| self.value(path).map(|hours| format!("{} h", number(hours)));
        let dose = self.values.get(path::DOSE);
        let dose = dose.map_or("?".to_owned(), |d| format!("{} {}", number(d.value), d.unit));
        let count = self.value(path::DOSES).unwrap_or(1.0);
        let mut parts =
            vec![format!("{} ({}): {dose} × {}", self.model.path, self.model.route, number(count))];
        let interval = hours(path::INTERVAL).filter(|_| count > 1.0);
        parts.extend(interval.map(|interval| format!("every {interval}")));
        parts.extend(hours(path::INFUSION).map(|time| format!("each infused over {time}")));
        parts.extend(hours(path::DURATION).map(|time| format!("simulated for {time}")));
        parts.join(", ")
    }

    fn differences(&self) -> Option<String> {
        let defaults = self.defaults?;
        let differs = |(path, now): (&String, &Setting)| {
            let default = defaults.get(path).filter(|default| !same(default.value, now.value))?;
            let (value, before) = (number(now.value), number(default.value));
            Some(format!("{path} {value} {} (default {before})", now.unit))
        };
        let all: Vec<String> = self.values.iter().filter_map(differs).collect();
        Some(match all.is_empty() {
            true => "Differs from the model: nothing".to_owned(),
            false => format!("Differs from the model: {}", all.join(", ")),
        })
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let of = |path: &str| self.value(path);
        if let (Some(count), Some(interval), Some(duration)) =
            (of(path::DOSES), of(path::INTERVAL), of(path::DURATION))
            && count > 1.0
            && (count - 1.0) * interval >= duration
        {
            let fit = (duration / interval - SAME).ceil().max(1.0);
            warnings.push(format!(
                "{} doses every {} h do not fit into {} h; {} do",
                number(count),
                number(interval),
                number(duration),
                number(fit)
            ));
        }
        if let (Some(infusion), Some(duration)) = (of(path::INFUSION), of(path::DURATION))
            && infusion > duration
        {
            warnings.push("the simulated time ends before the infusion does".to_owned());
        }
        let default = self.defaults.and_then(|defaults| defaults.get(path::DOSE));
        if let (Some(dose), Some(default)) = (of(path::DOSE), default)
            && (dose < default.value * UNUSUAL_SHARE || dose > default.value * UNUSUAL_FACTOR)
        {
            let default = number(default.value);
            warnings.push(format!("the dose is far from the model's default, {default} mg"));
        }
        if let Some(weight) = self.weight.filter(|weight| !is_of_weight(self.model, *weight)) {
            let weight = number(weight);
            warnings.push(format!(
                "only the dose is for {weight} kg; clearance and volume stay those of the model"
            ));
        }
        warnings
    }
}

/// The values after the targets are set.
pub(crate) fn with_targets(base: &Values, targets: &[Target]) -> Values {
    let mut values = base.clone();
    for target in targets {
        if let Some(setting) = values.get_mut(target.path) {
            setting.value = target.value;
        }
    }
    values
}
