//! A kernel with the CDK, if the test runner provides its packages, and synthesised templates.

use std::path::{Path, PathBuf};

use infra::packages::Packages;
use infra::{Options, synth};
use jsii::Kernel;
use tempfile::TempDir;

#[expect(clippy::disallowed_methods, reason = "the test runner passes the tools' folders")]
pub fn tool(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os(name).map(PathBuf::from);
    if found.is_none() {
        eprintln!("skipped: {name} is not set (`make verify` sets it)");
    }
    found
}

pub fn cdk() -> Option<PathBuf> {
    tool("DAYBOOK_TEST_CDK")
}

pub fn start(cdk: &Path, environment: &[(&str, &str)]) -> Kernel {
    Packages::at(cdk).unwrap().start(environment).unwrap()
}

/// Settings of a stage whose functions are always the same three files.
pub fn context(folder: &Path, choices: &[(&str, &str)]) -> Vec<(String, String)> {
    for function in ["invoker", "poller", "watchdog"] {
        std::fs::create_dir_all(folder.join(function)).unwrap();
        std::fs::write(folder.join(function).join("bootstrap"), function).unwrap();
    }
    let functions = ("functions", folder.to_str().unwrap());
    let choices = choices.iter().chain([&functions]);
    choices.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The folder with the templates of a stage.
pub fn synthesised(cdk: &Path, choices: &[(&str, &str)]) -> TempDir {
    let (functions, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kernel = start(cdk, &[]);
    let context = context(functions.path(), choices);
    synth(&kernel, &Options { out: Some(out.path()), context }).unwrap();
    kernel.exit().unwrap();
    out
}

/// Settings other than the defaults, each of which has an effect.
pub const OTHER: &[(&str, &str)] = &[
    ("stage", "other"),
    ("bus", "agents"),
    ("imageTag", "1.2.3"),
    ("architecture", "x86_64"),
    ("functionMemoryMb", "512"),
    ("logRetentionDays", "7"),
    ("journalTtlDays", "30"),
    ("incidentsPerHour", "5"),
    ("idleSeconds", "300"),
    ("model", "bedrock:eu.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("mcpApiKeyParameter", "/other/key"),
    ("openaiApiKeyParameter", "/other/openai"),
    ("OPENAI_BASE_URL", "https://models.example.com/v1"),
    ("DAYBOOK_ON_MODEL_FAILURE", "policy"),
    ("NETWORK_MAX_RETRIES", "1"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://traces.example.com"),
    ("diagnostics", "false"),
    ("people", "arn:aws:iam::123456789012:role/Operators"),
    ("functionAlarms", "false"),
    ("alarmEmail", "operators@example.com"),
    ("scheduleHours", "24"),
    ("scheduleAgent", "checkup"),
    ("warmWriteUnits", "8000"),
    ("checkpointLock", "compliance"),
    ("protect", "false"),
    ("notify", "true"),
    ("link", "https://daybook.example"),
];
