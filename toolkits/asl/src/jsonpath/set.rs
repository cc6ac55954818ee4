//! Writes to a path, for `ResultPath`.

use serde_json::{Map, Value};

use super::{Path, Step, position};

/// The path leads through a value that cannot hold it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NoPlace;

impl Path {
    /// Writes a value to a definite path. Missing objects are created; missing list items are not.
    pub(crate) fn set(&self, root: &mut Value, value: Value) -> Result<(), NoPlace> {
        let mut place = root;
        for step in &self.steps {
            place = match step {
                Step::Children(names) => {
                    if place.is_null() {
                        *place = Value::Object(Map::new());
                    }
                    let fields = place.as_object_mut().ok_or(NoPlace)?;
                    fields.entry(names[0].clone()).or_insert(Value::Null)
                }
                Step::Items(indexes) => {
                    let items = place.as_array_mut().ok_or(NoPlace)?;
                    let at = position(indexes[0], items.len()).ok_or(NoPlace)?;
                    items.get_mut(at).ok_or(NoPlace)?
                }
                _ => return Err(NoPlace),
            };
        }
        *place = value;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Reference;
    use super::*;

    #[test]
    fn a_value_is_written_to_its_path() {
        let set = |path: &str, mut root: Value| {
            Reference::compile(path).unwrap().path.set(&mut root, json!(1)).map(|()| root)
        };
        assert_eq!(set("$", json!({"a": 2})), Ok(json!(1)));
        assert_eq!(set("$.a.b", json!({})), Ok(json!({"a": {"b": 1}})));
        assert_eq!(set("$.a", json!({"a": 2, "b": 3})), Ok(json!({"a": 1, "b": 3})));
        assert_eq!(set("$.a[0]", json!({"a": [5]})), Ok(json!({"a": [1]})));
        assert_eq!(set("$.a[1]", json!({"a": [5]})), Err(NoPlace));
        assert_eq!(set("$.a.b", json!({"a": 5})), Err(NoPlace));
        assert_eq!(set("$.a", json!([])), Err(NoPlace));
    }
}
