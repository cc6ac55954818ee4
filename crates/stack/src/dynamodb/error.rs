//! DynamoDB's error responses.

use std::fmt;

use journal::store;
use serde_json::{Value, json};

use crate::endpoint::unsupported;

/// An error as DynamoDB sends it.
#[derive(Debug)]
pub struct ApiError {
    pub status: u16,
    /// The full name of the error, `__type` in the body.
    pub kind: &'static str,
    pub message: String,
    /// The item, if a failed condition's caller requested it.
    pub item: Option<Box<Value>>,
    /// The cause, for the log.
    pub cause: Option<store::Error>,
}

const VALIDATION: &str = "com.amazon.coral.validate#ValidationException";
const SERIALIZATION: &str = "com.amazon.coral.service#SerializationException";
const UNKNOWN_OPERATION: &str = "com.amazon.coral.service#UnknownOperationException";
const ACCESS_DENIED: &str = "com.amazon.coral.service#AccessDeniedException";
const NOT_FOUND: &str = "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException";
const CONDITION_FAILED: &str = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
const INTERNAL: &str = "com.amazonaws.dynamodb.v20120810#InternalServerError";
const UNAVAILABLE: &str = "com.amazonaws.dynamodb.v20120810#ServiceUnavailable";

impl ApiError {
    fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), item: None, cause: None }
    }

    /// The request violates a rule of DynamoDB, or needs a feature that this endpoint lacks.
    pub(super) fn validation(message: impl Into<String>) -> Self {
        Self::new(400, VALIDATION, message)
    }

    /// The request's JSON does not have the action's shape.
    pub(super) fn serialization(message: impl Into<String>) -> Self {
        Self::new(400, SERIALIZATION, message)
    }

    /// The journal does not permit this write.
    pub(super) fn access_denied(message: impl Into<String>) -> Self {
        Self::new(400, ACCESS_DENIED, message)
    }

    /// The table does not exist.
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(400, NOT_FOUND, message)
    }

    /// The action is not supported.
    pub(super) fn unknown_operation(action: &str) -> Self {
        Self::new(400, UNKNOWN_OPERATION, unsupported(action))
    }

    /// The condition failed.
    pub(super) fn condition_failed(item: Option<Value>) -> Self {
        let item = item.map(Box::new);
        Self { item, ..Self::new(400, CONDITION_FAILED, "The conditional request failed") }
    }

    /// Whether this endpoint does not support the action.
    pub fn is_unknown_operation(&self) -> bool {
        self.kind == UNKNOWN_OPERATION
    }

    /// The response body.
    pub fn body(&self) -> Value {
        let mut body = json!({ "__type": self.kind, "message": self.message });
        if let Some(item) = &self.item {
            body["Item"] = Value::clone(item);
        }
        body
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for ApiError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

impl From<store::Error> for ApiError {
    fn from(cause: store::Error) -> Self {
        let (status, kind) = match &cause {
            // Nothing was written.
            store::Error::Unavailable(_) => (503, UNAVAILABLE),
            // DynamoDB also answers this for a write that may have happened.
            store::Error::Unknown(_) | store::Error::Corrupt(_) => (500, INTERNAL),
            store::Error::Refused(_) => (400, VALIDATION),
        };
        let message = cause.to_string();
        Self { cause: Some(cause), ..Self::new(status, kind, message) }
    }
}
