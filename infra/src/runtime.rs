//! The agent runtime: the container on Bedrock AgentCore.

use anyhow::Result;
use jsii::Handle as _;
use workflow::env;

use crate::cdk::aws_bedrockagentcore::{
    AgentRuntimeArtifact, LifecycleConfiguration, Runtime, RuntimeNetworkConfiguration,
    RuntimeProps,
};
use crate::cdk::aws_ecr::Repository;
use crate::cdk::aws_iam::IRole;
use crate::cdk::{Duration, Stack};
use crate::config::Config;
use crate::names::Names;
use crate::roles;

pub(crate) fn make(stack: &Stack, names: &Names, config: &Config) -> Result<Runtime> {
    let role: IRole = roles::make(stack, names, config, "RuntimeRole")?.without_policy_updates()?;
    let images = Repository::from_repository_name(stack, "Images", names.of("agent"))?;
    let image = AgentRuntimeArtifact::from_ecr_repository_with(&images, &config.image_tag)?;
    let kernel = stack.object().kernel();
    let longest = u32::try_from(workflow::limits::RUNNING_MAX.as_secs())?;
    let mut environment = vec![
        // Neither the runtime nor the image sets it, and without it the AWS clients have no endpoint.
        (env::AWS_REGION, names.arn_parts().region.clone()),
        (env::JOURNAL_TABLE_NAME, names.of("journal")),
        (env::JOURNAL_LOG, "on".to_owned()),
        (env::MCP_API_KEY_PARAMETER, config.api_key_parameter.clone()),
    ];
    if let Some(model) = &config.model {
        environment.push((env::DAYBOOK_MODEL, model.clone()));
    }
    if let Some(parameter) = &config.openai_key_parameter {
        environment.push((env::OPENAI_API_KEY, format!("${{ssm:{parameter}}}")));
    }
    environment.extend(config.variables.iter().cloned());
    let lifecycle = LifecycleConfiguration::new()
        .idle_runtime_session_timeout(&Duration::seconds(kernel, config.idle_seconds)?)
        .max_lifetime(&Duration::seconds(kernel, longest)?);
    let props = RuntimeProps::new(&image)
        .runtime_name(names.runtime())
        .description("Daybook's agents.")
        .execution_role(&role)
        .environment_variables(&environment)
        .lifecycle_configuration(lifecycle)
        .network_configuration(&RuntimeNetworkConfiguration::using_public_network(kernel)?);
    Ok(Runtime::new(stack, "Runtime", props)?)
}
