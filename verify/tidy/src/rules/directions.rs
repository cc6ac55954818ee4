//! Crates depend only in the direction of the data flow; ARCHITECTURE.md explains the table.

use super::manifest;
use crate::tree::{Finding, Tree};

/// Every crate in data-path order, with the workspace crates that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    // It decides which files may be read, and writes private ones.
    ("crates/files", &[]),
    ("crates/telemetry", &[]),
    ("toolkits/tlog", &[]),
    ("journal", &["files", "tlog"]),
    ("crates/workflow", &["telemetry", "journal"]),
    ("crates/exporters", &["telemetry", "workflow"]),
    ("toolkits/asl", &[]),
    ("crates/graph", &["journal"]),
    ("crates/agentfile", &["workflow", "graph"]),
    // Programs of other people link it, and nothing else of ours.
    ("sdk/rust", &[]),
    ("crates/agentcore", &["telemetry", "journal", "workflow"]),
    ("invoker", &["telemetry", "journal", "workflow", "graph", "agentcore"]),
    ("packs/checkup", &["graph"]),
    // They observe journaled steps.
    ("packs/incident", &["journal", "graph"]),
    ("packs/fraud", &["journal", "workflow", "graph"]),
    ("packs/network", &["graph"]),
    ("packs/assistant", &["graph"]),
    ("packs", &["graph", "checkup", "incident", "fraud", "network", "assistant"]),
    // Libraries take agents as values. Only the binaries of these two name the packs.
    ("invoker", &["telemetry", "journal", "workflow", "lambda", "graph", "packs"]),
    (
        "agent",
        &[
            "telemetry",
            "exporters",
            "files",
            "journal",
            "workflow",
            "graph",
            "agentfile",
            // The program behind which an HTTP agent runs.
            "daybook-kit",
            "packs",
            "guard",
        ],
    ),
    // The graph decides what a person may answer.
    ("crates/control", &["journal", "workflow", "graph"]),
    // It words what became of a session, as its agent shows it.
    ("crates/notify", &["journal", "workflow", "graph"]),
    // It signs checkpoints of the log of sessions.
    ("poller", &["telemetry", "tlog", "journal", "workflow", "control", "notify", "agentcore"]),
    ("crates/watchdog", &["telemetry", "journal", "workflow", "notify", "agentcore"]),
    (
        "crates/lambda",
        &[
            "telemetry",
            "exporters",
            "journal",
            "workflow",
            "graph",
            "notify",
            "agentcore",
            "invoker",
            "packs",
            "poller",
            "watchdog",
        ],
    ),
    // It depends on no server.
    ("crates/guard", &[]),
    ("crates/mcp", &["telemetry", "guard"]),
    ("packs/incident/aws-diagnostics", &["files", "mcp"]),
    ("packs/incident/chaos", &["files", "mcp", "aws-diagnostics"]),
    ("packs/fraud/card-transactions", &["files", "mcp"]),
    ("packs/fraud/embeddings", &["card-transactions"]),
    ("packs/network/network-inventory", &["files", "mcp"]),
    ("packs/assistant/pk-sim", &["files", "mcp"]),
    // Views are built from records and outlines only.
    ("crates/views", &["journal", "asl", "graph"]),
    ("crates/extension", &["files", "mcp"]),
    (
        "packs/incident/incident-cli",
        &["files", "journal", "workflow", "incident", "mcp", "aws-diagnostics", "extension"],
    ),
    ("packs/incident/aws-account", &["aws-diagnostics", "chaos", "extension", "incident-cli"]),
    (
        "packs/fraud/fraud-cli",
        &["files", "workflow", "fraud", "mcp", "card-transactions", "views", "extension"],
    ),
    (
        "packs/network/network-cli",
        &["workflow", "network", "mcp", "network-inventory", "extension"],
    ),
    ("packs/assistant/assistant-cli", &["assistant", "mcp", "pk-sim", "extension"]),
    (
        "packs/packs-cli",
        &["extension", "incident-cli", "fraud-cli", "network-cli", "assistant-cli"],
    ),
    (
        "crates/stack",
        &[
            "telemetry",
            "exporters",
            "files",
            "tlog",
            "journal",
            "workflow",
            "asl",
            "graph",
            "agentcore",
            "invoker",
            "packs",
            "agent",
            "control",
            "notify",
            "poller",
            "watchdog",
            "guard",
            "views",
        ],
    ),
    (
        "crates/cli",
        &[
            "telemetry",
            "exporters",
            "files",
            "tlog",
            "journal",
            "workflow",
            "asl",
            "graph",
            "agentfile",
            "packs",
            "agent",
            "control",
            "notify",
            "mcp",
            "extension",
            "packs-cli",
            // Optional parts that take minutes to build.
            "aws-account",
            "embeddings",
            "views",
            "stack",
            "guard",
        ],
    ),
    // Toolkits know nothing of Daybook.
    ("toolkits/jsii", &[]),
    ("toolkits/jsii-codegen", &[]),
    // Only names, the agents' variables, and the code that converts alarms to triggers.
    ("infra", &["journal", "workflow", "graph", "incident", "notify", "packs", "jsii"]),
    // It assembles the whole path over a simulated cloud.
    (
        "verify/sim",
        &[
            "journal",
            "workflow",
            "asl",
            "graph",
            "agentcore",
            "invoker",
            "packs",
            "assistant",
            "checkup",
            "fraud",
            "incident",
            "network",
            "agent",
            "control",
            "poller",
            "watchdog",
            "mcp",
            "stack",
        ],
    ),
    ("verify/fuzz", &["journal", "workflow", "asl", "graph", "guard", "stack"]),
    ("verify/tidy", &[]),
    ("verify/defects", &["tidy"]),
];
/// These exchange data only through the journal: they must not depend on each other, not even in tests.
const APART: &[&str] = &["invoker", "agent", "poller", "watchdog"];

pub(crate) fn findings(tree: &Tree) -> Vec<Finding> {
    let members = manifest::members(tree);
    let mut found = order(tree, &members);
    for member in &members {
        let path = format!("{member}/Cargo.toml");
        match manifest::parse(tree, &path) {
            Ok(table) => {
                let text = tree.text(&path).unwrap_or_default();
                found.extend(manifest::dependencies(&table, text).iter().filter_map(|d| {
                    Some(Finding::new(&path, d.line, forbidden(member, d, &members)?))
                }));
            }
            Err(finding) => found.push(finding),
        }
    }
    found
}

/// The finding if `member` must not have this dependency.
fn forbidden(
    member: &str,
    dependency: &manifest::Dependency,
    members: &[String],
) -> Option<String> {
    let name = dependency.name.as_str();
    // A crate has the name of its folder.
    if !members.iter().any(|m| m.rsplit('/').next() == Some(name)) {
        return None;
    }
    if APART.contains(&member) && APART.contains(&name) {
        return Some(format!(
            "{member} and {name} must not depend on each other: exchange the data through the journal"
        ));
    }
    let allowed =
        ALLOWED.iter().find(|(c, _)| *c == member).map_or(&[][..], |(_, allowed)| allowed);
    if dependency.dev || allowed.contains(&name) {
        return None;
    }
    let allowed = if allowed.is_empty() { "no other crate".to_owned() } else { allowed.join(", ") };
    Some(format!(
        "{member} may depend on {allowed}, not on {name}: move the shared code, or propose a new direction"
    ))
}

fn order(tree: &Tree, members: &[String]) -> Vec<Finding> {
    let text = tree.text("Cargo.toml").unwrap_or_default();
    let mut found = Vec::new();
    let mut newest: Option<(usize, &str)> = None;
    for member in members {
        let line = text
            .lines()
            .position(|l| l.contains(&format!("\"{member}\"")))
            .map_or(1, |index| index + 1);
        let Some(rank) = ALLOWED.iter().position(|(c, _)| c == member) else {
            let what = format!(
                "{member} has no row in verify/tidy/src/rules/directions.rs: add its allowed dependencies there"
            );
            found.push(Finding::new("Cargo.toml", line, what));
            continue;
        };
        if let Some((before, name)) = newest.filter(|(before, _)| *before > rank) {
            let what = format!("members are in data-path order: {member} comes before {name}");
            found.push(Finding::new("Cargo.toml", line, what));
            newest = Some((before, name));
        } else {
            newest = Some((rank, member));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::tree::fixture;

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        fixture::check(super::findings, input, expected);
    }

    #[test]
    fn the_permitted_directions_pass() {
        check(
            "//- Cargo.toml\n[workspace]\nmembers = [\n\"journal\",\n\"crates/workflow\",\n]\n\
             //- journal/Cargo.toml\n[dev-dependencies]\nworkflow.workspace = true\n\
             //- crates/workflow/Cargo.toml\n[dependencies]\njournal.workspace = true\nserde = \"1\"\n",
            &[],
        );
    }

    #[test]
    fn a_dependency_against_the_flow_is_named() {
        check(
            "//- Cargo.toml\n[workspace]\nmembers = [\"journal\", \"crates/workflow\", \"crates/graph\"]\n\
             //- journal/Cargo.toml\n[dependencies]\nserde = \"1\"\nworkflow.workspace = true\n\
             //- crates/workflow/Cargo.toml\n[dependencies]\njournal.workspace = true\n\
             [target.'cfg(unix)'.dependencies]\ngraph = { workspace = true }\n\
             //- crates/graph/Cargo.toml\n[build-dependencies.w]\npackage = \"workflow\"\n",
            &[
                "journal/Cargo.toml:3: journal may depend on files, tlog, not on workflow: move the shared code, or propose a new direction",
                "crates/workflow/Cargo.toml:4: crates/workflow may depend on telemetry, journal, not on graph: move the shared code, or propose a new direction",
                "crates/graph/Cargo.toml:1: crates/graph may depend on journal, not on workflow: move the shared code, or propose a new direction",
            ],
        );
    }

    #[test]
    fn invoker_agent_and_poller_stay_apart_even_in_tests() {
        check(
            "//- Cargo.toml\n[workspace]\nmembers = [\"invoker\", \"agent\"]\n\
             //- invoker/Cargo.toml\n[dev-dependencies]\nagent.workspace = true\n\
             //- agent/Cargo.toml\n",
            &[
                "invoker/Cargo.toml:2: invoker and agent must not depend on each other: exchange the data through the journal",
            ],
        );
    }

    #[test]
    fn a_crate_in_a_folder_of_another_is_one_of_ours() {
        check(
            "//- Cargo.toml\n[workspace]\nmembers = [\"journal\", \"toolkits/jsii\", \"infra\"]\n\
             //- journal/Cargo.toml\n[dependencies]\njsii.workspace = true\n\
             //- toolkits/jsii/Cargo.toml\n\
             //- infra/Cargo.toml\n[dependencies]\njournal.workspace = true\njsii.workspace = true\n",
            &[
                "journal/Cargo.toml:2: journal may depend on files, tlog, not on jsii: move the shared code, or propose a new direction",
            ],
        );
    }

    #[test]
    fn members_out_of_order_or_unknown_are_named() {
        check(
            "//- Cargo.toml\n[workspace]\nmembers = [\n\"crates/workflow\",\n\"journal\",\n\"helpers\",\n]\n\
             //- journal/Cargo.toml\n//- crates/workflow/Cargo.toml\n//- helpers/Cargo.toml\n",
            &[
                "Cargo.toml:4: members are in data-path order: journal comes before crates/workflow",
                "Cargo.toml:5: helpers has no row in verify/tidy/src/rules/directions.rs: add its allowed dependencies there",
            ],
        );
    }
}
