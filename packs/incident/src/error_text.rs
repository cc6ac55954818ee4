//! What an error line says, in any of Lambda's formats: the error's type and its message.
//!
//! Both are verbatim parts of the line, so that evidence can quote them.

use std::sync::OnceLock;

use regex::Regex;

use super::log_lines;

/// The members of a structured line that can hold the error's text, best first.
const MESSAGES: [&str; 8] =
    ["errorMessage", "exceptionMessage", "err", "error", "exception", "reason", "message", "msg"];

/// The members of a structured line that can hold the error's type.
const TYPES: [&str; 4] = ["errorType", "exceptionType", "error_type", "code"];

/// Types that say nothing.
const GENERIC: [&str; 5] = ["Error", "Exception", "Runtime.Error", "error", "Runtime.Unknown"];

/// What an error line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said<'a> {
    /// The error's type, if it is apart from the text and says something.
    pub kind: Option<&'a str>,
    pub text: &'a str,
}

impl Said<'_> {
    /// For a sentence.
    pub(super) fn shown(&self) -> String {
        let text = unescaped(self.text);
        match self.kind {
            Some(kind) if !text.contains(kind) => format!("{kind}: {text}"),
            _ => text,
        }
    }
}

/// What a line says. `at`: where the words are that matter, such as those of a known failure.
pub(super) fn said(message: &str, at: Option<usize>) -> Said<'_> {
    if let Some(text) = of_report(message) {
        return Said { kind: None, text };
    }
    let structure = message.find('{').filter(|start| {
        message[*start..].trim_end().ends_with('}') || message[*start..].starts_with("{\"")
    });
    if let Some(start) = structure
        && let Some(text) = of_structure(message, start, at)
    {
        let kind = TYPES.iter().find_map(|name| member(&message[start..], name));
        let kind = kind.filter(|kind| is_word(kind) && !GENERIC.contains(kind));
        return Said { kind, text: log_lines::cut(text) };
    }
    Said { kind: None, text: of_text(message, at) }
}

/// How an invocation ended, if the line is Lambda's report of it.
fn of_report(message: &str) -> Option<&str> {
    if message.starts_with("REPORT ") {
        let at = message.find("Error Type:").or_else(|| message.find("Status:"))?;
        return message[at..].split(['\t', '\n']).next().map(str::trim_end);
    }
    let is_report = message.starts_with('{') && message.contains("\"platform.report\"");
    is_report.then(|| member(message, "errorType").or(member(message, "status"))).flatten()
}

/// The string of a structured line that has the words, else the error's message.
fn of_structure(message: &str, start: usize, at: Option<usize>) -> Option<&str> {
    let inner = &message[start..];
    let has = |part: &str| {
        let offset = part.as_ptr() as usize - message.as_ptr() as usize;
        at.is_some_and(|at| (offset..offset + part.len()).contains(&at))
    };
    let texts = || MESSAGES.iter().filter_map(|name| member(inner, name)).filter(|t| is_word(t));
    texts().find(|text| has(text)).or_else(|| texts().next())
}

fn is_word(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// The string of a member, as it is written. Lines may be cut off, so they are not parsed.
pub(super) fn member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let key = format!("\"{name}\"");
    // A value may be spelled like the name.
    let rest = json.match_indices(&key).find_map(|(at, _)| {
        let rest = json[at + key.len()..].trim_start().strip_prefix(':')?;
        rest.trim_start().strip_prefix('"')
    })?;
    let mut is_escaped = false;
    let end = rest.char_indices().find(|(_, c)| {
        let is_end = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        is_end
    });
    Some(&rest[..end.map_or(rest.len(), |(end, _)| end)])
}

/// The line with the words, unless it is of a stack trace; else the first line.
fn of_text(message: &str, at: Option<usize>) -> &str {
    let lines = || message.split(['\n', '\r']).filter(|line| is_word(line));
    let start_of = |line: &str| line.as_ptr() as usize - message.as_ptr() as usize;
    let first = lines().next().unwrap_or_default();
    let is_frame = |line: &str| line.starts_with(|c: char| c.is_whitespace());
    let with_words = at.and_then(|at| {
        lines().find(|line| (start_of(line)..start_of(line) + line.len()).contains(&at))
    });
    let line = with_words.filter(|line| !is_frame(line)).unwrap_or(first);
    text_of_line(line)
}

/// A line without level, time and request.
fn text_of_line(line: &str) -> &str {
    let start = line.rfind('\t').filter(|tab| is_word(&line[*tab..])).map_or(0, |tab| tab + 1);
    let rest = line[start..].trim();
    let rest = rest.strip_prefix("[ERROR]").unwrap_or(rest).trim_start();
    // The line of a timeout begins with its time and request.
    let rest = log_lines::find(rest, "Task timed out after").map_or(rest, |at| &rest[at..]);
    let text = log_lines::cut(rest.trim_end());
    if is_word(text) { text } else { "" }
}

/// A JSON string's text, for people.
fn unescaped(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    serde_json::from_str::<String>(&format!("\"{text}\"")).map_or_else(
        |_| text.replace("\\\"", "\""),
        |text| text.split_whitespace().collect::<Vec<_>>().join(" "),
    )
}

/// The HTTP status that a text tells, and where.
pub(super) fn http_status(text: &str) -> Option<(u16, usize)> {
    static BEFORE: OnceLock<Option<Regex>> = OnceLock::new();
    static AFTER: OnceLock<Option<Regex>> = OnceLock::new();
    let before = BEFORE.get_or_init(|| {
        Regex::new(
            r#"(?i)\b(?:status[ _-]?code|status|http(?:/[0-9.]+)?(?: error)?|responded(?: with)?|returned|answered(?: with)?|response(?: code)?|replied(?: with)?|error code)["']?\s{0,3}[:=]?\s{0,3}\(?["']?([1-5][0-9]{2})\b"#,
        )
        .ok()
    });
    let after = AFTER.get_or_init(|| {
        Regex::new(
            r"(?i)\b([45][0-9]{2}):? (?:client error|server error|unauthorized|forbidden|internal server error|bad gateway|service (?:temporarily )?unavailable|gateway time-?out|too many requests)",
        )
        .ok()
    });
    let found = |regex: &Option<Regex>| {
        let status = regex.as_ref()?.captures(text)?.get(1)?;
        Some((status.as_str().parse().ok()?, status.start()))
    };
    found(after).or_else(|| found(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, words: &str, expected: &str) {
        let found = said(message, message.find(words).filter(|_| !words.is_empty()));
        assert_eq!(found.shown(), expected, "{message}");
        assert!(message.contains(found.text), "{}", found.text);
    }

    #[test]
    fn each_format_of_lambda_is_read() {
        check(
            "[ERROR] KeyError: 'x'\rTraceback (most recent call last):\r\u{a0}File",
            "",
            "KeyError: 'x'",
        );
        check("[ERROR]\t2026\tid\tconnect ECONNREFUSED", "", "connect ECONNREFUSED");
        check(
            "2026\tid\tERROR\tInvoke Error \t{\"errorType\":\"TypeError\",\"errorMessage\":\"x is \\\"no\\\" function\",\"stack\":[]}",
            "",
            "TypeError: x is \"no\" function",
        );
        check(
            r#"{"timestamp":"t","level":"ERROR","message":"'TABLE'","errorType":"KeyError","stackTrace":["  File"]}"#,
            "",
            "KeyError: 'TABLE'",
        );
        check(
            r#"{"level":"error","message":"request failed","error":"connect ECONNREFUSED 10.0.0.1:5432"}"#,
            "ECONNREFUSED",
            "connect ECONNREFUSED 10.0.0.1:5432",
        );
        check(
            r#"{"timestamp":"t","level":"ERROR","requestId":"r","message":{"errorType":"Error","errorMessage":"boom","stackTrace":[]}}"#,
            "",
            "boom",
        );
        check(
            "java.sql.SQLException: no\nCaused by: java.net.UnknownHostException: db",
            "UnknownHost",
            "Caused by: java.net.UnknownHostException: db",
        );
        check(
            "[ERROR] KeyError: 'T'\r\u{a0}\u{a0}url = os.environ['T']",
            "os.environ",
            "KeyError: 'T'",
        );
        check("2026 id Task timed out after 3.00 seconds", "", "Task timed out after 3.00 seconds");
        check("{\"a\": cut", "", "{\"a\": cut");
        check(
            "REPORT RequestId: a\tStatus: error\tError Type: Runtime.OutOfMemory\t",
            "",
            "Error Type: Runtime.OutOfMemory",
        );
        check(r#"{"type":"platform.report","record":{"status":"timeout"}}"#, "", "timeout");
    }

    #[test]
    fn statuses_are_read_and_numbers_are_not() {
        let status = |text: &str| http_status(text).map(|(status, _)| status);
        for (text, expected) in [
            ("Request failed with status code 503", Some(503)),
            ("502 Bad Gateway from geo.example", Some(502)),
            ("401 Client Error: Unauthorized for url: https://x", Some(401)),
            ("HTTP Error 403: Forbidden", Some(403)),
            (r#"{"status":429}"#, Some(429)),
            ("x responded with 504 after 3 attempts", Some(504)),
            ("processed 503 rows", None),
            ("order 401 not found", None),
            ("status=200", Some(200)),
        ] {
            assert_eq!(status(text), expected, "{text}");
        }
    }
}
