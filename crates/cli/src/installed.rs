//! What an installation has beside the program: the kits of `new agent`, and the data that the packs ship.
//!
//! Every package (`make dist`) has the same tree: `bin/daybook` and `share/daybook`, which has `sdk` and `packs` as the
//! source has them. A program in a build folder has no such folder.

use std::path::{Component, Path, PathBuf};

/// The folder `share/daybook` of the installation that a program belongs to.
pub fn share(program: &Path) -> Option<PathBuf> {
    // A link to the program may be in another folder.
    let program = program.canonicalize().ok()?;
    let share = program.parent()?.parent()?.join("share/daybook");
    share.is_dir().then_some(share)
}

/// The bundled file or folder that a path means, if the working directory does not have it.
pub fn bundled(program: &Path, path: &Path) -> Option<PathBuf> {
    let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_below || path.exists() {
        return None;
    }
    let bundled = share(program)?.join(path);
    bundled.exists().then_some(bundled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_here_may_be_a_bundled_one() {
        let prefix = tempfile::tempdir().unwrap();
        let prefix = prefix.path().canonicalize().unwrap();
        let program = prefix.join("bin/daybook");
        std::fs::create_dir_all(prefix.join("bin")).unwrap();
        std::fs::write(&program, "").unwrap();
        let (data, link) = (Path::new("packs/here/data.json"), prefix.join("link"));
        std::os::unix::fs::symlink(&program, &link).unwrap();
        assert_eq!((share(&program), bundled(&program, data)), (None, None));
        let file = prefix.join("share/daybook").join(data);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "{}").unwrap();
        for program in [&program, &link] {
            assert_eq!(bundled(program, data), Some(file.clone()));
        }
        for path in ["packs/other", "../daybook/packs/here/data.json", "-", "src/installed.rs"] {
            assert_eq!(bundled(&program, Path::new(path)), None, "{path}");
        }
        assert_eq!(bundled(&program, &file), None);
    }
}
