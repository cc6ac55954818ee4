//! Reads requests in natural language, without a model: whole, or not at all.
//!
//! [`read`] accounts for every character of the text. [`token`] splits it, the rules in `grammar` read
//! phrases with the words of `lexicon`, `dosing` those of a regimen, `reader` their words and numbers,
//! `quantity` the units, and `folding` makes one request of the phrases. A word or number that no rule
//! consumed, and a phrase with two meanings, become a [`Question`] that quotes it.

mod dosing;
mod folding;
mod grammar;
mod lexicon;
pub(crate) mod quantity;
mod reader;
mod token;

use folding::Folding;
use grammar::{Item, Phrase};
use quantity::{Dimension, Quantity};
use reader::Reader;

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
    /// What it was computed with.
    pub inputs: Inputs,
}

/// What a dose was computed with. When one of them changes, so does the dose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Inputs {
    /// Body weight in kg, of a dose per kg.
    pub weight: Option<f64>,
    /// Interval in hours, of a daily amount.
    pub interval: Option<f64>,
}

impl Change {
    /// The change with other inputs.
    fn derived_again(mut self, weight: Option<f64>, interval: Option<f64>) -> Self {
        self.scale(self.inputs.weight, weight, |kg| format!("× {} kg", number(kg)));
        self.scale(self.inputs.interval, interval, |h| format!("divided every {} h", number(h)));
        self.inputs.weight = self.inputs.weight.and(weight).or(self.inputs.weight);
        self.inputs.interval = self.inputs.interval.and(interval).or(self.inputs.interval);
        self
    }

    /// The dose is proportional to each of its inputs.
    fn scale(&mut self, before: Option<f64>, now: Option<f64>, shown: impl Fn(f64) -> String) {
        let (Some(before), Some(now), Amount::To(quantity)) = (before, now, self.amount) else {
            return;
        };
        let value = rounded(quantity.value * now / before);
        self.amount = Amount::To(Quantity { value, ..quantity });
        self.computed = self.computed.take().map(|text| text.replace(&shown(before), &shown(now)));
    }
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

/// Whether a text names a drug or a dose, and so has a regimen to keep.
pub(crate) fn orders(text: &str, models: &[Model]) -> bool {
    let (_, phrases) = grammar::phrases(text, models);
    let is_part = |item: &Item| matches!(item, Item::Drug(_) | Item::Model(_) | Item::Dose(..));
    phrases.iter().any(|phrase| matches!(&phrase.item, Some(Ok(item)) if is_part(item)))
}

/// Whether a text has a word for tablets.
pub(crate) fn names_tablets(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphabetic()).any(|word| lexicon::TABLETS.contains(&word))
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
        // A change that starts from the earlier value keeps it.
        let is_value = |change: &Change| matches!(change.amount, Amount::To(_));
        let replaced = |path: &str| later.changes.iter().any(|c| c.path == path && is_value(c));
        let kept = self.changes.iter().filter(|change| !replaced(change.path)).cloned();
        let interval = later.changes.iter().find_map(|change| match change.amount {
            Amount::To(hours) if change.path == path::INTERVAL => Some(hours.canonical()),
            _ => None,
        });
        let kept = kept.map(|change| change.derived_again(later.weight, interval));
        // A dose in mg replaces one per kg, and its weight.
        let is_plain = |change: &Change| {
            change.path == path::DOSE && is_value(change) && change.inputs.weight.is_none()
        };
        let weight = self.weight.filter(|_| !later.changes.iter().any(is_plain));
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
            weight: later.weight.or(weight),
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
