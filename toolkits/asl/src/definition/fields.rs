//! Reads the fields of one object in a definition. Each field is taken once; a field that remains
//! is an error.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::template::compile;
use super::{DefinitionError, Lens, Problem, ResultPath, Slot, Template};
use crate::expression::Language;
use crate::jsonpath::Reference;

pub(super) type Result<T> = std::result::Result<T, DefinitionError>;

pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    location: String,
    language: Language,
    taken: RefCell<BTreeSet<&'static str>>,
}

pub(super) fn error(location: &str, problem: impl Into<Problem>) -> DefinitionError {
    let location = if location.is_empty() { "/" } else { location };
    DefinitionError { location: Some(location.to_owned()), problem: problem.into() }
}

/// JSON pointer to a member of the value at `location`.
pub(super) fn pointer(location: &str, name: &str) -> String {
    format!("{location}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value, location: String, language: Language) -> Result<Fields<'a>> {
        match value.as_object() {
            Some(map) => Ok(Fields { map, location, language, taken: RefCell::default() }),
            None => Err(error(&location, Problem::Value("an object"))),
        }
    }

    pub(super) fn language(&self) -> Language {
        self.language
    }

    /// The same fields, in the query language that they select.
    pub(super) fn speaking(self, language: Language) -> Fields<'a> {
        Fields { language, ..self }
    }

    pub(super) fn error(&self, problem: impl Into<Problem>) -> DefinitionError {
        error(&self.location, problem)
    }

    pub(super) fn at(&self, name: &str) -> String {
        pointer(&self.location, name)
    }

    pub(super) fn error_at(&self, name: &str, problem: impl Into<Problem>) -> DefinitionError {
        error(&self.at(name), problem)
    }

    pub(super) fn take(&self, name: &'static str) -> Option<&'a Value> {
        self.taken.borrow_mut().insert(name);
        self.map.get(name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Checks that all of these fields are present.
    pub(super) fn require(&self, names: &[&'static str]) -> Result<()> {
        let missing: Vec<&'static str> =
            names.iter().copied().filter(|name| !self.map.contains_key(*name)).collect();
        if missing.is_empty() { Ok(()) } else { Err(self.error(Problem::Required(missing))) }
    }

    /// Takes a field if `accept` accepts its value; `expected` completes "Value must be".
    pub(super) fn optional<T>(
        &self,
        name: &'static str,
        expected: &'static str,
        accept: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match accept(value) {
                Some(accepted) => Ok(Some(accepted)),
                None => Err(self.error_at(name, unfit(name, value, expected))),
            },
        }
    }

    pub(super) fn text(&self, name: &'static str) -> Result<Option<&'a str>> {
        self.optional(name, "a string", Value::as_str)
    }

    pub(super) fn required_text(&self, name: &'static str) -> Result<&'a str> {
        self.text(name)?.ok_or_else(|| self.error(Problem::Required(vec![name])))
    }

    pub(super) fn object(&self, name: &'static str) -> Result<Option<Fields<'a>>> {
        let value = self.take(name);
        value.map(|value| Fields::of(value, self.at(name), self.language)).transpose()
    }

    /// Takes an array of objects; empty if the field is absent.
    pub(super) fn objects(&self, name: &'static str) -> Result<Vec<Fields<'a>>> {
        let items = self.optional(name, "an array", Value::as_array)?;
        let items = items.into_iter().flatten().enumerate();
        items
            .map(|(index, item)| {
                Fields::of(item, format!("{}/{index}", self.at(name)), self.language)
            })
            .collect()
    }

    pub(super) fn template(&self, name: &'static str) -> Result<Option<Template>> {
        let value = self.take(name);
        value.map(|value| Template::compile(value, &self.at(name), self.language)).transpose()
    }

    /// Takes a field of one type: a literal that `accept` accepts; in JSONata also an expression;
    /// in JSONPath also the path or intrinsic call in the field `path`.
    pub(super) fn slot<T>(
        &self,
        name: &'static str,
        path: &'static str,
        expected: &'static str,
        accept: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<Slot>> {
        if self.language == Language::JsonPath
            && let Some(text) = self.text(path)?
        {
            if self.map.contains_key(name) {
                return Err(self.error(Problem::Exclusive(format!("{name}, {path}"))));
            }
            let expression = super::template::path_or_call(text, &self.at(path))?;
            return Ok(Some(Slot::Computed { field: path, expression }));
        }
        let Some(value) = self.take(name) else { return Ok(None) };
        if self.language == Language::Jsonata
            && let Some(text) = value.as_str()
            && let Some(expression) = compile(text, &self.at(name))?
        {
            return Ok(Some(Slot::Computed { field: name, expression }));
        }
        match accept(value) {
            Some(_) => Ok(Some(Slot::Literal(value.clone()))),
            None => Err(self.error_at(name, unfit(name, value, expected))),
        }
    }

    /// `InputPath` or `OutputPath`; JSONPath only.
    pub(super) fn lens(&self, name: &'static str) -> Result<Lens> {
        if self.language == Language::Jsonata {
            return Ok(Lens::Whole);
        }
        match self.take(name) {
            None => Ok(Lens::Whole),
            Some(Value::Null) => Ok(Lens::Nothing),
            Some(_) => Ok(Lens::Part(self.reference(name)?)),
        }
    }

    pub(super) fn reference(&self, name: &'static str) -> Result<Reference> {
        let text = self.required_text(name)?;
        if !text.starts_with('$') {
            return Err(self.error_at(name, Problem::Conflict("Value must be a valid JSONPath.")));
        }
        Reference::compile(text).map_err(|problem| self.error_at(name, problem))
    }

    /// `ResultPath`; JSONPath only.
    pub(super) fn result_path(&self) -> Result<ResultPath> {
        const NAME: &str = "ResultPath";
        match self.take(NAME) {
            None => Ok(ResultPath::Whole),
            Some(Value::Null) => Ok(ResultPath::Nowhere),
            Some(_) => {
                let reference = self.reference(NAME)?;
                if !reference.is_target() {
                    return Err(self.error_at(NAME, Problem::Value("a reference path")));
                }
                Ok(match reference.text.as_str() {
                    "$" => ResultPath::Whole,
                    text => ResultPath::At { text: text.to_owned(), path: reference.path },
                })
            }
        }
    }

    /// Rejects fields that were not taken.
    pub(super) fn finish(self) -> Result<()> {
        self.text("Comment")?;
        let taken = self.taken.borrow();
        match self.map.keys().find(|name| !taken.contains(name.as_str())) {
            None => Ok(()),
            Some(name) => Err(self.error(self.unexpected(name))),
        }
    }

    /// The problem with a field that the state does not have.
    pub(super) fn unexpected(&self, name: &str) -> Problem {
        let (own, fields, other) = match self.language {
            Language::Jsonata => ("JSONata", PATH_FIELDS.as_slice(), "JSONPath"),
            Language::JsonPath => ("JSONPath", JSONATA_FIELDS.as_slice(), "JSONata"),
        };
        match fields.contains(&name) {
            true => Problem::OtherLanguage(own, name.to_owned(), other),
            false => Problem::Unexpected(name.to_owned()),
        }
    }
}

/// Fields that only states in JSONPath have.
const PATH_FIELDS: [&str; 17] = [
    "InputPath",
    "OutputPath",
    "ResultPath",
    "Parameters",
    "ResultSelector",
    "Result",
    "ItemsPath",
    "TimeoutSecondsPath",
    "HeartbeatSecondsPath",
    "SecondsPath",
    "TimestampPath",
    "MaxConcurrencyPath",
    "ToleratedFailurePercentagePath",
    "ToleratedFailureCountPath",
    "ErrorPath",
    "CausePath",
    "Variable",
];

/// Fields that only states in JSONata have.
const JSONATA_FIELDS: [&str; 4] = ["Arguments", "Output", "Items", "Condition"];

/// Least and greatest values of the numeric fields.
///
/// Source: diagnostics of `ValidateStateMachineDefinition` that badmintoncryer/cdk-preflight
/// measured.
const RANGES: [(&str, u64, u64); 9] = [
    ("TimeoutSeconds", 1, 99_999_999),
    ("HeartbeatSeconds", 1, 99_999_999),
    ("Seconds", 0, 99_999_999),
    ("MaxConcurrency", 0, u64::MAX),
    ("ToleratedFailureCount", 0, u64::MAX),
    ("ToleratedFailurePercentage", 0, 100),
    ("MaxAttempts", 0, 99_999_999),
    ("MaxDelaySeconds", 1, 31_622_400),
    ("BackoffRate", 1, u64::MAX),
];

/// The problem with a value that its field does not accept; `expected` completes "Value must be",
/// where AWS's own words are not known.
pub(super) fn unfit(name: &str, value: &Value, expected: &'static str) -> Problem {
    if name.starts_with("Timestamp") && value.is_string() {
        return Problem::Conflict("String does not match RFC3339 timestamp");
    }
    let Some((_, least, greatest)) = RANGES.iter().find(|(known, ..)| *known == name) else {
        return Problem::Value(expected);
    };
    match value.as_f64() {
        None if value.is_string() => Problem::Type("Integer"),
        Some(number) if number < *least as f64 => Problem::Minimum(*least),
        Some(number) if number > *greatest as f64 => Problem::Maximum(*greatest),
        _ => Problem::Value(expected),
    }
}
