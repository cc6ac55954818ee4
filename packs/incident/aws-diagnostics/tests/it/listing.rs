//! The server's listing.

use crate::harness::{ALL_TOOLS, incident, open};

#[tokio::test]
async fn the_tools_are_published_with_their_schemas() {
    let connection = open(&incident("s3-permission-revoked")).await;
    let tools = connection.client().list_all_tools().await.unwrap();
    insta::assert_json_snapshot!(tools);
    connection.close().await;
}

#[tokio::test]
async fn the_listing_names_the_tools_that_are_published() {
    let connection = open(&incident("s3-permission-revoked")).await;
    let published: Vec<String> = connection
        .client()
        .list_all_tools()
        .await
        .unwrap()
        .into_iter()
        .map(|tool| tool.name.into_owned())
        .collect();
    assert_eq!(published, ALL_TOOLS);
    let listed = aws_diagnostics::INFO;
    assert_eq!(listed.tools, ALL_TOOLS);
    let info = connection.client().peer_info().unwrap();
    assert_eq!(info.server_info.as_ref().unwrap().name, listed.name);
    connection.close().await;
}

#[tokio::test]
async fn the_server_stops_when_its_client_leaves() {
    // `close` waits for the server's end under a deadline.
    open(&incident("s3-permission-revoked")).await.close().await;
}

#[test]
fn only_folders_are_served() {
    for path in ["s3-permission-revoked/incident.json", "no-such-incident"] {
        let error = aws_diagnostics::server(incident(path)).unwrap_err();
        assert!(error.to_string().starts_with("cannot open the incident folder"), "{error}");
    }
}
