//! The tools of a source, with their schemas compiled once.

use graph::digest;
use graph::effect::{CATALOGUE_AT_MOST_ONCE, CATALOGUE_READS, ToolOffer, ToolSpec};
use graph::outcome::{Failure, ToolOutcome};
use graph::schema::{Error, Schema};
use journal::item::Hash;
use rmcp::model::ToolAnnotations;
use serde_json::{Value, json};

use super::answer;
use crate::measure;

/// Most tools of one server; further ones are ignored.
pub const TOOLS_MAX: usize = 256;

/// Longest description of a tool, in characters; longer ones are truncated.
pub const DESCRIPTION_CHARS_MAX: usize = 4_096;

/// The category of failures other than of the connection: an unknown tool, a request that the server
/// rejected.
pub const CATEGORY_UNKNOWN: &str = "unknown";

/// Which of a source's tools may be taken as reading if their annotations say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Readers {
    /// Each: the source is ours, and we wrote its annotations.
    Annotated,
    /// These, by the configuration.
    Listed(Vec<String>),
}

#[derive(Debug)]
pub(super) struct Catalogue {
    readers: Readers,
    tools: Vec<Tool>,
    unusable: Vec<Unusable>,
    /// Tools with side effects, by the source's hints.
    at_most_once: Vec<String>,
    /// Tools that only read, by the source's hints and by `readers`.
    reads: Vec<String>,
}

/// A tool as a source lists it.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) title: Option<String>,
    pub(super) output_schema: Option<Value>,
    pub(super) hints: Option<ToolAnnotations>,
}

#[derive(Debug)]
pub(super) struct Tool {
    pub(super) spec: ToolSpec,
    /// Covers what the source lists, before any truncation.
    hash: Hash,
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
    pub(super) fn new(readers: Readers) -> Self {
        let (tools, unusable, at_most_once, reads) = Default::default();
        Self { readers, tools, unusable, at_most_once, reads }
    }

    /// Adds a tool. A tool with an unusable schema is kept apart with the reason. Ignores tools beyond
    /// [`TOOLS_MAX`], and a second tool of the same name, which makes the first one doubtful: it does not
    /// count as reading.
    pub(super) fn add(&mut self, spec: ToolSpec, listed: &Listed) {
        let name = spec.name.clone();
        if self.tool(&name).is_some() {
            self.reads.retain(|known| *known != name);
        } else if self.tools.len() + self.unusable.len() < TOOLS_MAX {
            self.insert(spec, listed);
        }
        if let Some(hints) = &listed.hints {
            self.hint(&name, hints);
        }
    }

    fn insert(&mut self, mut spec: ToolSpec, listed: &Listed) {
        let hash = digest::tool(&json!({
            "name": spec.name, "title": listed.title, "description": spec.description,
            "input_schema": spec.input_schema, "output_schema": listed.output_schema,
            "annotations": listed.hints,
        }));
        spec.description = answer::cut(&spec.description, DESCRIPTION_CHARS_MAX);
        match compile(&spec, listed.output_schema.as_ref()) {
            Ok((input, output)) => {
                if self.is_reading(&spec.name, listed.hints.as_ref()) {
                    self.reads.push(spec.name.clone());
                }
                measure::offered(&spec.name);
                self.tools.push(Tool { spec, hash, input, output });
            }
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

    /// Whether a tool only reads: its annotations say so, and its server is built in or the configuration lists the
    /// tool. Annotations alone do not count, because a server can claim anything.
    fn is_reading(&self, name: &str, hints: Option<&ToolAnnotations>) -> bool {
        let claims = hints.is_some_and(|hints| {
            hints.read_only_hint == Some(true) && hints.destructive_hint != Some(true)
        });
        claims
            && match &self.readers {
                Readers::Annotated => true,
                Readers::Listed(names) => names.iter().any(|listed| listed == name),
            }
    }

    /// Notes the source's hints on a tool. Hints can only demand more care, never less: without them the
    /// agent's own settings apply.
    fn hint(&mut self, name: &str, hints: &ToolAnnotations) {
        let changes = hints.destructive_hint == Some(true) || hints.idempotent_hint == Some(false);
        let repeatable = hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true);
        let is_new = !self.at_most_once.iter().any(|known| known == name);
        if changes && !repeatable && is_new && self.tool(name).is_some() {
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
            return Err(ToolOutcome::Failed(self.no_such_tool(source, name)));
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

    /// A tool as the source offers it.
    ///
    /// # Errors
    /// There is no such tool.
    pub(super) fn offer(&self, source: &str, name: &str) -> Result<ToolOffer, Failure> {
        let Some(tool) = self.tool(name) else { return Err(self.no_such_tool(source, name)) };
        let input_schema = tool.spec.input_schema.clone();
        Ok(ToolOffer { schema_hash: tool.hash.clone(), input_schema })
    }

    /// `{"tools": [ToolSpec…]}`, and unless empty, `"unusable": [{"name", "reason"}]`,
    /// `"at_most_once": [NAME]` and `"reads": [NAME]`.
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
        if !self.reads.is_empty() {
            content[CATALOGUE_READS] = json!(self.reads);
        }
        answer::bounded("the list of tools", content)
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.spec.name == name)
    }

    fn no_such_tool(&self, source: &str, name: &str) -> Failure {
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
        Failure::refused(CATEGORY_UNKNOWN, message)
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
        let mut catalogue = Catalogue::new(Readers::Annotated);
        let schema = json!({"type": "object", "required": ["a"]});
        let returns = |schema| Listed { output_schema: Some(schema), ..Listed::default() };
        catalogue.add(spec("good", schema), &returns(json!({"type": "integer"})));
        catalogue.add(spec("good", json!({})), &Listed::default());
        let reaching = spec("reaching", json!({"$ref": "http://127.0.0.1:9/x"}));
        catalogue.add(reaching, &Listed::default());
        catalogue.add(spec("odd", json!({})), &returns(json!({"$ref": "file:///etc/hostname"})));
        catalogue
    }

    fn hinted(hints: Value) -> Listed {
        Listed { hints: Some(serde_json::from_value(hints).unwrap()), ..Listed::default() }
    }

    #[test]
    fn a_tool_reads_if_its_hints_and_the_configuration_agree() {
        let reads = |readers: Readers, hints: Option<Value>| {
            let mut catalogue = Catalogue::new(readers);
            let listed = hints.map(hinted).unwrap_or_default();
            catalogue.add(spec("fetch_all", json!({})), &listed);
            let ToolOutcome::Ok(content) = catalogue.outcome() else { panic!("a list") };
            ToolSpec::catalogue(&content)[0].reads(&content)
        };
        let listed = || Readers::Listed(vec!["fetch_all".to_owned()]);
        let says = |reads: bool| Some(json!({"readOnlyHint": reads}));
        let lies = Some(json!({"readOnlyHint": true, "destructiveHint": true}));
        for (readers, hints, expected) in [
            (listed(), says(true), true),
            (listed(), says(false), false),
            (listed(), None, false),
            (listed(), Some(json!({})), false),
            (listed(), lies.clone(), false),
            (Readers::Listed(vec!["fetch".to_owned()]), says(true), false),
            (Readers::Listed(vec![]), says(true), false),
            (Readers::Annotated, says(true), true),
            (Readers::Annotated, lies, false),
            (Readers::Annotated, None, false),
        ] {
            assert_eq!(reads(readers.clone(), hints.clone()), expected, "{readers:?} {hints:?}");
        }
    }

    #[test]
    fn a_tool_that_is_listed_twice_does_not_read() {
        let mut catalogue = Catalogue::new(Readers::Annotated);
        catalogue.add(spec("look", json!({})), &hinted(json!({"readOnlyHint": true})));
        catalogue.add(spec("look", json!({})), &hinted(json!({"destructiveHint": true})));
        let ToolOutcome::Ok(content) = catalogue.outcome() else { panic!("a list") };
        assert_eq!((content.get("reads"), &content["at_most_once"]), (None, &json!(["look"])));
    }

    #[test]
    fn a_tools_hash_covers_all_that_its_source_says_of_it() {
        let hash = |spec: ToolSpec, listed: &Listed| {
            let mut catalogue = Catalogue::new(Readers::Annotated);
            catalogue.add(spec, listed);
            catalogue.offer("s", "t").unwrap().schema_hash
        };
        let plain = || spec("t", json!({"type": "object"}));
        let same = hash(plain(), &Listed::default());
        assert_eq!(hash(plain(), &Listed::default()), same);
        let tail = format!("{}!", plain().description);
        let titled = Listed { title: Some("T".to_owned()), ..Listed::default() };
        let returns = Listed { output_schema: Some(json!({})), ..Listed::default() };
        for (spec, listed) in [
            (ToolSpec { description: tail, ..plain() }, Listed::default()),
            (spec("t", json!({})), Listed::default()),
            (plain(), hinted(json!({"readOnlyHint": true}))),
            (plain(), titled),
            (plain(), returns),
        ] {
            assert_ne!(hash(spec, &listed), same, "{listed:?}");
        }
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
        let at_most_once = |hints: Value| {
            let mut catalogue = Catalogue::new(Readers::Annotated);
            catalogue.add(spec("good", json!({})), &hinted(hints));
            let ToolOutcome::Ok(content) = catalogue.outcome() else { panic!("a list") };
            content.get("at_most_once").cloned()
        };
        for hints in [
            json!({"destructiveHint": true}),
            json!({"idempotentHint": false}),
            json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false}),
        ] {
            assert_eq!(at_most_once(hints.clone()), Some(json!(["good"])), "{hints}");
        }
        for hints in [
            json!({}),
            json!({"readOnlyHint": false}),
            json!({"readOnlyHint": true, "destructiveHint": true, "idempotentHint": false}),
            json!({"destructiveHint": true, "idempotentHint": true}),
        ] {
            assert_eq!(at_most_once(hints.clone()), None, "{hints}");
        }
    }

    #[test]
    fn the_list_of_tools_is_bounded() {
        let mut catalogue = Catalogue::new(Readers::Annotated);
        let listed = Listed::default();
        (0..300).for_each(|n| catalogue.add(spec(&format!("t{n}"), json!({})), &listed));
        assert_eq!(catalogue.tools.len(), TOOLS_MAX);
    }
}
