//! The results of a run, as a table and as JSON.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// One result.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What was measured.
    pub what: String,
    /// Concurrency and size.
    pub at: String,
    /// The value: the median of several rounds.
    pub value: f64,
    /// The unit.
    pub unit: &'static str,
    /// Relative to the raw disk's appends in the same round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_raw_disk: Option<f64>,
    /// The target on a quiet machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<&'static str>,
    /// Whether it was written durably, and how.
    pub durability: &'static str,
    /// Load average of the last minute.
    pub load: f64,
}

/// Where the durability of a figure is fsync of every acknowledged record.
pub const FSYNC: &str = "fsync";

/// Where a figure is of reading, or of memory, over a file that was written without waiting for the disk.
pub const READ: &str = "read";

/// The results so far, each printed when added.
#[derive(Default, Serialize)]
pub struct Report {
    processors: usize,
    figures: Vec<Figure>,
}

impl Report {
    /// None yet.
    pub fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        println!("{processors} processors; load and durability stand beside each figure\n");
        println!(
            "{:<34} {:>14} {:>12} {:<12} {:>8} {:>6} {:<6} target",
            "", "at", "", "", "of disk", "load", ""
        );
        Self { processors, figures: Vec::new() }
    }

    /// Adds a result without a ratio and a target.
    pub fn add(
        &mut self,
        what: &str,
        at: impl ToString,
        value: f64,
        unit: &'static str,
        durability: &'static str,
    ) {
        self.push(what, at, value, unit, durability, None, None);
    }

    /// Adds one that has a target.
    pub fn add_aimed(
        &mut self,
        what: &str,
        at: impl ToString,
        value: f64,
        unit: &'static str,
        durability: &'static str,
        target: &'static str,
    ) {
        self.push(what, at, value, unit, durability, None, Some(target));
    }

    /// Adds a rate beside the raw disk's.
    pub fn add_rate(
        &mut self,
        what: &str,
        at: impl ToString,
        rate: f64,
        of_raw_disk: f64,
        target: Option<&'static str>,
    ) {
        self.push(what, at, rate, "a second", FSYNC, Some(of_raw_disk), target);
    }

    #[expect(clippy::too_many_arguments, reason = "a figure has these fields")]
    fn push(
        &mut self,
        what: &str,
        at: impl ToString,
        value: f64,
        unit: &'static str,
        durability: &'static str,
        of_raw_disk: Option<f64>,
        target: Option<&'static str>,
    ) {
        let (what, at, load) = (what.to_owned(), at.to_string(), load());
        let figure = Figure { what, at, value, unit, of_raw_disk, target, durability, load };
        figure.print();
        self.figures.push(figure);
    }

    /// Writes all of them.
    pub fn write(&self, path: &Path) {
        let json = serde_json::to_string_pretty(self).unwrap();
        fs::write(path, json).unwrap();
        println!("\nthe same as JSON: {}", path.display());
    }
}

impl Figure {
    fn print(&self) {
        let Self { what, at, value, unit, of_raw_disk, target, durability, load } = self;
        let decimals = if value.abs() < 100.0 { 2 } else { 0 };
        let ratio = of_raw_disk.map_or(String::new(), |ratio| format!("{ratio:.2}"));
        let target = target.unwrap_or_default();
        println!(
            "{what:<34} {at:>14} {value:>12.decimals$} {unit:<12} {ratio:>8} {load:>6.1} {durability:<6} {target}"
        );
    }
}

/// Source: Linux, proc(5), `loadavg`.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default()
}
