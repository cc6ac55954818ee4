//! The Lambda functions of one machine: async closures by name.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use workflow::error_name;

/// What a function answers.
pub type Answer = Result<Value, FunctionError>;

type Handler = Arc<dyn Fn(Value) -> BoxFuture<'static, Answer> + Send + Sync>;

/// A function's failure: the name that `Retry` and `Catch` match, and its cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {message}")]
pub struct FunctionError {
    /// The error's name.
    pub name: String,
    /// What is said about it.
    pub message: String,
}

/// Why a call brought no payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is no such function.
    #[error("function not found: {0}")]
    NotFound(String),
    /// The function failed.
    #[error(transparent)]
    Failed(#[from] FunctionError),
    /// The function panicked.
    #[error("the function stopped without an answer")]
    Crashed,
}

/// The functions, by name.
#[derive(Clone, Default)]
pub struct Functions {
    handlers: BTreeMap<String, Handler>,
}

impl FunctionError {
    /// A failure with a name and a cause.
    pub fn new(name: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { name: name.into(), message: message.to_string() }
    }
}

impl Functions {
    /// The functions with one more, which takes and gives JSON.
    #[must_use]
    pub fn with<F, Reply>(mut self, arn: &str, handler: F) -> Self
    where
        F: Fn(Value) -> Reply + Send + Sync + 'static,
        Reply: Future<Output = Answer> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |payload| handler(payload).boxed());
        self.handlers.insert(name_of(arn).to_owned(), handler);
        self
    }

    /// Calls a function by its ARN or name, with or without a qualifier.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn call(&self, function: &str, payload: Value) -> Result<Value, CallError> {
        let handler = self
            .handlers
            .get(name_of(function))
            .ok_or_else(|| CallError::NotFound(function.to_owned()))?;
        // A function's panic, also one before its first await, must not take its execution along.
        let called = async move { handler(payload).await };
        match AssertUnwindSafe(called).catch_unwind().await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(CallError::Crashed),
        }
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.handlers.keys()).finish()
    }
}

/// Reads a function's request as its contract has it.
///
/// # Errors
/// When it is not of the contract.
pub fn request<T: DeserializeOwned>(payload: Value) -> Result<T, FunctionError> {
    serde_json::from_value(payload)
        .map_err(|error| FunctionError::new(error_name::INVALID_REQUEST, error))
}

/// Writes a function's reply as its contract has it.
///
/// # Errors
/// When it cannot be spelled as JSON, which only a bug can cause.
pub fn reply<T: Serialize>(reply: &T) -> Answer {
    serde_json::to_value(reply)
        .map_err(|error| FunctionError::new(error_name::INVALID_REQUEST, error))
}

/// `NAME`, `…:function:NAME` or either with `:QUALIFIER` → `NAME`.
fn name_of(function: &str) -> &str {
    let name = function.rsplit_once(":function:").map_or(function, |(_, name)| name);
    name.split(':').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_function_is_found_by_arn_name_and_qualifier() {
        let arn = "arn:aws:lambda:us-east-1:000000000000:function:echo";
        let functions = Functions::default().with(arn, |payload| async move { Ok(payload) });
        for name in [arn, "echo", "echo:1", &format!("{arn}:$LATEST"), "000000000000:function:echo"]
        {
            assert_eq!(functions.call(name, json!(1)).await, Ok(json!(1)), "{name}");
        }
        let missing = functions.call("other", json!(1)).await;
        assert_eq!(missing, Err(CallError::NotFound("other".to_owned())));
    }

    #[tokio::test]
    async fn a_panic_is_a_crash_of_the_function_alone() {
        let functions =
            Functions::default().with("f", |_| async { panic!("on purpose, caught by the call") });
        assert_eq!(functions.call("f", json!({})).await, Err(CallError::Crashed));
    }
}
