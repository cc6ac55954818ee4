//! The folders and files that a trigger may name.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{private, read};

/// The folder of the grants, in the data folder.
pub const GRANTS_FOLDER: &str = "allowed";

/// Longest path of a grant, in bytes.
///
/// Source: Linux, `PATH_MAX`.
const PATH_BYTES_MAX: u64 = 4096;

/// The folders and files that a trigger may name: those below a root, and those with a grant.
///
/// A trigger may come from anyone who reaches the bus, so it must not make this program read any file of
/// its user. A grant is a file in a folder that only this user can write. With it, the command line hands
/// over a path that the user named, without copying what may be gigabytes.
#[derive(Clone, Debug)]
pub struct Roots {
    allowed: Allowed,
    grants: Option<Arc<Path>>,
}

#[derive(Clone, Debug)]
enum Allowed {
    /// A person names the paths, on the command line.
    Everything,
    /// Canonical paths.
    Below(Arc<[PathBuf]>),
}

/// Why a path may not be read.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Also for a path that does not exist, so that a trigger cannot test which files exist.
    #[error("{} is outside of the folders that a trigger may name", .0.display())]
    Outside(PathBuf),
    #[error("cannot read {}: {why}", path.display())]
    Unreadable { path: PathBuf, why: io::ErrorKind },
}

impl Default for Roots {
    fn default() -> Self {
        Self::new([])
    }
}

impl Roots {
    /// Any path.
    pub fn everything() -> Self {
        Self { allowed: Allowed::Everything, grants: None }
    }

    /// What is below these folders, and these files. One that does not exist allows nothing.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let canonical = paths.into_iter().filter_map(|path| path.canonicalize().ok());
        Self { allowed: Allowed::Below(canonical.collect()), grants: None }
    }

    /// The roots that [`Self::variable`] wrote.
    pub fn of_variable(text: &OsStr) -> Self {
        Self::new(std::env::split_paths(text).filter(|path| !path.as_os_str().is_empty()))
    }

    /// The roots as the value of an environment variable, for another process.
    ///
    /// # Errors
    /// When a path has the separator of such a list.
    pub fn variable(&self) -> Result<OsString, std::env::JoinPathsError> {
        match &self.allowed {
            Allowed::Everything => Ok(OsString::from("/")),
            Allowed::Below(paths) => std::env::join_paths(paths.iter()),
        }
    }

    /// Also allows these paths.
    #[must_use]
    pub fn and(self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        match &self.allowed {
            Allowed::Everything => self,
            Allowed::Below(known) => {
                let all = Self::new(known.iter().cloned().chain(paths));
                Self { grants: self.grants, ..all }
            }
        }
    }

    /// Also allows paths with a grant in this folder.
    #[must_use]
    pub fn with_grants(self, folder: &Path) -> Self {
        Self { grants: Some(folder.into()), ..self }
    }

    /// Whether no path is admitted.
    pub fn is_empty(&self) -> bool {
        let has_none = matches!(&self.allowed, Allowed::Below(paths) if paths.is_empty());
        has_none && self.grants.is_none()
    }

    /// The folder of the grants.
    pub fn grants(&self) -> Option<&Path> {
        self.grants.as_deref()
    }

    /// The canonical form of a path that may be read. Blocks on the file system.
    ///
    /// # Errors
    /// When it is outside of the roots and has no grant, or does not exist.
    pub fn admit(&self, path: &Path) -> Result<PathBuf, Refusal> {
        match path.canonicalize() {
            Ok(canonical) if self.allows(&canonical) => Ok(canonical),
            Err(error) if self.allows(&normal(path)) => {
                Err(Refusal::Unreadable { path: path.to_owned(), why: error.kind() })
            }
            _ => Err(Refusal::Outside(path.to_owned())),
        }
    }

    fn allows(&self, canonical: &Path) -> bool {
        match &self.allowed {
            Allowed::Everything => true,
            Allowed::Below(roots) => {
                roots.iter().any(|root| canonical.starts_with(root)) || self.is_granted(canonical)
            }
        }
    }

    fn is_granted(&self, canonical: &Path) -> bool {
        let Some(folder) = &self.grants else { return false };
        let named = read::bytes(&folder.join(grant_name(canonical)), PATH_BYTES_MAX);
        named.is_ok_and(|named| named == canonical.as_os_str().as_encoded_bytes())
    }
}

/// Grants a path: writes its canonical form into the folder of the grants.
///
/// # Errors
/// When the path does not exist, or the folder cannot be written.
pub fn grant(folder: &Path, path: &Path) -> io::Result<()> {
    let canonical = path.canonicalize()?;
    private::folder(folder)?;
    let grant = folder.join(grant_name(&canonical));
    private::write(&grant, canonical.as_os_str().as_encoded_bytes())
}

/// Removes grants that are older. What cannot be removed stays.
pub fn remove_expired_grants(folder: &Path, kept: Duration) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|at| at.elapsed());
        if age.is_ok_and(|age| age.is_ok_and(|age| age > kept)) {
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

fn grant_name(canonical: &Path) -> String {
    hex::encode(Sha256::digest(canonical.as_os_str().as_encoded_bytes()))
}

/// The absolute path without `.` and `..`, for a path that does not exist.
fn normal(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.components().fold(PathBuf::new(), |mut normal, component| {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
        normal
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Place {
        folder: tempfile::TempDir,
        roots: Roots,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path();
            for inner in ["root/deep", "outside", "root2"] {
                std::fs::create_dir_all(path.join(inner)).unwrap();
                std::fs::write(path.join(inner).join("file"), "x").unwrap();
            }
            symlink(path.join("outside"), path.join("root/escape")).unwrap();
            symlink(path.join("root/deep/file"), path.join("outside/into")).unwrap();
            let roots = Roots::new([path.join("root"), path.join("absent")]);
            Self { folder, roots }
        }

        fn is_admitted(&self, path: &str) -> bool {
            self.roots.admit(&self.folder.path().join(path)).is_ok()
        }

        fn refusal(&self, path: &str) -> String {
            self.roots.admit(&self.folder.path().join(path)).unwrap_err().to_string()
        }
    }

    #[test]
    fn only_what_is_below_a_root_is_admitted() {
        let place = Place::new();
        for (path, expected) in [
            ("root", true),
            ("root/deep/file", true),
            ("root/deep/../deep/file", true),
            ("outside/into", true),
            ("outside/file", false),
            ("root/../outside/file", false),
            ("root/escape/file", false),
            ("root2/file", false),
            (".", false),
            ("/etc/passwd", false),
        ] {
            assert_eq!(place.is_admitted(path), expected, "{path}");
        }
        assert!(Roots::default().admit(Path::new("/")).is_err());
        assert!(Roots::everything().admit(Path::new("/etc/passwd")).is_ok());
    }

    #[test]
    fn a_refusal_does_not_say_whether_a_file_exists() {
        let place = Place::new();
        for path in ["outside/file", "outside/absent", "root/../outside/absent"] {
            assert!(
                place.refusal(path).ends_with("is outside of the folders that a trigger may name")
            );
        }
        assert!(place.refusal("root/absent").ends_with("entity not found"));
    }

    #[test]
    fn a_grant_admits_its_path_alone() {
        let mut place = Place::new();
        let (granted, grants) =
            (place.folder.path().join("outside/file"), place.folder.path().join("grants"));
        place.roots = place.roots.with_grants(&grants);
        assert!(!place.is_admitted("outside/file"));
        grant(&grants, &granted).unwrap();
        assert!(place.is_admitted("outside/file"));
        assert!(place.is_admitted("root/escape/file"), "the same file");
        assert!(!place.is_admitted("outside") && !place.is_admitted("root2/file"));
        remove_expired_grants(&grants, Duration::from_secs(60));
        assert!(place.is_admitted("outside/file"));
        remove_expired_grants(&grants, Duration::ZERO);
        assert!(!place.is_admitted("outside/file"));
    }

    #[test]
    fn a_variable_hands_the_roots_to_another_process() {
        let place = Place::new();
        let roots = Roots::of_variable(&place.roots.variable().unwrap());
        assert!(roots.admit(&place.folder.path().join("root/deep/file")).is_ok());
        assert!(roots.admit(&place.folder.path().join("outside/file")).is_err());
        assert!(Roots::of_variable(OsStr::new("")).admit(Path::new(".")).is_err());
    }
}
