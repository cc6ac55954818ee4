//! Parses the servers file, resolves its references and validates it.

use std::collections::BTreeSet;

use graph::origin::{Origin, Rule};
use serde_json::{Map, Value};
use workflow::env::MCP_API_KEY_PARAMETER;

use super::{Entry, Gates, Servers};
use crate::tool::BUILT_IN_SERVER;
use crate::tool::launch::Program;
use crate::tool::parameters::Parameters;
use crate::tool::remote::{Protocol, Remote};
use crate::tool::text::Text;

/// The variables that a server inherits. All others must be configured by name: our environment has
/// AWS credentials, and a server is a third-party program.
const INHERITED: [&str; 2] = ["PATH", "HOME"];

/// The reference to the parameter that [`MCP_API_KEY_PARAMETER`] names.
const API_KEY: &str = "mcp-api-key";

/// The default parameter of the API key.
const API_KEY_PARAMETER: &str = "/incident-response/mcp-api-key";

/// The fields of an entry with a command, and of one with a URL.
const COMMAND_FIELDS: [&str; 4] = ["command", "args", "env", "shared"];
const URL_FIELDS: [&str; 3] = ["url", "transport", "headers"];
const GATE_FIELDS: [&str; 4] = ["critical", "at_most_once", "reads", "origins"];

/// The form of one argument's permitted origins.
const ORIGINS: &str = "must be a list of `person`, `input`, `program`, `tool` or `model`";

/// Why the file is invalid. No server was started.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Invalid JSON. The text may contain secrets, so the error has only the position.
    #[error("invalid JSON at line {line}, column {column}")]
    Json {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// The text is not `{"mcpServers": {NAME: {…}}}`.
    #[error("`{field}` {problem}")]
    Shape { field: String, problem: &'static str },
    /// One server's entry is invalid.
    #[error("server `{server}`: `{field}` {problem}")]
    Entry {
        server: String,
        /// Such as `args[1]` or `env.TOKEN`.
        field: String,
        problem: &'static str,
    },
    /// A value refers to an environment variable that is not set.
    #[error(
        "server `{server}`: `{field}` needs the environment variable `{variable}`, which is not set"
    )]
    VariableMissing { server: String, field: String, variable: String },
    /// A value refers to a parameter that was not read.
    #[error(
        "server `{server}`: `{field}` needs the SSM parameter `{parameter}`, which was not read"
    )]
    ParameterMissing { server: String, field: String, parameter: String },
}

/// The servers of a file, with unresolved references.
pub(super) struct File(Map<String, Value>);

impl File {
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let file: Value = serde_json::from_str(text)
            .map_err(|error| Error::Json { line: error.line(), column: error.column() })?;
        let mut servers = None;
        for (field, value) in file.as_object().ok_or_else(|| shape("the file", NOT_AN_OBJECT))? {
            match field.as_str() {
                "mcpServers" => servers = value.as_object(),
                _ => return Err(shape(field, UNKNOWN_FIELD)),
            }
        }
        let servers = servers.ok_or_else(|| shape("mcpServers", NOT_AN_OBJECT))?;
        Ok(Self(servers.clone()))
    }

    /// The parameters to which its values refer.
    pub(super) fn parameters(
        &self,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&Value> = self.0.values().collect();
        while let Some(value) = open.pop() {
            match value {
                Value::Object(members) => open.extend(members.values()),
                Value::Array(values) => open.extend(values),
                Value::String(text) => {
                    let references = text.split("${").skip(1);
                    let references = references.filter_map(|rest| Some(rest.split_once('}')?.0));
                    found.extend(references.filter_map(|name| parameter(name, environment)));
                }
                _ => {}
            }
        }
        found
    }

    /// Resolves all references.
    pub(super) fn servers(
        &self,
        environment: &dyn Fn(&str) -> Option<String>,
        parameters: &Parameters,
    ) -> Result<Servers, Error> {
        let mut servers = Servers::default();
        for (server, entry) in &self.0 {
            let reader = Reader { server, environment, parameters };
            let (entry, gates) = reader.entry(entry)?;
            servers.entries.insert(server.clone(), entry);
            servers.gates.insert(server.clone(), gates);
        }
        Ok(servers)
    }
}

/// The parameter of a reference, if it refers to one.
fn parameter(reference: &str, environment: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    if reference == API_KEY {
        let named = environment(MCP_API_KEY_PARAMETER).filter(|name| !name.is_empty());
        return Some(named.unwrap_or_else(|| API_KEY_PARAMETER.to_owned()));
    }
    let name = reference.strip_prefix("ssm:")?;
    (!name.is_empty()).then(|| name.to_owned())
}

const NOT_AN_OBJECT: &str = "must be an object";
const UNKNOWN_FIELD: &str = "is not a known field";

fn shape(field: &str, problem: &'static str) -> Error {
    Error::Shape { field: field.to_owned(), problem }
}

struct Reader<'a> {
    server: &'a str,
    environment: &'a dyn Fn(&str) -> Option<String>,
    parameters: &'a Parameters,
}

impl Reader<'_> {
    fn entry(&self, entry: &Value) -> Result<(Entry, Gates), Error> {
        if self.server.is_empty() || self.server == BUILT_IN_SERVER {
            return Err(self.wrong("name", "is empty or reserved"));
        }
        let entry = entry.as_object().ok_or_else(|| self.wrong("entry", NOT_AN_OBJECT))?;
        let known = [&COMMAND_FIELDS[..], &URL_FIELDS, &GATE_FIELDS].concat();
        if let Some(field) = entry.keys().find(|field| !known.contains(&field.as_str())) {
            return Err(self.wrong(field, UNKNOWN_FIELD));
        }
        let first_of = |fields: &[&'static str]| {
            fields.iter().copied().find(|field| entry.contains_key(*field))
        };
        let gates = Gates {
            critical: self.names("critical", entry)?,
            at_most_once: self.names("at_most_once", entry)?,
            reads: self.names("reads", entry)?,
            origins: self.rules(entry)?,
        };
        if entry.contains_key("url") {
            return match first_of(&COMMAND_FIELDS) {
                Some(field) => Err(self.wrong(field, "cannot be combined with `url`")),
                None => Ok((Entry::Remote(self.remote(entry)?), gates)),
            };
        }
        match first_of(&URL_FIELDS) {
            Some(field) => Err(self.wrong(field, "needs `url`, which is missing")),
            None => Ok((Entry::Command(self.command(entry)?), gates)),
        }
    }

    /// A list of tool names.
    fn names(&self, field: &str, entry: &Map<String, Value>) -> Result<Vec<String>, Error> {
        let Some(names) = entry.get(field) else { return Ok(Vec::new()) };
        let names = names.as_array().map(|names| names.iter().map(Value::as_str));
        let names: Option<Option<Vec<&str>>> = names.map(Iterator::collect);
        match names.flatten() {
            Some(names) if names.iter().all(|name| !name.is_empty()) => {
                Ok(names.into_iter().map(str::to_owned).collect())
            }
            _ => Err(self.wrong(field, "must be a list of tool names")),
        }
    }

    /// What may feed the arguments of tools: `{TOOL: {ARGUMENT: [ORIGIN…]}}`.
    fn rules(&self, entry: &Map<String, Value>) -> Result<Vec<Rule>, Error> {
        let mut rules = Vec::new();
        let Some(tools) = entry.get("origins") else { return Ok(rules) };
        let object = |field: &str, value: &Value| {
            let members = value.as_object().filter(|members| !members.contains_key(""));
            members.cloned().ok_or_else(|| self.wrong(field, "must be an object with names"))
        };
        for (tool, arguments) in object("origins", tools)? {
            let field = format!("origins.{tool}");
            for (argument, from) in object(&field, &arguments)? {
                let field = format!("{field}.{argument}");
                let words = from.as_array().filter(|words| !words.is_empty());
                let named = |word: &Value| word.as_str().and_then(Origin::named);
                let from: Option<Vec<Origin>> =
                    words.and_then(|words| words.iter().map(named).collect());
                let from = from.ok_or_else(|| self.wrong(&field, ORIGINS))?;
                rules.push(Rule { tool: format!("{}.{tool}", self.server), argument, from });
            }
        }
        Ok(rules)
    }

    fn remote(&self, entry: &Map<String, Value>) -> Result<Remote, Error> {
        let protocol = match entry.get("transport").map(Value::as_str) {
            None | Some(Some("http")) => Protocol::Http,
            Some(Some("sse")) => Protocol::Sse,
            Some(_) => return Err(self.wrong("transport", "must be `http` or `sse`")),
        };
        let url = self.text("url", entry.get("url").unwrap_or(&Value::Null))?;
        let mut remote =
            Remote::new(url, protocol).map_err(|problem| self.wrong("url", problem))?;
        let headers = entry.get("headers").map(|headers| headers.as_object().ok_or(headers));
        if let Some(headers) = headers {
            for (name, value) in headers.map_err(|_| self.wrong("headers", NOT_AN_OBJECT))? {
                let field = format!("headers.{name}");
                let value = self.text(&field, value)?;
                remote.add_header(name, value).map_err(|problem| self.wrong(&field, problem))?;
            }
        }
        Ok(remote)
    }

    fn command(&self, entry: &Map<String, Value>) -> Result<Program, Error> {
        let command =
            entry.get("command").ok_or_else(|| self.wrong("command", "or `url` is missing"))?;
        let command = self.text("command", command)?;
        if command.value.is_empty() {
            return Err(self.wrong("command", "is empty"));
        }
        let mut program = Program::new(command);
        let args = entry.get("args").map(|args| args.as_array().ok_or(args));
        if let Some(args) = args {
            let args = args.map_err(|_| self.wrong("args", "must be a list of strings"))?;
            for (index, arg) in args.iter().enumerate() {
                program.args.push(self.text(&format!("args[{index}]"), arg)?);
            }
        }
        for name in INHERITED {
            if let Some(value) = (self.environment)(name) {
                program.env.insert(name.to_owned(), Text::plain(value));
            }
        }
        let env = entry.get("env").map(|env| env.as_object().ok_or(env));
        if let Some(env) = env {
            for (name, value) in env.map_err(|_| self.wrong("env", NOT_AN_OBJECT))? {
                // The operating system accepts neither: it would panic or truncate the name.
                if name.is_empty() || name.contains(['=', '\0']) {
                    return Err(self.wrong("env", "contains an invalid variable name"));
                }
                let value = self.text(&format!("env.{name}"), value)?;
                program.env.insert(name.clone(), value);
            }
        }
        program.is_shared = match entry.get("shared") {
            None => false,
            Some(Value::Bool(shared)) => *shared,
            Some(_) => return Err(self.wrong("shared", "must be `true` or `false`")),
        };
        Ok(program)
    }

    /// Resolves the references in a text.
    fn text(&self, field: &str, value: &Value) -> Result<Text, Error> {
        let shown = value.as_str().ok_or_else(|| self.wrong(field, "must be a string"))?;
        if shown.contains('\0') {
            return Err(self.wrong(field, "contains a NUL character"));
        }
        let mut text = Text { shown: shown.to_owned(), value: String::new(), secrets: Vec::new() };
        let mut rest = shown;
        while let Some((before, reference)) = rest.split_once("${") {
            let (reference, after) = reference
                .split_once('}')
                .ok_or_else(|| self.wrong(field, "contains `${` without `}`"))?;
            let value = self.resolve(field, reference)?;
            text.value.push_str(before);
            text.value.push_str(&value);
            text.secrets.push(value);
            rest = after;
        }
        text.value.push_str(rest);
        Ok(text)
    }

    fn resolve(&self, field: &str, reference: &str) -> Result<String, Error> {
        let (server, field_name) = (self.server.to_owned(), field.to_owned());
        if let Some(variable) = reference.strip_prefix("env:") {
            return (self.environment)(variable).ok_or_else(|| Error::VariableMissing {
                server,
                field: field_name,
                variable: variable.to_owned(),
            });
        }
        let Some(parameter) = parameter(reference, self.environment) else {
            let forms =
                "contains a reference other than `${env:NAME}`, `${ssm:NAME}` or `${mcp-api-key}`";
            return Err(self.wrong(field, forms));
        };
        match self.parameters.get(&parameter) {
            Some(secret) => Ok(secret.reveal().to_owned()),
            None => Err(Error::ParameterMissing { server, field: field_name, parameter }),
        }
    }

    fn wrong(&self, field: &str, problem: &'static str) -> Error {
        Error::Entry { server: self.server.to_owned(), field: field.to_owned(), problem }
    }
}

#[cfg(test)]
mod tests {
    use journal::id::SessionId;
    use serde_json::json;

    use super::*;
    use crate::tool::launch::Launch;

    fn environment(name: &str) -> Option<String> {
        match name {
            "PATH" => Some("/usr/bin".to_owned()),
            "TOKEN" => Some("hunter2-hunter2".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("not for servers".to_owned()),
            _ => None,
        }
    }

    fn parse(servers: Value) -> Result<Servers, Error> {
        Servers::parse(&json!({ "mcpServers": servers }).to_string(), environment)
    }

    #[test]
    fn a_file_lists_the_parameters_that_it_needs() {
        let text = json!({"mcpServers": {
            "a": {"url": "http://a/", "headers": {"X": "${ssm:/one} ${ssm:two}", "Y": "${env:Z}"}},
            "b": {"command": "x", "args": ["${mcp-api-key}", "${ssm:}", "${ssm:/open"]},
        }});
        let file = File::read(&text.to_string()).unwrap();
        let default = file.parameters(&|_| None);
        assert_eq!(
            default,
            ["/incident-response/mcp-api-key", "/one", "two"].map(str::to_owned).into()
        );
        let named = file
            .parameters(&|name| (name == "MCP_API_KEY_PARAMETER").then(|| "/another".to_owned()));
        assert!(named.contains("/another") && !named.contains(API_KEY_PARAMETER));
    }

    #[test]
    fn a_parameter_is_resolved_and_never_shown() {
        let text = json!({"mcpServers": {"a": {
            "url": "https://a/", "transport": "sse", "headers": {"Authorization": "Bearer ${mcp-api-key}"},
        }}});
        let parameters = Parameters::from([(API_KEY_PARAMETER.to_owned(), "sesame-open".into())]);
        let file = File::read(&text.to_string()).unwrap();
        let servers = file.servers(&|_| None, &parameters).unwrap();
        let Launch::Remote(remote) = launch(&servers, "a", json!({})) else { panic!("remote") };
        assert!(remote.secrets().any(|secret| secret == "Bearer sesame-open"));
        let shown = format!("{servers:?} {remote:#?} {parameters:?}");
        assert!(!shown.contains("sesame") && shown.contains("https://a/"), "{shown}");
    }

    fn launch(servers: &Servers, name: &str, input: Value) -> Launch {
        let mut launches = servers.launches(&SessionId::fresh(), &input).into_iter();
        launches.find(|(found, _)| found == name).unwrap().1
    }

    #[test]
    fn a_server_inherits_only_path_and_home() {
        let servers = parse(json!({"a": {
            "command": "npx",
            "args": ["-y", "--token=${env:TOKEN}!"],
            "env": {"KEY": "${env:TOKEN}", "PLAIN": "x"},
        }}))
        .unwrap();
        let Launch::Program(launch) = launch(&servers, "a", json!({})) else { panic!("a program") };
        assert_eq!(launch.args[1].value, "--token=hunter2-hunter2!");
        let env: Vec<_> = launch.env.iter().map(|(k, v)| (k.as_str(), v.value.as_str())).collect();
        assert_eq!(env, [("KEY", "hunter2-hunter2"), ("PATH", "/usr/bin"), ("PLAIN", "x")]);
    }

    #[test]
    fn secrets_are_never_shown() {
        let servers = parse(json!({"a": {
            "command": "npx", "args": ["${env:TOKEN}"],
            "env": {"KEY": "${env:TOKEN}", "LITERAL": "sesame"},
        }}))
        .unwrap();
        let shown = format!("{servers:?} {:#?}", launch(&servers, "a", json!({})));
        assert!(!shown.contains("hunter2") && !shown.contains("sesame"), "{shown}");
        assert!(shown.contains("${env:TOKEN}") && shown.contains("LITERAL"), "{shown}");
    }

    fn check(entry: Value, expected: &str) {
        let error = parse(json!({ "a": entry })).unwrap_err().to_string();
        assert_eq!(error, expected);
        assert!(!error.contains("sesame"));
    }

    #[test]
    fn an_error_about_origins_names_what_is_wrong() {
        let url = "http://127.0.0.1/mcp";
        check(
            json!({"url": url, "origins": ["sesame"]}),
            "server `a`: `origins` must be an object with names",
        );
        check(
            json!({"url": url, "origins": {"pay": {"": ["person"]}}}),
            "server `a`: `origins.pay` must be an object with names",
        );
        for words in
            [json!([]), json!("person"), json!(["person", "sesame"]), json!(["undetermined"])]
        {
            check(
                json!({"url": url, "origins": {"pay": {"to": words}}}),
                "server `a`: `origins.pay.to` must be a list of `person`, `input`, `program`, \
                 `tool` or `model`",
            );
        }
    }

    #[test]
    fn an_error_names_server_and_field_and_never_quotes_a_value() {
        check(json!("sesame"), "server `a`: `entry` must be an object");
        check(json!({}), "server `a`: `command` or `url` is missing");
        check(json!({"command": ""}), "server `a`: `command` is empty");
        check(json!({"command": "x", "cwd": "sesame"}), "server `a`: `cwd` is not a known field");
        check(
            json!({"command": "x", "args": "sesame"}),
            "server `a`: `args` must be a list of strings",
        );
        check(json!({"command": "x", "args": ["y", 1]}), "server `a`: `args[1]` must be a string");
        check(json!({"command": "x", "env": ["sesame"]}), "server `a`: `env` must be an object");
        check(json!({"command": "x", "env": {"K": true}}), "server `a`: `env.K` must be a string");
        check(
            json!({"command": "x", "env": {"A=B": "sesame"}}),
            "server `a`: `env` contains an invalid variable name",
        );
        check(
            json!({"command": "x", "headers": {}}),
            "server `a`: `headers` needs `url`, which is missing",
        );
        check(
            json!({"command": "x", "env": {"K": "${env:GONE}"}}),
            "server `a`: `env.K` needs the environment variable `GONE`, which is not set",
        );
        check(
            json!({"command": "x", "args": ["${ssm:/key}"]}),
            "server `a`: `args[0]` needs the SSM parameter `/key`, which was not read",
        );
        let url = "http://127.0.0.1/mcp";
        check(
            json!({"url": url, "headers": {"A": "${mcp-api-key}"}}),
            "server `a`: `headers.A` needs the SSM parameter `/incident-response/mcp-api-key`, \
             which was not read",
        );
        check(json!({"url": url, "args": []}), "server `a`: `args` cannot be combined with `url`");
        check(json!({"url": 1}), "server `a`: `url` must be a string");
        check(
            json!({"url": "sesame"}),
            "server `a`: `url` must be an address such as https://tools.example/mcp",
        );
        check(
            json!({"url": url, "transport": "sesame"}),
            "server `a`: `transport` must be `http` or `sse`",
        );
        check(json!({"url": url, "headers": []}), "server `a`: `headers` must be an object");
        check(
            json!({"url": url, "headers": {"Host": "sesame"}}),
            "server `a`: `headers.Host` is set by the protocol",
        );
        check(
            json!({"url": url, "headers": {"X": "a\nsesame"}}),
            "server `a`: `headers.X` contains a line break or a control character",
        );
        check(
            json!({"url": url, "critical": ["pay", 1]}),
            "server `a`: `critical` must be a list of tool names",
        );
        check(json!({"command": "${env:TOKEN"}), "server `a`: `command` contains `${` without `}`");
        check(
            json!({"command": "${sesame}"}),
            "server `a`: `command` contains a reference other than `${env:NAME}`, `${ssm:NAME}` or `${mcp-api-key}`",
        );
    }

    #[test]
    fn a_file_of_another_form_is_refused() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Servers::parse(text, environment).unwrap_err().to_string(), expected);
        };
        check("{\n \"sesame", "invalid JSON at line 2, column 8");
        check("[]", "`the file` must be an object");
        check("{}", "`mcpServers` must be an object");
        check(r#"{"mcpServers": 1}"#, "`mcpServers` must be an object");
        check(r#"{"mcpServers": {}, "x": 1}"#, "`x` is not a known field");
        check(
            r#"{"mcpServers": {"daybook": {"command": "x"}}}"#,
            "server `daybook`: `name` is empty or reserved",
        );
    }
}
