//! What a browser gets: the page's files, the timeline that they draw, and the way in with a token.

use std::net::{Ipv4Addr, SocketAddr};

use local::stack::{Config, Stack};
use reqwest::Method;
use reqwest::redirect::Policy;
use serde_json::Value;
use tempfile::TempDir;
use timeline::page::{FILES, POLICY};
use timeline::plain;

use crate::endpoint::parking;
use crate::stack::{Client, config, read};

#[tokio::test(flavor = "multi_thread")]
async fn the_page_comes_with_a_policy_that_lets_nothing_else_in_and_only_under_our_own_names() {
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

/// A script that the page would not load is one that the policy refuses.
#[test]
fn the_page_refers_to_its_own_files_only_and_has_no_script_or_style_in_its_markup() {
    let [page, rest @ ..] = &FILES;
    for quoted in page.text.split('"').skip(1).step_by(2).filter(|text| text.contains('/')) {
        let is_ours = rest.iter().any(|file| file.path == quoted)
            || quoted.starts_with("#/")
            || quoted == plain::LIST;
        assert!(is_ours, "{quoted}");
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
async fn a_timeline_and_each_of_its_records_are_there_for_the_asking() {
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

/// What a state machine's drawing says of the path: the states that were visited, and where it is.
fn path_of(drawn: &Value) -> (Vec<&str>, &str) {
    let nodes = drawn["machine"]["drawing"]["nodes"].as_array().unwrap();
    let visited = nodes.iter().filter(|node| node["visits"] != 0);
    let newest = nodes.iter().find(|node| node["is_newest"] == true).unwrap();
    (visited.map(|node| node["name"].as_str().unwrap()).collect(), newest["name"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_drawn_with_its_machine_compared_with_the_one_before_and_counted() {
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
    assert!(drawn["conclusion"]["what"].as_str().unwrap().contains("checks"), "{drawn}");
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
async fn beyond_loopback_the_page_asks_for_the_token_and_the_rest_has_it_in_a_cookie() {
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

#[tokio::test(flavor = "multi_thread")]
async fn plain_pages_have_a_policy_that_runs_no_script_and_are_guarded_as_the_api_is() {
    let folder = TempDir::new().unwrap();
    let stack = parking(&folder).await;
    let client = Client::new(&stack);
    let session = client.trigger(&serde_json::json!({"agent": "checkup"})).await;
    crate::endpoint::token(&stack, &session).await;
    let shown = format!("/plain/sessions/{session}");
    for (path, status, says) in [
        ("/plain?limit=5", 200, session.as_str()),
        ("/plain?status=SUCCEEDED,FAILED", 200, "None of these sessions fits."),
        ("/plain?limit=many", 400, "`many` is no number of sessions"),
        ("/plain?status=%3Cscript%3E", 400, "`&lt;script&gt;` is no status"),
        (&shown, 200, "SESSION_INITIATED"),
        (&format!("{shown}?part=99"), 200, "SESSION_INITIATED"),
        (&format!("/plain/sessions/{}", uuid()), 404, "there is no session"),
        ("/plain/sessions/%3Cscript%3E", 400, "is not a session id"),
    ] {
        let answer = client.request(Method::GET, path).send().await.unwrap();
        let headers = answer.headers();
        assert_eq!(headers["content-type"], "text/html; charset=utf-8", "{path}");
        assert_eq!(headers["content-security-policy"], plain::POLICY, "{path}");
        assert_eq!(answer.status(), status, "{path}");
        let page = answer.text().await.unwrap();
        assert!(page.contains(says) && !page.contains("<script"), "{path}: {page}");
    }
    // What the page says in the terminal's words reaches this stack.
    let answer = client.request(Method::GET, &shown).send().await.unwrap().text().await.unwrap();
    let command = format!("daybook --endpoint {} cancel {session}", stack.url());
    assert!(answer.contains(&command), "{answer}");
    for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example")] {
        for path in [plain::LIST, &shown] {
            let strange = client.request(Method::GET, path).header(name, value);
            assert_eq!(strange.send().await.unwrap().status(), 403, "{path} {name}: {value}");
        }
    }
    stack.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_loopback_a_form_trades_the_token_for_the_cookie_without_a_script() {
    let folder = TempDir::new().unwrap();
    let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let token = Some("secret".to_owned());
    let stack = Stack::start(Config { listen, token, ..config(folder.path(), 1) }).await.unwrap();
    let http = reqwest::Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
    let url = stack.url().replace("0.0.0.0", "127.0.0.1");
    let get = |path: &str| http.get(format!("{url}{path}"));
    let send =
        |token: &str| http.post(format!("{url}{}", plain::LOGIN)).body(format!("token={token}"));
    for path in [plain::LIST, &format!("/plain/sessions/{}", uuid())] {
        let answer = get(path).send().await.unwrap();
        assert_eq!(answer.status(), 401, "{path}");
        assert!(answer.text().await.unwrap().contains("action=\"/plain/login\""), "{path}");
    }
    for wrong in ["", "Secret", "secret2", "%00", "x&token=secret"] {
        let answer = send(wrong).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.headers().get("set-cookie")),
            (401, None),
            "{wrong}"
        );
    }
    let strange = send("secret").header("origin", "https://evil.example").send().await.unwrap();
    assert_eq!((strange.status().as_u16(), strange.headers().get("set-cookie")), (403, None));
    let answer = send("secret").header("origin", &url).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["location"]),
        (303, &"/plain".parse().unwrap())
    );
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert_eq!(cookie, "daybook=secret; Path=/; HttpOnly; SameSite=Strict");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(get(plain::LIST).header("cookie", pair).send().await.unwrap().status(), 200);
    stack.shutdown().await;
}
