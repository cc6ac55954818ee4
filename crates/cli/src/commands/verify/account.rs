//! Verifies sessions of an account's journal against its log of sessions and their executions.

use std::collections::BTreeSet;

use journal::dynamo::DynamoStore;
use journal::id::SessionId;
use journal::item::Hash;
use journal::listing;
use journal::log::table::TableLog;
use journal::log::{Extract, Judged, SessionLog as _, Trust};
use journal::receipt;
use journal::verify::{self, Anchor, Anchors, Report};
use stack::checkpoints::{Audit, KmsKey, LogKey as _, Read};
use stack::executions;
use stack::store::Journal;
use tlog::key::VerifierKey;

use super::{Told, Whole, read_note, trust};
use crate::commands::cloud::Clients;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::{self, Reader};
use crate::resolve::{Checks, Context};

/// The log of an account's table.
pub(super) fn log(reader: &Reader) -> Result<TableLog<DynamoStore>, Failure> {
    match &reader.store {
        Journal::There(store) => Ok(TableLog::new(store.clone())),
        Journal::Here(_) => Err(Failure::unknown("the journal is a local one")),
    }
}

/// The public key of an account's log, from AWS KMS.
///
/// # Errors
/// When the account has no such key, or the caller may not read it.
pub(in crate::commands) async fn public_key(context: &Context) -> Result<VerifierKey, Failure> {
    let aws = aws_config::load_defaults(aws_config::BehaviorVersion::latest()).await;
    let named = crate::outputs::named(&context.cloud, &aws).await?;
    let (Some(key), Some(table)) = (named.log_key, named.table) else {
        let problem = format!("{} is not set", workflow::env::JOURNAL_LOG_KEY);
        return Err(
            Failure::usage(problem).hint("set it from the outputs of the stack: see DEPLOYMENT.md")
        );
    };
    KmsKey::new(&aws, key, table).public().await.map_err(|error| {
        Failure::unknown(error.to_string()).hint("this requires kms:GetPublicKey on the key")
    })
}

/// An account's journal, and what its sessions are held against.
pub(super) struct Account<'a> {
    context: &'a Context,
    reader: &'a Reader,
    log: TableLog<DynamoStore>,
    trust: Trust,
    audit: Audit,
}

impl<'a> Account<'a> {
    /// Compares the log with its newest checkpoint, and with an older one. Without `--key`, the key of the account's stack
    /// counts.
    pub(super) async fn open(
        context: &'a Context,
        reader: &'a Reader,
        checks: &Checks,
    ) -> Result<Self, Failure> {
        let older = checks.checkpoint.as_deref().map(read_note).transpose()?;
        let mut trust = trust(checks)?;
        let log = log(reader)?;
        let has_log = log.log().await.is_ok_and(|state| state.is_some());
        if trust.log.is_empty() && has_log {
            match public_key(context).await {
                Ok(key) => trust.log.push(key),
                Err(error) => output::say(&format!("the log's key is unknown: {error}")),
            }
        }
        let audit = Audit::of(&log, None, older.as_deref(), &trust).await;
        Ok(Self { context, reader, log, trust, audit })
    }

    /// `None` if there is neither a record nor a leaf of the session.
    pub(super) async fn report(
        &self,
        id: &SessionId,
        given: &[Hash],
    ) -> Result<Option<Report>, Failure> {
        // Before the records: a verdict is durable before an execution holds its hash.
        let (executed, unmet) = self.executed(id).await?;
        let Read { records, log } = Read::of(&self.reader.store, &self.log, id).await?;
        let log = match log {
            // A log that is gone, although it was asked for or a checkpoint was signed, proves nothing.
            Ok(None) if self.trust.is_required || !self.audit.problems.is_empty() => {
                Some(Extract::default().judge(id, &self.trust))
            }
            Ok(None) => None,
            Ok(Some(extract)) => Some(extract.judge(id, &self.trust)),
            Err(error) => Some(Judged::unreadable(format!("{error:#}"))),
        };
        let log = log.map(|judged| judged.in_account(&self.audit.problems));
        if records.is_empty() && log.as_ref().is_none_or(|log| log.leaves().next().is_none()) {
            return Ok(None);
        }
        let given = given.iter().cloned().map(|head| (Anchor::Given, head));
        let executed = executed.into_iter().map(|head| (Anchor::Execution, head));
        let heads = given.chain(executed).collect();
        // After the records: a receipt is written before its step.
        let receipts = Some(receipt::read(&self.reader.store, id).await?);
        let anchors = Anchors { heads, log, receipts, unmet, ..Anchors::default() };
        Ok(Some(verify::verify(id, &records, &anchors, reader::now())))
    }

    /// The hashes of the session's verdict that its executions have recorded, and why those of an execution that a record
    /// names are unknown.
    async fn executed(&self, id: &SessionId) -> Result<(Vec<Hash>, Vec<String>), Failure> {
        let named = executions::named(&self.reader.store, id).await?;
        match Clients::new(self.context).await.heads(id, &named).await {
            Ok((heads, unmet)) => Ok((heads.into_iter().collect(), unmet)),
            Err(error) if !named.is_empty() => {
                Ok((Vec::new(), vec![format!("its execution cannot be read: {error:#}")]))
            }
            Err(error) => {
                output::say(&format!("no anchor from the execution: {error:#}"));
                Ok((Vec::new(), Vec::new()))
            }
        }
    }

    /// Reads every leaf, and verifies every session that the log names or that is listed.
    pub(super) async fn all(mut self) -> Result<Exit, Failure> {
        self.audit.walk(&self.log).await?;
        let mut sessions = std::mem::take(&mut self.audit.sessions);
        sessions.extend(self.listed().await?);
        // Said once, not of every session.
        let audit = std::mem::take(&mut self.audit);
        let mut whole = Whole::held_against(audit);
        for id in &sessions {
            if let Some(report) = self.report(id, &[]).await? {
                whole.add(self.context, id, &report, Told::All)?;
            }
        }
        whole.print(self.context)?;
        Ok(whole.exit())
    }

    async fn listed(&self) -> Result<BTreeSet<SessionId>, Failure> {
        let since = reader::now().before(reader::PREFIX_SEARCHED);
        let most = listing::CANDIDATES_MAX;
        let listed = listing::list(&self.reader.store, since, reader::latest(), most).await?;
        let days = workflow::limits::TTL_DAYS;
        output::say(&format!(
            "sessions that the log does not name were looked for among the newest {most} of the last {days} days"
        ));
        Ok(listed.into_iter().map(|listed| listed.session).collect())
    }
}
