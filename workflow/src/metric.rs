//! The names of metrics, shared by those who emit them and those who raise alarms on them.

/// The namespace in CloudWatch.
pub const NAMESPACE: &str = "Daybook";

/// Sessions refused by the hourly breaker.
pub const BREAKER_OPEN: &str = "BreakerOpen";

/// Agents that fell silent.
pub const AGENTS_LOST: &str = "AgentsLost";

/// Sessions by verdict.
pub const SESSIONS_ENDED: &str = "SessionsEnded";
