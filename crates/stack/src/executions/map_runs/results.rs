//! The result of a run: the outputs of its executions, or `ResultWriter`'s files.

use asl::error_name;
use asl::execution::Writing;
use asl::history::Failure;
use serde_json::{Value, json};

use crate::buckets::Buckets;
use crate::executions::Record;

const PUT_OBJECT: &str = "arn:aws:states:::s3:putObject";

/// The files of a run, by the status of the executions in them.
const FILES: [(&str, &[&str]); 3] = [
    ("SUCCEEDED", &["SUCCEEDED"]),
    ("FAILED", &["FAILED", "TIMED_OUT", "ABORTED"]),
    ("PENDING", &[]),
];

/// The state's result.
///
/// # Errors
/// `States.ResultWriterFailed`, with the reason.
pub(super) fn result(
    buckets: Option<&Buckets>,
    writer: Option<&Writing>,
    run: &str,
    children: &[Record],
) -> Result<Value, Failure> {
    let Some(writer) = writer else { return Ok(outputs(children).collect()) };
    let failed = |why: String| {
        let cause = format!("The results of the Map cannot be written: {why}");
        Failure::new(error_name::RESULT_WRITER_FAILED, Some(cause))
    };
    match writer.resource.as_deref() {
        None => transformed(writer, "COMPACT", children).map(Value::from).map_err(failed),
        Some(PUT_OBJECT) => written(buckets, writer, run, children).map_err(failed),
        Some(other) => Err(failed(format!("the resource '{other}' is not {PUT_OBJECT}"))),
    }
}

/// The outputs of those that succeeded, in the order of the items.
fn outputs(children: &[Record]) -> impl Iterator<Item = Value> + '_ {
    let texts = children.iter().filter_map(|child| child.output.as_deref());
    texts.map(|text| serde_json::from_str(text).unwrap_or_else(|_| text.into()))
}

/// Results in the form of `WriterConfig`.
fn transformed(writer: &Writing, default: &str, children: &[Record]) -> Result<Vec<Value>, String> {
    Ok(match writer.config["Transformation"].as_str().unwrap_or(default) {
        "NONE" => children.iter().map(described).collect(),
        "COMPACT" => outputs(children).collect(),
        "FLATTEN" => outputs(children)
            .flat_map(|output| match output {
                Value::Array(items) => items,
                other => vec![other],
            })
            .collect(),
        other => return Err(format!("there is no transformation {other}")),
    })
}

/// An execution as in AWS's files.
fn described(child: &Record) -> Value {
    let mut shown = json!({
        "ExecutionArn": child.arn, "Input": child.input, "InputDetails": { "Included": true },
        "Name": child.name, "RedriveCount": child.redriven.as_ref().map_or(0, |it| it.count),
        "StartDate": child.started_at.to_string(), "StateMachineArn": child.machine_arn,
        "Status": child.status,
    });
    if let Some(output) = &child.output {
        shown["Output"] = json!(output);
        shown["OutputDetails"] = json!({ "Included": true });
        shown["RedriveStatus"] = json!("NOT_REDRIVABLE");
        shown["RedriveStatusReason"] = json!("Execution is SUCCEEDED and cannot be redriven");
    } else {
        shown["RedriveStatus"] = json!("REDRIVABLE_BY_MAP_RUN");
    }
    let texts = [("Error", &child.error), ("Cause", &child.cause)];
    for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
        shown[name] = json!(text);
    }
    if let Some(at) = child.stopped_at {
        shown["StopDate"] = json!(at.to_string());
    }
    shown
}

fn written(
    buckets: Option<&Buckets>,
    writer: &Writing,
    run: &str,
    children: &[Record],
) -> Result<Value, String> {
    let buckets = buckets.ok_or("this stack has no folder for objects")?;
    let bucket = writer.arguments["Bucket"].as_str().ok_or("Bucket is missing")?;
    let prefix = writer.arguments["Prefix"].as_str().unwrap_or_default().trim_end_matches('/');
    let id = run.rsplit(':').next().unwrap_or(run);
    let folder = if prefix.is_empty() { id.to_owned() } else { format!("{prefix}/{id}") };
    let is_lines = writer.config["OutputType"] == "JSONL";
    let write = |name: &str, bytes: &str| {
        let key = format!("{folder}/{name}");
        buckets.write(bucket, &key, bytes.as_bytes()).map_err(|error| error.to_string())?;
        Ok::<_, String>(json!({ "Key": key, "Size": bytes.len() }))
    };
    let mut files = json!({});
    for (name, statuses) in FILES {
        let fits = |child: &&Record| statuses.contains(&child.status.as_str());
        let of: Vec<Record> = children.iter().filter(fits).cloned().collect();
        files[name] = json!([]);
        if of.is_empty() {
            continue;
        }
        let values = match name {
            "SUCCEEDED" => transformed(writer, "NONE", &of)?,
            _ => of.iter().map(described).collect(),
        };
        let text = match is_lines {
            true => values.iter().map(|value| format!("{value}\n")).collect(),
            false => Value::from(values).to_string(),
        };
        let extension = if is_lines { "jsonl" } else { "json" };
        files[name] = json!([write(&format!("{name}_0.{extension}"), &text)?]);
    }
    let manifest = json!({ "DestinationBucket": bucket, "MapRunArn": run, "ResultFiles": files });
    write("manifest.json", &manifest.to_string())?;
    let key = format!("{folder}/manifest.json");
    Ok(json!({ "MapRunArn": run, "ResultWriterDetails": { "Bucket": bucket, "Key": key } }))
}
