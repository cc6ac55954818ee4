//! The permissions of the roles in the golden template, evaluated statement by statement.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::template::{of_type, read, resolved};

const SESSION: &str = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f";
const TABLE: &str = "arn:aws:dynamodb:eu-west-1:123456789012:table/daybook-dev-journal";

/// A request: the action, the resource, and the keys for conditions.
struct Request<'a> {
    action: &'a str,
    resource: String,
    keys: BTreeMap<&'static str, String>,
}

impl<'a> Request<'a> {
    fn on(action: &'a str, resource: &str) -> Self {
        Self { action, resource: resource.to_owned(), keys: BTreeMap::new() }
    }

    /// An operation on a partition of the table, or of the index with partitions of this kind.
    fn on_partition(action: &'a str, kind: &str) -> Self {
        let index = match kind {
            "LEASE#" => "/index/OpenLeases",
            "DAY#" => "/index/ByDay",
            _ => "",
        };
        let mut request = Self::on(action, &format!("{TABLE}{index}"));
        // The partitions of the log, and that of halts, are of no session.
        let of = if kind.starts_with("LOG#") || kind == "HALT#" { "" } else { SESSION };
        request.keys.insert("dynamodb:LeadingKeys", format!("{kind}{of}"));
        request
    }

    /// A request as the simulator lists it.
    fn listed(action: &'a str, about: &str) -> Self {
        let machine = "daybook-dev";
        match about {
            "runtime" => Self::on(
                action,
                "arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/daybook_dev-a1B2c3D4e5",
            ),
            "machine" => Self::on(
                action,
                &format!("arn:aws:states:eu-west-1:123456789012:stateMachine:{machine}"),
            ),
            "execution" => Self::on(
                action,
                &format!("arn:aws:states:eu-west-1:123456789012:execution:{machine}:{SESSION}"),
            ),
            partition => Self::on_partition(action, partition),
        }
    }
}

/// `*` matches any text, and `?` at the end one character.
fn fits(pattern: &str, text: &str) -> bool {
    if let Some(before) = pattern.strip_suffix('?') {
        return text.strip_prefix(before).is_some_and(|rest| rest.chars().count() == 1);
    }
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| fits(after, &rest[at..]))
        }),
    }
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(values) => values.iter().map(|value| value.as_str().unwrap()).collect(),
        value => vec![value.as_str().unwrap()],
    }
}

fn holds(operator: &str, key: &str, expected: &Value, request: &Request<'_>) -> bool {
    let given = request.keys.get(key);
    match operator {
        "Null" => (expected == "false") == given.is_some(),
        "ForAllValues:StringLike" => {
            given.is_none_or(|given| texts(expected).iter().any(|pattern| fits(pattern, given)))
        }
        "StringEquals" => given.is_some_and(|given| texts(expected).contains(&given.as_str())),
        other => panic!("the checker does not know the condition {other}"),
    }
}

fn allows(statements: &[Value], request: &Request<'_>) -> bool {
    statements.iter().any(|statement| {
        assert_eq!(statement["Effect"], "Allow");
        let conditions = statement["Condition"].as_object().into_iter().flatten();
        texts(&statement["Action"]).contains(&request.action)
            && texts(&statement["Resource"]).iter().any(|pattern| fits(pattern, &request.resource))
            && conditions
                .flat_map(|(operator, keys)| {
                    keys.as_object().unwrap().iter().map(move |key| (operator, key))
                })
                .all(|(operator, (key, expected))| holds(operator, key, expected, request))
    })
}

/// Each role's statements, by prefix of its logical id.
fn roles(template: &Value) -> BTreeMap<String, Vec<Value>> {
    of_type(template, "AWS::IAM::Role")
        .map(|(name, role)| {
            let policies = resolved(&role["Policies"]);
            let documents = policies.as_array().unwrap().iter();
            let statements = documents.flat_map(|policy| {
                policy["PolicyDocument"]["Statement"].as_array().unwrap().clone()
            });
            (name[..name.len() - 8].to_owned(), statements.collect())
        })
        .collect()
}

/// The role of a program in the simulator's list.
fn role_of(program: &str) -> &'static str {
    match program {
        "state-machine" => "MachineRole",
        "invoker" => "InvokerRole",
        "agent" => "RuntimeRole",
        "poller" => "PollerRole",
        "watchdog" => "WatchdogRole",
        other => panic!("no role is {other}'s"),
    }
}

/// The requests seen in simulated runs: role, action and resource.
fn seen() -> Seen {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../verify/sim/tests/it/requests.txt");
    let text = std::fs::read_to_string(list).unwrap();
    text.lines()
        .map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            [program, action, about] => {
                (role_of(program).to_owned(), action.to_owned(), about.to_owned())
            }
            _ => panic!("{line}"),
        })
        .collect()
}

type Seen = BTreeSet<(String, String, String)>;

/// Permissions that no simulated session needs: payloads over 96 KiB are written as parts, and after a rejected write a
/// writer reads the item if DynamoDB's reply omits it.
fn is_rare(seen: &Seen, role: &str, action: &str, about: &str) -> bool {
    let writes = (role.to_owned(), "dynamodb:PutItem".to_owned(), about.to_owned());
    let of_parts = ["dynamodb:PutItem", "dynamodb:GetItem", "dynamodb:Query"];
    // People resume sessions; simulated ones do not.
    (role == "PollerRole" && action == "states:DescribeExecution" && about == "execution")
        // No simulated session is halted; the poller reads the halts of those that are, and changes them.
        || (role == "PollerRole" && action == "dynamodb:Query" && ["HALT#", "LEASE#"].contains(&about))
        || (role == "PollerRole" && action == "dynamodb:PutItem" && about == "HALT#")
        || (about == "BLOB#" && of_parts.contains(&action))
        || (action == "dynamodb:GetItem" && role != "MachineRole" && seen.contains(&writes))
}

#[test]
fn each_role_allows_the_requests_of_simulated_runs() {
    let roles = roles(&read("daybook-dev.template.json"));
    let seen = seen();
    assert!(seen.len() > 20, "{seen:?}");
    for (role, action, about) in &seen {
        assert!(
            allows(&roles[role], &Request::listed(action, about)),
            "{role}: {action} on {about}"
        );
    }
}

#[test]
fn no_role_allows_more_than_simulated_runs_need() {
    let roles = roles(&read("daybook-dev.template.json"));
    let seen = seen();
    let partitions = [
        "SESSION#", "BLOB#", "RECEIPT#", "DEDUPE#", "ADMIT#", "HALT#", "LEASE#", "DAY#", "PROBE#",
        "OTHER#",
    ];
    let of_table = [
        "GetItem",
        "PutItem",
        "Query",
        "UpdateItem",
        "DeleteItem",
        "Scan",
        "BatchGetItem",
        "BatchWriteItem",
        "ConditionCheckItem",
        "PartiQLInsert",
        "PartiQLUpdate",
        "PartiQLDelete",
        "PartiQLSelect",
        "DeleteTable",
        "UpdateTable",
        "UpdateTimeToLive",
    ]
    .map(|operation| format!("dynamodb:{operation}"));
    let of_others = [
        ("bedrock-agentcore:InvokeAgentRuntime", "runtime"),
        ("bedrock-agentcore:StopRuntimeSession", "runtime"),
        ("states:SendTaskSuccess", "machine"),
        ("states:SendTaskHeartbeat", "machine"),
        ("states:SendTaskFailure", "machine"),
        ("states:DescribeExecution", "execution"),
        ("states:StopExecution", "execution"),
    ];
    for (role, statements) in &roles {
        let of_table =
            of_table.iter().flat_map(|action| partitions.map(|kind| (action.as_str(), kind)));
        for (action, about) in of_table.chain(of_others) {
            let expected = seen.contains(&(role.clone(), action.to_owned(), about.to_owned()));
            let allowed = allows(statements, &Request::listed(action, about));
            let excused = is_rare(&seen, role, action, about);
            assert!(
                allowed == expected || (allowed && excused),
                "{role}: {action} on {about} is allowed: {allowed}"
            );
        }
    }
}

#[test]
fn only_the_poller_writes_receipts_of_answers() {
    for (role, statements) in &roles(&read("daybook-dev.template.json")) {
        let may = |action| allows(statements, &Request::listed(action, "RECEIPT#"));
        assert_eq!(may("dynamodb:PutItem"), role == "PollerRole", "{role}");
        assert_eq!(may("dynamodb:Query"), role == "RuntimeRole", "{role}");
    }
}

#[test]
fn only_the_poller_halts_agents() {
    for (role, statements) in &roles(&read("daybook-dev.template.json")) {
        let may = |action| allows(statements, &Request::listed(action, "HALT#"));
        assert_eq!(may("dynamodb:PutItem"), role == "PollerRole", "{role}");
        let reads = ["PollerRole", "InvokerRole", "RuntimeRole"].contains(&role.as_str());
        assert_eq!(may("dynamodb:Query"), reads, "{role}");
    }
}

#[test]
fn the_log_is_appended_to_and_only_the_poller_states_its_shards() {
    let roles = roles(&read("daybook-dev.template.json"));
    let keepers = ["InvokerRole", "PollerRole", "WatchdogRole"];
    for (role, statements) in &roles {
        let may = |action, about| allows(statements, &Request::listed(action, about));
        let (keeps, states) = (keepers.contains(&role.as_str()), role == "PollerRole");
        for action in ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"] {
            assert_eq!(may(action, "LOG#3"), keeps, "{role}: {action}");
            assert_eq!(may(action, "LOG#root"), states, "{role}: {action}");
        }
        for action in ["dynamodb:DeleteItem", "dynamodb:UpdateItem"] {
            assert!(!may(action, "LOG#3") && !may(action, "LOG#root"), "{role}: {action}");
        }
    }
}

#[test]
fn only_the_poller_signs_and_nobody_deletes_copies_of_checkpoints() {
    for name in ["daybook-dev", "daybook-other"] {
        let template = read(&format!("{name}.template.json"));
        for (role, statements) in &roles(&template) {
            let copies =
                format!("arn:aws:s3:::{name}-checkpoints-1a2b3c/00000000000000000001.json");
            let mut copy = Request::on("s3:PutObject", &copies);
            copy.keys.insert("s3:ResourceAccount", "123456789012".to_owned());
            assert_eq!(allows(statements, &copy), role == "CheckpointsRole", "{role}");
            for action in
                ["s3:DeleteObject", "s3:DeleteObjectVersion", "s3:BypassGovernanceRetention"]
            {
                assert!(!allows(statements, &Request::on(action, &copies)), "{role}: {action}");
            }
            let key = "arn:aws:kms:eu-west-1:123456789012:key/1a2b3c";
            assert!(!allows(statements, &Request::on("kms:Sign", key)), "{role}");
        }
        let journal = read(&format!("{name}-journal.template.json"));
        let keys: Vec<_> = of_type(&journal, "AWS::KMS::Key").collect();
        let [(_, key)] = keys[..] else { panic!("{keys:#?}") };
        assert_eq!(key["KeySpec"], "ECC_NIST_EDWARDS25519");
        let statements = resolved(&key["KeyPolicy"]["Statement"]);
        let signers: Vec<_> = (statements.as_array().unwrap().iter())
            .filter(|statement| {
                let actions = texts(&statement["Action"]);
                let signs = ["kms:Sign", "kms:CreateGrant"];
                actions.iter().any(|action| signs.iter().any(|sign| fits(action, sign)))
            })
            .collect();
        let [signer] = signers[..] else { panic!("{signers:?}") };
        let poller =
            of_type(&template, "AWS::IAM::Role").find(|(id, _)| id.starts_with("PollerRole"));
        let poller = resolved(&poller.unwrap().1["RoleName"]);
        let poller = format!("arn:aws:iam::123456789012:role/{}", poller.as_str().unwrap());
        let condition = json!({
            "StringEquals": { "kms:CallerAccount": "123456789012" },
            "ArnEquals": { "aws:PrincipalArn": poller },
        });
        assert_eq!(signer["Condition"], condition);
        assert_eq!(signer["Action"], json!(["kms:Sign", "kms:GetPublicKey"]));
        assert_eq!(
            (&signer["Effect"], &signer["Principal"]),
            (&json!("Allow"), &json!({ "AWS": "*" }))
        );
    }
}

#[test]
fn no_role_puts_a_persons_actions_or_calls_the_url() {
    for name in ["daybook-dev", "daybook-other"] {
        let roles = roles(&read(&format!("{name}.template.json")));
        let bus = format!("arn:aws:events:eu-west-1:123456789012:event-bus/{name}");
        let poller = format!("arn:aws:lambda:eu-west-1:123456789012:function:{name}-poller");
        for (role, statements) in &roles {
            let may = |action, resource: &str| allows(statements, &Request::on(action, resource));
            assert!(!may("events:PutEvents", &bus), "{role}");
            assert!(!may("lambda:InvokeFunctionUrl", &poller), "{role}");
        }
    }
}

/// The statement of the bus for a person's actions.
fn bus_policy(template: &Value) -> Value {
    let policies: Vec<_> = of_type(template, "AWS::Events::EventBusPolicy").collect();
    let [(_, policy)] = policies[..] else { panic!("{policies:#?}") };
    resolved(&policy["Statement"])
}

#[test]
fn only_the_configured_people_may_put_actions() {
    let nobody = bus_policy(&read("daybook-dev.template.json"));
    assert_eq!((&nobody["Effect"], &nobody["Principal"]), (&"Deny".into(), &"*".into()));
    assert_eq!(nobody["Action"], "events:PutEvents");
    assert!(nobody["Resource"].as_str().unwrap().starts_with("<Actions"), "{nobody:#}");
    assert!(nobody.get("Condition").is_none(), "{nobody:#}");
    let people = bus_policy(&read("daybook-other.template.json"));
    let named = &people["Condition"]["ArnNotLike"]["aws:PrincipalArn"];
    assert_eq!(texts(named), ["arn:aws:iam::123456789012:role/Operators"]);
}

/// Whether a rule of the template listens to events of this type, and on which bus.
fn bus_of(template: &Value, detail_type: &str) -> Vec<Value> {
    let rules = of_type(template, "AWS::Events::Rule").filter(|(_, rule)| {
        let types = &rule["EventPattern"]["detail-type"];
        types.as_array().is_some_and(|types| types.iter().any(|it| it == detail_type))
    });
    rules.map(|(_, rule)| resolved(&rule["EventBusName"])).collect()
}

#[test]
fn actions_are_taken_from_the_stacks_own_bus_alone() {
    for (template, triggers) in [("daybook-dev", "default"), ("daybook-other", "agents")] {
        let document = read(&format!("{template}.template.json"));
        let buses = of_type(&document, "AWS::Events::EventBus");
        let own =
            buses.filter(|(_, bus)| bus["Name"] == template).map(|(id, _)| format!("<{id}.Arn>"));
        let own: Vec<_> = own.collect();
        assert_eq!(own.len(), 1);
        for action in workflow::rule::ACTIONS {
            assert_eq!(bus_of(&document, action.detail_type), *own, "{}", action.action);
        }
        assert_eq!(bus_of(&document, workflow::rule::DETAIL_TYPE), [triggers]);
    }
}

#[test]
fn the_url_for_actions_requires_iam() {
    let template = read("daybook-dev.template.json");
    let urls: Vec<_> = of_type(&template, "AWS::Lambda::Url").collect();
    let [(_, url)] = urls[..] else { panic!("{urls:#?}") };
    assert_eq!(url["AuthType"], "AWS_IAM");
    assert!(resolved(&url["TargetFunctionArn"]).as_str().unwrap().starts_with("<Poller"), "{url}");
    // Only rules may call a function without the caller's own policy.
    for (_, permission) in of_type(&template, "AWS::Lambda::Permission") {
        assert_eq!(permission["Principal"], "events.amazonaws.com", "{permission:#}");
        assert!(permission["SourceArn"].is_object(), "{permission:#}");
    }
}

#[test]
fn the_agent_reads_logs_of_functions_alone() {
    let roles = roles(&read("daybook-dev.template.json"));
    for (group, allowed) in [
        ("/aws/lambda/orders", true),
        ("/aws/vendedlogs/states/daybook-dev", false),
        ("pay", false),
    ] {
        let logs = format!("arn:aws:logs:eu-west-1:123456789012:log-group:{group}:*");
        let may = allows(&roles["RuntimeRole"], &Request::on("logs:FilterLogEvents", &logs));
        assert_eq!(may, allowed, "{group}");
    }
}

/// Its diagnostics need no more, and would say less without one of them.
#[test]
fn the_agent_may_make_every_call_of_its_diagnostics() {
    let roles = roles(&read("daybook-dev.template.json"));
    let file = "../packs/incident/iam/aws-diagnostics.json";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let policy: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let statements = policy["Statement"].as_array().unwrap();
    let actions = statements.iter().flat_map(|statement| match &statement["Action"] {
        Value::Array(actions) => actions.clone(),
        one => vec![one.clone()],
    });
    for action in actions {
        let action = action.as_str().unwrap();
        let resource = match action.split_once(':').unwrap().0 {
            "lambda" => "arn:aws:lambda:eu-west-1:123456789012:function:orders",
            "logs" => "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/lambda/orders:*",
            "iam" => "arn:aws:iam::123456789012:role/orders",
            _ => "*",
        };
        assert!(allows(&roles["RuntimeRole"], &Request::on(action, resource)), "{action}");
    }
}

/// The policy of DEPLOYMENT.md for a person who works with sessions.
#[test]
fn a_person_neither_writes_records_nor_calls_the_poller_directly() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../DEPLOYMENT.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, after) = page.split_once("<!-- person -->\n```json\n").unwrap();
    let policy: Value = serde_json::from_str(after.split_once("```").unwrap().0).unwrap();
    let statements = policy["Statement"].as_array().unwrap();
    let actions: BTreeSet<_> = statements.iter().flat_map(|it| texts(&it["Action"])).collect();
    for denied in ["dynamodb:PutItem", "states:StartExecution", "states:SendTaskSuccess"] {
        assert!(!actions.contains(denied), "{denied}");
    }
    assert!(actions.contains("lambda:InvokeFunctionUrl"));
    let direct =
        statements.iter().filter(|it| texts(&it["Action"]).contains(&"lambda:InvokeFunction"));
    for statement in direct {
        let condition = &statement["Condition"]["Bool"]["lambda:InvokedViaFunctionUrl"];
        assert_eq!(condition, "true", "{statement:#}");
    }
}

#[test]
fn only_the_agent_reads_and_decrypts_the_api_key() {
    let roles = roles(&read("daybook-dev.template.json"));
    let arn = |name: &str| format!("arn:aws:ssm:eu-west-1:123456789012:parameter{name}");
    let decrypt = |parameter: &str, through: &str| {
        let mut request = Request::on("kms:Decrypt", "arn:aws:kms:eu-west-1:123456789012:key/1");
        request.keys.insert("kms:EncryptionContext:PARAMETER_ARN", arn(parameter));
        request.keys.insert("kms:ViaService", format!("{through}.eu-west-1.amazonaws.com"));
        request
    };
    let key = "/incident-response/mcp-api-key";
    for (role, statements) in &roles {
        let agent = role == "RuntimeRole";
        assert_eq!(
            allows(statements, &Request::on("ssm:GetParameter", &arn(key))),
            agent,
            "{role}"
        );
        assert_eq!(allows(statements, &decrypt(key, "ssm")), agent, "{role}");
        for refused in [
            Request::on("ssm:GetParameter", &arn("/incident-response/other")),
            Request::on("ssm:GetParametersByPath", &arn(key)),
            Request::on("ssm:PutParameter", &arn(key)),
            Request::on("kms:Decrypt", "arn:aws:kms:eu-west-1:123456789012:key/1"),
            decrypt("/incident-response/other", "ssm"),
            decrypt(key, "s3"),
        ] {
            assert!(!allows(statements, &refused), "{role}: {}", refused.action);
        }
    }
}

#[test]
fn rules_start_machines_which_call_two_functions() {
    let roles = roles(&read("daybook-dev.template.json"));
    let arn = |rest: &str| format!("arn:aws:{rest}").replace("::", ":eu-west-1:123456789012:");
    let (start, call) = ("states:StartExecution", "lambda:InvokeFunction");
    for (role, statements) in &roles {
        let may = |action, rest: &str| allows(statements, &Request::on(action, &arn(rest)));
        let starts = ["TriggerRole", "PollerRole"].contains(&role.as_str());
        assert_eq!(may(start, "states::stateMachine:daybook-dev"), starts, "{role}");
        assert!(!may(start, "states::stateMachine:daybook-other"), "{role}");
        for function in ["invoker", "poller"] {
            let rest = format!("lambda::function:daybook-dev-{function}");
            let calls =
                role == "MachineRole" || (role == "CheckpointsRole" && function == "poller");
            assert_eq!(may(call, &rest), calls, "{role}: {function}");
        }
        assert!(!may(call, "lambda::function:daybook-dev-watchdog"), "{role}");
        assert!(!may(call, "lambda::function:orders"), "{role}");
    }
}

#[test]
fn the_pipe_only_converts_messages_of_its_queue() {
    let roles = roles(&read("daybook-dev.template.json"));
    let queue = |name: &str| format!("arn:aws:sqs:eu-west-1:123456789012:daybook-dev-{name}");
    let put = |bus: &str, source: &str, detail_type: &str| {
        let bus = format!("arn:aws:events:eu-west-1:123456789012:event-bus/{bus}");
        let mut request = Request::on("events:PutEvents", &bus);
        request.keys.insert("events:source", source.to_owned());
        request.keys.insert("events:detail-type", detail_type.to_owned());
        request
    };
    for (role, statements) in &roles {
        let pipe = role == "MessagesRole";
        for action in ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"] {
            let may = |name| allows(statements, &Request::on(action, &queue(name)));
            assert_eq!(may("incidents"), pipe, "{role}: {action}");
            assert!(!may("dead-letters"), "{role}: {action}");
        }
        let may = |request| allows(statements, &request);
        assert_eq!(may(put("default", "manual-trigger", "execute-agent")), pipe, "{role}");
        for refused in [
            put("default", "manual-trigger", "answer-agent"),
            put("default", "orders", "execute-agent"),
            put("other", "manual-trigger", "execute-agent"),
        ] {
            assert!(!may(refused), "{role}");
        }
    }
}

#[test]
fn the_agent_may_use_only_the_configured_model() {
    let model =
        "arn:aws:bedrock:eu-central-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0";
    let profile = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
    let other = "arn:aws:bedrock:eu-central-1::foundation-model/amazon.nova-pro-v1:0";
    for (template, allowed) in [("daybook-dev", false), ("daybook-other", true)] {
        let roles = roles(&read(&format!("{template}.template.json")));
        let ask =
            |resource| allows(&roles["RuntimeRole"], &Request::on("bedrock:InvokeModel", resource));
        assert_eq!((ask(model), ask(profile), ask(other)), (allowed, allowed, false), "{template}");
    }
}

#[test]
fn no_action_and_no_unexplained_resource_has_a_wildcard() {
    use infra::config::Config;
    use infra::names::{ArnParts, Names};

    let config = Config::read(&|_: &str| None).unwrap();
    let grants = infra::roles::all(&Names::new(&config, ArnParts::spelt()), &config);
    for grant in &grants {
        for statement in &grant.statements {
            let wide = statement.resources.iter().any(|arn| arn.contains('*'));
            assert_eq!(wide, statement.because.is_some(), "{} {}", grant.id, statement.sid);
            assert!(
                statement.actions.iter().all(|action| !action.contains('*')),
                "{}",
                statement.sid
            );
        }
    }
    // The template has exactly these roles, and the library has added nothing to them.
    let template = read("daybook-dev.template.json");
    let made = roles(&template);
    assert_eq!(made.len(), grants.len());
    for grant in &grants {
        assert_eq!(made[grant.id].len(), grant.statements.len(), "{}", grant.id);
    }
    assert_eq!(of_type(&template, "AWS::IAM::Policy").count(), 0);
    assert_eq!(of_type(&template, "AWS::IAM::ManagedPolicy").count(), 0);
}
