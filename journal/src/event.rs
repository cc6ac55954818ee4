//! Events: announcements of a session's lifecycle.

use serde::{Deserialize, Serialize};

use crate::clock::Stamp;
use crate::error_message::ErrorMessage;
use crate::id::{EventId, SessionId};
use crate::item::{Hash, Item, ItemError};
use crate::key::{self, attribute};
use crate::limits::DETAIL_BYTES_MAX;
use crate::payload::Payload;
use crate::principal::Principal;
use crate::step::SCHEMA_VERSION;

macro_rules! names {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        $vis enum $name { $($(#[$doc])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Every variant, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use names;

names! {
    /// The name of an event. A name is never changed or reused.
    pub enum EventStatus {
        /// The state machine began.
        SessionInitiated = "SESSION_INITIATED",
        /// The invoker is about to call the agent runtime.
        AgentInvocationStarted = "AGENT_INVOCATION_STARTED",
        /// The agent runtime answered.
        AgentInvocationSucceeded = "AGENT_INVOCATION_SUCCEEDED",
        /// The agent runtime rejected the invocation, or was certainly not reached.
        AgentInvocationFailed = "AGENT_INVOCATION_FAILED",
        /// The agent received the request.
        AgentEntrypointStarted = "AGENT_ENTRYPOINT_STARTED",
        /// The agent could not start.
        AgentEntrypointFailed = "AGENT_ENTRYPOINT_FAILED",
        /// The agent lacks the session's graph version. Its detail is [`crate::version::Missing`].
        AgentVersionMissing = "AGENT_VERSION_MISSING",
        /// The background task has claimed the session.
        AgentBackgroundTaskStarted = "AGENT_BACKGROUND_TASK_STARTED",
        /// The background task reached its result.
        AgentBackgroundTaskCompleted = "AGENT_BACKGROUND_TASK_COMPLETED",
        /// The background task ended without a result.
        AgentBackgroundTaskFailed = "AGENT_BACKGROUND_TASK_FAILED",
        /// The session waits for an answer or a time; nothing runs.
        AgentBackgroundTaskSuspended = "AGENT_BACKGROUND_TASK_SUSPENDED",
        /// A suspended session runs again.
        AgentBackgroundTaskResumed = "AGENT_BACKGROUND_TASK_RESUMED",
        /// The agent stopped responding.
        AgentLost = "AGENT_LOST",
        /// The open question was answered.
        InputReceived = "INPUT_RECEIVED",
        /// A person requested the session's end.
        CancelRequested = "CANCEL_REQUESTED",
        /// A person requested that the session continues.
        ResumeRequested = "RESUME_REQUESTED",
        /// A person had the key of the ended session destroyed. It follows the verdict.
        SessionErased = "SESSION_ERASED",
        /// Verdict: the agent reached its result.
        SessionSucceeded = "SESSION_SUCCEEDED",
        SessionFailed = "SESSION_FAILED",
        /// Verdict: the session exceeded its deadline.
        SessionTimedOut = "SESSION_TIMED_OUT",
        /// Verdict: the session was cancelled.
        SessionCancelled = "SESSION_CANCELLED",
        /// Verdict: admission rejected the session.
        SessionRejected = "SESSION_REJECTED",
    }
}

impl EventStatus {
    /// The event's id in a session, computed from what happened and which component wrote it.
    ///
    /// Any component may write a missing announcement of a durable step; all such writes have the
    /// same id.
    pub fn id(self, session: &SessionId, writer: Writer, about: About) -> EventId {
        let teller = match self {
            announcement if announcement.announces_a_step() => Writer::Agent.as_str(),
            verdict if verdict.is_verdict() => "verdict",
            _ => writer.as_str(),
        };
        EventId::of(session, teller, self.as_str(), u64::from(about.ordinal()))
    }

    /// Whether this event announces a durable step, so that any component may write it if it is
    /// missing. The verdict is not among them, because it also seals.
    pub const fn announces_a_step(self) -> bool {
        matches!(
            self,
            Self::AgentBackgroundTaskCompleted
                | Self::AgentBackgroundTaskFailed
                | Self::AgentBackgroundTaskSuspended
                | Self::InputReceived
        )
    }

    /// Whether `other`, of the same attempt, follows from this event and therefore must not precede
    /// it.
    pub const fn leads_to(self, other: Self) -> bool {
        matches!(
            (self, other),
            (
                Self::AgentInvocationStarted,
                Self::AgentEntrypointStarted
                    | Self::AgentEntrypointFailed
                    | Self::AgentInvocationSucceeded
                    | Self::AgentInvocationFailed
            )
        )
    }

    /// Whether this event ends the session.
    pub const fn is_verdict(self) -> bool {
        matches!(
            self,
            Self::SessionSucceeded
                | Self::SessionFailed
                | Self::SessionTimedOut
                | Self::SessionCancelled
                | Self::SessionRejected
        )
    }
}

names! {
    /// The component that wrote a record.
    pub enum Writer {
        /// The state machine, through its DynamoDB integration.
        StateMachine = "state-machine",
        Invoker = "invoker",
        Agent = "agent",
        /// The Lambda that writes verdicts.
        Poller = "poller",
        /// The Lambda that ends sessions whose workflow is gone.
        Watchdog = "watchdog",
        /// A person, through the command line or the page.
        Person = "person",
    }
}

/// The subject of an event, which orders events of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// The session itself.
    Session,
    /// Attempt n to invoke the agent, counted by the state machine.
    Attempt(u32),
    /// The n-th claim.
    Epoch(u32),
    Step(u32),
}

impl About {
    /// The number; 0 for the session itself.
    pub const fn ordinal(self) -> u32 {
        match self {
            Self::Session => 0,
            Self::Attempt(n) | Self::Epoch(n) | Self::Step(n) => n,
        }
    }
}

/// The content of an event; [`crate::announce`] adds session, time and key.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub status: EventStatus,
    pub about: About,
    /// The error, for events that report a failure.
    pub error: Option<ErrorMessage>,
    /// Details, at most [`DETAIL_BYTES_MAX`] bytes.
    pub detail: Option<serde_json::Value>,
    /// Who requested it, in a person's events.
    pub principal: Option<Principal>,
    pub seal: Option<Seal>,
}

/// The seal of a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Number of the end step.
    pub end_seq: u32,
    /// Hash of the end step.
    pub end_hash: Hash,
    /// Sort key and hash of every event up to the verdict.
    pub manifest: Payload,
}

/// An event as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub session: SessionId,
    /// Its time by the hybrid logical clock; part of its key.
    pub stamp: Stamp,
    /// Its sort key as stored: older writers used fewer digits.
    pub sk: String,
    pub status: EventStatus,
    pub about: About,
    pub writer: Writer,
    /// Its identity, the same however often it was written.
    pub id: EventId,
    pub error: Option<ErrorMessage>,
    pub detail: Option<serde_json::Value>,
    /// The writer's wall clock, if it differs much from the timestamp. In SESSION_INITIATED, whose
    /// timestamp is its trigger's time, the start of the execution.
    pub wall: Option<Stamp>,
    /// When the session's records expire, in seconds since 1970; 0 if the record does not say.
    pub expires_at: i64,
    pub seal: Option<Seal>,
    /// The execution's ARN, in SESSION_INITIATED.
    pub execution_arn: Option<String>,
    /// Who triggered, cancelled or resumed. A text that is no principal counts as unknown.
    pub principal: Option<Principal>,
    pub hash: Hash,
}

impl Event {
    /// Where it stands on the session's time axis. A trigger's time may be hours old and has whole
    /// seconds, so durations count from the start of the execution.
    pub fn begun_at(&self) -> Stamp {
        match self.status {
            EventStatus::SessionInitiated => self.wall.unwrap_or(self.stamp).max(self.stamp),
            _ => self.stamp,
        }
    }

    /// The writer's wall clock, if it differs much from the order of the records.
    pub fn skewed_clock(&self) -> Option<Stamp> {
        self.wall.filter(|_| self.status != EventStatus::SessionInitiated)
    }
}

const EVENT_ID: &str = "EventId";
pub(crate) const WRITER: &str = "Writer";
pub(crate) const ERROR_MESSAGE: &str = "ErrorMessage";
pub(crate) const DETAIL: &str = "Detail";
pub(crate) const WALL_TIME: &str = "WallTime";
const ATTEMPT: &str = "Attempt";
const EPOCH: &str = "Epoch";
const STEP: &str = "Step";
const END_HASH: &str = "EndHash";

impl Draft {
    pub fn new(status: EventStatus, about: About) -> Self {
        Self { status, about, error: None, detail: None, principal: None, seal: None }
    }

    #[must_use]
    pub fn with_error(mut self, error: Option<ErrorMessage>) -> Self {
        self.error = error;
        self
    }

    #[must_use]
    pub fn by(mut self, principal: Principal) -> Self {
        self.principal = Some(principal);
        self
    }

    /// Adds a detail; one that is too large is replaced by a note of its size.
    #[must_use]
    pub fn with_detail(mut self, detail: serde_json::Value) -> Self {
        let bytes = detail.to_string().len();
        self.detail = Some(if bytes <= DETAIL_BYTES_MAX {
            detail
        } else {
            serde_json::json!({ "omitted": format!("the detail of {bytes} bytes exceeds the limit of {DETAIL_BYTES_MAX}") })
        });
        self
    }

    /// The hashed item of this draft. `wall` is the writer's clock if it differs much.
    pub fn to_item(
        &self,
        session: &SessionId,
        writer: Writer,
        stamp: Stamp,
        wall: Option<Stamp>,
        expires_at: i64,
    ) -> Item {
        let id = self.status.id(session, writer, self.about);
        let mut item = Item::new(key::session(session), key::event(stamp))
            .with(attribute::VERSION, SCHEMA_VERSION)
            .with(attribute::STATUS, self.status.as_str())
            .with(attribute::TIMESTAMP, stamp.to_string())
            .with(attribute::EXPIRES_AT, expires_at)
            .with(WRITER, writer.as_str())
            .with(EVENT_ID, id.as_str())
            .with_some(WALL_TIME, wall.map(|wall| wall.to_string()))
            .with_some(ERROR_MESSAGE, self.error.as_ref().map(ErrorMessage::as_str))
            .with_some(DETAIL, self.detail.as_ref().map(serde_json::Value::to_string))
            .with_some(attribute::PRINCIPAL, self.principal.as_ref().map(ToString::to_string));
        item = match self.about {
            About::Session => item,
            About::Attempt(n) => item.with(ATTEMPT, n),
            About::Epoch(n) => item.with(EPOCH, n),
            About::Step(n) => item.with(STEP, n),
        };
        if self.status.is_verdict() {
            item = item.with(attribute::DAY, key::day(stamp, session));
        }
        if let Some(seal) = &self.seal {
            item = seal.manifest.write_to(item.with(END_HASH, seal.end_hash.as_str()));
        }
        item.hashed()
    }
}

impl Event {
    /// Whether a writer of this format wrote it. The events of the event journaling specification alone have no id.
    pub fn is_of_this_format(&self) -> bool {
        self.id.as_str() != self.sk
    }

    /// Parses an event.
    ///
    /// Records of other writers may lack fields that ours always have. Their id is then the sort
    /// key, and their writer the state machine.
    ///
    /// # Errors
    /// The item is not an event or one of a newer schema version, or its status or time is invalid.
    pub fn from_item(item: &Item) -> Result<Self, ItemError> {
        // The first writers stated no version.
        if item.attributes.contains_key(attribute::VERSION)
            && item.number(attribute::VERSION)? > SCHEMA_VERSION
        {
            return Err(item.malformed(attribute::VERSION, "a supported schema version"));
        }
        let session = key::session_of(&item.pk)
            .ok_or_else(|| item.malformed("PK", "a session's partition"))?;
        let time = item.sk.strip_prefix(key::EVENT_PREFIX).unwrap_or_default();
        let stamp = Stamp::parse(time).map_err(|_| item.malformed("SK", "EVENT# and a time"))?;
        let status = EventStatus::parse(item.text(attribute::STATUS)?)
            .ok_or_else(|| item.malformed(attribute::STATUS, "an event's name"))?;
        let about = read_about(item)?;
        let seal = match (item.text_opt(END_HASH), Payload::read_from(item)?) {
            (Some(end_hash), Some(manifest)) => Some(Seal {
                end_seq: about.ordinal(),
                end_hash: Hash::from_record(end_hash),
                manifest,
            }),
            _ => None,
        };
        Ok(Self {
            session,
            stamp,
            sk: item.sk.clone(),
            status,
            about,
            writer: item.text_opt(WRITER).and_then(Writer::parse).unwrap_or(Writer::StateMachine),
            id: EventId::from_record(item.text_opt(EVENT_ID).unwrap_or(&item.sk)),
            error: item.text_opt(ERROR_MESSAGE).map(ErrorMessage::from_text),
            detail: item.text_opt(DETAIL).and_then(|text| serde_json::from_str(text).ok()),
            wall: item.text_opt(WALL_TIME).and_then(|text| Stamp::parse(text).ok()),
            expires_at: item.number(attribute::EXPIRES_AT).unwrap_or(0),
            seal,
            execution_arn: item.text_opt(attribute::EXECUTION_ARN).map(str::to_owned),
            principal: item
                .text_opt(attribute::PRINCIPAL)
                .map(|text| text.parse().unwrap_or(Principal::Unknown)),
            hash: item.hash(),
        })
    }
}

fn read_about(item: &Item) -> Result<About, ItemError> {
    for (name, about) in
        [(ATTEMPT, About::Attempt as fn(u32) -> About), (EPOCH, About::Epoch), (STEP, About::Step)]
    {
        if item.attributes.contains_key(name) {
            return Ok(about(item.small(name)?));
        }
    }
    Ok(About::Session)
}
