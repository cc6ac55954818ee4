//! Records an AWS account's responses as an incident folder.
//!
//! The first tool call for a function makes all AWS calls and writes their responses atomically. Every
//! tool reads the files, so clients and the folder agree, and a folder never has part of a function.
//! Existing responses are never overwritten: an incident is a moment.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::sync::Mutex;

use super::call::{Call, Subject};
use super::function_name::FunctionName;
use super::live::{Function, Live};
use super::refusal::{Reason, Refusal, RefusedCall};
use super::saved::RolePolicies;
use super::snapshot::Snapshot;
use super::source::{INLINE_POLICIES_MAX, is_policy_name};

/// The incident; in a recording, only the name of the first function.
const INCIDENT: &str = "incident.json";

const FUNCTIONS: &str = "functions";

/// The folder of an incomplete function. No function's name has a dot.
const PARTIAL: &str = ".partial";

#[derive(Debug)]
pub(super) struct Recording {
    live: Live,
    folder: Snapshot,
    path: PathBuf,
    /// Serializes writes of functions.
    writing: Mutex<()>,
}

/// A call's file, relative to the function's folder, and its content.
type Answer = (String, Vec<u8>);

impl Recording {
    /// Opens or creates a folder. Blocks, because it runs once before serving.
    ///
    /// # Errors
    /// When it cannot be created or has files of something else.
    pub(super) fn open(live: Live, path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            if name != INCIDENT && name != FUNCTIONS && name != PARTIAL {
                let found = format!("it holds {}", name.display());
                return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, found));
            }
        }
        fs::create_dir_all(path.join(FUNCTIONS))?;
        let folder = Snapshot::open(path)?;
        Ok(Self { live, folder, path: path.canonicalize()?, writing: Mutex::new(()) })
    }

    /// The folder, after recording this function.
    ///
    /// # Errors
    /// When the account has no such function, a call has no response, or the responses cannot be
    /// written. The folder is then unchanged.
    pub(super) async fn folder_with(&self, name: &FunctionName) -> Result<&Snapshot, Refusal> {
        let _one = self.writing.lock().await;
        if self.folder.knows(name).await.is_err() {
            let answers = answers(&self.live.function(name)).await?;
            let (path, name) = (self.path.clone(), name.clone());
            let function = format!("{FUNCTIONS}/{name}");
            let written = tokio::task::spawn_blocking(move || write(&path, &name, &answers)).await;
            written
                .unwrap_or_else(|error| Err(io::Error::other(error)))
                .map_err(|error| Refusal::NotRecorded { file: function, error })?;
        }
        Ok(&self.folder)
    }
}

/// AWS's response to every call about a function. A refusal is recorded as the AWS CLI prints it.
async fn answers(function: &Function<'_>) -> Result<Vec<Answer>, Refusal> {
    // The other calls need the configuration, and it fails if there is no such function.
    let configuration = function.fetch(Call::GetFunctionConfiguration).await?;
    let mut answers = vec![(Call::GetFunctionConfiguration.file(), configuration)];
    for call in [
        Call::GetFunctionConcurrency,
        Call::FilterLogEvents,
        Call::GetRole,
        Call::ListRolePolicies,
        Call::ListAttachedRolePolicies,
        Call::DescribeSecurityGroupRules,
        Call::LookupEvents(Subject::Function),
        Call::LookupEvents(Subject::Role),
        Call::LookupEvents(Subject::SecurityGroups),
    ] {
        answers.extend(answer(function, call).await?);
    }
    let listed: Option<RolePolicies> = function.ask(Call::ListRolePolicies).await.ok();
    let listed = listed.map(|listed| listed.policy_names).unwrap_or_default();
    for policy in listed.iter().filter(|policy| is_policy_name(policy)).take(INLINE_POLICIES_MAX) {
        answers.extend(answer(function, Call::GetRolePolicy(policy)).await?);
    }
    Ok(answers)
}

async fn answer(function: &Function<'_>, call: Call<'_>) -> Result<Option<Answer>, RefusedCall> {
    match function.fetch(call).await {
        Ok(bytes) => Ok(Some((call.file(), bytes))),
        Err(RefusedCall { reason: Reason::RefusedByAws(text), .. }) => {
            Ok(Some((call.file(), format!("{text}\n").into_bytes())))
        }
        // An endpoint may lack a whole service, such as CloudTrail.
        Err(RefusedCall { reason: Reason::Unanswered(_), .. }) if call.is_optional() => Ok(None),
        Err(refused @ RefusedCall { reason: Reason::Unanswered(_), .. }) => Err(refused),
        // An unusable response is not recorded, so its call fails in the same way.
        Err(_) => Ok(None),
    }
}

/// Writes a function's folder, then moves it into place once it is complete and on disk.
fn write(path: &Path, name: &FunctionName, answers: &[Answer]) -> io::Result<()> {
    let partial = path.join(PARTIAL);
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    fs::create_dir(&partial)?;
    let whole = partial.join(name.as_str());
    for (file, bytes) in answers {
        let file = whole.join(file);
        let folder = file.parent().unwrap_or(&whole);
        fs::create_dir_all(folder)?;
        durable(&file, bytes)?;
        sync(folder)?;
    }
    sync(&whole)?;
    if !path.join(INCIDENT).exists() {
        let message = format!("{:#}\n", json!({"lambda_name": name.as_str()}));
        durable(&partial.join(INCIDENT), message.as_bytes())?;
        fs::rename(partial.join(INCIDENT), path.join(INCIDENT))?;
    }
    fs::rename(&whole, path.join(FUNCTIONS).join(name.as_str()))?;
    sync(&path.join(FUNCTIONS))?;
    fs::remove_dir(&partial)?;
    sync(path)
}

fn durable(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(file)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_function_is_recorded_whole_after_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir_all(path.join(FUNCTIONS)).unwrap();
        fs::create_dir_all(path.join(PARTIAL).join("data-processor/role")).unwrap();
        let answers = [
            ("get-function-concurrency.json".to_owned(), b"{}".to_vec()),
            ("role/get-role.json".to_owned(), b"{}".to_vec()),
        ];
        for name in ["data-processor", "data-archiver"] {
            let name = FunctionName::try_from(name.to_owned()).unwrap();
            write(path, &name, &answers).unwrap();
        }
        assert_eq!(names(path), [FUNCTIONS, INCIDENT]);
        assert_eq!(names(&path.join(FUNCTIONS)), ["data-archiver", "data-processor"]);
        let function = path.join(FUNCTIONS).join("data-processor");
        assert_eq!(names(&function), ["get-function-concurrency.json", "role"]);
        let incident = fs::read_to_string(path.join(INCIDENT)).unwrap();
        assert!(incident.contains("data-processor"), "{incident}");
    }
}
