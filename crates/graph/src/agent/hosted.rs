//! Agents that are programs.

use std::sync::Arc;

use serde_json::Value;

use super::{Agent, OutlineNode, Program, Sheet, SpanNames, StateError};
use crate::budget::{Budget, Crossed};
use crate::definition::{Attempts, Context, InputError, Route, Scope, TOOL_TIMEOUT_S};
use crate::effect::{Chat, Effect, Reply};
use crate::outcome::Outcome;
use crate::panics::Panicked;
use crate::presentation::Presentation;
use crate::profile::Profile;
use crate::program::{Description, Hosted, Launch};
use crate::schema::{self, Schema};

impl Agent {
    /// An agent that is a program. Its texts live as long as this process.
    ///
    /// # Errors
    /// A schema is not valid.
    pub fn program(described: Description, launch: Launch) -> Result<Self, schema::Error> {
        let compile = |schema: &Option<Value>| schema.as_ref().map(Schema::compile).transpose();
        let input_schema = compile(&described.input_schema)?.map(Arc::new);
        let hosted = Hosted { launch, result_schema: compile(&described.result_schema)? };
        let sheet = Sheet {
            name: leak(described.name),
            version: leak(described.version),
            summary: leak(described.summary.unwrap_or_else(|| "A program.".to_owned())),
            start: PROGRAM_NODE,
            nodes: vec![OutlineNode { name: PROGRAM_NODE, to: &[] }],
            on_limit_to: &[],
            budget: Budget::UNLIMITED,
            scope: Scope::Session,
            attempts: Attempts::DEFAULT,
            at_most_once: leak_all(described.at_most_once),
            critical: leak_all(described.critical),
            servers: leak_all(described.servers),
            tool_timeout_s: TOOL_TIMEOUT_S,
            origins: Vec::new(),
            hosted: Some(Arc::new(hosted)),
            has_policy: true,
        };
        let template = described.title.map(leak);
        Ok(Self {
            sheet: Arc::new(sheet),
            span_names: SpanNames::USUAL,
            presentation: Presentation { template, ..Presentation::DEFAULT },
            init: Arc::new(move |input, _| {
                match input_schema.as_ref().and_then(|schema| schema.violations(input)) {
                    Some(violations) => {
                        let expected = format!("a value that matches its schema: {violations}");
                        Err(InputError::new("input", expected))
                    }
                    None => Ok(Box::new(Elsewhere)),
                }
            }),
            restore: Arc::new(|_| Ok(Box::new(Elsewhere))),
            input_schema: described.input_schema.map(Arc::new),
            model: None,
            profile: &Profile::PLAIN,
            earlier: Vec::new(),
        })
    }

    /// The program, if the agent is one.
    pub fn hosted(&self) -> Option<&Hosted> {
        self.sheet.hosted.as_deref()
    }
}

/// Name of the only node of an agent that is a program.
const PROGRAM_NODE: &str = "program";

/// A text of an agent that is no constant. Texts of agents are static, because nearly all agents are; this one lives as
/// long as the process.
pub fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// As [`leak`].
pub fn leak_all(texts: Vec<String>) -> &'static [&'static str] {
    Box::leak(texts.into_iter().map(leak).collect())
}

/// The program of an agent whose code runs in another process.
struct Elsewhere;

impl Program for Elsewhere {
    fn ask(&self, _: &str, _: &Context<'_>) -> Result<Option<Effect>, Panicked> {
        Ok(None)
    }

    fn fold(&mut self, _: &str, _: Outcome) -> Result<Option<Route>, Panicked> {
        Ok(None)
    }

    fn on_limit(&mut self, crossed: Crossed) -> Result<Route, Panicked> {
        Ok(Route::End(crossed.finish()))
    }

    fn policy(&self, _: &Chat) -> Result<Reply, Panicked> {
        Ok(Reply::says(""))
    }

    fn state(&self) -> Result<Value, StateError> {
        Ok(Value::Null)
    }
}
