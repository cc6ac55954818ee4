//! The grants of AWS managed policies that Lambda functions commonly have.
//!
//! A policy is listed if it grants storage, logs or metrics, or is so common that without it most verdicts
//! would be uncertain.
//!
//! Source: AWS Managed Policy Reference Guide.

use super::iam::{self, Resource};

/// An action pattern and the resources that it is granted on.
#[derive(Debug)]
pub(super) struct Grant {
    action: &'static str,
    resource: &'static str,
}

impl Grant {
    pub(super) fn covers(&self, action: &str, resource: Resource<'_>) -> bool {
        iam::action_fits(self.action, action) && resource.fits(self.resource)
    }
}

const fn on_all(action: &'static str) -> Grant {
    Grant { action, resource: "*" }
}

const fn on(action: &'static str, resource: &'static str) -> Grant {
    Grant { action, resource }
}

const CREATE_LOG_GROUP: Grant = on_all("logs:CreateLogGroup");
const CREATE_LOG_STREAM: Grant = on_all("logs:CreateLogStream");
const PUT_LOG_EVENTS: Grant = on_all("logs:PutLogEvents");

const INSIGHTS_LOGS: &str = "arn:aws:logs:*:*:log-group:/aws/lambda-insights:*";

/// By name, without the path.
const POLICIES: &[(&str, &[Grant])] = &[
    ("AWSLambdaBasicExecutionRole", &[CREATE_LOG_GROUP, CREATE_LOG_STREAM, PUT_LOG_EVENTS]),
    (
        "AWSLambdaVPCAccessExecutionRole",
        &[
            CREATE_LOG_GROUP,
            CREATE_LOG_STREAM,
            PUT_LOG_EVENTS,
            on_all("ec2:CreateNetworkInterface"),
            on_all("ec2:DescribeNetworkInterfaces"),
            on_all("ec2:DescribeSubnets"),
            on_all("ec2:DeleteNetworkInterface"),
            on_all("ec2:AssignPrivateIpAddresses"),
            on_all("ec2:UnassignPrivateIpAddresses"),
        ],
    ),
    (
        "AWSLambdaENIManagementAccess",
        &[
            on_all("ec2:CreateNetworkInterface"),
            on_all("ec2:DescribeNetworkInterfaces"),
            on_all("ec2:DeleteNetworkInterface"),
            on_all("ec2:AssignPrivateIpAddresses"),
            on_all("ec2:UnassignPrivateIpAddresses"),
        ],
    ),
    (
        "AWSLambdaSQSQueueExecutionRole",
        &[
            on_all("sqs:ReceiveMessage"),
            on_all("sqs:DeleteMessage"),
            on_all("sqs:GetQueueAttributes"),
            CREATE_LOG_GROUP,
            CREATE_LOG_STREAM,
            PUT_LOG_EVENTS,
        ],
    ),
    (
        "AWSLambdaDynamoDBExecutionRole",
        &[
            on_all("dynamodb:DescribeStream"),
            on_all("dynamodb:GetRecords"),
            on_all("dynamodb:GetShardIterator"),
            on_all("dynamodb:ListStreams"),
            CREATE_LOG_GROUP,
            CREATE_LOG_STREAM,
            PUT_LOG_EVENTS,
        ],
    ),
    (
        "AWSLambdaKinesisExecutionRole",
        &[
            on_all("kinesis:DescribeStream"),
            on_all("kinesis:DescribeStreamSummary"),
            on_all("kinesis:GetRecords"),
            on_all("kinesis:GetShardIterator"),
            on_all("kinesis:ListShards"),
            on_all("kinesis:ListStreams"),
            on_all("kinesis:SubscribeToShard"),
            CREATE_LOG_GROUP,
            CREATE_LOG_STREAM,
            PUT_LOG_EVENTS,
        ],
    ),
    (
        "AWSLambdaExecute",
        &[
            on_all("logs:*"),
            on("s3:GetObject", "arn:aws:s3:::*"),
            on("s3:PutObject", "arn:aws:s3:::*"),
        ],
    ),
    (
        "CloudWatchLambdaInsightsExecutionRolePolicy",
        &[
            CREATE_LOG_GROUP,
            on("logs:CreateLogStream", INSIGHTS_LOGS),
            on("logs:PutLogEvents", INSIGHTS_LOGS),
        ],
    ),
    ("AWSLambdaRole", &[on_all("lambda:InvokeFunction")]),
    (
        "AmazonS3ReadOnlyAccess",
        &[
            on_all("s3:Get*"),
            on_all("s3:List*"),
            on_all("s3:Describe*"),
            on_all("s3-object-lambda:Get*"),
            on_all("s3-object-lambda:List*"),
        ],
    ),
    ("AmazonS3FullAccess", &[on_all("s3:*"), on_all("s3-object-lambda:*")]),
    ("CloudWatchLogsFullAccess", &[on_all("logs:*"), on_all("cloudwatch:GenerateQuery")]),
    (
        "CloudWatchFullAccess",
        &[
            on_all("autoscaling:Describe*"),
            on_all("cloudwatch:*"),
            on_all("logs:*"),
            on_all("sns:*"),
        ],
    ),
    (
        "CloudWatchFullAccessV2",
        &[on_all("cloudwatch:*"), on_all("logs:*"), on_all("sns:ListTopics")],
    ),
    (
        "AWSXRayDaemonWriteAccess",
        &[
            on_all("xray:PutTraceSegments"),
            on_all("xray:PutTelemetryRecords"),
            on_all("xray:GetSamplingRules"),
            on_all("xray:GetSamplingTargets"),
            on_all("xray:GetSamplingStatisticSummaries"),
        ],
    ),
    (
        "AWSXrayWriteOnlyAccess",
        &[
            on_all("xray:PutTraceSegments"),
            on_all("xray:PutTelemetryRecords"),
            on_all("xray:GetSampling*"),
        ],
    ),
    ("AmazonDynamoDBFullAccess", &[on_all("dynamodb:*"), on_all("dax:*")]),
    (
        "AmazonDynamoDBReadOnlyAccess",
        &[
            on_all("dynamodb:BatchGetItem"),
            on_all("dynamodb:Describe*"),
            on_all("dynamodb:Get*"),
            on_all("dynamodb:List*"),
            on_all("dynamodb:PartiQLSelect"),
            on_all("dynamodb:Query"),
            on_all("dynamodb:Scan"),
        ],
    ),
    ("AmazonSQSFullAccess", &[on_all("sqs:*")]),
    ("AmazonSNSFullAccess", &[on_all("sns:*")]),
    ("AmazonSESFullAccess", &[on_all("ses:*")]),
    ("SecretsManagerReadWrite", &[on_all("secretsmanager:*"), on_all("kms:DescribeKey")]),
    (
        "AmazonSSMReadOnlyAccess",
        &[on_all("ssm:Describe*"), on_all("ssm:Get*"), on_all("ssm:List*")],
    ),
    ("AdministratorAccess", &[on_all("*")]),
];

/// The grants of an attached policy, if known. Only AWS's own policies are recognised by name.
pub(super) fn grants(arn: &str) -> Option<&'static [Grant]> {
    let (partition, path) = arn.split_once(":iam::aws:policy/")?;
    partition.strip_prefix("arn:aws")?;
    let name = path.rsplit('/').next()?;
    POLICIES.iter().find(|(known, _)| *known == name).map(|(_, grants)| *grants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_listed_once() {
        for (at, (name, grants)) in POLICIES.iter().enumerate() {
            assert!(!POLICIES[..at].iter().any(|(other, _)| other == name), "{name}");
            assert!(!grants.is_empty(), "{name}");
        }
    }

    #[test]
    fn only_policies_of_aws_are_known() {
        assert!(grants("arn:aws-cn:iam::aws:policy/AmazonS3FullAccess").is_some());
        assert!(grants("arn:aws:iam::123456789012:policy/AmazonS3FullAccess").is_none());
        assert!(grants("AmazonS3FullAccess").is_none());
    }
}
