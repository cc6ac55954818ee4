//! The list of planted defects, and the check that the tests find them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use crate::suite::{Ran, Suite};

/// The list, by its path from the root.
pub(crate) const LIST: &str = "verify/defects/defects.toml";

/// Timeout of a test with its defect; a slower test hangs.
const HANGS_AFTER: Duration = Duration::from_secs(60);

/// A listed defect.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Defect {
    /// Its name, which also enables it.
    pub(crate) name: String,
    /// The harm to a user, in one sentence.
    pub(crate) harm: String,
    /// The file to change, by its path from the root.
    pub(crate) file: String,
    /// The code to replace: an expression or whole statements, exactly once in the file.
    pub(crate) code: String,
    pub(crate) with: String,
    /// The test that finds it: binary and name, as the test runner lists them.
    pub(crate) test: String,
    /// Whether the test finds it by hanging.
    #[serde(default)]
    pub(crate) hangs: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    defect: Vec<Defect>,
}

/// The outcome of a defect.
#[derive(Debug)]
enum Fate {
    Found(Duration),
    /// Why it counts as not found.
    Missed(String),
}

/// Plants the defects with these names, or all, and reports whether its test finds each.
///
/// # Errors
/// If the list is invalid, a defect is stale, or the copy does not build.
pub(crate) fn run(root: &Path, names: &[String]) -> anyhow::Result<bool> {
    let tree = tidy::tree::load(root)?;
    let list: List = toml::from_str(tree.text(LIST).unwrap_or_default())
        .with_context(|| format!("{LIST} is not a list of defects"))?;
    check_names(&list.defect, names)?;
    let planted = match crate::plant::plant(&tree, &list.defect) {
        Ok(planted) => planted,
        Err(findings) => {
            for finding in &findings {
                println!("{finding}");
            }
            bail!("{} findings in {LIST}", findings.len());
        }
    };
    let target = target_folder()?;
    let copy = target.join("defects").join("workspace");
    crate::suite::copy(root, &copy, &tree, &planted)?;
    let packages: BTreeSet<&str> =
        list.defect.iter().filter_map(|d| d.test.split([':', ' ']).next()).collect();
    eprintln!("building {} crates with {} defects", packages.len(), list.defect.len());
    let suite = Suite::build(&copy, &target, &tree, &packages)?;
    let chosen: Vec<&Defect> =
        list.defect.iter().filter(|d| names.is_empty() || names.contains(&d.name)).collect();
    let fates = judge_all(&suite, &chosen);
    Ok(report(&chosen, &fates))
}

fn check_names(defects: &[Defect], names: &[String]) -> anyhow::Result<()> {
    let mut known = BTreeSet::new();
    for defect in defects {
        ensure!(known.insert(&defect.name), "{LIST} has two defects named {}", defect.name);
        ensure!(!defect.harm.is_empty(), "{} has no `harm`", defect.name);
    }
    match names.iter().find(|name| !known.contains(name)) {
        Some(name) => bail!("{LIST} has no defect named {name}"),
        None => Ok(()),
    }
}

/// The target folder of this program's build, from its path `target/debug/defects`.
fn target_folder() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let target = program.parent().and_then(Path::parent);
    Ok(target.context("this program is not in a target folder")?.to_owned())
}

/// Judges the defects concurrently, one per processor.
fn judge_all(suite: &Suite, defects: &[&Defect]) -> Vec<Fate> {
    let fates: Vec<Mutex<Option<Fate>>> = defects.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let here = next.fetch_add(1, Ordering::Relaxed);
                    let Some(defect) = defects.get(here) else { return };
                    let fate = judge(suite, defect).unwrap_or_else(|error| {
                        Fate::Missed(format!("cannot run its test: {error:#}"))
                    });
                    if matches!(fate, Fate::Missed(_)) {
                        eprintln!("no test finds {}", defect.name);
                    }
                    if let Ok(mut place) = fates[here].lock() {
                        *place = Some(fate);
                    }
                }
            });
        }
    });
    let judged = |fate: Mutex<Option<Fate>>| fate.into_inner().ok().flatten();
    let missed = || Fate::Missed("its test did not run".to_owned());
    fates.into_iter().map(|fate| judged(fate).unwrap_or_else(missed)).collect()
}

fn judge(suite: &Suite, defect: &Defect) -> anyhow::Result<Fate> {
    let Some(test) = suite.find(&defect.test) else {
        return Ok(Fate::Missed("its test does not exist".to_owned()));
    };
    match suite.run(&test, &defect.name, false, HANGS_AFTER)? {
        Ran { passed: Some(true), .. } => {}
        ran => return Ok(Fate::Missed(format!("its test fails without it:\n{}", ran.output))),
    }
    let ran = suite.run(&test, &defect.name, true, HANGS_AFTER)?;
    Ok(match ran.passed {
        Some(false) => Fate::Found(ran.took),
        None if defect.hangs => Fate::Found(ran.took),
        None => Fate::Missed(format!(
            "its test hangs with it; if that is meant, set `hangs = true`\n{}",
            ran.output
        )),
        Some(true) => Fate::Missed("its test passes with it".to_owned()),
    })
}

/// Prints the defects with their tests and durations. Returns whether all were found.
fn report(defects: &[&Defect], fates: &[Fate]) -> bool {
    let width = defects.iter().map(|defect| defect.name.len()).max().unwrap_or(0);
    for (defect, fate) in defects.iter().zip(fates) {
        let took = match fate {
            Fate::Found(took) => format!("{:5.1} s", took.as_secs_f64()),
            Fate::Missed(_) => " MISSED".to_owned(),
        };
        println!("{:width$}  {took}  {}", defect.name, defect.test);
    }
    let mut missed = 0;
    for (defect, fate) in defects.iter().zip(fates) {
        if let Fate::Missed(why) = fate {
            missed += 1;
            println!("\n{} is not found by {}: {why}\n{}", defect.name, defect.test, defect.harm);
        }
    }
    println!("{} of {} defects found", defects.len() - missed, defects.len());
    missed == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defect(name: &str) -> Defect {
        let list = format!(
            "[[defect]]\nname = '{name}'\nharm = 'h'\nfile = 'f'\ncode = 'c'\nwith = 'w'\ntest = 't'\n"
        );
        toml::from_str::<List>(&list).expect("a list").defect.remove(0)
    }

    #[test]
    fn a_name_is_given_once_and_must_be_known() {
        let defects = [defect("one"), defect("two")];
        assert!(check_names(&defects, &["two".to_owned()]).is_ok());
        let unknown = check_names(&defects, &["three".to_owned()]).expect_err("no such defect");
        assert_eq!(unknown.to_string(), "verify/defects/defects.toml has no defect named three");
        let twice = check_names(&[defect("one"), defect("one")], &[]).expect_err("two of a name");
        assert_eq!(twice.to_string(), "verify/defects/defects.toml has two defects named one");
    }

    #[test]
    fn every_listed_defect_fits_its_file() {
        let tree = tidy::tree::load(tidy::workspace_root()).expect("git answers");
        let list: List = toml::from_str(tree.text(LIST).expect("the list")).expect("a list");
        check_names(&list.defect, &[]).expect("names");
        let findings = crate::plant::plant(&tree, &list.defect).err().unwrap_or_default();
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
        assert!(list.defect.len() >= 20);
    }

    #[test]
    fn every_listed_defect_is_rust_where_it_is_planted() {
        let tree = tidy::tree::load(tidy::workspace_root()).expect("git answers");
        let list: List = toml::from_str(tree.text(LIST).expect("the list")).expect("a list");
        for defect in &list.defect {
            let planted = crate::plant::plant(&tree, std::slice::from_ref(defect));
            for (file, text) in planted.expect("it fits") {
                if let Err(error) = syn::parse_file(&text) {
                    panic!("{}: {file}: {error}", defect.name);
                }
            }
        }
    }
}
