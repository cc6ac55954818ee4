//! What the poller replies.

use journal::clock::Hlc;
use journal::error_message::ErrorMessage;
use journal::status::Status;
use workflow::contract::{CheckReply, CheckRequest, Judgement, Verdict, Watch};
use workflow::error_name;

pub(crate) fn reply(
    hlc: &Hlc,
    status: Judgement,
    watch: Watch,
    verdict: Option<Verdict>,
) -> CheckReply {
    CheckReply { status, seen: hlc.newest(), watch, verdict }
}

pub(crate) fn verdict(
    request: &CheckRequest,
    judgement: Judgement,
    error: Option<&ErrorMessage>,
    head: &str,
) -> Verdict {
    let name = match judgement {
        Judgement::Failed => Some(error_name::SESSION_FAILED),
        Judgement::TimedOut => Some(error_name::SESSION_TIMED_OUT),
        _ => None,
    };
    let cause = name.map(|_| {
        let message = error.map_or("no reason was given", ErrorMessage::as_str);
        format!("{message} (journal head {head})")
    });
    Verdict {
        session_id: request.session_id.clone(),
        status: judgement.terminal().unwrap_or(Status::Failed),
        head: head.to_owned(),
        answered_by: None,
        error: name.map(str::to_owned),
        cause,
    }
}
