//! The repository of the agent's image, in a stack of its own: it must hold an image before the main stack can be
//! deployed.

use anyhow::Result;
use jsii::Is as _;

use crate::cdk::aws_ecr::{LifecycleRule, Repository, RepositoryProps, TagMutability};
use crate::cdk::{App, CfnOutput, CfnOutputProps, RemovalPolicy, Stack, StackProps};
use crate::config::Config;
use crate::names::Names;
use crate::stack::{of, tag};

/// Most untagged images to keep: their tags were moved to newer images.
const UNTAGGED_IMAGES_MAX: u32 = 10;

/// Creates the stack.
///
/// # Errors
/// The CDK rejects it.
pub fn stack(app: &App, config: &Config) -> Result<Stack> {
    let name = format!("{}-image", Names::prefix(config));
    let props = StackProps::new()
        .stack_name(&name)
        .description("Daybook: the repository of the agent's image.");
    let stack = Stack::new_with(&of(app), &name, props)?;
    tag(&stack, config)?;
    let names = crate::stack::names(&stack, config)?;
    let props = RepositoryProps::new()
        .repository_name(names.of("agent"))
        .image_scan_on_push(true)
        // A deployed tag must always name the same image.
        .image_tag_mutability(TagMutability::Immutable)
        .lifecycle_rules(&[LifecycleRule::new()
            .max_image_count(UNTAGGED_IMAGES_MAX)
            .tag_status(crate::cdk::aws_ecr::TagStatus::Untagged)])
        .removal_policy(RemovalPolicy::RetainOnUpdateOrDelete);
    let repository = Repository::new_with(&stack, "Agent", props)?;
    CfnOutput::new(
        &stack,
        "AgentRepositoryUri",
        CfnOutputProps::new(repository.repository_uri()?)
            .description("The repository to push the agent's image to."),
    )?;
    Ok(stack.upcast())
}
