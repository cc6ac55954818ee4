//! An account that is none of ours: ministack, with the stack in it that the kept template describes.
//!
//! `CloudFormation` makes everything there from the template as it is, with what ministack (1.5.33)
//! cannot do put otherwise:
//!
//! - It makes and runs no agent runtimes: [`super::runtime`] stands in for the stack's, behind it.
//! - A parked task's `TimeoutSeconds` is a number to it, never an expression ([`PARKED_S`]), and it knows
//!   no heartbeats: it polls at a fixed interval.
//! - Its alarms put no events, and nobody else may in the name of CloudWatch: the rule listens to
//!   [`ALARMS`] instead.
//! - It knows no policies of buses: everybody whose own policy allows it may put events on the bus for actions.
//! - What the state machine says of the time is scaled, so that silence need not be waited for
//!   ([`SCALE`]); the agents' clock runs as fast.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use journal::clock::Stamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::access::{ASKED, Keys, policy_of_a_person};
use crate::harness::{DEADLINE, Ran, daybook, run, run_within, tool};
use crate::page::root;

/// How many times as fast as the machine's the clocks of state machine and agents run.
pub const SCALE: u32 = 10;

/// How long the workflow is parked between two looks, in the machine's seconds.
const PARKED_S: u32 = 1;

/// How long a script has, which may compile the stack's crate first.
const SCRIPT_WITHIN: Duration = Duration::from_secs(240);

/// Who puts the events of alarms.
pub const ALARMS: &str = "not-quite-aws.cloudwatch";

/// The account and the region of whoever asks with [`authorization`].
pub const ACCOUNT: &str = "000000000000";
pub const REGION: &str = "us-east-1";

/// The name of the stack, of its machine, and the beginning of all other names.
pub const STACK: &str = "daybook-dev";

/// What the runtime is called there.
pub const RUNTIME_ARN: &str =
    "arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/daybook_dev-a1B2c3D4e5";

/// Where the CDK puts what a template refers to.
const ASSETS: &str = "cdk-hnb659fds-assets-000000000000-us-east-1";

/// Which DynamoDB has the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Table {
    /// Ministack's own.
    Ministack,
    /// One at this endpoint. Ministack's state machines know only its own, so that their writes are
    /// handed on; nobody's permissions are looked at there.
    At(String),
}

/// The account with the stack in it; gone when dropped.
pub struct Account {
    /// When its scaled clocks began.
    pub origin: Stamp,
    pub endpoint: String,
    table: Table,
    pub(super) folder: TempDir,
    client: reqwest::Client,
    process: Process,
    /// Who works with sessions.
    person: Keys,
    agent: Keys,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Account {
    /// Opens one whose functions find the runtime there, if this run has ministack and the programs.
    pub async fn open(table: Table, runtime: &str) -> Option<Self> {
        let python = tool("DAYBOOK_TEST_MINISTACK")?;
        let folder = tempfile::tempdir().unwrap();
        let mut functions = Vec::new();
        for name in ["invoker", "poller", "watchdog"] {
            functions.push((name, zipped(&python, folder.path(), name)?));
        }
        let port = free_port();
        let process = start(&python, folder.path(), port, Some(runtime), &table);
        let mut account = Self::at(port, table, folder, process).await;
        account.furnish(&functions).await;
        account.person = account.user("person", &policy_of_a_person()).await;
        // AgentCore gives a container its role; here that takes a user with the same policy.
        let role = account.role("RuntimeRole").await;
        account.agent = account.user("agent", &account.policy(&role).await).await;
        Some(account)
    }

    /// Opens one without a stack. It makes a runtime only if its image is there.
    pub async fn empty() -> Option<Self> {
        let python = tool("DAYBOOK_TEST_MINISTACK")?;
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let process = start(&python, folder.path(), port, None, &Table::Ministack);
        Some(Self::at(port, Table::Ministack, folder, process).await)
    }

    async fn at(port: u16, table: Table, folder: TempDir, process: Process) -> Self {
        let (endpoint, origin) = (endpoint(port), journal::clock::Clock::system().now());
        let client = reqwest::Client::new();
        let (person, agent) = (Keys::of_the_account(), Keys::of_the_account());
        let mut account = Self { origin, endpoint, table, folder, client, process, person, agent };
        account.ready().await;
        account
    }

    async fn ready(&mut self) {
        let waiting = async {
            while self.client.get(&self.endpoint).send().await.is_err() {
                let ended = self.process.0.try_wait().unwrap();
                assert_eq!(ended, None, "ministack does not start");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.expect("ministack listens");
    }

    /// What `cdk bootstrap` and `cdk deploy` do.
    async fn furnish(&self, functions: &[(&str, Vec<u8>)]) {
        let version =
            json!({ "Name": "/cdk-bootstrap/hnb659fds/version", "Type": "String", "Value": "30" });
        self.ask("ssm", "AmazonSSM.PutParameter", &version).await;
        let template = self.template();
        self.put_object(ASSETS, Vec::new()).await;
        for (name, zip) in functions {
            let resources = template["Resources"].as_object().unwrap();
            let of = format!("{STACK}-{name}");
            let function = resources.values().find(|it| it["Properties"]["FunctionName"] == of);
            let key = function.unwrap()["Properties"]["Code"]["S3Key"].as_str().unwrap();
            self.put_object(&format!("{ASSETS}/{key}"), zip.clone()).await;
        }
        let journal = golden(&format!("{STACK}-journal"));
        if let Table::At(endpoint) = &self.table {
            self.make_table(endpoint, &journal).await;
        }
        self.make_stack(&format!("{STACK}-journal"), &journal).await;
        self.make_stack(STACK, &template).await;
    }

    async fn make_stack(&self, name: &str, template: &Value) {
        let path = format!("{ASSETS}/{name}.json");
        self.put_object(&path, template.to_string().into()).await;
        let url = format!("{}/{path}", self.endpoint);
        let named = "CAPABILITY_NAMED_IAM";
        self.form(&[
            ("Action", "CreateStack"),
            ("StackName", name),
            ("TemplateURL", &url),
            ("Capabilities.member.1", named),
            ("EnableTerminationProtection", "true"),
        ])
        .await;
        let made = async {
            loop {
                let described =
                    self.form(&[("Action", "DescribeStacks"), ("StackName", name)]).await;
                if described.contains("<StackStatus>CREATE_COMPLETE<") {
                    return;
                }
                assert!(described.contains("<StackStatus>CREATE_IN_PROGRESS<"), "{described}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(DEADLINE, made).await.expect("the stack is made");
    }

    /// The kept template as ministack takes it.
    fn template(&self) -> Value {
        let mut template = kept();
        let resources = template["Resources"].as_object_mut().unwrap();
        let machine = (resources.values_mut())
            .find(|resource| resource["Properties"]["StateMachineName"] == STACK)
            .unwrap();
        let text = &mut machine["Properties"]["DefinitionString"];
        *text = json!(self.as_ministack_runs(text.as_str().unwrap()));
        let text = template.to_string();
        let text = text.replace(r#""aws.cloudwatch""#, &json!(ALARMS).to_string());
        serde_json::from_str(&text).unwrap()
    }

    fn as_ministack_runs(&self, text: &str) -> String {
        let expression = r#""TimeoutSeconds": "{% $watch.timeout_s %}""#;
        assert_eq!(text.matches(expression).count(), 1, "it is the parked task's alone");
        let text = text.replace(expression, &format!(r#""TimeoutSeconds": {PARKED_S}"#));
        let (time, origin) = ("$states.context.State.EnteredTime", self.origin.millis());
        let scaled = format!("$fromMillis({origin} + ($toMillis({time}) - {origin}) * {SCALE})");
        text.replace(time, &scaled)
    }

    async fn make_table(&self, endpoint: &str, template: &Value) {
        let resources = template["Resources"].as_object().unwrap();
        let mut tables = resources.values().filter(|it| it["Type"] == "AWS::DynamoDB::Table");
        let described = &tables.next().unwrap()["Properties"];
        let mut table = json!({});
        for property in [
            "TableName",
            "AttributeDefinitions",
            "KeySchema",
            "BillingMode",
            "GlobalSecondaryIndexes",
        ] {
            table[property] = described[property].clone();
        }
        let request = self.client.post(endpoint).body(table.to_string());
        let made = request
            .header("Authorization", authorization("dynamodb"))
            .header("Content-Type", "application/x-amz-json-1.0")
            .header("X-Amz-Target", "DynamoDB_20120810.CreateTable")
            .send()
            .await
            .unwrap();
        let (status, said) = (made.status(), made.text().await.unwrap());
        // Another test may have made it: sessions have their own partitions.
        assert!(status.is_success() || said.contains("ResourceInUse"), "{said}");
    }

    /// One request of AWS's JSON protocol.
    pub async fn ask(&self, service: &str, target: &str, body: &Value) -> Value {
        let request = self
            .client
            .post(&self.endpoint)
            .header("Authorization", authorization(service))
            .header("Content-Type", "application/x-amz-json-1.1")
            .header("X-Amz-Target", target)
            .body(body.to_string());
        let said = answered(request).await;
        serde_json::from_str(&said).unwrap_or_default()
    }

    /// One request of AWS's query protocol, to the service that its action is of.
    pub async fn form(&self, fields: &[(&str, &str)]) -> String {
        let service = match fields[0].1 {
            "CreateStack" | "DescribeStacks" => "cloudformation",
            "Publish" => "sns",
            _ => "iam",
        };
        let form = reqwest::Url::parse_with_params(&self.endpoint, fields).unwrap();
        let form = form.query().unwrap().to_owned();
        let request = self
            .client
            .post(&self.endpoint)
            .header("Authorization", authorization(service))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(form);
        answered(request).await
    }

    /// Takes a function away.
    pub async fn delete_function(&self, name: &str) {
        let path = format!("{}/2015-03-31/functions/{STACK}-{name}", self.endpoint);
        answered(self.client.delete(path).header("Authorization", authorization("lambda"))).await;
    }

    async fn put_object(&self, path: &str, body: Vec<u8>) {
        let request = self.client.put(format!("{}/{path}", self.endpoint));
        answered(request.header("Authorization", authorization("s3")).body(body)).await;
    }

    /// Puts an event that is no trigger of ours; its id, which is the session's that it starts.
    pub async fn put_event(&self, source: &str, kind: &str, detail: &Value) -> String {
        let detail = detail.to_string();
        let entry = json!({ "Source": source, "DetailType": kind, "Detail": detail });
        let put = self.ask("events", "AWSEvents.PutEvents", &json!({ "Entries": [entry] })).await;
        put["Entries"][0]["EventId"].as_str().unwrap_or_else(|| panic!("{put}")).to_owned()
    }

    /// Puts something else into the state machine's text.
    pub async fn redefine(&self, change: impl FnOnce(String) -> String) {
        let machine = json!({ "stateMachineArn": machine_arn() });
        let described = self.ask("states", "AWSStepFunctions.DescribeStateMachine", &machine).await;
        let text = described["definition"].as_str().unwrap();
        let changed = change(text.to_owned());
        assert_ne!(changed, text, "nothing was changed");
        let changed = json!({ "stateMachineArn": machine_arn(), "definition": changed });
        self.ask("states", "AWSStepFunctions.UpdateStateMachine", &changed).await;
    }

    /// Somebody stops a session's execution.
    pub async fn stop(&self, session: &str) {
        let execution = self.execution(session).await;
        let stop = json!({ "executionArn": execution["executionArn"] });
        self.ask("states", "AWSStepFunctions.StopExecution", &stop).await;
    }

    /// What leads the AWS clients of an agent to the account.
    pub fn environment(&self) -> Vec<(String, String)> {
        environment(&self.endpoint, &self.table, &self.agent)
    }

    /// Runs `daybook --target aws`, which knows nothing but the stack's name and may do what
    /// DEPLOYMENT.md has whoever works with sessions do.
    pub async fn daybook(&self, arguments: &[&str]) -> Ran {
        self.daybook_as(&self.person, arguments).await
    }

    /// The same by somebody else.
    pub async fn daybook_as(&self, keys: &Keys, arguments: &[&str]) -> Ran {
        let mut command = daybook(self.folder.path());
        command.envs(environment(&self.endpoint, &self.table, keys));
        command.args(["--target", "aws"]).args(arguments);
        tokio::task::spawn_blocking(move || run(&mut command)).await.unwrap()
    }

    /// Runs a script of ours with the account's own keys.
    pub async fn script(&self, arguments: &[&str]) -> Ran {
        self.script_as(&Keys::of_the_account(), Path::new("/nonexistent"), arguments).await
    }

    /// The same by somebody else, with the programs of a folder before others. Nobody is asked anything.
    pub async fn script_as(&self, keys: &Keys, programs: &Path, arguments: &[&str]) -> Ran {
        let mut command = Command::new("bash");
        command.current_dir(root()).args(arguments).stdin(Stdio::null());
        command.envs(environment(&self.endpoint, &self.table, keys));
        // The AWS CLI's.
        command.env("AWS_DEFAULT_REGION", REGION).env("APPROVAL", "never");
        #[expect(clippy::disallowed_methods, reason = "the programs that the script uses")]
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", programs.display()));
        command.envs(tool("DAYBOOK_TEST_AWS").map(|aws| ("AWS", aws)));
        tokio::task::spawn_blocking(move || run_within(&mut command, SCRIPT_WITHIN)).await.unwrap()
    }

    /// A session's records by their kind, as `daybook show` tells them.
    pub async fn shown(&self, session: &str) -> Vec<Value> {
        let shown = self.daybook(&["show", session, "--steps", "--json"]).await;
        if shown.exit == 0 { shown.json() } else { Vec::new() }
    }

    /// The copies of checkpoints in the bucket for them, in the order of their names.
    pub async fn checkpoints(&self) -> Vec<String> {
        let get = |path: String| {
            let url = format!("{}/{path}", self.endpoint);
            answered(self.client.get(url).header("Authorization", authorization("s3")))
        };
        let described = self.form(&[("Action", "DescribeStacks"), ("StackName", STACK)]).await;
        let (_, after) = described.split_once("<OutputKey>CheckpointsBucket</OutputKey>").unwrap();
        let bucket = super::access::elements(after, "OutputValue").next().unwrap();
        let listed = get(format!("{bucket}?list-type=2")).await;
        let mut copies = Vec::new();
        for name in super::access::elements(&listed, "Key") {
            copies.push(get(format!("{bucket}/{name}")).await);
        }
        copies
    }

    /// Removes a session's records, as only somebody may who administers the table.
    pub async fn remove_session(&self, session: &str) {
        let (table, pk) =
            (format!("{STACK}-journal"), json!({ "S": format!("SESSION#{session}") }));
        let query = json!({
            "TableName": table, "KeyConditionExpression": "PK = :pk",
            "ExpressionAttributeValues": { ":pk": pk },
        });
        let found = self.ask("dynamodb", "DynamoDB_20120810.Query", &query).await;
        for item in found["Items"].as_array().unwrap() {
            let key = json!({ "PK": item["PK"], "SK": item["SK"] });
            let delete = json!({ "TableName": table, "Key": key });
            self.ask("dynamodb", "DynamoDB_20120810.DeleteItem", &delete).await;
        }
    }

    /// The statuses of a session's events, in their order.
    pub async fn events(&self, session: &str) -> Vec<String> {
        let records = self.shown(session).await;
        let events = records.iter().filter(|record| record["type"] == "event");
        events.map(|event| event["status"].as_str().unwrap().to_owned()).collect()
    }

    /// The execution that a session's first record names, as Step Functions describes it.
    pub async fn execution(&self, session: &str) -> Value {
        let machine = json!({ "stateMachineArn": machine_arn() });
        let listed = self.ask("states", "AWSStepFunctions.ListExecutions", &machine).await;
        for execution in listed["executions"].as_array().unwrap() {
            let arn = json!({ "executionArn": execution["executionArn"] });
            let described = self.ask("states", "AWSStepFunctions.DescribeExecution", &arn).await;
            if described["input"].as_str().is_some_and(|input| input.contains(session)) {
                return described;
            }
        }
        Value::Null
    }

    /// The execution of a session that is over.
    pub async fn ended(&self, session: &str) -> Value {
        let waiting = async {
            loop {
                let described = self.execution(session).await;
                if described["status"].as_str().is_some_and(|status| status != "RUNNING") {
                    return described;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.expect("the execution ends")
    }
}

/// The template that was kept.
pub fn kept() -> Value {
    golden(STACK)
}

/// A kept template by the name of its stack.
pub fn golden(stack: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/tests/it/golden");
    let kept = folder.join(format!("{stack}.template.json"));
    serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap()
}

pub fn machine_arn() -> String {
    format!("arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{STACK}")
}

pub fn checkpoints_arn() -> String {
    format!("arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{STACK}-checkpoints")
}

fn environment(endpoint: &str, table: &Table, keys: &Keys) -> Vec<(String, String)> {
    let mut variables = vec![
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", &keys.id),
        ("AWS_SECRET_ACCESS_KEY", &keys.secret),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ];
    if let Table::At(endpoint) = table {
        variables.push(("AWS_ENDPOINT_URL_DYNAMODB", endpoint));
    }
    variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn endpoint(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Starts it. Without a runtime that hosts agents, a stack's runtime needs its image.
fn start(python: &Path, folder: &Path, port: u16, runtime: Option<&str>, table: &Table) -> Process {
    let started = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/deployed/account.py"))
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("TMPDIR", folder)
        .env("PATH", "/usr/bin:/bin")
        // Its default is all interfaces.
        .env("BIND_HOST", "127.0.0.1")
        .env("GATEWAY_PORT", port.to_string())
        // Of waits between retries, to be as quick as everything else.
        .env("SFN_WAIT_SCALE", format!("{}", 1.0 / f64::from(SCALE)))
        // Signatures are checked, and policies are enforced.
        .env("AUTH", "true")
        .env("ASKED", folder.join(ASKED))
        .env("RUNTIME", runtime.unwrap_or("http://127.0.0.1:9"))
        .envs(runtime.is_none().then_some(("IMAGES", "checked")))
        // The functions have its environment, but for the keys, which are their roles'.
        .envs(environment(&endpoint(port), table, &Keys::of_the_account()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Process(started.unwrap())
}

/// What says whose account and region a request is for, and of which service; nobody checks it.
fn authorization(service: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential={ACCOUNT}/20261122/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=0"
    )
}

async fn answered(request: reqwest::RequestBuilder) -> String {
    // Topics and queues refuse what does not come by TLS.
    let request = request.header("X-Forwarded-Proto", "https");
    let response = request.timeout(DEADLINE).send().await.unwrap();
    let succeeded = response.status().is_success();
    let text = response.text().await.unwrap();
    assert!(succeeded, "{text}");
    text
}

/// A function as Lambda takes it: the zips that `make lambdas` made, if the test runner names their
/// folder, else the program that was built beside these tests, which is too large to be copied each time.
fn zipped(python: &Path, folder: &Path, name: &str) -> Option<Vec<u8>> {
    if let Some(packaged) = packaged() {
        return Some(std::fs::read(packaged.join(format!("{name}.zip"))).unwrap());
    }
    let program = built(name)?;
    let bootstrap = format!("#!/bin/sh\nexec '{}'\n", program.display());
    std::fs::write(folder.join("bootstrap"), bootstrap).unwrap();
    let mut zip = Command::new(python);
    zip.args(["-m", "zipfile", "-c", "function.zip", "bootstrap"]).current_dir(folder);
    assert!(zip.status().unwrap().success());
    Some(std::fs::read(folder.join("function.zip")).unwrap())
}

#[expect(clippy::disallowed_methods, reason = "how the test runner says where they are")]
fn packaged() -> Option<PathBuf> {
    std::env::var_os("DAYBOOK_TEST_LAMBDAS").map(PathBuf::from)
}

/// A program of the workspace, if it was built beside these tests.
pub fn built(name: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_daybook")).with_file_name(name);
    if program.exists() {
        return Some(program);
    }
    eprintln!("skipped: {name} is not built (`cargo build --workspace --all-features` builds it)");
    None
}
