//! Regular files, read within a bound.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a regular file. Never waits for a FIFO's writer, and opens no device.
///
/// # Errors
/// When it cannot be opened or is not a regular file.
pub fn regular(path: &Path) -> io::Result<File> {
    // Opening a device may have an effect, so its kind is checked before, too.
    check(&path.metadata()?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NONBLOCK | libc::O_NOCTTY,
    );
    let file = options.open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file as text.
///
/// # Errors
/// As [`regular`]; when it is larger than `bytes_max`, or not UTF-8.
pub fn text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let bytes = bytes(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|_| invalid("it is not UTF-8".to_owned()))
}

/// Reads a regular file. The bound applies to what is read, not to the size that the file reports.
///
/// # Errors
/// As [`regular`]; when it is larger than `bytes_max`.
pub fn bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(invalid(format!("it is larger than {bytes_max} bytes")));
    }
    Ok(bytes)
}

fn check(metadata: &std::fs::Metadata) -> io::Result<()> {
    if metadata.is_file() { Ok(()) } else { Err(invalid("it is not a regular file".to_owned())) }
}

fn invalid(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read_and_within_the_bound() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for path in [&*fifo, Path::new("/dev/zero"), Path::new("/dev/ptmx"), folder.path()] {
            let refusal = text(path, 10).unwrap_err().to_string();
            assert_eq!(refusal, "it is not a regular file", "{}", path.display());
        }
        let file = folder.path().join("file");
        std::fs::write(&file, "0123456789").unwrap();
        assert_eq!(text(&file, 10).unwrap(), "0123456789");
        assert_eq!(text(&file, 9).unwrap_err().to_string(), "it is larger than 9 bytes");
        // Its reported size is 0.
        assert!(text(Path::new("/proc/self/status"), 10).is_err());
    }
}
