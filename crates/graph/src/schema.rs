//! JSON schemas from other parties: compiled once, without fetching anything.

use jsonschema::Validator;
use serde_json::Value;

/// Largest schema, in bytes of JSON.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// Most violations in one message; the reader fixes these first.
const VIOLATIONS_MAX: usize = 8;

#[derive(Debug)]
pub struct Schema(Validator);

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it has {0} bytes; at most {SCHEMA_BYTES_MAX} are allowed")]
    TooLarge(usize),
    /// It is not a schema, or refers to something outside itself.
    #[error("{0}")]
    Invalid(String),
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// It is not a schema, or not self-contained. References to URLs and files are rejected: a
    /// server could use them to make us fetch or read something.
    pub fn compile(schema: &Value) -> Result<Self, Error> {
        let bytes = schema.to_string().len();
        if bytes > SCHEMA_BYTES_MAX {
            return Err(Error::TooLarge(bytes));
        }
        let built = jsonschema::options().offline().build(schema);
        built.map(Self).map_err(|error| Error::Invalid(error.to_string()))
    }

    /// How a value violates the schema, in one line; `None` if it does not. The message names paths
    /// and rules and never quotes the value: an invalid result of a tool must not reach a model,
    /// not even in an error message.
    pub fn violations(&self, value: &Value) -> Option<String> {
        let errors = self.0.iter_errors(value).take(VIOLATIONS_MAX);
        let all: Vec<String> = errors
            .map(|error| match error.instance_path().as_str() {
                "" => error.masked().to_string(),
                place => format!("{place}: {}", error.masked()),
            })
            .collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_outside_the_schema_is_fetched() {
        let file = concat!("file://", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        for reference in ["http://127.0.0.1:9/schema", "https://example.com/s.json", file] {
            for schema in [
                json!({"$ref": reference}),
                json!({"properties": {"a": {"items": {"$ref": reference}}}}),
                json!({"$schema": reference}),
                json!({"$id": reference, "$ref": "other.json"}),
                json!({"$dynamicRef": reference}),
            ] {
                assert!(Schema::compile(&schema).is_err(), "{schema}");
            }
        }
    }

    #[test]
    fn a_recursive_schema_terminates() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"$dynamicRef": "#x", "$dynamicAnchor": "x"}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        ] {
            Schema::compile(&schema).unwrap().violations(&json!({"a": [1]}));
        }
        let slow = Schema::compile(&json!({"pattern": "^(?=(a+)+$).*$"})).unwrap();
        assert!(slow.violations(&json!(format!("{}!", "a".repeat(60)))).is_some());
    }

    #[test]
    fn violations_name_the_path_and_not_the_value() {
        let schema = json!({
            "type": "object", "required": ["n"], "additionalProperties": false,
            "properties": {"n": {"type": "integer"}, "k": {"enum": ["a"]}},
        });
        let schema = Schema::compile(&schema).unwrap();
        assert_eq!(schema.violations(&json!({"n": 1})), None);
        let violations = schema.violations(&json!({"n": "sesame", "k": "sesame"})).unwrap();
        assert!(violations.contains("/n: ") && violations.contains("/k: "), "{violations}");
        assert!(!violations.contains("sesame"), "{violations}");
    }

    #[test]
    fn an_invalid_schema_is_rejected() {
        assert!(Schema::compile(&json!({"type": "nonsense"})).is_err());
        let large = json!({"description": "x".repeat(SCHEMA_BYTES_MAX)});
        assert!(matches!(Schema::compile(&large), Err(Error::TooLarge(_))));
    }
}
