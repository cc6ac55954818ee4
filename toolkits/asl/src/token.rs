//! Task tokens: unguessable without the seed, identical on every replay, and naming their
//! execution.
//!
//! A token is `hex(execution ARN)-event id-hex(code)`; the code is a SHA-256 of seed, ARN and event
//! id. Because the token names its execution, a caller needs no index of open tokens, which could
//! disagree with the history after a crash.

use sha2::{Digest, Sha256};

/// Bytes of the code: 128 bits cannot be guessed and keep the token short.
const CODE_BYTES: usize = 16;

/// The content of a token; only [`crate::execution::Execution`] can tell whether it is genuine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locator {
    pub execution_arn: String,
    pub event_id: u64,
}

/// Parses a token; `None` if it is malformed (AWS returns `InvalidToken`).
pub fn locate(token: &str) -> Option<Locator> {
    let mut parts = token.split('-');
    let (arn, event_id, code) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || code.len() != 2 * CODE_BYTES {
        return None;
    }
    let execution_arn = String::from_utf8(hex::decode(arn).ok()?).ok()?;
    Some(Locator { execution_arn, event_id: event_id.parse().ok()? })
}

pub(crate) fn mint(seed: &str, execution_arn: &str, event_id: u64) -> String {
    let code = digest(&[seed, execution_arn, &event_id.to_string()]);
    format!("{}-{event_id}-{}", hex::encode(execution_arn), hex::encode(&code[..CODE_BYTES]))
}

/// SHA-256 of the parts, each prefixed with its length, so that different lists have different
/// input.
pub(crate) fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:states:us-east-1:000000000000:execution:orders:one";

    #[test]
    fn a_token_names_its_execution_and_event() {
        let token = mint("seed", ARN, 17);
        assert_eq!(locate(&token), Some(Locator { execution_arn: ARN.to_owned(), event_id: 17 }));
        assert_eq!(token, mint("seed", ARN, 17));
        assert_ne!(token, mint("other", ARN, 17));
        assert_ne!(token, mint("seed", ARN, 18));
        // AWS allows 2,048 characters.
        assert!(token.len() < 1024);
    }

    #[test]
    fn a_malformed_token_is_rejected() {
        for text in ["", "-", "--", "zz-1-00", "61-x-00000000000000000000000000000000", "a-b-c-d"] {
            assert_eq!(locate(text), None, "{text}");
        }
    }
}
