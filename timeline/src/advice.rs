//! What to do about a session that failed, by the category of its error.

/// The last advice to every session that ended without a result.
const AGAIN: &str =
    "Then trigger the session again: this one has its verdict, and a verdict is final.";

/// Sentences by category of error. What an agent of one's own calls its errors is not here.
const BY_CATEGORY: &[(&str, &[&str])] = &[
    (
        "mcp_init",
        &[
            "Try the tool server by itself: `daybook tools SERVER` shows what it offers, and why not.",
            "If it only starts slowly, raise MCP_INIT_TIMEOUT.",
            AGAIN,
        ],
    ),
    (
        "bedrock_auth",
        &[
            "Give the agent credentials that may ask this model (`bedrock:InvokeModel`), and see in the account that the model is enabled in the region.",
            "Without it, `\"on_model_failure\": \"policy\"` in the trigger has the agent's rules take over.",
            AGAIN,
        ],
    ),
    (
        "bedrock_transient",
        &[
            "The model was busy or away: trigger it again later.",
            "`\"on_model_failure\": \"policy\"` in the trigger has the agent's rules take over at once.",
        ],
    ),
    (
        "openai_auth",
        &["Set OPENAI_API_KEY and OPENAI_BASE_URL to a server that accepts them.", AGAIN],
    ),
    (
        "openai_transient",
        &[
            "See that the server at OPENAI_BASE_URL runs and has the model, then trigger it again.",
            "`\"on_model_failure\": \"policy\"` in the trigger has the agent's rules take over at once.",
        ],
    ),
    (
        "model_unavailable",
        &[
            "Name a model that this program can ask: `policy`, `bedrock:ID`, `openai:NAME` or `transcript:FILE`.",
            AGAIN,
        ],
    ),
    (
        "model_invalid",
        &[
            "The model's reply cannot be used; the record has it whole. Another model may do, or the policy.",
            AGAIN,
        ],
    ),
    (
        "transcript_miss",
        &[
            "The recording has no such request: record it anew, or see in the record what was asked otherwise than then.",
            AGAIN,
        ],
    ),
    (
        "budget",
        &[
            "It used up what it was given. The ledger below says on what.",
            "Give it more in the trigger, such as `\"budget\": {\"tokens\": 200000}`, and trigger it again.",
        ],
    ),
    (
        "timeout",
        &["Its time was up. The timeline shows what it waited for last, and how long.", AGAIN],
    ),
    (
        "payload",
        &[
            "What a tool or a model answered is larger than a record may be (4 MiB). Ask for less of it.",
            AGAIN,
        ],
    ),
    (
        "undiagnosed",
        &[
            "What the tools showed explains nothing to the rules: read their results in the records below.",
            "A model may see more: trigger it again with `--model`.",
        ],
    ),
    (
        "no_evidence",
        &["The tools that read the payment failed: their records below say why.", AGAIN],
    ),
    (
        "planner",
        &[
            "The planner chose what it may not, and the fixed sequence is switched off. Set LANGGRAPH_ENABLE_PLANNER_FALLBACK to true.",
            AGAIN,
        ],
    ),
    (
        "invalid_input",
        &["Correct what the message names in the input: the result lists what is known.", AGAIN],
    ),
];

/// Sentences by words of what was found in a network. A finding that has none of them is left to whoever
/// reads it.
const BY_FINDING: &[(&str, &str)] = &[
    ("MTU mismatch", "Set the same MTU at both ends of the line that the log names."),
    ("is DOWN", "See both ends of the line: whether somebody shut it, then optics and cable."),
    (
        "flaps",
        "Clean or replace optics and cable of the line that comes and goes; take it out of use meanwhile.",
    ),
    (
        "CRC errors",
        "Frames arrive damaged: clean or replace optics and cable, at both ends of the line.",
    ),
    (
        "BGP neighbor",
        "See whether the neighbor's address is reached, then what both sides have configured, and clear the session.",
    ),
    (
        "LDP session",
        "See that label distribution is on at both ends of the line and nothing filters its hellos (port 646).",
    ),
    (
        "has no label",
        "Without a label traffic is dropped: see the label session with the next router on the way, and what keeps it from giving one out.",
    ),
    ("CONFLICT", "Two routers advertise one segment identifier: give one of them another index."),
    (
        "import route target",
        "Import a route target that another site of the customer exports; the record has both lists.",
    ),
    (
        "routes limit",
        "Raise the customer's limit of routes, or find out who sends more than was agreed.",
    ),
    (
        "CPU is",
        "See what keeps the process that is named so busy: its neighbors' updates, a debug, a loop.",
    ),
    ("the limit of", "Give it more in the trigger's `budget`, and ask again."),
];

/// What to do about what was found in a network, each thing once, in the order of the table.
pub fn about<'a>(findings: impl IntoIterator<Item = &'a str> + Clone) -> Vec<String> {
    let is_found =
        |(words, _): &&(&str, &str)| findings.clone().into_iter().any(|text| text.contains(words));
    BY_FINDING.iter().filter(is_found).map(|(_, advice)| (*advice).to_owned()).collect()
}

/// The session that has the key which another one was rejected for.
pub fn holder(error: &str) -> Option<&str> {
    let said = error.strip_prefix("Rejected: Duplicate - session ")?;
    said.split(' ').next()
}

/// What to do next, the most urgent first. `error` reads `Type: Code - message`.
pub fn next(error: &str, category: Option<&str>, agent: Option<&str>) -> Vec<String> {
    let (kind, rest) = error.split_once(": ").unwrap_or((error, ""));
    let code = rest.split(" - ").next().unwrap_or(rest);
    let own = match (kind, code) {
        ("InvalidTrigger", "UnknownAgent") => {
            vec!["`daybook agents` lists the agents that there are.".to_owned(), AGAIN.to_owned()]
        }
        ("InputError" | "InvalidTrigger" | "EntrypointError", _) => vec![
            "Correct what the message names in the trigger's detail.".to_owned(),
            "Then trigger it again: what a session was asked for is never changed.".to_owned(),
        ],
        ("Rejected", "Duplicate") => vec![
            "Another session has the same key and is at work, or has succeeded: look there.".to_owned(),
            "Another `dedupe_key` in the trigger makes it a session of its own.".to_owned(),
        ],
        ("Rejected", "BreakerOpen") => vec![
            "The circuit breaker is open. Health says when the next session is let in.".to_owned(),
            "If so many are right, raise MAX_INCIDENTS_PER_HOUR.".to_owned(),
        ],
        ("AgentLost", _) => vec![
            "The agent died or hung, every time it was invoked. Its log says why; the last record below is what it did before.".to_owned(),
            AGAIN.to_owned(),
        ],
        ("SessionTimedOut", "RunningTime") => vec![
            "It was at work for as long as a session may be, waiting not counted. The timeline shows what took longest.".to_owned(),
            AGAIN.to_owned(),
        ],
        ("SessionTimedOut", "Retention") => vec![
            "Two days before a session's records expire its time is up, and this one was still open. Answer the next one sooner, or keep records for longer (JOURNAL_TTL_DAYS).".to_owned(),
            AGAIN.to_owned(),
        ],
        ("Unwatched", _) => vec![
            "Its workflow was stopped or broke, and the watchdog closed the session. The state machine below shows where.".to_owned(),
            AGAIN.to_owned(),
        ],
        _ => Vec::new(),
    };
    if !own.is_empty() {
        return own;
    }
    if category == Some("mcp_connection") {
        return vec![
            format!("Try the tool server by itself: `daybook tools {}` says why it does not start or answer.", server(code)),
            "Its command or address stands in the file that DAYBOOK_MCP_SERVERS names, else it is the one that ships.".to_owned(),
            AGAIN.to_owned(),
        ];
    }
    let known = BY_CATEGORY.iter().find(|(name, _)| Some(*name) == category);
    if let Some((_, sentences)) = known {
        return sentences.iter().map(|sentence| (*sentence).to_owned()).collect();
    }
    let agent = agent.unwrap_or("checkup");
    vec![
        "The record named above, and those before it, hold all that is known.".to_owned(),
        format!("When the cause is mended, trigger it again: `daybook trigger --agent {agent}`."),
    ]
}

/// The server that an error names as its code; any other text is not put into a command.
fn server(code: &str) -> &str {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !code.is_empty() && code.chars().all(is_name) { code } else { "SERVER" }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                "Rejected: Duplicate - session s is already about `k`",
                Some("rejected"),
                "look there",
            ),
            ("Rejected: BreakerOpen - circuit breaker", Some("rejected"), "circuit breaker"),
            ("AgentLost: Silent - the agent fell silent", Some("unknown"), "log"),
            ("Unwatched: ExecutionStopped - stale", Some("unknown"), "watchdog"),
            ("SessionTimedOut: RunningTime - long", Some("timeout"), "what took longest"),
            ("SessionTimedOut: Retention - old", Some("timeout"), "JOURNAL_TTL_DAYS"),
            ("AgentError: Slow - long", Some("timeout"), "time was up"),
            (
                "McpConnection: aws-diagnostics - ended",
                Some("mcp_connection"),
                "daybook tools aws-diagnostics",
            ),
            ("McpConnection: a; rm -rf b - ended", Some("mcp_connection"), "daybook tools SERVER"),
            ("ModelError: x - y", Some("of one's own"), "daybook trigger --agent mine"),
            ("", None, "daybook trigger --agent mine"),
        ] {
            let told = next(error, category, Some("mine")).join("\n");
            assert!(told.contains(expected), "{error}: {told}");
        }
        assert_eq!(holder("Rejected: Duplicate - session a-b is already about `k`"), Some("a-b"));
        assert_eq!(holder("Rejected: BreakerOpen - circuit breaker"), None);
        assert_eq!(about(["interface x is DOWN", "interface y is DOWN", "else"]).len(), 1);
        for (category, sentences) in BY_CATEGORY {
            assert_eq!(next("E: c - m", Some(category), None), *sentences);
        }
    }
}
