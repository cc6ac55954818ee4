//! Crates depend only the way data flows; the table is ARCHITECTURE.md's.

use super::manifest;
use crate::tree::{Finding, Tree};

/// Every crate in data-path order, with the crates of ours that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("telemetry", &[]),
    ("journal", &[]),
    ("workflow", &["telemetry", "journal"]),
    // It serves any function, and knows nothing of ours.
    ("bootstrap", &[]),
    ("states", &[]),
    ("graph", &["journal"]),
    ("invoker", &["telemetry", "journal", "workflow", "bootstrap"]),
    ("agents", &["graph"]),
    ("agent", &["telemetry", "journal", "workflow", "graph", "agents"]),
    // What a person may answer is the graph's to say.
    ("poller", &["telemetry", "journal", "workflow", "bootstrap", "graph"]),
    ("watchdog", &["telemetry", "journal", "workflow", "bootstrap"]),
    ("tools", &["telemetry"]),
    // What people see is made of records and outlines alone, wherever they come from; the state
    // machine's outline is `states`'.
    ("timeline", &["journal", "states", "graph"]),
    (
        "local",
        &[
            "telemetry",
            "journal",
            "workflow",
            "states",
            "graph",
            "invoker",
            "agents",
            "agent",
            "poller",
            "watchdog",
            "tools",
            "timeline",
        ],
    ),
    // The CLI starts the stack through `local` and tries state machines; the others only give it
    // words to show.
    (
        "cli",
        &[
            "telemetry",
            "journal",
            "workflow",
            "states",
            "graph",
            "agents",
            "agent",
            "tools",
            "timeline",
            "local",
        ],
    ),
    // They know nothing of Daybook.
    ("infra/jsii", &[]),
    ("infra/jsii-codegen", &[]),
    // Names only: what the functions do is none of its business.
    ("infra", &["journal", "workflow", "jsii"]),
    // It puts the whole path together over a simulated cloud, and nothing depends on it.
    (
        "sim",
        &[
            "journal", "workflow", "states", "graph", "invoker", "agents", "agent", "poller",
            "watchdog",
        ],
    ),
    // It feeds the borders of what it names, and nothing depends on it.
    ("fuzz", &["journal", "workflow", "states", "local"]),
    ("xtask", &[]),
];

/// They meet only through the journal, so they never depend on one another, not even in tests.
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

/// Why `member` may not have this dependency, if it may not.
fn forbidden(
    member: &str,
    dependency: &manifest::Dependency,
    members: &[String],
) -> Option<String> {
    let name = dependency.name.as_str();
    // A crate is called as the last folder on the way to it.
    if !members.iter().any(|m| m.rsplit('/').next() == Some(name)) {
        return None;
    }
    if APART.contains(&member) && APART.contains(&name) {
        return Some(format!(
            "{member} and {name} never depend on one another: let the journal carry it"
        ));
    }
    let allowed =
        ALLOWED.iter().find(|(c, _)| *c == member).map_or(&[][..], |(_, allowed)| allowed);
    if dependency.dev || allowed.contains(&name) {
        return None;
    }
    let allowed =
        if allowed.is_empty() { "nothing of ours".to_owned() } else { allowed.join(", ") };
    Some(format!(
        "{member} may depend on {allowed}, not on {name}: move what it needs, or argue for a new direction"
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
                "{member} has no row in xtask/src/tidy/directions.rs: say there what it may depend on"
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
            "//- Cargo.toml\n[workspace]\nmembers = [\n\"journal\",\n\"workflow\",\n]\n\
             //- journal/Cargo.toml\n[dev-dependencies]\nworkflow.workspace = true\n\
             //- workflow/Cargo.toml\n[dependencies]\njournal.workspace = true\nserde = \"1\"\n",
            &[],
        );
    }

    #[test]
    fn a_dependency_against_the_flow_is_named() {
        check(
            "//- Cargo.toml\n[workspace]\nmembers = [\"journal\", \"workflow\", \"graph\"]\n\
             //- journal/Cargo.toml\n[dependencies]\nserde = \"1\"\nworkflow.workspace = true\n\
             //- workflow/Cargo.toml\n[dependencies]\njournal.workspace = true\n\
             [target.'cfg(unix)'.dependencies]\ngraph = { workspace = true }\n\
             //- graph/Cargo.toml\n[build-dependencies.w]\npackage = \"workflow\"\n",
            &[
                "journal/Cargo.toml:3: journal may depend on nothing of ours, not on workflow: move what it needs, or argue for a new direction",
                "workflow/Cargo.toml:4: workflow may depend on telemetry, journal, not on graph: move what it needs, or argue for a new direction",
                "graph/Cargo.toml:1: graph may depend on journal, not on workflow: move what it needs, or argue for a new direction",
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
                "invoker/Cargo.toml:2: invoker and agent never depend on one another: let the journal carry it",
            ],
        );
    }

    #[test]
    fn a_crate_in_a_folder_of_another_is_one_of_ours() {
        check(
            "//- Cargo.toml\n[workspace]\nmembers = [\"journal\", \"infra/jsii\", \"infra\"]\n\
             //- journal/Cargo.toml\n[dependencies]\njsii.workspace = true\n\
             //- infra/jsii/Cargo.toml\n\
             //- infra/Cargo.toml\n[dependencies]\njournal.workspace = true\njsii.workspace = true\n",
            &[
                "journal/Cargo.toml:2: journal may depend on nothing of ours, not on jsii: move what it needs, or argue for a new direction",
            ],
        );
    }

    #[test]
    fn members_out_of_order_or_unknown_are_named() {
        check(
            "//- Cargo.toml\n[workspace]\nmembers = [\n\"workflow\",\n\"journal\",\n\"helpers\",\n]\n\
             //- journal/Cargo.toml\n//- workflow/Cargo.toml\n//- helpers/Cargo.toml\n",
            &[
                "Cargo.toml:4: members are in data-path order: journal comes before workflow",
                "Cargo.toml:5: helpers has no row in xtask/src/tidy/directions.rs: say there what it may depend on",
            ],
        );
    }
}
