//! Writing: stdout is data, stderr is talk.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::config;
use crate::render::Look;
use crate::render::text::{clean, json_line};

/// Columns that are used at most: longer lines are hard to read.
const COLUMNS_MAX: u16 = 120;

/// Columns that are used at least; a narrower terminal wraps.
const COLUMNS_MIN: u16 = 40;

/// Columns where no terminal says how many there are.
const COLUMNS: u16 = 80;

/// How stdout is to look.
pub fn look() -> Look {
    let columns = comfy_table::Table::new().width().unwrap_or(COLUMNS);
    Look {
        width: usize::from(columns.clamp(COLUMNS_MIN, COLUMNS_MAX)),
        colour: io::stdout().is_terminal() && !config::no_colour(),
    }
}

/// Whether talk is coloured.
pub fn stderr_has_colour() -> bool {
    io::stderr().is_terminal() && !config::no_colour()
}

/// Writes lines of data.
///
/// # Errors
/// When stdout is closed; the command then stops.
pub fn lines<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{}", line.as_ref())?;
    }
    out.flush()
}

/// Writes one line of data.
///
/// # Errors
/// As [`lines`].
pub fn line(line: &str) -> io::Result<()> {
    lines([line])
}

/// Writes one JSON object on a line.
///
/// # Errors
/// As [`lines`], and when the value does not serialise.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    line(&json_line(value)?)
}

/// Says something on stderr. A closed stderr is nobody's loss.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", clean(text));
}

/// Says what went wrong.
pub fn error(text: &str) {
    marked("error:", owo_colors::Style::new().red().bold(), text);
}

/// Says what to do next.
pub fn hint(text: &str) {
    marked("hint:", owo_colors::Style::new().cyan().bold(), text);
}

fn marked(mark: &str, style: owo_colors::Style, text: &str) {
    let text = clean(text);
    let _ = if stderr_has_colour() {
        writeln!(io::stderr().lock(), "{} {text}", style.style(mark))
    } else {
        writeln!(io::stderr().lock(), "{mark} {text}")
    };
}
