//! Runs of distributed maps: items from files, child executions, results in files, and crashes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use stack::buckets::FOLDER;
use stack::functions::File;
use stack::stack::{Config, Stack};
use tempfile::TempDir;

use crate::machines::{created, ended, sfn};
use crate::stack::{Client, config};
use crate::world::TIMEOUT;

/// Notes each call in a file, and fails for inputs with `bad` until the file `ready` is there.
const SCRIPT: &str = r#"input=$(cat); echo "$input" >> calls
case "$input" in *bad*) if [ ! -e ready ]; then
echo '{"errorType":"Bad","errorMessage":"as scripted"}'; exit 1; fi;; esac
case "$input" in *slow*) sleep 1;; esac
echo "$input""#;

async fn started(folder: &TempDir) -> Stack {
    let function = json!({ "command": "/bin/sh", "args": ["-c", SCRIPT], "timeout_s": 30 });
    let text = json!({ "functions": { "work": function } }).to_string();
    let path = |name: &str| (name == "PATH").then(|| "/usr/bin:/bin".to_owned());
    let functions = File::parse(&text, folder.path(), path).unwrap();
    Stack::start(Config { functions, ..config(folder.path(), 1) }).await.unwrap()
}

fn bucket(folder: &TempDir) -> std::path::PathBuf {
    let bucket = folder.path().join(FOLDER).join("mine");
    fs::create_dir_all(&bucket).unwrap();
    bucket
}

/// A distributed map whose iterations call the function.
fn map(fields: Value) -> Value {
    let mut map = json!({
        "Type": "Map", "End": true, "Label": "Each",
        "ItemProcessor": {
            "ProcessorConfig": { "Mode": "DISTRIBUTED", "ExecutionType": "STANDARD" },
            "StartAt": "Call", "States": { "Call": {
                "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": true,
                "Parameters": { "FunctionName": "work", "Payload.$": "$" },
                "OutputPath": "$.Payload",
            } },
        },
    });
    map.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    map
}

async fn start(client: &Client, machine: &str, input: &Value) -> String {
    let start = json!({ "stateMachineArn": machine, "name": "one", "input": input.to_string() });
    let answer = sfn(client, "StartExecution", start).await;
    answer["executionArn"].as_str().unwrap().to_owned()
}

/// The only run of an execution, once there is one.
async fn run_of(client: &Client, arn: &str) -> String {
    let run = async {
        loop {
            let runs = sfn(client, "ListMapRuns", json!({ "executionArn": arn })).await;
            if let Some(run) = runs["mapRuns"][0]["mapRunArn"].as_str() {
                return run.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, run).await.expect("a run begins")
}

async fn described(client: &Client, run: &str) -> Value {
    sfn(client, "DescribeMapRun", json!({ "mapRunArn": run })).await
}

async fn events(client: &Client, arn: &str) -> Vec<Value> {
    let history = sfn(client, "GetExecutionHistory", json!({ "executionArn": arn })).await;
    history["events"].as_array().unwrap().clone()
}

async fn types(client: &Client, arn: &str) -> Vec<String> {
    let events = events(client, arn).await;
    events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

fn calls(folder: &TempDir) -> usize {
    fs::read_to_string(folder.path().join("calls")).map_or(0, |text| text.lines().count())
}

fn json_of(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_reads_a_csv_calls_in_children_and_writes_its_results() {
    let folder = TempDir::new().unwrap();
    let bucket = bucket(&folder);
    fs::write(bucket.join("rows.csv"), "id,name\n1,a\n2,b\n3,c\n4,d\n").unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let fields = json!({
        "MaxConcurrency": 2,
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": { "InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW", "MaxItems": 3 },
            "Parameters": { "Bucket": "mine", "Key.$": "$.key" },
        },
        "ItemSelector": { "row.$": "$$.Map.Item.Value", "at.$": "$$.Map.Item.Index" },
        "ResultWriter": {
            "Resource": "arn:aws:states:::s3:putObject",
            "Parameters": { "Bucket": "mine", "Prefix": "out" },
        },
    });
    let machine = created(&client, "rows", map(fields)).await;
    let arn = start(&client, &machine, &json!({ "key": "rows.csv" })).await;
    let done = ended(&client, &arn).await;
    assert_eq!(done["status"], "SUCCEEDED", "{done}");
    let expected = [
        "ExecutionStarted",
        "MapStateEntered",
        "MapStateStarted",
        "MapRunStarted",
        "MapRunSucceeded",
        "MapStateSucceeded",
        "MapStateExited",
        "ExecutionSucceeded",
    ];
    assert_eq!(types(&client, &arn).await, expected);
    let succeeded = events(&client, &arn).await[4].clone();
    assert!(succeeded.get("mapRunSucceededEventDetails").is_none(), "{succeeded}");

    let run = run_of(&client, &arn).await;
    assert!(run.contains(":mapRun:rows/Each:"), "{run}");
    let described = described(&client, &run).await;
    assert_eq!(
        (&described["status"], &described["maxConcurrency"]),
        (&json!("SUCCEEDED"), &json!(2))
    );
    for counts in ["itemCounts", "executionCounts"] {
        let counts = &described[counts];
        assert_eq!((&counts["succeeded"], &counts["total"]), (&json!(3), &json!(3)), "{described}");
        assert_eq!((&counts["resultsWritten"], &counts["failed"]), (&json!(3), &json!(0)));
    }
    let children = sfn(&client, "ListExecutions", json!({ "mapRunArn": run })).await;
    assert_eq!(children["executions"].as_array().unwrap().len(), 3);
    let child = children["executions"][2]["executionArn"].as_str().unwrap();
    let child = sfn(&client, "DescribeExecution", json!({ "executionArn": child })).await;
    assert_eq!(child["input"], r#"{"row":{"id":"1","name":"a"},"at":0}"#);
    assert_eq!((&child["mapRunArn"], &child["status"]), (&json!(run), &json!("SUCCEEDED")));
    let of_machine = sfn(&client, "ListExecutions", json!({ "stateMachineArn": machine })).await;
    assert_eq!(of_machine["executions"].as_array().unwrap().len(), 1);

    let output: Value = serde_json::from_str(done["output"].as_str().unwrap()).unwrap();
    assert_eq!(output["MapRunArn"], json!(run));
    let key = output["ResultWriterDetails"]["Key"].as_str().unwrap();
    assert_eq!(key, format!("out/{}/manifest.json", run.rsplit(':').next().unwrap()));
    let manifest = json_of(&bucket.join(key));
    let files = &manifest["ResultFiles"];
    assert_eq!((&files["FAILED"], &files["PENDING"]), (&json!([]), &json!([])));
    let results = json_of(&bucket.join(files["SUCCEEDED"][0]["Key"].as_str().unwrap()));
    assert_eq!(results.as_array().unwrap().len(), 3);
    assert_eq!(results[2]["Output"], r#"{"row":{"id":"3","name":"c"},"at":2}"#);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_redriven_with_its_failed_children_alone() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let machine =
        created(&client, "some", map(json!({ "MaxConcurrency": 1, "ToleratedFailureCount": 1 })))
            .await;
    let arn = start(&client, &machine, &json!(["bad 1", "good", "bad 2", "late"])).await;
    let failed = ended(&client, &arn).await;
    assert_eq!(failed["error"], "States.ExceedToleratedFailureThreshold");
    let run = run_of(&client, &arn).await;
    let counts = described(&client, &run).await["itemCounts"].clone();
    assert_eq!(
        (&counts["failed"], &counts["succeeded"], &counts["pending"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert_eq!(calls(&folder), 3);
    let children = json!({ "mapRunArn": run, "statusFilter": "FAILED" });
    let children = sfn(&client, "ListExecutions", children).await;
    let child = &children["executions"][0]["executionArn"];
    let shown = sfn(&client, "DescribeExecution", json!({ "executionArn": child })).await;
    assert_eq!(shown["redriveStatus"], "REDRIVABLE_BY_MAP_RUN");
    let alone =
        client.aws("AWSStepFunctions.RedriveExecution", &json!({ "executionArn": child })).await;
    assert_eq!((alone.0, &alone.1["__type"]), (400, &json!("ExecutionNotRedrivable")));

    fs::write(folder.path().join("ready"), "").unwrap();
    sfn(&client, "RedriveExecution", json!({ "executionArn": arn })).await;
    let done = ended(&client, &arn).await;
    assert_eq!(done["output"], r#"["bad 1","good","bad 2","late"]"#, "{done}");
    assert_eq!(calls(&folder), 6);
    let types = types(&client, &arn).await;
    let again = types.iter().position(|it| it == "ExecutionRedriven").unwrap();
    assert_eq!(types[again + 1..again + 3], ["MapRunRedriven", "MapRunSucceeded"]);
    let run = described(&client, &run).await;
    assert_eq!(
        (&run["redriveCount"], &run["itemCounts"]["succeeded"]),
        (&json!(1), &json!(4)),
        "{run}"
    );
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_continues_after_a_restart_and_reads_no_item_twice() {
    let folder = TempDir::new().unwrap();
    let bucket = bucket(&folder);
    fs::write(bucket.join("items.json"), r#"["slow 1", "slow 2", "slow 3"]"#).unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let fields = json!({
        "MaxConcurrency": 1,
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject", "ReaderConfig": { "InputType": "JSON" },
            "Parameters": { "Bucket": "mine", "Key": "items.json" },
        },
    });
    let machine = created(&client, "slow", map(fields)).await;
    let arn = start(&client, &machine, &json!({})).await;
    run_of(&client, &arn).await;
    while calls(&folder) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stack.shutdown().await;
    fs::remove_file(bucket.join("items.json")).unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let done = ended(&client, &arn).await;
    assert_eq!(done["output"], r#"["slow 1","slow 2","slow 3"]"#, "{done}");
    assert_eq!(types(&client, &arn).await.iter().filter(|it| *it == "MapRunStarted").count(), 1);
    let run = run_of(&client, &arn).await;
    assert_eq!(described(&client, &run).await["executionCounts"]["total"], 3);
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_parent_takes_its_run_along() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let mut state = map(json!({ "MaxConcurrency": 1 }));
    state["ItemProcessor"]["States"] =
        json!({ "Call": { "Type": "Wait", "Seconds": 600, "End": true } });
    let machine = created(&client, "long", state).await;
    let arn = start(&client, &machine, &json!([1, 2])).await;
    let run = run_of(&client, &arn).await;
    let has = async |status: &str, count: u64| {
        let waiting = async {
            while described(&client, &run).await["executionCounts"][status] != json!(count) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, waiting).await.unwrap_or_else(|_| panic!("{count} {status}"));
    };
    has("running", 1).await;
    // Its settings are applied while it runs.
    sfn(&client, "UpdateMapRun", json!({ "mapRunArn": run, "maxConcurrency": 2 })).await;
    has("running", 2).await;
    sfn(&client, "StopExecution", json!({ "executionArn": arn })).await;
    has("aborted", 2).await;
    let waiting = async {
        while described(&client, &run).await["status"] == "RUNNING" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
    assert_eq!(described(&client, &run).await["status"], "ABORTED");
    let late = json!({ "mapRunArn": run, "maxConcurrency": 3 });
    let (status, refused) = client.aws("AWSStepFunctions.UpdateMapRun", &late).await;
    assert_eq!((status, &refused["__type"]), (400, &json!("ValidationException")));
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_outside_of_a_bucket_are_not_read() {
    let folder = TempDir::new().unwrap();
    bucket(&folder);
    fs::write(folder.path().join("secret.json"), "[1]").unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    for (number, (bucket, key)) in
        [("mine", "../../secret.json"), ("..", "secret.json"), ("none", "x"), ("mine", "x")]
            .into_iter()
            .enumerate()
    {
        let fields = json!({ "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject", "ReaderConfig": { "InputType": "JSON" },
            "Parameters": { "Bucket": bucket, "Key": key },
        } });
        let machine = created(&client, &format!("m{number}"), map(fields)).await;
        let arn = start(&client, &machine, &json!({})).await;
        let failed = ended(&client, &arn).await;
        assert_eq!(failed["error"], "States.ItemReaderFailed", "{bucket} {key}: {failed}");
        assert_eq!(types(&client, &arn).await[4], "MapRunFailed");
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_listed_and_batched() {
    let folder = TempDir::new().unwrap();
    let bucket = bucket(&folder);
    fs::create_dir(bucket.join("in")).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(bucket.join("in").join(name), name).unwrap();
    }
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let fields = json!({
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:listObjectsV2",
            "Parameters": { "Bucket": "mine", "Prefix": "in/" },
        },
        "ItemSelector": { "key.$": "$$.Map.Item.Value.Key" },
        "ItemBatcher": { "MaxItemsPerBatch": 2 },
        "ResultWriter": { "WriterConfig": { "Transformation": "FLATTEN", "OutputType": "JSON" } },
    });
    let mut state = map(fields);
    state["ItemProcessor"]["States"]["Call"]["OutputPath"] = json!("$.Payload.Items");
    let machine = created(&client, "list", state).await;
    let arn = start(&client, &machine, &json!({})).await;
    let done = ended(&client, &arn).await;
    assert_eq!(done["output"], r#"[{"key":"in/a"},{"key":"in/b"},{"key":"in/c"}]"#, "{done}");
    let run = described(&client, &run_of(&client, &arn).await).await;
    assert_eq!(
        (&run["itemCounts"]["total"], &run["executionCounts"]["total"]),
        (&json!(3), &json!(2))
    );
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_results_are_no_longer_needed_is_aborted() {
    let folder = TempDir::new().unwrap();
    let stack = started(&folder).await;
    let client = Client::new(&stack);
    let mut long = map(json!({}));
    long["ItemProcessor"]["States"] =
        json!({ "Call": { "Type": "Wait", "Seconds": 600, "End": true } });
    let fails = json!({ "StartAt": "Soon", "States": {
        "Soon": { "Type": "Wait", "Seconds": 1, "Next": "Fails" },
        "Fails": { "Type": "Fail", "Error": "E" },
    } });
    let both = json!({
        "StartAt": "Both", "States": {
            "Both": {
                "Type": "Parallel", "Next": "Later",
                "Branches": [{ "StartAt": "Map", "States": { "Map": long } }, fails],
                "Catch": [{ "ErrorEquals": ["E"], "Next": "Later" }],
            },
            "Later": { "Type": "Wait", "Seconds": 600, "End": true },
        },
    });
    let body =
        json!({ "name": "both", "definition": both.to_string(), "roleArn": crate::machines::ROLE });
    let machine = sfn(&client, "CreateStateMachine", body).await;
    let machine = machine["stateMachineArn"].as_str().unwrap();
    let arn = start(&client, machine, &json!([1])).await;
    let run = run_of(&client, &arn).await;
    let waiting = async {
        while described(&client, &run).await["status"] == "RUNNING" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
    let run = described(&client, &run).await;
    assert_eq!(
        (&run["status"], &run["executionCounts"]["aborted"]),
        (&json!("ABORTED"), &json!(1))
    );
    let parent = sfn(&client, "DescribeExecution", json!({ "executionArn": arn })).await;
    assert_eq!(parent["status"], "RUNNING");
    stack.shutdown().await;
}
