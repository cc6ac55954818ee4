//! Parameters of a request.

use serde_json::{Map, Value as Json};

use super::TABLE_NAME;
use super::error::ApiError;

/// A request's parameters. A null parameter is absent.
#[derive(Debug)]
pub struct Request {
    parameters: Map<String, Json>,
}

impl Request {
    /// Parses a request's body.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        match serde_json::from_slice(body) {
            Ok(Json::Object(mut parameters)) => {
                parameters.retain(|_, value| !value.is_null());
                Ok(Self { parameters })
            }
            _ => Err(ApiError::serialization("the body is not a JSON object")),
        }
    }

    /// Whether the parameter is present.
    pub fn has(&self, name: &str) -> bool {
        self.parameters.contains_key(name)
    }

    /// A string parameter.
    pub fn text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        self.get(name, "String", Json::as_str)
    }

    /// A boolean parameter.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        self.get(name, "Boolean", Json::as_bool)
    }

    /// An integer parameter.
    pub fn whole(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.get(name, "Integer", Json::as_i64)
    }

    /// A map parameter.
    pub fn object(&self, name: &str) -> Result<Option<&Map<String, Json>>, ApiError> {
        self.get(name, "Map", Json::as_object)
    }

    /// A string parameter with these values; the first is the default.
    pub fn one_of(&self, name: &str, choices: &[&'static str]) -> Result<&'static str, ApiError> {
        let Some(text) = self.text(name)? else { return Ok(choices[0]) };
        choices.iter().copied().find(|choice| *choice == text).ok_or_else(|| {
            let choices = choices.join(", ");
            let rule = format!("Member must satisfy enum value set: [{choices}]");
            constraint(&format!("'{text}'"), name, &rule)
        })
    }

    /// An integer parameter from 1 to `max`.
    pub fn count(&self, name: &str, max: i64) -> Result<Option<usize>, ApiError> {
        let Some(number) = self.whole(name)? else { return Ok(None) };
        let broken = |rule: &str, bound: i64| {
            let rule = format!("Member must have value {rule} than or equal to {bound}");
            Err(constraint(&format!("'{number}'"), name, &rule))
        };
        match usize::try_from(number) {
            Ok(count) if count >= 1 && number <= max => Ok(Some(count)),
            Ok(count) if count >= 1 => broken("less", max),
            _ => broken("greater", 1),
        }
    }

    /// Refuses a request for any table but the journal's.
    pub fn for_our_table(&self) -> Result<(), ApiError> {
        let name = self
            .text("TableName")?
            .ok_or_else(|| constraint("null", "TableName", "Member must not be null"))?;
        // A table's ARN ends with its name.
        let name = match name.split_once(":table/") {
            Some((arn, name)) if arn.starts_with("arn:") => name,
            _ => name,
        };
        if name == TABLE_NAME {
            return Ok(());
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if !(3..=255).contains(&name.len()) || !name.chars().all(allowed) {
            return Err(ApiError::validation(
                "Invalid table/index name.  Table/index names must be between 3 and 255 \
                 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', \
                 and '.'",
            ));
        }
        Err(ApiError::not_found("Requested resource not found"))
    }

    /// Refuses legacy parameters, which expressions replaced.
    pub fn without_legacy(
        &self,
        legacy: &[&'static str],
        expressions: &[&'static str],
    ) -> Result<(), ApiError> {
        let given = |names: &[&'static str]| {
            names.iter().copied().filter(|name| self.has(name)).collect::<Vec<_>>().join(", ")
        };
        let (legacy, expressions) = (given(legacy), given(expressions));
        if legacy.is_empty() {
            return Ok(());
        }
        Err(ApiError::validation(if expressions.is_empty() {
            format!("this endpoint does not support {legacy}: use expressions")
        } else {
            format!(
                "Can not use both expression and non-expression parameters in the same request: \
                 Non-expression parameters: {{{legacy}}} Expression parameters: {{{expressions}}}"
            )
        }))
    }

    fn get<'a, T>(
        &'a self,
        name: &str,
        wanted: &str,
        read: impl Fn(&'a Json) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.parameters.get(name) else { return Ok(None) };
        let found = match value {
            Json::Bool(_) => "BOOLEAN_VALUE",
            Json::Number(_) => "NUMBER_VALUE",
            Json::String(_) => "STRING_VALUE",
            Json::Array(_) => "START_ARRAY",
            Json::Object(_) | Json::Null => "START_OBJECT",
        };
        read(value).map(Some).ok_or_else(|| {
            ApiError::serialization(format!("{name}: {found} cannot be converted to {wanted}"))
        })
    }
}

/// The error for a parameter that violates a constraint of the action's model.
fn constraint(value: &str, name: &str, rule: &str) -> ApiError {
    let mut member = name.to_owned();
    member[..1].make_ascii_lowercase();
    ApiError::validation(format!(
        "1 validation error detected: Value {value} at '{member}' failed to satisfy constraint: \
         {rule}"
    ))
}
