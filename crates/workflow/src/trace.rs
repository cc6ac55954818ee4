//! A session's trace: one tree from the trigger to each tool call, complete even if processes crash.
//!
//! Span ids are not random but derived from the session and the work that the span covers. Every
//! process computes the same ids, also after a crash or a wait of days. Each span with children is
//! recorded in the journal: if the process that should export it dies, the process that seals the
//! session recreates the span from the records ([`lifecycle`], [`effects`]). So every span has its
//! parent. A span may be exported twice, with the same id.
//!
//! ```text
//! trigger                       by the sender of the event, if it sent a traceparent
//! └─ session                    from the first record to the verdict; by the sealer
//!    ├─ invoke_agent            one per attempt; by the sealer
//!    │  ├─ agent.entrypoint     a leaf; by the agent
//!    │  └─ agent.run            one per claim; by the sealer
//!    │     ├─ chat …            by the runner, or by the sealer if the runner was lost
//!    │     └─ execute_tool …    likewise
//!    │        └─ tools/call …   a leaf; by the MCP server
//!    ├─ ask, sleep              a leaf, from the question to its answer; by the sealer
//!    └─ poller.check, …         leaves; by the functions
//! ```

pub mod effects;
pub mod lifecycle;

use std::num::{NonZeroU64, NonZeroU128};

use journal::id::SessionId;
use journal::item::Hash;
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;
use telemetry::attribute;
use telemetry::context::{InvalidTraceParent, TraceParent};
use telemetry::span::Span;

/// The field of a trigger's detail with the sender's span, as a W3C `traceparent`.
pub const TRACEPARENT: &str = "traceparent";

/// The trace of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    session: SessionId,
    remote: Option<TraceParent>,
    trace_id: NonZeroU128,
}

impl Trace {
    /// The trace of a session whose trigger has this context. Without one, the session id's 128 bits are
    /// the trace id.
    pub fn of(session: &SessionId, remote: Option<TraceParent>) -> Self {
        let trace_id = remote.map_or_else(|| own_id(session), |remote| remote.trace_id);
        Self { session: session.clone(), remote, trace_id }
    }

    pub fn session_id(&self) -> &SessionId {
        &self.session
    }

    /// The trace's id, 32 hexadecimal digits.
    pub fn id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// The trigger's context.
    pub fn remote(&self) -> Option<TraceParent> {
        self.remote
    }

    /// The span of the whole session.
    pub fn session(&self) -> TraceParent {
        self.derived("session")
    }

    /// The span of an attempt to invoke the agent.
    pub fn invocation(&self, attempt: u32) -> TraceParent {
        self.derived(&format!("invocation {attempt}"))
    }

    /// The span of a claim's run.
    pub fn run(&self, epoch: u32) -> TraceParent {
        self.derived(&format!("run {epoch}"))
    }

    /// A span without children, identified by its name and its start.
    pub fn leaf(&self, name: &str, start: i64, parent: TraceParent) -> Span {
        Span::new(self.derived(&format!("{name} {start}")), Some(parent), name)
            .with(attribute::SESSION_ID, self.session.as_str())
    }

    fn derived(&self, what: &str) -> TraceParent {
        let hash = Hash::of(format!("daybook span {} {what}", self.session).as_bytes());
        let first = hash.as_str().get(..16).and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let span_id = first.and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MIN);
        let sampled = self.remote.is_none_or(|remote| remote.sampled);
        TraceParent { trace_id: self.trace_id, span_id, sampled }
    }
}

fn own_id(session: &SessionId) -> NonZeroU128 {
    let digits: String = session.as_str().chars().filter(|c| *c != '-').collect();
    let of_hex = |hex: &str| u128::from_str_radix(hex, 16).ok().and_then(NonZeroU128::new);
    let own = Some(digits.as_str()).filter(|digits| digits.len() == 32).and_then(of_hex);
    let hashed = || of_hex(Hash::of(session.as_str().as_bytes()).as_str().get(..32)?);
    own.or_else(hashed).unwrap_or(NonZeroU128::MIN)
}

/// The sender's context in a trigger's detail. An invalid context stops no work: the invoker logs it,
/// and the session starts a trace of its own.
///
/// Source: W3C, "Trace Context", section 3.2: an invalid header is replaced by a new one.
///
/// # Errors
/// If the field is present and is not a valid context.
pub fn of_detail(detail: &Value) -> Result<Option<TraceParent>, InvalidTraceParent> {
    match &detail[TRACEPARENT] {
        Value::Null => Ok(None),
        said => said.as_str().ok_or(InvalidTraceParent)?.parse().map(Some),
    }
}

/// Reads a context from a message between Daybook's processes. A malformed one counts as absent: the
/// invoker has logged it.
///
/// # Errors
/// If there is no value.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TraceParent>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_str().and_then(|text| text.parse().ok()))
}

/// Writes a context into a message.
///
/// # Errors
/// If the serializer fails.
pub fn write<S: Serializer>(
    context: &Option<TraceParent>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match context {
        Some(context) => serializer.collect_str(context),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_id_comes_from_the_session_or_the_trigger() {
        let session: SessionId = "0af76519-16cd-43dd-8448-eb211c80319c".parse().unwrap();
        let own = Trace::of(&session, None);
        assert_eq!(own.id(), "0af7651916cd43dd8448eb211c80319c");
        assert!(own.session().sampled);
        let remote = "00-11111111111111111111111111111111-2222222222222222-00".parse().unwrap();
        let joined = Trace::of(&session, Some(remote));
        assert_eq!(joined.id(), "11111111111111111111111111111111");
        assert!(!joined.session().sampled);
        assert_eq!(joined.session().span_id, own.session().span_id);
        assert_ne!(own.run(1).span_id, own.run(2).span_id);
        let other: SessionId = "not-a-uuid-but-a-session-id-all-the-same".parse().unwrap();
        assert_ne!(Trace::of(&other, None).id(), own.id());
    }
}
