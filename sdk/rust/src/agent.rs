//! What an agent is: its description and its function.

use std::pin::Pin;
use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{EffectError, Error, type_name};
use crate::program::{Program, Raised, Run};

type Function = Box<dyn Fn(Context, Value) -> Pin<Box<dyn Future<Output = Result<Value, Raised>>>>>;

/// An agent.
pub struct Agent {
    description: Value,
    function: Function,
}

impl Agent {
    /// An agent with a function. `version` changes with every change of the order or the arguments of effects: a session
    /// goes on only with the version that it began with.
    pub fn new<I, O, E, F, R>(name: &str, version: &str, function: F) -> Self
    where
        I: DeserializeOwned + 'static,
        O: Serialize,
        E: Into<Error>,
        F: Fn(Context, I) -> R + 'static,
        R: Future<Output = Result<O, E>> + 'static,
    {
        let function = Rc::new(function);
        let call = move |context: Context, input: Value| {
            let function = function.clone();
            let called = async move {
                let input = I::deserialize(input).map_err(|error| {
                    Raised::new("InputError", format!("the input does not fit: {error}"))
                })?;
                let result = function(context, input).await;
                let result = result.map_err(|error| raised(&type_name::<E>(), &*error.into()))?;
                serde_json::to_value(result)
                    .map_err(|error| Raised::new("ResultError", error.to_string()))
            };
            Box::pin(called) as Pin<Box<dyn Future<Output = _>>>
        };
        let description = json!({"type": "description", "name": name, "version": version});
        Self { description, function: Box::new(call) }
    }

    /// What the agent does, in one sentence.
    #[must_use]
    pub fn summary(self, text: &str) -> Self {
        self.with("summary", json!(text))
    }

    /// The title of a session, in which `{field}` is replaced by that field of the input.
    #[must_use]
    pub fn title(self, template: &str) -> Self {
        self.with("title", json!(template))
    }

    /// The JSON schema of the input. The host validates each input.
    #[must_use]
    pub fn input_schema(self, schema: Value) -> Self {
        self.with("input_schema", schema)
    }

    /// The JSON schema of the result. The host validates each result.
    #[must_use]
    pub fn result_schema(self, schema: Value) -> Self {
        self.with("result_schema", schema)
    }

    /// Both schemas, from the types.
    #[cfg(feature = "schemars")]
    #[must_use]
    pub fn schemas_of<I: schemars::JsonSchema, O: schemars::JsonSchema>(self) -> Self {
        self.input_schema(schemars::schema_for!(I).to_value())
            .result_schema(schemars::schema_for!(O).to_value())
    }

    /// Tools that need a person's approval for each call, as `tool` or `server.tool`.
    #[must_use]
    pub fn critical<'a>(self, tools: impl IntoIterator<Item = &'a str>) -> Self {
        self.with("critical", tools.into_iter().collect())
    }

    /// Tools that change the world: they are called at most once.
    #[must_use]
    pub fn at_most_once<'a>(self, tools: impl IntoIterator<Item = &'a str>) -> Self {
        self.with("at_most_once", tools.into_iter().collect())
    }

    /// The MCP servers that the agent needs.
    #[must_use]
    pub fn servers<'a>(self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.with("servers", names.into_iter().collect())
    }

    fn with(mut self, field: &str, value: Value) -> Self {
        self.description[field] = value;
        self
    }

    /// The frame `description`.
    pub(crate) fn description(&self) -> &Value {
        &self.description
    }

    /// A run with this input. `start` is the frame.
    pub(crate) fn start(&self, start: &Value) -> Run {
        let program = Rc::new(Program::default());
        let context = Context::new(program.clone(), start);
        let main = (self.function)(context, start["input"].clone());
        Run::new(program, main)
    }
}

pub(crate) fn raised(name: &str, error: &(dyn std::error::Error + 'static)) -> Raised {
    let effect = error.downcast_ref::<EffectError>();
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    match effect {
        Some(effect) => Raised {
            at: Some(effect.at.clone()).filter(|at| !at.is_empty()),
            ..Raised::new("EffectError", message)
        },
        None => Raised::new(name, message),
    }
}
