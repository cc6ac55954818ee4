//! Parses requests in natural language, without a model.
//!
//! Matches words and numbers in any order. Reports what it does not understand and never guesses.

use super::tool;

/// A parsed request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    /// Simulate a regimen.
    Simulate(Regimen),
    /// Only load a model.
    Load,
    /// Set a parameter.
    Change {
        path: &'static str,
        value: Option<Quantity>,
    },
    /// Run the current simulation.
    Run,
    Read(&'static str),
    /// One metric of the last run, or all.
    Results(Option<Figure>),
    /// List the models.
    Models,
    /// List the parameters.
    Parameters,
    Help,
    /// Not understood.
    Unknown,
}

/// The stated parts of a regimen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Regimen {
    pub(super) dose: Option<Quantity>,
    pub(super) interval_h: Option<f64>,
    pub(super) duration_h: Option<f64>,
    pub(super) doses: Option<f64>,
    pub(super) route: Option<&'static str>,
}

/// A number and its unit, if any, spelled as the tools accept it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantity {
    pub(super) value: f64,
    pub(super) unit: Option<&'static str>,
}

/// A metric of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    Cmax,
    Tmax,
    Auc,
    HalfLife,
}

/// Words for units, and the tools' spelling.
const UNITS: &[(&[&str], &str)] = &[
    (&["mg", "milligram", "milligrams"], "mg"),
    (&["g", "gram", "grams"], "g"),
    (&["ug", "mcg", "µg", "μg", "microgram", "micrograms"], "ug"),
    (&["ng"], "ng"),
    (&["kg"], "kg"),
    (&["h", "hr", "hrs", "hour", "hours"], "h"),
    (&["min", "mins", "minute", "minutes"], "min"),
    (&["d", "day", "days"], "d"),
    (&["l", "liter", "liters", "litre", "litres"], "L"),
    (&["ml"], "mL"),
    (&["l/h"], "L/h"),
    (&["ml/min"], "mL/min"),
    (&["1/h", "/h"], "1/h"),
    (&["%", "percent"], "%"),
];

/// Words for parameters, longer ones first where one contains the other.
const PARAMETERS: &[(&str, &str)] = &[
    ("intercompartmental", "Drug|IntercompartmentalClearance"),
    ("clearance", "Drug|Clearance"),
    ("peripheral volume", "Drug|PeripheralVolume"),
    ("volume", "Drug|CentralVolume"),
    ("absorption", "Drug|AbsorptionRate"),
    ("bioavailability", "Drug|Bioavailability"),
    ("lag", "Drug|LagTime"),
    ("infusion duration", "Dosing|InfusionDuration"),
    ("infusion time", "Dosing|InfusionDuration"),
    ("interval", "Dosing|Interval"),
    ("number of doses", "Dosing|Doses"),
    ("doses", "Dosing|Doses"),
    ("dose", "Dosing|Dose"),
    ("duration", "Simulation|Duration"),
    ("points", "Simulation|Points"),
];

/// Words for parameters that people state without a unit, and the tools' names.
const PLAIN: &[(&str, &str)] = &[
    ("Dosing|Doses", "count"),
    ("Simulation|Points", "count"),
    ("Drug|Bioavailability", "fraction"),
];

const SIMULATE: &[&str] = &["simulate", "simulation", "give", "dose", "administer", "model", "try"];
const CHANGE: &[&str] =
    &["change", "set", "increase", "decrease", "raise", "lower", "reduce", "make", "use"];

impl Quantity {
    fn is_of(self, units: &[&str]) -> bool {
        self.unit.is_some_and(|unit| units.contains(&unit))
    }

    fn hours(self) -> Option<f64> {
        match self.unit? {
            "h" => Some(self.value),
            "d" => Some(self.value * 24.0),
            "min" => Some(self.value / 60.0),
            _ => None,
        }
    }
}

/// The unit of a parameter that people state without one.
pub(super) fn plain_unit(path: &str) -> Option<&'static str> {
    PLAIN.iter().find(|(plain, _)| *plain == path).map(|(_, unit)| *unit)
}

/// Most words of a message that only clarifies the previous request.
const FRAGMENT_WORDS: usize = 4;

/// The text to parse after a clarifying question. A few words that are not a request themselves
/// complete the previous request; a unit completes its number.
pub(super) fn continued(before: &str, text: &str) -> String {
    let lower = text.to_lowercase();
    let few: Vec<&str> = words(&lower).collect();
    let stands_alone = match read(text) {
        Request::Unknown => false,
        Request::Simulate(_) => few.first().is_some_and(|word| SIMULATE.contains(word)),
        _ => true,
    };
    if stands_alone || few.len() > FRAGMENT_WORDS || read(before) == Request::Unknown {
        return text.to_owned();
    }
    match few.as_slice() {
        [word] if unit(word).is_some() => with_unit(before, word),
        _ => format!("{before} {text}"),
    }
}

/// Inserts a unit after the first number that lacks one.
fn with_unit(text: &str, unit_: &str) -> String {
    let lower = text.to_lowercase();
    let plain: Vec<&str> = words(&lower).collect();
    let bare = quantities(&plain).into_iter().find(|(_, quantity)| quantity.unit.is_none());
    let Some((place, _)) = bare else { return format!("{text} {unit_}") };
    let with = |(index, word): (usize, &&str)| {
        if index == place { format!("{word} {unit_}") } else { (*word).to_owned() }
    };
    plain.iter().enumerate().map(with).collect::<Vec<_>>().join(" ")
}

/// Parses a request.
pub(super) fn read(text: &str) -> Request {
    let lower = text.to_lowercase();
    let words: Vec<&str> = words(&lower).collect();
    let has = |any: &[&str]| words.iter().any(|word| any.contains(word));
    let quantities = quantities(&words);
    if has(&["help"]) {
        return Request::Help;
    }
    if has(&["models", "drugs"]) {
        return Request::Models;
    }
    if has(&["parameters", "parameter"]) && quantities.is_empty() {
        return Request::Parameters;
    }
    let figure = figure(&lower);
    let mass = quantities.iter().copied().find(|(_, q)| q.is_of(&["mg", "g", "ug", "ng", "kg"]));
    let parameter = PARAMETERS.iter().find(|(word, _)| lower.contains(word)).map(|(_, path)| *path);
    if has(CHANGE)
        && let Some(path) = parameter
    {
        return Request::Change { path, value: quantities.last().map(|(_, quantity)| *quantity) };
    }
    if figure.is_some() || has(&["results", "result", "curve", "concentrations"]) {
        return Request::Results(figure);
    }
    if has(&["load"]) {
        return Request::Load;
    }
    if words.first().is_some_and(|word| SIMULATE.contains(word)) || mass.is_some() {
        return Request::Simulate(regimen(&lower, &words, &quantities));
    }
    if has(&["run", "rerun", "again"]) {
        return Request::Run;
    }
    match parameter {
        Some(path) => Request::Read(path),
        None => Request::Unknown,
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
        .map(|word| word.trim_matches(|c: char| ",.;:!?()\"'".contains(c)))
        .filter(|word| !word.is_empty())
}

fn figure(text: &str) -> Option<Figure> {
    [("cmax", Figure::Cmax), ("peak", Figure::Cmax), ("tmax", Figure::Tmax), ("auc", Figure::Auc)]
        .into_iter()
        .chain([
            ("area under", Figure::Auc),
            ("half-life", Figure::HalfLife),
            ("half life", Figure::HalfLife),
        ])
        .find(|(word, _)| text.contains(word))
        .map(|(_, figure)| figure)
}

/// The numbers with their units and word positions.
fn quantities(words: &[&str]) -> Vec<(usize, Quantity)> {
    let mut found = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let digits = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        // "q8h" means every eight hours.
        let (number, rest, place) = match word
            .strip_prefix('q')
            .map(|rest| (rest, rest.find(|c: char| !c.is_ascii_digit())))
        {
            Some((rest, Some(end))) if end > 0 => (&rest[..end], &rest[end..], place),
            _ => (&word[..digits], &word[digits..], place),
        };
        let Ok(value) = number.parse::<f64>() else { continue };
        let spelled =
            if rest.is_empty() { words.get(place + 1).copied().unwrap_or_default() } else { rest };
        found.push((place, Quantity { value, unit: unit(spelled) }));
    }
    found
}

fn unit(word: &str) -> Option<&'static str> {
    UNITS.iter().find(|(words, _)| words.contains(&word)).map(|(_, unit)| *unit)
}

fn regimen(text: &str, words: &[&str], quantities: &[(usize, Quantity)]) -> Regimen {
    let mut regimen = Regimen::default();
    for (place, quantity) in quantities {
        let before = place.checked_sub(1).map_or("", |place| words[place]);
        let after = |offset: usize| words.get(place + offset).copied().unwrap_or_default();
        let counts_doses =
            [after(1), after(2)].iter().any(|word| ["dose", "doses", "times"].contains(word));
        let is_every = before == "every" || words[*place].starts_with('q');
        match quantity.hours() {
            Some(hours) if is_every => regimen.interval_h = Some(hours),
            Some(hours) => regimen.duration_h = Some(hours),
            None if quantity.unit.is_none() && counts_doses => regimen.doses = Some(quantity.value),
            None => regimen.dose = regimen.dose.or(Some(*quantity)),
        }
    }
    let daily = [
        ("three times daily", 8.0),
        ("twice daily", 12.0),
        ("twice a day", 12.0),
        ("once daily", 24.0),
        ("daily", 24.0),
        ("once a day", 24.0),
    ];
    let said = daily.iter().find(|(words, _)| text.contains(words)).map(|(_, hours)| *hours);
    regimen.interval_h = regimen.interval_h.or(said);
    if text.contains("single dose") || text.contains("one dose") {
        regimen.doses = Some(1.0);
    }
    let routes = [
        ("oral", "oral"),
        ("tablet", "oral"),
        ("infusion", "iv_infusion"),
        ("bolus", "iv_bolus"),
        ("injection", "iv_bolus"),
    ];
    regimen.route = routes.iter().find(|(word, _)| text.contains(word)).map(|(_, route)| *route);
    regimen
}

/// The final tool of a request, for messages.
pub(super) fn tool_of(request: &Request) -> &'static str {
    match request {
        Request::Load => tool::LOAD,
        Request::Change { .. } => tool::SET,
        Request::Read(_) => tool::GET_PARAMETER,
        Request::Results(_) => tool::GET_RESULTS,
        Request::Models => tool::LIST_MODELS,
        Request::Parameters => tool::LIST_PARAMETERS,
        Request::Simulate(_) | Request::Run | Request::Help | Request::Unknown => tool::RUN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mg(value: f64) -> Option<Quantity> {
        Some(Quantity { value, unit: Some("mg") })
    }

    #[test]
    fn requests_are_read_in_the_words_that_people_use() {
        let regimen = Regimen::default;
        for (text, expected) in [
            (
                "simulate 250 mg oral of theophylline every 8 h for 3 days",
                Request::Simulate(Regimen {
                    dose: mg(250.0),
                    interval_h: Some(8.0),
                    duration_h: Some(72.0),
                    route: Some("oral"),
                    ..regimen()
                }),
            ),
            (
                "Give 1g vancomycin q12h, 6 doses.",
                Request::Simulate(Regimen {
                    dose: Some(Quantity { value: 1.0, unit: Some("g") }),
                    interval_h: Some(12.0),
                    doses: Some(6.0),
                    ..regimen()
                }),
            ),
            (
                "a single dose of 120 mg gentamicin as a bolus",
                Request::Simulate(Regimen {
                    dose: mg(120.0),
                    doses: Some(1.0),
                    route: Some("iv_bolus"),
                    ..regimen()
                }),
            ),
            (
                "simulate 250 of theophylline twice daily",
                Request::Simulate(Regimen {
                    dose: Some(Quantity { value: 250.0, unit: None }),
                    interval_h: Some(12.0),
                    ..regimen()
                }),
            ),
            ("what is the Cmax?", Request::Results(Some(Figure::Cmax))),
            ("And the half-life", Request::Results(Some(Figure::HalfLife))),
            (
                "change the dose to 300 mg",
                Request::Change { path: "Dosing|Dose", value: mg(300.0) },
            ),
            ("change the dose", Request::Change { path: "Dosing|Dose", value: None }),
            (
                "set the clearance to 90 mL/min",
                Request::Change {
                    path: "Drug|Clearance",
                    value: Some(Quantity { value: 90.0, unit: Some("mL/min") }),
                },
            ),
            (
                "use 4 doses",
                Request::Change {
                    path: "Dosing|Doses",
                    value: Some(Quantity { value: 4.0, unit: None }),
                },
            ),
            ("run it again", Request::Run),
            ("what is the bioavailability", Request::Read("Drug|Bioavailability")),
            ("which models are there?", Request::Models),
            ("load theophylline-oral", Request::Load),
            ("help", Request::Help),
            ("what is the weather like", Request::Unknown),
            ("", Request::Unknown),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_clarification_continues_the_earlier_request() {
        let asked = "simulate 250 of theophylline";
        for (before, text, expected) in [
            (asked, "mg", "simulate 250 mg of theophylline"),
            ("simulate 250 mg", "vancomycin", "simulate 250 mg vancomycin"),
            ("change the dose", "300 mg", "change the dose 300 mg"),
            (asked, "what is the cmax", "what is the cmax"),
            (asked, "simulate 100 mg of vancomycin", "simulate 100 mg of vancomycin"),
            ("what is the weather like", "sunny", "sunny"),
            ("", "mg", "mg"),
        ] {
            assert_eq!(continued(before, text), expected, "{before} + {text}");
        }
    }
}
