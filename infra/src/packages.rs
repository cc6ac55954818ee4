//! The npm packages that the CDK is, as `scripts/tools.sh aws-cdk` puts them into a folder.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use jsii::{Kernel, process};

use crate::cdk;

/// The kernel's program in the folder.
const RUNTIME: &str = "runtime/webpack/bin/jsii-runtime.js";

/// The file that lists the packages in the order in which they are loaded: a line each, with name,
/// version and the tarball's name in the folder.
const LIST: &str = "packages";

/// What the kernel's environment has beside the caller's own.
///
/// The CDK would look its own template over, which takes as long as making it; `cfn-lint` and `cdk-nag`
/// do that in the tests. Of the versions of Node.js the tests say which serve.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("CDK_VALIDATION", "false"),
    ("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20"),
    ("JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION", "true"),
];

/// The folder, read.
#[derive(Clone, Debug)]
pub struct Packages {
    folder: PathBuf,
    packages: Vec<Package>,
}

#[derive(Clone, Debug)]
struct Package {
    name: String,
    version: String,
    tarball: String,
}

impl Packages {
    /// Reads the folder's list.
    ///
    /// # Errors
    /// When there is none, or it holds other versions than the bindings were written from.
    pub fn at(folder: &Path) -> Result<Self> {
        let list = folder.join(LIST);
        let text = std::fs::read_to_string(&list)
            .with_context(|| format!("{}; `scripts/tools.sh aws-cdk` makes it", list.display()))?;
        let packages: Option<Vec<Package>> = text
            .lines()
            .map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
                [name, version, tarball] => Some(Package {
                    name: name.to_owned(),
                    version: version.to_owned(),
                    tarball: tarball.to_owned(),
                }),
                _ => None,
            })
            .collect();
        let packages = packages
            .with_context(|| format!("{}: expected NAME VERSION TARBALL", list.display()))?;
        for (name, version) in cdk::PACKAGES {
            ensure!(
                packages.iter().any(|p| p.name == *name && p.version == *version),
                "the bindings are of {name} {version}, which {} does not list: `make bindings`",
                list.display()
            );
        }
        Ok(Self { folder: folder.to_owned(), packages })
    }

    /// Starts a kernel and loads the packages.
    ///
    /// # Errors
    /// When Node.js is missing or a package cannot be loaded.
    pub fn start(&self, environment: &[(&str, &str)]) -> Result<Kernel> {
        let cache = self.folder.join("cache");
        let cache = cache.to_str().context("the packages' folder is no UTF-8")?;
        let mut all = ENVIRONMENT.to_vec();
        // Unpacked once and not at every start.
        all.push(("JSII_RUNTIME_PACKAGE_CACHE_ROOT", cache));
        all.extend(environment);
        let kernel = process::start(Path::new("node"), &self.folder.join(RUNTIME), &all)?;
        for package in &self.packages {
            let tarball = self.folder.join(&package.tarball);
            kernel.load(&package.name, &package.version, &tarball)?;
        }
        Ok(kernel)
    }
}
