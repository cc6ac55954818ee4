//! Writes through the endpoint: conditional, and never over an immutable record.

use journal::item::Item;
use serde_json::{Value as Json, json};
use stack::dynamodb::ApiError;

use super::{Journal, refusal};

fn put(pk: &str, sk: &str, condition: &str) -> Json {
    let mut request = json!({
        "Item": { "PK": { "S": pk }, "SK": { "S": sk }, "Epoch": { "N": "2" } },
        "ConditionExpression": condition,
    });
    for (placeholder, value) in [
        (":two", json!({ "N": "2" })),
        (":one", json!({ "N": "1.0" })),
        (":half", json!({ "N": "0.5" })),
        (":text", json!({ "S": "text" })),
    ] {
        if condition.contains(placeholder) {
            request["ExpressionAttributeValues"][placeholder] = value;
        }
    }
    request
}

fn kind(answer: &Result<Json, ApiError>) -> &str {
    match answer {
        Ok(_) => "written",
        Err(error) => error.kind.rsplit('#').next().unwrap(),
    }
}

#[tokio::test]
async fn a_write_happens_if_its_condition_holds() {
    const FAILED: &str = "ConditionalCheckFailedException";
    for (condition, on_nothing, on_epoch_2) in [
        ("attribute_not_exists(PK)", "written", FAILED),
        ("attribute_not_exists(SK)", "written", FAILED),
        ("attribute_exists(PK)", FAILED, "written"),
        ("Epoch = :two", FAILED, "written"),
        ("Epoch = :one", FAILED, FAILED),
        ("Epoch <= :two", FAILED, "written"),
        (":one >= Epoch", FAILED, FAILED),
        ("attribute_not_exists(PK) OR Epoch <= :two", "written", "written"),
        ("(attribute_not_exists(PK)) OR (Epoch <= :one)", "written", FAILED),
        ("attribute_exists(PK) AND Epoch = :two", FAILED, "written"),
        ("Epoch <= :text", FAILED, FAILED),
    ] {
        let there = Item::new("SESSION#a", "LEASE").with("Epoch", 2_i64);
        for (items, expected) in [(vec![], on_nothing), (vec![there], on_epoch_2)] {
            let journal = Journal::of(&items).await;
            let answer = journal.call("PutItem", put("SESSION#a", "LEASE", condition)).await;
            assert_eq!(kind(&answer), expected, "{condition}");
        }
    }
}

#[tokio::test]
async fn a_failed_condition_returns_the_item_on_request() {
    let there = Item::new("SESSION#a", "LEASE").with("Epoch", 9_i64);
    let journal = Journal::of(std::slice::from_ref(&there)).await;
    let mut request = put("SESSION#a", "LEASE", "attribute_not_exists(PK)");
    let silent = journal.call("PutItem", request.clone()).await.unwrap_err();
    assert_eq!(silent.body().get("Item"), None);
    request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD".into();
    let telling = journal.call("PutItem", request).await.unwrap_err();
    assert_eq!(telling.body()["message"], "The conditional request failed");
    assert_eq!(telling.body()["Item"], there.to_json());
}

#[tokio::test]
async fn an_unconditional_write_and_any_delete_is_refused() {
    let journal = Journal::of(&[]).await;
    let mut request = put("SESSION#a", "LEASE", "attribute_not_exists(PK)");
    request.as_object_mut().unwrap().remove("ConditionExpression");
    assert_eq!(
        refusal(&journal, "PutItem", request).await,
        "AccessDeniedException: an unconditional write is refused: the journal is append-only"
    );
    for action in ["DeleteItem", "DeleteTable", "BatchWriteItem", "TransactWriteItems"] {
        let refusal = refusal(&journal, action, json!({})).await;
        assert!(refusal.starts_with("AccessDeniedException"), "{refusal}");
    }
}

#[tokio::test]
async fn an_immutable_record_is_never_overwritten() {
    let journal = Journal::of(&[]).await;
    let absent = "attribute_not_exists(PK)";
    for (pk, sk, condition, expected) in [
        ("SESSION#a", "STEP#00000001", absent, "written"),
        ("SESSION#a", "STEP#00000001", "attribute_exists(PK)", "AccessDeniedException"),
        ("SESSION#a", "STEP#00000001", "Epoch = :two", "AccessDeniedException"),
        (
            "SESSION#a",
            "STEP#00000001",
            "attribute_not_exists(PK) OR Epoch = :two",
            "AccessDeniedException",
        ),
        (
            "SESSION#a",
            "STEP#00000002",
            "attribute_not_exists(PK) AND Epoch = :two",
            "ConditionalCheckFailedException",
        ),
        ("SESSION#a", "EVENT#1", "Epoch = :two", "AccessDeniedException"),
        ("BLOB#a#0", "PART#0000", "Epoch = :two", "AccessDeniedException"),
        ("BLOB#a#0", "PART#0000", absent, "written"),
    ] {
        let answer = journal.call("PutItem", put(pk, sk, condition)).await;
        assert_eq!(kind(&answer), expected, "{sk} {condition}");
    }
}

#[tokio::test]
async fn an_execution_may_write_its_own_first_event_again() {
    let journal = Journal::of(&[]).await;
    let request = |arn: &str, me: &str| {
        json!({
            "Item": {
                "PK": { "S": "SESSION#a" },
                "SK": { "S": "EVENT#1" },
                "Status": { "S": "SESSION_INITIATED" },
                "ExecutionArn": { "S": arn },
            },
            "ConditionExpression": "attribute_not_exists(PK) OR ExecutionArn = :me",
            "ExpressionAttributeValues": { ":me": { "S": me } },
        })
    };
    for (arn, me, expected) in [
        ("one", "one", "written"),
        ("one", "one", "written"),
        ("two", "two", "ConditionalCheckFailedException"),
        ("two", "one", "AccessDeniedException"),
    ] {
        assert_eq!(kind(&journal.call("PutItem", request(arn, me)).await), expected);
    }
}

#[tokio::test]
async fn an_update_sets_attributes_of_mutable_items() {
    let journal = Journal::of(&[]).await;
    let request = |pk: &str, sk: &str, update: &str, condition: Option<&str>| {
        let mut request = json!({
            "Key": { "PK": { "S": pk }, "SK": { "S": sk } },
            "UpdateExpression": update,
            "ExpressionAttributeValues": { ":one": { "N": "1" } },
        });
        if let Some(condition) = condition {
            request["ConditionExpression"] = condition.into();
        }
        request
    };
    let absent = Some("attribute_not_exists(PK)");
    for (pk, sk, update, condition, expected) in [
        ("SESSION#a", "LEASE", "SET Beat = :one, Epoch = :one", absent, "written"),
        ("SESSION#a", "LEASE", "SET Beat = :one", absent, "ConditionalCheckFailedException"),
        ("SESSION#a", "LEASE", "SET Beat = :one", Some("Epoch <= :one"), "written"),
        ("SESSION#a", "LEASE", "SET Beat = :one", None, "AccessDeniedException"),
        ("SESSION#a", "STEP#00000001", "SET Beat = :one", absent, "AccessDeniedException"),
        ("SESSION#a", "EVENT#1", "SET Beat = :one", absent, "AccessDeniedException"),
        ("DEDUPE#agent#key", "DEDUPE", "SET Beat = :one", absent, "written"),
        ("ADMIT#agent", "SLOT#1", "SET Beat = :one", absent, "written"),
        ("SESSION#a", "LEASE", "SET PK = :one", absent, "ValidationException"),
        ("SESSION#a", "LEASE", "SET Beat.x = :one", absent, "ValidationException"),
        ("SESSION#a", "LEASE", "SET Beat = Beat + :one", absent, "ValidationException"),
        ("SESSION#a", "LEASE", "SET Beat = :one, Beat = :one", absent, "ValidationException"),
        ("SESSION#a", "LEASE", "SET Beat :one", absent, "ValidationException"),
        ("SESSION#a", "LEASE", "ADD Beat :one", absent, "ValidationException"),
        ("SESSION#a", "LEASE", "SET Day = :one", absent, "ValidationException"),
    ] {
        let answer = journal.call("UpdateItem", request(pk, sk, update, condition)).await;
        assert_eq!(kind(&answer), expected, "{sk} {update} {condition:?}");
    }
    let key = json!({ "Key": { "PK": { "S": "SESSION#a" }, "SK": { "S": "LEASE" } } });
    let lease = journal.call("GetItem", key).await.unwrap();
    assert_eq!(lease["Item"]["Epoch"], json!({ "N": "1" }));
}

#[tokio::test]
async fn what_the_journal_cannot_hold_is_refused() {
    let journal = Journal::of(&[]).await;
    for (name, value, part) in [
        ("A", json!({ "BOOL": true }), "the journal holds text (S), whole numbers"),
        ("A", json!({ "N": "0.5" }), "the journal holds text (S), whole numbers"),
        ("A", json!({ "N": "x" }), "The parameter cannot be converted to a numeric value: x"),
        ("A", json!({}), "Supplied AttributeValue is empty"),
        ("A", json!({ "S": "x".repeat(400 * 1024) }), "Item size has exceeded"),
        ("SK", json!({ "N": "1" }), "Type mismatch for key SK"),
        ("SK", json!({ "S": "" }), "cannot contain an empty string value. Key: SK"),
        ("SK", json!({ "S": "x".repeat(1025) }), "has exceeded the size limit of 1024 bytes"),
        ("PK", json!({ "S": "x".repeat(2049) }), "maximum size limit of2048 bytes"),
        ("Day", json!({ "N": "1" }), "Type mismatch for Index Key Day"),
        ("Day", json!({ "S": "" }), "IndexKey: Day"),
    ] {
        let mut request = put("SESSION#a", "LEASE", "attribute_not_exists(PK)");
        request["Item"][name] = value;
        let refusal = refusal(&journal, "PutItem", request).await;
        assert!(refusal.starts_with("ValidationException") && refusal.contains(part), "{refusal}");
    }
    for condition in ["Epoch <> :two", "NOT Epoch = :two", "size(A) = :two", "Epoch = :half"] {
        let request = put("SESSION#a", "LEASE", condition);
        let refusal = refusal(&journal, "PutItem", request).await;
        assert!(refusal.contains("this endpoint supports write conditions"), "{refusal}");
    }
}
