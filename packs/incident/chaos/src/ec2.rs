//! The three EC2 calls that list, remove and restore a security group's outbound rules.
//!
//! The SDK's EC2 client takes minutes to build, and these calls are only a signed form and a flat list.
//! So they are written here, on the SDK's connector and signature. Each is idempotent and may be
//! retried after a timeout.

use std::fmt;
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
use aws_smithy_xml::decode::{Document, ScopedDecoder, XmlDecodeError, try_data};
use serde::{Deserialize, Serialize};

use super::Error;
use aws_diagnostics::account::{Account, CallError};

/// API version.
///
/// Source: Amazon EC2 API reference.
const VERSION: &str = "2016-11-15";

const CALL_TIMEOUT: Duration = Duration::from_secs(12);

/// Largest response, in bytes; a page of rules is well below.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

const PAGES_MAX: usize = 10;

/// An outbound rule of a security group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressRule {
    pub group: String,
    /// The rule's id before its removal; a restored rule gets another one.
    pub id: String,
    /// `tcp`, `udp`, a number, or `-1` for all.
    pub protocol: String,
    pub from_port: Option<i32>,
    pub to_port: Option<i32>,
    /// Destination, if an IPv4 range.
    pub cidr_ipv4: Option<String>,
    /// Destination, if an IPv6 range.
    pub cidr_ipv6: Option<String>,
    /// Destination, if a prefix list.
    pub prefix_list: Option<String>,
    /// Destination, if a security group.
    pub referenced_group: Option<String>,
    pub description: Option<String>,
}

impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = [&self.cidr_ipv4, &self.cidr_ipv6, &self.prefix_list, &self.referenced_group];
        let to = to.into_iter().flatten().next().map_or("anywhere", String::as_str);
        let protocol = if self.protocol == "-1" { "all traffic" } else { &self.protocol };
        match (self.from_port, self.to_port) {
            (Some(from), Some(until)) if from >= 0 && from == until => {
                write!(f, "{protocol} port {from} to {to}")
            }
            (Some(from), Some(until)) if from >= 0 => {
                write!(f, "{protocol} ports {from}-{until} to {to}")
            }
            _ => write!(f, "{protocol} to {to}"),
        }
    }
}

#[derive(Debug)]
pub(super) struct Ec2 {
    config: SdkConfig,
    connector: SharedHttpConnector,
}

type Fields = Vec<(String, String)>;

impl Ec2 {
    pub(super) fn new(account: &Account) -> Self {
        let tls = Provider::Rustls(CryptoMode::AwsLc);
        let connector = Connector::builder().tls_provider(tls).build();
        Self { config: account.config.clone(), connector: SharedHttpConnector::new(connector) }
    }

    /// The outbound rules of a security group.
    pub(super) async fn egress(&self, group: &str) -> Result<Vec<EgressRule>, Error> {
        const ACTION: &str = "DescribeSecurityGroupRules";
        let mut rules = Vec::new();
        let mut token = None;
        for _ in 0..PAGES_MAX {
            let mut fields = fields([("Filter.1.Name", "group-id"), ("Filter.1.Value.1", group)]);
            fields.extend(token.take().map(|token| ("NextToken".to_owned(), token)));
            let answer = self.call(ACTION, fields).await?;
            let page = page(&answer).map_err(|error| {
                Error::Malformed(format!("{ACTION}: invalid response: {error}"))
            })?;
            rules.extend(page.rules);
            token = page.next;
            if token.is_none() {
                return Ok(rules);
            }
        }
        Err(Error::Malformed(format!("security group {group} has too many rules")))
    }

    /// Removes a rule, unless it is already gone.
    pub(super) async fn revoke_egress(&self, rule: &EgressRule) -> Result<(), CallError> {
        let fields = fields([("GroupId", &rule.group), ("SecurityGroupRuleId.1", &rule.id)]);
        match self.call("RevokeSecurityGroupEgress", fields).await {
            Err(error) if error.code() == Some("InvalidSecurityGroupRuleId.NotFound") => Ok(()),
            done => done.map(|_| ()),
        }
    }

    /// Restores a rule, unless it already exists.
    pub(super) async fn authorize_egress(&self, rule: &EgressRule) -> Result<(), CallError> {
        match self.call("AuthorizeSecurityGroupEgress", permission(rule)).await {
            Err(error) if error.code() == Some("InvalidPermission.Duplicate") => Ok(()),
            done => done.map(|_| ()),
        }
    }

    async fn call(&self, action: &'static str, fields: Fields) -> Result<String, CallError> {
        let unanswered = |cause: String| CallError::Unanswered { operation: action, cause };
        let answer = tokio::time::timeout(CALL_TIMEOUT, self.send(action, fields)).await;
        let answer = answer.map_err(|_| unanswered("timed out".to_owned()))?;
        let (status, text) = answer.map_err(|error| unanswered(error.to_string()))?;
        if (200..300).contains(&status) {
            return Ok(text);
        }
        let (code, message) = refusal(&text);
        Err(CallError::answered(action, status, &code, message))
    }

    async fn send(
        &self,
        action: &str,
        fields: Fields,
    ) -> Result<(u16, String), Box<dyn std::error::Error + Send + Sync>> {
        let region = self.config.region().ok_or("no region is set")?.as_ref();
        let uri = match self.config.endpoint_url() {
            Some(url) => format!("{}/", url.trim_end_matches('/')),
            None if region.starts_with("cn-") => format!("https://ec2.{region}.amazonaws.com.cn/"),
            None => format!("https://ec2.{region}.amazonaws.com/"),
        };
        let body = form(action, fields);
        let credentials = self.config.credentials_provider().ok_or("there are no credentials")?;
        let identity = credentials.provide_credentials().await?.into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name("ec2")
            .time(now())
            .settings(SigningSettings::default())
            .build()?
            .into();
        let kind = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");
        let signable = SignableRequest::new(
            "POST",
            uri.as_str(),
            [kind].into_iter(),
            SignableBody::Bytes(body.as_bytes()),
        )?;
        let (instructions, _) = sign(signable, &parameters)?.into_parts();
        let mut request = HttpRequest::new(SdkBody::from(body.as_str()));
        request.set_method("POST")?;
        request.set_uri(uri)?;
        request.headers_mut().try_insert(kind.0, kind.1)?;
        for header in instructions.into_parts().0 {
            request.headers_mut().try_insert(header.name(), header.value().to_owned())?;
        }
        let answer = self.connector.call(request).await?;
        let status = answer.status().as_u16();
        let bytes = read(answer.into_body()).await?;
        Ok((status, String::from_utf8(bytes)?))
    }
}

async fn read(body: SdkBody) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
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

fn fields<const N: usize>(fields: [(&str, &str); N]) -> Fields {
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// A rule as an `IpPermission`.
///
/// Source: Amazon EC2 API reference, `IpPermission`.
fn permission(rule: &EgressRule) -> Fields {
    let mut permission = fields([("GroupId", &rule.group)]);
    let mut add = |name: &str, value: Option<String>| {
        permission.extend(value.map(|value| (format!("IpPermissions.1.{name}"), value)));
    };
    add("IpProtocol", Some(rule.protocol.clone()));
    add("FromPort", rule.from_port.map(|port| port.to_string()));
    add("ToPort", rule.to_port.map(|port| port.to_string()));
    for (list, member, value) in [
        ("IpRanges", "CidrIp", &rule.cidr_ipv4),
        ("Ipv6Ranges", "CidrIpv6", &rule.cidr_ipv6),
        ("PrefixListIds", "PrefixListId", &rule.prefix_list),
        ("Groups", "GroupId", &rule.referenced_group),
    ] {
        if value.is_some() {
            add(&format!("{list}.1.{member}"), value.clone());
            add(&format!("{list}.1.Description"), rule.description.clone());
        }
    }
    permission
}

fn form(action: &str, fields: Fields) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const RESERVED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let mut form = format!("Action={action}&Version={VERSION}");
    for (name, value) in fields {
        form.push_str(&format!("&{name}={}", utf8_percent_encode(&value, RESERVED)));
    }
    form
}

#[derive(Debug, Default)]
struct Page {
    rules: Vec<EgressRule>,
    next: Option<String>,
}

/// Parses a page of rules and drops inbound ones.
fn page(text: &str) -> Result<Page, XmlDecodeError> {
    let mut document = Document::new(text);
    let mut root = document.root_element()?;
    let mut page = Page::default();
    while let Some(mut tag) = root.next_tag() {
        match tag.start_el().local() {
            "securityGroupRuleSet" => {
                while let Some(mut item) = tag.next_tag() {
                    page.rules.extend(rule(&mut item)?);
                }
            }
            "nextToken" => page.next = Some(try_data(&mut tag)?.into_owned()),
            _ => {}
        }
    }
    page.next = page.next.filter(|token| !token.is_empty());
    Ok(page)
}

fn rule(item: &mut ScopedDecoder<'_, '_>) -> Result<Option<EgressRule>, XmlDecodeError> {
    let mut rule = EgressRule::default();
    let mut is_egress = false;
    while let Some(mut tag) = item.next_tag() {
        let name = tag.start_el().local().to_owned();
        if name == "referencedGroupInfo" {
            while let Some(mut tag) = tag.next_tag() {
                if tag.start_el().local() == "groupId" {
                    rule.referenced_group = Some(try_data(&mut tag)?.into_owned());
                }
            }
            continue;
        }
        if name == "tagSet" {
            continue;
        }
        let text = try_data(&mut tag)?.into_owned();
        let port = || text.parse().map_err(XmlDecodeError::unhandled);
        match name.as_str() {
            "isEgress" => is_egress = text == "true",
            "groupId" => rule.group = text,
            "securityGroupRuleId" => rule.id = text,
            "ipProtocol" => rule.protocol = text,
            "fromPort" if !text.is_empty() => rule.from_port = Some(port()?),
            "toPort" if !text.is_empty() => rule.to_port = Some(port()?),
            "cidrIpv4" => rule.cidr_ipv4 = Some(text).filter(|text| !text.is_empty()),
            "cidrIpv6" => rule.cidr_ipv6 = Some(text).filter(|text| !text.is_empty()),
            "prefixListId" => rule.prefix_list = Some(text).filter(|text| !text.is_empty()),
            "description" => rule.description = Some(text).filter(|text| !text.is_empty()),
            _ => {}
        }
    }
    Ok(is_egress.then_some(rule))
}

/// The code and the message of `Response > Errors > Error`.
fn refusal(text: &str) -> (String, String) {
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

    const PAGE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<DescribeSecurityGroupRulesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
  <requestId>r</requestId>
  <securityGroupRuleSet>
    <item><securityGroupRuleId>sgr-1</securityGroupRuleId><groupId>sg-1</groupId>
      <isEgress>false</isEgress><ipProtocol>tcp</ipProtocol><fromPort>22</fromPort><toPort>22</toPort>
      <cidrIpv4>10.0.0.0/8</cidrIpv4><tagSet/></item>
    <item><securityGroupRuleId>sgr-2</securityGroupRuleId><groupId>sg-1</groupId>
      <isEgress>true</isEgress><ipProtocol>-1</ipProtocol><fromPort>-1</fromPort><toPort>-1</toPort>
      <cidrIpv4>0.0.0.0/0</cidrIpv4><tagSet><item><key>groupId</key><value>x</value></item></tagSet></item>
    <item><securityGroupRuleId>sgr-3</securityGroupRuleId><groupId>sg-1</groupId>
      <isEgress>true</isEgress><ipProtocol>tcp</ipProtocol><fromPort>443</fromPort><toPort>444</toPort>
      <referencedGroupInfo><groupId>sg-2</groupId><userId>123456789012</userId></referencedGroupInfo>
      <description>to AWS &amp; more</description></item>
  </securityGroupRuleSet>
  <nextToken>more</nextToken>
</DescribeSecurityGroupRulesResponse>"#;

    #[test]
    fn egress_rules_are_read() {
        let page = page(PAGE).unwrap();
        assert_eq!(page.next.as_deref(), Some("more"));
        let [all, some] = &page.rules[..] else { panic!("{page:#?}") };
        assert_eq!(all.to_string(), "all traffic to 0.0.0.0/0");
        assert_eq!(some.to_string(), "tcp ports 443-444 to sg-2");
        assert_eq!(some.description.as_deref(), Some("to AWS & more"));
        assert_eq!(
            form("AuthorizeSecurityGroupEgress", permission(some)),
            "Action=AuthorizeSecurityGroupEgress&Version=2016-11-15&GroupId=sg-1\
             &IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=443\
             &IpPermissions.1.ToPort=444&IpPermissions.1.Groups.1.GroupId=sg-2\
             &IpPermissions.1.Groups.1.Description=to%20AWS%20%26%20more"
        );
    }

    #[test]
    fn an_invalid_page_is_an_error() {
        assert!(page("").is_err());
        assert!(page("no xml").is_err());
    }

    #[test]
    fn a_refusal_names_its_code() {
        let text = "<Response><Errors><Error><Code>InvalidGroup.NotFound</Code>\
                    <Message>no such group</Message></Error></Errors></Response>";
        assert_eq!(refusal(text), ("InvalidGroup.NotFound".into(), "no such group".into()));
        assert_eq!(refusal("<html>").0, "Unknown");
    }
}
