//! The transactions server: its published tools, and its errors for invalid data.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path as Segment, RawQuery};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::get;
use card_transactions::generator::{Options, generate};
use card_transactions::{INFO, Remote, server};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use serde_json::{Value, json};

use mcp::testing::{DEADLINE, text};

const HEADER: &str = "transaction_id,timestamp,card_id,merchant_id,merchant_category,amount,currency,\
                      country,city,latitude,longitude,channel,is_fraud";
const GOOD: &str =
    "t1,2026-11-02T09:30:00Z,c1,corner shop,grocery,12.50,EUR,DE,Köln,50.94,6.96,chip,";

/// The server's answer over these data.
async fn ask(data: &str, tool: &str, arguments: Value) -> CallToolResult {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let served = server(data, Remote::Refused).unwrap();
    let serving = tokio::spawn(async move {
        served.serve(far).await.unwrap().waiting().await.unwrap();
    });
    let client = tokio::time::timeout(DEADLINE, ().serve(near)).await.unwrap().unwrap();
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let result = tokio::time::timeout(DEADLINE, client.call_tool(request)).await.unwrap().unwrap();
    client.cancel().await.unwrap();
    tokio::time::timeout(DEADLINE, serving).await.unwrap().unwrap();
    result
}

async fn context(data: &str, id: &str) -> Result<Value, String> {
    let result = ask(data, "context_tool", json!({ "transaction_id": id })).await;
    match result.is_error {
        Some(true) => Err(text(&result)),
        _ => Ok(result.structured_content.unwrap()),
    }
}

/// The error of a file with this content.
async fn refusal(content: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    std::fs::write(&path, content).unwrap();
    context(path.to_str().unwrap(), "t1").await.unwrap_err()
}

#[tokio::test]
async fn the_transaction_tools_are_published_with_their_schemas() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let served = server("nowhere.csv", Remote::Refused).unwrap();
    tokio::spawn(async move { served.serve(far).await.unwrap().waiting().await });
    let client = tokio::time::timeout(DEADLINE, ().serve(near)).await.unwrap().unwrap();
    let published = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = published.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, INFO.tools);
    for tool in &published {
        let schema = Value::Object((**tool.output_schema.as_ref().unwrap()).clone());
        jsonschema::validator_for(&schema).unwrap();
    }
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn invalid_data_is_refused_with_file_row_and_column() {
    let with = |rows: &str| format!("{HEADER}\n{GOOD}\n{rows}\n").into_bytes();
    let bad = |column: usize, value: &str| {
        let mut fields: Vec<&str> = GOOD.split(',').collect();
        fields[0] = "t2";
        fields[column] = value;
        with(&fields.join(","))
    };
    let mut latin = with("");
    latin.extend(b"t2,2026-11-02T09:30:00Z,c1,caf\xe9,grocery,1,EUR,DE,K,,,chip,\n");
    let table: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "data.csv is empty"),
        (format!("{HEADER}\n").into_bytes(), "data.csv has a header and no rows"),
        (
            b"id,amount\n1,2\n".to_vec(),
            "data.csv, header: missing column transaction_id, timestamp",
        ),
        (format!("{HEADER},amount\n").into_bytes(), "header: the column amount occurs twice"),
        (
            with("t2,2026-11-02T09:30"),
            "data.csv, row 2 (line 3): has 2 fields, and the header has 13",
        ),
        (bad(5, "NaN"), "data.csv, row 2 (line 3), column amount: is `NaN`"),
        (bad(5, "a lot"), "row 2 (line 3), column amount: is `a lot`"),
        (bad(1, "02.11.2026"), "row 2 (line 3), column timestamp: is `02.11.2026`"),
        (bad(1, "2999-01-01T00:00:00Z"), "column timestamp: is in the year 2999"),
        (bad(9, "195"), "column latitude: is `195`"),
        (
            bad(11, "fax"),
            "column channel: is `fax`, expected chip, swipe, contactless, online or atm",
        ),
        (bad(0, "t1"), "row 2 (line 3), column transaction_id: `t1` is already in row 1"),
        (bad(2, ""), "column card_id: is empty"),
        (latin, "field 4 is not UTF-8: save the file as UTF-8"),
        (with("\"t2,never closed"), "the row is truncated or a quote is missing"),
        (
            with(&format!("\"{}", "x".repeat(1_000_000))),
            "row 2: cannot be read: a row is longer than 65536 bytes or a quote is missing",
        ),
        (
            b"PAR1 and nothing else".to_vec(),
            "data.csv: cannot be read as Parquet (possibly truncated)",
        ),
    ];
    for (content, expected) in table {
        let refusal = refusal(&content).await;
        assert!(refusal.contains(expected), "{refusal:?} does not say {expected:?}");
    }
    let missing = context("/nonexistent/data.csv", "t1").await.unwrap_err();
    assert!(missing.contains("cannot open `/nonexistent/data.csv`"), "{missing}");
}

#[tokio::test]
async fn unusual_but_valid_data_is_accepted() {
    let rows = [
        // Later than the payment, so it does not count.
        "t2,2027-01-01T00:00:00Z,c1,corner shop,grocery,1,EUR,DE,Köln,50.94,6.96,chip,true",
        "t3,2026-10-01T09:00:00+02:00,c1,商店,grocery,-7.10,EUR,DE,東京,,,online,",
        "t4,2026-10-01T09:00:00Z,c1,\"a, \"\"b\"\"\",grocery,0,EUR,DE,São Paulo,-23.55,-46.63,atm,0",
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    std::fs::write(&path, format!("\u{feff}{HEADER}\r\n{GOOD}\r\n{}\r\n", rows.join("\r\n")))
        .unwrap();
    let context = context(path.to_str().unwrap(), "t1").await.unwrap();
    assert_eq!(context["rows"], 4);
    let previous: Vec<&Value> = context["card"]["previous"].as_array().unwrap().iter().collect();
    let shown: Vec<Value> = previous
        .iter()
        .map(|p| json!([p["transaction_id"], p["merchant_id"], p["amount"]]))
        .collect();
    assert_eq!(shown, [json!(["t3", "商店", "-7.10"]), json!(["t4", "a, \"b\"", "0.00"])]);
}

/// Writes the rows of a CSV file as Parquet: amounts as doubles, labels as booleans, times as
/// microseconds since 1970, the rest as strings.
fn parquet_of(csv_text: &str, path: &Path) {
    let schema = "message schema {
        REQUIRED BYTE_ARRAY transaction_id (UTF8); REQUIRED INT64 timestamp (TIMESTAMP_MICROS);
        REQUIRED BYTE_ARRAY card_id (UTF8); REQUIRED BYTE_ARRAY merchant_id (UTF8);
        REQUIRED BYTE_ARRAY merchant_category (UTF8); REQUIRED DOUBLE amount;
        REQUIRED BYTE_ARRAY currency (UTF8); REQUIRED BYTE_ARRAY country (UTF8);
        REQUIRED BYTE_ARRAY city (UTF8); REQUIRED DOUBLE latitude; REQUIRED DOUBLE longitude;
        REQUIRED BYTE_ARRAY channel (UTF8); REQUIRED BOOLEAN is_fraud; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let rows: Vec<Vec<&str>> = csv_text.lines().skip(1).map(|l| l.split(',').collect()).collect();
    let file = std::fs::File::create(path).unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    for part in rows.chunks(300) {
        let mut group = writer.next_row_group().unwrap();
        for column in 0..13 {
            write_column(&mut group, column, part);
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn write_column(
    group: &mut SerializedRowGroupWriter<'_, std::fs::File>,
    column: usize,
    rows: &[Vec<&str>],
) {
    let mut writer = group.next_column().unwrap().unwrap();
    let texts = rows.iter().map(|row| row[column]);
    match column {
        1 => {
            let us =
                |text: &str| chrono::DateTime::parse_from_rfc3339(text).unwrap().timestamp_micros();
            let values: Vec<i64> = texts.map(us).collect();
            writer.typed::<Int64Type>().write_batch(&values, None, None).unwrap();
        }
        5 | 9 | 10 => {
            let values: Vec<f64> = texts.map(|text| text.parse().unwrap()).collect();
            writer.typed::<DoubleType>().write_batch(&values, None, None).unwrap();
        }
        12 => {
            let values: Vec<bool> = texts.map(|text| text == "true").collect();
            writer.typed::<BoolType>().write_batch(&values, None, None).unwrap();
        }
        _ => {
            let values: Vec<ByteArray> = texts.map(ByteArray::from).collect();
            writer.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        }
    }
    writer.close().unwrap();
}

fn generated(rows: u32) -> String {
    let mut out = Vec::new();
    generate(Options { seed: 3, rows, fraud_permille: 50 }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The id of the last fraud.
fn last_fraud(csv_text: &str) -> String {
    let line = csv_text.lines().rev().find(|line| line.ends_with(",true")).unwrap();
    line.split(',').next().unwrap().to_owned()
}

/// The id of the last payment at a merchant with earlier payments.
fn last_of_a_known_merchant(csv_text: &str) -> String {
    let rows: Vec<Vec<&str>> = csv_text.lines().skip(1).map(|l| l.split(',').collect()).collect();
    let is_known = |at: &usize| rows[..*at].iter().any(|row| row[3] == rows[*at][3]);
    let at = (0..rows.len()).rev().find(is_known).unwrap();
    rows[at][0].to_owned()
}

#[tokio::test]
async fn a_parquet_file_gives_the_same_answers_as_csv() {
    let folder = tempfile::tempdir().unwrap();
    let text = generated(700);
    let (csv_path, parquet_path) = (folder.path().join("data"), folder.path().join("same"));
    std::fs::write(&csv_path, &text).unwrap();
    parquet_of(&text, &parquet_path);
    let id = last_fraud(&text);
    for tool in ["context_tool", "pattern_tool", "similarity_tool"] {
        let arguments = json!({ "transaction_id": id });
        let mut of_csv = ask(csv_path.to_str().unwrap(), tool, arguments.clone())
            .await
            .structured_content
            .unwrap();
        let mut of_parquet =
            ask(parquet_path.to_str().unwrap(), tool, arguments).await.structured_content.unwrap();
        for answer in [&mut of_csv, &mut of_parquet] {
            answer.as_object_mut().unwrap().remove("source");
        }
        assert_eq!(of_csv, of_parquet, "{tool}");
    }
    let cut = std::fs::read(&parquet_path).unwrap();
    std::fs::write(&parquet_path, &cut[..cut.len() / 2]).unwrap();
    let refusal = context(parquet_path.to_str().unwrap(), &id).await.unwrap_err();
    assert!(refusal.contains("cannot be read as Parquet"), "{refusal}");
}

/// The lists of rows that a service offers.
#[derive(Clone, Copy, PartialEq)]
enum Lists {
    Cards,
    CardsAndMerchants,
}

/// A fake transaction service.
async fn service(csv_text: &str, lists: Lists) -> String {
    let header: Vec<&str> = csv_text.lines().next().unwrap().split(',').collect();
    let rows: Vec<Value> = csv_text
        .lines()
        .skip(1)
        .map(|line| {
            let fields = header.iter().zip(line.split(','));
            Value::Object(fields.map(|(name, field)| ((*name).to_owned(), json!(field))).collect())
        })
        .collect();
    let rows = Arc::new(rows);
    let (all, one) = (Arc::clone(&rows), rows);
    let router = Router::new()
        .route(
            "/api/transactions",
            get(move |RawQuery(asked): RawQuery| async move {
                let address = format!("http://service/?{}", asked.unwrap());
                let asked = reqwest::Url::parse(&address).unwrap();
                let asked: BTreeMap<String, String> = asked.query_pairs().into_owned().collect();
                if asked.contains_key("merchant_id") && lists == Lists::Cards {
                    return StatusCode::NOT_FOUND.into_response();
                }
                axum::Json(listed(&all, &asked)).into_response()
            }),
        )
        .route(
            "/api/transactions/{id}",
            get(move |Segment(id): Segment<String>| async move {
                match (id.as_str(), one.iter().find(|row| row["transaction_id"] == id.as_str())) {
                    ("large", _) => " ".repeat(9 * 1024 * 1024).into_response(),
                    ("garbage", _) => "<html>".into_response(),
                    ("broken", _) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                    ("elsewhere", _) => {
                        (StatusCode::FOUND, [("location", "http://example.com/")]).into_response()
                    }
                    (_, Some(row)) => axum::Json(row.clone()).into_response(),
                    (_, None) => StatusCode::NOT_FOUND.into_response(),
                }
            }),
        );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/api")
}

/// The rows of a list, as `packs/fraud/transactions/README.md` defines it.
fn listed(all: &[Value], asked: &BTreeMap<String, String>) -> Vec<Value> {
    let name = if asked.contains_key("card_id") { "card_id" } else { "merchant_id" };
    let mut rows: Vec<Value> =
        all.iter().filter(|row| row[name] == asked[name].as_str()).cloned().collect();
    let Some(until) = asked.get("until") else { return rows };
    rows.retain(|row| row["timestamp"].as_str().is_some_and(|at| at <= until.as_str()));
    rows.sort_by_key(|row| std::cmp::Reverse(row["timestamp"].to_string()));
    rows.truncate(asked["limit"].parse().unwrap());
    rows
}

#[tokio::test]
async fn a_service_gives_the_same_answers_as_a_file() {
    let text = generated(500);
    let id = last_of_a_known_merchant(&text);
    let base = service(&text, Lists::CardsAndMerchants).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    std::fs::write(&path, &text).unwrap();
    let of_service = context(&base, &id).await.unwrap();
    let of_file = context(path.to_str().unwrap(), &id).await.unwrap();
    assert_eq!(of_service["card"], of_file["card"]);
    assert!(of_file["merchant"]["transactions"].as_u64().unwrap() > 0, "{}", of_file["merchant"]);
    assert_eq!(of_service["merchant"], of_file["merchant"]);
    let arguments = json!({ "transaction_id": id });
    let of_service = ask(&base, "pattern_tool", arguments.clone()).await;
    let of_file = ask(path.to_str().unwrap(), "pattern_tool", arguments).await;
    assert_eq!(of_service.structured_content, of_file.structured_content);
}

#[tokio::test]
async fn a_service_is_asked_for_the_payment_and_its_card() {
    let text = generated(500);
    let id = last_fraud(&text);
    let base = service(&text, Lists::Cards).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    std::fs::write(&path, &text).unwrap();
    let of_service = context(&base, &id).await.unwrap();
    let of_file = context(path.to_str().unwrap(), &id).await.unwrap();
    assert_eq!(of_service["transaction"], of_file["transaction"]);
    assert_eq!(of_service["card"], of_file["card"]);
    assert_eq!(of_service["merchant"], Value::Null);
    let patterns = ask(&base, "pattern_tool", json!({ "transaction_id": id })).await;
    let patterns = patterns.structured_content.unwrap();
    assert_eq!(patterns["not_checked"][0]["pattern"], "merchant_risk");
}

#[tokio::test]
async fn an_unusable_service_is_named_with_its_error() {
    let base = service(&generated(300), Lists::Cards).await;
    for (id, expected) in [
        ("unknown", "has no transaction `unknown`"),
        ("large", "returned more than 8388608 bytes"),
        ("garbage", "returned invalid JSON"),
        ("broken", "returned 500"),
        ("elsewhere", "returned 302"),
    ] {
        let refusal = context(&base, id).await.unwrap_err();
        assert!(refusal.contains(expected), "{id}: {refusal}");
    }
    let refusal = context("http://127.0.0.1:9", "t1").await.unwrap_err();
    assert!(refusal.contains("is unreachable"), "{refusal}");
}

#[test]
fn a_remote_address_must_be_allowed() {
    for address in
        ["http://example.com", "https://127.0.0.1", "http://127.0.0.1@example.com/", "ftp://x"]
    {
        let error = server(address, Remote::Refused).unwrap_err().to_string();
        assert!(error.contains("is not on this machine"), "{error}");
    }
    assert!(server("https://transactions.example.com/v1", Remote::Allowed).is_ok());
    assert!(server("ftp://transactions.example.com", Remote::Allowed).is_err());
}

#[test]
fn the_bundled_data_set_is_what_its_seed_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../transactions/sample.csv");
    let mut made = Vec::new();
    generate(Options { seed: 9, rows: 2_000, fraud_permille: 60 }, &mut made).unwrap();
    let bundled = std::fs::read(path).unwrap();
    let hint = "make it again: daybook generate transactions --seed 9 --rows 2000 \
                --fraud-rate 0.06 --output packs/fraud/transactions/sample.csv";
    assert!(made == bundled, "{hint}");
}
