//! EC2's list of security group rules, as the AWS CLI prints it.

use aws_smithy_xml::decode::{Document, ScopedDecoder, XmlDecodeError, try_data};
use serde_json::{Map, Value, json};

use super::signed::{Fields, Signed};
use crate::account::CallError;

const DESCRIBE: &str = "DescribeSecurityGroupRules";

/// All rules that match the filters, on at most this many pages.
pub(super) async fn rules(
    signed: &Signed,
    fields: Fields,
    pages_max: usize,
) -> Result<Value, CallError> {
    let mut rules = Vec::new();
    let mut token: Option<String> = None;
    for _ in 0..pages_max {
        let mut fields = fields.clone();
        fields.extend(token.take().map(|token| ("NextToken".to_owned(), token)));
        let answer = signed.ec2(DESCRIBE, fields).await?;
        let page = page(&answer).map_err(|error| CallError::Unanswered {
            operation: DESCRIBE,
            cause: format!("invalid response: {error}"),
        })?;
        rules.extend(page.0);
        token = page.1;
        if token.is_none() {
            break;
        }
    }
    let mut answer = json!({ "SecurityGroupRules": rules });
    if let Some(token) = token {
        answer["NextToken"] = token.into();
    }
    Ok(answer)
}

fn page(text: &str) -> Result<(Vec<Value>, Option<String>), XmlDecodeError> {
    let mut document = Document::new(text);
    let mut root = document.root_element()?;
    let (mut rules, mut next) = (Vec::new(), None);
    while let Some(mut tag) = root.next_tag() {
        match tag.start_el().local() {
            "securityGroupRuleSet" => {
                while let Some(mut item) = tag.next_tag() {
                    rules.push(Value::Object(rule(&mut item)?));
                }
            }
            "nextToken" => next = Some(try_data(&mut tag)?.into_owned()),
            _ => {}
        }
    }
    Ok((rules, next.filter(|token| !token.is_empty())))
}

fn rule(item: &mut ScopedDecoder<'_, '_>) -> Result<Map<String, Value>, XmlDecodeError> {
    let mut rule = Map::new();
    while let Some(mut tag) = item.next_tag() {
        let name = tag.start_el().local().to_owned();
        let member = pascal(&name);
        match name.as_str() {
            "tagSet" => {}
            "referencedGroupInfo" => {
                rule.insert(member, Value::Object(self::rule(&mut tag)?));
            }
            _ => {
                let text = try_data(&mut tag)?.into_owned();
                let value = match name.as_str() {
                    "isEgress" => Value::Bool(text == "true"),
                    "fromPort" | "toPort" => text.parse::<i32>().map_or(Value::Null, Value::from),
                    _ => Value::from(text),
                };
                rule.insert(member, value);
            }
        }
    }
    Ok(rule)
}

/// `groupId` as `GroupId`.
fn pascal(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: Amazon EC2 API reference, `DescribeSecurityGroupRules`, sample response.
    #[test]
    fn rules_read_as_the_aws_cli_prints_them() {
        let text = r#"<DescribeSecurityGroupRulesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
            <requestId>r</requestId><securityGroupRuleSet>
            <item><cidrIpv4>0.0.0.0/0</cidrIpv4><fromPort>-1</fromPort><groupId>sg-1</groupId>
              <groupOwnerId>111122223333</groupOwnerId><ipProtocol>-1</ipProtocol>
              <isEgress>true</isEgress><securityGroupRuleId>sgr-1</securityGroupRuleId>
              <tagSet/><toPort>-1</toPort></item>
            <item><referencedGroupInfo><groupId>sg-2</groupId><userId>1</userId></referencedGroupInfo>
              <fromPort>443</fromPort><groupId>sg-1</groupId><ipProtocol>tcp</ipProtocol>
              <isEgress>false</isEgress><toPort>443</toPort></item>
            </securityGroupRuleSet><nextToken>t</nextToken></DescribeSecurityGroupRulesResponse>"#;
        let (rules, next) = page(text).unwrap();
        assert_eq!(next.as_deref(), Some("t"));
        assert_eq!(rules[0]["CidrIpv4"], "0.0.0.0/0");
        assert_eq!((&rules[0]["IsEgress"], &rules[0]["FromPort"]), (&json!(true), &json!(-1)));
        assert_eq!(rules[1]["ReferencedGroupInfo"]["GroupId"], "sg-2");
    }
}
