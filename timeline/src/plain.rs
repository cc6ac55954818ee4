//! The timeline as plain pages, for browsers that run no script: nothing on them acts, and each says how
//! the terminal does.
//!
//! [`html`] keeps text text; [`list`] is the list of sessions, [`session`] one of them. What stands on a
//! page is bounded, and what is longer goes on on the next one.

pub mod html;
pub mod list;
pub mod session;

use std::time::Duration;

use graph::question::Decision;
use journal::clock::Stamp;
use journal::id::SessionId;
use journal::status::Status;
use serde_json::Value;

use crate::brief;
use crate::told::Tone;
use html::{Html, all, el, text};

/// Where the list is.
pub const LIST: &str = "/plain";

/// Where a token is traded for a cookie: a form's `token`, sent with POST.
pub const LOGIN: &str = "/plain/login";

/// What a browser may do on a plain page: use our style sheet and ask whoever served it for more of them.
/// No script runs, whatever stands on it.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'";

/// What is known of a session.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Its id.
    pub id: &'a SessionId,
    /// Where it stands.
    pub status: Status,
    /// Its agent, once one is known.
    pub agent: Option<&'a str>,
    /// When it began.
    pub began: Option<Stamp>,
    /// From its begin to its end or to now, in milliseconds.
    pub took_ms: Option<u64>,
    /// How many steps it has.
    pub steps: u32,
    /// Tokens in, out and unsettled.
    pub tokens: u64,
    /// Dollars.
    pub usd: f64,
    /// What went wrong.
    pub error: Option<&'a str>,
    /// The error's category.
    pub category: Option<&'a str>,
    /// What the agent brought.
    pub result: Option<&'a Value>,
    /// The question that waits for an answer.
    pub question: Option<Question<'a>>,
    /// When it goes on by itself, if it sleeps.
    pub asleep_until: Option<Stamp>,
}

/// A question that waits for an answer.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Its text.
    pub prompt: &'a str,
    /// The tool that would run.
    pub tool: Option<&'a str>,
    /// With what.
    pub arguments: Option<&'a Value>,
    /// Why.
    pub justification: Option<&'a str>,
    /// What may be decided.
    pub choices: &'a [Decision],
    /// When it expires.
    pub expires_at: Stamp,
}

/// A page that says why there is no other.
pub fn refusal(why: &str) -> String {
    let says = el("p", &[], [text(why)]);
    let back = el("p", &[], [link(LIST, "All sessions")]);
    page("Daybook", el("div", &[("class", "notice bad"), ("role", "alert")], [says, back]))
}

/// A page that asks for the stack's token, with why the last one was none.
pub fn token_form(refused: Option<&str>) -> String {
    let label = "This stack wants its token (DAYBOOK_TOKEN)";
    let field = [
        ("type", "password"),
        ("name", "token"),
        ("id", "token"),
        ("autocomplete", "off"),
        ("required", ""),
    ];
    let form = el(
        "form",
        &[("class", "notice"), ("method", "post"), ("action", LOGIN)],
        [
            el("label", &[("for", "token")], [text(label)]),
            el("input", &field, []),
            el("button", &[], [text("Go on")]),
            all(refused.map(|why| el("p", &[("class", "bad"), ("role", "alert")], [text(why)]))),
        ],
    );
    page("Daybook", form)
}

/// A page around its content.
fn page(title: &str, content: Html) -> String {
    let meta = |name, content| el("meta", &[("name", name), ("content", content)], []);
    let head = el(
        "head",
        &[],
        [
            el("meta", &[("charset", "utf-8")], []),
            meta("viewport", "width=device-width, initial-scale=1"),
            meta("color-scheme", "light dark"),
            el("title", &[], [text(title)]),
            el("link", &[("rel", "icon"), ("href", "/page/icon.svg")], []),
            el("link", &[("rel", "stylesheet"), ("href", "/page/style.css")], []),
        ],
    );
    let views = el("nav", &[("aria-label", "Views")], [link(LIST, "Sessions")]);
    let top = el(
        "header",
        &[("class", "top")],
        [
            el("a", &[("class", "brand"), ("href", LIST)], [text("Daybook")]),
            views,
            el("span", &[("class", "grow")], []),
            el("a", &[("href", "/")], [text("Live page (needs a script)")]),
        ],
    );
    let body = el(
        "body",
        &[],
        [
            el("a", &[("class", "skip"), ("href", "#main")], [text("To the content")]),
            top,
            el("main", &[("id", "main")], [content]),
        ],
    );
    el("html", &[("lang", "en")], [head, body]).into_page()
}

fn link(to: &str, words: &str) -> Html {
    el("a", &[("href", to)], [text(words)])
}

/// Where a session's page is. An id has no character that an address would need to escape.
fn session_path(id: &SessionId) -> String {
    format!("{LIST}/sessions/{}", id.as_str())
}

/// A status as a glyph and a word, so that colour is not needed.
fn badge(status: Status) -> Html {
    let (glyph, tone) = match status {
        Status::Initiated | Status::Running => ("▸", Tone::Begun),
        Status::Waiting => ("‖", Tone::Warn),
        Status::Succeeded => ("✓", Tone::Good),
        Status::Failed | Status::TimedOut => ("✗", Tone::Bad),
        Status::Cancelled | Status::Rejected => ("■", Tone::Warn),
    };
    let class = format!("badge {}", tone.as_str());
    el("span", &[("class", &class)], [text(format!("{glyph} {}", word(status)))])
}

fn word(status: Status) -> String {
    status.as_str().replace('_', " ").to_lowercase()
}

/// A moment to the second, in UTC: whoever serves the page knows no reader's zone.
fn when(stamp: Stamp) -> Html {
    let exact = stamp.to_string();
    let short = format!("{} {} UTC", &exact[..10], &exact[11..19]);
    el("time", &[("datetime", &exact)], [text(short)])
}

fn duration(ms: u64) -> String {
    brief::duration(Duration::from_millis(ms))
}

/// Tokens and what they cost; nothing if there were none.
fn used(tokens: u64, usd: f64) -> String {
    match (tokens, usd > 0.0) {
        (0, _) => String::new(),
        (_, true) => format!("{} tokens · ${usd:.4}", brief::number(tokens)),
        (_, false) => format!("{} tokens", brief::number(tokens)),
    }
}

#[cfg(test)]
mod tests;
