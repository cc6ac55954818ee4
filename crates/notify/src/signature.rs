//! Signatures of webhooks.
//!
//! Source: Standard Webhooks, version 1.0.0: HMAC-SHA256 over `id.timestamp.body`, in the header `webhook-signature`.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Length of a secret, in bytes.
///
/// Source: Standard Webhooks, "Signature scheme": 192 to 512 bits.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The prefix of a secret as text.
const PREFIX: &str = "whsec_";

/// The secret that a webhook and its receiver share. Never shown.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Why a text is no secret. It quotes nothing of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecret {
    #[error("is not set")]
    Unset,
    #[error(
        "has no secret of 24 to 64 bytes, as whsec_ and base64; openssl rand -base64 32 makes one"
    )]
    Malformed,
}

impl FromStr for Secret {
    type Err = InvalidSecret;

    fn from_str(text: &str) -> Result<Self, InvalidSecret> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or(InvalidSecret::Malformed)?;
        let bytes = BASE64.decode(encoded).map_err(|_| InvalidSecret::Malformed)?;
        if SECRET_BYTES.contains(&bytes.len()) {
            Ok(Self(bytes))
        } else {
            Err(InvalidSecret::Malformed)
        }
    }
}

impl Secret {
    /// The value of `webhook-signature`. `at_s` is the value of `webhook-timestamp`, in seconds since 1970.
    pub fn sign(&self, id: &str, at_s: i64, body: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0)
            .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        mac.update(format!("{id}.{at_s}.{body}").as_bytes());
        format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: Standard Webhooks, the reference implementations' test `test_sign`.
    #[test]
    fn the_signature_is_that_of_the_reference_libraries() {
        let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let signature =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_short_or_malformed_secret_is_refused() {
        for text in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_!"]
        {
            assert_eq!(text.parse::<Secret>().unwrap_err(), InvalidSecret::Malformed, "{text}");
        }
    }
}
