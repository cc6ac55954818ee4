//! Parses log lines: the level of a line, its invocation, and how that invocation ended.
//!
//! Logs are unreliable. A warning about a retried call is not a cause, and a word in an object's
//! key is not an error. So a line's weight depends on its level, its position, and whether its
//! invocation failed.

use serde_json::Value;

use super::tool::LogsResponse;

/// Most events that are read; the tool returns fewer.
const EVENTS_READ_MAX: usize = 500;

/// Longest quotation of a line, in bytes.
const QUOTE_BYTES_MAX: usize = 300;

/// Most words before Lambda's own report of a timeout: a level, a time and the request's id.
const STAMP_WORDS: usize = 3;

/// How many words at the start of a line may be its level.
const LEVEL_WORDS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Lambda's own: START, END, REPORT.
    Platform,
    Info,
    /// A handled problem.
    Warn,
    Error,
    /// It has no level.
    Plain,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Index in the tool's result.
    pub index: usize,
    pub timestamp: &'a str,
    pub message: &'a str,
    pub level: Level,
    /// Index of the invocation that wrote it.
    pub invocation: Option<usize>,
}

/// An invocation, as far as the logs show it.
#[derive(Clone, Debug, Default)]
pub(super) struct Invocation {
    /// Index of its first line in [`LogLines::lines`].
    pub first: usize,
    pub is_finished: bool,
    pub is_timed_out: bool,
    /// Index of the line with its failure.
    pub failure: Option<usize>,
    /// The function's version that ran: `$LATEST` or a number.
    pub version: Option<String>,
}

impl Invocation {
    /// Whether it ran to its end without an error.
    pub(super) fn is_clean(&self) -> bool {
        self.is_finished && !self.is_timed_out && self.failure.is_none()
    }
}

#[derive(Debug, Default)]
pub(super) struct LogLines<'a> {
    pub lines: Vec<Line<'a>>,
    pub invocations: Vec<Invocation>,
}

impl<'a> LogLines<'a> {
    pub(super) fn of(logs: &'a LogsResponse) -> Self {
        let mut read = Self::default();
        let mut ids: Vec<String> = Vec::new();
        let mut running: Option<usize> = None;
        let skipped = logs.events.len().saturating_sub(EVENTS_READ_MAX);
        for (index, event) in logs.events.iter().enumerate().skip(skipped) {
            let message = event.message.as_str();
            let platform = Platform::of(message);
            let level = if platform.is_some() { Level::Platform } else { level_of(message) };
            if let Some(Platform::Start { id, version }) = &platform {
                ids.push(id.clone());
                running = Some(read.invocations.len());
                let (first, version) = (read.lines.len(), version.clone());
                read.invocations.push(Invocation { first, version, ..Invocation::default() });
            }
            // An unhandled exception is logged without the request's id, while it runs.
            let named = ids.iter().rposition(|id| message.contains(id));
            let invocation = named.or(running);
            let line = Line { index, timestamp: &event.timestamp, message, level, invocation };
            read.lines.push(line);
            let Some(position) = invocation else { continue };
            read.note(position, line, platform.as_ref());
            if matches!(platform, Some(Platform::Report(_))) && running == Some(position) {
                running = None;
            }
        }
        read
    }

    /// Updates an invocation with the newest line.
    fn note(&mut self, invocation: usize, line: Line<'_>, platform: Option<&Platform>) {
        let position = self.lines.len() - 1;
        let of = &mut self.invocations[invocation];
        if let Some(Platform::Report(ending)) = platform {
            of.is_finished = true;
            of.is_timed_out |= *ending == Ending::TimedOut;
            if *ending == Ending::Failed && of.failure.is_none() {
                of.failure = Some(position);
            }
        }
        if is_task_timeout(line.message) {
            of.is_timed_out = true;
            of.failure = Some(position);
        } else if line.level == Level::Error {
            of.failure = Some(position);
        }
    }

    pub(super) fn invocation(&self, line: &Line<'_>) -> Option<&Invocation> {
        self.invocations.get(line.invocation?)
    }

    pub(super) fn failure(&self, invocation: &Invocation) -> Option<&Line<'a>> {
        self.lines.get(invocation.failure?)
    }

    /// Whether an invocation that began after this line ran to its end without an error.
    pub(super) fn is_clean_after(&self, line: &Line<'_>) -> bool {
        self.clean_after(line).next().is_some()
    }

    /// The invocations that began after this line and ran to their end without an error.
    pub(super) fn clean_after(&self, line: &Line<'_>) -> impl Iterator<Item = &Invocation> {
        let position = self.lines.iter().position(|other| other.index == line.index);
        let is_after = move |of: &&Invocation| position.is_some_and(|at| of.first > at);
        self.invocations.iter().filter(|of| of.is_clean()).filter(is_after)
    }

    /// Lines of the level `Error`, oldest first.
    pub(super) fn errors(&self) -> impl DoubleEndedIterator<Item = &Line<'a>> {
        self.lines.iter().filter(|line| line.level == Level::Error)
    }
}

/// A line that Lambda itself wrote.
enum Platform {
    /// An invocation begins: its request's id, and the function's version.
    Start {
        id: String,
        version: Option<String>,
    },
    Report(Ending),
    Other,
}

#[derive(PartialEq, Eq)]
enum Ending {
    Done,
    TimedOut,
    Failed,
}

impl Platform {
    /// Reads a line in either of Lambda's formats.
    ///
    /// Source: AWS Lambda Developer Guide, "Configuring JSON and plain text log formats".
    fn of(message: &str) -> Option<Self> {
        const OTHERS: [&str; 6] = [
            "END RequestId:",
            "INIT_START",
            "INIT_REPORT",
            "XRAY TraceId:",
            "EXTENSION\t",
            "TELEMETRY\t",
        ];
        if let Some(rest) = message.strip_prefix("START RequestId: ") {
            let id = rest.split_whitespace().next()?.to_owned();
            let version =
                rest.split_once("Version: ").and_then(|(_, v)| v.split_whitespace().next());
            return Some(Self::Start { id, version: version.map(str::to_owned) });
        }
        if message.starts_with("REPORT RequestId: ") {
            return Some(Self::Report(if message.contains("Status: timeout") {
                Ending::TimedOut
            } else if message.contains("Status: error") {
                Ending::Failed
            } else {
                Ending::Done
            }));
        }
        if OTHERS.iter().any(|prefix| message.starts_with(prefix)) {
            return Some(Self::Other);
        }
        if !(message.starts_with('{') && message.contains("\"platform.")) {
            return None;
        }
        let line: Value = serde_json::from_str(message).ok()?;
        let record = line.get("record");
        match line.get("type")?.as_str()? {
            "platform.start" => {
                let text = |name: &str| record?.get(name)?.as_str().map(str::to_owned);
                Some(Self::Start { id: text("requestId")?, version: text("version") })
            }
            "platform.report" => {
                let status = record.and_then(|record| record.get("status")?.as_str());
                Some(Self::Report(match status {
                    Some("timeout") => Ending::TimedOut,
                    Some("error" | "failure") => Ending::Failed,
                    _ => Ending::Done,
                }))
            }
            kind => kind.starts_with("platform.").then_some(Self::Other),
        }
    }
}

/// The memory that a report line tells, in MB: what was used at most, and what the function has.
pub(super) fn memory_of(message: &str) -> Option<(u64, u64)> {
    let number = |name: &str| {
        let (_, rest) = message.split_once(name)?;
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    if message.starts_with("REPORT ") {
        return Some((number("Max Memory Used:")?, number("\tMemory Size:")?));
    }
    let is_report = message.starts_with('{') && message.contains("\"platform.report\"");
    is_report
        .then(|| Some((number("\"maxMemoryUsedMB\":")?, number("\"memorySizeMB\":")?)))
        .flatten()
}

/// Whether a line reports an initialization that took longer than Lambda allows.
///
/// Source: AWS Lambda Developer Guide, "Understanding the Lambda execution environment lifecycle".
pub(super) fn is_slow_start(message: &str) -> bool {
    let is_text = message.starts_with("INIT_REPORT");
    let is_json = message.starts_with('{') && message.contains("\"platform.initReport\"");
    (is_text && message.contains("Status: timeout"))
        || (is_json && message.replace(' ', "").contains("\"status\":\"timeout\""))
}

/// Whether a line reports the invocation's timeout.
pub(super) fn is_task_timeout(message: &str) -> bool {
    task_timeout(message).is_some()
}

/// Where Lambda's own words about a timeout begin. They follow a time and a request's id at most; more words before them, or
/// a quotation mark, make them a quotation.
pub(super) fn task_timeout(message: &str) -> Option<usize> {
    let at = find(message, "Task timed out after")?;
    let line = message[..at].rfind('\n').map_or(0, |end| end + 1);
    let before = &message[line..at];
    let is_short = before.split_whitespace().count() <= STAMP_WORDS;
    (is_short && !before.ends_with(['"', '\'', ':'])).then_some(at)
}

fn level_of(message: &str) -> Level {
    if is_task_timeout(message) {
        return Level::Error;
    }
    let level = if message.trim_start().starts_with('{') {
        json_level(message)
    } else {
        let words = message.lines().next().unwrap_or_default().split_whitespace();
        words.take(LEVEL_WORDS).find_map(word_level)
    };
    level.unwrap_or_else(|| if is_crash(message) { Level::Error } else { Level::Plain })
}

fn word_level(word: &str) -> Option<Level> {
    let word = word.trim_matches(['[', ']', '(', ')', ':', ',', '|']);
    match word.strip_prefix("level=").unwrap_or(word) {
        "TRACE" | "DEBUG" | "INFO" | "NOTICE" | "trace" | "debug" | "info" | "notice" => {
            // A lower-case word without punctuation is prose.
            let is_level = word.starts_with("level=") || word.starts_with(char::is_uppercase);
            is_level.then_some(Level::Info)
        }
        "WARN" | "WARNING" => Some(Level::Warn),
        "warn" | "warning" if word.starts_with("level=") => Some(Level::Warn),
        "ERROR" | "FATAL" | "CRITICAL" | "SEVERE" => Some(Level::Error),
        "error" | "fatal" if word.starts_with("level=") => Some(Level::Error),
        _ => None,
    }
}

/// The level of a structured line; the line may have been cut off.
fn json_level(message: &str) -> Option<Level> {
    let parsed: Option<Value> = serde_json::from_str(message).ok();
    for name in ["level", "log_level", "levelname", "severity"] {
        let member = parsed.as_ref().and_then(|line| line.get(name)?.as_str().map(str::to_owned));
        let level = member.or_else(|| {
            let (_, rest) = message.split_once(&format!("\"{name}\":"))?;
            rest.trim_start().strip_prefix('"')?.split('"').next().map(str::to_owned)
        });
        if let Some(level) = level {
            return word_level(&level.to_uppercase());
        }
    }
    None
}

/// Whether a line without a level reports a crash: `SomeError: …`, a stack trace, an exit.
fn is_crash(message: &str) -> bool {
    const CRASHES: [&str; 9] = [
        "Traceback (most recent call last)",
        "Unhandled Promise Rejection",
        "Uncaught Exception",
        "Runtime exited",
        "Process exited before completing request",
        "panic: runtime error",
        "fatal error: runtime",
        "panicked at",
        "Unhandled exception",
    ];
    let first = message.lines().next().unwrap_or_default();
    CRASHES.iter().any(|crash| find(message, crash).is_some())
        || first.split_whitespace().any(|word| {
            let word = word.strip_suffix(':').unwrap_or_default();
            word.ends_with("Exception") || word.ends_with("Error")
        })
}

/// Finds a phrase as whole words: `AccessDenied` is not in `AccessDeniedReport`, nor in the key
/// `x/AccessDenied-2026.csv`.
pub(super) fn find(message: &str, phrase: &str) -> Option<usize> {
    message.match_indices(phrase).map(|(at, _)| at).find(|at| {
        let before = message[..*at].chars().next_back();
        let after = message[at + phrase.len()..].chars().next();
        !before.is_some_and(is_of_a_name) && !after.is_some_and(is_of_a_name)
    })
}

fn is_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '/')
}

/// The line from `from` on; a long one is cut between words.
///
/// The text is unchanged, because the evidence check must find the quote again.
pub(super) fn quote(message: &str, from: usize) -> &str {
    let rest = message[word_start(message, from)..].lines().next().unwrap_or_default().trim();
    cut(rest)
}

/// The first line of a text, or the whole text if that line has no word.
pub(super) fn first_words(text: &str) -> &str {
    let line = quote(text, 0);
    if line.chars().any(char::is_alphanumeric) { line } else { text }
}

/// Start of the word at a position.
pub(super) fn word_start(text: &str, at: usize) -> usize {
    text[..at].trim_end_matches(char::is_alphanumeric).len()
}

/// The first words of a text.
pub(super) fn cut(text: &str) -> &str {
    if text.len() <= QUOTE_BYTES_MAX {
        return text;
    }
    let boundaries = text
        .char_indices()
        .filter(|(at, c)| !c.is_alphanumeric() || !text[..*at].ends_with(char::is_alphanumeric));
    let within = boundaries.map(|(at, _)| at).take_while(|at| *at <= QUOTE_BYTES_MAX);
    match within.last() {
        Some(end) if end > 0 => text[..end].trim_end(),
        // One very long word.
        _ => text,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::tool::LogEvent;
    use super::*;

    pub(in super::super) fn logs(messages: &[&str]) -> LogsResponse {
        let events = messages.iter().enumerate().map(|(index, message)| LogEvent {
            timestamp: format!("2026-01-01T00:00:{:02}.000Z", index % 60),
            message: (*message).to_owned(),
        });
        LogsResponse {
            log_group: "/aws/lambda/f".to_owned(),
            events: events.collect(),
            error: None,
        }
    }

    fn check(message: &str, expected: Level) {
        assert_eq!(level_of(message), expected, "{message}");
    }

    #[test]
    fn a_line_has_the_level_that_its_author_gave_it() {
        check("[INFO]\t2026-09-14T09:20:27.729Z\tid\tretry after ERROR", Level::Info);
        check("[WARNING]\t2026\tid\tConnectionError: retry 1 of 3", Level::Warn);
        check("2026-10-19T11:02:10.691Z\tid\tWARN\tconnect ETIMEDOUT", Level::Warn);
        check("2026-10-19T11:06:20.268Z\tid\tERROR\tInvoke Error \t{}", Level::Error);
        check("[ERROR] KeyError: 'x'\nTraceback (most recent call last):", Level::Error);
        check("2026-10-19T11:02:30.671Z id Task timed out after 30.00 seconds", Level::Error);
        check(r#"{"level":"error","message":"x"}"#, Level::Error);
        check(r#"{"timestamp":"t","log_level":"WARNING","message":"ERROR"}"#, Level::Warn);
        check(r#"{"time":"t","level": "INFO","message":"cut o"#, Level::Info);
        check("time=t level=error msg=x", Level::Error);
        check("com.amazonaws.AmazonS3Exception: Access Denied", Level::Error);
        check("no error was found, info follows", Level::Plain);
        check("RequestId: x Error: Runtime exited with error: exit status 1", Level::Error);
        check("/var/task/h.py:22: DeprecationWarning: utcnow() is deprecated", Level::Plain);
        check("", Level::Plain);
        let quoted = "last nightly job status: \"Task timed out after 900.00 seconds\"";
        check(quoted, Level::Plain);
    }

    #[test]
    fn lines_belong_to_their_invocation() {
        let logs = logs(&[
            "START RequestId: aaaa Version: $LATEST",
            "[INFO]\tt\taaaa\tworking",
            "START RequestId: bbbb Version: $LATEST",
            "[WARNING]\tt\taaaa\tretrying",
            "[ERROR] KeyError: 'x'",
            "REPORT RequestId: aaaa\tDuration: 1 ms",
            "REPORT RequestId: bbbb\tDuration: 1 ms",
            "[INFO] after",
        ]);
        let read = LogLines::of(&logs);
        let of: Vec<_> = read.lines.iter().map(|line| line.invocation).collect();
        assert_eq!(
            of,
            [0, 0, 1, 0, 1, 0, 1].map(Some).into_iter().chain([None]).collect::<Vec<_>>()
        );
        assert!(read.invocations[0].is_clean());
        assert_eq!(read.invocations[1].failure, Some(4));
    }

    #[test]
    fn structured_logs_are_read_alike() {
        let logs = logs(&[
            r#"{"time":"t","type":"platform.start","record":{"requestId":"aaaa","version":"1"}}"#,
            r#"{"timestamp":"t","level":"ERROR","message":"no","requestId":"aaaa"}"#,
            r#"{"time":"t","type":"platform.report","record":{"requestId":"aaaa","status":"timeout"}}"#,
            r#"{"time":"t","type":"platform.start","record":{"requestId":"bbbb"}}"#,
            r#"{"time":"t","type":"platform.report","record":{"requestId":"bbbb","status":"success"}}"#,
        ]);
        let read = LogLines::of(&logs);
        assert!(read.invocations[0].is_timed_out && read.invocations[0].failure == Some(1));
        assert!(read.invocations[1].is_clean());
        assert_eq!(read.errors().count(), 1);
        assert!(read.is_clean_after(&read.lines[1]));
    }

    #[test]
    fn reports_tell_memory_and_a_slow_start() {
        let text =
            "REPORT RequestId: a\tDuration: 1 ms\tMemory Size: 128 MB\tMax Memory Used: 127 MB\t";
        assert_eq!(memory_of(text), Some((127, 128)));
        let json = r#"{"time":"t","type":"platform.report","record":{"metrics":{"maxMemoryUsedMB":90,"memorySizeMB": 512}}}"#;
        assert_eq!(memory_of(json), Some((90, 512)));
        assert_eq!(memory_of("[INFO] Memory Size: 1 MB"), None);
        assert!(is_slow_start(
            "INIT_REPORT Init Duration: 10008.49 ms\tPhase: init\tStatus: timeout"
        ));
        assert!(is_slow_start(r#"{"type":"platform.initReport","record":{"status": "timeout"}}"#));
        assert!(!is_slow_start("INIT_REPORT Init Duration: 1.4 ms\tPhase: init\tStatus: error"));
    }

    #[test]
    fn phrases_are_found_as_words() {
        assert_eq!(find("An error occurred (AccessDenied) when", "AccessDenied"), Some(19));
        assert_eq!(find("AccessDenied: no", "AccessDenied"), Some(0));
        assert_eq!(find("reports/AccessDenied-2026.csv", "AccessDenied"), None);
        assert_eq!(find("AccessDeniedReport", "AccessDenied"), None);
    }

    #[test]
    fn a_quotation_is_cut_between_words() {
        let long = format!("a é {} end", "word ".repeat(100));
        let cut = quote(&long, 2);
        assert!(cut.len() <= QUOTE_BYTES_MAX && cut.starts_with('é') && cut.ends_with("word"));
        assert_eq!(quote("one\ntwo", 0), "one");
        let word = "x".repeat(1_000);
        assert_eq!(quote(&word, 0), word);
    }
}
