//! The rules of a `Choice` state.

use std::cmp::Ordering;

use serde_json::Value;

use super::fields::{Fields, Result, error, unfit};
use super::template::accept;
use super::{Problem, Slot, Yield};
use crate::expression::{Fault, Language, Scope};
use crate::jsonpath::Reference;
use crate::time::Timestamp;
use crate::value::compare;
use crate::wildcard::Wildcard;

/// Most rules within rules.
const NESTING_MAX: usize = 64;

/// A rule: if the condition is true, the next state is `next`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    condition: Condition,
    pub(crate) result: Yield,
    pub(crate) next: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Jsonata(Slot),
    Test(Test),
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    And(Vec<Test>),
    Or(Vec<Test>),
    Not(Box<Test>),
    Is { variable: Reference, kind: Is, expected: bool },
    Compare { variable: Reference, kind: Type, order: Order, with: Operand },
    Matches { variable: Reference, pattern: Wildcard },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Present,
    Null,
    Boolean,
    Numeric,
    String,
    Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Boolean,
    Numeric,
    String,
    Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Equals,
    LessThan,
    LessThanEquals,
    GreaterThan,
    GreaterThanEquals,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Literal(Value),
    Path(Reference),
}

const IS: [(&str, Is); 6] = [
    ("IsPresent", Is::Present),
    ("IsNull", Is::Null),
    ("IsBoolean", Is::Boolean),
    ("IsNumeric", Is::Numeric),
    ("IsString", Is::String),
    ("IsTimestamp", Is::Timestamp),
];

/// Each comparison operator, with a literal and with a path.
const COMPARISONS: [(&str, &str, Type, Order); 16] = [
    ("BooleanEquals", "BooleanEqualsPath", Type::Boolean, Order::Equals),
    ("NumericEquals", "NumericEqualsPath", Type::Numeric, Order::Equals),
    ("NumericLessThan", "NumericLessThanPath", Type::Numeric, Order::LessThan),
    ("NumericLessThanEquals", "NumericLessThanEqualsPath", Type::Numeric, Order::LessThanEquals),
    ("NumericGreaterThan", "NumericGreaterThanPath", Type::Numeric, Order::GreaterThan),
    (
        "NumericGreaterThanEquals",
        "NumericGreaterThanEqualsPath",
        Type::Numeric,
        Order::GreaterThanEquals,
    ),
    ("StringEquals", "StringEqualsPath", Type::String, Order::Equals),
    ("StringLessThan", "StringLessThanPath", Type::String, Order::LessThan),
    ("StringLessThanEquals", "StringLessThanEqualsPath", Type::String, Order::LessThanEquals),
    ("StringGreaterThan", "StringGreaterThanPath", Type::String, Order::GreaterThan),
    (
        "StringGreaterThanEquals",
        "StringGreaterThanEqualsPath",
        Type::String,
        Order::GreaterThanEquals,
    ),
    ("TimestampEquals", "TimestampEqualsPath", Type::Timestamp, Order::Equals),
    ("TimestampLessThan", "TimestampLessThanPath", Type::Timestamp, Order::LessThan),
    (
        "TimestampLessThanEquals",
        "TimestampLessThanEqualsPath",
        Type::Timestamp,
        Order::LessThanEquals,
    ),
    ("TimestampGreaterThan", "TimestampGreaterThanPath", Type::Timestamp, Order::GreaterThan),
    (
        "TimestampGreaterThanEquals",
        "TimestampGreaterThanEqualsPath",
        Type::Timestamp,
        Order::GreaterThanEquals,
    ),
];

impl Rule {
    pub(super) fn parse(fields: Fields<'_>) -> Result<Rule> {
        let condition = match fields.language() {
            Language::Jsonata => {
                selected(&fields)?;
                let slot =
                    fields.slot("Condition", "", "a boolean or an expression", accept::boolean)?;
                let required = || fields.error(Problem::Required(vec!["Condition"]));
                Condition::Jsonata(slot.ok_or_else(required)?)
            }
            Language::JsonPath => Condition::Test(test(&fields, 0)?),
        };
        let rule = Rule {
            condition,
            result: super::flow::choice_result(&fields)?,
            next: fields.required_text("Next")?.to_owned(),
        };
        fields.finish()?;
        Ok(rule)
    }

    /// Evaluates the condition; paths are relative to `root`.
    ///
    /// # Errors
    /// The condition cannot be evaluated.
    pub(crate) fn holds(
        &self,
        scope: &mut Scope<'_>,
        root: &Value,
        prefix: &str,
    ) -> std::result::Result<bool, Fault> {
        match &self.condition {
            Condition::Jsonata(slot) => {
                slot.evaluate(scope, root, prefix, "boolean", accept::boolean)
            }
            Condition::Test(test) => test.holds(scope, root),
        }
    }
}

fn test(fields: &Fields<'_>, depth: usize) -> Result<Test> {
    if depth > NESTING_MAX {
        return Err(fields.error(Problem::Value("rules nested at most 64 levels deep")));
    }
    for name in ["And", "Or"] {
        if fields.has(name) {
            let tests = fields.objects(name)?;
            if tests.is_empty() {
                return Err(fields.error_at(name, Problem::Empty));
            }
            let tests = tests.into_iter().map(|fields| inner(fields, depth));
            let tests = tests.collect::<Result<Vec<_>>>()?;
            return Ok(if name == "And" { Test::And(tests) } else { Test::Or(tests) });
        }
    }
    if let Some(fields) = fields.object("Not")? {
        return Ok(Test::Not(Box::new(inner(fields, depth)?)));
    }
    selected(fields)?;
    let variable = reference(fields, "Variable")?;
    leaf(fields, variable)
}

/// Checks that a rule is of exactly one kind.
fn selected(fields: &Fields<'_>) -> Result<()> {
    let foreign = match fields.language() {
        Language::Jsonata => "Variable",
        Language::JsonPath => "Condition",
    };
    if fields.has(foreign) {
        return Err(fields.error(fields.unexpected(foreign)));
    }
    let kinds = ["And", "Or", "Not", "Variable", "Condition"];
    if kinds.iter().filter(|name| fields.has(name)).count() == 1 {
        return Ok(());
    }
    let problem = "The object must have only one of the following fields, [And, Or, Not, Variable, Condition]";
    Err(fields.error(Problem::Conflict(problem)))
}

/// A path of a rule, which AWS checks more strictly than that of a state.
fn reference(fields: &Fields<'_>, name: &'static str) -> Result<Reference> {
    if fields.take(name).and_then(Value::as_str).is_some_and(|text| !text.starts_with('$')) {
        let problem = "Value is not a Reference Path: Reference path didn't start with '$'";
        return Err(fields.error_at(name, Problem::Conflict(problem)));
    }
    fields.reference(name)
}

fn inner(fields: Fields<'_>, depth: usize) -> Result<Test> {
    let test = test(&fields, depth + 1)?;
    fields.finish()?;
    Ok(test)
}

fn leaf(fields: &Fields<'_>, variable: Reference) -> Result<Test> {
    for (name, kind) in IS {
        if let Some(expected) = fields.optional(name, "true or false", Value::as_bool)? {
            return Ok(Test::Is { variable, kind, expected });
        }
    }
    if let Some(pattern) = fields.text("StringMatches")? {
        let pattern = Wildcard::parse(pattern);
        return Ok(Test::Matches { variable, pattern });
    }
    for (name, path, kind, order) in COMPARISONS {
        if let Some(value) = fields.take(name) {
            if !kind.takes(value) {
                return Err(fields.error_at(name, unfit(name, value, kind.expected())));
            }
            return Ok(Test::Compare {
                variable,
                kind,
                order,
                with: Operand::Literal(value.clone()),
            });
        }
        if fields.take(path).is_some() {
            let with = Operand::Path(reference(fields, path)?);
            return Ok(Test::Compare { variable, kind, order, with });
        }
    }
    Err(error(&fields.at(""), Problem::Conflict("A choice rule must have a comparison")))
}

impl Type {
    fn takes(self, value: &Value) -> bool {
        match self {
            Type::Boolean => value.is_boolean(),
            Type::Numeric => value.is_number(),
            Type::String => value.is_string(),
            Type::Timestamp => accept::time(value).is_some(),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Type::Boolean => "true or false",
            Type::Numeric => "a number",
            Type::String => "a string",
            Type::Timestamp => "an RFC 3339 time",
        }
    }

    /// Compares two values of this type.
    fn compare(self, left: &Value, right: &Value) -> Option<Ordering> {
        if !self.takes(left) || !self.takes(right) {
            return None;
        }
        match self {
            Type::Boolean => Some(left.as_bool().cmp(&right.as_bool())),
            Type::Numeric | Type::String => compare(left, right),
            Type::Timestamp => {
                let time = |value: &Value| value.as_str().and_then(Timestamp::parse);
                Some(time(left)?.cmp(&time(right)?))
            }
        }
    }
}

impl Order {
    fn accepts(self, found: Ordering) -> bool {
        match self {
            Order::Equals => found.is_eq(),
            Order::LessThan => found.is_lt(),
            Order::LessThanEquals => found.is_le(),
            Order::GreaterThan => found.is_gt(),
            Order::GreaterThanEquals => found.is_ge(),
        }
    }
}

impl Test {
    fn holds(&self, scope: &mut Scope<'_>, root: &Value) -> std::result::Result<bool, Fault> {
        Ok(match self {
            Test::And(tests) => {
                for test in tests {
                    if !test.holds(scope, root)? {
                        return Ok(false);
                    }
                }
                true
            }
            Test::Or(tests) => {
                for test in tests {
                    if test.holds(scope, root)? {
                        return Ok(true);
                    }
                }
                false
            }
            Test::Not(test) => !test.holds(scope, root)?,
            Test::Is { variable, kind, expected } => {
                let found = scope.lookup(variable, root).and_then(std::result::Result::ok);
                if found.is_none() && *kind != Is::Present {
                    return Err(absent(variable));
                }
                kind.holds(found.as_ref()) == *expected
            }
            Test::Compare { variable, kind, order, with } => {
                let left = find(scope, variable, root)?;
                let right = match with {
                    Operand::Literal(value) => value.clone(),
                    Operand::Path(reference) => find(scope, reference, root)?,
                };
                kind.compare(&left, &right).is_some_and(|found| order.accepts(found))
            }
            Test::Matches { variable, pattern } => {
                let found = find(scope, variable, root)?;
                found.as_str().is_some_and(|text| pattern.matches(text))
            }
        })
    }
}

fn find(
    scope: &Scope<'_>,
    reference: &Reference,
    root: &Value,
) -> std::result::Result<Value, Fault> {
    let found = scope.lookup(reference, root).and_then(std::result::Result::ok);
    found.ok_or_else(|| absent(reference))
}

fn absent(reference: &Reference) -> Fault {
    let text = &reference.text;
    Fault::runtime(format!(
        "Invalid path '{text}': The choice state's condition path references an invalid value."
    ))
}

impl Is {
    fn holds(self, found: Option<&Value>) -> bool {
        let Some(value) = found else { return false };
        match self {
            Is::Present => true,
            Is::Null => value.is_null(),
            Is::Boolean => value.is_boolean(),
            Is::Numeric => value.is_number(),
            Is::String => value.is_string(),
            Is::Timestamp => accept::time(value).is_some(),
        }
    }
}
