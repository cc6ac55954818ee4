//! Who may do what in the account: the roles as the stack makes them, and whoever works with sessions by
//! the policy of DEPLOYMENT.md. Ministack checks each request against them, but for those to a DynamoDB
//! elsewhere and those that its own services make of each other.

use std::collections::BTreeSet;

use super::account::{ACCOUNT, Account, STACK};
use crate::page::root;

/// The file with what was asked for.
pub const ASKED: &str = "asked";

/// What somebody signs requests with.
#[derive(Clone, Debug)]
pub struct Keys {
    pub id: String,
    pub secret: String,
}

impl Keys {
    /// Of whom ministack lets do everything.
    pub fn of_the_account() -> Self {
        Self { id: ACCOUNT.to_owned(), secret: "none".to_owned() }
    }
}

/// A request to the account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    pub who: String,
    pub action: String,
    pub resource: String,
    /// The kind of the partition, of requests to DynamoDB.
    pub partition: String,
    pub allowed: bool,
}

impl Asked {
    /// What it was about, as the simulator lists it.
    fn about(&self) -> &str {
        let kinds =
            [(":runtime/", "runtime"), (":stateMachine:", "machine"), (":execution:", "execution")];
        let kind = kinds.iter().find(|(part, _)| self.resource.contains(part));
        kind.map_or(&self.partition, |(_, kind)| kind)
    }

    /// Whether it is one of those that simulated runs make, which the roles are held against.
    fn is_listed(&self, listed: &str) -> bool {
        let program = self.who.strip_prefix(&format!("{STACK}-")).unwrap_or(&self.who);
        let is = |action: &str| {
            let line = format!("{program} {action} {}", self.about());
            listed.lines().any(|listed| listed == line)
        };
        // A writer reads what stood in its way where the refusal does not bring it.
        let reads = self.action == "dynamodb:GetItem" && is("dynamodb:PutItem");
        let looks = || crate::account::allowed("aws-diagnostics.json").contains(&self.action);
        // Of a person's wish to resume, which simulated runs do not have.
        let resumes = program == "poller"
            && matches!(
                (self.action.as_str(), self.about()),
                ("states:DescribeExecution", "execution") | ("states:StartExecution", "machine")
            );
        // A simulated table has no log of sessions. The tests of the template say who may do this.
        let logs = self.partition == "LOG#" || self.action.starts_with("kms:");
        is(&self.action) || reads || resumes || logs || (program == "agent" && looks())
    }
}

/// The policy of DEPLOYMENT.md for somebody who works with sessions, in ministack's account.
pub fn policy_of_a_person() -> String {
    let page = std::fs::read_to_string(root().join("DEPLOYMENT.md")).unwrap();
    let (_, after) = page.split_once("<!-- person -->\n```json\n").unwrap();
    let (policy, _) = after.split_once("```").unwrap();
    policy.replace("123456789012", ACCOUNT)
}

/// The policy of DEPLOYMENT.md for somebody who deploys, in ministack's account.
pub fn policy_of_a_deployer() -> String {
    let page = std::fs::read_to_string(root().join("DEPLOYMENT.md")).unwrap();
    let (_, after) = page.split_once("<!-- deployer -->\n```json\n").unwrap();
    let (policy, _) = after.split_once("```").unwrap();
    policy.replace("123456789012", ACCOUNT)
}

pub fn elements<'a>(xml: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (opened, closed) = (format!("<{name}>"), format!("</{name}>"));
    let parts: Vec<_> = xml.split(opened.as_str()).skip(1).collect();
    parts.into_iter().map(move |part| part.split_once(closed.as_str()).unwrap().0)
}

impl Account {
    /// Makes a user with this policy and no other.
    pub async fn user(&self, name: &str, policy: &str) -> Keys {
        self.form(&[("Action", "CreateUser"), ("UserName", name)]).await;
        self.form(&[
            ("Action", "PutUserPolicy"),
            ("UserName", name),
            ("PolicyName", "work"),
            ("PolicyDocument", policy),
        ])
        .await;
        let made = self.form(&[("Action", "CreateAccessKey"), ("UserName", name)]).await;
        let element = |name: &str| elements(&made, name).next().unwrap().to_owned();
        Keys { id: element("AccessKeyId"), secret: element("SecretAccessKey") }
    }

    /// The name of a role of the stack, by what its construct is called.
    pub async fn role(&self, construct: &str) -> String {
        let listed = self.form(&[("Action", "ListRoles")]).await;
        let found = elements(&listed, "RoleName").find(|name| name.contains(construct));
        found.unwrap_or_else(|| panic!("{listed}")).to_owned()
    }

    /// What a role may do.
    pub async fn policy(&self, role: &str) -> String {
        let asked = [("Action", "GetRolePolicy"), ("RoleName", role), ("PolicyName", "Work")];
        let answer = self.form(&asked).await;
        let encoded = elements(&answer, "PolicyDocument").next().unwrap();
        let url = reqwest::Url::parse(&format!("{}/?{encoded}", self.endpoint)).unwrap();
        url.query_pairs().next().unwrap().0.into_owned()
    }

    /// Puts something else where a policy says something.
    pub async fn change(&self, construct: &str, from: &str, to: &str) {
        let role = self.role(construct).await;
        let policy = self.policy(&role).await;
        assert!(policy.contains(from), "{policy}");
        self.form(&[
            ("Action", "PutRolePolicy"),
            ("RoleName", &role),
            ("PolicyName", "Work"),
            ("PolicyDocument", &policy.replace(from, to)),
        ])
        .await;
    }

    /// What was asked for, by others than the account itself.
    pub fn asked(&self) -> BTreeSet<Asked> {
        let text = std::fs::read_to_string(self.folder.path().join(ASKED)).unwrap();
        let asked = text.lines().map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            [who, action, resource, partition, how] => Asked {
                who: who.to_owned(),
                action: action.to_owned(),
                resource: resource.to_owned(),
                partition: partition.to_owned(),
                allowed: how == "allowed",
            },
            _ => panic!("{line}"),
        });
        asked.filter(|asked| asked.who != "root").collect()
    }

    /// Who asked for something.
    pub fn who_asked(&self) -> Vec<String> {
        let who: BTreeSet<_> = self.asked().into_iter().map(|asked| asked.who).collect();
        who.into_iter().collect()
    }

    /// Nobody was refused anything, and the programs asked for what they ask for in simulated runs.
    pub fn nobody_was_refused(&self) {
        let listed = root().join("verify/sim/tests/it/requests.txt");
        let listed = std::fs::read_to_string(listed).unwrap();
        let people = ["person", "reader"];
        let other = |asked: &&Asked| {
            !asked.allowed || !(people.contains(&asked.who.as_str()) || asked.is_listed(&listed))
        };
        let asked = self.asked();
        let others: Vec<_> = asked.iter().filter(other).collect();
        assert!(others.is_empty(), "{others:#?}");
        assert!(!asked.is_empty(), "nobody asked for anything");
    }
}
