//! JSONPath as Step Functions runs it.
//!
//! The dialect is that of the Jayway library, which predates RFC 9535 and differs from it. A name
//! with dashes may follow a dot. A path that selects at most one value fails if that value is
//! missing. A path that may select several returns an array, possibly empty. Like Step Functions,
//! the parser rejects functions and regular expressions.
//!
//! A `Path` is one compiled path. A `Reference` is a path with its root: `$` (a state's input),
//! `$$` (the context object) or `$name` (a variable).

mod filter;
mod parse;
mod set;

use serde_json::Value;

use filter::Filter;

/// Longest path, in bytes of its text.
pub const PATH_BYTES_MAX: usize = 4 * 1024;
/// Deepest nesting of parentheses and negations in a filter.
pub const FILTER_DEPTH_MAX: usize = 32;
/// Most values that one path may visit, so that `$..*..*` over a large input terminates.
pub const VISITS_MAX: usize = 1_000_000;

/// A compiled path, relative to a root.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Children(Vec<String>),
    Items(Vec<i64>),
    Slice {
        from: Option<i64>,
        to: Option<i64>,
        by: i64,
    },
    Every,
    /// All descendants; the next step selects among them.
    Descend,
    Where(Filter),
}

/// The root of a reference.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Root {
    Input,
    Context,
    Variable(String),
}

/// A path and its root, with the source text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reference {
    pub(crate) text: String,
    pub(crate) root: Root,
    pub(crate) path: Path,
}

/// The text is not a path of this dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid JSONPath '{text}': {problem} at character {at}")]
pub struct PathError {
    pub text: String,
    pub problem: &'static str,
    /// Position in characters, counted from 1.
    pub at: usize,
}

/// Why a path selected nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Missing {
    /// The last step found nothing.
    Leaf(String),
    /// An earlier step found nothing.
    Branch(String),
    /// There were more than [`VISITS_MAX`] values to visit.
    TooMany,
}

impl std::fmt::Display for Missing {
    /// Step Functions' message.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Missing::Leaf(path) => write!(formatter, "No results for path: {path}"),
            Missing::Branch(path) => write!(formatter, "Missing property in path {path}"),
            Missing::TooMany => write!(formatter, "More than {VISITS_MAX} values to look at"),
        }
    }
}

impl Reference {
    /// Compiles `$…`, `$$…` or `$name…`.
    ///
    /// # Errors
    /// The path is invalid.
    pub(crate) fn compile(text: &str) -> Result<Reference, PathError> {
        parse::reference(text)
    }

    /// Whether a value can be written there: only names and single indexes, below the input.
    pub(crate) fn is_target(&self) -> bool {
        self.root == Root::Input && self.path.is_definite()
    }
}

impl Path {
    /// Whether it selects at most one value.
    pub(crate) fn is_definite(&self) -> bool {
        self.steps.iter().all(|step| match step {
            Step::Children(names) => names.len() == 1,
            Step::Items(indexes) => indexes.len() == 1,
            Step::Slice { .. } | Step::Every | Step::Descend | Step::Where(_) => false,
        })
    }

    /// The value of a definite path; for any other path an array of all selected values.
    pub(crate) fn select(&self, root: &Value) -> Result<Value, Missing> {
        if self.is_definite() {
            return self.find(root).cloned();
        }
        let found = self.select_all(root, root)?;
        Ok(Value::Array(found.into_iter().cloned().collect()))
    }

    /// The value of a definite path.
    fn find<'a>(&self, root: &'a Value) -> Result<&'a Value, Missing> {
        let (mut value, mut walked) = (root, "$".to_owned());
        for (at, step) in self.steps.iter().enumerate() {
            let next = match step {
                Step::Children(names) => {
                    walked.push_str(&format!("['{}']", names[0]));
                    value.as_object().and_then(|fields| fields.get(&names[0]))
                }
                Step::Items(indexes) => {
                    walked.push_str(&format!("[{}]", indexes[0]));
                    value.as_array().and_then(|items| items.get(position(indexes[0], items.len())?))
                }
                _ => unreachable!("a definite path has no other steps"),
            };
            let last = at + 1 == self.steps.len();
            value = next.ok_or_else(|| {
                if last { Missing::Leaf(walked.clone()) } else { Missing::Branch(walked.clone()) }
            })?;
        }
        Ok(value)
    }

    /// All values that the path selects in `value`; filters may also refer to `root`.
    fn select_all<'a>(&self, value: &'a Value, root: &'a Value) -> Result<Vec<&'a Value>, Missing> {
        let mut found = vec![value];
        let mut visits = VISITS_MAX;
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.select(value, root, &mut next);
                visits = visits.checked_sub(next.len().max(1)).ok_or(Missing::TooMany)?;
                if next.len() > VISITS_MAX {
                    return Err(Missing::TooMany);
                }
            }
            found = next;
        }
        Ok(found)
    }
}

impl Step {
    fn select<'a>(&self, value: &'a Value, root: &'a Value, found: &mut Vec<&'a Value>) {
        match (self, value) {
            (Step::Children(names), Value::Object(fields)) => {
                found.extend(names.iter().filter_map(|name| fields.get(name)));
            }
            (Step::Items(indexes), Value::Array(items)) => {
                let at = indexes.iter().filter_map(|index| position(*index, items.len()));
                found.extend(at.filter_map(|at| items.get(at)));
            }
            (Step::Slice { from, to, by }, Value::Array(items)) => {
                let bound = |at: &Option<i64>, default: usize| match at {
                    None => default,
                    Some(at) if *at < 0 => items.len().saturating_sub(at.unsigned_abs() as usize),
                    Some(at) => (*at as usize).min(items.len()),
                };
                let (from, to) = (bound(from, 0), bound(to, items.len()));
                found.extend(items[from..to.max(from)].iter().step_by((*by).max(1) as usize));
            }
            (Step::Every, Value::Array(items)) => found.extend(items),
            (Step::Every, Value::Object(fields)) => found.extend(fields.values()),
            (Step::Descend, value) => descend(value, found),
            (Step::Where(filter), Value::Array(items)) => {
                found.extend(items.iter().filter(|item| filter.holds(item, root)));
            }
            (Step::Where(filter), value) if filter.holds(value, root) => found.push(value),
            _ => {}
        }
    }
}

/// A value and all its descendants. The JSON parser limits their depth.
fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| descend(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| descend(field, found)),
        _ => {}
    }
}

/// Index into a list; negative indexes count from the end.
fn position(index: i64, length: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(at) => Some(at),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn select(path: &str, value: &Value) -> Value {
        match Reference::compile(path).unwrap().path.select(value) {
            Ok(found) => found,
            Err(missing) => Value::String(missing.to_string()),
        }
    }

    #[test]
    fn a_path_selects_what_jayway_selects() {
        let value = json!({
            "a-b": [1, 2, {"c": 3}], "it's": 4, "n": null,
            "books": [{"p": 8, "t": "x"}, {"p": 12}, {"p": 9, "t": "y"}]
        });
        for (path, expected) in [
            ("$", value.clone()),
            ("$.a-b[0]", json!(1)),
            ("$.a-b[-1].c", json!(3)),
            ("$['it\\'s']", json!(4)),
            ("$.n", json!(null)),
            ("$.a-b[0,1]", json!([1, 2])),
            ("$.a-b[:2]", json!([1, 2])),
            ("$.a-b[-2:]", json!([2, {"c": 3}])),
            ("$.books[*].t", json!(["x", "y"])),
            ("$..c", json!([3])),
            ("$.books[?(@.p < 10 && @.t)].p", json!([8, 9])),
            ("$.books[?(@.t == 'y' || @.p in [12])].p", json!([12, 9])),
            ("$.books[?(!(@.t))].p", json!([12])),
            ("$.none[*]", json!([])),
            ("$.none", json!("No results for path: $['none']")),
            ("$.none.x", json!("Missing property in path $['none']")),
            ("$.a-b[7]", json!("No results for path: $['a-b'][7]")),
        ] {
            assert_eq!(select(path, &value), expected, "{path}");
        }
    }

    #[test]
    fn an_invalid_path_is_rejected_with_its_position() {
        for (path, at) in [
            ("", 1),
            ("a", 1),
            ("$.", 3),
            ("$[", 3),
            ("$['a", 3),
            ("$.a b", 4),
            ("$.a.length()", 11),
            ("$[?(@.a =~ /x/)]", 9),
        ] {
            let refusal = Reference::compile(path).unwrap_err();
            assert_eq!(refusal.at, at, "{refusal}");
        }
        assert!(Reference::compile(&format!("$[?({}@.a)]", "!".repeat(10_000))).is_err());
    }

    #[test]
    fn a_path_with_exponential_matches_terminates() {
        let value = json!(vec![vec![1; 300]; 300]);
        assert_eq!(select("$..*..*..*..*", &value), json!("More than 1000000 values to look at"));
    }
}
