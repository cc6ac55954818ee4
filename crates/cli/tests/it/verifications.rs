//! The verifications of section 9 of the incident specification: a fault in an account is diagnosed and
//! reverted, and an MCP server is down, silent, or down for a moment.

use std::fs;
use std::io::Read as _;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::harness::{daybook, free_endpoint, incident, run};
use crate::mcp_clients::Served;

const FUNCTION: &str = "data-processor";

/// Triggers the incident agent with this diagnostics server; the session and its steps.
fn investigate(folder: &Path, server: Value, message: Value) -> (Value, Vec<Value>) {
    let detail = json!({"agent": "incident", "input": message});
    investigate_by(&mut daybook(folder), folder, &server, &detail)
}

/// The same, by this command, whose environment is the stack's, and with all of this detail.
fn investigate_by(
    command: &mut Command,
    folder: &Path,
    server: &Value,
    detail: &Value,
) -> (Value, Vec<Value>) {
    let servers = json!({"mcpServers": {"aws-diagnostics": server}});
    fs::write(folder.join("servers.json"), servers.to_string()).unwrap();
    command
        .env("DAYBOOK_MCP_SERVERS", folder.join("servers.json"))
        .env("PATH", "/usr/bin:/bin")
        .args(["--json", "--endpoint", &free_endpoint(), "trigger"])
        .args(["--detail", &detail.to_string(), "--wait", "--with-stack"]);
    let triggered = run(command);
    let session = triggered.json().pop().unwrap_or_else(|| panic!("{triggered:#?}"));
    assert_eq!(triggered.exit, i32::from(session["status"] != "SUCCEEDED"), "{triggered:#?}");
    let id = session["session_id"].as_str().unwrap_or_else(|| panic!("{triggered:#?}")).to_owned();
    let shown = run(daybook(folder).args(["--json", "show", &id, "--steps"]));
    let steps = shown.json().into_iter().filter(|record| record["type"] == "step");
    (session, steps.collect())
}

fn denied() -> Value {
    json!({"lambda_name": FUNCTION, "error_type": "AccessDenied", "error_message": "AccessDenied"})
}

/// How many times the server's tools were asked for, and how the last of them went.
fn asked(steps: &[Value]) -> (usize, Value) {
    let outcomes = steps.iter().filter(|s| s["node"] == "catalogue" && s["kind"] == "outcome");
    let outcomes: Vec<_> = outcomes.collect();
    (outcomes.len(), outcomes.last().map(|step| step["outcome"].clone()).unwrap_or_default())
}

fn check_error(session: &Value, category: &str, said: &str) {
    assert_eq!(session["status"], "FAILED", "{session:#}");
    assert_eq!(session["incident_state"], "ERROR", "{session:#}");
    assert_eq!(session["error_category"], category, "{session:#}");
    let error = session["error"].as_str().unwrap();
    assert!(error.contains(said), "{error}");
}

/// A listener that takes everything and never says a word; its port, and how often it was reached.
fn black_hole() -> (u16, Arc<AtomicUsize>) {
    let hole = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = hole.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    std::thread::spawn(move || {
        for stream in hole.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || stream.unwrap().read_to_end(&mut Vec::new()));
        }
    });
    (port, connections)
}

#[test]
fn verification_6_a_down_server_is_a_connection_error() {
    let folder = tempfile::tempdir().unwrap();
    for server in [json!({"command": "/nowhere/daybook"}), json!({"command": "false"})] {
        let (session, steps) = investigate(folder.path(), server, denied());
        check_error(&session, "mcp_connection", "the MCP server `aws-diagnostics`");
        assert_eq!(asked(&steps).0, 2, "one retry");
    }
}

/// A Bedrock that accepts no credentials: its address, and how often it was asked.
fn refusing_bedrock() -> (String, Arc<AtomicUsize>) {
    use std::io::{BufRead as _, BufReader, Write as _};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = requests.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim().to_ascii_lowercase();
                if line.is_empty() {
                    break;
                }
                if let Some(bytes) = line.strip_prefix("content-length:") {
                    length = bytes.trim().parse().unwrap();
                }
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let body = json!({"message": "not authorized to perform: bedrock:InvokeModel"});
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 403 Forbidden\r\nx-amzn-errortype: AccessDeniedException\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            reader.get_mut().write_all((head + &body).as_bytes()).unwrap();
        }
    });
    (address, requests)
}

#[test]
fn verification_7_refused_credentials_are_not_retried() {
    let folder = tempfile::tempdir().unwrap();
    let (bedrock, requests) = refusing_bedrock();
    let snapshot = incident("s3-permission-revoked");
    let server = json!({
        "command": env!("CARGO_BIN_EXE_daybook"),
        "args": ["mcp", "aws-diagnostics", "--snapshot", snapshot],
    });
    let detail = json!({
        "agent": "incident", "input": denied(),
        "model": "bedrock:some.model", "on_model_failure": "fail",
    });
    let mut command = daybook(folder.path());
    command
        .env("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", bedrock)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "AKIATEST")
        .env("AWS_SECRET_ACCESS_KEY", "secret");
    let (session, steps) = investigate_by(&mut command, folder.path(), &server, &detail);
    check_error(&session, "bedrock_auth", "bedrock:InvokeModel");
    let attempts =
        steps.iter().filter(|step| step["effect"] == "chat" && step["kind"] == "outcome").count();
    assert_eq!((attempts, requests.load(Ordering::SeqCst)), (1, 1), "no retry");
}

#[test]
fn verification_8_a_black_hole_gets_10_s_and_one_retry() {
    let folder = tempfile::tempdir().unwrap();
    let (port, connections) = black_hole();
    let relay = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3 & cat >&3");
    let server = json!({"command": "bash", "args": ["-c", relay]});
    let (session, steps) = investigate(folder.path(), server, denied());
    check_error(&session, "mcp_connection", "within 10 s");
    assert_eq!((asked(&steps).0, connections.load(Ordering::SeqCst)), (2, 2), "one retry");
}

#[test]
fn verification_9_the_retry_reaches_a_restarted_server() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "mkdir '{}/blocked' && exit 1; exec '{}' mcp aws-diagnostics --snapshot '{}'",
        folder.path().display(),
        env!("CARGO_BIN_EXE_daybook"),
        incident("s3-permission-revoked").display(),
    );
    let server = json!({"command": "bash", "args": ["-c", script]});
    let (session, steps) = investigate(folder.path(), server, denied());
    assert_eq!(session["incident_state"], "DIAGNOSED", "{session:#}");
    assert_eq!(session["result"]["fault_types"], json!(["permission_loss"]));
    let (times, last) = asked(&steps);
    assert_eq!(times, 2, "one retry");
    assert!(last["ok"]["tools"].is_array(), "{last:#}");
}

/// Each transport over HTTP, with what its entry in the servers file says.
const OVER_HTTP: [&str; 2] = ["http", "sse"];

#[test]
fn verification_6_a_down_http_server_is_a_connection_error() {
    for transport in OVER_HTTP {
        let folder = tempfile::tempdir().unwrap();
        let server = json!({"url": format!("{}/mcp", free_endpoint()), "transport": transport});
        let (session, steps) = investigate(folder.path(), server, denied());
        check_error(&session, "mcp_connection", "cannot be reached: Connection refused");
        assert_eq!(asked(&steps).0, 2, "one retry");
    }
}

#[test]
fn verification_8_an_http_black_hole_gets_10_s_and_one_retry() {
    let checks = OVER_HTTP.map(|transport| {
        std::thread::spawn(move || {
            let folder = tempfile::tempdir().unwrap();
            let (port, connections) = black_hole();
            let url = format!("http://127.0.0.1:{port}/mcp");
            let server = json!({"url": url, "transport": transport});
            let (session, steps) = investigate(folder.path(), server, denied());
            check_error(&session, "mcp_connection", "within 10 s");
            assert_eq!((asked(&steps).0, connections.load(Ordering::SeqCst)), (2, 2), "one retry");
        })
    });
    checks.into_iter().for_each(|check| check.join().unwrap());
}

#[test]
fn verification_9_the_retry_reaches_a_restarted_http_server() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "s3-permission-revoked", "open-sesame-7");
    // The way to it is blocked for the first connection, and then it is not.
    let gate = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", gate.local_addr().unwrap());
    let address = served.address();
    std::thread::spawn(move || {
        for (number, client) in gate.incoming().enumerate() {
            let client = client.unwrap();
            if number > 0 {
                relay(client, TcpStream::connect(&address).unwrap());
            }
        }
    });
    let server = json!({"url": url, "headers": {"Authorization": "Bearer open-sesame-7"}});
    let (session, steps) = investigate(folder.path(), server, denied());
    assert_eq!(session["incident_state"], "DIAGNOSED", "{session:#}");
    assert_eq!(session["result"]["fault_types"], json!(["permission_loss"]));
    assert_eq!(asked(&steps).0, 2, "one retry");
}

#[test]
fn a_refused_key_is_a_connection_error_without_retry() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "s3-permission-revoked", "open-sesame-7");
    let server = json!({"url": served.url, "headers": {"Authorization": "Bearer wrong-key-123"}});
    let (session, steps) = investigate(folder.path(), server, denied());
    check_error(&session, "mcp_connection", "refuses our credentials (HTTP 401 Unauthorized)");
    assert_eq!(asked(&steps).0, 1, "no retry");
    assert!(!format!("{session} {steps:?}").contains("wrong-key"), "{session:#}");
}

/// Passes on what either side says until one of them is done.
fn relay(client: TcpStream, server: TcpStream) {
    let pass = |mut from: TcpStream, mut to: TcpStream| {
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    };
    pass(client.try_clone().unwrap(), server.try_clone().unwrap());
    pass(server, client);
}

#[cfg(feature = "live")]
mod account {
    use super::*;
    use crate::account::Account;

    /// What a function logs that does its work.
    const WORKS: [&str; 4] = [
        "START RequestId: 1 Version: $LATEST",
        "[INFO] wrote 20 rows",
        "END RequestId: 1",
        "REPORT RequestId: 1\tDuration: 812.22 ms\tBilled Duration: 813 ms",
    ];

    /// What it logs that may not read S3 any more.
    const DENIED: [&str; 3] = [
        "START RequestId: 2 Version: $LATEST",
        "[ERROR] ClientError: An error occurred (AccessDenied) when calling the GetObject operation: \
         User: arn:aws:sts::123456789012:assumed-role/data-processor-role/data-processor is not \
         authorized to perform: s3:GetObject on resource: arn:aws:s3:::raw-events/a because no \
         identity-based policy allows the s3:GetObject action",
        "END RequestId: 2",
    ];

    /// What it logs that nothing gets through to.
    const UNREACHED: [&str; 4] = [
        "START RequestId: 3 Version: $LATEST",
        "[ERROR] ConnectTimeoutError: Connect timeout on endpoint URL: \
         \"https://s3.us-east-1.amazonaws.com/raw-events/a\"",
        "2026-11-22T03:00:00.000Z 3 Task timed out after 60.00 seconds",
        "END RequestId: 3",
    ];

    struct Incident<'a> {
        fault: &'a [&'a str],
        /// What the function logs from then on.
        logs: &'a [&'a str],
        message: Value,
        fault_type: &'a str,
        /// Words of the root cause.
        said: &'a [&'a str],
        /// The tool whose result proves it.
        tool: &'a str,
        /// A word of the remediation.
        remedy: &'a str,
    }

    fn log(account: &mut Account, lines: &[&str]) {
        if !lines.is_empty() {
            account.ask(json!([&["log", FUNCTION], lines].concat()));
        }
    }

    fn diagnose(account: &Account, folder: &Path, message: &Value) -> (Value, Vec<Value>) {
        let environment: serde_json::Map<String, Value> =
            account.environment().into_iter().map(|(name, value)| (name, json!(value))).collect();
        let server = json!({
            "command": env!("CARGO_BIN_EXE_daybook"), "args": ["mcp", "aws-diagnostics"],
            "env": environment,
        });
        let (session, steps) = investigate(folder, server, message.clone());
        assert_eq!(session["status"], "SUCCEEDED", "{session:#}");
        assert_eq!(session["incident_state"], "DIAGNOSED", "{session:#}");
        (session["result"].clone(), steps)
    }

    fn chaos(account: &Account, folder: &Path, arguments: &[&str]) {
        let ran = run(account.daybook(folder).arg("chaos").args(arguments));
        assert_eq!(ran.exit, 0, "{arguments:?}: {ran:#?}");
    }

    /// Broken, it is diagnosed with everything that the specification asks for; healed, it is not.
    fn check(incident: &Incident<'_>) {
        let Some(mut account) = Account::open() else { return };
        let folder = tempfile::tempdir().unwrap();
        account.ask(json!(["function", FUNCTION]));
        log(&mut account, &WORKS);
        chaos(&account, folder.path(), &[&["inject"], incident.fault].concat());
        log(&mut account, incident.logs);

        let (diagnosis, steps) = diagnose(&account, folder.path(), &incident.message);
        assert_eq!(diagnosis["fault_types"], json!([incident.fault_type]), "{diagnosis:#}");
        let root_cause = diagnosis["root_cause"].as_str().unwrap();
        for word in incident.said {
            assert!(root_cause.contains(word), "{word}: {root_cause}");
        }
        let evidence = diagnosis["evidence"].as_array().unwrap();
        let proof = evidence.iter().find(|pointer| pointer["tool"] == incident.tool);
        let proof = proof.unwrap_or_else(|| panic!("{evidence:#?}"));
        assert!(proof["field"].as_str().is_some_and(|field| !field.is_empty()), "{proof}");
        let plan = diagnosis["remediation_plan"].as_array().unwrap();
        let step = plan
            .iter()
            .find(|step| step["action"].as_str().unwrap().to_lowercase().contains(incident.remedy));
        let step = step.unwrap_or_else(|| panic!("{plan:#?}"));
        assert!(!step["evidence_basis"].as_array().unwrap().is_empty(), "{step}");
        // The chain of reasoning is the journal: what was asked, what was answered, what followed.
        let nodes: Vec<_> = steps.iter().filter_map(|step| step["node"].as_str()).collect();
        assert!(nodes.contains(&"agent_reason") && nodes.contains(&"execute_tools"), "{nodes:?}");

        chaos(&account, folder.path(), &["revert", incident.fault[0]]);
        log(&mut account, &WORKS);
        let (diagnosis, _) = diagnose(&account, folder.path(), &incident.message);
        assert_eq!(diagnosis["fault_types"], json!(["unknown"]), "{diagnosis:#}");
    }

    #[test]
    fn verifications_1_to_4_a_revoked_s3_permission_is_restored() {
        check(&Incident {
            fault: &["permission", "--target", "s3"],
            logs: &DENIED,
            message: denied(),
            fault_type: "permission_loss",
            said: &["S3", "revoked"],
            tool: "get_iam_state",
            remedy: "restore",
        });
    }

    #[test]
    fn verification_5_a_revoked_cloudwatch_permission_is_restored() {
        let what = "no logs arrive any more: AccessDenied on logs:PutLogEvents";
        check(&Incident {
            fault: &["permission", "--target", "cloudwatch"],
            logs: &[],
            message: json!({"lambda_name": FUNCTION, "error_message": what}),
            fault_type: "permission_loss",
            said: &["CloudWatch", "revoked"],
            tool: "get_iam_state",
            remedy: "restore",
        });
    }

    #[test]
    fn verification_5_both_revoked_permissions_are_restored() {
        check(&Incident {
            fault: &["permission", "--target", "both"],
            logs: &DENIED,
            message: denied(),
            fault_type: "permission_loss",
            said: &["S3", "CloudWatch", "revoked"],
            tool: "get_iam_state",
            remedy: "restore",
        });
    }

    #[test]
    fn a_throttled_function_is_diagnosed_and_restored() {
        check(&Incident {
            fault: &["throttle", "--to", "0"],
            logs: &[],
            message: json!({"lambda_name": FUNCTION, "error_type": "Throttling"}),
            fault_type: "throttling",
            said: &["concurrency", "0"],
            tool: "get_lambda_config",
            remedy: "concurrency",
        });
    }

    #[test]
    fn a_blocked_network_is_diagnosed_and_restored() {
        check(&Incident {
            fault: &["network"],
            logs: &UNREACHED,
            message: json!({"lambda_name": FUNCTION, "error_message": "Task timed out"}),
            fault_type: "network_block",
            said: &["security groups", "s3.us-east-1.amazonaws.com"],
            tool: "get_lambda_config",
            remedy: "outbound access",
        });
    }
}
