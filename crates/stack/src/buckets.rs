//! S3 on this machine: the file `BUCKET/KEY` below a folder is the object KEY of BUCKET.
//!
//! A name cannot lead out of the folder: a key has no empty part, no `.` and no `..`, and links below a bucket
//! are not followed. A bucket is a folder that is there already.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use uuid::Uuid;

/// The buckets' folder in the data folder of a stack.
pub const FOLDER: &str = "s3";

/// Largest object that is read, in bytes.
pub const OBJECT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Most objects of a list.
pub const OBJECTS_MAX: usize = 100_000;

/// Longest key, in bytes.
///
/// Source: AWS, "Naming Amazon S3 objects".
const KEY_BYTES_MAX: usize = 1_024;

/// The buckets of a stack.
#[derive(Clone, Debug)]
pub struct Buckets {
    folder: PathBuf,
}

/// An object of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub key: String,
    pub bytes: u64,
    /// In seconds since 1970.
    pub modified_s: u64,
}

/// Why an object is not read or written.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    #[error("invalid bucket name `{0}`")]
    BucketName(String),
    #[error("invalid key `{0}`: its parts are neither empty nor `.` nor `..`")]
    Key(String),
    #[error("the bucket `{bucket}` does not exist; create the folder {}", .folder.display())]
    NoBucket { bucket: String, folder: PathBuf },
    #[error("the object `{1}` does not exist in the bucket `{0}`")]
    NoKey(String, String),
    #[error("`{0}` is a link, and links are not followed")]
    Link(String),
    #[error("more than {OBJECTS_MAX} objects")]
    TooMany,
    #[error("the object `{0}` cannot be read or written: {1}")]
    Io(String, #[source] io::Error),
}

impl Buckets {
    /// Those of a stack, in its data folder.
    pub fn of_stack(data: &Path) -> Self {
        Self::new(data.join(FOLDER))
    }

    /// The buckets in a folder.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Reads an object.
    ///
    /// # Errors
    /// See [`BucketError`].
    pub fn read(&self, bucket: &str, key: &str) -> Result<Vec<u8>, BucketError> {
        let path = self.object(bucket, key)?;
        if !path.is_file() {
            return Err(BucketError::NoKey(bucket.to_owned(), key.to_owned()));
        }
        files::read::bytes(&path, OBJECT_BYTES_MAX)
            .map_err(|error| BucketError::Io(key.to_owned(), error))
    }

    /// The objects whose keys begin with a prefix, by key.
    ///
    /// # Errors
    /// See [`BucketError`].
    pub fn list(&self, bucket: &str, prefix: &str) -> Result<Vec<Object>, BucketError> {
        let mut found = Vec::new();
        let mut open = vec![(self.bucket(bucket)?, String::new())];
        while let Some((folder, above)) = open.pop() {
            let failed = |error| BucketError::Io(above.clone(), error);
            for entry in fs::read_dir(&folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let (kind, name) = (entry.file_type().map_err(failed)?, entry.file_name());
                // No key spells a name that is not UTF-8.
                let Some(name) = name.to_str() else { continue };
                let key = format!("{above}{name}");
                if kind.is_dir() && (key.starts_with(prefix) || prefix.starts_with(&key)) {
                    open.push((entry.path(), format!("{key}/")));
                } else if kind.is_file() && key.starts_with(prefix) {
                    let data = entry.metadata().map_err(failed)?;
                    let modified =
                        data.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                    let modified_s = modified.map_or(0, |since| since.as_secs());
                    found.push(Object { key, bytes: data.len(), modified_s });
                }
                if found.len() > OBJECTS_MAX {
                    return Err(BucketError::TooMany);
                }
            }
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    /// Writes an object, as a whole or not at all.
    ///
    /// # Errors
    /// See [`BucketError`].
    pub fn write(&self, bucket: &str, key: &str, bytes: &[u8]) -> Result<(), BucketError> {
        let path = self.object(bucket, key)?;
        let failed = |error| BucketError::Io(key.to_owned(), error);
        let folder = path.parent().unwrap_or(&self.folder);
        files::private::folder(folder).map_err(failed)?;
        // Beside the buckets, so that no list shows what an interrupted write leaves.
        let part = self.folder.join(format!(".{}.part", Uuid::new_v4()));
        let written = (|| {
            let mut file = files::private::file(&part)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&part, &path)?;
            files::private::sync_folder(folder)
        })();
        written.map_err(|error| {
            let _ = fs::remove_file(&part);
            failed(error)
        })
    }

    fn bucket(&self, name: &str) -> Result<PathBuf, BucketError> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        let is_name = (3..=63).contains(&name.len())
            && name.chars().all(fits)
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && !name.contains("..");
        if !is_name {
            return Err(BucketError::BucketName(name.to_owned()));
        }
        let folder = self.folder.join(name);
        if folder.is_dir() {
            return Ok(folder);
        }
        Err(BucketError::NoBucket { bucket: name.to_owned(), folder })
    }

    fn object(&self, bucket: &str, key: &str) -> Result<PathBuf, BucketError> {
        let mut path = self.bucket(bucket)?;
        let is_bad =
            |part: &str| part.is_empty() || part == "." || part == ".." || part.contains('\0');
        if key.len() > KEY_BYTES_MAX || key.split('/').any(is_bad) {
            return Err(BucketError::Key(key.to_owned()));
        }
        for part in key.split('/') {
            path.push(part);
            if is_link(&path) {
                return Err(BucketError::Link(key.to_owned()));
            }
        }
        Ok(path)
    }
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_symlink())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn buckets() -> (TempDir, Buckets) {
        let folder = TempDir::new().unwrap();
        fs::create_dir_all(folder.path().join("s3/mine")).unwrap();
        let buckets = Buckets::new(folder.path().join("s3"));
        (folder, buckets)
    }

    #[test]
    fn objects_are_written_read_and_listed_by_key() {
        let (_folder, buckets) = buckets();
        for key in ["a/b/2.json", "a/1.json", "ab.json", "c.json"] {
            buckets.write("mine", key, key.as_bytes()).unwrap();
        }
        assert_eq!(buckets.read("mine", "a/1.json").unwrap(), b"a/1.json");
        let keys = |prefix: &str| {
            let found = buckets.list("mine", prefix).unwrap();
            found.into_iter().map(|object| object.key).collect::<Vec<_>>()
        };
        assert_eq!(keys(""), ["a/1.json", "a/b/2.json", "ab.json", "c.json"]);
        assert_eq!(keys("a"), ["a/1.json", "a/b/2.json", "ab.json"]);
        assert_eq!(keys("a/b/"), ["a/b/2.json"]);
        assert!(matches!(buckets.read("mine", "none"), Err(BucketError::NoKey(..))));
        assert!(matches!(buckets.read("none", "x"), Err(BucketError::NoBucket { .. })));
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let (folder, buckets) = buckets();
        fs::write(folder.path().join("secret"), "s").unwrap();
        for bucket in ["..", ".", "a/b", "", "mine/..", "Mine", "a..b"] {
            let refused = buckets.read(bucket, "secret");
            assert!(matches!(refused, Err(BucketError::BucketName(_))), "{bucket}: {refused:?}");
        }
        for key in ["../../secret", "/secret", "a/../../../secret", "", ".", "a//b", "a/", "x\0"] {
            for refused in [buckets.read("mine", key).map(|_| ()), buckets.write("mine", key, b"")]
            {
                assert!(matches!(refused, Err(BucketError::Key(_))), "{key}: {refused:?}");
            }
        }
        std::os::unix::fs::symlink(folder.path(), folder.path().join("s3/mine/out")).unwrap();
        assert!(matches!(buckets.read("mine", "out/secret"), Err(BucketError::Link(_))));
        assert!(matches!(buckets.write("mine", "out/new", b""), Err(BucketError::Link(_))));
        assert_eq!(buckets.list("mine", "").unwrap(), []);
    }
}
