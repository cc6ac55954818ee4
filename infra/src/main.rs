//! `infra`: writes Daybook's CloudFormation templates. The CDK's own commands run it as their app.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;
use infra::packages::Packages;
use infra::{Options, synth};

/// Writes Daybook's CloudFormation templates.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The folder with the CDK's packages (`scripts/tools.sh aws-cdk` creates it).
    #[arg(long)]
    packages: PathBuf,
    /// The folder for the templates; by default the one from the CDK's command, or `cdk.out`.
    #[arg(long)]
    out: Option<PathBuf>,
    /// A setting, NAME=VALUE; repeat as needed. infra/README.md lists the names.
    #[arg(long, value_parser = pair)]
    context: Vec<(String, String)>,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<()> {
    let packages = Packages::at(&arguments.packages)?;
    let kernel = packages.start(&[])?;
    let options = Options { out: arguments.out.as_deref(), context: arguments.context };
    synth(&kernel, &options)?;
    kernel.exit().context("the templates are written, but the jsii kernel failed on exit")
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
