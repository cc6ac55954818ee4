//! Signed calls to services whose SDK clients take minutes to build: EC2's query protocol and CloudTrail's
//! JSON, on the SDK's connector and signature.

use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::account::{Account, CallError};

/// API version of EC2.
///
/// Source: Amazon EC2 API reference.
const EC2_VERSION: &str = "2016-11-15";

/// Prefix of CloudTrail's operations in the header `X-Amz-Target`.
///
/// Source: CloudTrail API reference, "LookupEvents", sample request.
const CLOUDTRAIL_TARGET: &str = "com.amazonaws.cloudtrail.v20131101.CloudTrail_20131101";

const CALL_TIMEOUT: Duration = Duration::from_secs(12);

/// Largest response, in bytes; a page is well below.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Makes signed calls.
#[derive(Debug)]
pub struct Signed {
    config: SdkConfig,
    connector: SharedHttpConnector,
}

/// Names and values of a form.
pub type Fields = Vec<(String, String)>;

/// A request before its signature.
struct Unsigned<'a> {
    service: &'static str,
    region: &'a str,
    headers: Vec<(&'static str, String)>,
    body: String,
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl Signed {
    pub fn new(account: &Account) -> Self {
        let tls = Provider::Rustls(CryptoMode::AwsLc);
        let connector = Connector::builder().tls_provider(tls).build();
        Self { config: account.config.clone(), connector: SharedHttpConnector::new(connector) }
    }

    pub(crate) fn region(&self) -> Option<&str> {
        self.config.region().map(AsRef::as_ref)
    }

    /// Calls EC2; returns the response's XML.
    ///
    /// # Errors
    /// When EC2 refuses the call or does not answer.
    pub async fn ec2(&self, action: &'static str, fields: Fields) -> Result<String, CallError> {
        let kind = "application/x-www-form-urlencoded; charset=utf-8".to_owned();
        let request = Unsigned {
            service: "ec2",
            region: self.region().ok_or_else(|| no_region(action))?,
            headers: vec![("content-type", kind)],
            body: form(action, fields),
        };
        let (status, text) = self.call(action, request).await?;
        if (200..300).contains(&status) {
            return Ok(text);
        }
        let (code, message) = xml_refusal(&text);
        Err(CallError::answered(action, status, &code, message))
    }

    /// Calls CloudTrail in a region.
    ///
    /// # Errors
    /// When CloudTrail refuses the call or does not answer.
    pub(crate) async fn cloudtrail(
        &self,
        action: &'static str,
        region: &str,
        body: &Value,
    ) -> Result<Value, CallError> {
        let request = Unsigned {
            service: "cloudtrail",
            region,
            headers: vec![
                ("content-type", "application/x-amz-json-1.1".to_owned()),
                ("x-amz-target", format!("{CLOUDTRAIL_TARGET}.{action}")),
            ],
            body: body.to_string(),
        };
        let (status, text) = self.call(action, request).await?;
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        if (200..300).contains(&status) && answer.is_object() {
            return Ok(answer);
        }
        let code = answer["__type"].as_str().unwrap_or("Unknown");
        let code = code.rsplit('#').next().unwrap_or(code);
        let message = answer["Message"].as_str().or(answer["message"].as_str());
        let message = message.unwrap_or("no reason given").to_owned();
        Err(CallError::answered(action, status, code, message))
    }

    async fn call(
        &self,
        action: &'static str,
        request: Unsigned<'_>,
    ) -> Result<(u16, String), CallError> {
        let unanswered = |cause: String| CallError::Unanswered { operation: action, cause };
        let answer = tokio::time::timeout(CALL_TIMEOUT, self.send(request)).await;
        let answer = answer.map_err(|_| unanswered("timed out".to_owned()))?;
        answer.map_err(|error| unanswered(error.to_string()))
    }

    async fn send(&self, unsigned: Unsigned<'_>) -> Result<(u16, String), AnyError> {
        let Unsigned { service, region, headers, body } = unsigned;
        let uri = match self.config.endpoint_url() {
            Some(url) => format!("{}/", url.trim_end_matches('/')),
            None if region.starts_with("cn-") => {
                format!("https://{service}.{region}.amazonaws.com.cn/")
            }
            None => format!("https://{service}.{region}.amazonaws.com/"),
        };
        let credentials = self.config.credentials_provider().ok_or("there are no credentials")?;
        let identity = credentials.provide_credentials().await?.into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name(service)
            .time(now())
            .settings(SigningSettings::default())
            .build()?
            .into();
        let signable = SignableRequest::new(
            "POST",
            uri.as_str(),
            headers.iter().map(|(name, value)| (*name, value.as_str())),
            SignableBody::Bytes(body.as_bytes()),
        )?;
        let (instructions, _) = sign(signable, &parameters)?.into_parts();
        let mut request = HttpRequest::new(SdkBody::from(body.as_str()));
        request.set_method("POST")?;
        request.set_uri(uri)?;
        for (name, value) in headers {
            request.headers_mut().try_insert(name, value)?;
        }
        for header in instructions.into_parts().0 {
            request.headers_mut().try_insert(header.name(), header.value().to_owned())?;
        }
        let answer = self.connector.call(request).await?;
        let status = answer.status().as_u16();
        let bytes = read(answer.into_body()).await?;
        Ok((status, String::from_utf8(bytes)?))
    }
}

fn no_region(operation: &'static str) -> CallError {
    CallError::Unanswered { operation, cause: "no region is set".to_owned() }
}

async fn read(body: SdkBody) -> Result<Vec<u8>, AnyError> {
    let mut stream = aws_smithy_types::byte_stream::ByteStream::new(body);
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.try_next().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_BYTES_MAX {
            return Err("the response is too large".into());
        }
    }
    Ok(bytes)
}

fn form(action: &str, fields: Fields) -> String {
    const RESERVED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let mut form = format!("Action={action}&Version={EC2_VERSION}");
    for (name, value) in fields {
        form.push_str(&format!("&{name}={}", utf8_percent_encode(&value, RESERVED)));
    }
    form
}

/// The code and the message of `Response > Errors > Error`.
fn xml_refusal(text: &str) -> (String, String) {
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once("</")?.0.to_owned())
    };
    let message = element("Message").unwrap_or_else(|| "no reason given".to_owned());
    (element("Code").unwrap_or_else(|| "Unknown".to_owned()), message)
}

#[expect(clippy::disallowed_methods, reason = "a signature is dated, and kept nowhere")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_percent_encoded() {
        let fields = vec![("Filter.1.Value.1".to_owned(), "a & b/ü".to_owned())];
        assert_eq!(
            form("DescribeSecurityGroupRules", fields),
            "Action=DescribeSecurityGroupRules&Version=2016-11-15&Filter.1.Value.1=a%20%26%20b%2F%C3%BC"
        );
    }

    #[test]
    fn a_refusal_names_its_code() {
        let text = "<Response><Errors><Error><Code>InvalidGroup.NotFound</Code>\
                    <Message>no such group</Message></Error></Errors></Response>";
        assert_eq!(xml_refusal(text), ("InvalidGroup.NotFound".into(), "no such group".into()));
        assert_eq!(xml_refusal("<html>").0, "Unknown");
    }
}
