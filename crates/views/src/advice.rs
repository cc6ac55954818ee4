//! Advice on a failed session, by the category of its error. Agents add advice on their own
//! categories ([`graph::presentation::Presentation::advice`]).

use crate::failure::Known;

/// The last advice for most sessions that ended without a result.
const AGAIN: &str = "Then trigger it again as a new session: a verdict is final.";

/// Advice by category of error, without the categories that agents define.
const BY_CATEGORY: &[(&str, &[&str])] = &[
    (
        "mcp_init",
        &[
            "Start the tool server by itself: `daybook tools SERVER` lists its tools or prints its error.",
            "If it starts slowly, raise MCP_INIT_TIMEOUT.",
            AGAIN,
        ],
    ),
    (
        "bedrock_auth",
        &[
            "Give the agent credentials with `bedrock:InvokeModel` for this model, and check that the model is enabled in the region.",
            "To run without a model, set `\"on_model_failure\": \"policy\"` in the trigger: the agent's rules take over.",
            AGAIN,
        ],
    ),
    (
        "bedrock_transient",
        &[
            "The model was busy or unavailable: trigger the session again later.",
            "With `\"on_model_failure\": \"policy\"` in the trigger, the agent's rules take over at once.",
        ],
    ),
    (
        "openai_auth",
        &[
            "Set OPENAI_BASE_URL to the model server and OPENAI_API_KEY to a key that it accepts.",
            AGAIN,
        ],
    ),
    (
        "openai_transient",
        &[
            "Check that the server at OPENAI_BASE_URL is running and has the model, then trigger the session again.",
            "With `\"on_model_failure\": \"policy\"` in the trigger, the agent's rules take over at once.",
        ],
    ),
    (
        "model_unavailable",
        &[
            "Use one of these models: `policy`, `bedrock:ID`, `openai:NAME` or `transcript:FILE`.",
            AGAIN,
        ],
    ),
    (
        "model_invalid",
        &[
            "The model's reply is invalid; the record contains it in full. Try another model, or `policy`.",
            AGAIN,
        ],
    ),
    (
        "transcript_miss",
        &[
            "The recording does not contain this request: record it again, or compare the request in the record with the recording.",
            AGAIN,
        ],
    ),
    (
        "budget",
        &[
            "The session used up its budget. The usage table below shows where.",
            "Raise the budget in the trigger, such as `\"budget\": {\"tokens\": 200000}`, and trigger it again.",
        ],
    ),
    (
        "capacity",
        &[
            "The agent runtime had no capacity for this session for six hours. Raise its quota of active sessions, or its rate of new ones (docs/cost.md).",
            AGAIN,
        ],
    ),
    ("timeout", &["The session timed out. The timeline shows its last wait.", AGAIN]),
    (
        "payload",
        &[
            "A tool's result or a model's reply exceeds the limit of a record (4 MiB). Request less data.",
            AGAIN,
        ],
    ),
];

/// The session that holds the key for which another one was rejected.
pub fn holder(error: &str) -> Option<&str> {
    let said = error.strip_prefix("Rejected: Duplicate - session ")?;
    said.split(' ').next()
}

/// The advice for a session, the most urgent first.
pub fn next(known: &Known<'_>) -> Vec<String> {
    let Known { error, category, agent, presentation, .. } = *known;
    let error = error.unwrap_or_default();
    let (kind, rest) = error.split_once(": ").unwrap_or((error, ""));
    let code = rest.split(" - ").next().unwrap_or(rest);
    let by_agent = |word| presentation.advice_on(word).iter().map(|said| (*said).to_owned());
    let by_error = by_error(kind, code);
    if !by_error.is_empty() {
        return by_error.into_iter().chain(by_agent(code)).collect();
    }
    let by_agent: Vec<_> = category.into_iter().flat_map(by_agent).collect();
    if !by_agent.is_empty() {
        return by_agent.into_iter().chain([AGAIN.to_owned()]).collect();
    }
    if category == Some("mcp_connection") {
        return vec![
            format!("Start the tool server by itself: `daybook tools {}` prints its error.", server(code)),
            "Its command or address is in the file that DAYBOOK_MCP_SERVERS names; without that file, the bundled server is used.".to_owned(),
            AGAIN.to_owned(),
        ];
    }
    let known = BY_CATEGORY.iter().find(|(name, _)| Some(*name) == category);
    if let Some((_, sentences)) = known {
        return sentences.iter().map(|sentence| (*sentence).to_owned()).collect();
    }
    let agent = agent.map_or_else(String::new, |agent| format!(" --agent {agent}"));
    vec![
        "See the record named above, and the records before it.".to_owned(),
        format!("After fixing the cause, trigger it again: `daybook trigger{agent}`."),
    ]
}

/// Advice on errors that other programs than the agent raise.
fn by_error(kind: &str, code: &str) -> Vec<String> {
    match (kind, code) {
        ("InvalidTrigger", "UnknownAgent") => {
            vec!["`daybook agents` lists the available agents.".to_owned(), AGAIN.to_owned()]
        }
        ("InputError" | "InvalidTrigger" | "EntrypointError", _) => vec![
            "Correct the named field in the trigger's detail.".to_owned(),
            "Then trigger it again: the input of a session cannot be changed.".to_owned(),
        ],
        ("Rejected", "Duplicate") => vec![
            "Another session has the same key, and is running or has succeeded: see that session.".to_owned(),
            "To start a separate session, set another `dedupe_key` in the trigger.".to_owned(),
        ],
        ("Rejected", "BreakerOpen") => {
            vec!["The circuit breaker is open. Health shows when the next slot is free.".to_owned()]
        }
        ("AgentLost", _) => vec![
            "The agent exited or hung on every invocation. Its log shows why; the last record below shows its last action.".to_owned(),
            AGAIN.to_owned(),
        ],
        ("SessionTimedOut", "RunningTime") => vec![
            "The session reached its limit of running time, waits excluded. The timeline shows what took longest.".to_owned(),
            AGAIN.to_owned(),
        ],
        ("SessionTimedOut", "Retention") => vec![
            "A session ends two days before its records expire, and this one was still open. Answer earlier next time, or keep records longer (JOURNAL_TTL_DAYS).".to_owned(),
            AGAIN.to_owned(),
        ],
        ("Unwatched", _) => vec![
            "Its workflow was stopped or failed, and the watchdog closed the session. The state machine below shows where.".to_owned(),
            AGAIN.to_owned(),
        ],
        _ => Vec::new(),
    }
}

/// The server's name from an error's code; any other text is not put into a command.
fn server(code: &str) -> &str {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !code.is_empty() && code.chars().all(is_name) { code } else { "SERVER" }
}

#[cfg(test)]
mod tests {
    use graph::presentation::{Advice, Presentation};
    use journal::status::Status;

    use super::*;
    use crate::testing::at;
    use crate::waterfall::Waterfall;

    fn said(error: &str, category: Option<&str>, presentation: &Presentation) -> String {
        let waterfall = Waterfall::of(&[], [], false, at(0));
        let (status, agent, error) = (Status::Failed, Some("mine"), Some(error));
        let known = Known { status, agent, presentation, error, category, waterfall: &waterfall };
        next(&known).join("\n")
    }

    #[test]
    fn every_failure_has_something_to_do_next() {
        for (error, category, expected) in [
            (
                "InvalidTrigger: UnknownAgent - no agent is named `x`",
                Some("unknown"),
                "daybook agents",
            ),
            ("InputError: InvalidInput - input field `lambda_name`", Some("unknown"), "Correct"),
            (
                "Rejected: Duplicate - session s already has the deduplication key `k`",
                Some("rejected"),
                "see that session",
            ),
            ("Rejected: BreakerOpen - circuit breaker", Some("rejected"), "circuit breaker"),
            ("AgentLost: Silent - the agent stopped responding", Some("unknown"), "log"),
            ("Unwatched: ExecutionStopped - stale", Some("unknown"), "watchdog"),
            ("SessionTimedOut: RunningTime - long", Some("timeout"), "what took longest"),
            ("SessionTimedOut: Retention - old", Some("timeout"), "JOURNAL_TTL_DAYS"),
            ("AgentError: Slow - long", Some("timeout"), "timed out"),
            (
                "McpConnection: aws-diagnostics - ended",
                Some("mcp_connection"),
                "daybook tools aws-diagnostics",
            ),
            ("McpConnection: a; rm -rf b - ended", Some("mcp_connection"), "daybook tools SERVER"),
            ("ModelError: x - y", Some("of one's own"), "daybook trigger --agent mine"),
            ("", None, "daybook trigger --agent mine"),
        ] {
            let text = said(error, category, &Presentation::DEFAULT);
            assert!(text.contains(expected), "{error}: {text}");
        }
        assert_eq!(
            holder("Rejected: Duplicate - session a-b already has the deduplication key `k`"),
            Some("a-b")
        );
        assert_eq!(holder("Rejected: BreakerOpen - circuit breaker"), None);
        for (category, sentences) in BY_CATEGORY {
            let text = said("E: c - m", Some(category), &Presentation::DEFAULT);
            assert_eq!(text, sentences.join("\n"));
        }
    }

    #[test]
    fn an_agent_explains_its_own_categories_and_adds_to_the_breaker() {
        let advice: Advice =
            &[("BreakerOpen", &["Raise its limit."]), ("too_dark", &["Switch the light on."])];
        let own = Presentation { advice, ..Presentation::DEFAULT };
        let text = said("LampError: Dark - x", Some("too_dark"), &own);
        assert_eq!(text, format!("Switch the light on.\n{AGAIN}"));
        let text = said("Rejected: BreakerOpen - circuit breaker", Some("rejected"), &own);
        assert!(text.ends_with("slot is free.\nRaise its limit."), "{text}");
    }
}
