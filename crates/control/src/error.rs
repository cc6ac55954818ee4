//! Why a session was not answered, cancelled, resumed or erased.

use graph::question::AnswerRefused;
use journal::chain::AppendError;
use journal::cipher::KeyRefused;
use journal::halt;
use journal::id::SessionId;
use journal::status::Status;
use journal::store;
use journal::version::VERSION_BYTES_MAX;
use workflow::execution::RESUMES_MAX;

use crate::erase::REASON_BYTES_MAX;

/// One variant per reaction of the caller.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session does not admit the action: the person has to decide again.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The journal is unavailable: the caller may retry.
    #[error(transparent)]
    Journal(#[from] store::Error),
    /// The executions or the event bus are unavailable: the caller may retry.
    #[error(transparent)]
    Executions(Cause),
    /// Another process accepted the action, and the journal does not show it yet: the caller reads the
    /// session before it tries again.
    #[error("the action was accepted, but the journal does not contain it yet")]
    Unconfirmed,
}

impl Error {
    /// The status and the code of the API's reply.
    pub fn http(&self) -> (u16, &'static str) {
        match self {
            Self::Journal(error) => match error.retry() {
                store::Retry::After(_) | store::Retry::Unknown(_) => (503, "ServiceUnavailable"),
                store::Retry::Never => (500, "InternalFailure"),
            },
            Self::Executions(_) => (503, "ServiceUnavailable"),
            Self::Unconfirmed => (409, "AnswerUnconfirmed"),
            Self::Refused(refused) => refused.http(),
        }
    }
}

impl Refused {
    fn http(&self) -> (u16, &'static str) {
        match self {
            Self::NoSession(_) => (404, "NoSession"),
            Self::Ended(_) => (409, "SessionEnded"),
            Self::NoQuestion => (409, "NoQuestion"),
            Self::Answer(AnswerRefused::WrongQuestion { .. }) => (409, "WrongQuestion"),
            Self::Expired => (409, "QuestionExpired"),
            Self::Closed => (409, "QuestionClosed"),
            Self::Answer(_) | Self::Malformed(_) | Self::Unfit(_) => (400, "InvalidAnswer"),
            Self::InvalidVersion => (400, "InvalidVersion"),
            Self::NotStarted => (409, "NotStarted"),
            Self::SameVersion(_) => (409, "SameVersion"),
            Self::QuestionOpen { .. } => (409, "QuestionOpen"),
            Self::AtWork => (409, "AtWork"),
            Self::GoneOn => (409, "GoneOn"),
            Self::NoExecution => (409, "NoExecution"),
            Self::TooManyResumes => (409, "TooManyResumes"),
            Self::InputTooLarge(_) => (400, "ValidationException"),
            Self::NotEnded(_) | Self::Ending => (409, "SessionNotEnded"),
            Self::InvalidReason => (400, "InvalidReason"),
            Self::Key(KeyRefused::Held { .. }) => (409, "SessionHeld"),
            Self::Key(KeyRefused::Erased(_)) => (409, "SessionErased"),
            Self::Key(KeyRefused::NotEncrypted | KeyRefused::Unsupported) => (409, "NotEncrypted"),
            Self::NoAgent { .. } => (404, "NoAgent"),
            Self::Halt(halt::Refused::NotHalted(_)) => (409, "NotHalted"),
            Self::Halt(halt::Refused::TooMany) => (409, "TooManyHalts"),
            Self::Halt(halt::Refused::Reason) => (400, "InvalidReason"),
        }
    }
}

/// The cause of an [`Error::Executions`].
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a session does not admit an action.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("there is no session {0}")]
    NoSession(SessionId),
    #[error("the session has ended: {0}")]
    Ended(Status),
    #[error("the session has no open question")]
    NoQuestion,
    /// The JSON is not a [`graph::question::Answer`].
    #[error("invalid answer: {0}")]
    Malformed(serde_json::Error),
    /// It does not fit the question, which stays open.
    #[error(transparent)]
    Answer(#[from] AnswerRefused),
    #[error("the question has expired")]
    Expired,
    /// Another writer closed the question first.
    #[error("the question has been closed")]
    Closed,
    /// The answer cannot be journaled: it is too large, or the session has no room.
    #[error(transparent)]
    Unfit(AppendError),
    #[error("a version's name has 1 to {VERSION_BYTES_MAX} bytes, without control characters")]
    InvalidVersion,
    #[error("the session has not started, so it has no version to move from")]
    NotStarted,
    #[error("the session already goes on with version {0}")]
    SameVersion(String),
    /// The answer belongs to the version that asked.
    #[error(
        "the session waits for the answer to question {question}: answer it first, then move the session"
    )]
    QuestionOpen { question: u32 },
    #[error("the session's agent is running: a session is moved while it waits or is stopped")]
    AtWork,
    /// Another step was written at the same time: the caller reads the session before it moves it.
    #[error("the session has gone on meanwhile; it was not moved")]
    GoneOn,
    /// The session's input is unknown, so no execution can be started.
    #[error("cannot resume: the input of the session's execution is unknown")]
    NoExecution,
    #[error("the session was resumed {RESUMES_MAX} times")]
    TooManyResumes,
    /// The execution's input leaves no room for the session's state.
    #[error("the execution's input has {0} bytes, too many to start it again")]
    InputTooLarge(usize),
    #[error("the session has not ended, its status is {0}: cancel it first")]
    NotEnded(Status),
    #[error("the session's execution has not ended yet: try again in a few seconds")]
    Ending,
    #[error("a reason has 1 to {REASON_BYTES_MAX} bytes")]
    InvalidReason,
    /// The key of its contents does not admit it.
    #[error(transparent)]
    Key(#[from] KeyRefused),
    #[error("no agent is named `{name}`{}", suggestion(nearest.as_deref()))]
    NoAgent { name: String, nearest: Option<String> },
    /// The halts stay as they are.
    #[error(transparent)]
    Halt(#[from] halt::Refused),
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}
