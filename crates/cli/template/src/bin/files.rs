// An example MCP server: it lists and deletes files in the subfolders of the folder that it is started
// with.

use std::io;
use std::path::{Component, Path, PathBuf};

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::{ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Clone)]
struct Files {
    root: PathBuf,
    tool_router: ToolRouter<Self>,
}

#[derive(Deserialize, JsonSchema)]
struct InFolder {
    folder: String,
}

#[derive(Deserialize, JsonSchema)]
struct InFile {
    folder: String,
    name: String,
}

#[tool_router]
impl Files {
    #[tool(description = "Lists a folder's files, the largest first, and what they hold together.")]
    async fn list_files(&self, Parameters(at): Parameters<InFolder>) -> CallToolResult {
        said(self.list(&at.folder))
    }

    #[tool(description = "Deletes a file in a folder, for good.")]
    async fn delete_file(&self, Parameters(at): Parameters<InFile>) -> CallToolResult {
        said(self.delete(&at.folder, &at.name))
    }

    fn list(&self, folder: &str) -> io::Result<Value> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(self.root.join(plain(folder)?))? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_file() {
                files.push((metadata.len(), entry.file_name().to_string_lossy().into_owned()));
            }
        }
        files.sort_by(|a, b| b.cmp(a));
        let bytes: u64 = files.iter().map(|(bytes, _)| bytes).sum();
        let files: Vec<_> =
            files.iter().map(|(bytes, name)| json!({ "name": name, "bytes": bytes })).collect();
        Ok(json!({ "bytes": bytes, "files": files }))
    }

    fn delete(&self, folder: &str, name: &str) -> io::Result<Value> {
        std::fs::remove_file(self.root.join(plain(folder)?).join(plain(name)?))?;
        Ok(json!({ "deleted": name }))
    }
}

#[tool_handler(router = self.tool_router, name = "files")]
impl ServerHandler for Files {}

/// Accepts a single path component, so that a model cannot leave the folder.
fn plain(name: &str) -> io::Result<&Path> {
    let path = Path::new(name);
    let mut parts = path.components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) => Ok(path),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("invalid name `{name}`"))),
    }
}

fn said(answer: io::Result<Value>) -> CallToolResult {
    match answer {
        Ok(value) => CallToolResult::structured(value),
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::args_os().nth(1).ok_or("the folder to serve is missing")?;
    let files = Files { root: root.into(), tool_router: Files::tool_router() };
    files.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
