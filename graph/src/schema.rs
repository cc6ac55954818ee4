//! A JSON schema that somebody else wrote: compiled once, and nothing is fetched for it.

use jsonschema::Validator;
use serde_json::Value;

/// Largest schema that is compiled, in bytes of JSON.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// Violations that one message lists; whoever reads it mends these first.
const VIOLATIONS_MAX: usize = 8;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema(Validator);

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is larger than [`SCHEMA_BYTES_MAX`].
    #[error("it has {0} bytes, of which {SCHEMA_BYTES_MAX} are allowed")]
    TooLarge(usize),
    /// It is no schema, or refers to something outside itself.
    #[error("{0}")]
    Invalid(String),
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When it is none, or not complete in itself: a reference to a URL or a file, which a server
    /// could use to have us fetch or read something, is refused.
    pub fn compile(schema: &Value) -> Result<Self, Error> {
        let bytes = schema.to_string().len();
        if bytes > SCHEMA_BYTES_MAX {
            return Err(Error::TooLarge(bytes));
        }
        let built = jsonschema::options().offline().build(schema);
        built.map(Self).map_err(|error| Error::Invalid(error.to_string()))
    }

    /// How a value misses the schema, in one line; `None` if it does not. Names places and rules
    /// and never quotes the value: what a tool sent in breach of its schema must not reach a model,
    /// not even as part of a message about it.
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
    fn a_schema_that_refers_to_itself_ends() {
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
    fn violations_name_the_place_and_not_the_value() {
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
    fn what_is_no_schema_is_refused() {
        assert!(Schema::compile(&json!({"type": "nonsense"})).is_err());
        let large = json!({"description": "x".repeat(SCHEMA_BYTES_MAX)});
        assert!(matches!(Schema::compile(&large), Err(Error::TooLarge(_))));
    }
}
