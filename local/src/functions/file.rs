//! The file that names functions: commands to run and URLs to post to.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};

use super::command::Program;
use super::name_of;
use super::url::Address;
use super::{CallError, FunctionError};
use crate::names;

/// Largest functions file, in bytes; a larger one is refused.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

/// How long a function may take that does not say, in seconds.
///
/// Source: AWS Lambda, "Configure Lambda function timeout", the default.
const TIMEOUT_DEFAULT_S: u64 = 3;

/// How long a function may take at most, in seconds; a longer `timeout_s` is refused.
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

/// What a file says of one function.
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

/// Why a functions file is not usable. It names the place and quotes no value, which may be secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It is larger than [`FILE_BYTES_MAX`].
    #[error("{0} bytes are more than {FILE_BYTES_MAX}")]
    TooLarge(usize),
    /// It is no JSON.
    #[error("the text is not JSON: line {line}, column {column}")]
    Json {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// It is not `{"functions": {NAME: {…}}}`.
    #[error("`{field}` {problem}")]
    Shape {
        /// The field.
        field: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// What it says of one function is wrong.
    #[error("function `{function}`: `{field}` {problem}")]
    Function {
        /// The function's name.
        function: String,
        /// The field, such as `args[1]` or `env.TOKEN`.
        field: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A value refers to an environment variable that is not set.
    #[error(
        "function `{function}`: `{field}` needs the environment variable `{variable}`, which is not set"
    )]
    VariableMissing {
        /// The function's name.
        function: String,
        /// The field.
        field: String,
        /// The variable.
        variable: String,
    },
}

const NOT_AN_OBJECT: &str = "must be an object";
const UNKNOWN_FIELD: &str = "is not a known field";
const NOT_A_TEXT: &str = "must be a text without a zero character";

impl File {
    /// Reads `{"functions": {NAME: {"command", "args"?, "env"?, "timeout_s"?} or {"url",
    /// "timeout_s"?}}}`. Commands run in `folder`, and see `PATH` and `HOME` of the environment and what
    /// `env` names, where `${env:NAME}` stands for a variable, which `environment` resolves, now and
    /// once.
    ///
    /// # Errors
    /// See [`FileError`]. The person who wrote the file has to mend it: nothing was started.
    pub fn parse(
        text: &str,
        folder: &Path,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, FileError> {
        if text.len() > FILE_BYTES_MAX {
            return Err(FileError::TooLarge(text.len()));
        }
        let shape = |field: &str, problem| FileError::Shape { field: field.to_owned(), problem };
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
    /// Calls it. Its time is the machine's, however fast the stack's clock runs: a program does not
    /// run faster with it.
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

/// Reads what is said of one function.
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
            (Some(_), Some(_)) => return Err(self.wrong("url", "cannot stand beside `command`")),
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
            return Err(self.wrong("name", "is that of a function of Daybook's own"));
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
        let args = args.as_array().ok_or_else(|| self.wrong("args", "must be a list of texts"))?;
        for (index, arg) in args.iter().enumerate() {
            program.args.push(self.text(&format!("args[{index}]"), arg)?);
        }
        let empty = Value::Object(Map::new());
        let env = entry.get("env").unwrap_or(&empty);
        for (name, value) in env.as_object().ok_or_else(|| self.wrong("env", NOT_AN_OBJECT))? {
            // The operating system takes neither; it would panic or cut the name short.
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(self.wrong("env", "holds a name that no variable can have"));
            }
            let field = format!("env.{name}");
            let value = self.resolve(&field, self.text(&field, value)?)?;
            program.environment.insert(name.clone(), value);
        }
        Ok(program)
    }

    fn address(&self, url: &Value, entry: &Map<String, Value>) -> Result<Address, FileError> {
        if let Some(field) = ["args", "env"].iter().find(|field| entry.contains_key(**field)) {
            return Err(self.wrong(field, "goes with `command`"));
        }
        let url = self.text("url", url)?;
        Address::new(&url).ok_or_else(|| self.wrong("url", "must be of http or https"))
    }

    /// A value, or the environment variable that it stands for as a whole.
    fn resolve(&self, field: &str, value: String) -> Result<String, FileError> {
        let variable = value.strip_prefix("${env:").and_then(|rest| rest.strip_suffix('}'));
        let Some(variable) = variable else { return Ok(value) };
        (self.environment)(variable).ok_or_else(|| FileError::VariableMissing {
            function: self.function.to_owned(),
            field: field.to_owned(),
            variable: variable.to_owned(),
        })
    }

    fn text(&self, field: &str, value: &Value) -> Result<String, FileError> {
        let text = value.as_str().filter(|text| !text.contains('\0'));
        text.map(str::to_owned).ok_or_else(|| self.wrong(field, NOT_A_TEXT))
    }

    fn wrong(&self, field: &str, problem: &'static str) -> FileError {
        let (function, field) = (self.function.to_owned(), field.to_owned());
        FileError::Function { function, field, problem }
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
    fn what_is_wrong_is_named_with_function_and_field_and_never_quoted() {
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
            "function `f`: `url` cannot stand beside `command`",
        );
        check(json!({"command": "x", "cwd": "/"}), "function `f`: `cwd` is not a known field");
        check(
            json!({"command": "x", "args": "sesame"}),
            "function `f`: `args` must be a list of texts",
        );
        check(
            json!({"command": "x", "args": ["y", 1]}),
            "function `f`: `args[1]` must be a text without a zero character",
        );
        check(json!({"command": "x", "env": []}), "function `f`: `env` must be an object");
        check(
            json!({"command": "x", "env": {"A=B": "sesame"}}),
            "function `f`: `env` holds a name that no variable can have",
        );
        check(
            json!({"command": "x", "env": {"K": "${env:GONE}"}}),
            "function `f`: `env.K` needs the environment variable `GONE`, which is not set",
        );
        check(
            json!({"command": "x", "timeout_s": 901}),
            "function `f`: `timeout_s` must be a whole number from 1 to 900",
        );
        check(json!({"url": "file:///sesame"}), "function `f`: `url` must be of http or https");
        check(
            json!({"url": "http://127.0.0.1:9/", "env": {}}),
            "function `f`: `env` goes with `command`",
        );
    }

    #[test]
    fn a_function_has_a_name_that_lambda_takes_and_that_is_not_ours() {
        for name in ["", "a b", "a:b", &"a".repeat(65), "daybook-invoker", "daybook-poller"] {
            let error = parse(&json!({ name: {"command": "x"} })).unwrap_err();
            assert!(matches!(error, FileError::Function { .. }), "{name}: {error}");
        }
        assert!(parse(&json!({ "a-B_9": {"command": "x"} })).is_ok());
    }

    #[test]
    fn the_file_has_one_form_and_a_size() {
        let check = |text: &str, expected: &str| {
            let parsed = File::parse(text, Path::new("/tmp"), |_| None);
            assert_eq!(parsed.unwrap_err().to_string(), expected);
        };
        check("{\n \"sesame", "the text is not JSON: line 2, column 8");
        check("[]", "`the file` must be an object");
        check("{}", "`functions` must be an object");
        check(r#"{"functions": {}, "x": 1}"#, "`x` is not a known field");
        check(&" ".repeat(FILE_BYTES_MAX + 1), "1048577 bytes are more than 1048576");
    }

    #[test]
    fn no_value_of_the_environment_shows() {
        let file = parse(&json!({"f": {"command": "x", "env": {"KEY": "${env:TOKEN}"}}})).unwrap();
        let shown = format!("{file:?}");
        assert!(shown.contains("KEY") && !shown.contains("hunter2"), "{shown}");
    }
}
