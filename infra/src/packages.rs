//! The CDK's npm packages, in a folder that `scripts/tools.sh aws-cdk` creates.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use jsii::{Kernel, process};

use crate::cdk;

/// The kernel's program in the folder.
const RUNTIME: &str = "runtime/webpack/bin/jsii-runtime.js";

/// The file that lists the packages in load order, one per line: name, version and tarball.
const LIST: &str = "packages";

/// Additional environment of the kernel.
///
/// Disables the CDK's template validation, which takes as long as synthesis; in tests `cfn-lint`
/// and `cdk-nag` validate the template. Disables its check of the Node.js version; the tests show
/// which versions work.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("CDK_VALIDATION", "false"),
    ("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20"),
    ("JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION", "true"),
];

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
    /// There is no list, or its versions differ from those of the bindings.
    pub fn at(folder: &Path) -> Result<Self> {
        let list = folder.join(LIST);
        let text = std::fs::read_to_string(&list).with_context(|| {
            format!("{}; hint: `scripts/tools.sh aws-cdk` creates it", list.display())
        })?;
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
                "the bindings are for {name} {version}, which {} does not list; hint: `make bindings`",
                list.display()
            );
        }
        Ok(Self { folder: folder.to_owned(), packages })
    }

    /// Starts a kernel and loads the packages.
    ///
    /// # Errors
    /// Node.js is missing, or a package cannot be loaded.
    pub fn start(&self, environment: &[(&str, &str)]) -> Result<Kernel> {
        let cache = self.folder.join("cache");
        let cache = cache.to_str().context("the packages' folder name is not UTF-8")?;
        let mut all = ENVIRONMENT.to_vec();
        // Unpack once, not at every start.
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
