//! What else the tools show about a known failure: the limit, the handler, the variable, the version.

use crate::diagnosis::{EvidencePointer, FaultType};
use crate::error_text;
use crate::findings::log_pointer;
use crate::log_lines::{self, Level, Line, LogLines};
use crate::signals;
use crate::tool::{LambdaConfigResponse, Observations};

use super::{Group, of_config};

#[derive(Default)]
pub(super) struct Facts {
    /// Parts of a sentence.
    pub texts: Vec<String>,
    pub evidence: Vec<EvidencePointer>,
    /// The limit that was reached.
    pub limit: Option<(&'static str, u64)>,
}

pub(super) fn of(group: &Group<'_>, seen: &Observations, read: &LogLines<'_>) -> Facts {
    let mut facts = Facts::default();
    let config = seen.config().unwrap_or_default();
    match group.signature.fault {
        FaultType::OutOfMemory => facts.memory(group, read),
        FaultType::Timeout => facts.timeout(group, &config, read),
        FaultType::Deployment => facts.deployment(group, &config),
        FaultType::Configuration | FaultType::PermissionLoss => {
            facts.configuration(group, &config);
        }
        FaultType::Dependency | FaultType::Credentials => facts.peer(group, read),
        _ => {}
    }
    facts.version(group, read);
    facts
}

impl Facts {
    /// What the failed invocations used at most, and what earlier ones had.
    fn memory(&mut self, group: &Group<'_>, read: &LogLines<'_>) {
        let of_invocation = |line: &Line<'_>| line.invocation;
        let failed: Vec<_> =
            group.failures.iter().filter_map(|failure| of_invocation(&failure.line)).collect();
        let reports = || {
            let memory =
                |line: usize| Some((line, log_lines::memory_of(read.lines[line].message)?));
            (0..read.lines.len()).filter_map(memory)
        };
        let of_failed =
            |line: usize| read.lines[line].invocation.is_some_and(|of| failed.contains(&of));
        let Some((line, (used, size))) =
            reports().filter(|(line, _)| of_failed(*line)).max_by_key(|(_, (used, _))| *used)
        else {
            return;
        };
        self.limit = Some(("memorySize", size));
        self.texts.push(format!("it used {used} MB of its {size} MB"));
        let line = &read.lines[line];
        if let Some(quote) = quoted_memory(line.message) {
            let meaning = format!("memory used at most: {used} MB of {size} MB");
            self.evidence.push(log_pointer(line, quote, meaning));
        }
        let before = reports().find(|(_, (_, earlier))| *earlier > size);
        if let Some((_, (_, earlier))) = before {
            self.texts.push(format!("earlier invocations had {earlier} MB"));
        }
    }

    fn timeout(&mut self, group: &Group<'_>, config: &LambdaConfigResponse, read: &LogLines<'_>) {
        if let Some(timeout) = config.timeout {
            self.limit = Some(("timeout", timeout));
            self.texts.push(format!("its timeout is {timeout} s"));
            let meaning = "the configured timeout, in seconds";
            self.evidence.push(of_config("Timeout", timeout.to_string(), meaning));
        }
        let newest = &group.newest().line;
        let last = read.lines.iter().rfind(|line| {
            newest.invocation.is_some()
                && line.invocation == newest.invocation
                && line.index < newest.index
                && line.level != Level::Platform
        });
        if let Some(line) = last {
            let text = error_text::said(line.message, None).text;
            if !text.is_empty() {
                self.texts.push(format!("its last line before that is {text:?}"));
                let meaning = "the last line before the timeout: what it did when time ran out";
                self.evidence.push(log_pointer(line, text, meaning));
            }
        }
    }

    fn deployment(&mut self, group: &Group<'_>, config: &LambdaConfigResponse) {
        let means = group.signature.means;
        let is_about = |word: &str| means.contains(word);
        if let Some(handler) =
            config.handler.as_ref().filter(|_| is_about("handler") || is_about("class"))
        {
            self.texts.push(format!("the configured handler is {handler}"));
            self.evidence.push(of_config("Handler", handler.as_str(), "the configured handler"));
        }
        if let Some(architecture) =
            config.architectures.first().filter(|_| is_about("architecture"))
        {
            self.texts.push(format!("the function's architecture is {architecture}"));
            let meaning = "the architecture that the function runs on";
            self.evidence.push(of_config("Architectures", architecture.as_str(), meaning));
        }
        if let Some(runtime) = config.runtime.as_ref().filter(|_| is_about("runtime")) {
            self.texts.push(format!("the runtime is {runtime}"));
            self.evidence.push(of_config("Runtime", runtime.as_str(), "the function's runtime"));
        }
    }

    fn configuration(&mut self, group: &Group<'_>, config: &LambdaConfigResponse) {
        if group.signature.means.contains("environment variable") {
            let Some(variable) = variable(group.newest().line.message) else { return };
            self.texts.push(format!("the variable is {variable}"));
            let Some(names) = &config.environment_variables else { return };
            let (text, meaning) = if names.iter().any(|name| name == variable) {
                ("its configuration has it now", "the names of its environment variables")
            } else {
                ("its configuration lacks it", "its environment variables: it is not one of them")
            };
            self.texts.push(text.to_owned());
            let names = serde_json::Value::from(names.clone()).to_string();
            self.evidence.push(of_config("EnvironmentVariables", names, meaning));
        }
        let key = config.kms_key_arn.as_ref();
        if let Some(key) = key.filter(|_| group.signature.means.contains("KMS")) {
            self.texts.push(format!("its environment's key is {key}"));
            self.evidence.push(of_config("KMSKeyArn", key.as_str(), "the key of its environment"));
        }
    }

    /// Whom it called, if the error does not say it.
    fn peer(&mut self, group: &Group<'_>, read: &LogLines<'_>) {
        const MEMBERS: [&str; 6] = ["host", "hostname", "servername", "url", "address", "endpoint"];
        let failure = group.newest();
        if signals::peer(failure.said.text).is_some() {
            return;
        }
        let of_line = |line: &Line<'_>| signals::peer(line.message).is_some();
        let member = MEMBERS
            .iter()
            .find_map(|name| error_text::member(failure.line.message, name))
            .filter(|host| host.contains('.') && !failure.said.text.contains(*host));
        let before = || {
            let mut lines = read.lines.iter().rev().filter(|line| {
                line.invocation.is_some()
                    && line.invocation == failure.line.invocation
                    && line.index < failure.line.index
                    && line.message.contains("://")
            });
            let line = lines.find(|line| of_line(line))?;
            Some((*line, signals::peer(line.message)?))
        };
        let found = member.map(|host| (failure.line, host)).or_else(before);
        let Some((line, host)) = found else { return };
        self.texts.push(format!("it called {host}"));
        self.evidence.push(log_pointer(&line, host, "whom it called"));
    }

    /// The version, if only one fails and others work.
    fn version(&mut self, group: &Group<'_>, read: &LogLines<'_>) {
        let of = |failure: &super::Failure<'_>| read.invocation(&failure.line)?.version.clone();
        let mut versions: Vec<String> = group.failures.iter().filter_map(of).collect();
        versions.dedup();
        let [failed] = &versions[..] else { return };
        let clean = read.invocations.iter().filter(|of| of.is_clean());
        let works = clean.filter_map(|of| of.version.as_ref()).find(|version| *version != failed);
        if let Some(works) = works {
            self.texts.push(format!("only version {failed} fails, and version {works} works"));
            let line = read.invocation(&group.newest().line).map(|of| &read.lines[of.first]);
            if let Some(line) = line.filter(|line| line.message.contains(failed.as_str())) {
                let meaning = "the version of the failed invocation";
                self.evidence.push(log_pointer(
                    line,
                    log_lines::first_words(line.message),
                    meaning,
                ));
            }
        }
    }
}

/// The part of a report line that tells its memory.
fn quoted_memory(message: &str) -> Option<&str> {
    let (from, last) = if message.starts_with("REPORT ") {
        (message.find("Memory Size:")?, "Max Memory Used:")
    } else {
        (message.find("\"memorySizeMB\"")?.min(message.find("\"maxMemoryUsedMB\"")?), "")
    };
    if last.is_empty() {
        let rest = &message[from..];
        let end = rest.find(['}', '\n']).unwrap_or(rest.len());
        return Some(log_lines::cut(&rest[..end]));
    }
    let at = message.find(last)? + last.len();
    let end = message[at..].find(" MB").map_or(message.len(), |end| at + end + 3);
    message.get(from..end)
}

/// The name of the environment variable that an error misses.
fn variable(message: &str) -> Option<&str> {
    let quoted = |after: &str| {
        let (_, rest) = message.split_once(after)?;
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
        (end > 0).then(|| &rest[..end])
    };
    let is_name = |word: &&str| {
        word.len() > 1
            && word.contains(|c: char| c.is_ascii_uppercase())
            && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    ["os.environ['", "os.environ[\"", "os.environ[\\\"", "KeyError: '", "\"message\":\"'"]
        .iter()
        .find_map(|after| quoted(after))
        .or_else(|| {
            let words = message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            let after = words.skip_while(|word| !word.eq_ignore_ascii_case("environment"));
            let mut named = after.filter(is_name);
            named.next().or_else(|| {
                let mut words = message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                words.find(|word| is_name(word) && word.contains('_'))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_variable_is_named() {
        for (message, expected) in [
            (
                "[ERROR] KeyError: 'TABLE_NAME'\r  File \"<frozen os>\" os.environ",
                Some("TABLE_NAME"),
            ),
            ("Error: environment variable QUEUE_URL is not set", Some("QUEUE_URL")),
            ("Error: Missing required environment variable: API_KEY", Some("API_KEY")),
            ("DB_HOST environment variable is missing", Some("DB_HOST")),
            ("an environment variable is missing", None),
        ] {
            assert_eq!(variable(message), expected, "{message}");
        }
    }
}
