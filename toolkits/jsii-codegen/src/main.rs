//! `jsii-codegen`: generates bindings, or checks that existing ones are up to date.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use jsii_codegen::{assembly, plan, render, selection};

/// Generates Rust bindings of jsii libraries.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The classes and members to generate: a TOML file with a line per class.
    #[arg(long)]
    selection: PathBuf,
    /// The folder of the bindings. Other files in it are removed.
    #[arg(long)]
    out: PathBuf,
    /// Write nothing, and fail if the existing files differ from the generated ones.
    #[arg(long)]
    check: bool,
    /// The assemblies: the uncompressed `.jsii` of each package.
    #[arg(required = true)]
    assemblies: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    let mut assemblies = Vec::new();
    for path in &arguments.assemblies {
        let text = read(path)?;
        assemblies.push(assembly::parse(&text).with_context(|| path.display().to_string())?);
    }
    let selection = selection::parse(&read(&arguments.selection)?)
        .with_context(|| arguments.selection.display().to_string())?;
    let plan = plan::plan(&assemblies, &selection)?;
    let mut files = BTreeMap::new();
    for (name, text) in render::render(&plan) {
        files.insert(name, formatted(&text, &arguments.out)?);
    }
    if arguments.check {
        return compare(&files, &arguments.out);
    }
    write(&files, &arguments.out)?;
    Ok(true)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Formats with the rustfmt settings that apply in the folder.
fn formatted(text: &str, folder: &Path) -> Result<String> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start rustfmt")?;
    let mut input = rustfmt.stdin.take().context("rustfmt has no input")?;
    let text = text.to_owned();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = rustfmt.wait_with_output().context("rustfmt")?;
    ensure!(output.status.success(), "rustfmt rejects the generated code");
    writer.join().ok().context("rustfmt's input")??;
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether the folder holds exactly these files; prints those that differ.
fn compare(files: &BTreeMap<String, String>, folder: &Path) -> Result<bool> {
    let there = list(folder)?;
    let mut same = true;
    for (name, text) in files {
        if there.get(name) != Some(text) {
            println!("{} differs", folder.join(name).display());
            same = false;
        }
    }
    for name in there.keys().filter(|name| !files.contains_key(*name)) {
        println!("{} is no longer generated", folder.join(name).display());
        same = false;
    }
    if !same {
        eprintln!("hint: run jsii-codegen without --check to update the bindings");
    }
    Ok(same)
}

fn write(files: &BTreeMap<String, String>, folder: &Path) -> Result<()> {
    for name in list(folder)?.keys().filter(|name| !files.contains_key(*name)) {
        std::fs::remove_file(folder.join(name)).with_context(|| name.clone())?;
    }
    for (name, text) in files {
        std::fs::write(folder.join(name), text).with_context(|| name.clone())?;
    }
    Ok(())
}

fn list(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
            files.insert(name.to_owned(), read(&path)?);
        }
    }
    Ok(files)
}
