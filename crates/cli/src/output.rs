//! Output: data goes to stdout, messages go to stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::config;
use crate::render::Look;
use crate::render::text::{clean, json_line};

/// Maximum width, in columns; longer lines are hard to read.
const COLUMNS_MAX: u16 = 120;

/// Minimum width, in columns; a narrower terminal wraps.
const COLUMNS_MIN: u16 = 40;

/// Width without a terminal, in columns.
const COLUMNS: u16 = 80;

/// Width and colour of stdout.
pub fn look() -> Look {
    let columns = comfy_table::Table::new().width().unwrap_or(COLUMNS);
    Look {
        width: usize::from(columns.clamp(COLUMNS_MIN, COLUMNS_MAX)),
        colour: io::stdout().is_terminal() && !config::no_colour(),
    }
}

/// Whether stderr is coloured.
pub fn stderr_has_colour() -> bool {
    io::stderr().is_terminal() && !config::no_colour()
}

/// The transient line on the terminal, which the next output overwrites.
#[derive(Clone, Copy, Default, PartialEq)]
enum Passing {
    #[default]
    Nothing,
    /// The elapsed time.
    Idle,
    /// The progress of a tool.
    Progress,
}

static PASSING: Mutex<Passing> = Mutex::new(Passing::Nothing);

/// Shows a transient progress line on the terminal.
pub fn passing(text: &str) {
    pass(Passing::Progress, text);
}

/// Shows a transient status line, unless a progress line is shown.
pub fn idle(text: &str) {
    pass(Passing::Idle, text);
}

/// Shows a transient line, if stderr is a terminal. Returns whether it is.
pub fn idle_on_terminal(text: &str) -> bool {
    let is_terminal = io::stderr().is_terminal();
    if is_terminal {
        passing(text);
    }
    is_terminal
}

fn pass(what: Passing, text: &str) {
    let mut passing = PASSING.lock().unwrap_or_else(PoisonError::into_inner);
    if what == Passing::Idle && *passing == Passing::Progress {
        return;
    }
    let mut terminal = io::stderr().lock();
    // The terminal may be closed.
    let _ = write!(terminal, "\r\u{1b}[2K{}", clean(text)).and_then(|()| terminal.flush());
    *passing = what;
}

/// Clears the transient line.
fn settle() {
    let mut passing = PASSING.lock().unwrap_or_else(PoisonError::into_inner);
    if std::mem::take(&mut *passing) != Passing::Nothing {
        let _ = write!(io::stderr().lock(), "\r\u{1b}[2K");
    }
}

/// Writes lines of data.
///
/// # Errors
/// When stdout is closed; the command then stops.
pub fn lines<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> io::Result<()> {
    settle();
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

/// Writes a message to stderr. Errors are ignored: stderr may be closed.
pub fn say(text: &str) {
    settle();
    let _ = writeln!(io::stderr().lock(), "{}", clean(text));
}

/// Writes a prompt to the terminal.
pub fn prompt(text: &str) {
    settle();
    let mut terminal = io::stderr().lock();
    let _ = write!(terminal, "{}", clean(text)).and_then(|()| terminal.flush());
}

/// Echoes typed bytes to the terminal.
pub fn echo(typed: &[u8]) {
    let mut terminal = io::stderr().lock();
    let _ = terminal.write_all(typed).and_then(|()| terminal.flush());
}

/// Writes an `error:` line.
pub fn error(text: &str) {
    marked("error:", owo_colors::Style::new().red().bold(), text);
}

/// Writes a `hint:` line.
pub fn hint(text: &str) {
    marked("hint:", owo_colors::Style::new().cyan().bold(), text);
}

fn marked(mark: &str, style: owo_colors::Style, text: &str) {
    settle();
    let text = clean(text);
    let _ = if stderr_has_colour() {
        writeln!(io::stderr().lock(), "{} {text}", style.style(mark))
    } else {
        writeln!(io::stderr().lock(), "{mark} {text}")
    };
}
