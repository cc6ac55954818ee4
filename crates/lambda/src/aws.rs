//! The AWS clients' configuration, from the variables that Lambda sets.
//!
//! The SDK's default chain also reads files, metadata services and STS. A function needs none of them;
//! they would make it larger and slower to start.

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

use crate::Lookup;

/// The endpoint of all services, if not AWS's own.
///
/// Source: AWS SDKs and Tools Reference Guide, "Service-specific endpoints".
const ENDPOINT_URL: &str = "AWS_ENDPOINT_URL";

/// Whether to use FIPS endpoints, and whether to use dual-stack endpoints.
///
/// Source: AWS SDKs and Tools Reference Guide, "Dual-stack and FIPS endpoints".
const FIPS: &str = "AWS_USE_FIPS_ENDPOINT";
const DUAL_STACK: &str = "AWS_USE_DUALSTACK_ENDPOINT";

/// Configuration of a function's clients.
pub(crate) fn config(lookup: Lookup) -> SdkConfig {
    let is_on = |name: &str| lookup(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let https = Builder::new().tls_provider(Provider::Rustls(CryptoMode::AwsLc)).build_https();
    let credentials = EnvironmentVariableCredentialsProvider::new();
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(https)
        .use_fips(is_on(FIPS))
        .use_dual_stack(is_on(DUAL_STACK))
        .service_config(Endpoints(lookup));
    config.set_region(lookup("AWS_REGION").map(Region::new));
    config.set_endpoint_url(lookup(ENDPOINT_URL));
    config.build()
}

/// The endpoints of single services, such as `AWS_ENDPOINT_URL_DYNAMODB`.
#[derive(Debug)]
struct Endpoints(Lookup);

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().to_uppercase().replace(' ', "_");
        (self.0)(&format!("{}_{service}", key.env()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        let value = match name {
            "AWS_REGION" => "eu-west-1",
            "AWS_ENDPOINT_URL" => "http://127.0.0.1:1",
            "AWS_ENDPOINT_URL_BEDROCK_AGENTCORE" => "http://127.0.0.1:2",
            "AWS_USE_FIPS_ENDPOINT" => "true",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[test]
    fn the_environment_says_where_a_function_and_its_services_are() {
        let config = config(lookup);
        assert_eq!(config.region().map(Region::as_ref), Some("eu-west-1"));
        assert_eq!(config.endpoint_url(), Some("http://127.0.0.1:1"));
        assert_eq!((config.use_fips(), config.use_dual_stack()), (Some(true), Some(false)));
        let of = |service: &str| {
            let key = ServiceConfigKey::builder().service_id(service).env(ENDPOINT_URL);
            config.service_config()?.load_config(key.profile("endpoint_url").build().ok()?)
        };
        assert_eq!(of("Bedrock AgentCore").as_deref(), Some("http://127.0.0.1:2"));
        assert_eq!(of("SFN"), None);
    }
}
