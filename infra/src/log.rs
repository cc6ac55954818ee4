//! The key that signs the log of sessions, the bucket that keeps its checkpoints, and the state machine that makes them.

use anyhow::Result;
use jsii::{Handle as _, Value};
use serde_json::json;
use workflow::env;

use crate::cdk::aws_iam::IRole;
use crate::cdk::aws_kms::{CfnAlias, CfnAliasProps, CfnAliasPropsRequired, CfnKey, CfnKeyProps};
use crate::cdk::aws_s3::{
    CfnBucket, CfnBucketBucketEncryptionProperty, CfnBucketDefaultRetentionProperty,
    CfnBucketObjectLockConfigurationProperty, CfnBucketObjectLockRuleProperty,
    CfnBucketOwnershipControlsProperty, CfnBucketOwnershipControlsRuleProperty, CfnBucketPolicy,
    CfnBucketPolicyProps, CfnBucketProps, CfnBucketPublicAccessBlockConfigurationProperty,
    CfnBucketServerSideEncryptionByDefaultProperty, CfnBucketServerSideEncryptionRuleProperty,
    CfnBucketVersioningConfigurationProperty,
};
use crate::cdk::aws_stepfunctions::{
    DefinitionBody, LogLevel, LogOptions, StateMachine, StateMachineProps, StateMachineType,
};
use crate::cdk::{
    Acknowledgment, AcknowledgmentRequired, RemovalPolicy, RemovalPolicyOptions, Stack, Validations,
};
use crate::config::Config;
use crate::functions::log_group;
use crate::names::Names;
use crate::roles;
use crate::stack::of;

/// The definition of the state machine.
pub const MACHINE: &str = include_str!("checkpoints.asl.json");

/// What may be done with the key through IAM policies: everything but signing, and grants, which could allow that.
///
/// Source: AWS KMS Developer Guide, "Allows key administrators to administer the KMS key".
const ADMINISTRATION: &[&str] = &[
    "kms:CreateAlias",
    "kms:Describe*",
    "kms:Enable*",
    "kms:List*",
    "kms:Put*",
    "kms:Update*",
    "kms:Revoke*",
    "kms:Disable*",
    "kms:Get*",
    "kms:Delete*",
    "kms:TagResource",
    "kms:UntagResource",
    "kms:ScheduleKeyDeletion",
    "kms:CancelKeyDeletion",
];

/// Creates the key and its alias. Only the poller's role may sign with it. A policy can name a role that does not exist
/// yet in a condition only. A role that is deleted and created again under this name may sign.
pub(crate) fn key(stack: &Stack, names: &Names, config: &Config) -> Result<CfnAlias> {
    let account = &names.arn_parts().account;
    let root = format!("arn:{}:iam::{account}:root", names.arn_parts().partition);
    let policy = json!({
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "Administration", "Effect": "Allow", "Principal": { "AWS": root },
                "Action": ADMINISTRATION, "Resource": "*",
            },
            {
                "Sid": "OnlyThePollerSigns", "Effect": "Allow",
                "Principal": { "AWS": "*" },
                "Action": ["kms:Sign", "kms:GetPublicKey"], "Resource": "*",
                "Condition": {
                    "StringEquals": { "kms:CallerAccount": account },
                    "ArnEquals": { "aws:PrincipalArn": names.poller_role_arn() },
                },
            },
        ],
    });
    let props = CfnKeyProps::new()
        .description("Daybook: signs checkpoints of the log of sessions.")
        .key_spec("ECC_NIST_EDWARDS25519")
        .key_usage("SIGN_VERIFY")
        .key_policy(&policy);
    let key = CfnKey::new_with(stack, "LogKey", props)?;
    if config.protect {
        let policy = RemovalPolicy::RetainOnUpdateOrDelete;
        key.apply_removal_policy_with(policy, RemovalPolicyOptions::new())?;
    }
    let alias = names.log_key_alias();
    let required = CfnAliasPropsRequired { alias_name: &alias, target_key_id: &key.r#ref()? };
    Ok(CfnAlias::new(stack, "LogKeyAlias", CfnAliasProps::new(required))?)
}

/// Creates the bucket for copies of checkpoints. Nobody can change or delete a copy for as long as records are kept. The
/// bucket stays when the stack is deleted: AWS deletes no bucket that has objects.
pub(crate) fn bucket(stack: &Stack, config: &Config) -> Result<CfnBucket> {
    let mode = config.checkpoint_lock.mode();
    let retention = CfnBucketDefaultRetentionProperty::new().mode(mode).days(config.ttl_days);
    let rule = CfnBucketObjectLockRuleProperty::new().default_retention(retention);
    let lock =
        CfnBucketObjectLockConfigurationProperty::new().object_lock_enabled("Enabled").rule(rule);
    let encrypted = CfnBucketServerSideEncryptionByDefaultProperty::new("AES256");
    let encrypted = CfnBucketServerSideEncryptionRuleProperty::new()
        .server_side_encryption_by_default(encrypted);
    let private = CfnBucketPublicAccessBlockConfigurationProperty::new()
        .block_public_acls(true)
        .block_public_policy(true)
        .ignore_public_acls(true)
        .restrict_public_buckets(true);
    let owned =
        CfnBucketOwnershipControlsRuleProperty::new().object_ownership("BucketOwnerEnforced");
    let props = CfnBucketProps::new()
        .object_lock_enabled(true)
        .object_lock_configuration(lock)
        .versioning_configuration(CfnBucketVersioningConfigurationProperty::new("Enabled"))
        .bucket_encryption(CfnBucketBucketEncryptionProperty::new(&[encrypted]))
        .public_access_block_configuration(private)
        .ownership_controls(CfnBucketOwnershipControlsProperty::new(&[owned]));
    let bucket = CfnBucket::new_with(stack, "Checkpoints", props)?;
    let policy = RemovalPolicy::RetainOnUpdateOrDelete;
    bucket.apply_removal_policy_with(policy, RemovalPolicyOptions::new())?;
    let reason =
        "Each object is a public checkpoint that nobody can change; CloudTrail has who wrote it.";
    let reason = AcknowledgmentRequired { id: "AwsSolutions-S1", reason };
    Validations::of(&of(&bucket))?.acknowledge(&[Acknowledgment::new(reason)])?;
    let (name, arn) = (bucket.r#ref()?, bucket.attr_arn()?);
    let props = CfnBucketPolicyProps::new(&name, &only_tls(&arn));
    CfnBucketPolicy::new(stack, "CheckpointsPolicy", props)?;
    Ok(bucket)
}

fn only_tls(bucket: &str) -> Value {
    json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Sid": "OnlyOverTls", "Effect": "Deny", "Principal": "*", "Action": "s3:*",
            "Resource": [bucket, format!("{bucket}/*")],
            "Condition": { "Bool": { "aws:SecureTransport": "false" } },
        }],
    })
}

/// Creates the state machine that signs the log and copies what is new.
pub(crate) fn machine(
    stack: &Stack,
    names: &Names,
    config: &Config,
    poller_arn: &str,
    bucket: &str,
) -> Result<StateMachine> {
    let role: IRole =
        roles::make(stack, names, config, "CheckpointsRole")?.without_policy_updates()?;
    let logs = format!("/aws/vendedlogs/states/{}", names.of("checkpoints"));
    let logs = log_group(stack, "CheckpointsLogs", &logs, config)?;
    let substitutions =
        [("POLLER_FUNCTION_ARN", poller_arn.to_owned()), ("BUCKET", bucket.to_owned())];
    let text = DefinitionBody::from_string(stack.object().kernel(), MACHINE)?;
    let props = StateMachineProps::new()
        .state_machine_name(names.of("checkpoints"))
        .state_machine_type(StateMachineType::Express)
        .definition_body(&text)
        .definition_substitutions(&substitutions)
        .role(&role)
        .logs(
            LogOptions::new().destination(&logs).level(LogLevel::All).include_execution_data(false),
        )
        .tracing_enabled(true);
    Ok(StateMachine::new(stack, "CheckpointsMachine", props)?)
}

/// The variables of the functions that keep the log.
pub(crate) fn environment(names: &Names, function: &str) -> Vec<(&'static str, String)> {
    let mut variables = vec![(env::JOURNAL_LOG, "on".to_owned())];
    if function == "poller" {
        variables.push((env::JOURNAL_LOG_KEY, names.log_key_alias()));
    }
    variables
}
