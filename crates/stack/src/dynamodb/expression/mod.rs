//! DynamoDB's expression language: [`lexer`] and [`parser`] read an expression, [`check`] validates it,
//! [`bind`] replaces its placeholders, and [`Condition::holds`](ast::Condition::holds) evaluates it.
//!
//! The steps run in DynamoDB's order, so that an expression with several errors reports the same one.

use journal::item::Item;
use serde_json::{Map, Value as Json};

use super::error::ApiError;
use super::value::AttributeValue;
use ast::{Condition, Operand, Path, Segment};
use bind::Binder;
use placeholders::Placeholders;

pub mod ast;
pub mod bind;
pub mod check;
mod eval;
pub mod lexer;
pub mod parser;
pub mod placeholders;
pub mod reserved;

/// Parses a condition. `parameter` is its name in messages.
pub fn condition(
    parameter: &str,
    text: &str,
    placeholders: &mut Placeholders,
) -> Result<Condition, ApiError> {
    let raw = parser::condition(text).map_err(|error| invalid(parameter, &error))?;
    check::condition(&raw).map_err(|error| invalid(parameter, &error))?;
    Binder::new(placeholders).condition(&raw).map_err(|error| invalid(parameter, &error))
}

/// The attributes that a reader requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection(pub Vec<Path>);

/// Parses a projection.
pub fn projection(text: &str, placeholders: &mut Placeholders) -> Result<Projection, ApiError> {
    const PARAMETER: &str = "ProjectionExpression";
    let raw = parser::projection(text).map_err(|error| invalid(PARAMETER, &error))?;
    raw.iter().try_for_each(check::path).map_err(|error| invalid(PARAMETER, &error))?;
    let mut binder = Binder::new(placeholders);
    let mut paths: Vec<Path> = Vec::with_capacity(raw.len());
    // DynamoDB checks the last path first.
    for path in raw.iter().rev() {
        let path = binder.path(path).map_err(|error| invalid(PARAMETER, &error))?;
        disjoint(PARAMETER, &path, paths.iter().rev())?;
        paths.push(path);
    }
    paths.reverse();
    Ok(Projection(paths))
}

/// Parses an update that sets attributes to values.
pub fn assignments(
    text: &str,
    placeholders: &mut Placeholders,
) -> Result<Vec<(Path, AttributeValue)>, ApiError> {
    const PARAMETER: &str = "UpdateExpression";
    let raw = parser::assignments(text).map_err(|error| invalid(PARAMETER, &error))?;
    for (path, _) in &raw {
        check::path(path).map_err(|error| invalid(PARAMETER, &error))?;
    }
    let mut binder = Binder::new(placeholders);
    let mut assignments = Vec::with_capacity(raw.len());
    for (path, operand) in &raw {
        let path = binder.path(path).map_err(|error| invalid(PARAMETER, &error))?;
        let operand = binder.operand(operand).map_err(|error| invalid(PARAMETER, &error))?;
        let Operand::Value(value) = operand else {
            return Err(invalid(PARAMETER, &parser::SyntaxError::UnsupportedUpdate));
        };
        assignments.push((path, value));
    }
    for (place, (path, _)) in assignments.iter().enumerate() {
        disjoint(PARAMETER, path, assignments[place + 1..].iter().map(|(later, _)| later))?;
    }
    Ok(assignments)
}

impl Projection {
    /// Projects an item. Items are flat: no attribute has members.
    pub fn of(&self, item: &Item) -> Json {
        let mut left = Map::new();
        for path in self.0.iter().filter(|path| path.inner.is_empty()) {
            if let Some(value) = item.get(&path.name) {
                left.insert(path.name.clone(), value.to_json());
            }
        }
        Json::Object(left)
    }
}

impl Condition {
    /// Every path in the condition, in order.
    pub fn paths(&self) -> Vec<&Path> {
        let mut paths = Vec::new();
        self.collect_paths(&mut paths);
        paths
    }

    fn collect_paths<'a>(&'a self, paths: &mut Vec<&'a Path>) {
        let mut operand = |operand: &'a Operand| paths.extend(operand.path());
        match self {
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().for_each(|condition| condition.collect_paths(paths));
            }
            Self::Not(condition) => condition.collect_paths(paths),
            Self::Compare(left, _, right)
            | Self::BeginsWith(left, right)
            | Self::Contains(left, right) => [left, right].into_iter().for_each(operand),
            Self::Between(value, low, high) => [value, low, high].into_iter().for_each(operand),
            Self::In(value, options) => {
                operand(value);
                options.iter().for_each(operand);
            }
            Self::IsType(value, _) => operand(value),
            Self::Exists(path) | Self::NotExists(path) => paths.push(path),
        }
    }
}

impl Operand {
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Attribute(path) => Some(path),
            Self::Value(_) => None,
            Self::Size(operand) => operand.path(),
        }
    }
}

fn invalid(parameter: &str, error: &dyn std::error::Error) -> ApiError {
    ApiError::validation(format!("Invalid {parameter}: {error}"))
}

/// Refuses a path that overlaps a later one, or that needs one attribute to have two types.
fn disjoint<'a>(
    parameter: &str,
    path: &Path,
    later: impl IntoIterator<Item = &'a Path>,
) -> Result<(), ApiError> {
    for later in later {
        if let Some(how) = clash(path, later) {
            return Err(ApiError::validation(format!(
                "Invalid {parameter}: Two document paths {how} with each other; must remove or \
                 rewrite one of these paths; path one: {path}, path two: {later}"
            )));
        }
    }
    Ok(())
}

fn clash(one: &Path, two: &Path) -> Option<&'static str> {
    if one.name != two.name {
        return None;
    }
    for (one, two) in one.inner.iter().zip(&two.inner) {
        match (one, two) {
            (Segment::Name(one), Segment::Name(two)) if one == two => {}
            (Segment::Index(one), Segment::Index(two)) if one == two => {}
            (Segment::Name(_), Segment::Index(_)) | (Segment::Index(_), Segment::Name(_)) => {
                return Some("conflict");
            }
            _ => return None,
        }
    }
    Some("overlap")
}
