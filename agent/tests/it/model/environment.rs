//! Bedrock's endpoint and credentials from the environment.

use agent::model::Models;
use agent::model::turns::Turn;
use graph::effect::{Chat, Message};
use journal::clock::Clock;

use super::server::{Say, Server};
use super::world::DEADLINE;

/// Set when this binary runs as the process below.
const ROLE: &str = "MODEL_ASKS_BEDROCK";

/// Not a test: a process that sends a chat to the Bedrock of its environment.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "how this binary knows its role")]
async fn asks_bedrock() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    let chat = Chat {
        messages: vec![Message::user(1, "Are you there?")],
        max_output_tokens: 5,
        timeout_s: Some(60),
        ..Chat::default()
    };
    let turn = Turn::unbounded();
    let attempt = Models::default().ask(&turn, "bedrock:some.model", &chat, &Clock::system()).await;
    println!("{:?}", attempt.brought);
}

/// The output of the process with these additional variables.
async fn said(more: &[(&str, &str)]) -> String {
    let mut process = tokio::process::Command::new(std::env::current_exe().unwrap());
    process
        .args(["model::environment::asks_bedrock", "--exact", "--nocapture"])
        .env(ROLE, "yes")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY")
        .envs(more.iter().copied())
        .kill_on_drop(true);
    let output = tokio::time::timeout(DEADLINE, process.output()).await.unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn bedrock_uses_only_its_own_endpoint_variable() {
    let bedrock = Server::start(|_, _| Say::text("I am here.")).await;
    let stack = Server::start(|_, _| Say::text("I am the local stack.")).await;
    let keys = [("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let addresses = [
        ("AWS_ENDPOINT_URL", stack.url.as_str()),
        ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", bedrock.url.as_str()),
    ];
    let said = said(&[keys, addresses].concat()).await;
    assert!(said.contains("I am here."), "{said}");
    assert_eq!((bedrock.heard().len(), stack.heard().len()), (1, 0));
}

#[tokio::test]
async fn without_credentials_nothing_is_sent_to_bedrock() {
    let bedrock = Server::start(|_, _| Say::text("I am here.")).await;
    let said = said(&[("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", bedrock.url.as_str())]).await;
    assert!(said.contains("bedrock_auth") && said.contains("Refused"), "{said}");
    assert_eq!(bedrock.heard().len(), 0);
}
