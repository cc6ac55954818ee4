//! Expressions in either query language, and the data that they can read.
//!
//! An [`Expression`] is JSONata, a path or an intrinsic function. A [`Scope`] is what one state
//! sees at one moment. Time and random values come from the scope, so evaluating again gives the
//! same result.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::error_name;
use crate::intrinsic::Call;
use crate::jsonata;
use crate::jsonpath::{Reference, Root};
use crate::time::Timestamp;
use crate::token;

/// Variables by name.
pub(crate) type Variables = BTreeMap<String, Arc<Value>>;

/// The query language of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    JsonPath,
    Jsonata,
}

/// Something that is computed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Jsonata(jsonata::Expression),
    Reference(Reference),
    Call(Call),
}

/// An expression failed or returned an unusable value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) error: &'static str,
    /// The field as AWS spells it, if the error names one: `Output/a/b`, `Choices[0]/Condition`.
    pub(crate) location: Option<String>,
    /// AWS's message without its opening, which names the state.
    pub(crate) cause: String,
}

impl Fault {
    /// A JSONata expression failed; the state's `Retry` and `Catch` apply.
    pub(crate) fn query(location: &str, cause: String) -> Fault {
        let location = Some(location.to_owned());
        Fault { error: error_name::QUERY_EVALUATION_ERROR, location, cause }
    }

    /// The definition does not fit the data.
    pub(crate) fn runtime(cause: String) -> Fault {
        Fault { error: error_name::RUNTIME, location: None, cause }
    }

    pub(crate) fn intrinsic(cause: String) -> Fault {
        Fault { error: error_name::INTRINSIC_FAILURE, location: None, cause }
    }
}

/// What a state sees at one moment.
pub(crate) struct Scope<'a> {
    input: &'a Value,
    variables: &'a Variables,
    context: &'a dyn Fn() -> Value,
    now: Timestamp,
    seed: String,
    drawn: u64,
    pub(crate) result: Option<&'a Value>,
    pub(crate) error_output: Option<&'a Value>,
    /// Created on first use: most states evaluate no JSONata.
    jsonata: Option<jsonata::Scope>,
}

impl<'a> Scope<'a> {
    /// `seed` must differ between decisions of an execution; `now` is the value of `$now()`.
    pub(crate) fn new(
        input: &'a Value,
        variables: &'a Variables,
        context: &'a dyn Fn() -> Value,
        now: Timestamp,
        seed: String,
    ) -> Scope<'a> {
        let (result, error_output) = (None, None);
        Scope {
            input,
            variables,
            context,
            now,
            seed,
            drawn: 0,
            result,
            error_output,
            jsonata: None,
        }
    }

    /// The value of a reference; `$` is `root`.
    ///
    /// # Errors
    /// The path selects nothing. `location` is the field that contains the reference.
    pub(crate) fn follow(
        &self,
        reference: &Reference,
        root: &Value,
        location: &str,
    ) -> Result<Value, Fault> {
        let found = self.lookup(reference, root).map(|found| found.map_err(|_| ()));
        let text = &reference.text;
        match found {
            Some(Ok(value)) => Ok(value),
            _ => Err(Fault::runtime(format!(
                "The JSONPath '{text}' specified for the field '{location}' could not be found in the input '{}'",
                self.searched(reference, root)
            ))),
        }
    }

    /// The value of a reference; `None` if its variable does not exist.
    pub(crate) fn lookup(
        &self,
        reference: &Reference,
        root: &Value,
    ) -> Option<Result<Value, crate::jsonpath::Missing>> {
        Some(match &reference.root {
            Root::Input => reference.path.select(root),
            Root::Context => reference.path.select(&(self.context)()),
            Root::Variable(name) => reference.path.select(self.variables.get(name)?),
        })
    }

    /// The value of a reference that the state itself needs, not a template.
    pub(crate) fn require(&self, reference: &Reference, root: &Value) -> Result<Value, Fault> {
        let text = &reference.text;
        match self.lookup(reference, root) {
            Some(Ok(found)) => Ok(found),
            Some(Err(missing)) => Err(Fault::runtime(format!("Invalid path '{text}' : {missing}"))),
            None => {
                Err(Fault::runtime(format!("Invalid path '{text}' : there is no such variable")))
            }
        }
    }

    fn searched(&self, reference: &Reference, root: &Value) -> Value {
        match &reference.root {
            Root::Context => (self.context)(),
            Root::Input | Root::Variable(_) => root.clone(),
        }
    }

    /// Pseudo-random bytes, different on each call.
    pub(crate) fn draw(&mut self) -> [u8; 32] {
        self.drawn += 1;
        token::digest(&[&self.seed, "intrinsic", &self.drawn.to_string()])
    }

    pub(crate) fn jsonata(&mut self) -> &mut jsonata::Scope {
        self.jsonata.get_or_insert_with(|| {
            let context = (self.context)();
            let mut states = vec![("input", self.input), ("context", &context)];
            states.extend(self.result.map(|result| ("result", result)));
            states.extend(self.error_output.map(|error| ("errorOutput", error)));
            jsonata::Scope::new(states, self.variables, self.now, &self.seed)
        })
    }
}

impl Expression {
    /// Evaluates the expression. `location` is the field as AWS spells it in a cause; `$` in a path
    /// is `root`.
    ///
    /// # Errors
    /// The expression fails or returns nothing.
    pub(crate) fn evaluate(
        &self,
        scope: &mut Scope<'_>,
        root: &Value,
        location: &str,
    ) -> Result<Value, Fault> {
        match self {
            Expression::Jsonata(expression) => scope.jsonata().evaluate(expression, location),
            Expression::Reference(reference) => scope.follow(reference, root, location),
            Expression::Call(call) => call.evaluate(scope, root, location),
        }
    }
}
