//! The functions file: commands to run and URLs to post to, by function name.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};

use super::command::Program;
use super::name_of;
use super::url::Address;
use super::{CallError, FunctionError};
use crate::names;

/// Largest functions file, in bytes.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

/// Default timeout of a function, in seconds.
///
/// Source: AWS Lambda, "Configure Lambda function timeout", the default.
const TIMEOUT_DEFAULT_S: u64 = 3;

/// Longest timeout of a function, in seconds.
///
/// Source: AWS, "Lambda quotas", function timeout.
const TIMEOUT_MAX_S: u64 = 900;

/// Longest name of a function, in characters.
///
/// Source: AWS Lambda, `CreateFunction`, `FunctionName`.
const NAME_CHARS_MAX: usize = 64;

/// The functions of a file, by name. Its `Debug` shows no value of `env`.
#[derive(Debug, Default)]
pub struct File {
    pub(super) functions: BTreeMap<String, Function>,
}

/// One function of a file.
#[derive(Debug)]
pub(super) struct Function {
    at: At,
    timeout: Duration,
}

#[derive(Debug)]
enum At {
    Command(Program),
    Url(Address),
}

/// Why a functions file is invalid. The error names the place but no value, which may be secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file is larger than [`FILE_BYTES_MAX`].
    #[error("{0} bytes exceed the limit of {FILE_BYTES_MAX}")]
    TooLarge(usize),
    /// The text is not JSON.
    #[error("the text is not JSON: line {line}, column {column}")]
    Json {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// A field of the file or of a function's entry, such as `args[1]` or `env.TOKEN`.
    #[error("{place} {problem}")]
    Field { place: String, problem: String },
}

const NOT_AN_OBJECT: &str = "must be an object";
const UNKNOWN_FIELD: &str = "is not a known field";
const NOT_A_TEXT: &str = "must be a string without NUL";

impl File {
    /// Parses `{"functions": {NAME: {"command", "args"?, "env"?, "timeout_s"?} or {"url",
    /// "timeout_s"?}}}`. Commands run in `folder`, with `PATH`, `HOME` and the variables in `env`.
    /// Replaces a value `${env:NAME}` in `env` by the variable that `environment` returns.
    ///
    /// # Errors
    /// See [`FileError`]. Nothing has been started.
    pub fn parse(
        text: &str,
        folder: &Path,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, FileError> {
        if text.len() > FILE_BYTES_MAX {
            return Err(FileError::TooLarge(text.len()));
        }
        let shape = |field: &str, problem: &str| FileError::Field {
            place: format!("`{field}`"),
            problem: problem.to_owned(),
        };
        let file: Value = serde_json::from_str(text)
            .map_err(|error| FileError::Json { line: error.line(), column: error.column() })?;
        let file = file.as_object().ok_or_else(|| shape("the file", NOT_AN_OBJECT))?;
        if let Some(field) = file.keys().find(|field| *field != "functions") {
            return Err(shape(field, UNKNOWN_FIELD));
        }
        let entries = file.get("functions").and_then(Value::as_object);
        let entries = entries.ok_or_else(|| shape("functions", NOT_AN_OBJECT))?;
        let mut functions = BTreeMap::new();
        for (name, entry) in entries {
            let reader = Reader { function: name, folder, environment: &environment };
            functions.insert(name.clone(), reader.function(entry)?);
        }
        Ok(Self { functions })
    }
}

impl Function {
    /// Calls the function. The timeout uses the machine's clock, since a program does not run faster when
    /// the stack's clock does.
    pub(super) async fn call(&self, payload: &Value) -> Result<Value, CallError> {
        let called = async {
            match &self.at {
                At::Command(program) => Ok(program.call(payload).await?),
                At::Url(address) => address.call(payload).await,
            }
        };
        match tokio::time::timeout(self.timeout, called).await {
            Ok(answer) => answer,
            Err(_) => Err(FunctionError::timed_out(self.timeout).into()),
        }
    }
}

/// Parses one function's entry.
struct Reader<'a> {
    function: &'a str,
    folder: &'a Path,
    environment: &'a dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    fn function(&self, entry: &Value) -> Result<Function, FileError> {
        self.name()?;
        let entry = entry.as_object().ok_or_else(|| self.wrong("entry", NOT_AN_OBJECT))?;
        let known = ["command", "args", "env", "url", "timeout_s"];
        if let Some(field) = entry.keys().find(|field| !known.contains(&field.as_str())) {
            return Err(self.wrong(field, UNKNOWN_FIELD));
        }
        let at = match (entry.get("command"), entry.get("url")) {
            (Some(command), None) => At::Command(self.program(command, entry)?),
            (None, Some(url)) => At::Url(self.address(url, entry)?),
            (None, None) => return Err(self.wrong("command", "or `url` is missing")),
            (Some(_), Some(_)) => {
                return Err(self.wrong("url", "cannot be combined with `command`"));
            }
        };
        let timeout_s = match entry.get("timeout_s") {
            None => TIMEOUT_DEFAULT_S,
            Some(seconds) => seconds
                .as_u64()
                .filter(|seconds| (1..=TIMEOUT_MAX_S).contains(seconds))
                .ok_or_else(|| self.wrong("timeout_s", "must be a whole number from 1 to 900"))?,
        };
        Ok(Function { at, timeout: Duration::from_secs(timeout_s) })
    }

    fn name(&self) -> Result<(), FileError> {
        let of_name = |char: char| char.is_ascii_alphanumeric() || ['-', '_'].contains(&char);
        if !(1..=NAME_CHARS_MAX).contains(&self.function.len())
            || !self.function.chars().all(of_name)
        {
            return Err(self.wrong("name", "must be 1 to 64 letters, digits, `-` and `_`"));
        }
        if [names::INVOKER_ARN, names::POLLER_ARN].map(name_of).contains(&self.function) {
            return Err(self.wrong("name", "is reserved for a function of Daybook"));
        }
        Ok(())
    }

    fn program(&self, command: &Value, entry: &Map<String, Value>) -> Result<Program, FileError> {
        let command = self.text("command", command)?;
        if command.is_empty() {
            return Err(self.wrong("command", "is empty"));
        }
        let mut program = Program::new(&command, self.folder);
        for name in ["PATH", "HOME"] {
            let value = (self.environment)(name).map(|value| (name.to_owned(), value));
            program.environment.extend(value);
        }
        let empty = Value::Array(Vec::new());
        let args = entry.get("args").unwrap_or(&empty);
        let args =
            args.as_array().ok_or_else(|| self.wrong("args", "must be a list of strings"))?;
        for (index, arg) in args.iter().enumerate() {
            program.args.push(self.text(&format!("args[{index}]"), arg)?);
        }
        let empty = Value::Object(Map::new());
        let env = entry.get("env").unwrap_or(&empty);
        for (name, value) in env.as_object().ok_or_else(|| self.wrong("env", NOT_AN_OBJECT))? {
            // The operating system accepts neither: it would panic or truncate the name.
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(self.wrong("env", "has an invalid variable name"));
            }
            let field = format!("env.{name}");
            let value = self.resolve(&field, self.text(&field, value)?)?;
            program.environment.insert(name.clone(), value);
        }
        Ok(program)
    }

    fn address(&self, url: &Value, entry: &Map<String, Value>) -> Result<Address, FileError> {
        if let Some(field) = ["args", "env"].iter().find(|field| entry.contains_key(**field)) {
            return Err(self.wrong(field, "needs `command`"));
        }
        let url = self.text("url", url)?;
        Address::new(&url).ok_or_else(|| self.wrong("url", "must be an http or https URL"))
    }

    /// Replaces a value that is `${env:NAME}` as a whole.
    fn resolve(&self, field: &str, value: String) -> Result<String, FileError> {
        let variable = value.strip_prefix("${env:").and_then(|rest| rest.strip_suffix('}'));
        let Some(variable) = variable else { return Ok(value) };
        (self.environment)(variable).ok_or_else(|| {
            let needs = "needs the environment variable";
            self.wrong(field, &format!("{needs} `{variable}`, which is not set"))
        })
    }

    fn text(&self, field: &str, value: &Value) -> Result<String, FileError> {
        let text = value.as_str().filter(|text| !text.contains('\0'));
        text.map(str::to_owned).ok_or_else(|| self.wrong(field, NOT_A_TEXT))
    }

    fn wrong(&self, field: &str, problem: &str) -> FileError {
        let place = format!("function `{}`: `{field}`", self.function);
        FileError::Field { place, problem: problem.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(functions: &Value) -> Result<File, FileError> {
        let text = json!({ "functions": functions }).to_string();
        File::parse(&text, Path::new("/tmp"), |name| {
            (name == "TOKEN").then(|| "hunter2".to_owned())
        })
    }

    #[test]
    fn an_error_names_function_and_field_and_never_quotes_a_value() {
        let check = |entry: Value, expected: &str| {
            let error = parse(&json!({ "f": entry })).unwrap_err().to_string();
            assert_eq!(error, expected);
            assert!(!error.contains("sesame"));
        };
        check(json!("sesame"), "function `f`: `entry` must be an object");
        check(json!({}), "function `f`: `command` or `url` is missing");
        check(json!({"command": ""}), "function `f`: `command` is empty");
        check(
            json!({"command": "x", "url": "http://sesame"}),
            "function `f`: `url` cannot be combined with `command`",
        );
        check(json!({"command": "x", "cwd": "/"}), "function `f`: `cwd` is not a known field");
        check(
            json!({"command": "x", "args": "sesame"}),
            "function `f`: `args` must be a list of strings",
        );
        check(
            json!({"command": "x", "args": ["y", 1]}),
            "function `f`: `args[1]` must be a string without NUL",
        );
        check(json!({"command": "x", "env": []}), "function `f`: `env` must be an object");
        check(
            json!({"command": "x", "env": {"A=B": "sesame"}}),
            "function `f`: `env` has an invalid variable name",
        );
        check(
            json!({"command": "x", "env": {"K": "${env:GONE}"}}),
            "function `f`: `env.K` needs the environment variable `GONE`, which is not set",
        );
        check(
            json!({"command": "x", "timeout_s": 901}),
            "function `f`: `timeout_s` must be a whole number from 1 to 900",
        );
        check(json!({"url": "file:///sesame"}), "function `f`: `url` must be an http or https URL");
        check(
            json!({"url": "http://127.0.0.1:9/", "env": {}}),
            "function `f`: `env` needs `command`",
        );
    }

    #[test]
    fn a_function_name_is_valid_for_lambda_and_not_reserved() {
        for name in ["", "a b", "a:b", &"a".repeat(65), "daybook-invoker", "daybook-poller"] {
            let error = parse(&json!({ name: {"command": "x"} })).unwrap_err();
            assert!(matches!(error, FileError::Field { .. }), "{name}: {error}");
        }
        assert!(parse(&json!({ "a-B_9": {"command": "x"} })).is_ok());
    }

    #[test]
    fn the_file_has_one_form_and_a_size_limit() {
        let check = |text: &str, expected: &str| {
            let parsed = File::parse(text, Path::new("/tmp"), |_| None);
            assert_eq!(parsed.unwrap_err().to_string(), expected);
        };
        check("{\n \"sesame", "the text is not JSON: line 2, column 8");
        check("[]", "`the file` must be an object");
        check("{}", "`functions` must be an object");
        check(r#"{"functions": {}, "x": 1}"#, "`x` is not a known field");
        check(&" ".repeat(FILE_BYTES_MAX + 1), "1048577 bytes exceed the limit of 1048576");
    }

    #[test]
    fn debug_output_shows_no_environment_value() {
        let file = parse(&json!({"f": {"command": "x", "env": {"KEY": "${env:TOKEN}"}}})).unwrap();
        let shown = format!("{file:?}");
        assert!(shown.contains("KEY") && !shown.contains("hunter2"), "{shown}");
    }
}
