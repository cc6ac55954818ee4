//! Investigates payments in memory with the real server.

use std::cell::RefCell;

use card_transactions::{Remote, server};
use fraud::options::Options;
use fraud::tool::Tool;
use graph::agent::Settings;
use graph::definition::Finish;
use graph::effect::ToolCall;
use graph::outcome::Brought;
use graph::testing::{TestSession, World};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub struct Desk {
    runtime: Runtime,
    client: RefCell<RunningService<RoleClient, ()>>,
    path: String,
    _folder: TempDir,
}

pub struct Investigated {
    pub score: f64,
    pub is_calibrated: bool,
    pub action: String,
}

impl Desk {
    pub fn of(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transactions.csv");
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap().to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let served = server(&path, Remote::Refused).unwrap();
        let client = runtime.block_on(async {
            let (near, far) = tokio::io::duplex(64 * 1024);
            tokio::spawn(async move { served.serve(far).await.unwrap().waiting().await.unwrap() });
            ().serve(near).await.unwrap()
        });
        Self { runtime, client: RefCell::new(client), path, _folder: folder }
    }

    fn serve(&self, call: &ToolCall) -> Brought {
        let Value::Object(arguments) = call.arguments.clone() else { panic!("{call:?}") };
        let request = CallToolRequestParams::new(call.tool.clone()).with_arguments(arguments);
        let client = self.client.borrow();
        let result = self.runtime.block_on(client.call_tool(request)).unwrap();
        Brought::Ok(result.structured_content.unwrap())
    }

    pub fn investigate(&self, id: &str) -> Investigated {
        // A draft of a rule changes neither score nor action, and takes the longest.
        let fallback_sequence = Tool::ALL[..5].to_vec();
        let options = json!(Options { fallback_sequence, ..Options::default() });
        let settings = Settings { options, ..Settings::default() };
        let input = json!({ "transaction_id": id, "data": self.path });
        let mut session = TestSession::start(fraud::agent(), input, settings).unwrap();
        let Finish::Completed(result) = session.drive(&mut World::new(|call| self.serve(call)))
        else {
            panic!("{id} was not investigated");
        };
        Investigated {
            // A payment that was not assessed has no score, but evidence that ranks it.
            score: result["reasoning"]["likelihood_permille"].as_f64().unwrap() / 1_000.0,
            is_calibrated: result["calibration"]["is_calibrated"] == true,
            action: result["recommendations"][0]["action"].as_str().unwrap().to_owned(),
        }
    }
}
