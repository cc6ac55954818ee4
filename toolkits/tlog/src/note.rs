//! Signed notes: a text with signature lines, as C2SP signed-note has them.

use crate::key::{KeyId, KeyName, Statement, Verifier};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

/// Longest note, in bytes.
pub const NOTE_BYTES_MAX: usize = 1_000_000;

/// Most signatures of a note. Source: golang.org/x/mod/sumdb/note; C2SP signed-note asks for at
/// least 16.
pub const SIGNATURES_MAX: usize = 100;

/// Between the text, which ends with a newline, and the signatures.
const SEPARATOR: &str = "\n\n";

const SIGNATURE_PREFIX: &str = "— ";

const KEY_ID_BYTES: usize = 4;

/// Why some bytes are no signed note.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNote {
    #[error("the note has {bytes} bytes, {NOTE_BYTES_MAX} at most")]
    TooLong { bytes: usize },
    #[error("the note is not UTF-8 from byte {at}")]
    NotUtf8 { at: usize },
    #[error("line {line} of the note has a control character")]
    ControlCharacter { line: usize },
    #[error("the text of the note does not end with a newline")]
    Unterminated,
    #[error("the note has no empty line with signatures after it")]
    Unsigned,
    #[error("signature line {line} is invalid: {reason}")]
    Signature { line: usize, reason: InvalidSignature },
    #[error("the note has more than {SIGNATURES_MAX} signatures")]
    TooManySignatures,
}

/// Why a line is no signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSignature {
    #[error("it does not begin with an em dash and a space")]
    Prefix,
    #[error("the key name is empty, or has a space, a plus sign or a control character")]
    Name,
    #[error("the signature is not in padded standard base64")]
    Base64,
    #[error("there is nothing after the key ID")]
    Empty,
}

/// Why the text of a note cannot be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    #[error("no known key signed the note")]
    NoKnownKey,
    #[error("the signature of the known key {name}+{id} is not valid for the text")]
    Forged { name: KeyName, id: KeyId },
    #[error("two known keys have the name and ID {name}+{id}")]
    Ambiguous { name: KeyName, id: KeyId },
}

/// A signature by a known key that is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub name: KeyName,
    pub id: KeyId,
    pub statement: Statement,
}

/// A signature line. Which key it names is a claim, until a key has verified it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    name: KeyName,
    id: KeyId,
    bytes: Vec<u8>,
}

impl Signature {
    /// A signature that was made elsewhere, such as by a key management service. The key verifies
    /// it before anybody else sees it.
    ///
    /// # Errors
    ///
    /// If the signature is not valid for the text.
    pub fn new(key: &impl Verifier, text: &str, bytes: Vec<u8>) -> Result<Signature, Untrusted> {
        let (name, id) = (key.name().clone(), key.id());
        match key.verify(text, &bytes) {
            Some(_) => Ok(Signature { name, id, bytes }),
            None => Err(Untrusted::Forged { name, id }),
        }
    }

    pub(crate) fn unchecked(name: KeyName, id: KeyId, bytes: Vec<u8>) -> Signature {
        Signature { name, id, bytes }
    }

    pub fn name(&self) -> &KeyName {
        &self.name
    }

    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The signature without the key ID.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn is_by(&self, key: &impl Verifier) -> bool {
        self.name == *key.name() && self.id == key.id()
    }
}

impl FromStr for Signature {
    type Err = InvalidSignature;

    /// Reads a signature line, without its newline.
    fn from_str(line: &str) -> Result<Signature, InvalidSignature> {
        let rest = line.strip_prefix(SIGNATURE_PREFIX).ok_or(InvalidSignature::Prefix)?;
        let (name, encoded) = rest.split_once(' ').ok_or(InvalidSignature::Base64)?;
        let name = name.parse().map_err(|_| InvalidSignature::Name)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| InvalidSignature::Base64)?;
        match bytes.split_first_chunk::<KEY_ID_BYTES>() {
            Some((id, rest)) if !rest.is_empty() => {
                Ok(Signature { name, id: KeyId(*id), bytes: rest.to_vec() })
            }
            _ => Err(InvalidSignature::Empty),
        }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoded = STANDARD.encode([&self.id.0, self.bytes.as_slice()].concat());
        write!(out, "{SIGNATURE_PREFIX}{} {encoded}", self.name)
    }
}

/// A text with at least one signature. Ignore the text until [`Note::verify`] has succeeded.
///
/// `Display` writes the signed note, and [`Note::parse`] reads it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<Signature>,
}

impl Note {
    /// # Errors
    ///
    /// If the text does not end with a newline, has a control character, or is too long.
    pub fn new(text: String, signature: Signature) -> Result<Note, InvalidNote> {
        if !text.ends_with('\n') {
            return Err(InvalidNote::Unterminated);
        }
        let note = Note { text, signatures: vec![signature] };
        note.check_length()?;
        check_characters(&note.text)?;
        Ok(note)
    }

    /// Reads a signed note. This verifies no signature.
    ///
    /// # Errors
    ///
    /// If the bytes are not exactly of the form that C2SP signed-note has, or exceed the limits of
    /// this crate.
    pub fn parse(bytes: &[u8]) -> Result<Note, InvalidNote> {
        if bytes.len() > NOTE_BYTES_MAX {
            return Err(InvalidNote::TooLong { bytes: bytes.len() });
        }
        let message = std::str::from_utf8(bytes)
            .map_err(|error| InvalidNote::NotUtf8 { at: error.valid_up_to() })?;
        check_characters(message)?;
        // The text may have empty lines; the last one separates.
        let split = message.rfind(SEPARATOR).ok_or(InvalidNote::Unsigned)?;
        let (text, block) = (&message[..=split], &message[split + SEPARATOR.len()..]);
        Ok(Note { text: text.to_owned(), signatures: parse_signatures(block)? })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signatures, not verified.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// Adds a signature after the others; it replaces those by the same key.
    ///
    /// # Errors
    ///
    /// If the note gets too long or has too many signatures; it is unchanged then.
    pub fn add(&mut self, signature: Signature) -> Result<(), InvalidNote> {
        let mut longer = self.clone();
        longer.signatures.retain(|old| (&old.name, old.id) != (&signature.name, signature.id));
        longer.signatures.push(signature);
        if longer.signatures.len() > SIGNATURES_MAX {
            return Err(InvalidNote::TooManySignatures);
        }
        longer.check_length()?;
        *self = longer;
        Ok(())
    }

    /// Verifies the signatures of known keys, and ignores all others. Returns one entry for each
    /// known key that signed, in the order of the lines.
    ///
    /// The text is as trustworthy as any one of `keys`: pass the keys of one role at a time, such
    /// as those of the log, and then those of its witnesses.
    ///
    /// # Errors
    ///
    /// If no known key signed, if a signature of a known key is not valid, or if two known keys
    /// have the same name and ID.
    pub fn verify<V: Verifier>(&self, keys: &[V]) -> Result<Vec<Verified>, Untrusted> {
        verify_signatures(&self.text, &self.signatures, keys)
    }

    fn check_length(&self) -> Result<(), InvalidNote> {
        let bytes = self.to_string().len();
        if bytes > NOTE_BYTES_MAX { Err(InvalidNote::TooLong { bytes }) } else { Ok(()) }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| writeln!(out, "{signature}"))
    }
}

/// Reads signature lines, at least one, each with its newline.
pub(crate) fn parse_signatures(block: &str) -> Result<Vec<Signature>, InvalidNote> {
    let lines = block.strip_suffix('\n').ok_or(InvalidNote::Unsigned)?.split('\n');
    if lines.clone().count() > SIGNATURES_MAX {
        return Err(InvalidNote::TooManySignatures);
    }
    let parse = |(index, line): (usize, &str)| {
        line.parse().map_err(|reason| InvalidNote::Signature { line: index + 1, reason })
    };
    lines.enumerate().map(parse).collect()
}

pub(crate) fn verify_signatures<V: Verifier>(
    text: &str,
    signatures: &[Signature],
    keys: &[V],
) -> Result<Vec<Verified>, Untrusted> {
    let mut verified: Vec<Verified> = Vec::new();
    let mut seen = HashSet::new();
    for signature in signatures {
        let mut known = keys.iter().filter(|key| signature.is_by(key));
        let Some(key) = known.next() else { continue };
        let (name, id) = (signature.name.clone(), signature.id);
        if known.next().is_some() {
            return Err(Untrusted::Ambiguous { name, id });
        }
        let Some(statement) = key.verify(text, &signature.bytes) else {
            return Err(Untrusted::Forged { name, id });
        };
        if seen.insert((name.clone(), id)) {
            verified.push(Verified { name, id, statement });
        }
    }
    if verified.is_empty() { Err(Untrusted::NoKnownKey) } else { Ok(verified) }
}

fn check_characters(message: &str) -> Result<(), InvalidNote> {
    let is_control = |c: u8| c < b' ' && c != b'\n';
    match message.bytes().position(is_control) {
        None => Ok(()),
        Some(at) => {
            let before = message.bytes().take(at).filter(|c| *c == b'\n').count();
            Err(InvalidNote::ControlCharacter { line: before + 1 })
        }
    }
}

pub(crate) fn valid_name(name: &str) -> bool {
    let forbidden = |c: char| c.is_whitespace() || c == '+' || c < ' ';
    !name.is_empty() && !name.contains(forbidden)
}
