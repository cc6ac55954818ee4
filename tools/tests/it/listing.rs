//! What the server says of itself.

use crate::harness::{Session, TOOLS, incident};

#[tokio::test]
async fn the_tools_are_published_with_their_schemas() {
    let session = Session::open(&incident("s3-permission-revoked")).await;
    let tools = session.client().list_all_tools().await.unwrap();
    insta::assert_json_snapshot!(tools);
    session.close().await;
}

#[tokio::test]
async fn the_listing_names_the_tools_that_are_published() {
    let session = Session::open(&incident("s3-permission-revoked")).await;
    let published: Vec<String> = session
        .client()
        .list_all_tools()
        .await
        .unwrap()
        .into_iter()
        .map(|tool| tool.name.into_owned())
        .collect();
    assert_eq!(published, TOOLS);
    let listed = tools::aws_diagnostics::INFO;
    assert!(tools::servers().contains(&listed));
    assert_eq!(listed.tools, TOOLS);
    let info = session.client().peer_info().unwrap();
    assert_eq!(info.server_info.as_ref().unwrap().name, listed.name);
    session.close().await;
}

#[tokio::test]
async fn the_server_stops_when_its_client_leaves() {
    // `close` waits for the server's end under a deadline.
    Session::open(&incident("s3-permission-revoked")).await.close().await;
}

#[test]
fn what_is_no_folder_is_not_served() {
    for path in ["s3-permission-revoked/incident.json", "no-such-incident"] {
        let error = tools::aws_diagnostics::server(incident(path)).unwrap_err();
        assert!(error.to_string().starts_with("cannot open the incident folder"), "{error}");
    }
}
