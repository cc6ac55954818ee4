//! Failed invocations that a known signature explains.
//!
//! A log line's text is data. It explains a failure only if its invocation failed, or if Lambda says that
//! it did.

mod facts;

use std::sync::OnceLock;

use regex::Regex;

use super::changes::Suspicion;
use super::diagnosis::{EvidencePointer, FaultType};
use super::error_text::{self, Said};
use super::findings::{Finding, listed, log_pointer};
use super::log_lines::{self, Invocation, Level, Line, LogLines};
use super::message::Incident;
use super::remediation;
use super::signals;
use super::signatures::{self, CODE, SLOW_START, Signature, TIMEOUT};
use super::times::minutes;
use super::tool::{Observations, Tool};

/// Most findings of this kind.
const FINDINGS_MAX: usize = 3;

/// Most errors that a finding quotes.
const ERRORS_QUOTED_MAX: usize = 3;

/// How much older than the report a log may be that explains it, in minutes.
const LOG_AGE_MIN_MAX: i64 = 6 * 60;

/// What other findings explain already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Explained {
    pub denials: bool,
    pub network: bool,
}

/// A failed invocation and what explains it.
struct Failure<'a> {
    signature: &'static Signature,
    line: Line<'a>,
    said: Said<'a>,
}

/// Failures with the same explanation, oldest first; never empty.
struct Group<'a> {
    signature: &'static Signature,
    failures: Vec<Failure<'a>>,
}

/// The known failures, the most frequent first.
pub(super) fn known(
    incident: &Incident,
    seen: &Observations,
    explained: Explained,
) -> Vec<Finding> {
    let Some(logs) = seen.logs() else { return vec![] };
    let read = LogLines::of(&logs);
    let mut groups: Vec<Group<'_>> = Vec::new();
    for failure in failures(&read, explained) {
        let same = groups.iter_mut().find(|group| std::ptr::eq(group.signature, failure.signature));
        match same {
            Some(group) => group.failures.push(failure),
            None => groups.push(Group { signature: failure.signature, failures: vec![failure] }),
        }
    }
    groups.retain(|group| group.is_lasting(&read) && !group.is_old(incident));
    groups.sort_by_key(|group| std::cmp::Reverse(group.failures.len()));
    groups.truncate(FINDINGS_MAX);
    groups.into_iter().map(|group| group.finding(incident, seen, &read)).collect()
}

/// What a line means, if a signature fits it. For a failure that is not diagnosed.
pub(super) fn meaning(message: &str) -> Option<&'static str> {
    // Source: Amazon S3 API reference, `HeadObject`, "Permissions": the answer to HEAD has no body.
    if message.contains("\"403\"") && message.contains("UnknownError") {
        return Some(
            "an answer 403 without a reason, as S3 gives it to HeadObject: the object does not exist \
             and the role lacks s3:ListBucket on the bucket, or the role may not read the object",
        );
    }
    if log_lines::is_task_timeout(message) {
        return Some(TIMEOUT.means);
    }
    signatures::all().find(|of| place(message, of).is_some()).map(|of| of.means)
}

fn failures<'a>(read: &LogLines<'a>, explained: Explained) -> Vec<Failure<'a>> {
    let is_slow_start = read.lines.iter().any(|line| log_lines::is_slow_start(line.message));
    let mut found = Vec::new();
    for line in read.lines.iter().filter(|l| l.invocation.is_none() && l.level == Level::Error) {
        let is_timeout = log_lines::is_task_timeout(line.message) && !explained.network;
        found.extend(
            by_words(&[line]).or_else(|| is_timeout.then(|| timed_out(line, is_slow_start))),
        );
    }
    for (index, of) in read.invocations.iter().enumerate() {
        let has_failed = of.failure.is_some() || of.is_timed_out;
        let lines: Vec<&Line<'a>> =
            read.lines.iter().filter(|line| line.invocation == Some(index)).collect();
        if has_failed && !is_explained(&lines, of, explained) {
            found.extend(of_invocation(read, of, &lines, is_slow_start));
        }
    }
    found.sort_by_key(|failure| failure.line.index);
    found
}

fn is_explained(lines: &[&Line<'_>], of: &Invocation, explained: Explained) -> bool {
    let has = |is: fn(&str) -> bool| {
        let told = lines.iter().filter(|l| matches!(l.level, Level::Error | Level::Plain));
        told.into_iter().any(|line| is(line.message))
    };
    (explained.denials && has(|text| signals::denial(text).is_some()))
        || (explained.network
            && (of.is_timed_out || has(|text| signals::unreachable(text).is_some())))
}

fn of_invocation<'a>(
    read: &LogLines<'a>,
    of: &Invocation,
    lines: &[&Line<'a>],
    is_slow_start: bool,
) -> Option<Failure<'a>> {
    let told: Vec<&Line<'a>> = lines
        .iter()
        .copied()
        .filter(|line| matches!(line.level, Level::Error | Level::Plain))
        .collect();
    let reports: Vec<&Line<'a>> =
        lines.iter().copied().filter(|line| line.level == Level::Platform).collect();
    by_words(&told).or_else(|| by_memory(lines)).or_else(|| by_words(&reports)).or_else(|| {
        // In the JSON format, only the report tells it.
        let line = read.failure(of).or(reports.last().copied())?;
        of.is_timed_out.then(|| timed_out(line, is_slow_start))
    })
}

fn timed_out<'a>(line: &Line<'a>, is_slow_start: bool) -> Failure<'a> {
    let signature = if is_slow_start { &SLOW_START } else { &TIMEOUT };
    let at = log_lines::task_timeout(line.message);
    Failure { signature, line: *line, said: error_text::said(line.message, at) }
}

/// The first signature that fits one of the lines.
fn by_words<'a>(lines: &[&Line<'a>]) -> Option<Failure<'a>> {
    let told = || lines.iter().filter(|line| signals::denial(line.message).is_none());
    let failure = |signature: &'static Signature, line: &Line<'a>, at: usize| Failure {
        signature,
        line: *line,
        said: error_text::said(line.message, Some(at)),
    };
    signatures::all()
        .find_map(|of| told().find_map(|line| Some(failure(of, line, place(line.message, of)?))))
        .or_else(|| {
            let mut own = told().filter(|l| l.level == Level::Error && is_own_code(l.message));
            own.find_map(|line| Some(failure(&CODE, line, place(line.message, &CODE)?)))
        })
}

/// A process that exited with all its memory used.
fn by_memory<'a>(lines: &[&Line<'a>]) -> Option<Failure<'a>> {
    let has_exited = lines.iter().any(|line| {
        ["Runtime exited", "Runtime.ExitError", "Process exited before"]
            .iter()
            .any(|words| line.message.contains(words))
    });
    let is_full = |line: &&&Line<'a>| {
        log_lines::memory_of(line.message).is_some_and(|(used, size)| used >= size)
    };
    let line = **lines.iter().find(is_full).filter(|_| has_exited)?;
    let signature = signatures::all().find(|of| of.fault == FaultType::OutOfMemory)?;
    Some(Failure { signature, line, said: error_text::said(line.message, None) })
}

/// Where a text says that a variable of the environment is not set: `TABLE_NAME is not set`.
fn unset_variable(message: &str) -> Option<usize> {
    static UNSET: OnceLock<Option<Regex>> = OnceLock::new();
    let regex = UNSET.get_or_init(|| {
        Regex::new(
            r#"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+["'`]? (?:is|was|must be|has) (?:not |been )?(?:set|defined|undefined|missing|required|provided|configured|empty)\b"#,
        )
        .ok()
    });
    regex.as_ref()?.find(message).map(|found| found.start())
}

/// Where a signature's words are in a line.
fn place(message: &str, signature: &Signature) -> Option<usize> {
    let lower = message.to_ascii_lowercase();
    let words =
        || signature.phrases.iter().filter_map(|phrase| log_lines::find(&lower, phrase)).min();
    let status = || {
        let (status, at) = error_text::http_status(message)?;
        signature.statuses.contains(&status).then_some(at)
    };
    let unset =
        || signatures::is_of_environment(signature).then(|| unset_variable(message)).flatten();
    words().or_else(unset).or_else(|| if signature.statuses.is_empty() { None } else { status() })
}

/// Whether a stack trace leads to the function's own code.
fn is_own_code(message: &str) -> bool {
    ["/var/task/", "\tat ", "goroutine ", "stackTrace", "panicked at"]
        .iter()
        .any(|mark| message.contains(mark))
}

impl<'a> Group<'a> {
    fn newest(&self) -> &Failure<'a> {
        &self.failures[self.failures.len() - 1]
    }

    /// Whether it still fails. What depends on the input or the load counts from the second time on.
    fn is_lasting(&self, read: &LogLines<'_>) -> bool {
        let newest = self.newest();
        let version = |of: &Invocation| of.version.clone();
        let failed = read.invocation(&newest.line).and_then(version);
        let is_over = read.clean_after(&newest.line).any(|of| of.version == failed);
        let has_filled =
            matches!(self.signature.fault, FaultType::OutOfMemory | FaultType::StorageFull);
        let same = self.failures.iter().filter(|other| other.said.text == newest.said.text);
        !is_over || (self.signature.recurs && (has_filled || same.count() > 1))
    }

    /// Whether it is so much older than the report that it does not explain it.
    fn is_old(&self, incident: &Incident) -> bool {
        let reported = incident.timestamp.as_deref().and_then(minutes);
        let failed = minutes(self.newest().line.timestamp);
        reported.zip(failed).is_some_and(|(reported, failed)| reported - failed > LOG_AGE_MIN_MAX)
    }

    fn finding(&self, incident: &Incident, seen: &Observations, read: &LogLines<'_>) -> Finding {
        let (name, signature) = (&incident.lambda_name, self.signature);
        let mut evidence: Vec<EvidencePointer> = Vec::new();
        let mut errors: Vec<String> = Vec::new();
        for failure in self.failures.iter().rev() {
            let (line, shown) = (&failure.line, failure.said.shown());
            if errors.len() < ERRORS_QUOTED_MAX && !errors.contains(&shown) {
                let text = failure.said.text;
                let quote =
                    if text.is_empty() { log_lines::first_words(line.message) } else { text };
                evidence.push(log_pointer(line, quote, signature.means));
                errors.push(shown);
            }
        }
        let basis: Vec<usize> = (0..evidence.len()).collect();
        let facts = facts::of(self, seen, read);
        let how = if read.is_clean_after(&self.newest().line) { " at times" } else { "" };
        let errors: Vec<&str> = errors.iter().map(String::as_str).collect();
        let place = self.place().map_or_else(String::new, |place| format!(", raised at {place}"));
        let mut sentence =
            format!("{name} fails{how} with {}{place}: {}", listed(&errors), signature.means);
        for fact in &facts.texts {
            sentence.push_str("; ");
            sentence.push_str(fact);
        }
        evidence.extend(facts.evidence);
        Finding {
            fault: signature.fault,
            sentence,
            severity: signature.severity,
            resources: vec![name.clone()],
            evidence,
            steps: vec![remediation::of_signature(&signature.step, basis)],
            suspicion: Suspicion {
                calls: signature.calls,
                since: Some(self.failures[0].line.timestamp.to_owned()),
                limit: facts.limit,
                ..Suspicion::default()
            },
        }
    }

    /// The file of the function's own code that every stack trace ends in.
    fn place(&self) -> Option<&'a str> {
        let mut places = self.failures.iter().filter_map(|failure| {
            let (_, rest) = failure.line.message.rsplit_once("/var/task/")?;
            let end = rest.find(|c: char| c.is_whitespace() || "\"':)(\\,".contains(c));
            Some(&rest[..end.unwrap_or(rest.len())]).filter(|place| place.contains('.'))
        });
        let first = places.next()?;
        places.all(|place| place == first).then_some(first)
    }
}

/// A pointer at a member of the configuration.
fn of_config(member: &str, value: impl Into<String>, meaning: &str) -> EvidencePointer {
    let field = super::field_path::FieldPath::key(member);
    super::findings::pointer(Tool::LambdaConfig, &field, value, meaning)
}

#[cfg(test)]
mod tests;
