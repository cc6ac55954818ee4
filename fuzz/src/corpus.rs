//! Where the fuzzer finds its seeds.

use std::fs;
use std::path::Path;

/// Writes the seeds into the folder that the fuzzer was given for its inputs. Does nothing when it
/// was given a file instead, which it then only runs again.
pub fn write(seeds: &[Vec<u8>]) {
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let Some(folder) = given.filter(|given| Path::new(given).is_dir()) else { return };
    for (number, seed) in seeds.iter().enumerate() {
        let path = Path::new(&folder).join(format!("seed-{number:03}"));
        fs::write(path, seed).expect("the folder of inputs can be written");
    }
}
