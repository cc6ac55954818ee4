//! What everything is called. Names are fixed, so that a role can be given what does not exist yet and
//! several stages stand side by side.

use workflow::rule::STACK_PREFIX;

use crate::config::Config;

/// The parts of an ARN that depend on where the stack is; the CDK's tokens for them.
#[derive(Clone, Debug)]
pub struct Place {
    /// `aws`, `aws-cn` or `aws-us-gov`.
    pub partition: String,
    /// The region.
    pub region: String,
    /// The account's number.
    pub account: String,
}

impl Place {
    /// As `cdk-nag` spells what is known at deployment only.
    pub fn spelt() -> Self {
        Self {
            partition: "<AWS::Partition>".to_owned(),
            region: "<AWS::Region>".to_owned(),
            account: "<AWS::AccountId>".to_owned(),
        }
    }
}

/// The names of one stage's things.
#[derive(Clone, Debug)]
pub struct Names {
    place: Place,
    stage: String,
}

impl Names {
    /// The names in a place.
    pub fn new(config: &Config, place: Place) -> Self {
        Self { place, stage: config.stage.clone() }
    }

    /// What all names of a stage begin with: `daybook-dev`.
    pub fn prefix(config: &Config) -> String {
        format!("{STACK_PREFIX}{}", config.stage)
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// A thing's name: `daybook-dev-{thing}`.
    pub fn of(&self, thing: &str) -> String {
        format!("{STACK_PREFIX}{}-{thing}", self.stage)
    }

    /// The state machine's name: `daybook-dev`.
    pub fn machine(&self) -> String {
        format!("{STACK_PREFIX}{}", self.stage)
    }

    /// The agent runtime's name, in which there are no hyphens.
    pub fn runtime(&self) -> String {
        self.machine().replace('-', "_")
    }

    /// An ARN in this account and region: `arn:…:{service}:…:{rest}`.
    pub fn arn(&self, service: &str, rest: &str) -> String {
        let Place { partition, region, account } = &self.place;
        format!("arn:{partition}:{service}:{region}:{account}:{rest}")
    }

    /// The state machine's ARN.
    pub fn machine_arn(&self) -> String {
        self.arn("states", &format!("stateMachine:{}", self.machine()))
    }

    /// The ARNs of its executions.
    pub fn executions_arn(&self) -> String {
        self.arn("states", &format!("execution:{}:*", self.machine()))
    }

    /// A function's ARN.
    pub fn function_arn(&self, function: &str) -> String {
        self.arn("lambda", &format!("function:{}", self.of(function)))
    }

    /// The journal's ARN.
    pub fn table_arn(&self) -> String {
        self.arn("dynamodb", &format!("table/{}", self.of("journal")))
    }

    /// A log group's ARN, with its streams.
    pub fn log_streams_arn(&self, log_group: &str) -> String {
        self.arn("logs", &format!("log-group:{log_group}:log-stream:*"))
    }

    /// The log group of a function.
    pub fn function_log_group(&self, function: &str) -> String {
        format!("/aws/lambda/{}", self.of(function))
    }
}
