//! The fields of one object in a definition: each is taken once, and what nobody takes is an error.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::template::compile_expression;
use super::{DefinitionError, Problem, Slot, Template};

type Result<T> = std::result::Result<T, DefinitionError>;

pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    location: String,
    taken: RefCell<BTreeSet<&'static str>>,
}

pub(super) fn error(location: &str, problem: Problem) -> DefinitionError {
    let location = if location.is_empty() { "/" } else { location };
    DefinitionError { location: location.to_owned(), problem }
}

/// JSON pointer to a member of what stands at `location`.
pub(super) fn pointer(location: &str, name: &str) -> String {
    format!("{location}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value, location: String) -> Result<Fields<'a>> {
        match value.as_object() {
            Some(map) => Ok(Fields { map, location, taken: RefCell::default() }),
            None => Err(error(&location, Problem::Value("an object"))),
        }
    }

    pub(super) fn error(&self, problem: Problem) -> DefinitionError {
        error(&self.location, problem)
    }

    pub(super) fn at(&self, name: &str) -> String {
        pointer(&self.location, name)
    }

    pub(super) fn error_at(&self, name: &str, problem: Problem) -> DefinitionError {
        error(&self.at(name), problem)
    }

    pub(super) fn take(&self, name: &'static str) -> Option<&'a Value> {
        self.taken.borrow_mut().insert(name);
        self.map.get(name)
    }

    pub(super) fn required(&self, name: &'static str) -> Result<&'a Value> {
        self.take(name).ok_or_else(|| self.error(Problem::Required(name)))
    }

    /// The field if `accept` takes its value; `expected` completes "value must be".
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
                None => Err(self.error_at(name, Problem::Value(expected))),
            },
        }
    }

    pub(super) fn text(&self, name: &'static str) -> Result<Option<&'a str>> {
        self.optional(name, "a string", Value::as_str)
    }

    pub(super) fn required_text(&self, name: &'static str) -> Result<&'a str> {
        self.text(name)?.ok_or_else(|| self.error(Problem::Required(name)))
    }

    /// The objects in an array field; empty if the field is absent.
    pub(super) fn objects(&self, name: &'static str) -> Result<Vec<Fields<'a>>> {
        let items = self.optional(name, "an array", Value::as_array)?;
        items
            .into_iter()
            .flatten()
            .enumerate()
            .map(|(index, item)| Fields::of(item, format!("{}/{index}", self.at(name))))
            .collect()
    }

    pub(super) fn template(&self, name: &'static str) -> Result<Option<Template>> {
        self.take(name).map(|value| Template::compile(value, &self.at(name))).transpose()
    }

    /// A field that is an expression, or a literal that `accept` takes.
    pub(super) fn slot<T>(
        &self,
        name: &'static str,
        expected: &'static str,
        accept: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<Slot>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        if let Some(text) = value.as_str()
            && let Some(expression) = compile_expression(text, &self.at(name))?
        {
            return Ok(Some(Slot::Expression(expression)));
        }
        match accept(value) {
            Some(_) => Ok(Some(Slot::Literal(value.clone()))),
            None => Err(self.error_at(name, Problem::Value(expected))),
        }
    }

    /// Refuses what nobody took.
    pub(super) fn finish(self) -> Result<()> {
        self.text("Comment")?;
        let taken = self.taken.borrow();
        match self.map.keys().find(|name| !taken.contains(name.as_str())) {
            None => Ok(()),
            Some(name) => Err(self.error_at(name, Problem::Unexpected(name.clone()))),
        }
    }
}
