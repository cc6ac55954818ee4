//! The names and values of a request, and which of them its expressions use.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::lexer::is_placeholder;
use crate::dynamodb::error::ApiError;
use crate::dynamodb::request::Request;
use crate::dynamodb::value::AttributeValue;

/// Longest placeholder, in bytes.
///
/// Source: AWS, "Quotas in Amazon DynamoDB", expression parameters.
pub const PLACEHOLDER_BYTES_MAX: usize = 255;

/// Longest attribute name, in bytes.
///
/// Source: AWS, "Quotas in Amazon DynamoDB", attribute names.
pub const NAME_BYTES_MAX: usize = 65_535;

const NAMES: &str = "ExpressionAttributeNames";
const VALUES: &str = "ExpressionAttributeValues";

/// The values of a request's placeholders.
#[derive(Debug, Default)]
pub struct Placeholders {
    names: BTreeMap<String, String>,
    values: BTreeMap<String, AttributeValue>,
    used: BTreeSet<String>,
}

impl Placeholders {
    /// Parses a request. `expressions` are the parameters that may use names; `conditions` are those that
    /// may also use values.
    pub fn read(
        request: &Request,
        expressions: &[&'static str],
        conditions: &[&'static str],
    ) -> Result<Self, ApiError> {
        let mut placeholders = Self::default();
        if let Some(names) = request.object(NAMES)? {
            if !expressions.iter().any(|expression| request.has(expression)) {
                let refusal = format!("{NAMES} can only be specified when using expressions");
                return Err(ApiError::validation(refusal));
            }
            for (key, name) in entries(NAMES, '#', names)? {
                placeholders.names.insert(key.clone(), read_name(key, name)?);
            }
        }
        if let Some(values) = request.object(VALUES)? {
            if !conditions.iter().any(|condition| request.has(condition)) {
                let missing = conditions.join(" is null and ");
                return Err(ApiError::validation(format!(
                    "{VALUES} can only be specified when using expressions: {missing} is null"
                )));
            }
            for (key, json) in entries(VALUES, ':', values)? {
                let value = AttributeValue::from_json(json).map_err(|error| {
                    let reason = format!("{VALUES} contains invalid value: {error} for key {key}");
                    ApiError::validation(reason)
                })?;
                placeholders.values.insert(key.clone(), value);
            }
        }
        Ok(placeholders)
    }

    /// The name of a name placeholder.
    pub(super) fn name(&mut self, placeholder: &str) -> Option<String> {
        let name = self.names.get(placeholder)?.clone();
        self.used.insert(placeholder.to_owned());
        Some(name)
    }

    /// The value of a value placeholder.
    pub(super) fn value(&mut self, placeholder: &str) -> Option<AttributeValue> {
        let value = self.values.get(placeholder)?.clone();
        self.used.insert(placeholder.to_owned());
        Some(value)
    }

    /// Refuses placeholders that no expression uses.
    pub fn all_used(&self) -> Result<(), ApiError> {
        let unused = |parameter: &str, keys: Vec<&String>| {
            let keys: Vec<&str> = keys
                .into_iter()
                .filter(|key| !self.used.contains(*key))
                .map(String::as_str)
                .collect();
            if keys.is_empty() {
                return Ok(());
            }
            let keys = keys.join(", ");
            Err(ApiError::validation(format!(
                "Value provided in {parameter} unused in expressions: keys: {{{keys}}}"
            )))
        };
        unused(NAMES, self.names.keys().collect())?;
        unused(VALUES, self.values.keys().collect())
    }
}

fn entries<'a>(
    parameter: &str,
    mark: char,
    map: &'a Map<String, Json>,
) -> Result<impl Iterator<Item = (&'a String, &'a Json)>, ApiError> {
    if map.is_empty() {
        return Err(ApiError::validation(format!("{parameter} must not be empty")));
    }
    for key in map.keys() {
        if key.len() > PLACEHOLDER_BYTES_MAX {
            return Err(ApiError::validation(format!(
                "{parameter} contains invalid key: The expression attribute map contains a key \
                 that is too long;"
            )));
        }
        if !is_placeholder(key, mark) {
            let refusal = format!("{parameter} contains invalid key: Syntax error; key: \"{key}\"");
            return Err(ApiError::validation(refusal));
        }
    }
    Ok(map.iter())
}

fn read_name(key: &str, name: &Json) -> Result<String, ApiError> {
    let name = name.as_str().ok_or_else(|| {
        ApiError::serialization(format!("{NAMES} holds something other than a String at {key}"))
    })?;
    let reason = match name.len() {
        0 => "Empty attribute name",
        length if length > NAME_BYTES_MAX => {
            "Attribute name is too large, must be less than 65536 bytes"
        }
        _ => return Ok(name.to_owned()),
    };
    Err(ApiError::validation(format!("{NAMES} contains invalid value: {reason} for key {key}")))
}
