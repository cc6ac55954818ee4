//! Makes one request of the phrases, or asks about those that contradict each other.

use super::grammar::{Item, Phrase};
use super::quantity::{Dimension, Quantity};
use super::reader::Reader;
use super::{
    Amount, Change, Context, Figure, Inputs, Question, Request, Route, dimension_of, number, path,
    quoted, rounded,
};

const PARTS_OF_THE_DAY: [&str; 7] = ["morning", "evening", "night", "bedtime", "qam", "qpm", "qhs"];

/// A number alone is taken for a new dose if it is between this share of the dose before and the reciprocal.
const NEAR_SHARE: f64 = 0.2;

/// Collects the phrases of a text.
pub(super) struct Folding<'a> {
    reader: &'a Reader<'a>,
    context: Context<'a>,
    request: Request,
    doses: Vec<(Phrase, Quantity, Option<String>)>,
    before: Vec<(Phrase, Quantity)>,
    bare: Vec<(Phrase, Quantity)>,
    parameters: Vec<(Phrase, &'static str)>,
    divided: bool,
}

impl<'a> Folding<'a> {
    pub(super) fn new(reader: &'a Reader<'a>, context: Context<'a>) -> Self {
        Self {
            reader,
            context,
            request: Request::default(),
            doses: Vec::new(),
            before: Vec::new(),
            bare: Vec::new(),
            parameters: Vec::new(),
            divided: false,
        }
    }

    pub(super) fn add(&mut self, phrase: &Phrase, item: &Item) -> Result<(), Question> {
        match item {
            Item::Filler => {}
            Item::Simulate => self.request.simulates = true,
            Item::Load => self.request.loads = true,
            Item::Change => self.request.alters = true,
            Item::Run(runs) => match self.request.runs {
                Some(other) if other != *runs => {
                    return Err(self.ask(phrase, "run it, or not"));
                }
                _ => self.request.runs = Some(*runs),
            },
            Item::Drug(name) => match &self.request.drug {
                Some(other) if other != name => {
                    return Err(self.ask(phrase, "I simulate one drug at a time. Which one"));
                }
                _ => self.request.drug = Some(name.clone()),
            },
            Item::Model(name) => match &self.request.model {
                Some(other) if other != name => {
                    return Err(self.ask(phrase, "I simulate one model at a time. Which one"));
                }
                _ => self.request.model = Some(name.clone()),
            },
            Item::Dose(quantity, computed) => {
                self.doses.push((phrase.clone(), *quantity, computed.clone()));
            }
            Item::Set(path, amount) => self.set(phrase, path, *amount)?,
            Item::Before(_, quantity) => self.before.push((phrase.clone(), *quantity)),
            Item::Relative(amount) => {
                let path = self.implied(phrase, *amount)?;
                self.set(phrase, path, *amount)?;
            }
            Item::Parameter(path) => self.parameters.push((phrase.clone(), path)),
            Item::Divided => self.divided = true,
            Item::Route(route) => self.route(phrase, *route)?,
            Item::Weight(quantity) => match self.request.weight {
                Some(other) if other != quantity.canonical() => {
                    return Err(self.ask(phrase, "there are two weights. Which one"));
                }
                _ => self.request.weight = Some(quantity.canonical()),
            },
            Item::Bare(quantity) => self.bare.push((phrase.clone(), *quantity)),
            Item::Figure(figure) => {
                if !self.request.figures.contains(figure) {
                    self.request.figures.push(figure.clone());
                }
            }
            Item::Listing(listing) => self.request.listing = Some(*listing),
        }
        Ok(())
    }

    fn ask(&self, phrase: &Phrase, words: &str) -> Question {
        Question::about(self.reader, phrase, words)
    }

    fn said(&self, phrase: &Phrase) -> String {
        self.reader.slice(phrase.start, phrase.end).to_owned()
    }

    /// The parameter of a relative change that names none.
    fn implied(&self, phrase: &Phrase, amount: Amount) -> Result<&'static str, Question> {
        let is_mass = |quantity: Quantity| quantity.is(Dimension::Mass);
        match amount {
            Amount::By(_, quantity) | Amount::Toward(_, quantity) if is_mass(quantity) => {
                Ok(path::DOSE)
            }
            Amount::Toward(_, quantity)
                if quantity.unit.is_none() && self.goal_dose().is_some() =>
            {
                Ok(path::DOSE)
            }
            Amount::Times(_) if self.context.last.is_none_or(|last| !last.starts_with("Drug|")) => {
                Ok(path::DOSE)
            }
            _ => Err(self.ask(phrase, "of which parameter: the dose, the interval, the clearance")),
        }
    }

    /// The dose of the request that this one amends.
    fn goal_dose(&self) -> Option<Quantity> {
        let changes = self.context.goal?.changes.iter().rev();
        changes.filter(|change| change.path == path::DOSE).find_map(|change| match change.amount {
            Amount::To(quantity) | Amount::FromTo(_, quantity) | Amount::Toward(_, quantity) => {
                Some(quantity)
            }
            _ => None,
        })
    }

    /// A number without a unit as a dose, in the unit of the dose before or in mg, where it is near that dose.
    fn like_the_dose_before(&self, quantity: Quantity) -> Option<Quantity> {
        let goal = self.goal_dose()?;
        let in_mg = Quantity::of(quantity.value, Dimension::Mass);
        let by_weight = !goal.is(Dimension::Mass);
        let same = Quantity { unit: goal.unit, ..quantity };
        [same, in_mg].into_iter().find(|dose| {
            let share = match by_weight {
                true if dose.unit == goal.unit => dose.value / goal.value,
                true => return false,
                false => dose.canonical() / goal.canonical(),
            };
            (NEAR_SHARE..=1.0 / NEAR_SHARE).contains(&share)
        })
    }

    fn set(&mut self, phrase: &Phrase, path: &'static str, amount: Amount) -> Result<(), Question> {
        let amount = match amount {
            Amount::To(quantity) => Amount::To(self.fitting(phrase, path, quantity)?),
            Amount::FromTo(before, quantity) => {
                let after = self.fitting(phrase, path, quantity)?;
                let before = Quantity { unit: before.unit.or(after.unit), ..before };
                Amount::FromTo(self.fitting(phrase, path, before)?, after)
            }
            Amount::Toward(sign, quantity) => {
                Amount::Toward(sign, self.fitting(phrase, path, quantity)?)
            }
            Amount::By(sign, quantity) => Amount::By(sign, self.fitting(phrase, path, quantity)?),
            Amount::Times(_) if path == path::BIOAVAILABILITY => {
                return Err(self.ask(phrase, "relative, or in points? State the new value"));
            }
            Amount::Times(factor) => Amount::Times(factor),
        };
        self.push(phrase, path, amount, None, Inputs::default())
    }

    /// The quantity with a unit that fits the parameter.
    fn fitting(
        &self,
        phrase: &Phrase,
        path: &str,
        quantity: Quantity,
    ) -> Result<Quantity, Question> {
        let Some(dimension) = dimension_of(path) else {
            return Err(self.ask(phrase, "no model has this parameter. State CL, V or ka"));
        };
        let example = format!("{} {}", number(quantity.value), dimension.canonical());
        let quantity = match quantity.unit {
            Some(_) => quantity,
            None if matches!(dimension, Dimension::Count | Dimension::Fraction) => {
                Quantity::of(quantity.value, dimension)
            }
            None => match self.like_the_dose_before(quantity).filter(|_| path == path::DOSE) {
                Some(dose) => dose,
                None => {
                    let words = format!(
                        "{} of what? State the unit, such as {example}.",
                        number(quantity.value)
                    );
                    return Err(self.ask(phrase, &words));
                }
            },
        };
        if !quantity.is(dimension) {
            return Err(self.ask(
                phrase,
                &format!(
                    "this unit does not fit {path}. State it in {}, for the whole person",
                    dimension.canonical()
                ),
            ));
        }
        let is_whole = dimension != Dimension::Count || quantity.value.fract() == 0.0;
        if !is_whole {
            return Err(self.ask(phrase, "a whole number, please. Which one"));
        }
        Ok(quantity)
    }

    fn push(
        &mut self,
        phrase: &Phrase,
        path: &'static str,
        amount: Amount,
        computed: Option<String>,
        inputs: Inputs,
    ) -> Result<(), Question> {
        let said = self.said(phrase);
        let is_value = |amount: &Amount| {
            matches!(amount, Amount::To(_) | Amount::FromTo(..) | Amount::Toward(..))
        };
        let value = |amount: &Amount| match amount {
            Amount::To(quantity) | Amount::FromTo(_, quantity) | Amount::Toward(_, quantity) => {
                quantity.canonical()
            }
            _ => f64::NAN,
        };
        let other = self.request.changes.iter().find(|c| c.path == path && is_value(&c.amount));
        if let Some(other) = other.filter(|_| is_value(&amount)) {
            let (now, before) = (value(&amount), value(&other.amount));
            // "250 mg every morning and 250 mg every evening" is no repetition.
            let is_part = |text: &str| {
                let text = text.to_lowercase();
                PARTS_OF_THE_DAY.iter().any(|part| text.contains(part))
            };
            let may_repeat = path != path::DOSE && !is_part(&said) && !is_part(&other.said);
            if may_repeat && (now - before).abs() <= 1e-9 * before.abs() {
                return Ok(());
            }
            let words = format!(
                "{} is there too. Which one? I simulate equal doses at equal intervals.",
                quoted(&other.said)
            );
            return Err(self.ask(phrase, &words));
        }
        self.request.changes.push(Change { path, amount, said, computed, inputs });
        Ok(())
    }

    fn route(&mut self, phrase: &Phrase, route: Route) -> Result<(), Question> {
        use Route::{Bolus, Infusion, Intravenous};
        self.request.route = Some(match (self.request.route, route) {
            (None, route) => route,
            (Some(before), route) if before == route => route,
            (Some(Intravenous), route @ (Bolus | Infusion))
            | (Some(route @ (Bolus | Infusion)), Intravenous) => route,
            _ => return Err(self.ask(phrase, "there are two routes. Which one")),
        });
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Request, Question> {
        self.resolve_bare()?;
        for (phrase, quantity, computed) in std::mem::take(&mut self.doses) {
            let (quantity, computed, inputs) = self.dose(&phrase, quantity, computed)?;
            self.push(&phrase, path::DOSE, Amount::To(quantity), computed, inputs)?;
        }
        self.resolve_before()?;
        self.resolve_parameters()?;
        self.check()?;
        let Self { reader, mut request, .. } = self;
        if request == Request::default() {
            let words = format!("I did not understand {}.", quoted(reader.text.trim()));
            return Err(Question::new(words));
        }
        if request.figures.len() > 1 {
            request.figures.retain(|figure| *figure != Figure::All);
        }
        Ok(request)
    }

    /// Numbers without a role: the dose, where a person changes a number alone.
    fn resolve_bare(&mut self) -> Result<(), Question> {
        let bare = std::mem::take(&mut self.bare);
        let Some((phrase, quantity)) = bare.first() else { return Ok(()) };
        let value = number(quantity.value);
        let is_dose = bare.len() == 1
            && quantity.unit.is_none()
            && self.doses.is_empty()
            && !self.request.changes.iter().any(|change| change.path == path::DOSE);
        if is_dose && self.goal_dose().is_some() {
            let Some(dose) = self.like_the_dose_before(*quantity) else {
                let words =
                    format!("{value} mg, {value} doses, or every {value} h? Say it with its unit.");
                return Err(self.ask(phrase, &words));
            };
            self.doses.push((phrase.clone(), dose, None));
            return Ok(());
        }
        if bare.len() == 1 && self.is_course(*quantity) {
            return self.set(phrase, path::DURATION, Amount::To(*quantity));
        }
        let words = match quantity.dimension() {
            None => {
                format!("{value} of what? State the unit and what it is for, such as {value} mg.")
            }
            Some(Dimension::Time) => {
                let time = self.said(phrase);
                format!(
                    "is this an interval (every {time}), the simulated time (for {time}) or an \
                     infusion (infused over {time})"
                )
            }
            Some(_) => "of which parameter".to_owned(),
        };
        Err(self.ask(phrase, &words))
    }

    /// Whether a time alone is how long the doses go on: days or weeks beside an interval, as in "bid 6 days".
    fn is_course(&self, quantity: Quantity) -> bool {
        let interval = self.request.changes.iter().find_map(|change| match change.amount {
            Amount::To(hours) if change.path == path::INTERVAL => Some(hours.canonical()),
            _ => None,
        });
        let is_days = quantity.unit.is_some_and(|unit| unit.times >= 24.0 && unit.over <= 1.0);
        quantity.is(Dimension::Time)
            && is_days
            && !self.request.sets(path::DURATION)
            && !self.request.sets(path::DOSES)
            && interval.is_some_and(|interval| interval < quantity.canonical())
    }

    /// A dose in mg, and how and with what it was computed.
    fn dose(
        &self,
        phrase: &Phrase,
        quantity: Quantity,
        computed: Option<String>,
    ) -> Result<(Quantity, Option<String>, Inputs), Question> {
        let Some(dimension) = quantity.dimension() else {
            return Ok((quantity, computed, Inputs::default()));
        };
        let by_weight =
            matches!(dimension, Dimension::MassPerWeight | Dimension::MassPerWeightAndDay);
        let by_day = matches!(dimension, Dimension::MassPerDay | Dimension::MassPerWeightAndDay);
        if !by_weight && !by_day {
            return Ok((quantity, computed, Inputs::default()));
        }
        let mut used = Inputs::default();
        let mut value = quantity.canonical();
        let mut shown = format!("{} {}", number(value), dimension.canonical());
        if by_weight {
            let weight = self.request.weight.or(self.context.goal.and_then(|goal| goal.weight));
            let Some(weight) = weight else {
                return Err(Question {
                    part: None,
                    ..self.ask(phrase, "for which body weight, such as 70 kg")
                });
            };
            value *= weight;
            used.weight = Some(weight);
            shown = format!("{shown} × {} kg", number(weight));
        }
        if by_day {
            let interval = self.request.changes.iter().find_map(|change| match change.amount {
                Amount::To(hours) if change.path == path::INTERVAL => Some(hours.canonical()),
                _ => None,
            });
            let Some(interval) = interval else {
                let words = "a daily amount. State each dose and its interval, or for example: \
                             divided every 8 h";
                return Err(self.ask(phrase, words));
            };
            value *= interval / 24.0;
            used.interval = Some(interval);
            shown = format!("{shown}, divided every {} h", number(interval));
        }
        Ok((Quantity::of(rounded(value), Dimension::Mass), Some(shown), used))
    }

    /// `instead of 250 mg`: the change of the same dimension starts there.
    fn resolve_before(&mut self) -> Result<(), Question> {
        for (phrase, before) in std::mem::take(&mut self.before) {
            let fits = |change: &&mut Change| match change.amount {
                Amount::To(after) => {
                    before.unit.is_none() || before.dimension() == after.dimension()
                }
                _ => false,
            };
            let mut fitting: Vec<&mut Change> =
                self.request.changes.iter_mut().filter(fits).collect();
            match fitting.as_mut_slice() {
                [change] => {
                    if let Amount::To(after) = change.amount {
                        let before = Quantity { unit: before.unit.or(after.unit), ..before };
                        change.amount = Amount::FromTo(before, after);
                    }
                }
                _ => return Err(self.ask(&phrase, "which value replaces this one")),
            }
        }
        Ok(())
    }

    /// Names without a value: read, unless the request sets something.
    fn resolve_parameters(&mut self) -> Result<(), Question> {
        let sets = |path: &str, request: &Request| request.changes.iter().any(|c| c.path == path);
        for (phrase, path) in std::mem::take(&mut self.parameters) {
            let request = &self.request;
            let is_label = matches!(path, path::DOSE | path::DOSES)
                && [path::DOSE, path::DOSES].iter().any(|path| sets(path, request));
            if is_label || sets(path, request) {
                continue;
            }
            if request.changes.is_empty() && !request.alters && !request.simulates {
                self.request.reads.push(path);
                continue;
            }
            let name = if path == path::DOSE { "the dose" } else { path };
            let words = format!("what is the new value of {name}? State a number and its unit.");
            return Err(Question { part: None, ..self.ask(&phrase, &words) });
        }
        Ok(())
    }

    /// Whether a quoted time says how many days the doses go on, and not how long is simulated.
    fn is_course_of_days(&self, quoted: &str) -> bool {
        let said = quoted.trim_matches('`').to_lowercase();
        let text = self.reader.text.to_lowercase();
        let before = text.find(&said).map(|at| text[..at].trim_end()).unwrap_or_default();
        let is_simulated = |text: &str| {
            let last = text.split(|c: char| !c.is_alphabetic()).rfind(|word| !word.is_empty());
            last.is_some_and(|word| {
                ["simulat", "observ", "watch", "run", "model", "duration"]
                    .iter()
                    .any(|stem| word.starts_with(stem))
            })
        };
        let words = said.split(|c: char| !c.is_alphabetic());
        let mut units = words.filter(|word| ["day", "days", "d", "week", "weeks"].contains(word));
        !said.starts_with("simulat") && !is_simulated(before) && units.next().is_some()
    }

    /// Parts that contradict each other.
    fn check(&self) -> Result<(), Question> {
        let value = |path: &str| {
            self.request.changes.iter().find_map(|change| match change.amount {
                Amount::To(quantity) if change.path == path => {
                    Some((quantity.canonical(), quoted(&change.said)))
                }
                _ => None,
            })
        };
        let (interval, doses, duration) =
            (value(path::INTERVAL), value(path::DOSES), value(path::DURATION));
        if let (Some((_, every)), Some((once, count))) = (&interval, &doses)
            && *once <= 1.0
        {
            return Err(Question::new(format!("{count} and {every}: one dose, or repeated ones?")));
        }
        if let (Some((hours, every)), Some((count, doses)), Some((total, long))) =
            (&interval, &doses, &duration)
            && hours * (count - 1.0) >= *total
        {
            return Err(Question::new(format!(
                "{doses} {every} do not fit into {long}. Which of these is to change?"
            )));
        }
        if let (Some((hours, every)), Some((count, doses)), Some((total, long))) =
            (&interval, &doses, &duration)
            && self.is_course_of_days(long)
            && (hours * count - total).abs() > 1e-9
        {
            return Err(Question::new(format!(
                "{doses}, {every} and {long} say different things: {} h of doses, and {} h. Which of \
                 these is to change? To watch for longer, say `simulate`.",
                number(hours * count),
                number(*total)
            )));
        }
        if let (Some((hours, every)), None, Some((total, long))) = (&interval, &doses, &duration)
            && total <= hours
        {
            return Err(Question::new(format!(
                "{long} is not longer than {every}. Is it the infusion, or the simulated time? How \
                 many doses?"
            )));
        }
        let plain = self.request.listing.is_none() || self.request.changes.is_empty();
        if !plain {
            return Err(Question::new(format!(
                "{}: to list something, or to change something? One at a time, please.",
                quoted(self.reader.text)
            )));
        }
        Ok(())
    }
}
