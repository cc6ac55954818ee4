//! The names of metrics, shared by those who emit them and those who raise alarms on them.

/// The namespace in CloudWatch.
pub const NAMESPACE: &str = "Daybook";

/// Sessions refused by the hourly breaker.
pub const BREAKER_OPEN: &str = "BreakerOpen";

/// Agents that fell silent.
pub const AGENTS_LOST: &str = "AgentsLost";

/// Sessions by verdict.
pub const SESSIONS_ENDED: &str = "SessionsEnded";

/// Decisions of fraud investigations' planners; a counter by `selected_tool` and `used_fallback`.
///
/// Source: the fraud specification, section 12, as the three below.
pub const PLANNER_DECISIONS: &str = "ops_agent_planner_decisions_total";

/// How long tools of fraud investigations took, in seconds; a histogram by `tool_name` and `status`.
pub const TOOL_EXECUTION_LATENCY: &str = "ops_agent_tool_execution_latency_seconds";

/// Decisions of one fraud investigation; a histogram with [`INVESTIGATION_STEPS_BUCKETS`].
pub const INVESTIGATION_STEPS: &str = "ops_agent_investigation_steps";

/// Fraud investigations that ended; a counter by `status` and `severity`.
pub const INVESTIGATIONS_COMPLETED: &str = "ops_agent_investigation_completed_total";

/// The upper bounds of the buckets of [`INVESTIGATION_STEPS`].
pub const INVESTIGATION_STEPS_BUCKETS: [f64; 20] = [
    1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0,
    18.0, 19.0, 20.0,
];
