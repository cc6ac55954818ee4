//! The real server over a bundled network, called over MCP.

use std::path::{Path, PathBuf};

use graph::effect::{CATALOGUE, ToolCall};
use graph::outcome::Brought;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, ContentBlock};
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// A client of the server.
pub struct Inventory {
    runtime: Runtime,
    client: RunningService<RoleClient, ()>,
}

pub fn folder(network: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("networks").join(network)
}

pub fn all() -> Vec<String> {
    let entries = std::fs::read_dir(folder("")).unwrap().map(Result::unwrap);
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

impl Inventory {
    /// Starts the server over a bundled network.
    pub fn of(network: &str) -> Self {
        Self::at(&folder(network).join("network.json"))
    }

    pub fn at(file: &Path) -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let server = network_inventory::server(Some(file)).unwrap();
        let client = runtime.block_on(async {
            let (near, far) = tokio::io::duplex(64 * 1024);
            tokio::spawn(async move { server.serve(far).await.unwrap().waiting().await });
            ().serve(near).await.unwrap()
        });
        Self { runtime, client }
    }

    /// The outcome that the driver would return.
    pub fn call(&self, call: &ToolCall) -> Brought {
        match call.tool.as_str() {
            "configured_servers" => Brought::Ok(json!({"servers": []})),
            CATALOGUE => {
                assert_eq!(call.server.as_deref(), Some("network-inventory"));
                let tools = self.runtime.block_on(self.client.list_all_tools()).unwrap();
                let spec = |tool: &rmcp::model::Tool| {
                    json!({
                        "server": "network-inventory", "name": tool.name,
                        "description": tool.description, "input_schema": tool.input_schema,
                    })
                };
                let is_reading = |tool: &&rmcp::model::Tool| {
                    tool.annotations.as_ref().and_then(|hints| hints.read_only_hint) == Some(true)
                };
                let reads: Vec<_> =
                    tools.iter().filter(is_reading).map(|tool| &tool.name).collect();
                let tools: Vec<_> = tools.iter().map(spec).collect();
                Brought::Ok(json!({"tools": tools, "reads": reads}))
            }
            tool => {
                let arguments = call.arguments.as_object().unwrap().clone();
                let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
                let result = self.runtime.block_on(self.client.call_tool(request)).unwrap();
                match (result.is_error, result.structured_content) {
                    (Some(true), _) => match &result.content[..] {
                        [ContentBlock::Text(text)] => Brought::Error(text.text.clone()),
                        other => panic!("{other:?}"),
                    },
                    (_, Some(content)) => Brought::Ok(content),
                    (_, None) => match &result.content[..] {
                        [ContentBlock::Text(text)] => Brought::Ok(said(&text.text)),
                        other => panic!("{other:?}"),
                    },
                }
            }
        }
    }
}

/// A text, or the JSON in it, as the driver reads it.
fn said(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}
