//! The DynamoDB endpoint: expressions, errors, pages and writes, and ([`differential`]) its agreement
//! with DynamoDB Local.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use journal::item::Item;
use journal::sqlite::{Durability, SqliteStore};
use journal::store::{Condition, Store as _, Written};
use serde_json::{Value as Json, json};
use stack::dynamodb::{ApiError, TABLE_NAME, handle};
use tempfile::TempDir;

mod differential;
mod writes;

/// A journal with a few items.
struct Journal {
    store: SqliteStore,
    _folder: TempDir,
}

impl Journal {
    async fn of(items: &[Item]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let store = SqliteStore::open(&path, Durability::Relaxed).unwrap();
        for item in items {
            let written = store.put(item.clone(), Condition::Absent).await.unwrap();
            assert_eq!(written, Written::Done);
        }
        Self { store, _folder: folder }
    }

    async fn call(&self, action: &str, mut request: Json) -> Result<Json, ApiError> {
        if request.get("TableName").is_none() {
            request["TableName"] = TABLE_NAME.into();
        }
        handle(&self.store, action, request.to_string().as_bytes()).await
    }

    /// Follows `LastEvaluatedKey` to the end and returns all items.
    async fn all_pages(&self, action: &str, request: &Json) -> Vec<Json> {
        let mut items = Vec::new();
        let mut request = request.clone();
        loop {
            let answer = self.call(action, request.clone()).await.unwrap();
            items.extend(answer["Items"].as_array().unwrap().clone());
            match answer.get("LastEvaluatedKey") {
                Some(last) => request["ExclusiveStartKey"] = last.clone(),
                None => return items,
            }
        }
    }
}

/// Two sessions; some items lack some attributes.
fn sample() -> Vec<Item> {
    let mut items = Vec::new();
    for session in ["SESSION#a", "SESSION#b"] {
        for n in 0..12_i64 {
            let status = ["SESSION_INITIATED", "AGENT_LOST", "SESSION_FAILED"][(n % 3) as usize];
            let stamp = format!("2026-01-{:02}T00:00:00.{n:09}Z", n + 1);
            let mut item = Item::new(session, format!("EVENT#{stamp}"))
                .with("Status", status)
                .with("Timestamp", format!("{stamp}{session}"))
                .with("V", n - 3);
            if n % 4 != 0 {
                item = item.with("Data", vec![n as u8, 255 - n as u8]);
            }
            if n % 3 != 1 {
                item = item.with("Day", "DAY#2026-01#0");
            }
            if n % 5 == 0 {
                item = item.with("Odd", "").with("Other", n % 2);
            }
            items.push(item);
        }
        items.push(Item::new(session, "LEASE").with("Epoch", 3_i64).with("Beat", 7_i64));
        items.push(Item::new(session, "STEP#00000001").with("V", 100_i64).with("Kind", "claim"));
        items.push(Item::new(session, "STEP#00000002").with("V", -100_i64).with("Kind", "énd"));
    }
    items
}

fn session_a() -> Json {
    json!({
        "KeyConditionExpression": "PK = :pk",
        "ExpressionAttributeValues": { ":pk": { "S": "SESSION#a" } },
    })
}

async fn refusal(journal: &Journal, action: &str, request: Json) -> String {
    match journal.call(action, request.clone()).await {
        Err(error) => {
            assert_eq!(error.status, 400, "{error}");
            format!("{}: {}", error.kind.rsplit('#').next().unwrap(), error.message)
        }
        Ok(answer) => panic!("{request} was answered: {answer}"),
    }
}

#[tokio::test]
async fn a_filter_selects_the_matching_items() {
    let journal = Journal::of(&sample()).await;
    for (filter, count) in [
        ("V = :zero", 1),
        ("V <> :zero", 14),
        ("V < :zero", 4),
        ("V <= :zero AND V >= :zero", 1),
        ("V > :half", 9),
        ("V BETWEEN :zero AND :half OR V = :big", 2),
        ("V IN (:zero, :big, :half)", 2),
        ("NOT V = :zero AND attribute_exists(V)", 13),
        ("NOT (V = :zero OR attribute_exists(V))", 1),
        ("attribute_not_exists(V)", 1),
        ("attribute_type(V, :n)", 14),
        ("begins_with(#s, :session)", 8),
        ("contains(#s, :lost) OR contains(Kind, :lost)", 4),
        ("size(#d) = :two", 9),
        ("size(Kind) BETWEEN :two AND :five", 2),
        ("V.deep[3].#s = :zero", 0),
        ("attribute_not_exists(V.deep)", 15),
        ("contains(:set, Kind)", 1),
        (":zero = :zero", 15),
    ] {
        let mut request = session_a();
        request["FilterExpression"] = filter.into();
        let values = [
            (":zero", json!({ "N": "0" })),
            (":half", json!({ "N": "5e-1" })),
            (":big", json!({ "N": "100" })),
            (":two", json!({ "N": "2" })),
            (":five", json!({ "N": "5" })),
            (":n", json!({ "S": "N" })),
            (":session", json!({ "S": "SESSION_" })),
            (":lost", json!({ "S": "_LOST" })),
            (":set", json!({ "SS": ["claim", "note"] })),
        ];
        for (placeholder, value) in values {
            if filter.contains(placeholder) {
                request["ExpressionAttributeValues"][placeholder] = value;
            }
        }
        for (placeholder, name) in [("#s", "Status"), ("#d", "Data")] {
            if filter.contains(placeholder) {
                request["ExpressionAttributeNames"][placeholder] = name.into();
            }
        }
        let answer = journal.call("Query", request).await.unwrap();
        assert_eq!(answer["Count"], count, "{filter}");
        assert_eq!(answer["ScannedCount"], 15, "{filter}");
    }
}

#[tokio::test]
async fn a_key_condition_selects_a_range() {
    let journal = Journal::of(&sample()).await;
    for (condition, count) in [
        ("PK = :pk", 15),
        ("(PK = :pk) AND (SK = :lease)", 1),
        ("SK < :lease AND PK = :pk", 12),
        ("PK = :pk AND SK <= :lease", 13),
        ("PK = :pk AND SK > :lease", 2),
        ("PK = :pk AND SK >= :lease", 3),
        (":pk = PK AND :lease < SK", 2),
        ("PK = :pk AND SK BETWEEN :lease AND :step", 2),
        ("PK = :pk AND begins_with(SK, :events)", 12),
    ] {
        let values = [
            (":pk", "SESSION#a"),
            (":lease", "LEASE"),
            (":step", "STEP#00000001"),
            (":events", "EVENT#"),
        ];
        for forward in [true, false] {
            let mut request = json!({
                "KeyConditionExpression": condition,
                "ScanIndexForward": forward,
            });
            for (placeholder, value) in values {
                if condition.contains(placeholder) {
                    request["ExpressionAttributeValues"][placeholder] = json!({ "S": value });
                }
            }
            let mut items = journal.all_pages("Query", &request).await;
            assert_eq!(items.len(), count, "{condition}");
            let sort_key = |item: &Json| item["SK"]["S"].as_str().unwrap().to_owned();
            if !forward {
                items.reverse();
            }
            assert!(items.is_sorted_by_key(sort_key), "{condition}");
        }
    }
}

#[tokio::test]
async fn an_invalid_expression_gets_dynamodbs_message() {
    let journal = Journal::of(&[]).await;
    for (filter, message) in [
        ("Status = :pk", "Attribute name is a reserved keyword; reserved keyword: Status"),
        ("a.timestamp = :pk", "Attribute name is a reserved keyword; reserved keyword: timestamp"),
        ("", "The expression can not be empty;"),
        ("  ", "Syntax error; token: \"<EOF>\", near: \"  \""),
        ("V == :pk", "Syntax error; token: \"=\", near: \"== :pk\""),
        ("V = :pk AND", "Syntax error; token: \"<EOF>\", near: \"AND\""),
        ("V = 'a'", "Syntax error; token: \"'\", near: \"= 'a\""),
        ("V[007] = :pk", "Syntax error; token: \"0\", near: \"007\""),
        ("((V = :pk))", "The expression has redundant parentheses;"),
        ("lower(V) = :pk", "Invalid function name; function: lower"),
        (
            "size(V)",
            "The function is not allowed to be used this way in an expression; function: size",
        ),
        (
            "if_not_exists(V, :pk) = :pk",
            "The function is not allowed in a condition expression; function: if_not_exists",
        ),
        (
            "V[2147483648] = :pk",
            "List index is not within the allowable range; index: [2147483648]",
        ),
        (
            "V = V",
            "The first operand must be distinct from the remaining operands for this operator or \
             function; operator: =, first operand: [V]",
        ),
        (
            "#n = :pk",
            "An expression attribute name used in the document path is not defined; attribute \
             name: #n",
        ),
        (
            "V = :v",
            "An expression attribute value used in expression is not defined; attribute value: :v",
        ),
        (
            "attribute_exists(V, W)",
            "Incorrect number of operands for operator or function; operator or function: \
             attribute_exists, number of operands: 2",
        ),
        (
            "attribute_exists(:pk)",
            "Operator or function requires a document path; operator or function: attribute_exists",
        ),
        (
            "size(size(V)) = :pk",
            "Incorrect operand type for operator or function; operator or function: size, operand \
             type: N",
        ),
    ] {
        let mut request = session_a();
        request["FilterExpression"] = filter.into();
        let expected = format!("ValidationException: Invalid FilterExpression: {message}");
        assert_eq!(refusal(&journal, "Query", request).await, expected, "{filter}");
    }
}

#[tokio::test]
async fn an_invalid_parameter_is_refused() {
    let journal = Journal::of(&[]).await;
    for (parameters, message) in [
        (
            json!({ "ExpressionAttributeNames": { "#a": "A" } }),
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a}",
        ),
        (
            json!({ "ExpressionAttributeValues":
                { ":pk": { "S": "a" }, ":x": { "S": "x" }, ":y": { "S": "y" } } }),
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:x, :y}",
        ),
        (json!({ "ExpressionAttributeNames": {} }), "ExpressionAttributeNames must not be empty"),
        (
            json!({ "KeyConditionExpression": "Status = :pk" }),
            "Invalid KeyConditionExpression: Attribute name is a reserved keyword; reserved \
             keyword: Status",
        ),
        (
            json!({ "ProjectionExpression": "Data, Status" }),
            "Invalid ProjectionExpression: Attribute name is a reserved keyword; reserved keyword: \
             Data",
        ),
        (
            json!({ "ProjectionExpression": "V, V.x" }),
            "Invalid ProjectionExpression: Two document paths overlap with each other; must remove \
             or rewrite one of these paths; path one: [V], path two: [V, x]",
        ),
        (
            json!({ "FilterExpression": "SK = :pk" }),
            "Filter Expression can only contain non-primary key attributes: Primary key attribute: \
             SK",
        ),
        (
            json!({ "KeyConditionExpression": "SK = :pk" }),
            "Query condition missed key schema element: PK",
        ),
        (json!({ "KeyConditionExpression": "PK > :pk" }), "Query key condition not supported"),
        (json!({ "IndexName": "ByNight" }), "The table does not have the specified index: ByNight"),
        (
            json!({ "Limit": 0 }),
            "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: \
             Member must have value greater than or equal to 1",
        ),
        (
            json!({ "KeyConditions": {} }),
            "Can not use both expression and non-expression parameters in the same request: \
             Non-expression parameters: {KeyConditions} Expression parameters: \
             {KeyConditionExpression}",
        ),
        (
            json!({ "ExclusiveStartKey": { "PK": { "S": "a" } } }),
            "The provided starting key is invalid",
        ),
        (
            json!({ "Select": "COUNT", "ProjectionExpression": "V" }),
            "Cannot specify the ProjectionExpression when choosing to get only the Count",
        ),
    ] {
        let mut request = session_a();
        for (name, value) in parameters.as_object().unwrap() {
            request[name] = value.clone();
        }
        let expected = format!("ValidationException: {message}");
        assert_eq!(refusal(&journal, "Query", request).await, expected);
    }
}

#[tokio::test]
async fn unsupported_requests_get_dynamodbs_errors() {
    let journal = Journal::of(&[]).await;
    let other = json!({ "TableName": "other", "Key": {} });
    assert_eq!(
        refusal(&journal, "GetItem", other).await,
        "ResourceNotFoundException: Requested resource not found"
    );
    let legacy = json!({ "KeyConditions": {} });
    assert_eq!(
        refusal(&journal, "Query", legacy).await,
        "ValidationException: this endpoint does not support KeyConditions: use expressions"
    );
    let malformed = handle(&journal.store, "Query", b"[").await.unwrap_err();
    assert!(malformed.kind.ends_with("#SerializationException"), "{malformed}");
    let unknown = journal.call("CreateBackup", json!({})).await.unwrap_err();
    assert!(unknown.is_unknown_operation(), "{unknown}");
}

#[tokio::test]
async fn hostile_nesting_is_refused() {
    let journal = Journal::of(&[]).await;
    for filter in [
        format!("{}V = :pk{}", "(".repeat(2000), ")".repeat(2000)),
        format!("{}V = :pk", "NOT ".repeat(1000)),
        format!("{}V = :pk", "NOT (".repeat(800)),
        format!("{}V = :pk", "(".repeat(4000)),
        format!("{}V = :pk", "size(".repeat(800)),
        format!("V{} = :pk", ".x".repeat(2000)),
        format!("V{} = :pk", "[0]".repeat(1300)),
        format!("V = :pk{}", " AND V = :pk".repeat(300)),
        format!("{}V = :pk", "(V = :pk OR ".repeat(300)),
        " ".repeat(4097),
    ] {
        let mut request = session_a();
        request["FilterExpression"] = filter.into();
        let refusal = refusal(&journal, "Query", request).await;
        assert!(
            refusal.starts_with("ValidationException: Invalid FilterExpression: "),
            "{refusal}"
        );
    }
    let mut deep = session_a();
    let nested = format!("{}V = :pk{}", "NOT (".repeat(50), ")".repeat(50));
    deep["FilterExpression"] = nested.into();
    assert_eq!(journal.call("Query", deep).await.unwrap()["Count"], 0);
}

#[tokio::test]
async fn all_pages_together_equal_one_read() {
    let journal = Journal::of(&sample()).await;
    let by_day = json!({
        "IndexName": "ByDay",
        "KeyConditionExpression": "#day = :day",
        "ExpressionAttributeNames": { "#day": "Day" },
        "ExpressionAttributeValues": { ":day": { "S": "DAY#2026-01#0" } },
    });
    let mut filtered = session_a();
    filtered["FilterExpression"] = "V > :pk OR V < :zero".into();
    filtered["ExpressionAttributeValues"][":zero"] = json!({ "N": "0" });
    let requests = [
        ("Query", session_a()),
        ("Query", filtered),
        ("Query", by_day),
        ("Scan", json!({})),
        ("Scan", json!({ "IndexName": "ByDay" })),
    ];
    for (action, request) in requests {
        for reverse in [false, true] {
            let mut request = request.clone();
            if reverse && action == "Query" {
                request["ScanIndexForward"] = false.into();
            }
            let whole = journal.call(action, request.clone()).await.unwrap();
            assert!(whole.get("LastEvaluatedKey").is_none());
            for limit in [1, 2, 3, 7, 15, 16, 100] {
                request["Limit"] = limit.into();
                let pages = journal.all_pages(action, &request).await;
                assert_eq!(Json::from(pages), whole["Items"], "{action} {request}");
            }
        }
    }
}

#[tokio::test]
async fn all_segments_together_equal_one_scan() {
    let items: Vec<Item> = (0..40).map(|n| Item::new(format!("P{n}"), "S")).collect();
    let journal = Journal::of(&items).await;
    let mut found = Vec::new();
    for segment in 0..4 {
        let request = json!({ "Segment": segment, "TotalSegments": 4, "Limit": 3 });
        found.extend(journal.all_pages("Scan", &request).await);
    }
    let mut keys: Vec<_> = found.iter().map(|item| item["PK"]["S"].to_string()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!((found.len(), keys.len()), (40, 40));
}

#[tokio::test]
async fn the_limit_counts_items_before_the_filter() {
    let journal = Journal::of(&sample()).await;
    let mut request = session_a();
    request["FilterExpression"] = "Kind = :kind".into();
    request["ExpressionAttributeValues"][":kind"] = json!({ "S": "claim" });
    request["Limit"] = 2.into();
    let answer = journal.call("Query", request.clone()).await.unwrap();
    assert_eq!((&answer["Count"], &answer["ScannedCount"]), (&json!(0), &json!(2)));
    assert!(
        answer["LastEvaluatedKey"]["SK"]["S"].as_str().unwrap().starts_with("EVENT#2026-01-02")
    );
    // A page that ends with the last item does not know that it is the last.
    request["Limit"] = 15.into();
    let answer = journal.call("Query", request).await.unwrap();
    assert_eq!((&answer["Count"], &answer["ScannedCount"]), (&json!(1), &json!(15)));
    assert_eq!(answer["LastEvaluatedKey"]["SK"]["S"], "STEP#00000002");
}

#[tokio::test]
async fn a_page_ends_with_the_item_that_reaches_a_megabyte() {
    let body = "x".repeat(300 * 1024);
    let items: Vec<Item> =
        (0..6).map(|n| Item::new("SESSION#a", n.to_string()).with("Body", body.as_str())).collect();
    let journal = Journal::of(&items).await;
    let mut request = session_a();
    request["ProjectionExpression"] = "SK".into();
    request["ReturnConsumedCapacity"] = "TOTAL".into();
    let answer = journal.call("Query", request.clone()).await.unwrap();
    assert_eq!(answer["Count"], 4);
    assert_eq!(
        answer["LastEvaluatedKey"],
        json!({ "PK": { "S": "SESSION#a" }, "SK": { "S": "3" } })
    );
    assert_eq!(answer["ConsumedCapacity"]["CapacityUnits"], 150.5);
    assert_eq!(journal.all_pages("Query", &request).await.len(), 6);
    assert_eq!(journal.all_pages("Scan", &json!({})).await.len(), 6);
}

#[tokio::test]
async fn one_item_is_read_whole_or_in_part() {
    let journal = Journal::of(&sample()).await;
    let key = json!({ "PK": { "S": "SESSION#a" }, "SK": { "S": "LEASE" } });
    let answer = journal.call("GetItem", json!({ "Key": key })).await.unwrap();
    assert_eq!(answer["Item"]["Epoch"], json!({ "N": "3" }));
    let part = json!({
        "Key": key,
        "ProjectionExpression": "Beat, #none, Epoch.deep",
        "ExpressionAttributeNames": { "#none": "None" },
        "ReturnConsumedCapacity": "INDEXES",
        "ConsistentRead": true,
    });
    let answer = journal.call("GetItem", part).await.unwrap();
    assert_eq!(
        answer,
        json!({
            "Item": { "Beat": { "N": "7" } },
            "ConsumedCapacity": {
                "TableName": TABLE_NAME, "CapacityUnits": 1.0, "Table": { "CapacityUnits": 1.0 },
            },
        })
    );
    let absent = json!({ "Key": { "PK": { "S": "SESSION#a" }, "SK": { "S": "none" } } });
    assert_eq!(journal.call("GetItem", absent).await.unwrap(), json!({}));
    let short = json!({ "Key": { "PK": { "S": "SESSION#a" } } });
    assert_eq!(
        refusal(&journal, "GetItem", short).await,
        "ValidationException: The provided key element does not match the schema"
    );
}

#[tokio::test]
async fn the_table_describes_itself() {
    let journal = Journal::of(&sample()).await;
    let answer = journal.call("DescribeTable", json!({})).await.unwrap();
    let table = &answer["Table"];
    assert_eq!(table["TableStatus"], "ACTIVE");
    assert_eq!(table["ItemCount"], 30);
    assert_eq!(table["KeySchema"][1], json!({ "AttributeName": "SK", "KeyType": "RANGE" }));
    assert_eq!(table["GlobalSecondaryIndexes"][0]["IndexName"], "ByDay");
    let expiry = journal.call("DescribeTimeToLive", json!({})).await.unwrap();
    assert_eq!(
        expiry["TimeToLiveDescription"],
        json!({ "TimeToLiveStatus": "ENABLED", "AttributeName": "ExpiresAt" })
    );
    let tables = journal.call("ListTables", json!({})).await.unwrap();
    assert_eq!(tables, json!({ "TableNames": [TABLE_NAME] }));
    assert_eq!(
        refusal(&journal, "DescribeTable", json!({ "TableName": "other" })).await,
        "ResourceNotFoundException: Requested resource not found: Table: other not found"
    );
}
