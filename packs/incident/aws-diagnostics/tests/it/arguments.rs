//! Valid and invalid arguments.
//!
//! rmcp reports invalid arguments as a result with `isError`, for the model, and an unknown tool as a
//! protocol error, for the client.

use serde_json::{Value, json};

use mcp::testing::text;

use crate::harness::{Copy, FUNCTION, TOOLS, answer, incident, open, refusal};

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused() {
    let connection = open(&incident("network-blocked")).await;
    let mut messages = Vec::new();
    for arguments in [
        json!({}),
        json!({ "lambda_name": "" }),
        json!({ "lambda_name": null }),
        json!({ "lambda_name": 7 }),
        json!({ "lambda_name": ["inventory-sync"] }),
        json!({ "lambda_name": "inventory-sync", "hours": 2 }),
        json!({ "function": "inventory-sync" }),
        json!({ "lambda_name": "../inventory-sync" }),
        json!({ "lambda_name": "inventory sync" }),
    ] {
        let mut texts = Vec::new();
        for tool in TOOLS {
            let result = connection.call(tool, arguments.clone()).await.unwrap();
            assert_eq!(result.is_error, Some(true), "{tool} {arguments}");
            assert_eq!(result.structured_content, None);
            texts.push(text(&result));
        }
        texts.dedup();
        assert_eq!(texts.len(), 1, "all tools say the same: {texts:?}");
        messages.push(format!("{arguments}: {}", texts[0]));
    }
    insta::assert_snapshot!(messages.join("\n"), @r#"
    {}: failed to deserialize parameters: missing field `lambda_name`
    {"lambda_name":""}: failed to deserialize parameters: lambda_name must be a function name (1 to 64 letters, digits, - or _) or a function ARN, not ""
    {"lambda_name":null}: failed to deserialize parameters: invalid type: null, expected a string
    {"lambda_name":7}: failed to deserialize parameters: invalid type: integer `7`, expected a string
    {"lambda_name":["inventory-sync"]}: failed to deserialize parameters: invalid type: sequence, expected a string
    {"lambda_name":"inventory-sync","hours":2}: failed to deserialize parameters: unknown field `hours`, expected `lambda_name`
    {"function":"inventory-sync"}: failed to deserialize parameters: unknown field `function`, expected `lambda_name`
    {"lambda_name":"../inventory-sync"}: failed to deserialize parameters: lambda_name must be a function name (1 to 64 letters, digits, - or _) or a function ARN, not "../inventory-sync"
    {"lambda_name":"inventory sync"}: failed to deserialize parameters: lambda_name must be a function name (1 to 64 letters, digits, - or _) or a function ARN, not "inventory sync"
    "#);
    connection.close().await;
}

#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error() {
    let connection = open(&incident("network-blocked")).await;
    let error =
        connection.call("delete_function", json!({ "lambda_name": FUNCTION })).await.unwrap_err();
    assert_eq!((error.code.0, error.message.as_ref()), (-32602, "tool not found"));
    connection.close().await;
}

#[tokio::test]
async fn the_published_schema_accepts_what_the_server_accepts() {
    let connection = open(&incident("network-blocked")).await;
    let arn = "arn:aws:lambda:us-west-2:210987654321:function:inventory-sync";
    for tool in connection.client().list_all_tools().await.unwrap() {
        let schema = Value::Object((*tool.input_schema).clone());
        let schema = jsonschema::validator_for(&schema).unwrap();
        for (name, accepted) in [
            (FUNCTION, true),
            (arn, true),
            (&format!("{arn}:$LATEST"), true),
            (&format!("{arn}:"), false),
            (&format!("{arn}:live:2"), false),
            (&arn.replace("us-west-2", ""), false),
            (&arn.replace("us-west-2", "US"), false),
            (&arn.replace("210987654321", "2109"), false),
            (&arn.replace("aws:l", "azure:l"), false),
            ("", false),
            ("..", false),
            ("a/b", false),
            (&"x".repeat(65), false),
            ("inventory-sync\n", false),
        ] {
            let arguments = json!({ "lambda_name": name });
            assert_eq!(schema.is_valid(&arguments), accepted, "schema of {}: {name:?}", tool.name);
            let result = connection.call(&tool.name, arguments).await.unwrap();
            // The bundled folder has no answers for the others.
            if TOOLS.contains(&&*tool.name) || !accepted {
                assert_eq!(result.is_error, Some(!accepted), "{}: {name:?}", tool.name);
            }
        }
        assert!(!schema.is_valid(&json!({ "lambda_name": FUNCTION, "hours": 2 })));
    }
    connection.close().await;
}

#[tokio::test]
async fn an_arn_names_the_same_function() {
    let connection = open(&incident("network-blocked")).await;
    let arn = "arn:aws:lambda:us-west-2:210987654321:function:inventory-sync:live";
    for tool in TOOLS {
        assert_eq!(answer(&connection, tool, arn).await, answer(&connection, tool, FUNCTION).await);
    }
    connection.close().await;
}

#[tokio::test]
async fn an_unknown_function_lists_the_known_ones() {
    let connection = open(&incident("throttled-and-s3-revoked")).await;
    for tool in TOOLS {
        assert_eq!(
            refusal(&connection, tool, "thumbnail-maker").await,
            "no function named thumbnail-maker in this incident folder, \
             which holds image-metadata-indexer, thumbnail-generator"
        );
    }
    connection.close().await;
}

#[tokio::test]
async fn a_folder_without_functions_says_so() {
    let copy = Copy::new();
    std::fs::remove_dir_all(copy.folder().join("functions")).unwrap();
    let connection = open(copy.folder()).await;
    for tool in TOOLS {
        assert_eq!(
            refusal(&connection, tool, FUNCTION).await,
            "no function named inventory-sync in this incident folder, which holds no functions"
        );
    }
    connection.close().await;
}
