//! `ItemReader`: the items of a distributed `Map` from objects.

use asl::error_name;
use asl::execution::Reading;
use asl::history::Failure;
use serde_json::{Map, Value, json};

use crate::buckets::{BucketError, Buckets};

/// Most items of a run.
pub(super) const ITEMS_MAX: usize = 100_000;

const GET_OBJECT: &str = "arn:aws:states:::s3:getObject";
const LIST_OBJECTS: &str = "arn:aws:states:::s3:listObjectsV2";

/// The values of `CSVDelimiter`.
///
/// Source: AWS, "ItemReader (Map)", `ReaderConfig`.
const DELIMITERS: [(&str, u8); 5] =
    [("COMMA", b','), ("PIPE", b'|'), ("SEMICOLON", b';'), ("SPACE", b' '), ("TAB", b'\t')];

/// Reads the items.
///
/// # Errors
/// `States.ItemReaderFailed`, with the reason.
pub(super) fn read(buckets: Option<&Buckets>, reading: &Reading) -> Result<Vec<Value>, Failure> {
    let items = all(buckets, reading).map_err(|why| failed(&why))?;
    let most = reading.max_items.filter(|most| *most > 0).unwrap_or(usize::MAX);
    let items: Vec<Value> = items.into_iter().take(most).collect();
    if items.len() > ITEMS_MAX {
        let found = items.len();
        return Err(failed(&format!("{found} items are more than {ITEMS_MAX}; set MaxItems")));
    }
    Ok(items)
}

pub(super) fn failed(why: &str) -> Failure {
    let cause = format!("The items of the Map cannot be read: {why}");
    Failure::new(error_name::ITEM_READER_FAILED, Some(cause))
}

fn all(buckets: Option<&Buckets>, reading: &Reading) -> Result<Vec<Value>, String> {
    let buckets = buckets.ok_or("this stack has no folder for objects")?;
    let text = |name: &str| reading.arguments[name].as_str();
    let bucket = text("Bucket").ok_or("Bucket is missing")?;
    let said = |error: BucketError| error.to_string();
    match reading.resource.as_str() {
        LIST_OBJECTS => {
            let objects = buckets.list(bucket, text("Prefix").unwrap_or_default()).map_err(said)?;
            Ok(objects.iter().map(listed).collect())
        }
        GET_OBJECT => {
            let bytes = buckets.read(bucket, text("Key").ok_or("Key is missing")?).map_err(said)?;
            parsed(&bytes, &reading.config)
        }
        other => Err(format!("the resource '{other}' is not {GET_OBJECT} or {LIST_OBJECTS}")),
    }
}

/// An object as `ListObjectsV2` has it. Its tag changes with its content; it is not that of S3.
fn listed(object: &crate::buckets::Object) -> Value {
    let tag = format!("{:016x}{:016x}", object.modified_s, object.bytes);
    json!({
        "Etag": format!("\"{tag}\""), "Key": object.key, "LastModified": object.modified_s,
        "Size": object.bytes, "StorageClass": "STANDARD",
    })
}

fn parsed(bytes: &[u8], config: &Value) -> Result<Vec<Value>, String> {
    match config["InputType"].as_str() {
        Some("CSV") => rows(bytes, config),
        Some("JSONL") => {
            let text = str::from_utf8(bytes).map_err(|error| error.to_string())?;
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let line = |line| {
                serde_json::from_str(line).map_err(|error| format!("a line is not JSON: {error}"))
            };
            lines.map(line).collect()
        }
        Some("JSON") => {
            let whole: Value = serde_json::from_slice(bytes)
                .map_err(|error| format!("it is not JSON: {error}"))?;
            let pointer = config["ItemsPointer"].as_str().unwrap_or_default();
            match whole.pointer(pointer) {
                Some(Value::Array(items)) => Ok(items.clone()),
                Some(_) => Err(format!("the value at '{pointer}' is not an array")),
                None => Err(format!("there is no value at '{pointer}'")),
            }
        }
        Some(other) => Err(format!(
            "the input type {other} is not supported here; it reads CSV, JSON and JSONL"
        )),
        None => Err("ReaderConfig has no InputType".to_owned()),
    }
}

/// The rows of a CSV, each an object of texts.
fn rows(bytes: &[u8], config: &Value) -> Result<Vec<Value>, String> {
    let named = config["CSVDelimiter"].as_str().unwrap_or("COMMA");
    let delimiter = DELIMITERS.iter().find(|(name, _)| *name == named);
    let (_, delimiter) = delimiter.ok_or_else(|| format!("there is no delimiter {named}"))?;
    // Excel writes a mark before the first header.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new();
    let mut reader =
        reader.delimiter(*delimiter).flexible(true).has_headers(false).from_reader(bytes);
    let mut records = reader.records();
    let headers: Vec<String> = match config["CSVHeaderLocation"].as_str() {
        Some("FIRST_ROW") => match records.next().transpose().map_err(|error| error.to_string())? {
            Some(first) => first.iter().map(str::to_owned).collect(),
            None => return Ok(Vec::new()),
        },
        Some("GIVEN") => {
            let given = config["CSVHeaders"].as_array().ok_or("CSVHeaders is missing")?;
            given.iter().map(|name| name.as_str().unwrap_or_default().to_owned()).collect()
        }
        _ => return Err("CSVHeaderLocation is not FIRST_ROW or GIVEN".to_owned()),
    };
    let row = |record: csv::Result<csv::StringRecord>| {
        let record = record.map_err(|error| error.to_string())?;
        let cell = |(at, name): (usize, &String)| {
            (name.clone(), Value::from(record.get(at).unwrap_or_default()))
        };
        Ok(Value::Object(headers.iter().enumerate().map(cell).collect::<Map<_, _>>()))
    };
    records.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &str, config: Value, expected: Result<Value, &str>) {
        let found = parsed(bytes.as_bytes(), &config);
        match expected {
            Ok(expected) => assert_eq!(found.map(Value::from), Ok(expected), "{bytes} {config}"),
            Err(why) => assert!(found.as_ref().is_err_and(|it| it.contains(why)), "{found:?}"),
        }
    }

    #[test]
    fn a_csv_has_its_headers_in_the_first_row_or_given() {
        let first = json!({"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"});
        check(
            "a,b\n1,\"x,\ny\"\n2\n",
            first,
            Ok(json!([{"a": "1", "b": "x,\ny"}, {"a": "2", "b": ""}])),
        );
        let given = json!({"InputType": "CSV", "CSVHeaderLocation": "GIVEN",
            "CSVHeaders": ["a", "b"], "CSVDelimiter": "PIPE"});
        check("1|2|3\n", given, Ok(json!([{"a": "1", "b": "2"}])));
        check("a\n", json!({"InputType": "CSV"}), Err("CSVHeaderLocation"));
    }

    #[test]
    fn json_is_an_array_at_its_pointer_or_a_line_each() {
        check("[1, {}]", json!({"InputType": "JSON"}), Ok(json!([1, {}])));
        check(
            r#"{"a": {"b": [7]}}"#,
            json!({"InputType": "JSON", "ItemsPointer": "/a/b"}),
            Ok(json!([7])),
        );
        check("{}", json!({"InputType": "JSON"}), Err("not an array"));
        check("{}", json!({"InputType": "JSON", "ItemsPointer": "/a"}), Err("no value at '/a'"));
        check("1\n\n{\"a\": 2}\n", json!({"InputType": "JSONL"}), Ok(json!([1, {"a": 2}])));
        check("{", json!({"InputType": "JSONL"}), Err("not JSON"));
        check("", json!({"InputType": "MANIFEST"}), Err("MANIFEST is not supported"));
    }
}
