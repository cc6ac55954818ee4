//! The key of AWS KMS that signs the log of sessions.

use std::time::Duration;

use aws_sdk_kms::Client;
use aws_sdk_kms::config::retry::RetryConfig;
use aws_sdk_kms::config::timeout::TimeoutConfig;
use aws_sdk_kms::error::DisplayErrorContext;
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{MessageType, SigningAlgorithmSpec};
use tlog::key::{KeyName, VerifierKey};

use crate::Error;
use crate::checkpoint::LogKey;

/// Timeout of one call, with its retries.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// A key of AWS KMS for Ed25519.
#[derive(Clone, Debug)]
pub struct KmsKey {
    client: Client,
    /// An alias or an ARN.
    id: String,
    /// The table whose log it signs.
    table: String,
}

impl KmsKey {
    /// `config` is an `aws_config` or a configuration of KMS.
    pub fn new(config: impl Into<aws_sdk_kms::config::Builder>, id: String, table: String) -> Self {
        // Retries do no harm: signing changes nothing.
        let timeout = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
        let config = config.into().timeout_config(timeout).retry_config(RetryConfig::standard());
        Self { client: Client::from_conf(config.build()), id, table }
    }
}

impl LogKey for KmsKey {
    async fn public(&self) -> Result<VerifierKey, Error> {
        let key = self.client.get_public_key().key_id(&self.id).send().await;
        let key = key.map_err(|error| unusable(DisplayErrorContext(error)))?;
        let name = log_name(key.key_id().unwrap_or_default(), &self.table)?;
        let public = key.public_key().map(Blob::as_ref).unwrap_or_default();
        VerifierKey::ed25519_spki(name, public).map_err(unusable)
    }

    async fn sign(&self, text: &str) -> Result<Vec<u8>, Error> {
        let request = self.client.sign().key_id(&self.id).message(Blob::new(text));
        let request = request
            .message_type(MessageType::Raw)
            .signing_algorithm(SigningAlgorithmSpec::Ed25519Sha512);
        let signed = request.send().await;
        let signed = signed.map_err(|error| unusable(DisplayErrorContext(error)))?;
        signed.signature.map(Blob::into_inner).ok_or_else(|| unusable("it gave no signature"))
    }
}

/// The name of a table's log: `daybook.aws/ACCOUNT/REGION/TABLE`, by the ARN of its key.
fn log_name(arn: &str, table: &str) -> Result<KeyName, Error> {
    let parts: Vec<_> = arn.split(':').collect();
    let [_, _, "kms", region, account, _] = parts[..] else {
        return Err(unusable(format!("`{arn}` is not the ARN of a key")));
    };
    format!("daybook.aws/{account}/{region}/{table}").parse().map_err(unusable)
}

fn unusable(error: impl ToString) -> Error {
    Error::LogKey(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_named_after_its_table_and_the_account_of_its_key() {
        let arn = "arn:aws:kms:eu-west-1:123456789012:key/0190a5c4";
        let name = log_name(arn, "daybook-dev-journal").unwrap();
        assert_eq!(name.as_str(), "daybook.aws/123456789012/eu-west-1/daybook-dev-journal");
        assert!(log_name("alias/daybook", "journal").is_err());
    }
}
