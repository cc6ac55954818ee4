//! Names of all resources. Names are fixed, so that a role can refer to a resource before it
//! exists, and several stages fit into one account.

use workflow::rule::STACK_PREFIX;

use crate::config::Config;

/// The parts of an ARN that depend on the deployment; CDK tokens stand in for them.
#[derive(Clone, Debug)]
pub struct ArnParts {
    /// `aws`, `aws-cn` or `aws-us-gov`.
    pub partition: String,
    pub region: String,
    pub account: String,
}

impl ArnParts {
    /// The tokens as `cdk-nag` prints them.
    pub fn spelt() -> Self {
        Self {
            partition: "<AWS::Partition>".to_owned(),
            region: "<AWS::Region>".to_owned(),
            account: "<AWS::AccountId>".to_owned(),
        }
    }
}

/// The names of one stage.
#[derive(Clone, Debug)]
pub struct Names {
    arn_parts: ArnParts,
    stage: String,
}

impl Names {
    pub fn new(config: &Config, arn_parts: ArnParts) -> Self {
        Self { arn_parts, stage: config.stage.clone() }
    }

    /// Prefix of all names of a stage: `daybook-dev`.
    pub fn prefix(config: &Config) -> String {
        format!("{STACK_PREFIX}{}", config.stage)
    }

    pub fn stage(&self) -> &str {
        &self.stage
    }

    pub fn arn_parts(&self) -> &ArnParts {
        &self.arn_parts
    }

    /// The name of a resource: `daybook-dev-{thing}`.
    pub fn of(&self, thing: &str) -> String {
        format!("{STACK_PREFIX}{}-{thing}", self.stage)
    }

    /// The state machine's name: `daybook-dev`.
    pub fn machine(&self) -> String {
        format!("{STACK_PREFIX}{}", self.stage)
    }

    /// The agent runtime's name, which may not contain hyphens.
    pub fn runtime(&self) -> String {
        self.machine().replace('-', "_")
    }

    /// An ARN in this account and region: `arn:…:{service}:…:{rest}`.
    pub fn arn(&self, service: &str, rest: &str) -> String {
        let ArnParts { partition, region, account } = &self.arn_parts;
        format!("arn:{partition}:{service}:{region}:{account}:{rest}")
    }

    /// The bus for a person's actions, which this stack alone creates and reads: `daybook-dev`.
    pub fn actions_bus(&self) -> String {
        self.machine()
    }

    /// The alias of the key that signs the log of sessions: `alias/daybook-dev-log`.
    pub fn log_key_alias(&self) -> String {
        format!("alias/{}", self.of("log"))
    }

    /// The name of the poller's role, which the key's policy names before the role exists. Names of roles are those of
    /// all regions of an account.
    pub fn poller_role(&self) -> String {
        format!("{}-{}", self.of("poller"), self.arn_parts.region)
    }

    pub fn poller_role_arn(&self) -> String {
        let ArnParts { partition, account, .. } = &self.arn_parts;
        format!("arn:{partition}:iam::{account}:role/{}", self.poller_role())
    }

    /// The state machine that makes checkpoints of the log.
    pub fn checkpoints_arn(&self) -> String {
        self.arn("states", &format!("stateMachine:{}", self.of("checkpoints")))
    }

    pub fn machine_arn(&self) -> String {
        self.arn("states", &format!("stateMachine:{}", self.machine()))
    }

    /// Matches the ARNs of its executions.
    pub fn executions_arn(&self) -> String {
        self.arn("states", &format!("execution:{}:*", self.machine()))
    }

    pub fn function_arn(&self, function: &str) -> String {
        self.arn("lambda", &format!("function:{}", self.of(function)))
    }

    pub fn table_arn(&self) -> String {
        self.arn("dynamodb", &format!("table/{}", self.of("journal")))
    }

    /// Matches the streams of a log group.
    pub fn log_streams_arn(&self, log_group: &str) -> String {
        self.arn("logs", &format!("log-group:{log_group}:log-stream:*"))
    }

    pub fn function_log_group(&self, function: &str) -> String {
        format!("/aws/lambda/{}", self.of(function))
    }
}
