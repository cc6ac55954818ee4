//! Sends the same requests to this endpoint and to DynamoDB Local, by DynamoDB's authors. Status, error
//! kind and items must agree.

use std::fmt::Write as _;

use journal::item::Item;
use serde_json::{Value as Json, json};

use super::{Journal, sample};

/// The endpoint of DynamoDB Local, such as `http://127.0.0.1:8000`.
const ENDPOINT: &str = "DAYBOOK_TEST_DYNAMODB";

const SEED: u64 = 2026;

const GENERATED: usize = 1_200;

/// DynamoDB Local, with its own table.
struct Reference {
    client: reqwest::Client,
    endpoint: String,
    table: String,
}

impl Reference {
    /// `None`, with a log line, if no endpoint is configured.
    #[expect(clippy::disallowed_methods, reason = "a test's environment is read where it is used")]
    async fn with(items: &[Item]) -> Option<Self> {
        let Ok(endpoint) = std::env::var(ENDPOINT) else {
            println!("skipped: {ENDPOINT} names no DynamoDB Local (scripts/dynamodb-local.sh)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let unique = folder.path().file_name().unwrap().to_string_lossy().replace('.', "");
        let table = format!("daybook-differential-{unique}");
        let reference = Self { client: reqwest::Client::new(), endpoint, table };
        let definition = |name| json!({ "AttributeName": name, "AttributeType": "S" });
        let schema = |hash, range| {
            json!([
                { "AttributeName": hash, "KeyType": "HASH" },
                { "AttributeName": range, "KeyType": "RANGE" },
            ])
        };
        let table = json!({
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": (["PK", "SK", "Day", "Timestamp"].map(definition)),
            "KeySchema": schema("PK", "SK"),
            "GlobalSecondaryIndexes": [{
                "IndexName": "ByDay",
                "KeySchema": schema("Day", "Timestamp"),
                "Projection": { "ProjectionType": "ALL" },
            }],
        });
        assert_eq!(reference.call("CreateTable", &table).await.0, 200);
        for item in items {
            let put = json!({ "Item": item.to_json() });
            assert_eq!(reference.call("PutItem", &put).await.0, 200);
        }
        Some(reference)
    }

    async fn call(&self, action: &str, request: &Json) -> (u16, Json) {
        let mut request = request.clone();
        request["TableName"] = self.table.as_str().into();
        let response = self
            .client
            .post(&self.endpoint)
            .header("X-Amz-Target", format!("DynamoDB_20120810.{action}"))
            .header("Content-Type", "application/x-amz-json-1.0")
            .header(
                "Authorization",
                "AWS4-HMAC-SHA256 Credential=dummy/20260101/us-east-1/dynamodb/aws4_request, \
                 SignedHeaders=host, Signature=x",
            )
            .body(request.to_string())
            .send()
            .await
            .unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap())
    }
}

/// SplitMix64, so that a seed gives the same requests everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    fn path(&mut self) -> &'static str {
        if self.one_in(30) {
            return self.pick(&["#missing", "Status", "V.x", "V[1]", "Kind.#s[0].y"]);
        }
        self.pick(&["V", "V", "#s", "#s", "Kind", "#d", "Odd", "Other", "Epoch", "None9", "#t"])
    }

    fn value(&mut self) -> &'static str {
        if self.one_in(12) {
            return self.pick(&[":true", ":null", ":list", ":map", ":ss", ":ns", ":missing"]);
        }
        self.pick(&[
            ":zero", ":zero", ":five", ":half", ":neg", ":s", ":s", ":lost", ":empty", ":e",
            ":bytes", ":byte", ":type",
        ])
    }

    fn operand(&mut self) -> String {
        match self.below(12) {
            0..5 => self.path().to_owned(),
            5..10 => self.value().to_owned(),
            10 => format!("size({})", self.path()),
            _ => format!("({})", self.path()),
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        if depth > 0 && self.one_in(2) {
            let (left, right) = (self.condition(depth - 1), self.condition(depth - 1));
            return match self.below(7) {
                0 => format!("{left} AND {right}"),
                1 => format!("{left} OR {right}"),
                2 => format!("NOT {left}"),
                3 => format!("({left} or {right})"),
                4 => format!("({left}) and NOT ({right})"),
                5 => format!("not (not {left})"),
                _ => format!("{left} AND ({right})"),
            };
        }
        match self.below(12) {
            0..6 => {
                let comparator = self.pick(&["=", "<>", "<", "<=", ">", ">="]);
                format!("{} {comparator} {}", self.operand(), self.operand())
            }
            6 => format!("{} BETWEEN {} AND {}", self.operand(), self.operand(), self.operand()),
            7 => format!("{} IN ({}, {})", self.operand(), self.operand(), self.operand()),
            8 => {
                let function = self.pick(&["attribute_exists", "attribute_not_exists"]);
                format!("{function}({})", self.path())
            }
            9 => format!("attribute_type({}, :type)", self.path()),
            10 => format!("begins_with({}, {})", self.path(), self.value()),
            _ => format!("contains({}, {})", self.operand(), self.operand()),
        }
    }

    /// The text with one token changed, so that it is probably invalid.
    fn broken(&mut self, text: &str) -> String {
        let mut words: Vec<&str> = text.split_inclusive([' ', '(', ')', ',']).collect();
        let place = self.below(words.len());
        match self.below(3) {
            0 => drop(words.remove(place)),
            1 => words.insert(place, words[self.below(words.len())]),
            _ => {
                words[place] = self.pick(&[
                    "", "= ", "(", ")", ", ", "AND ", "NOT ", ":zero ", "V ", ". ", "[0] ", "é ",
                    "- ", "\"x\" ", "7 ", "foo(", "size(", "Between ", "# ", ": ", "(( ", ")) ",
                ]);
            }
        }
        words.concat()
    }

    fn key_condition(&mut self) -> String {
        let range = match self.below(12) {
            0..4 => return "PK = :pk".to_owned(),
            4 => "SK BETWEEN :low AND :high".to_owned(),
            5 => "begins_with(SK, :prefix)".to_owned(),
            6 => ":low <= SK".to_owned(),
            7 => "SK <> :low".to_owned(),
            8 => "begins_with(SK, :zero)".to_owned(),
            9 => "V = :low".to_owned(),
            _ => format!("SK {} :low", self.pick(&["=", "<", "<=", ">", ">="])),
        };
        match self.below(8) {
            0 => format!("({range}) AND PK = :pk"),
            1 => range,
            2 => format!("PK = :pk OR {range}"),
            3 => format!("PK = :pk AND {range} AND {range}"),
            _ => format!("PK = :pk AND {range}"),
        }
    }

    fn projection(&mut self) -> String {
        let mut paths: Vec<&str> = (0..1 + self.below(3)).map(|_| self.path()).collect();
        if self.one_in(3) {
            paths.push("SK");
        }
        let text = paths.join(", ");
        if self.one_in(6) { self.broken(&text) } else { text }
    }

    fn request(&mut self) -> Json {
        let by_day = self.one_in(8);
        let mut request = json!({});
        request["KeyConditionExpression"] = if by_day {
            request["IndexName"] = "ByDay".into();
            self.pick(&["#day = :day", "#day = :day AND #t > :stamp"]).into()
        } else {
            self.key_condition().into()
        };
        if !self.one_in(4) {
            let depth = self.below(4);
            let filter = self.condition(depth);
            let filter = if self.one_in(4) { self.broken(&filter) } else { filter };
            request["FilterExpression"] = filter.into();
        }
        if self.one_in(3) {
            request["ProjectionExpression"] = self.projection().into();
        } else if self.one_in(4) {
            request["Select"] = "COUNT".into();
        }
        if self.one_in(3) {
            request["Limit"] = (1 + self.below(16)).into();
        }
        if self.one_in(3) {
            request["ScanIndexForward"] = false.into();
        }
        if self.one_in(6) && !by_day {
            let sk = format!("EVENT#2026-01-{:02}", 1 + self.below(14));
            request["ExclusiveStartKey"] = json!({ "PK": { "S": "SESSION#a" }, "SK": { "S": sk } });
        }
        let superfluous = self.one_in(25);
        define(&mut request, superfluous);
        request
    }
}

/// Defines the placeholders that the request's expressions use, and perhaps one unused one.
fn define(request: &mut Json, superfluous: bool) {
    let mut text = String::new();
    for name in ["KeyConditionExpression", "FilterExpression", "ProjectionExpression"] {
        let _ = write!(text, "{} ", request[name].as_str().unwrap_or_default());
    }
    request.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    let used = |placeholder: &str| {
        text.match_indices(placeholder).any(|(at, _)| {
            let after = text[at + placeholder.len()..].chars().next().unwrap_or(' ');
            !after.is_ascii_alphanumeric() && after != '_'
        })
    };
    for (placeholder, name) in
        [("#s", "Status"), ("#d", "Data"), ("#t", "Timestamp"), ("#day", "Day")]
    {
        if used(placeholder) {
            request["ExpressionAttributeNames"][placeholder] = name.into();
        }
    }
    for (placeholder, value) in [
        (":pk", json!({ "S": "SESSION#a" })),
        (":low", json!({ "S": "EVENT#2026-01-05T00:00:00.000000004Z" })),
        (":high", json!({ "S": "LEASE" })),
        (":prefix", json!({ "S": "EVENT#2026-01-0" })),
        (":day", json!({ "S": "DAY#2026-01#0" })),
        (":stamp", json!({ "S": "2026-01-05" })),
        (":zero", json!({ "N": "0" })),
        (":five", json!({ "N": "5.0" })),
        (":half", json!({ "N": "25e-1" })),
        (":neg", json!({ "N": "-100" })),
        (":s", json!({ "S": "SESSION_FAILED" })),
        (":lost", json!({ "S": "LOST" })),
        (":empty", json!({ "S": "" })),
        (":e", json!({ "S": "é" })),
        (":bytes", json!({ "B": "Bfo=" })),
        (":byte", json!({ "B": "Bg==" })),
        (":true", json!({ "BOOL": true })),
        (":null", json!({ "NULL": true })),
        (":list", json!({ "L": [{ "N": "1.0" }, { "S": "claim" }] })),
        (":map", json!({ "M": { "a": { "N": "1" } } })),
        (":ss", json!({ "SS": ["claim", "AGENT_LOST"] })),
        (":ns", json!({ "NS": ["1", "2", "100"] })),
        (":type", json!({ "S": "N" })),
    ] {
        if used(placeholder) {
            request["ExpressionAttributeValues"][placeholder] = value;
        }
    }
    if superfluous {
        request["ExpressionAttributeValues"][":superfluous"] = json!({ "N": "1" });
    }
}

/// What must agree: the visible part of the response, or the error kind.
fn visible(status: u16, answer: &Json) -> Json {
    if status == 200 {
        let mut answer = answer.clone();
        answer.as_object_mut().unwrap().remove("ConsumedCapacity");
        return answer;
    }
    let kind = answer["__type"].as_str().unwrap_or_default();
    json!({ "status": status, "kind": kind.rsplit('#').next() })
}

fn message(answer: &Json) -> &str {
    answer
        .get("message")
        .or_else(|| answer.get("Message"))
        .map_or("", |text| text.as_str().unwrap_or_default())
}

/// Sends one request to both. Returns the difference in what must agree, and in the message.
async fn compare(
    journal: &Journal,
    reference: &Reference,
    action: &str,
    request: &Json,
) -> (Option<String>, Option<String>, u16) {
    let (status, expected) = reference.call(action, request).await;
    let (our_status, ours) = match journal.call(action, request.clone()).await {
        Ok(answer) => (200, answer),
        Err(error) => (error.status, error.body()),
    };
    let differs = (visible(our_status, &ours) != visible(status, &expected))
        .then(|| format!("{action} {request}\n  ours:      {ours}\n  reference: {expected}"));
    let says = (differs.is_none() && message(&ours) != message(&expected)).then(|| {
        format!("{request}\n  ours:      {}\n  reference: {}", message(&ours), message(&expected))
    });
    (differs, says, status)
}

/// The messages that users see, which must be identical.
///
/// Other messages differ where DynamoDB Local says less than DynamoDB (which key a condition lacks),
/// shows its internals (a byte buffer's class), or names the wrong one of two overlapping paths.
fn must_agree(message: &str) -> bool {
    [
        "reserved keyword", "is not defined", "Syntax error", "redundant parentheses",
        "unused in expressions", "must be distinct", "Incorrect operand type", "Invalid function",
    ]
    .iter()
    .any(|part| message.contains(part))
        // DynamoDB Local lists its internal types if an attribute is used as a type name.
        && !message.contains("DOUBLESET")
}

#[tokio::test]
async fn generated_queries_agree_with_dynamodb_local() {
    let items = sample();
    let Some(reference) = Reference::with(&items).await else { return };
    let journal = Journal::of(&items).await;
    let mut random = Random(SEED);
    let (mut failures, mut sayings, mut answered) = (Vec::new(), Vec::new(), 0);
    for _ in 0..GENERATED {
        let request = random.request();
        let (differs, says, status) = compare(&journal, &reference, "Query", &request).await;
        answered += usize::from(status == 200);
        failures.extend(differs);
        sayings.extend(says);
    }
    let refused = GENERATED - answered;
    println!("{answered} answered, {refused} refused, {} messages differ", sayings.len());
    failures.extend(sayings.into_iter().filter(|saying| must_agree(saying)));
    assert!(failures.is_empty(), "seed {SEED}: {}\n{}", failures.len(), failures.join("\n"));
    assert!(answered > GENERATED / 6 && refused > GENERATED / 6, "one-sided requests");
}

#[tokio::test]
async fn conditional_writes_agree_with_dynamodb_local() {
    let Some(reference) = Reference::with(&[]).await else { return };
    let journal = Journal::of(&[]).await;
    let put = |epoch: u32, condition: &str| {
        let mut request = json!({
            "Item": {
                "PK": { "S": "SESSION#a" },
                "SK": { "S": "LEASE" },
                "Epoch": { "N": epoch.to_string() },
            },
            "ConditionExpression": condition,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        });
        if condition.contains(":epoch") {
            request["ExpressionAttributeValues"] = json!({ ":epoch": { "N": epoch.to_string() } });
        }
        request
    };
    let update = |epoch: u32, condition: &str| {
        json!({
            "Key": { "PK": { "S": "SESSION#a" }, "SK": { "S": "LEASE" } },
            "UpdateExpression": "SET Epoch = :epoch, Beat = :epoch",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": { ":epoch": { "N": epoch.to_string() } },
        })
    };
    for (action, request) in [
        ("PutItem", put(1, "attribute_exists(PK)")),
        ("PutItem", put(1, "Epoch <= :epoch")),
        ("PutItem", put(1, "attribute_not_exists(PK)")),
        ("PutItem", put(2, "attribute_not_exists(PK)")),
        ("PutItem", put(2, "attribute_not_exists(PK) OR Epoch <= :epoch")),
        ("PutItem", put(1, "attribute_not_exists(PK) OR Epoch <= :epoch")),
        ("UpdateItem", update(2, "Epoch = :epoch")),
        ("UpdateItem", update(3, "Epoch = :epoch")),
        ("UpdateItem", update(3, "attribute_exists(SK) AND Epoch <= :epoch")),
        ("PutItem", put(4, "Status = :epoch")),
        ("PutItem", put(4, "Epoch = :other")),
        ("UpdateItem", update(4, "Epoch =")),
    ] {
        let (differs, says, _) = compare(&journal, &reference, action, &request).await;
        assert_eq!((differs, says), (None, None));
    }
    let key = json!({ "Key": { "PK": { "S": "SESSION#a" }, "SK": { "S": "LEASE" } } });
    assert_eq!(compare(&journal, &reference, "GetItem", &key).await, (None, None, 200));
}
