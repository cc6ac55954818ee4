//! Servers over both HTTP transports: results, classification of failures, and protection from
//! malicious servers.

use std::time::Duration;

use agent::tool::Timeouts;
use agent::tool::answer::RESULT_BYTES_MAX;
use futures_util::future::join_all;
use graph::effect::ToolCall;
use graph::outcome::{FailureKind, ToolOutcome};
use serde_json::json;
use telemetry::context::TraceParent;
use tokio::net::TcpListener;

use super::fixture::{DEADLINE, NAME, PATIENT, SECRET, error, failed, until};
use super::web::{BOTH, TOGETHER, Web, bench};

const CONNECTION: &str = "mcp_connection";
const INIT: &str = "mcp_init";

/// Short, but long enough for an answer on a loaded machine.
const BRIEF: Timeouts = Timeouts { connect: Duration::from_secs(3), init: Duration::from_secs(3) };

#[tokio::test]
async fn both_transports_send_our_headers_and_keep_one_session() {
    for transport in BOTH {
        let web = Web::start().await;
        let bench = web.bench(transport);
        for n in 0..3 {
            let arguments = json!({"n": n, "text": "ä\n\u{2028}"});
            assert_eq!(bench.call("echo", arguments.clone()).await, ToolOutcome::Ok(arguments));
        }
        assert_eq!((web.count("initialize"), web.count("call echo")), (1, 3), "{transport}");
        bench.toolbox.close().await;
        failed(bench.call("echo", json!({})).await, FailureKind::NotSent, CONNECTION);
    }
}

#[tokio::test]
async fn a_call_sends_its_traceparent_in_message_and_header() {
    let span: TraceParent =
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap();
    for transport in BOTH {
        let web = Web::start().await;
        let bench = web.bench(transport);
        let call = ToolCall::new(NAME, "span", json!({}));
        for (span, said) in [(Some(span), json!(span.to_string())), (None, json!(null))] {
            let outcome = bench.toolbox.call_from(span, &call, DEADLINE).await;
            assert_eq!(outcome, ToolOutcome::Ok(json!({"header": said, "message": said})));
        }
    }
}

#[tokio::test]
async fn refused_credentials_fail_the_connection_without_a_retry() {
    let web = Web::start().await;
    for transport in BOTH {
        let mut wrong = web.entry(transport);
        wrong["headers"]["Authorization"] = json!("Bearer of bad news");
        let mut none = web.entry(transport);
        none["headers"] = json!({});
        for entry in [wrong, none, web.entry_at(transport, "challenge")] {
            let outcome = bench(entry, PATIENT).call("echo", json!({})).await;
            let message = failed(outcome, FailureKind::Refused, CONNECTION);
            for part in ["refuses our credentials (HTTP 401 Unauthorized)", "check its headers"] {
                assert!(message.contains(part), "{part}: {message}");
            }
            assert!(!message.contains("bad news"), "{message}");
        }
    }
    assert_eq!(web.log(), [""; 0]);
}

#[tokio::test]
async fn a_status_classifies_a_failed_call_and_nothing_is_sent_twice() {
    for transport in BOTH {
        let web = Web::start().await;
        let bench = web.bench(transport);
        for (tool, kind, said) in [
            ("forbidden", FailureKind::Refused, "refuses our credentials (HTTP 403 Forbidden)"),
            ("throttled", FailureKind::NotSent, "throttles requests"),
            ("broken", FailureKind::Unknown, "failed: HTTP 500 Internal Server Error"),
        ] {
            let message = failed(bench.call(tool, json!({})).await, kind, CONNECTION);
            assert!(message.contains(said), "{message}");
            assert_eq!(web.count(&format!("call {tool}")), 1, "{transport} {tool}");
        }
        assert_eq!(bench.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
        assert_eq!(web.count("initialize"), 1, "the connection is kept");
    }
}

#[tokio::test]
async fn a_call_after_an_expired_mcp_session_opens_a_new_one() {
    let web = Web::start().await;
    let bench = web.bench("http");
    bench.call("echo", json!({})).await;
    web.forget();
    let message = failed(bench.call("echo", json!({})).await, FailureKind::NotSent, CONNECTION);
    assert!(message.contains("has no record of our MCP session"), "{message}");
    assert_eq!((web.count("call echo"), web.count("unknown session")), (1, 1));
    assert_eq!(bench.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
    assert_eq!(web.count("initialize"), 2);
}

#[tokio::test]
async fn a_call_that_times_out_is_cancelled_with_unknown_effect() {
    for transport in BOTH {
        let web = Web::start().await;
        let bench = web.bench(transport);
        bench.call("echo", json!({})).await;
        for tool in ["hangs", "endless"] {
            let outcome = bench.call_within(tool, json!({}), Duration::from_millis(400)).await;
            let message = failed(outcome, FailureKind::Unknown, CONNECTION);
            assert!(message.contains("did not answer"), "{message}");
            let cancelled =
                || web.count("notifications/cancelled") > usize::from(tool == "endless");
            until("the server gets the cancellation", cancelled).await;
        }
        assert_eq!(bench.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
        assert_eq!(web.count("initialize"), 1, "{transport}");
    }
}

#[tokio::test]
async fn a_truncated_answer_leaves_the_outcome_unknown() {
    for transport in BOTH {
        let web = Web::start().await;
        let bench = web.bench(transport);
        let outcome = bench.call("cut", json!({})).await;
        let message = failed(outcome, FailureKind::Unknown, CONNECTION);
        assert!(message.contains("is not known"), "{message}");
        assert_eq!(web.count("call cut"), 1);
        assert_eq!(bench.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
    }
}

#[tokio::test]
async fn a_server_that_restarted_is_reconnected() {
    for transport in BOTH {
        let web = Web::start().await;
        let bench = web.bench(transport);
        bench.call("echo", json!({})).await;
        let address = web.stop().await;
        // The first call may use a connection that is already dead.
        bench.call("echo", json!({})).await;
        let message = failed(bench.call("echo", json!({})).await, FailureKind::NotSent, CONNECTION);
        assert!(message.contains("cannot be reached: Connection refused"), "{message}");
        let web = Web::at(address, "http://127.0.0.1:9").await;
        assert_eq!(bench.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
        assert_eq!(web.count("initialize"), 1);
    }
}

#[tokio::test]
async fn a_server_that_never_answers_fails_at_the_deadline() {
    let web = Web::start().await;
    let given_up = BOTH.map(async |transport| {
        let entry = web.entry_at(transport, "black-hole");
        let outcome = bench(entry, BRIEF).call("echo", json!({})).await;
        let message = failed(outcome, FailureKind::NotSent, CONNECTION);
        assert!(message.contains("within 3 s"), "{message}");
    });
    join_all(given_up).await;
}

#[tokio::test]
async fn a_server_other_than_mcp_fails_the_handshake() {
    let web = Web::start().await;
    for (transport, mode, said) in [
        ("http", "page", "text/html"),
        ("http", "empty", "does not answer with MCP"),
        ("http", "../nowhere", "HTTP 404 Not Found"),
        ("sse", "page", "text/html"),
        ("sse", "../nowhere", "HTTP 404 Not Found"),
        ("http", "round", "redirects more than 3 times"),
    ] {
        let entry = web.entry_at(transport, mode);
        let outcome = bench(entry, PATIENT).call("echo", json!({})).await;
        let ToolOutcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.category, INIT, "{failure}");
        assert!(failure.message.contains(said), "{mode}: {failure}");
    }
    let entry = web.entry_at("sse", "ends");
    failed(bench(entry, PATIENT).call("echo", json!({})).await, FailureKind::NotSent, CONNECTION);
}

#[tokio::test]
async fn nothing_is_sent_to_another_origin() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", elsewhere.local_addr().unwrap());
    let web = Web::at("127.0.0.1:0".parse().unwrap(), &origin).await;
    for transport in BOTH {
        let outcome =
            bench(web.entry_at(transport, "astray"), PATIENT).call("echo", json!({})).await;
        let ToolOutcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert!(failure.message.contains(&format!("to another origin, {origin}")), "{failure}");
    }
    let came = tokio::time::timeout(Duration::from_millis(50), elsewhere.accept()).await;
    assert!(came.is_err(), "{came:?}");
    let within = bench(web.entry_at("http", "moved"), PATIENT);
    assert_eq!(within.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
}

#[tokio::test]
async fn a_result_beyond_its_bound_is_an_error() {
    for transport in BOTH {
        let web = Web::start().await;
        let bench = web.bench(transport);
        let bytes = async |n: usize| bench.call("bytes", json!({ "n": n })).await;
        let three = 3 * 1024 * 1024;
        let ToolOutcome::Ok(whole) = bytes(three).await else { panic!("a value") };
        assert_eq!(whole.as_str().unwrap().len(), three);
        let large = error(bytes(10_000_000).await);
        assert!(large.contains(&format!("the limit is {RESULT_BYTES_MAX} bytes")), "{large}");
        let message = failed(bytes(20_000_000).await, FailureKind::Unknown, CONNECTION);
        assert!(message.contains("more than"), "{message}");
        assert_eq!(bytes(1).await, ToolOutcome::Ok(json!("x")));
    }
}

#[tokio::test]
async fn an_endless_answer_is_cut_off_while_it_is_read() {
    let web = Web::start().await;
    for transport in BOTH {
        let entry = web.entry_at(transport, "flood");
        let outcome = bench(entry, PATIENT).call("echo", json!({})).await;
        let message = failed(outcome, FailureKind::NotSent, CONNECTION);
        assert!(message.contains("of more than"), "{message}");
    }
}

#[tokio::test]
async fn an_invalid_message_does_not_block_the_next_one() {
    let web = Web::start().await;
    let bench = web.bench("sse");
    let outcome = bench.call_within("babbles", json!({}), Duration::from_millis(400)).await;
    failed(outcome, FailureKind::Unknown, CONNECTION);
    assert_eq!(bench.call("echo", json!({})).await, ToolOutcome::Ok(json!({})));
    assert_eq!(web.count("initialize"), 1);
}

#[tokio::test]
async fn calls_of_one_server_run_concurrently() {
    for transport in BOTH {
        let web = Web::start().await;
        let bench = web.bench(transport);
        // The server answers once it has all calls.
        let calls = (0..TOGETHER).map(|n| bench.call("together", json!({ "n": n })));
        let brought = tokio::time::timeout(DEADLINE, join_all(calls)).await.unwrap();
        for (n, outcome) in brought.into_iter().enumerate() {
            assert_eq!(outcome, ToolOutcome::Ok(json!({ "n": n })), "{transport}");
        }
        assert_eq!(web.count("initialize"), 1);
    }
}

#[tokio::test]
async fn a_server_s_request_for_a_model_is_refused() {
    for transport in BOTH {
        let web = Web::start().await;
        let bench = web.bench(transport);
        assert_eq!(bench.call("asks", json!({})).await, ToolOutcome::Ok(json!("asked")));
        assert_eq!(web.count("answered -32601"), 1, "{transport}: {:?}", web.log());
    }
}

#[tokio::test]
async fn a_secret_that_a_server_echoes_is_redacted() {
    let web = Web::start().await;
    for transport in BOTH {
        let bench = web.bench(transport);
        let outcome = bench.call("headers", json!({})).await;
        assert_eq!(outcome, ToolOutcome::Ok(json!("you sent \"***\"")));
        let shown = format!("{:#?}", bench.toolbox);
        assert!(shown.contains("/mcp") || shown.contains("/sse"), "{shown}");
        assert!(!shown.contains(SECRET), "{shown}");
    }
}
