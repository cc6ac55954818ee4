//! An incident folder: saved AWS CLI output, one file a call.
//!
//! The folder may come from anybody. Nothing outside of it is read, whatever a link in it or an
//! argument says; nothing in it is read beyond a bound; and a file that is missing or wrong is
//! what a refused call would be.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use tokio::io::AsyncReadExt;

use super::answer::{self, RecentLogs};
use super::function_name::FunctionName;
use super::refusal::{Reason, Refusal, RefusedCall};
use super::response::{IamStateResponse, LambdaConfigResponse};
use super::saved::{LoggingConfiguration, RolePolicies, RolePolicy};

/// Largest file of log events, in bytes. An hour of a busy function is well below.
const LOGS_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Largest other file, in bytes. The largest that AWS can give is a role's inline policies,
/// 10,240 characters for all of them, and the CLI's indentation triples it at worst.
///
/// Source: AWS, "IAM and AWS STS quotas", role inline policies.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Most inline policies that are read of one role. With [`FILE_BYTES_MAX`] it keeps an answer
/// below the 4 MiB that a session may journal in one step.
const INLINE_POLICIES_MAX: usize = 50;

/// Longest name of an inline policy, in characters.
///
/// Source: IAM API reference, `GetRolePolicy`, PolicyName.
const POLICY_NAME_CHARS_MAX: usize = 128;

/// Most functions that a refusal names.
const FUNCTIONS_NAMED_MAX: usize = 20;

/// Most entries of the functions folder that are looked at to name them.
const FUNCTIONS_SEEN_MAX: usize = 1_000;

/// An incident folder.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// Canonical, so that a file can be held against it.
    folder: PathBuf,
}

/// An AWS call and where its answer is saved, relative to the function's folder.
struct Call<'a> {
    call: &'static str,
    file: &'a str,
    bytes_max: u64,
}

const FILTER_LOG_EVENTS: Call<'_> = Call {
    call: "logs:FilterLogEvents",
    file: "filter-log-events.json",
    bytes_max: LOGS_BYTES_MAX,
};
const GET_FUNCTION_CONFIGURATION: Call<'_> =
    Call::new("lambda:GetFunctionConfiguration", "get-function-configuration.json");
const GET_FUNCTION_CONCURRENCY: Call<'_> =
    Call::new("lambda:GetFunctionConcurrency", "get-function-concurrency.json");
const GET_ROLE: Call<'_> = Call::new("iam:GetRole", "role/get-role.json");
const LIST_ROLE_POLICIES: Call<'_> =
    Call::new("iam:ListRolePolicies", "role/list-role-policies.json");
const LIST_ATTACHED_ROLE_POLICIES: Call<'_> =
    Call::new("iam:ListAttachedRolePolicies", "role/list-attached-role-policies.json");
const GET_ROLE_POLICY: &str = "iam:GetRolePolicy";

impl<'a> Call<'a> {
    const fn new(call: &'static str, file: &'a str) -> Self {
        Self { call, file, bytes_max: FILE_BYTES_MAX }
    }

    /// This call on this function gave no answer.
    fn refused(&self, name: &FunctionName, reason: Reason) -> RefusedCall {
        RefusedCall { call: self.call, file: format!("functions/{name}/{}", self.file), reason }
    }
}

impl Snapshot {
    /// Opens a folder. Blocks, for it is done once, before anything is served.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        if !folder.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { folder })
    }

    /// The function's newest log events.
    pub(super) async fn recent_logs(&self, name: &FunctionName) -> Result<RecentLogs, Refusal> {
        self.knows(name).await?;
        let saved = self.read(name, &FILTER_LOG_EVENTS).await?;
        // Only to learn a log group that is not the default one. Where it cannot be read, its
        // own tool says so.
        let logging: Option<LoggingConfiguration> =
            self.read(name, &GET_FUNCTION_CONFIGURATION).await.ok();
        answer::recent_logs(answer::log_group(name, logging), saved)
            .map_err(|reason| FILTER_LOG_EVENTS.refused(name, reason).into())
    }

    /// What the function's role may do. All calls are tried, so that a refusal names each that
    /// failed.
    pub(super) async fn iam_state(&self, name: &FunctionName) -> Result<IamStateResponse, Refusal> {
        self.knows(name).await?;
        let role = self.read(name, &GET_ROLE).await;
        let names = self.read(name, &LIST_ROLE_POLICIES).await;
        let attached = self.read(name, &LIST_ATTACHED_ROLE_POLICIES).await;
        let mut refused = Vec::new();
        let mut policies = Vec::new();
        for policy in self.inline_policies(name, names.as_ref().ok()).await {
            match policy {
                Ok(policy) => policies.push(policy),
                Err(refusal) => refused.push(refusal),
            }
        }
        match (role, names, attached) {
            (Ok(role), Ok(names), Ok(attached)) if refused.is_empty() => {
                Ok(answer::iam_state(role, &names, policies, attached))
            }
            (role, names, attached) => {
                let lists = [role.err(), names.err(), attached.err()];
                Err(Refusal::Calls(lists.into_iter().flatten().chain(refused).collect()))
            }
        }
    }

    /// How the function is configured.
    pub(super) async fn lambda_config(
        &self,
        name: &FunctionName,
    ) -> Result<LambdaConfigResponse, Refusal> {
        self.knows(name).await?;
        let configuration = self.read(name, &GET_FUNCTION_CONFIGURATION).await;
        let concurrency = self.read(name, &GET_FUNCTION_CONCURRENCY).await;
        match (configuration, concurrency) {
            (Ok(configuration), Ok(concurrency)) => {
                answer::lambda_config(name, configuration, &concurrency)
                    .map_err(|reason| GET_FUNCTION_CONFIGURATION.refused(name, reason).into())
            }
            (configuration, concurrency) => {
                let calls = [configuration.err(), concurrency.err()];
                Err(Refusal::Calls(calls.into_iter().flatten().collect()))
            }
        }
    }

    /// The documents of the policies that are listed, or why there is none.
    async fn inline_policies(
        &self,
        name: &FunctionName,
        listed: Option<&RolePolicies>,
    ) -> Vec<Result<RolePolicy, RefusedCall>> {
        let listed = listed.map_or(&[][..], |listed| &listed.policy_names);
        if listed.len() > INLINE_POLICIES_MAX {
            let reason = Reason::Malformed(format!(
                "it lists {} policies, more than {INLINE_POLICIES_MAX}",
                listed.len()
            ));
            return vec![Err(LIST_ROLE_POLICIES.refused(name, reason))];
        }
        let mut policies = Vec::new();
        for policy in listed {
            policies.push(self.inline_policy(name, policy).await);
        }
        policies
    }

    async fn inline_policy(
        &self,
        name: &FunctionName,
        policy: &str,
    ) -> Result<RolePolicy, RefusedCall> {
        if !is_policy_name(policy) {
            let policy: String = policy.chars().take(POLICY_NAME_CHARS_MAX).collect();
            let reason = Reason::Malformed(format!("{policy:?} is no policy name"));
            return Err(LIST_ROLE_POLICIES.refused(name, reason));
        }
        let file = format!("role/get-role-policy/{policy}.json");
        let call = Call::new(GET_ROLE_POLICY, &file);
        let saved: RolePolicy = self.read(name, &call).await?;
        match answer::belongs(&saved.policy_name, policy) {
            Ok(()) => Ok(saved),
            Err(reason) => Err(call.refused(name, reason)),
        }
    }

    /// Refuses a function that the folder does not have.
    async fn knows(&self, name: &FunctionName) -> Result<(), Refusal> {
        let folder = self.folder.join("functions").join(name.as_str());
        match tokio::fs::metadata(folder).await {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            _ => {
                let present = self.functions().await;
                Err(Refusal::NoSuchFunction { asked: name.clone(), present })
            }
        }
    }

    /// The functions that the folder has, the first few by name.
    async fn functions(&self) -> Vec<FunctionName> {
        let mut found = Vec::new();
        let Ok(mut entries) = tokio::fs::read_dir(self.folder.join("functions")).await else {
            return found;
        };
        for _ in 0..FUNCTIONS_SEEN_MAX {
            let Ok(Some(entry)) = entries.next_entry().await else { break };
            let name = entry.file_name().into_string().ok().map(FunctionName::try_from);
            if let Some(Ok(name)) = name
                && entry.path().is_dir()
            {
                found.push(name);
            }
        }
        found.sort();
        found.truncate(FUNCTIONS_NAMED_MAX);
        found
    }

    async fn read<T: DeserializeOwned>(
        &self,
        name: &FunctionName,
        call: &Call<'_>,
    ) -> Result<T, RefusedCall> {
        let path = self.folder.join("functions").join(name.as_str()).join(call.file);
        let bytes = self.bytes(&path, call.bytes_max).await;
        bytes.and_then(|bytes| answer::parse(&bytes)).map_err(|reason| call.refused(name, reason))
    }

    /// A file's bytes, if it is a file, in the folder, and no larger than this.
    async fn bytes(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, Reason> {
        let path = tokio::fs::canonicalize(path).await?;
        if !path.starts_with(&self.folder) {
            return Err(Reason::Outside);
        }
        // Before opening it: a pipe without a writer would never open.
        if !tokio::fs::metadata(&path).await?.is_file() {
            return Err(Reason::NotAFile);
        }
        let mut bytes = Vec::new();
        let file = tokio::fs::File::open(&path).await?;
        // One byte more than allowed tells a file that is too large from one that just fits.
        file.take(bytes_max + 1).read_to_end(&mut bytes).await?;
        if bytes.len() as u64 > bytes_max {
            return Err(Reason::TooLarge { bytes_max });
        }
        Ok(bytes)
    }
}

/// Whether IAM would accept it as a policy's name, which also makes it a file's name.
///
/// Source: IAM API reference, `GetRolePolicy`, PolicyName: `[\w+=,.@-]+`.
fn is_policy_name(name: &str) -> bool {
    (1..=POLICY_NAME_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_+=,.@-".contains(&b))
}
