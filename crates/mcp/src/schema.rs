//! Simplifies published schemas to keywords that every client knows.

use serde_json::{Map, Value};

/// Removes what JSON Schema does not define or the server does not accept: `null` for optional
/// members, and the formats `uint32` and `double`.
pub fn portable(schema: &mut schemars::Schema) {
    schema.remove("format");
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        let Some(property) = property.as_object_mut() else { continue };
        property.remove("format");
        if let Some(Value::Object(items)) = property.get_mut("items") {
            items.remove("format");
        }
        if let Some(Value::Array(types)) = property.get("type")
            && let [only, Value::String(null)] = &types[..]
            && null == "null"
        {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
}
