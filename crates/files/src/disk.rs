//! How much of a disk is left.

use std::io;
use std::path::Path;

/// The size of the file system that holds a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What this user may still write, in bytes.
    pub left_bytes: u64,
    pub total_bytes: u64,
}

/// The space of the file system that holds a folder.
///
/// # Errors
/// When the system does not say.
#[cfg(unix)]
pub fn space(folder: &Path) -> io::Result<Space> {
    let found = nix::sys::statvfs::statvfs(folder)?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.fragment_size());
    let (left, total) = (found.blocks_available(), found.blocks());
    Ok(Space { left_bytes: bytes(left), total_bytes: bytes(total) })
}

/// Not known on other systems.
#[cfg(not(unix))]
pub fn space(_: &Path) -> io::Result<Space> {
    Err(io::ErrorKind::Unsupported.into())
}
