//! Where the answers come from.

use super::answer::RecentLogs;
use super::function_name::FunctionName;
use super::refusal::Refusal;
use super::response::{IamStateResponse, LambdaConfigResponse};
use super::snapshot::Snapshot;

/// Where the answers come from. An enum and no trait: which one is chosen when the server
/// starts, and each is known here.
#[derive(Debug)]
pub(super) enum Source {
    /// An incident folder, so that an incident can be diagnosed without an account.
    Snapshot(Snapshot),
}

impl Source {
    pub(super) async fn recent_logs(&self, name: &FunctionName) -> Result<RecentLogs, Refusal> {
        match self {
            Self::Snapshot(folder) => folder.recent_logs(name).await,
        }
    }

    pub(super) async fn iam_state(&self, name: &FunctionName) -> Result<IamStateResponse, Refusal> {
        match self {
            Self::Snapshot(folder) => folder.iam_state(name).await,
        }
    }

    pub(super) async fn lambda_config(
        &self,
        name: &FunctionName,
    ) -> Result<LambdaConfigResponse, Refusal> {
        match self {
            Self::Snapshot(folder) => folder.lambda_config(name).await,
        }
    }
}
