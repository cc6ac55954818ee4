//! SSM parameters: secrets that the servers file refers to and AWS stores.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A secret value. `Debug` redacts it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Parameter values by name.
pub type Parameters = BTreeMap<String, Secret>;

impl Secret {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The source of parameters.
#[derive(Clone, Debug)]
pub enum ParameterStore {
    /// None, for this reason, such as that no account is configured.
    Closed(&'static str),
    /// AWS, or a local emulation.
    #[cfg(feature = "container")]
    Ssm(aws_sdk_ssm::Client),
}

/// Why a parameter was not read. Contains no values.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the SSM parameter `{name}` cannot be read: {why}")]
pub struct Error {
    pub name: String,
    pub why: String,
}

impl ParameterStore {
    /// Reads and decrypts parameters. Sends no request when there are none.
    ///
    /// # Errors
    /// [`Error`] for the first that cannot be read.
    pub async fn read(&self, names: &BTreeSet<String>) -> Result<Parameters, Error> {
        let mut parameters = Parameters::new();
        for name in names {
            let value = self.one(name).await;
            let value = value.map_err(|why| Error { name: name.clone(), why })?;
            parameters.insert(name.clone(), value);
        }
        Ok(parameters)
    }

    async fn one(&self, name: &str) -> Result<Secret, String> {
        match self {
            Self::Closed(reason) => {
                tracing::debug!(parameter = name, "Skipped reading a parameter.");
                Err((*reason).to_owned())
            }
            #[cfg(feature = "container")]
            Self::Ssm(client) => ssm::read(client, name).await,
        }
    }
}

#[cfg(feature = "container")]
mod ssm {
    use std::time::Duration;

    use aws_config::SdkConfig;
    use aws_config::timeout::TimeoutConfig;
    use aws_sdk_ssm::Client;
    use aws_sdk_ssm::error::{DisplayErrorContext, ProvideErrorMetadata as _, SdkError};

    use super::{ParameterStore, Secret};
    use crate::tool::answer::cut;

    /// Timeout of reading one parameter, including retries. Only a program's start waits for it.
    const READ_WITHIN: Duration = Duration::from_secs(15);

    /// Longest reason, in characters.
    const REASON_CHARS_MAX: usize = 500;

    impl ParameterStore {
        /// A client from this configuration. A given `endpoint` takes precedence over the environment.
        pub fn ssm(config: &SdkConfig, endpoint: Option<&str>) -> Self {
            let timeouts = TimeoutConfig::builder().operation_timeout(READ_WITHIN).build();
            let builder = aws_sdk_ssm::config::Builder::from(config).timeout_config(timeouts);
            let builder = match endpoint {
                Some(endpoint) => builder.endpoint_url(endpoint),
                None => builder,
            };
            Self::Ssm(Client::from_conf(builder.build()))
        }
    }

    pub(super) async fn read(client: &Client, name: &str) -> Result<Secret, String> {
        let answer = client.get_parameter().name(name).with_decryption(true).send().await;
        match answer {
            Ok(answer) => match answer.parameter.and_then(|parameter| parameter.value) {
                Some(value) if !value.is_empty() => Ok(Secret::from(value.as_str())),
                _ => Err("it has no value".to_owned()),
            },
            Err(SdkError::ServiceError(refusal)) => {
                let error = refusal.err();
                let code = error.code().unwrap_or("an error without a code");
                let said = error.message().map(|said| format!(": {said}")).unwrap_or_default();
                Err(cut(&format!("{code}{said}"), REASON_CHARS_MAX))
            }
            Err(error) => Err(cut(&DisplayErrorContext(&error).to_string(), REASON_CHARS_MAX)),
        }
    }
}
