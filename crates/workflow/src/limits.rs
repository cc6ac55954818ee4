//! The workflow's limits and intervals: defaults that `INTERFACE.md` documents.

use std::time::Duration;

/// Interval of a runner's heartbeats.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// A heartbeat older than this, by the state machine's clock, means that the agent is lost.
pub const SILENT_AFTER: Duration = Duration::from_secs(60);

/// After the state machine has missed a heartbeat for [`SILENT_AFTER`], the time without a new one
/// that confirms the loss: one and a half intervals.
pub const SILENCE_CONFIRMED_AFTER: Duration = Duration::from_secs(15);

/// Grace period for the first heartbeat after an invocation: an agent's cold start.
pub const START_GRACE: Duration = Duration::from_secs(90);

/// The first wait between two checks.
pub const POLL_FIRST: Duration = Duration::from_secs(5);

/// Each wait is this percentage of the previous one.
pub const POLL_FACTOR_PERCENT: u32 = 125;

/// The longest wait between two checks of a working session.
pub const POLL_LONGEST: Duration = Duration::from_secs(20 * 60);

/// The longest wait between two checks of a session that waits for a person.
pub const PARK_LONGEST: Duration = Duration::from_secs(6 * 3_600);

/// Maximum number of losses without a new outcome in between.
pub const LOST_WITHOUT_OUTCOME_MAX: u32 = 3;

/// Maximum number of restarts of the agent's host without a new outcome in between. It ends a session whose agent takes
/// the host down each time; more than a hundred restarts for other reasons end none.
pub const RESTARTS_WITHOUT_OUTCOME_MAX: u32 = 128;

/// Restarts without a new outcome after which the next ones are followed by a pause, so that other sessions proceed.
pub const RESTARTS_WITHOUT_PAUSE: u32 = 3;

/// The pause after the first repeated end of the agent's host without a new outcome. Each further one doubles it.
///
/// As `Retry` of the state machine's `InvokeAgent`.
pub const HOST_PAUSE_FIRST: Duration = Duration::from_secs(2);

/// The longest pause after an end of the agent's host.
pub const HOST_PAUSE_LONGEST: Duration = Duration::from_secs(60);

/// The first pause of a session for which the agent runtime has no place, before it asks again.
pub const CAPACITY_PAUSE_FIRST: Duration = Duration::from_secs(15);

/// Each further pause is this percentage of the previous one.
pub const CAPACITY_PAUSE_FACTOR_PERCENT: u32 = 150;

/// The longest of these pauses. Ten thousand sessions that wait then ask about 22 times a second: `AgentCore` took
/// 25 requests a second for an endpoint in 2025 (docs/cost.md).
pub const CAPACITY_PAUSE_LONGEST: Duration = Duration::from_secs(10 * 60);

/// The longest wait for a place in the agent runtime. Then the session fails, by name.
pub const CAPACITY_WAIT_MAX: Duration = Duration::from_secs(6 * 3_600);

/// Maximum number of invocations of a session's agent, those after a restart of its host not counted.
pub const INVOCATIONS_MAX: u32 = 100;

/// Upper bound of the state machine's retries of one invocation, exclusive.
pub const RETRIES_MAX: u32 = 10;

/// Maximum running time of a session, waits excluded.
pub const RUNNING_MAX: Duration = Duration::from_secs(7 * 86_400);

/// Lifetime of an agent's host.
///
/// Source: AWS, Bedrock `AgentCore`, maximum lifetime of a runtime session.
pub const HOST_LIFETIME_MAX: Duration = Duration::from_secs(8 * 3_600);

/// Age at which a host hands its session over to another one.
pub const HAND_OVER_AFTER: Duration = Duration::from_secs(7 * 3_600 + 50 * 60);

/// How long a host that hands its session over waits for calls under way, before its end.
pub const HAND_OVER_WITHIN: Duration = Duration::from_secs(9 * 60);

/// The watchdog leaves a session alone for this long after its lease was last renewed, or after its
/// execution was stopped.
///
/// Source: the incident specification, section 11.
pub const STALE_AFTER: Duration = Duration::from_secs(10 * 60);

/// Interval of the watchdog's sweeps.
///
/// Source: the incident specification, section 11.
pub const SWEEP_EVERY: Duration = Duration::from_secs(5 * 60);

/// Retention of records.
pub const TTL_DAYS: u32 = 90;

/// Minimum retention, in days: a session's deadline is two days before its records expire.
pub const TTL_DAYS_MIN: u32 = 3;

/// Largest trigger detail, in bytes of JSON; it crosses the state machine as a value.
pub const DETAIL_BYTES_MAX: usize = 96 * 1024;

/// Largest reply of a function, in bytes of JSON.
pub const REPLY_BYTES_MAX: usize = 16 * 1024;

/// Timeout of the agent's response to an invocation, which it sends before it does the work.
pub const INVOKE_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout of a function's retries to write an event; after it the function replies without the event.
pub const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(3);
