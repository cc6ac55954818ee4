//! The Lambda functions of a local stack, by name: async closures, and the functions of a file.

mod command;
mod file;
mod url;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;
use workflow::error_name;

pub use file::{FILE_BYTES_MAX, File, FileError};

/// Largest response of a function, in bytes.
///
/// Source: AWS, "Lambda quotas", invocation payload (synchronous), as its error states it.
pub const ANSWER_BYTES_MAX: usize = 6_291_556;

/// Most concurrent calls of a file's functions. Further calls are throttled, as Lambda does beyond an
/// account's concurrency limit. A command is a process, and one machine runs fewer than a cloud.
pub const CALLS_MAX: usize = 64;

/// Most concurrent calls of each workflow function; further ones wait. Lambda would start as many
/// instances; here the limit bounds the memory of a burst of sessions.
const OWN_CALLS_MAX: usize = 64;

/// A function's response.
pub type Answer = Result<Value, FunctionError>;

type Handler = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, CallError>> + Send + Sync>;

/// A function's failure: the name that `Retry` and `Catch` match, and its cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {message}")]
pub struct FunctionError {
    pub name: String,
    pub message: String,
}

/// Why a call returned no payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("function not found: {0}")]
    NotFound(String),
    #[error(transparent)]
    Failed(#[from] FunctionError),
    #[error("the function panicked")]
    Crashed,
    /// [`CALLS_MAX`] calls are running.
    #[error("Rate Exceeded.")]
    Throttled,
    /// The function's URL does not respond.
    #[error("{0}")]
    Unreachable(String),
}

/// The functions, by name.
#[derive(Clone, Default)]
pub struct Functions {
    /// Shared, because every request to the endpoint clones it.
    handlers: Arc<BTreeMap<String, Handler>>,
}

impl FunctionError {
    /// An error with a name and a cause.
    pub fn new(name: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { name: name.into(), message: message.to_string() }
    }

    /// The timeout error, as Lambda words it.
    pub(crate) fn timed_out(limit: Duration) -> Self {
        let message = format!("Task timed out after {}.00 seconds", limit.as_secs());
        Self::new("Sandbox.Timedout", message)
    }

    /// The error for a response larger than [`ANSWER_BYTES_MAX`], as Lambda words it.
    fn too_large() -> Self {
        let message = format!(
            "Response payload size exceeded maximum allowed payload size ({ANSWER_BYTES_MAX} bytes)."
        );
        Self::new("Function.ResponseSizeTooLarge", message)
    }

    /// The error that a function reports itself: `{"errorType", "errorMessage"?}`.
    fn said(said: &Value) -> Option<Self> {
        let name = said.get("errorType")?.as_str().filter(|name| !name.is_empty())?;
        let message = said.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
        Some(Self::new(name, message))
    }

    /// Parses a response. An empty one is `null`.
    fn unless_json(answer: &[u8]) -> Answer {
        if answer.trim_ascii().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(answer).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            Self::new("Runtime.MarshalError", format!("the answer is not JSON: {place}"))
        })
    }
}

impl Functions {
    /// Whether there is a function of this name or ARN.
    pub(crate) fn has(&self, function: &str) -> bool {
        self.handlers.contains_key(name_of(function))
    }

    /// Adds a function that takes and returns JSON.
    #[must_use]
    pub fn with<F, Reply>(mut self, arn: &str, handler: F) -> Self
    where
        F: Fn(Value) -> Reply + Send + Sync + 'static,
        Reply: Future<Output = Answer> + Send + 'static,
    {
        let (permits, handler) = (Arc::new(Semaphore::new(OWN_CALLS_MAX)), Arc::new(handler));
        let handler: Handler = Arc::new(move |payload| {
            let (permits, handler) = (Arc::clone(&permits), Arc::clone(&handler));
            async move {
                // The semaphore is never closed. Without a permit the call would still be made.
                let _permit = permits.acquire().await;
                handler(payload).await.map_err(CallError::Failed)
            }
            .boxed()
        });
        Arc::make_mut(&mut self.handlers).insert(name_of(arn).to_owned(), handler);
        self
    }

    /// Has `observe` see the payload and the reply of each call of a function that succeeded.
    #[must_use]
    pub(crate) fn observed<F>(mut self, arn: &str, observe: F) -> Self
    where
        F: Fn(&Value, &Value) + Send + Sync + 'static,
    {
        let Some(inner) = self.handlers.get(name_of(arn)).cloned() else { return self };
        let observe = Arc::new(observe);
        let handler: Handler = Arc::new(move |payload| {
            let (called, observe) = (inner(payload.clone()), Arc::clone(&observe));
            async move {
                let answer = called.await;
                if let Ok(reply) = &answer {
                    observe(&payload, reply);
                }
                answer
            }
            .boxed()
        });
        Arc::make_mut(&mut self.handlers).insert(name_of(arn).to_owned(), handler);
        self
    }

    /// Adds the functions of a file.
    #[must_use]
    pub fn with_file(mut self, file: File) -> Self {
        let permits = Arc::new(Semaphore::new(CALLS_MAX));
        for (name, function) in file.functions {
            let (permits, function) = (Arc::clone(&permits), Arc::new(function));
            let handler: Handler = Arc::new(move |payload| {
                let (permits, function) = (Arc::clone(&permits), Arc::clone(&function));
                async move {
                    let Ok(_permit) = permits.try_acquire() else {
                        return Err(CallError::Throttled);
                    };
                    function.call(&payload).await
                }
                .boxed()
            });
            Arc::make_mut(&mut self.handlers).insert(name, handler);
        }
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
        // A panic of a function, even before its first await, must not end its execution.
        let called = async move { handler(payload).await };
        match AssertUnwindSafe(called).catch_unwind().await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::Crashed),
        }
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.handlers.keys()).finish()
    }
}

/// Deserializes a function's request.
///
/// # Errors
/// If the request violates the function's contract.
pub fn request<T: DeserializeOwned>(payload: Value) -> Result<T, FunctionError> {
    serde_json::from_value(payload)
        .map_err(|error| FunctionError::new(error_name::INVALID_REQUEST, error))
}

/// Serializes a function's reply.
///
/// # Errors
/// Only on a bug: a reply that is not JSON.
pub fn reply<T: Serialize>(reply: &T) -> Answer {
    serde_json::to_value(reply)
        .map_err(|error| FunctionError::new(error_name::INVALID_REQUEST, error))
}

/// `NAME`, `…:function:NAME` or either with `:QUALIFIER` → `NAME`.
pub(crate) fn name_of(function: &str) -> &str {
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
    async fn a_files_function_has_a_timeout_and_a_concurrency_limit() {
        let text =
            json!({"functions": {"sleep": {"command": "sleep", "args": ["60"], "timeout_s": 1}}});
        let file = File::parse(&text.to_string(), std::path::Path::new("/"), |name| {
            (name == "PATH").then(|| "/usr/bin:/bin".to_owned())
        });
        let functions = Functions::default().with_file(file.unwrap());
        let calls = (0..=CALLS_MAX).map(|_| functions.call("sleep", json!({})));
        let answers = futures_util::future::join_all(calls).await;
        let timed_out = FunctionError::timed_out(Duration::from_secs(1)).into();
        assert_eq!(answers[..CALLS_MAX], vec![Err(timed_out); CALLS_MAX]);
        assert_eq!(answers[CALLS_MAX], Err(CallError::Throttled));
    }

    #[tokio::test]
    async fn a_panic_ends_only_its_own_call() {
        let functions =
            Functions::default().with("f", |_| async { panic!("on purpose, caught by the call") });
        assert_eq!(functions.call("f", json!({})).await, Err(CallError::Crashed));
    }
}
