//! Checkpoints of the log of sessions in an account's table: how far it has grown, signed.

use journal::log::table::TableLog;
use journal::log::{SessionLog as _, walk};
use journal::store::{self, Transact};
use serde::Serialize;
use serde_json::Value;
use tlog::checkpoint::{Checkpoint, SignedCheckpoint};
use tlog::key::{Verifier as _, VerifierKey};
use tlog::note::Signature;
use tlog::tree::TreeHead;

use crate::Error;

/// A key that is kept elsewhere and signs for one log.
pub trait LogKey: Send + Sync {
    /// The public key, which has the log's name.
    ///
    /// # Errors
    /// It cannot be read.
    fn public(&self) -> impl Future<Output = Result<VerifierKey, Error>> + Send;

    /// The signature of a text.
    ///
    /// # Errors
    /// The key does not sign.
    fn sign(&self, text: &str) -> impl Future<Output = Result<Vec<u8>, Error>> + Send;
}

/// Signs the log of sessions of a table.
#[derive(Clone, Debug)]
pub struct Checkpoints<S, K> {
    log: TableLog<S>,
    key: K,
}

/// A new checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Signed {
    /// The name of its copy. It sorts by size, and two histories of one size have two names.
    pub name: String,
    /// The signed note.
    pub note: String,
}

/// Whether an event asks for a checkpoint.
pub fn is_request(event: &Value) -> bool {
    event.get("checkpoint").is_some()
}

impl<S: Transact, K: LogKey> Checkpoints<S, K> {
    pub fn new(store: S, key: K) -> Self {
        Self { log: TableLog::new(store), key }
    }

    /// Signs the log if it has grown since the last checkpoint, and stores the new one. Idempotent.
    ///
    /// # Errors
    /// The log does not continue the last checkpoint, or that one is not signed by this key; or the table or the key cannot
    /// be used.
    pub async fn sign(&self) -> Result<Option<Signed>, Error> {
        // Before the log is read: a checkpoint that is stored meanwhile may be of a longer one.
        let kept = self.log.log().await.map_err(of_log)?.and_then(|state| state.checkpoint);
        let head = self.log.advance().await.map_err(of_log)?;
        if head.size == 0 && kept.is_none() {
            return Ok(None);
        }
        let key = self.key.public().await?;
        if let Some(kept) = kept {
            let kept = trusted(&kept, &key)?;
            if let Some(problem) = walk::continues(&self.log, &kept, &head).await? {
                return Err(damaged(problem));
            }
            if kept == head {
                return Ok(None);
            }
        }
        let origin = key.name().as_str().parse().map_err(damaged)?;
        let checkpoint = Checkpoint::new(origin, head);
        let signature = self.key.sign(&checkpoint.to_string()).await?;
        let signature =
            Signature::new(&key, &checkpoint.to_string(), signature).map_err(damaged)?;
        let note = SignedCheckpoint::new(checkpoint, signature).map_err(damaged)?.to_string();
        self.log.put_checkpoint(head.size, note.clone()).await?;
        Ok(Some(Signed { name: name(&head), note }))
    }
}

/// The head that a checkpoint states, if the key has signed it.
fn trusted(note: &str, key: &VerifierKey) -> Result<TreeHead, Error> {
    let unlike = |error: &dyn std::error::Error| {
        damaged(format!("the last checkpoint is not of this log's key: {error}"))
    };
    let signed = SignedCheckpoint::parse(note.as_bytes()).map_err(|error| unlike(&error))?;
    let origin = key.name().as_str().parse().map_err(damaged)?;
    signed.verify(&origin, std::slice::from_ref(key)).map_err(|error| unlike(&error))?;
    Ok(signed.checkpoint().head())
}

fn name(head: &TreeHead) -> String {
    // Bytes in hexadecimal: the root's base64 has slashes.
    let root: String = head.root.as_bytes()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{:020}-{root}", head.size)
}

fn damaged(problem: impl ToString) -> Error {
    Error::Log(problem.to_string())
}

/// The reason why a log cannot be read, where it is damaged.
fn of_log(error: store::Error) -> Error {
    match error {
        store::Error::Corrupt(problem) => damaged(problem),
        other => other.into(),
    }
}
