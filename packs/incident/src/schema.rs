//! A JSON schema that is generated and compiled once, without network access.

use std::sync::OnceLock;

use jsonschema::Validator;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Most violations in one error.
const VIOLATIONS_MAX: usize = 8;

pub(super) struct Schema {
    make: fn() -> Value,
    compiled: OnceLock<(Value, Validator)>,
}

impl Schema {
    pub(super) const fn of<T: JsonSchema>() -> Self {
        Self { make: make::<T>, compiled: OnceLock::new() }
    }

    pub(super) fn json(&self) -> &Value {
        &self.compiled().0
    }

    /// Parses a value, or returns its violations of the schema.
    ///
    /// Violations name paths and rules and never quote the value: invalid tool output must not reach a
    /// model, not even in an error message.
    pub(super) fn parse<T: DeserializeOwned>(&self, value: &Value) -> Result<T, Vec<String>> {
        let errors = self.compiled().1.iter_errors(value).take(VIOLATIONS_MAX);
        let violations: Vec<String> =
            errors.map(|error| at(error.instance_path().as_str(), &error.masked())).collect();
        if !violations.is_empty() {
            return Err(violations);
        }
        // A type has limits that a schema lacks, such as the range of an integer.
        serde_path_to_error::deserialize(value)
            .map_err(|error| vec![at(&format!("/{}", error.path()), &"a number is out of range")])
    }

    fn compiled(&self) -> &(Value, Validator) {
        self.compiled.get_or_init(|| {
            let schema = (self.make)();
            let validator = jsonschema::validator_for(&schema);
            (schema, validator.expect("a derived schema is a schema"))
        })
    }
}

/// Inlines references, because not every model follows them.
fn make<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Replaces the `oneOf` of documented variants by an `enum` of names, which models read more easily and
/// violations can quote.
pub(super) fn plain_enum(schema: &mut schemars::Schema) {
    let variants = schema.get("oneOf").and_then(Value::as_array);
    let names: Option<Vec<Value>> =
        variants.and_then(|variants| variants.iter().map(|v| v.get("const").cloned()).collect());
    if let Some(names) = names {
        schema.remove("oneOf");
        schema.insert("type".to_owned(), "string".into());
        schema.insert("enum".to_owned(), names.into());
    }
}

fn at(place: &str, violation: &dyn std::fmt::Display) -> String {
    if place.is_empty() { violation.to_string() } else { format!("{place}: {violation}") }
}
