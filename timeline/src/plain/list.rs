//! The list of sessions as a plain page: newest first, filtered by a form, going on behind a link.

use form_urlencoded::Serializer;
use journal::status::Status;
use serde_json::Value;

use super::html::{Html, all, clipped, el, text};
use super::{Facts, LIST, badge, duration, link, page, session_path, used, when, word};
use crate::brief;
use crate::told::Tone;

/// Sessions of one page if nothing else is said.
pub const SESSIONS: usize = 50;

/// Characters of what stands out of a session.
const SAID_CHARS: usize = 300;

/// What of a query chooses sessions; the rest of it is passed over.
const FILTERS: [&str; 6] = ["status", "agent", "text", "since", "until", "limit"];

/// Where a page begins: what [`List::more`] said.
const AFTER: &str = "after";

/// A page of the list.
#[derive(Clone, Debug)]
pub struct List<'a> {
    /// What was asked for: the query of the address.
    pub query: &'a str,
    /// The sessions that fit, newest first.
    pub sessions: Vec<Facts<'a>>,
    /// How many were looked at for that.
    pub searched: usize,
    /// Where the next page begins, if there is one.
    pub more: Option<&'a str>,
}

impl List<'_> {
    /// The page.
    pub fn page(&self) -> String {
        let began = form_urlencoded::parse(self.query.as_bytes()).any(|(name, _)| name == AFTER);
        let newest = began.then(|| el("p", &[], [link(&self.address(None), "The newest of them")]));
        let older = self.more.map(|place| {
            let address = self.address(Some(place));
            el("a", &[("href", &address), ("rel", "next")], [text("Older sessions")])
        });
        let count = format!(
            "{} of {} sessions that were looked at. ",
            brief::number(self.sessions.len() as u64),
            brief::number(self.searched as u64)
        );
        let foot = el("p", &[("class", "faint")], [text(count)].into_iter().chain(older));
        let content =
            [el("h1", &[], [text("Sessions")]), self.form(), all(newest), self.table(), foot];
        page("Sessions · Daybook", all(content))
    }

    /// What the query says of a filter; several values with commas.
    fn wish(&self, filter: &str) -> String {
        let pairs = form_urlencoded::parse(self.query.as_bytes());
        let said = pairs.filter(|(name, value)| name == filter && !value.is_empty());
        said.map(|(_, value)| value.into_owned()).collect::<Vec<_>>().join(",")
    }

    /// The address of the same list, from a place on.
    fn address(&self, after: Option<&str>) -> String {
        let mut query = Serializer::new(String::new());
        for name in FILTERS {
            let wish = self.wish(name);
            if !wish.is_empty() {
                query.append_pair(name, &wish);
            }
        }
        query.extend_pairs(after.map(|place| (AFTER, place)));
        match query.finish() {
            query if query.is_empty() => LIST.to_owned(),
            query => format!("{LIST}?{query}"),
        }
    }

    fn form(&self) -> Html {
        let known = Status::ALL.iter().map(|status| (status.as_str().to_owned(), word(*status)));
        let mut statuses: Vec<_> = std::iter::once((String::new(), "all".to_owned())).collect();
        statuses.extend(known);
        let wish = self.wish("status");
        // An address may wish for several, which a choice cannot say.
        if !statuses.iter().any(|(name, _)| *name == wish) {
            statuses.push((wish.clone(), wish.to_lowercase().replace(',', " or ")));
        }
        let options = statuses.iter().map(|(name, words)| {
            let chosen = (*name == wish).then_some(("selected", ""));
            let attributes: Vec<_> = [("value", name.as_str())].into_iter().chain(chosen).collect();
            el("option", &attributes, [text(words)])
        });
        let select = el("select", &[("name", "status")], options);
        let field = |name, label, placeholder| {
            let value = self.wish(name);
            let attributes =
                [("name", name), ("value", value.as_str()), ("placeholder", placeholder)];
            el("label", &[], [text(format!("{label} ")), el("input", &attributes, [])])
        };
        el(
            "form",
            &[("class", "bar"), ("method", "get"), ("action", LIST), ("role", "search")],
            [
                el("label", &[], [text("Status "), select]),
                field("agent", "Agent", "all"),
                field("text", "Text", "id, agent, error, question"),
                field("since", "From", "7d, or 2026-11-22T08:00:00Z"),
                field("until", "To", "now"),
                el("button", &[], [text("Show")]),
            ],
        )
    }

    fn table(&self) -> Html {
        if self.sessions.is_empty() {
            let is_filtered = FILTERS.iter().any(|name| !self.wish(name).is_empty());
            let says = if is_filtered || self.more.is_some() {
                text("None of these sessions fits.")
            } else {
                let command = el("code", &[], [text("daybook trigger --agent checkup")]);
                all([text("No session yet. Start one: "), command])
            };
            return el("p", &[("class", "empty")], [says]);
        }
        let names = ["Status", "Agent", "Began", "Took", "Used", "What stands out"];
        let heads = names.map(|name| el("th", &[("scope", "col")], [text(name)]));
        let rows = self.sessions.iter().map(row);
        el(
            "table",
            &[("class", "listed")],
            [el("thead", &[], [el("tr", &[], heads)]), el("tbody", &[], rows)],
        )
    }
}

fn row(session: &Facts<'_>) -> Html {
    let began = match session.began {
        Some(at) => when(at),
        None => text("not known"),
    };
    let to = session_path(session.id);
    let (tone, said) = stands_out(session);
    let cells = [
        el("td", &[], [badge(session.status)]),
        el("td", &[], [text(session.agent.unwrap_or("—"))]),
        el("td", &[], [el("a", &[("href", &to)], [began])]),
        el(
            "td",
            &[("class", "figure")],
            [text(session.took_ms.map_or_else(String::new, duration))],
        ),
        el("td", &[("class", "figure")], [text(used(session.tokens, session.usd))]),
        el("td", &[("class", tone.as_str())], [clipped(&said, SAID_CHARS)]),
    ];
    el("tr", &[], cells)
}

/// What somebody has to know of a session in one line.
fn stands_out(session: &Facts<'_>) -> (Tone, String) {
    if let Some(question) = &session.question {
        return (Tone::Warn, format!("asks: {}", question.prompt));
    }
    if let Some(until) = session.asleep_until {
        return (Tone::Warn, format!("sleeps until {until}"));
    }
    if let Some(error) = session.error {
        return (Tone::Bad, error.to_owned());
    }
    let found = session.result.and_then(found);
    (Tone::Plain, found.unwrap_or_else(|| format!("{} steps", session.steps)))
}

/// A result in a line, in whichever of the shapes that agents bring.
fn found(result: &Value) -> Option<String> {
    let conclusion = crate::conclusion::found(result).map(|found| found.what);
    let reply = result.get("reply").and_then(Value::as_str).filter(|reply| !reply.is_empty());
    conclusion.or_else(|| reply.map(str::to_owned))
}
