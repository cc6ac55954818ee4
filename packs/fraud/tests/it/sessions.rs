//! Investigations of generated payments with the real server.

mod adversaries;
mod backtest;
mod calibration;
mod eval;
mod injections;
mod patterns;
mod planning;
mod ranking;
mod specification;
mod trade;
mod trouble;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use card_transactions::generator::{Options, generate};
use card_transactions::{Remote, server};
use graph::agent::{Agent, Settings};
use graph::definition::Finish;
use graph::effect::ToolCall;
use graph::outcome::Brought;
use graph::testing::{TestSession, World};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, ContentBlock};
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub fn agent() -> &'static Agent {
    fraud::agent()
}

/// A generated data set, with a server and an MCP client.
pub struct Desk {
    runtime: Runtime,
    client: RefCell<RunningService<RoleClient, ()>>,
    pub rows: Vec<Row>,
    pub path: PathBuf,
    _folder: TempDir,
}

/// A row, parsed by this test: split at commas.
#[derive(Clone, Debug)]
pub struct Row {
    pub id: String,
    pub fields: BTreeMap<String, String>,
    pub is_fraud: bool,
}

impl Desk {
    pub fn generated(seed: u64, rows: u32, fraud_permille: u32) -> Self {
        let mut text = Vec::new();
        generate(Options { seed, rows, fraud_permille }, &mut text).unwrap();
        Self::of(&String::from_utf8(text).unwrap())
    }

    pub fn of(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transactions.csv");
        std::fs::write(&path, text).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let served = server(path.to_str().unwrap(), Remote::Refused).unwrap();
        let client = runtime.block_on(async {
            let (near, far) = tokio::io::duplex(64 * 1024);
            tokio::spawn(async move { served.serve(far).await.unwrap().waiting().await.unwrap() });
            ().serve(near).await.unwrap()
        });
        Self { runtime, client: RefCell::new(client), rows: rows(text), path, _folder: folder }
    }

    /// The server's answer to a call.
    pub fn serve(&self, call: &ToolCall) -> Brought {
        let Value::Object(arguments) = call.arguments.clone() else { panic!("{call:?}") };
        let request = CallToolRequestParams::new(call.tool.clone()).with_arguments(arguments);
        let client = self.client.borrow();
        let result = self.runtime.block_on(client.call_tool(request)).unwrap();
        match (result.is_error, result.structured_content) {
            (Some(true), _) => match result.content.first() {
                Some(ContentBlock::Text(text)) => Brought::Error(text.text.clone()),
                other => panic!("{other:?}"),
            },
            (_, Some(content)) => Brought::Ok(content),
            other => panic!("{other:?}"),
        }
    }

    pub fn input(&self, id: &str) -> Value {
        json!({ "transaction_id": id, "data": self.path })
    }

    pub fn investigate(&self, id: &str) -> Value {
        let mut session = TestSession::start(agent(), self.input(id), Settings::default()).unwrap();
        completed(session.drive(&mut World::new(|call| self.serve(call))))
    }

    /// Frauds and honest payments of the last three quarters, with every nth honest one.
    pub fn targets(&self, every: usize) -> (Vec<&Row>, Vec<&Row>) {
        let late = &self.rows[self.rows.len() / 4..];
        let (frauds, honest): (Vec<_>, Vec<_>) = late.iter().partition(|row| row.is_fraud);
        (frauds, honest.into_iter().step_by(every).collect())
    }
}

pub fn completed(finish: Finish) -> Value {
    match finish {
        Finish::Completed(result) => result,
        Finish::Failed { error, .. } => panic!("{error}"),
    }
}

pub fn rows(text: &str) -> Vec<Row> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines
        .map(|line| {
            let fields: BTreeMap<String, String> = header
                .iter()
                .zip(line.split(','))
                .map(|(name, field)| ((*name).to_owned(), field.to_owned()))
                .collect();
            Row {
                id: fields["transaction_id"].clone(),
                is_fraud: fields["is_fraud"] == "true",
                fields,
            }
        })
        .collect()
}

/// The same data with one field changed.
pub fn with_field(path: &Path, id: &str, field: &str, value: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let header = text.lines().next().unwrap();
    let place = header.split(',').position(|name| name == field).unwrap();
    let change = |line: &str| {
        let mut fields: Vec<&str> = line.split(',').collect();
        if fields[0] == id {
            fields[place] = value;
        }
        fields.join(",")
    };
    text.lines().map(|line| change(line) + "\n").collect()
}
