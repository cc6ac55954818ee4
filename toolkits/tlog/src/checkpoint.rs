//! Checkpoints: the size and root of a log as the text of a note, as C2SP tlog-checkpoint has them.

use crate::hash::{Hash, InvalidHash};
use crate::key::Verifier;
use crate::note::{InvalidNote, Note, Signature, Untrusted, Verified};
use crate::tree::TreeHead;
use std::fmt;
use std::str::FromStr;

/// Longest origin, in bytes. Source: C2SP tlog-cosignature, `log_origin` of a `cosigned_message`.
pub const ORIGIN_BYTES_MAX: usize = 255;

/// Why a text is no checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCheckpoint {
    #[error("the checkpoint is no signed note: {0}")]
    Note(#[from] InvalidNote),
    #[error("the checkpoint has {lines} lines, at least 3 are needed")]
    TooShort { lines: usize },
    #[error("the last line of the checkpoint does not end with a newline")]
    Unterminated,
    #[error("the origin is empty, or has a control character")]
    Origin,
    #[error("the origin has {bytes} bytes, {ORIGIN_BYTES_MAX} at most")]
    LongOrigin { bytes: usize },
    #[error("the tree size is not a decimal number of at most 64 bits without leading zeros")]
    Size,
    #[error("the root hash is invalid: {0}")]
    Root(#[from] InvalidHash),
    #[error("extension line {line} is empty, or has a control character")]
    Extension { line: usize },
}

/// The identity of a log, by recommendation a URL without a schema: not empty, and without control
/// characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(String);

impl Origin {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Origin {
    type Err = InvalidCheckpoint;

    fn from_str(text: &str) -> Result<Origin, InvalidCheckpoint> {
        if text.len() > ORIGIN_BYTES_MAX {
            return Err(InvalidCheckpoint::LongOrigin { bytes: text.len() });
        }
        if is_line(text) { Ok(Origin(text.to_owned())) } else { Err(InvalidCheckpoint::Origin) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The state of a log at some time. `Display` writes the text to sign, and `parse` reads it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    origin: Origin,
    head: TreeHead,
    extensions: Vec<String>,
}

impl Checkpoint {
    pub fn new(origin: Origin, head: TreeHead) -> Checkpoint {
        Checkpoint { origin, head, extensions: Vec::new() }
    }

    /// Adds an extension line, which C2SP advises against: nobody audits them.
    ///
    /// # Errors
    ///
    /// If the line is empty or has a control character.
    pub fn with_extension(mut self, line: &str) -> Result<Checkpoint, InvalidCheckpoint> {
        if !is_line(line) {
            return Err(InvalidCheckpoint::Extension { line: self.extensions.len() + 1 });
        }
        self.extensions.push(line.to_owned());
        Ok(self)
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    pub fn head(&self) -> TreeHead {
        self.head
    }

    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}\n{}\n{}", self.origin, self.head.size, self.head.root)?;
        self.extensions.iter().try_for_each(|line| writeln!(out, "{line}"))
    }
}

impl FromStr for Checkpoint {
    type Err = InvalidCheckpoint;

    fn from_str(text: &str) -> Result<Checkpoint, InvalidCheckpoint> {
        let body = text.strip_suffix('\n').ok_or(InvalidCheckpoint::Unterminated)?;
        let mut lines = body.split('\n');
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next())
        else {
            return Err(InvalidCheckpoint::TooShort { lines: body.split('\n').count() });
        };
        let size = parse_decimal(size).ok_or(InvalidCheckpoint::Size)?;
        let head = TreeHead { size, root: root.parse::<Hash>()? };
        lines.try_fold(Checkpoint::new(origin.parse()?, head), Checkpoint::with_extension)
    }
}

/// A checkpoint with at least one signature. `Display` writes the signed note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    checkpoint: Checkpoint,
    note: Note,
}

impl SignedCheckpoint {
    /// # Errors
    ///
    /// If extension lines make the note too long.
    pub fn new(checkpoint: Checkpoint, signature: Signature) -> Result<Self, InvalidNote> {
        let note = Note::new(checkpoint.to_string(), signature)?;
        Ok(SignedCheckpoint { checkpoint, note })
    }

    /// Reads a signed checkpoint. This verifies no signature.
    ///
    /// # Errors
    ///
    /// If the bytes are no signed note, or its text is no checkpoint.
    pub fn parse(bytes: &[u8]) -> Result<SignedCheckpoint, InvalidCheckpoint> {
        let note = Note::parse(bytes)?;
        Ok(SignedCheckpoint { checkpoint: note.text().parse()?, note })
    }

    /// The contents, to be trusted after [`SignedCheckpoint::verify`].
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    pub fn note(&self) -> &Note {
        &self.note
    }

    /// Verifies that a log with this origin and one of these keys issued the checkpoint.
    ///
    /// # Errors
    ///
    /// If the checkpoint is of another log, or as for [`Note::verify`].
    pub fn verify<V: Verifier>(
        &self,
        origin: &Origin,
        keys: &[V],
    ) -> Result<Vec<Verified>, NotOfLog> {
        let found = &self.checkpoint.origin;
        if found != origin {
            let (expected, found) = (origin.clone(), found.clone());
            return Err(NotOfLog::OtherOrigin { expected, found });
        }
        Ok(self.note.verify(keys)?)
    }

    /// Adds a signature, such as a second one of the log.
    ///
    /// # Errors
    ///
    /// As for [`Note::add`].
    pub fn add(&mut self, signature: Signature) -> Result<(), InvalidNote> {
        self.note.add(signature)
    }
}

impl fmt::Display for SignedCheckpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.note.fmt(out)
    }
}

/// Why a checkpoint does not prove the state of a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOfLog {
    #[error("the checkpoint is of the log {found}, not of {expected}")]
    OtherOrigin { expected: Origin, found: Origin },
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
}

/// A decimal number without sign and leading zeros.
pub(crate) fn parse_decimal(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with(['0', '+']);
    if canonical { text.parse().ok() } else { None }
}

fn is_line(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c < ' ')
}
