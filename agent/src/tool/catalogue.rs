//! The tools of a source, with their schemas compiled once.

use graph::effect::{CATALOGUE_AT_MOST_ONCE, ToolSpec};
use graph::outcome::{Failure, ToolOutcome};
use graph::schema::{Error, Schema};
use rmcp::model::ToolAnnotations;
use serde_json::{Value, json};

use super::answer;

/// Most tools of one server; further ones are ignored.
pub const TOOLS_MAX: usize = 256;

/// Longest description of a tool, in characters; longer ones are truncated.
pub const DESCRIPTION_CHARS_MAX: usize = 4_096;

/// The category of failures other than of the connection: an unknown tool, a request that the server
/// rejected.
pub const CATEGORY_UNKNOWN: &str = "unknown";

#[derive(Debug, Default)]
pub(super) struct Catalogue {
    tools: Vec<Tool>,
    unusable: Vec<Unusable>,
    /// Tools with side effects, by the source's hints.
    at_most_once: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Tool {
    pub(super) spec: ToolSpec,
    input: Schema,
    output: Option<Schema>,
}

/// A listed tool that cannot be called.
#[derive(Debug)]
struct Unusable {
    name: String,
    reason: String,
}

impl Catalogue {
    /// Adds a tool. A tool with an unusable schema is kept apart with the reason. Ignores a second tool of
    /// the same name, and tools beyond [`TOOLS_MAX`].
    pub(super) fn add(&mut self, mut spec: ToolSpec, output_schema: Option<&Value>) {
        let known = self.tools.len() + self.unusable.len();
        if known >= TOOLS_MAX || self.tool(&spec.name).is_some() {
            return;
        }
        spec.description = answer::cut(&spec.description, DESCRIPTION_CHARS_MAX);
        match compile(&spec, output_schema) {
            Ok((input, output)) => self.tools.push(Tool { spec, input, output }),
            Err((which, error)) => {
                let reason = answer::cut(
                    &format!("its {which} schema cannot be used: {error}"),
                    answer::ERROR_CHARS_MAX,
                );
                tracing::warn!(tool = %spec.name, which, "Ignoring a tool with an unusable schema.");
                self.unusable.push(Unusable { name: spec.name, reason });
            }
        }
    }

    /// Notes the source's hints on a tool. Hints can only demand more care, never less: without them the
    /// agent's own settings apply.
    pub(super) fn hint(&mut self, name: &str, hints: &ToolAnnotations) {
        let changes = hints.destructive_hint == Some(true) || hints.idempotent_hint == Some(false);
        let repeatable = hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true);
        if changes && !repeatable && self.tool(name).is_some() {
            self.at_most_once.push(name.to_owned());
        }
    }

    /// The tool for a call with these arguments.
    ///
    /// # Errors
    /// The outcome of the call, which must not be made: there is no such tool, or the arguments do not
    /// match its schema.
    pub(super) fn admit(
        &self,
        source: &str,
        name: &str,
        arguments: &Value,
    ) -> Result<&Tool, ToolOutcome> {
        let Some(tool) = self.tool(name) else {
            return Err(self.no_such_tool(source, name));
        };
        if !arguments.is_object() {
            let error = format!("the arguments of `{name}` are not an object; nothing was called");
            return Err(ToolOutcome::Error(error));
        }
        match tool.input.violations(arguments) {
            None => Ok(tool),
            Some(violations) => Err(ToolOutcome::Error(answer::cut(
                &format!(
                    "the arguments of `{name}` break its schema, nothing was called: {violations}"
                ),
                answer::ERROR_CHARS_MAX,
            ))),
        }
    }

    /// `{"tools": [ToolSpec…]}`, and unless empty, `"unusable": [{"name", "reason"}]` and
    /// `"at_most_once": [NAME]`.
    pub(super) fn outcome(&self) -> ToolOutcome {
        let specs: Vec<&ToolSpec> = self.tools.iter().map(|tool| &tool.spec).collect();
        let mut content = json!({ "tools": specs });
        if !self.unusable.is_empty() {
            let unusable = self.unusable.iter();
            let unusable = unusable.map(|t| json!({"name": t.name, "reason": t.reason}));
            content["unusable"] = unusable.collect();
        }
        if !self.at_most_once.is_empty() {
            content[CATALOGUE_AT_MOST_ONCE] = json!(self.at_most_once);
        }
        answer::bounded("the list of tools", content)
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.spec.name == name)
    }

    fn no_such_tool(&self, source: &str, name: &str) -> ToolOutcome {
        let message = match self.unusable.iter().find(|tool| tool.name == name) {
            Some(unusable) => {
                format!(
                    "the tool `{name}` of server `{source}` cannot be called: {}",
                    unusable.reason
                )
            }
            None => {
                let names: Vec<_> = self.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                format!("server `{source}` has no tool `{name}`; its tools: {names}")
            }
        };
        let message = answer::cut(&message, answer::ERROR_CHARS_MAX);
        ToolOutcome::Failed(Failure::refused(CATEGORY_UNKNOWN, message))
    }
}

impl Tool {
    /// Validates a result's content against the output schema, if any.
    pub(super) fn result(&self, content: Value) -> ToolOutcome {
        let name = &self.spec.name;
        let violations = self.output.as_ref().and_then(|schema| schema.violations(&content));
        match violations {
            None => answer::bounded(&format!("the result of `{name}`"), content),
            Some(violations) => ToolOutcome::Error(answer::cut(
                &format!("the result of `{name}` breaks its schema: {violations}"),
                answer::ERROR_CHARS_MAX,
            )),
        }
    }
}

type Compiled = Result<(Schema, Option<Schema>), (&'static str, Error)>;

fn compile(spec: &ToolSpec, output_schema: Option<&Value>) -> Compiled {
    let input = Schema::compile(&spec.input_schema).map_err(|error| ("input", error))?;
    let output = output_schema.map(Schema::compile).transpose();
    Ok((input, output.map_err(|error| ("output", error))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, input_schema: Value) -> ToolSpec {
        let (name, description) = (name.to_owned(), "x".repeat(5_000));
        ToolSpec { server: Some("s".to_owned()), name, description, input_schema }
    }

    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue::default();
        let schema = json!({"type": "object", "required": ["a"]});
        catalogue.add(spec("good", schema), Some(&json!({"type": "integer"})));
        catalogue.add(spec("good", json!({})), None);
        catalogue.add(spec("reaching", json!({"$ref": "http://127.0.0.1:9/x"})), None);
        catalogue.add(spec("odd", json!({})), Some(&json!({"$ref": "file:///etc/hostname"})));
        catalogue
    }

    #[test]
    fn a_tool_with_a_remote_schema_reference_is_never_called() {
        let catalogue = catalogue();
        let ToolOutcome::Ok(content) = catalogue.outcome() else { panic!("a list") };
        let specs = ToolSpec::catalogue(&content);
        assert_eq!(specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["good"]);
        assert_eq!(specs[0].description.chars().count(), DESCRIPTION_CHARS_MAX);
        assert_eq!(content["unusable"].as_array().unwrap().len(), 2);
        let refused = catalogue.admit("s", "reaching", &json!({})).unwrap_err();
        let ToolOutcome::Failed(failure) = refused else { panic!("{refused:?}") };
        assert!(failure.message.contains("input schema cannot be used"), "{failure}");
    }

    #[test]
    fn arguments_are_validated_against_the_schema() {
        let catalogue = catalogue();
        assert!(catalogue.admit("s", "good", &json!({"a": 1})).is_ok());
        for arguments in [json!({}), json!([]), json!(null)] {
            let refused = catalogue.admit("s", "good", &arguments).unwrap_err();
            assert!(matches!(refused, ToolOutcome::Error(_)), "{refused:?}");
        }
    }

    #[test]
    fn results_are_validated_against_the_schema() {
        let catalogue = catalogue();
        let tool = catalogue.admit("s", "good", &json!({"a": 1})).unwrap();
        assert_eq!(tool.result(json!(1)), ToolOutcome::Ok(json!(1)));
        let ToolOutcome::Error(error) = tool.result(json!("sesame")) else { panic!("an error") };
        assert!(!error.contains("sesame"), "{error}");
    }

    #[test]
    fn hints_can_only_demand_more_care() {
        let hinted = |hints: Value| {
            let mut catalogue = catalogue();
            catalogue.hint("good", &serde_json::from_value(hints).unwrap());
            let ToolOutcome::Ok(content) = catalogue.outcome() else { panic!("a list") };
            content.get("at_most_once").cloned()
        };
        for hints in [
            json!({"destructiveHint": true}),
            json!({"idempotentHint": false}),
            json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false}),
        ] {
            assert_eq!(hinted(hints.clone()), Some(json!(["good"])), "{hints}");
        }
        for hints in [
            json!({}),
            json!({"readOnlyHint": false}),
            json!({"readOnlyHint": true, "destructiveHint": true, "idempotentHint": false}),
            json!({"destructiveHint": true, "idempotentHint": true}),
        ] {
            assert_eq!(hinted(hints.clone()), None, "{hints}");
        }
    }

    #[test]
    fn the_list_of_tools_is_bounded() {
        let mut catalogue = Catalogue::default();
        (0..300).for_each(|n| catalogue.add(spec(&format!("t{n}"), json!({})), None));
        assert_eq!(catalogue.tools.len(), TOOLS_MAX);
    }
}
