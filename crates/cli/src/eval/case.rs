//! The cases of an evaluation: a folder with `case.json`, or a file `NAME.json`, each.

use std::fs;
use std::path::{Path, PathBuf};

use extension::Extension;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::args::Target;
use crate::failure::Failure;
use crate::input;

/// The file of a case that is a folder.
const CASE_FILE: &str = "case.json";

/// The file that [`super::baseline`] writes beside the cases.
const BASELINE_FILE: &str = "baseline.json";

/// Largest file of a case, in bytes; a larger one is an invalid case.
const CASE_BYTES_MAX: u64 = 1024 * 1024;

/// The outcome of a run. The first three are the values of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Looked at, and fine.
    Fine,
    /// Looked at, and not fine.
    NotFine,
    /// Not looked at, not understood or not judged.
    Open,
    /// The session did not succeed.
    Failed,
    /// A question is open.
    Asked,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::NotFine => "not_fine",
            Self::Open => "open",
            Self::Failed => "failed",
            Self::Asked => "asked",
        }
    }
}

/// A case.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    folder: PathBuf,
    /// Whether its folder holds only this case.
    has_folder: bool,
    written: Written,
}

/// A case, as its file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    about: String,
    from: String,
    input: Option<Value>,
    #[serde(default)]
    trigger: Map<String, Value>,
    #[serde(default)]
    answers: Vec<Map<String, Value>>,
    /// Whether every call that is asked about is approved; then `answers` are for the other questions.
    #[serde(default)]
    approves: bool,
    transcript: Option<PathBuf>,
    expect: Expect,
    #[serde(default)]
    required_calls: Vec<Call>,
    #[serde(default)]
    forbidden_calls: Vec<Call>,
    #[serde(default)]
    budget: Budget,
}

/// What a run must conclude.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    pub verdict: Some1<Verdict>,
    /// The agent's own word; any if empty.
    #[serde(default)]
    pub word: Some1<String>,
    #[serde(default)]
    pub result: Vec<Check>,
    #[serde(default)]
    pub says: Vec<String>,
    #[serde(default)]
    pub never_says: Vec<String>,
}

/// A check on the result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// A JSON pointer.
    pub at: String,
    #[serde(default, deserialize_with = "given")]
    pub equals: Option<Value>,
    #[serde(default)]
    pub contains: Some1<String>,
    #[serde(default)]
    pub lacks: Some1<String>,
    #[serde(default)]
    pub includes: Some1<Value>,
}

/// `null` is a value, too.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl Check {
    fn is_empty(&self) -> bool {
        self.equals.is_none()
            && self.contains.all().is_empty()
            && self.lacks.all().is_empty()
            && self.includes.all().is_empty()
    }
}

/// A value, or a list of them.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected one of the known values, or a list of them")]
pub enum Some1<T> {
    Many(Vec<T>),
    One(T),
}

impl<T> Default for Some1<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<T> Some1<T> {
    pub fn all(&self) -> &[T] {
        match self {
            Self::Many(many) => many,
            Self::One(one) => std::slice::from_ref(one),
        }
    }
}

/// A tool call, or those that match: the name, and some of the arguments.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Call {
    Named(String),
    With(CallWith),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallWith {
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

impl Call {
    pub fn tool(&self) -> &str {
        match self {
            Self::Named(tool) | Self::With(CallWith { tool, .. }) => tool,
        }
    }

    pub fn matches(&self, tool: &str, arguments: &Value) -> bool {
        let wanted = match self {
            Self::Named(_) => None,
            Self::With(with) => Some(&with.arguments),
        };
        let mut wanted = wanted.into_iter().flatten();
        self.tool() == tool && wanted.all(|(name, value)| arguments.get(name) == Some(value))
    }
}

/// The most that a run may use.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    pub tokens: Option<u64>,
    pub calls: Option<u64>,
    pub seconds: Option<f64>,
    pub usd: Option<f64>,
}

impl Case {
    /// All cases of a folder, by name.
    ///
    /// # Errors
    /// When the folder cannot be read or has no case, or a case is invalid. Names every invalid case.
    pub fn all(folder: &Path) -> Result<Vec<Self>, Failure> {
        let unreadable =
            |error| Failure::usage(format!("cannot read {}: {error}", folder.display()));
        let folder = folder.canonicalize().map_err(unreadable)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            files.extend(case_file(&entry.map_err(unreadable)?.path()));
        }
        files.sort();
        let (mut cases, mut problems) = (Vec::new(), Vec::new());
        for file in &files {
            match Self::read(file) {
                Ok(case) => cases.push(case),
                Err(problem) => problems.push(format!("{}: {problem}", file.display())),
            }
        }
        if problems.is_empty() && !cases.is_empty() {
            return Ok(cases);
        }
        if problems.is_empty() {
            problems.push(format!("{} has no cases", folder.display()));
        }
        Err(Failure::usage(problems.join("\n")).hint("docs/eval.md has the format of a case"))
    }

    fn read(file: &Path) -> Result<Self, String> {
        let size = fs::metadata(file).map_err(|error| error.to_string())?.len();
        if size > CASE_BYTES_MAX {
            return Err(format!("larger than {CASE_BYTES_MAX} bytes"));
        }
        let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
        let written: Written = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        written.check()?;
        let has_folder = file.file_name().is_some_and(|name| name == CASE_FILE);
        let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
        let named = if has_folder { folder.file_name() } else { file.file_stem() };
        let name = named.unwrap_or_default().to_string_lossy().into_owned();
        let case = Self { name, folder, has_folder, written };
        if case.written.input.is_none() && !case.has_folder {
            return Err(
                "`input` is missing; only a folder with case.json is its own input".to_owned()
            );
        }
        Ok(case)
    }

    pub fn expect(&self) -> &Expect {
        &self.written.expect
    }

    pub fn budget(&self) -> &Budget {
        &self.written.budget
    }

    pub fn required_calls(&self) -> &[Call] {
        &self.written.required_calls
    }

    pub fn forbidden_calls(&self) -> &[Call] {
        &self.written.forbidden_calls
    }

    /// The answer to a question, after `used` of its answers were given; and whether it is one of those.
    pub fn answer(&self, is_about_call: bool, used: usize) -> Option<(Map<String, Value>, bool)> {
        if is_about_call && self.written.approves {
            let approval = [("decision".to_owned(), Value::from("approve"))];
            return Some((approval.into_iter().collect(), false));
        }
        self.written.answers.get(used).map(|answer| (answer.clone(), true))
    }

    /// Its recording.
    pub fn transcript(&self) -> Option<PathBuf> {
        self.written.transcript.as_ref().map(|file| self.folder.join(file))
    }

    /// The trigger's detail, without agent, model and deduplication key.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn detail(&self, extensions: &[Extension]) -> Result<Map<String, Value>, Failure> {
        let mut detail = self.written.trigger.clone();
        let read = |path: &Path| input::read(path, Target::Local, extensions);
        match &self.written.input {
            None => detail.extend(read(&self.folder)?),
            Some(Value::String(path)) => detail.extend(read(&self.folder.join(path))?),
            Some(object) => {
                let mut object = object.clone();
                self.make_absolute(&mut object);
                detail.insert("input".to_owned(), object);
            }
        }
        Ok(detail)
    }

    /// Resolves texts that start with `./` or `../` in an input.
    fn make_absolute(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.starts_with("./") || text.starts_with("../") => {
                let path = self.folder.join(&*text);
                let path = path.canonicalize().unwrap_or(path);
                *text = path.to_string_lossy().into_owned();
            }
            Value::Array(elements) => elements.iter_mut().for_each(|e| self.make_absolute(e)),
            Value::Object(members) => members.values_mut().for_each(|m| self.make_absolute(m)),
            _ => {}
        }
    }
}

/// The file of a case at this path in the folder of cases, if there is one.
fn case_file(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.join(CASE_FILE)).filter(|file| file.is_file());
    }
    let is_case = path.extension().is_some_and(|extension| extension == "json")
        && path.file_name().is_some_and(|name| name != BASELINE_FILE);
    is_case.then(|| path.to_owned())
}

impl Written {
    fn check(&self) -> Result<(), String> {
        for (name, text) in [("about", &self.about), ("from", &self.from)] {
            if text.trim().is_empty() {
                return Err(format!("`{name}` is empty"));
            }
        }
        if self.expect.verdict.all().is_empty() {
            return Err("`expect.verdict` is empty".to_owned());
        }
        match self.input {
            None | Some(Value::String(_) | Value::Object(_)) => {}
            Some(_) => return Err("`input` must be an object or a path".to_owned()),
        }
        for check in &self.expect.result {
            if check.is_empty() {
                let at = &check.at;
                return Err(format!(
                    "the check at `{at}` has none of equals, contains, lacks, includes"
                ));
            }
            if !check.at.is_empty() && !check.at.starts_with('/') {
                return Err(format!("`{}` is no JSON pointer: it starts with /", check.at));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A case in a temporary folder.
    pub(in crate::eval) fn case(patch: &Value) -> Case {
        let folder = written(patch);
        Case::all(folder.path()).unwrap().remove(0)
    }

    fn written(patch: &Value) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut case =
            json!({"about": "a", "from": "f", "input": {}, "expect": {"verdict": "open"}});
        for (name, value) in patch.as_object().unwrap() {
            case[name] = value.clone();
        }
        fs::write(folder.path().join("one.json"), case.to_string()).unwrap();
        folder
    }

    fn refused(patch: Value) -> String {
        let folder = written(&patch);
        Case::all(folder.path()).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelled_expectation_is_refused() {
        for (patch, said) in [
            (json!({"expects": {}}), "unknown field `expects`"),
            (json!({"expect": {"verdict": "fine", "verdikt": "fine"}}), "unknown field `verdikt`"),
            (json!({"expect": {"verdict": "good"}}), "one of the known values"),
            (json!({"expect": {"verdict": []}}), "`expect.verdict` is empty"),
            (json!({"expect": {"verdict": "open", "result": [{"at": "/a"}]}}), "has none of"),
            (
                json!({"expect": {"verdict": "open", "result": [{"at": "a", "equals": 1}]}}),
                "JSON pointer",
            ),
            (json!({"from": " "}), "`from` is empty"),
            (json!({"input": 5}), "`input` must be an object or a path"),
            (json!({"forbidden_calls": [{"tol": "x"}]}), "did not match"),
        ] {
            let refusal = refused(patch.clone());
            assert!(refusal.contains(said), "{patch}: {refusal}");
        }
    }

    #[test]
    fn folders_and_files_are_cases_and_the_baseline_is_none() {
        let folder = written(&json!({}));
        fs::write(folder.path().join("baseline.json"), "{}").unwrap();
        fs::write(folder.path().join("README.md"), "").unwrap();
        fs::create_dir(folder.path().join("two")).unwrap();
        fs::copy(folder.path().join("one.json"), folder.path().join("two/case.json")).unwrap();
        fs::create_dir(folder.path().join("none")).unwrap();
        let cases = Case::all(folder.path()).unwrap();
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
    }

    #[test]
    fn a_path_in_an_input_is_relative_to_its_case() {
        let folder = written(&json!({"input": {"data": "./one.json", "text": "up ../ there"}}));
        let case = Case::all(folder.path()).unwrap().remove(0);
        let input = case.detail(&[]).unwrap().remove("input").unwrap();
        let expected = folder.path().canonicalize().unwrap().join("one.json");
        assert_eq!(input["data"], expected.to_str().unwrap());
        assert_eq!(input["text"], "up ../ there");
    }

    #[test]
    fn a_folder_without_cases_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Case::all(folder.path()).unwrap_err().to_string().contains("has no cases"));
        let gone = folder.path().join("gone");
        assert!(Case::all(&gone).unwrap_err().to_string().contains("cannot read"));
    }
}
