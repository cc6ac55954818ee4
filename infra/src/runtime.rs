//! The agent runtime: the container on Bedrock AgentCore.

use anyhow::{Context as _, Result, ensure};
use jsii::Handle as _;
use serde_json::{Map, Value};
use workflow::env;

use crate::cdk::aws_bedrockagentcore::{
    AgentRuntimeArtifact, LifecycleConfiguration, Runtime, RuntimeNetworkConfiguration,
    RuntimeProps,
};
use crate::cdk::aws_ecr::Repository;
use crate::cdk::aws_iam::IRole;
use crate::cdk::{Duration, Stack};
use crate::config::{Config, VALUE_CHARS_MAX};
use crate::names::Names;
use crate::roles;

pub(crate) fn make(stack: &Stack, names: &Names, config: &Config) -> Result<Runtime> {
    let role: IRole = roles::make(stack, names, config, "RuntimeRole")?.without_policy_updates()?;
    let images = Repository::from_repository_name(stack, "Images", names.of("agent"))?;
    let image = AgentRuntimeArtifact::from_ecr_repository_with(&images, &config.image_tag)?;
    let kernel = stack.object().kernel();
    let longest = u32::try_from(workflow::limits::HOST_LIFETIME_MAX.as_secs())?;
    let servers = config.mcp_servers.as_deref().map(servers_file).transpose()?;
    let environment = environment(names, config, servers);
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

/// The agents' environment. `servers` is the text of a servers file.
fn environment(
    names: &Names,
    config: &Config,
    servers: Option<String>,
) -> Vec<(&'static str, String)> {
    let of_parameter = |parameter: &String| format!("${{ssm:{parameter}}}");
    let set = [
        // Neither the runtime nor the image sets it, and without it the AWS clients have no endpoint.
        (env::AWS_REGION, Some(names.arn_parts().region.clone())),
        (env::JOURNAL_TABLE_NAME, Some(names.of("journal"))),
        (env::JOURNAL_LOG, Some("on".to_owned())),
        (env::MCP_API_KEY_PARAMETER, Some(config.api_key_parameter.clone())),
        (env::DAYBOOK_MODEL, config.model.clone()),
        (env::OPENAI_API_KEY, config.openai_key_parameter.as_ref().map(of_parameter)),
        (env::DAYBOOK_MCP_SERVERS, servers),
    ];
    let set = set.into_iter().filter_map(|(name, value)| Some((name, value?)));
    set.chain(config.variables.iter().cloned()).collect()
}

fn servers_file(path: &str) -> Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let is_ours = |file: &Map<String, Value>| file.keys().eq(["mcpServers"]);
    let servers = serde_json::from_str(&text).ok().filter(is_ours);
    let servers = servers.with_context(|| {
        format!(r#"{path} is no servers file, expected {{"mcpServers": {{…}}}}"#)
    })?;
    let text = Value::Object(servers).to_string();
    let chars = text.chars().count();
    ensure!(
        chars <= VALUE_CHARS_MAX,
        "{path} has {chars} characters; a variable of the agent runtime has at most {VALUE_CHARS_MAX}\n\
         hint: put the file into an image of your own and name it in DAYBOOK_MCP_SERVERS"
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::ArnParts;

    #[test]
    fn a_deployment_sets_variables_of_the_agents() {
        let settings = [
            ("MCP_SERVER_URL", "https://tools.example/sse"),
            ("MCP_INIT_TIMEOUT", "5"),
            ("model", "bedrock:m"),
        ];
        let lookup = |name: &str| {
            let found = settings.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let config = Config::read(&lookup).unwrap();
        let names = Names::new(&config, ArnParts::spelt());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("servers.json");
        std::fs::write(&file, r#"{ "mcpServers": {} }"#).unwrap();
        let servers = servers_file(file.to_str().unwrap()).unwrap();
        let environment = environment(&names, &config, Some(servers));
        let of = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_str())
        };
        for other in ["[]", r#"{"servers": {}}"#, "no JSON"] {
            std::fs::write(&file, other).unwrap();
            let refused = servers_file(file.to_str().unwrap()).unwrap_err().to_string();
            assert!(refused.contains("is no servers file"), "{refused}");
        }
        assert_eq!(of("MCP_SERVER_URL"), Some("https://tools.example/sse"));
        assert_eq!(of("MCP_INIT_TIMEOUT"), Some("5"));
        assert_eq!(of("DAYBOOK_MODEL"), Some("bedrock:m"));
        assert_eq!(of("DAYBOOK_MCP_SERVERS"), Some(r#"{"mcpServers":{}}"#));
    }
}
