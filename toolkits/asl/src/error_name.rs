//! Error names of the States Language, and how `Retry` and `Catch` match them.
//!
//! Source: AWS, "Handling errors in Step Functions workflows", error names. Where recorded
//! executions differ from that page, this module follows the recordings.

/// Matches every error except those that end the execution at once.
pub const ALL: &str = "States.ALL";
/// A result or an output is larger than [`crate::execution::PAYLOAD_BYTES_MAX`].
pub const DATA_LIMIT_EXCEEDED: &str = "States.DataLimitExceeded";
/// A task sent no heartbeat for longer than its `HeartbeatSeconds`.
pub const HEARTBEAT_TIMEOUT: &str = "States.HeartbeatTimeout";
/// An intrinsic function rejected its arguments.
pub const INTRINSIC_FAILURE: &str = "States.IntrinsicFailure";
/// The items of a distributed `Map` could not be read.
pub const ITEM_READER_FAILED: &str = "States.ItemReaderFailed";
/// The results of a distributed `Map` could not be written.
pub const RESULT_WRITER_FAILED: &str = "States.ResultWriterFailed";
/// More iterations of a `Map` failed than it tolerates.
pub const TOLERATED_FAILURES_EXCEEDED: &str = "States.ExceedToleratedFailureThreshold";
/// `ResultPath` leads through a value that cannot hold the result.
pub const RESULT_PATH_MATCH_FAILURE: &str = "States.ResultPathMatchFailure";
/// The execution's role lacks a permission.
pub const PERMISSIONS: &str = "States.Permissions";
/// An expression failed, returned nothing, or returned the wrong type.
pub const QUERY_EVALUATION_ERROR: &str = "States.QueryEvaluationError";
/// The definition does not fit the data. `Retry` and `Catch` do not match it.
pub const RUNTIME: &str = "States.Runtime";
/// As a matcher: every error except a timeout.
pub const TASK_FAILED: &str = "States.TaskFailed";
/// A task ran longer than its `TimeoutSeconds`; as a matcher also a missing heartbeat.
pub const TIMEOUT: &str = "States.Timeout";

/// Whether an `ErrorEquals` list matches an error.
///
/// `States.ALL` matches a `States.DataLimitExceeded` that a *task* reported, as recorded on AWS,
/// although AWS's page says otherwise. When a state's own output is too large, the execution ends
/// and no list is consulted.
pub fn matches(error_equals: &[String], error: &str) -> bool {
    if error == RUNTIME {
        return false;
    }
    let timed_out = error == TIMEOUT || error == HEARTBEAT_TIMEOUT;
    error_equals.iter().any(|name| match name.as_str() {
        ALL => true,
        TASK_FAILED => !timed_out,
        TIMEOUT => timed_out,
        name => name == error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_wildcards_match_as_aws_documents() {
        let check = |name: &str, error: &str, expected: bool| {
            assert_eq!(matches(&[name.to_owned()], error), expected, "{name} against {error}");
        };
        check(ALL, "Mine", true);
        check(ALL, TIMEOUT, true);
        check(ALL, QUERY_EVALUATION_ERROR, true);
        check(ALL, DATA_LIMIT_EXCEEDED, true);
        check(ALL, RUNTIME, false);
        check(RUNTIME, RUNTIME, false);
        check(TASK_FAILED, "Mine", true);
        check(TASK_FAILED, PERMISSIONS, true);
        check(TASK_FAILED, TIMEOUT, false);
        check(TASK_FAILED, HEARTBEAT_TIMEOUT, false);
        check(TIMEOUT, TIMEOUT, true);
        check(TIMEOUT, HEARTBEAT_TIMEOUT, true);
        check(HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT, true);
        check(HEARTBEAT_TIMEOUT, TIMEOUT, false);
        check("Mine", "Mine", true);
        check("Mine", "mine", false);
    }
}
