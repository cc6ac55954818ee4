//! Reads requests in natural language, without a model: whole, or not at all.
//!
//! [`read`] accounts for every character of the text. [`token`] splits it, the rules in `grammar` read
//! phrases, `lexicon` has their words and `quantity` the units. A word or number that no rule
//! consumed, and a phrase with two meanings, become a [`Question`] that quotes it.

mod grammar;
mod lexicon;
pub(crate) mod quantity;
mod token;

use grammar::{Item, Phrase, Reader};
use quantity::{Dimension, Quantity};

/// Paths of the parameters.
pub(crate) mod path {
    pub(crate) const DOSE: &str = "Dosing|Dose";
    pub(crate) const INFUSION: &str = "Dosing|InfusionDuration";
    pub(crate) const INTERVAL: &str = "Dosing|Interval";
    pub(crate) const DOSES: &str = "Dosing|Doses";
    pub(crate) const CLEARANCE: &str = "Drug|Clearance";
    pub(crate) const VOLUME: &str = "Drug|CentralVolume";
    pub(crate) const EXCHANGE: &str = "Drug|IntercompartmentalClearance";
    pub(crate) const PERIPHERAL: &str = "Drug|PeripheralVolume";
    pub(crate) const ABSORPTION: &str = "Drug|AbsorptionRate";
    pub(crate) const BIOAVAILABILITY: &str = "Drug|Bioavailability";
    pub(crate) const LAG: &str = "Drug|LagTime";
    pub(crate) const DURATION: &str = "Simulation|Duration";
    pub(crate) const POINTS: &str = "Simulation|Points";
    /// Names that people use and no model has.
    pub(crate) const HALF_LIFE: &str = "half-life";
    pub(crate) const ELIMINATION: &str = "rate of elimination";
    pub(crate) const APPARENT: &str = "apparent parameter";
}

/// Longest quoted part of a request, in characters.
const QUOTE_CHARS_MAX: usize = 80;

/// Most quoted parts of one question.
const QUOTES_MAX: usize = 4;

/// An available model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Model {
    pub path: String,
    pub drug: String,
    pub route: String,
    pub description: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Oral,
    /// Bolus or infusion.
    Intravenous,
    Bolus,
    Infusion,
    /// A route that no model has.
    Unknown,
}

/// What a request wants to know of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Figure {
    Cmax,
    Tmax,
    Auc,
    HalfLife,
    Troughs,
    Steady,
    /// Time above this concentration, in mg/L.
    Above(f64),
    /// Concentrations at these times, in h.
    At(Vec<f64>),
    Plot,
    Compare,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    Models,
    Parameters,
    Help,
}

/// The new value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Amount {
    To(Quantity),
    /// To the second value, if the first is the current one.
    FromTo(Quantity, Quantity),
    /// An increase (1) or decrease (-1) to this value.
    Toward(f64, Quantity),
    /// An increase (1) or decrease (-1) by this value.
    By(f64, Quantity),
    Times(f64),
}

/// One change of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub path: &'static str,
    pub amount: Amount,
    /// The part of the request.
    pub said: String,
    /// How the value was computed from what was said.
    pub computed: Option<String>,
}

/// A request that was understood whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Request {
    pub drug: Option<String>,
    pub model: Option<String>,
    pub simulates: bool,
    pub loads: bool,
    pub alters: bool,
    pub runs: Option<bool>,
    pub route: Option<Route>,
    /// In the order of the request.
    pub changes: Vec<Change>,
    /// Body weight in kg.
    pub weight: Option<f64>,
    pub reads: Vec<&'static str>,
    pub figures: Vec<Figure>,
    pub listing: Option<Listing>,
}

/// What to ask about a request that was not understood whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub words: String,
    /// The part of the request that an answer replaces, in bytes.
    pub part: Option<(usize, usize)>,
}

impl Question {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), part: None }
    }

    fn about(reader: &Reader<'_>, phrase: &Phrase, words: &str) -> Self {
        let part = (reader.tokens[phrase.start].start, reader.tokens[phrase.end - 1].end);
        let quoted = quoted(&reader.text[part.0..part.1]);
        let end = if words.ends_with(['?', '.']) { "" } else { "?" };
        Self { words: format!("{quoted}: {words}{end}"), part: Some(part) }
    }
}

/// A part of a request in backticks, on one line.
pub(crate) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTE_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{}`", super::tool::plain(&short.replace('`', "'")))
}

/// What the text can refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Context<'a> {
    pub models: &'a [Model],
    /// The request that this one amends.
    pub goal: Option<&'a Request>,
    /// The parameter that was changed last, if any.
    pub last: Option<&'a str>,
}

/// Reads a request whole.
///
/// # Errors
/// A [`Question`] that quotes what was not understood or has two meanings.
pub(crate) fn read(text: &str, context: Context<'_>) -> Result<Request, Question> {
    let (reader, phrases) = grammar::phrases(text, context.models);
    let phrases = admitted(&reader, phrases, context);
    if let Some(question) = not_understood(&reader, &phrases) {
        return Err(question);
    }
    let mut folding = Folding::new(&reader, context);
    for phrase in &phrases {
        let Some(Ok(item)) = &phrase.item else { continue };
        folding.add(phrase, item)?;
    }
    folding.finish()
}

/// Accepts the words for a patient that the description of the drug's models has too.
fn admitted(reader: &Reader<'_>, mut phrases: Vec<Phrase>, context: Context<'_>) -> Vec<Phrase> {
    const CLASS: [&str; 6] = ["adult", "adults", "normal", "renal", "function", "in"];
    let named = phrases.iter().find_map(|phrase| match &phrase.item {
        Some(Ok(Item::Drug(name) | Item::Model(name))) => Some(name.clone()),
        _ => None,
    });
    let goal = context.goal.and_then(|goal| goal.drug.clone().or(goal.model.clone()));
    let Some(named) = named.or(goal) else { return phrases };
    let mut models =
        context.models.iter().filter(|m| m.drug == named || m.path == named).peekable();
    if models.peek().is_none() {
        return phrases;
    }
    let models: Vec<&Model> = models.collect();
    let describes = |word: &str| {
        let word = word.trim_end_matches('s');
        let has = |model: &&Model| {
            let text = model.description.to_lowercase();
            text.split(|c: char| !c.is_alphabetic()).any(|other| other == word)
        };
        word == "in" || models.iter().all(has)
    };
    let is_open = |phrase: &Phrase| !matches!(phrase.item, Some(Ok(_)));
    let is_class = |phrase: &Phrase| {
        let word = reader.slice(phrase.start, phrase.end).to_lowercase();
        CLASS.contains(&word.as_str()) && describes(&word)
    };
    // All of a run of such words, or none: "renal failure" stays whole.
    for run in phrases.chunk_by_mut(|a, b| is_open(a) == is_open(b)) {
        if run.iter().all(|phrase| is_open(phrase) && is_class(phrase)) {
            run.iter_mut().for_each(|phrase| phrase.item = Some(Ok(Item::Filler)));
        }
    }
    phrases
}

/// The question about everything that no rule understood.
fn not_understood(reader: &Reader<'_>, phrases: &[Phrase]) -> Option<Question> {
    let is_open = |phrase: &Phrase| !matches!(phrase.item, Some(Ok(_)));
    let is_filler = |phrase: &Phrase| matches!(phrase.item, Some(Ok(Item::Filler)));
    let mut questions: Vec<Question> = Vec::new();
    let mut at = 0;
    while at < phrases.len() {
        let phrase = &phrases[at];
        at += 1;
        match &phrase.item {
            Some(Ok(_)) => {}
            Some(Err(words)) => {
                // One word alone says little: quote what follows, too.
                let mut whole = phrase.clone();
                if phrase.end - phrase.start == 1 {
                    let next = phrases[at..].iter().find(|next| !is_filler(next));
                    whole.end = next.map_or(phrase.end, |next| next.end);
                }
                questions.push(Question {
                    part: Question::about(reader, phrase, words).part,
                    ..Question::about(reader, &whole, words)
                });
            }
            None => {
                let mut whole = phrase.clone();
                while let Some(next) = phrases.get(at).filter(|next| next.item.is_none()) {
                    whole.end = next.end;
                    at += 1;
                }
                let unknown =
                    "I do not know what this means. Say it in other words, or leave it out.";
                questions.push(Question::about(reader, &whole, unknown));
            }
        }
    }
    debug_assert_eq!(
        questions.is_empty(),
        !phrases.iter().any(is_open),
        "every part is asked about"
    );
    let more = questions.len().saturating_sub(QUOTES_MAX);
    let first = questions.first()?.part;
    let part = first.filter(|_| questions.len() == 1);
    let mut lines: Vec<String> =
        questions.into_iter().take(QUOTES_MAX).map(|question| question.words).collect();
    if more > 0 {
        lines.push(format!("And {more} more parts."));
    }
    Some(Question { words: lines.join("\n"), part })
}

/// Collects the phrases of a text.
struct Folding<'a> {
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
    fn new(reader: &'a Reader<'a>, context: Context<'a>) -> Self {
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

    fn add(&mut self, phrase: &Phrase, item: &Item) -> Result<(), Question> {
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
        self.push(phrase, path, amount, None)
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
            None => match self.goal_dose().filter(|_| path == path::DOSE) {
                Some(goal) => Quantity { unit: goal.unit, ..quantity },
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
            return Err(
                self.ask(phrase, &format!("this unit does not fit {path}; such as {example}"))
            );
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
            if (now - before).abs() <= 1e-9 * before.abs() {
                return Ok(());
            }
            let words = format!(
                "{} is there too. Which one? I simulate equal doses at equal intervals.",
                quoted(&other.said)
            );
            return Err(self.ask(phrase, &words));
        }
        self.request.changes.push(Change { path, amount, said, computed });
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

    fn finish(mut self) -> Result<Request, Question> {
        self.resolve_bare()?;
        for (phrase, quantity, computed) in std::mem::take(&mut self.doses) {
            let (quantity, computed) = self.dose(&phrase, quantity, computed)?;
            self.push(&phrase, path::DOSE, Amount::To(quantity), computed)?;
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
        if let Some(goal) = self.goal_dose().filter(|_| is_dose) {
            self.doses.push((phrase.clone(), Quantity { unit: goal.unit, ..*quantity }, None));
            return Ok(());
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

    /// A dose in mg.
    fn dose(
        &self,
        phrase: &Phrase,
        quantity: Quantity,
        computed: Option<String>,
    ) -> Result<(Quantity, Option<String>), Question> {
        let Some(dimension) = quantity.dimension() else {
            return Ok((quantity, computed));
        };
        let by_weight =
            matches!(dimension, Dimension::MassPerWeight | Dimension::MassPerWeightAndDay);
        let by_day = matches!(dimension, Dimension::MassPerDay | Dimension::MassPerWeightAndDay);
        if !by_weight && !by_day {
            return Ok((quantity, computed));
        }
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
            shown = format!("{shown} × {} kg", number(weight));
        }
        if by_day {
            let interval = self.request.changes.iter().find_map(|change| match change.amount {
                Amount::To(hours) if change.path == path::INTERVAL => Some(hours.canonical()),
                _ => None,
            });
            let (true, Some(interval)) = (self.divided, interval) else {
                let words = "a daily amount. State each dose and its interval, or for example: \
                             divided every 8 h";
                return Err(self.ask(phrase, words));
            };
            value *= interval / 24.0;
            shown = format!("{shown}, divided every {} h", number(interval));
        }
        Ok((Quantity::of(rounded(value), Dimension::Mass), Some(shown)))
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

pub(crate) fn dimension_of(path: &str) -> Option<Dimension> {
    Some(match path {
        path::DOSE => Dimension::Mass,
        path::VOLUME | path::PERIPHERAL => Dimension::Volume,
        path::INFUSION | path::INTERVAL | path::LAG | path::DURATION => Dimension::Time,
        path::CLEARANCE | path::EXCHANGE => Dimension::Clearance,
        path::ABSORPTION => Dimension::Rate,
        path::BIOAVAILABILITY => Dimension::Fraction,
        path::DOSES | path::POINTS => Dimension::Count,
        _ => return None,
    })
}

impl Request {
    /// This request, amended by a later one.
    pub(crate) fn amended(&self, later: &Self) -> Self {
        let is_value =
            |change: &Change| !matches!(change.amount, Amount::By(..) | Amount::Times(_));
        let replaced = |path: &str| later.changes.iter().any(|c| c.path == path && is_value(c));
        let kept = self.changes.iter().filter(|change| !replaced(change.path)).cloned();
        Self {
            drug: later.drug.clone().or_else(|| self.drug.clone()),
            model: later.model.clone().or_else(|| self.model.clone()),
            // What the first request is for stays: an amendment of a run is still run.
            simulates: self.simulates || later.simulates,
            loads: self.loads,
            alters: self.alters,
            runs: later.runs.or(self.runs),
            route: later.route.or(self.route),
            changes: kept.chain(later.changes.iter().cloned()).collect(),
            weight: later.weight.or(self.weight),
            reads: later.reads.clone(),
            figures: self.figures.iter().chain(&later.figures).cloned().collect(),
            listing: None,
        }
    }

    /// Whether it needs no earlier request: it names a drug and a dose, or asks for something else
    /// than a regimen.
    pub(crate) fn stands_alone(&self) -> bool {
        let names = self.drug.is_some() || self.model.is_some();
        let regimen = self.simulates || self.loads || self.sets(path::DOSE);
        let asks = !self.figures.is_empty() || !self.reads.is_empty() || self.listing.is_some();
        (names && regimen) || (self.changes.is_empty() && asks)
    }

    pub(crate) fn sets(&self, path: &str) -> bool {
        self.changes.iter().any(|change| change.path == path)
    }
}

/// Removes the digits that computing in binary adds.
pub(crate) fn rounded(value: f64) -> f64 {
    format!("{value:.9e}").parse().unwrap_or(value)
}

/// A number with all its digits.
pub(crate) fn number(value: f64) -> String {
    rounded(value).to_string()
}
