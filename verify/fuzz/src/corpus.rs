//! Provides the fuzzer's seeds.

use std::fs;
use std::path::Path;

/// Writes the seeds into the fuzzer's input folder. Does nothing if the fuzzer was given a file,
/// which it then only replays.
pub fn write(seeds: &[Vec<u8>]) {
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let Some(folder) = given.filter(|given| Path::new(given).is_dir()) else { return };
    for (number, seed) in seeds.iter().enumerate() {
        let path = Path::new(&folder).join(format!("seed-{number:03}"));
        fs::write(path, seed).expect("the folder of inputs can be written");
    }
}
