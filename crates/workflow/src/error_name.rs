//! The names of errors: what a function returns and what the state machine's `ErrorEquals` matches.

/// The agent runtime was throttled or briefly down and certainly did not take the request.
pub const INVOCATION_THROTTLED: &str = "InvocationThrottled";

/// The agent runtime refused the request for good, or the agent did.
pub const INVOCATION_FAILED: &str = "InvocationFailed";

/// The agent runtime may have taken the request: neither a success nor a failure.
pub const INVOCATION_UNKNOWN: &str = "InvocationUnknown";

/// The trigger's detail is malformed.
pub const INVALID_TRIGGER: &str = "InvalidTrigger";

/// The journal could not be read or written.
pub const JOURNAL_UNAVAILABLE: &str = "JournalUnavailable";

/// A journal record is unreadable.
pub const JOURNAL_DAMAGED: &str = "JournalDamaged";

/// A function received a message outside its contract.
pub const INVALID_REQUEST: &str = "InvalidRequest";

/// Error of an execution whose session failed.
pub const SESSION_FAILED: &str = "SessionFailed";

/// Error of an execution whose session timed out.
pub const SESSION_TIMED_OUT: &str = "SessionTimedOut";

/// The stack's runner of an execution failed again and again.
pub const EXECUTION_BROKEN: &str = "ExecutionBroken";

/// Every error name of this module that an execution may show.
pub const ALL: &[&str] = &[
    INVOCATION_THROTTLED,
    INVOCATION_FAILED,
    INVOCATION_UNKNOWN,
    INVALID_TRIGGER,
    JOURNAL_UNAVAILABLE,
    JOURNAL_DAMAGED,
    INVALID_REQUEST,
    SESSION_FAILED,
    SESSION_TIMED_OUT,
    EXECUTION_BROKEN,
];
