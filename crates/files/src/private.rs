//! Folders and files for this user alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Permissions of the group and of others.
const OTHERS: u32 = 0o077;

/// Creates a folder for this user alone, and its parents alike. An existing one keeps its mode.
///
/// # Errors
/// When it cannot be created.
pub fn folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER_MODE);
    builder.recursive(true).create(path)
}

/// Creates or empties a file for this user alone. Does not follow a symlink at its place.
///
/// # Errors
/// When it cannot be created, or is a symlink.
pub fn file(path: &Path) -> io::Result<File> {
    let file = options().truncate(true).open(path)?;
    restrict_file(&file)?;
    Ok(file)
}

/// Opens a file for this user alone, and creates it if it is absent. Its contents stay.
///
/// # Errors
/// As [`file()`].
pub fn kept(path: &Path) -> io::Result<File> {
    let file = options().read(true).truncate(false).open(path)?;
    restrict_file(&file)?;
    Ok(file)
}

/// Makes what was renamed in a folder durable.
///
/// # Errors
/// When the folder cannot be synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Writes a whole file for this user alone, as [`file()`] does.
///
/// # Errors
/// As [`file()`].
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    file(path)?.write_all(bytes)
}

/// Takes the access of others to an existing folder.
///
/// # Errors
/// When the folder is another user's.
pub fn restrict_folder(path: &Path) -> io::Result<()> {
    restrict(path, FOLDER_MODE)
}

/// Creates an SQLite database for this user alone, or takes the access of others to an existing one and
/// to the files beside it. SQLite gives new files beside it the database's mode.
///
/// # Errors
/// When it cannot be created, or is another user's.
pub fn database(path: &Path) -> io::Result<()> {
    if path.exists() {
        // By its path: to open and close it would release the locks that SQLite has on it in this process.
        restrict(path, FILE_MODE)?;
    } else {
        let mut open = OpenOptions::new();
        open.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut open, FILE_MODE);
        restrict_file(&open.open(path)?)?;
    }
    for suffix in ["-wal", "-shm", "-journal"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        match restrict(Path::new(&beside), FILE_MODE) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Whether others may use a folder or a file.
///
/// # Errors
/// When it cannot be examined.
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
    Ok(mode(&fs::metadata(path)?) & OTHERS != 0)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(FILE_MODE).custom_flags(libc::O_NOFOLLOW);
    }
    options
}

fn restrict(path: &Path, most: u32) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    match mode(&metadata) & OTHERS {
        0 => Ok(()),
        _ => fs::set_permissions(path, permissions(&metadata, most)),
    }
}

fn restrict_file(file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    match mode(&metadata) & OTHERS {
        0 => Ok(()),
        _ => file.set_permissions(permissions(&metadata, FILE_MODE)),
    }
}

#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions())
}

#[cfg(unix)]
fn permissions(metadata: &fs::Metadata, most: u32) -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(mode(metadata) & most)
}

#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> u32 {
    0
}

#[cfg(not(unix))]
fn permissions(metadata: &fs::Metadata, _: u32) -> fs::Permissions {
    metadata.permissions()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_created_is_private_and_what_exists_becomes_so() {
        let place = tempfile::tempdir().unwrap();
        let (outer, inner) = (place.path().join("a"), place.path().join("a/b"));
        folder(&inner).unwrap();
        assert_eq!((mode_of(&outer), mode_of(&inner)), (0o700, 0o700));
        let old = place.path().join("old");
        fs::write(&old, "x").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(is_open_to_others(&old).unwrap());
        write(&old, b"y").unwrap();
        assert_eq!((mode_of(&old), fs::read(&old).unwrap()), (0o600, b"y".to_vec()));
        fs::set_permissions(&outer, fs::Permissions::from_mode(0o755)).unwrap();
        restrict_folder(&outer).unwrap();
        assert_eq!(mode_of(&outer), 0o700);
        assert!(!is_open_to_others(&outer).unwrap());
    }

    #[test]
    fn a_planted_symlink_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (target, link) = (place.path().join("target"), place.path().join("link"));
        fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(write(&link, b"theirs").is_err());
        assert_eq!(fs::read(&target).unwrap(), b"mine");
    }

    #[test]
    fn a_database_and_the_files_beside_it_become_private() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal.db");
        database(&path).unwrap();
        assert_eq!(mode_of(&path), 0o600);
        let wal = place.path().join("journal.db-wal");
        fs::write(&wal, "").unwrap();
        for file in [&path, &wal] {
            fs::set_permissions(file, fs::Permissions::from_mode(0o664)).unwrap();
        }
        database(&path).unwrap();
        assert_eq!((mode_of(&path), mode_of(&wal)), (0o600, 0o600));
    }
}
