//! An incident folder: saved AWS CLI output, one file per call.
//!
//! The folder is untrusted. The server never follows links or arguments out of it, limits the size of
//! every read, and treats a missing or invalid file as a refused call.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use tokio::io::AsyncReadExt;

use super::answer;
use super::call::Call;
use super::function_name::FunctionName;
use super::refusal::{Reason, Refusal, RefusedCall};

/// Most functions in an error message.
const FUNCTIONS_NAMED_MAX: usize = 20;

/// Most entries of the functions folder that are read for an error message.
const FUNCTIONS_SEEN_MAX: usize = 1_000;

#[derive(Debug)]
pub(super) struct Snapshot {
    /// Canonical, for comparison with the paths of files.
    folder: PathBuf,
}

impl Snapshot {
    /// Opens a folder. Blocks, because it runs once before serving.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        if !folder.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { folder })
    }

    /// Refuses an unknown function.
    pub(super) async fn knows(&self, name: &FunctionName) -> Result<(), Refusal> {
        match tokio::fs::metadata(self.function(name)).await {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            _ => {
                let present = self.functions().await;
                Err(Refusal::NoSuchFunction { asked: name.clone(), present })
            }
        }
    }

    /// The folder's functions, the first few by name.
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

    /// Reads the response of a call.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        name: &FunctionName,
        call: Call<'_>,
    ) -> Result<T, RefusedCall> {
        let path = self.function(name).join(call.file());
        let bytes = self.bytes(&path, call.bytes_max()).await;
        let whole = |bytes: Vec<u8>| {
            let is_empty = call.may_be_empty() && bytes.trim_ascii().is_empty();
            if is_empty { b"{}".to_vec() } else { bytes }
        };
        bytes
            .and_then(|bytes| answer::parse(&whole(bytes)))
            .map_err(|reason| RefusedCall::saved(name, call, reason))
    }

    /// The folder of a function, which may not exist.
    pub(super) fn function(&self, name: &FunctionName) -> PathBuf {
        self.folder.join("functions").join(name.as_str())
    }

    /// Reads a regular file in the folder of at most this size.
    async fn bytes(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, Reason> {
        let path = tokio::fs::canonicalize(path).await?;
        if !path.starts_with(&self.folder) {
            return Err(Reason::Outside);
        }
        if !tokio::fs::metadata(&path).await?.is_file() {
            return Err(Reason::NotAFile);
        }
        let mut bytes = Vec::new();
        let opened = tokio::task::spawn_blocking(move || files::read::regular(&path)).await;
        let file = tokio::fs::File::from_std(opened.map_err(io::Error::other)??);
        // One byte more than allowed, to detect a larger file.
        file.take(bytes_max + 1).read_to_end(&mut bytes).await?;
        if bytes.len() as u64 > bytes_max {
            return Err(Reason::TooLarge { bytes_max });
        }
        Ok(bytes)
    }
}
