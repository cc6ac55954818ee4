//! The string values that a schema allows for an argument.

use serde_json::Value;

/// Maximum number of schemas visited per argument. A server's schema may refer to itself.
const SCHEMAS_MAX: usize = 256;

/// The strings that an argument accepts, in schema order; empty if it accepts any.
///
/// Follows references within the tool's own schema only: schemas are never fetched.
pub(super) fn choices<'a>(property: &'a Value, schema: &'a Value) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut waiting = vec![property];
    for _ in 0..SCHEMAS_MAX {
        let Some(next) = waiting.pop() else { break };
        let referred = next.get("$ref").and_then(Value::as_str);
        let within = referred.and_then(|to| schema.pointer(to.strip_prefix('#')?));
        let listed = next.get("enum").and_then(Value::as_array).into_iter().flatten();
        let texts = listed.chain(next.get("const")).filter_map(Value::as_str);
        found.extend(texts.take(SCHEMAS_MAX));
        let parts =
            ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|of| next.get(of)?.as_array());
        let parts: Vec<&Value> = parts.flatten().chain(within).take(SCHEMAS_MAX).collect();
        // Visit the first part first.
        waiting.extend(parts.into_iter().rev());
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn choices_are_found_wherever_a_schema_lists_them() {
        let schema = json!({ "$defs": {
            "Plain": { "enum": ["bgp", "isis", "all"] },
            "Named": { "oneOf": [
                { "const": "bgp", "description": "Between systems." },
                { "const": "isis" },
                { "enum": ["all"] },
            ]},
            "Further": { "$ref": "#/$defs/Plain" },
        }});
        for property in [
            json!({ "enum": ["bgp", "isis", "all"] }),
            json!({ "enum": ["bgp", 7, "isis", null, "all"] }),
            json!({ "$ref": "#/$defs/Plain" }),
            json!({ "$ref": "#/$defs/Named", "description": "Which." }),
            json!({ "anyOf": [{ "$ref": "#/$defs/Further" }, { "type": "null" }] }),
            json!({ "allOf": [{ "$ref": "#/$defs/Named" }] }),
        ] {
            assert_eq!(choices(&property, &schema), ["bgp", "isis", "all"], "{property}");
        }
    }

    #[test]
    fn unusable_and_recursive_schemas_have_no_choices() {
        let schema = json!({ "$defs": {
            "Own": { "$ref": "#/$defs/Own" },
            "Many": { "anyOf": [{ "$ref": "#/$defs/Many" }, { "$ref": "#/$defs/Many" }] },
        }});
        for property in [
            json!({ "type": "string" }),
            json!({ "$ref": "#/$defs/Own" }),
            json!({ "$ref": "#/$defs/Many" }),
            json!({ "$ref": "#/$defs/Absent" }),
            json!({ "$ref": "http://example.com/schema" }),
            json!({ "enum": "bgp" }),
            json!(null),
        ] {
            assert_eq!(choices(&property, &schema), Vec::<&str>::new(), "{property}");
        }
    }
}
