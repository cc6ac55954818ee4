//! The workflow's bounds and rhythms: each is a default that `INTERFACE.md` promises.

use std::time::Duration;

/// How often a runner writes its beat.
pub const BEAT: Duration = Duration::from_secs(10);

/// A beat unchanged for this long, by the state machine's own clock, is silence.
pub const SILENT_AFTER: Duration = Duration::from_secs(60);

/// After the state machine saw no heartbeat for [`SILENT_AFTER`], how long a beat must then stay
/// unchanged to confirm it: one beat and a half.
pub const SILENCE_CONFIRMED_AFTER: Duration = Duration::from_secs(15);

/// How long after an invocation the first beat may take: an agent's cold start.
pub const START_GRACE: Duration = Duration::from_secs(90);

/// The first wait between two checks.
pub const POLL_FIRST: Duration = Duration::from_secs(5);

/// Each wait is this many hundredths of the one before.
pub const POLL_FACTOR_PERCENT: u32 = 125;

/// The longest wait between two checks of a working session.
pub const POLL_LONGEST: Duration = Duration::from_secs(20 * 60);

/// The longest wait between two checks of a session that waits for a person.
pub const PARK_LONGEST: Duration = Duration::from_secs(6 * 3_600);

/// A lost agent is invoked again this often without a new outcome in between.
pub const LOST_WITHOUT_OUTCOME_MAX: u32 = 3;

/// A session's agent is invoked this often in all.
pub const INVOCATIONS_MAX: u32 = 100;

/// The state machine retries one invocation fewer times than this.
pub const RETRIES_MAX: u32 = 10;

/// How long a session may run; waiting does not count.
pub const RUNNING_MAX: Duration = Duration::from_secs(8 * 3_600);

/// How long a session is left alone whose lease nobody renews, or whose execution somebody stopped and
/// may resume.
///
/// Source: the incident specification, section 11.
pub const STALE_AFTER: Duration = Duration::from_secs(10 * 60);

/// How often the watchdog looks for sessions that nobody looks after.
///
/// Source: the incident specification, section 11.
pub const SWEEP_EVERY: Duration = Duration::from_secs(5 * 60);

/// How long records are kept.
pub const TTL_DAYS: u32 = 90;

/// Fewest days that records may be kept: a session's deadline is two days before they expire.
pub const TTL_DAYS_MIN: u32 = 3;

/// Largest trigger detail, in bytes of JSON; it crosses the state machine as a value.
pub const DETAIL_BYTES_MAX: usize = 96 * 1024;

/// Largest reply of a function, in bytes of JSON.
pub const REPLY_BYTES_MAX: usize = 16 * 1024;

/// How long the invoker waits for the agent's answer, which comes before the work is done.
pub const INVOKE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a function goes on trying to write an event before it replies without it.
pub const ANNOUNCE_PATIENCE: Duration = Duration::from_secs(3);
