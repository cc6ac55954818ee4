//! The page over HTTP: its files, its API, and the login with a token.

use std::net::{Ipv4Addr, SocketAddr};

use reqwest::Method;
use serde_json::{Value, json};
use stack::stack::{Config, Stack};
use tempfile::TempDir;
use views::page::{FILES, POLICY};

use crate::endpoint::parking;
use crate::stack::{Client, config, read};

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_a_strict_policy_and_checks_host_and_origin() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    for file in &FILES {
        let answer = client.request(Method::GET, file.path).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{}", file.path);
        let headers = answer.headers();
        assert_eq!(headers["content-type"], file.content_type);
        assert_eq!(headers["content-security-policy"], POLICY);
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.text().await.unwrap(), file.text);
        for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example")] {
            let strange = client.request(Method::GET, file.path).header(name, value);
            assert_eq!(read(strange).await.0, 403, "{name}: {value}");
        }
    }
    stack.shutdown().await;
}

/// The policy would refuse any other script.
#[test]
fn the_page_uses_only_its_own_files_and_no_inline_script() {
    let [page, rest @ ..] = &FILES;
    for quoted in page.text.split('"').skip(1).step_by(2).filter(|text| text.contains('/')) {
        let is_ours = rest.iter().any(|file| file.path == quoted) || quoted.starts_with("#/");
        assert!(is_ours, "{quoted}");
    }
    let (_, without_script) = page.text.split_once("<noscript>").unwrap();
    let (without_script, _) = without_script.split_once("</noscript>").unwrap();
    for command in ["sessions", "show SESSION", "tail SESSION", "answer"] {
        assert!(without_script.contains(&format!("daybook {command}")), "{command}");
    }
    for forbidden in ["<style", "style=", "onclick=", "<script>"] {
        assert!(!page.text.contains(forbidden), "{forbidden}");
    }
    for file in rest {
        for forbidden in ["innerHTML", "insertAdjacentHTML", "eval(", "document.write", "http://"] {
            let allowed = file.text.matches("http://www.w3.org/2000/svg").count();
            let found = file.text.matches(forbidden).count();
            assert!(found == 0 || forbidden == "http://" && found == allowed, "{forbidden}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_serves_a_timeline_and_each_of_its_records() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let session = client.trigger(&serde_json::json!({"agent": "checkup"})).await;
    crate::endpoint::token(&stack, &session).await;
    let (status, drawn) = client.get(&format!("/api/sessions/{session}/timeline")).await;
    assert_eq!((status, &drawn["session"]["session_id"]), (200, &session.as_str().into()));
    let rows = drawn["waterfall"]["rows"].as_array().unwrap();
    assert_eq!(rows[0]["name"], "SESSION_INITIATED");
    for row in rows {
        let sk = row["sk"].as_str().unwrap().replace('#', "%23").replace(':', "%3A");
        let (status, record) = client.get(&format!("/api/sessions/{session}/record?sk={sk}")).await;
        assert_eq!((status, &record["sk"]), (200, &row["sk"]));
    }
    let steps: Vec<_> = rows.iter().filter(|row| row["seq"].is_u64()).collect();
    let path = |sk: &str| format!("/api/sessions/{session}/record?sk={}", sk.replace('#', "%23"));
    let mut parent = None;
    for step in steps {
        let (_, record) = client.get(&path(step["sk"].as_str().unwrap())).await;
        assert!(parent.is_none_or(|parent| record["prev_hash"] == parent), "{record}");
        parent = Some(record["hash"].clone());
    }
    let (status, verified) = client.get(&format!("/api/sessions/{session}/verify")).await;
    assert_eq!(
        (status, &verified["sound"], &verified["state"]),
        (200, &true.into(), &"open, tail unprotected".into())
    );
    for (path, expected) in [
        (format!("/api/sessions/{session}/record?sk=EVENT%23never"), 404),
        (format!("/api/sessions/{}/verify", uuid()), 404),
        (format!("/api/compare?a={session}"), 400),
        (format!("/api/compare?a={session}&b={}", uuid()), 404),
        (format!("/api/compare?a={session}&b=%3Cb%3E"), 400),
        (format!("/api/compare?a={session}&b=before"), 404),
        ("/api/health?hours=0".to_owned(), 400),
        ("/api/health?hours=169".to_owned(), 400),
        ("/api/health?hours=many".to_owned(), 400),
        (format!("/api/sessions/{session}/record"), 404),
        (format!("/api/sessions/{}/timeline", uuid()), 404),
        ("/api/sessions?limit=many".to_owned(), 400),
    ] {
        assert_eq!(client.get(&path).await.0, expected, "{path}");
    }
    client.trigger(&serde_json::json!({"agent": "checkup"})).await;
    let (_, one) = client.get("/api/sessions?limit=1").await;
    assert_eq!(one["sessions"].as_array().unwrap().len(), 1);
    stack.shutdown().await;
}

/// The path in a state machine's drawing: the visited states and the newest one.
fn path_of(drawn: &Value) -> (Vec<&str>, &str) {
    let nodes = drawn["machine"]["drawing"]["nodes"].as_array().unwrap();
    let visited = nodes.iter().filter(|node| node["visits"] != 0);
    let newest = nodes.iter().find(|node| node["is_newest"] == true).unwrap();
    (visited.map(|node| node["name"].as_str().unwrap()).collect(), newest["name"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_serves_machine_comparison_and_health_of_sessions() {
    let folder = TempDir::new().unwrap();
    let stack = Stack::start(config(folder.path(), 1)).await.unwrap();
    let client = Client::new(&stack);
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let session = client.trigger(&serde_json::json!({"agent": "checkup"})).await;
        client.ended(&session).await;
        sessions.push(session);
    }
    let [first, second] = &sessions[..] else { panic!("{sessions:?}") };
    let (_, drawn) = client.get(&format!("/api/sessions/{second}/timeline")).await;
    let (visited, newest) = path_of(&drawn);
    assert_eq!(newest, "Success");
    for state in ["InitializeSession", "InvokeAgent", "CheckStatus"] {
        assert!(visited.contains(&state), "{visited:?}");
    }
    assert_eq!(drawn["machine"]["status"], "SUCCEEDED");
    assert_eq!(drawn["runs"][0]["end"], "completed");
    assert_eq!(drawn["conclusion"]["verdict"], json!({"word": "all passed", "tone": "good"}));
    assert_eq!(drawn["session"]["verdict"], "all passed");
    assert_eq!(drawn["session"]["title"], "deployment check");
    assert_eq!(drawn["failure"], Value::Null);
    let (status, compared) = client.get(&format!("/api/compare?a={second}&b=before")).await;
    assert_eq!((status, &compared["b"]["session_id"]), (200, &first.as_str().into()));
    assert_eq!(compared["comparison"]["is_same_path"], true);
    let (status, health) = client.get("/api/health?hours=1").await;
    assert_eq!((status, &health["sessions"], &health["is_cut"]), (200, &2.into(), &false.into()));
    assert_eq!(health["health"]["total"]["succeeded"], 2);
    assert_eq!(health["breakers"][0]["agent"], "incident");
    assert_eq!(health["breakers"][0]["is_open"], false);
    stack.shutdown().await;
}

fn uuid() -> &'static str {
    "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f"
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_loopback_the_page_logs_in_with_the_token() {
    let folder = TempDir::new().unwrap();
    let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let token = Some("secret".to_owned());
    let stack = Stack::start(Config { listen, token, ..config(folder.path(), 1) }).await.unwrap();
    let client = Client::new(&stack);
    let status = async |method: Method, path: &str, header: (&'static str, &str)| {
        read(client.request(method, path).header(header.0, header.1)).await.0
    };
    let nothing = ("accept", "*/*");
    assert_eq!(status(Method::GET, "/", nothing).await, 200);
    for path in ["/api/sessions", "/api/health", "/api/compare?a=x&b=y", "/api/sessions/x/verify"] {
        assert_eq!(status(Method::GET, path, nothing).await, 401, "{path}");
    }
    assert_eq!(status(Method::POST, "/login", nothing).await, 401);
    let request = client.request(Method::POST, "/login").bearer_auth("secret");
    let answer = request.send().await.unwrap();
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(status(Method::GET, "/api/sessions", ("cookie", pair)).await, 200);
    let strange = client.request(Method::GET, "/api/sessions").header("cookie", pair);
    assert_eq!(read(strange.header("origin", "https://evil.example")).await.0, 403);
    stack.shutdown().await;
}
