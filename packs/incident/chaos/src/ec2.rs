//! The three EC2 calls that list, remove and restore a security group's outbound rules.
//!
//! The SDK's EC2 client takes minutes to build, and these calls are only a signed form and a flat list.
//! So they are written here, on `aws_diagnostics::signed`. Each is idempotent and may be retried after a
//! timeout.

use std::fmt;

use aws_smithy_xml::decode::{Document, ScopedDecoder, XmlDecodeError, try_data};
use serde::{Deserialize, Serialize};

use super::Error;
use aws_diagnostics::account::{Account, CallError};
use aws_diagnostics::signed::{Fields, Signed};

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
    signed: Signed,
}

impl Ec2 {
    pub(super) fn new(account: &Account) -> Self {
        Self { signed: Signed::new(account) }
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
        self.signed.ec2(action, fields).await
    }
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
        let permission: Vec<String> =
            permission(some).iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            permission,
            [
                "GroupId=sg-1",
                "IpPermissions.1.IpProtocol=tcp",
                "IpPermissions.1.FromPort=443",
                "IpPermissions.1.ToPort=444",
                "IpPermissions.1.Groups.1.GroupId=sg-2",
                "IpPermissions.1.Groups.1.Description=to AWS & more",
            ]
        );
    }

    #[test]
    fn an_invalid_page_is_an_error() {
        assert!(page("").is_err());
        assert!(page("no xml").is_err());
    }
}
