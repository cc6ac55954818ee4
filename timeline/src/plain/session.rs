//! A session as a plain page: what came of it, what it asks, and its records on one axis, page by page.

use std::ops::Range;

use graph::question::Decision;
use journal::status::Status;
use serde_json::Value;

use super::html::{Html, all, clipped, el, printed, text};
use super::{Facts, Question, badge, duration, link, page, session_path, used, when};
use crate::brief;
use crate::conclusion::Conclusion;
use crate::evidence::Citation;
use crate::waterfall::{Row, Waterfall};

/// Most records of one page; a longer session has several.
pub const ROWS_MAX: usize = 100;

/// Most bytes of a record, or of any other JSON, that stand on the page; a link leads to what is larger.
pub const JSON_BYTES_MAX: usize = 16_000;

/// Characters of a question's text, and of why it is asked.
const QUESTION_CHARS: usize = 4_000;

/// How long the axis is drawn, in a picture's own units.
const AXIS: u64 = 1_000;

/// The least length of a bar, so that a moment can be seen.
const BAR_MIN: u64 = 4;

/// What a session's page shows.
#[derive(Clone, Debug)]
pub struct Session<'a> {
    /// What is known of it.
    pub facts: Facts<'a>,
    /// What came of it.
    pub conclusion: Option<&'a Conclusion>,
    /// The records that its claims rest on.
    pub citations: &'a [Citation],
    /// Its records on one axis.
    pub waterfall: &'a Waterfall,
    /// Which of them stand on this page.
    pub part: Part,
    /// Those, as JSON, in their order.
    pub records: Vec<Value>,
    /// How the command line is called here, such as `daybook --target aws`.
    pub command: &'a str,
}

/// A part of a session's records that stands on one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    number: usize,
    rows: usize,
}

impl Part {
    /// The part with this number, the first being 1, of so many rows; the last one if it has fewer.
    pub fn of(number: usize, rows: usize) -> Self {
        Self { number: number.clamp(1, rows.div_ceil(ROWS_MAX).max(1)), rows }
    }

    /// The part in which a row stands.
    fn with_row(self, row: usize) -> Self {
        Self::of(row / ROWS_MAX + 1, self.rows)
    }

    /// Its rows.
    pub fn range(self) -> Range<usize> {
        let first = (self.number - 1) * ROWS_MAX;
        first..self.rows.min(first + ROWS_MAX)
    }
}

impl Session<'_> {
    /// The page.
    pub fn page(&self) -> String {
        let id = self.facts.id.as_str();
        let title = format!("{} · Daybook", self.facts.agent.unwrap_or("A session"));
        let content = [
            self.head(),
            all(self.facts.question.as_ref().map(|question| self.question(question))),
            all(self.conclusion.map(|found| self.conclusion(found))),
            all(self.facts.result.map(|result| self.result(result))),
            el("h2", &[("id", "timeline")], [text("Timeline")]),
            self.parts(),
            self.table(),
            self.parts(),
            el(
                "p",
                &[("class", "faint")],
                [
                    text("All of it in the terminal: "),
                    self.shell(&format!("show {id} --steps --payloads")),
                    text(". Whether the records are what was written: "),
                    self.shell(&format!("verify {id}")),
                    text("."),
                ],
            ),
        ];
        page(&title, all(content))
    }

    fn shell(&self, arguments: &str) -> Html {
        el("code", &[], [text(format!("{} {arguments}", self.command))])
    }

    fn head(&self) -> Html {
        let Facts { id, status, agent, .. } = self.facts;
        let facts = &self.facts;
        let name = text(format!(" {}", agent.unwrap_or("no agent")));
        let mut figures = vec![format!("{} steps", brief::number(u64::from(facts.steps)))];
        figures.extend(facts.took_ms.map(duration));
        figures.push(used(facts.tokens, facts.usd));
        figures.retain(|figure| !figure.is_empty());
        let began = facts.began.map(|at| all([text("began "), when(at), text(" · ")]));
        let line = all(began.into_iter().chain([text(figures.join(" · "))]));
        // The conclusion says it with what to do about it.
        let error = facts.error.filter(|_| self.conclusion.is_none());
        let asleep = facts
            .asleep_until
            .map(|until| el("p", &[("class", "warn")], [text("sleeps until "), when(until)]));
        let open = (!status.is_terminal()).then(|| {
            let again = link(&self.address(self.part, None), "Look again");
            let id = id.as_str();
            let says = [
                again,
                text(". To end it: "),
                self.shell(&format!("cancel {id}")),
                text("; if its workflow is gone: "),
                self.shell(&format!("resume {id}")),
            ];
            el("p", &[("class", "faint")], says)
        });
        let head = [
            el("h1", &[], [badge(status), name]),
            el("p", &[], [el("code", &[], [text(id.as_str())])]),
            el("p", &[], [line]),
        ];
        let told = error.map(|error| el("p", &[("class", "bad text")], [text(error)]));
        let all_of_it = head.into_iter().chain(told).chain(asleep).chain(open);
        el("section", &[("class", "head"), ("aria-label", "The session")], all_of_it)
    }

    fn question(&self, question: &Question<'_>) -> Html {
        let id = self.facts.id.as_str();
        let arguments = question.arguments.map(|value| self.json(value, &api(id, "")));
        let would_run = question.tool.map(|tool| {
            let name = el("p", &[], [text("would run "), el("code", &[], [text(tool)])]);
            el("div", &[("class", "call")], std::iter::once(name).chain(arguments))
        });
        let why = question
            .justification
            .map(|why| el("p", &[("class", "faint text")], [clipped(why, QUESTION_CHARS)]));
        let answers = question.choices.iter().filter_map(|choice| {
            let arguments = match choice {
                Decision::Approve => "--approve",
                Decision::Reject => "--reject --reason \"why not\"",
                Decision::Edit => "--edit FILE",
                Decision::Say => "--say \"what you want to say\"",
                Decision::Expired => return None,
            };
            Some(el("li", &[], [self.shell(&format!("answer {id} {arguments}"))]))
        });
        let head = [
            el("h2", &[], [text("A person is asked")]),
            el("p", &[("class", "text")], [clipped(question.prompt, QUESTION_CHARS)]),
        ];
        let foot = [
            el("h3", &[], [text("How to answer, in a terminal")]),
            el("ul", &[], answers),
            el("p", &[("class", "faint")], [text("expires "), when(question.expires_at)]),
        ];
        let all_of_it = head.into_iter().chain(why).chain(would_run).chain(foot);
        el("section", &[("class", "question"), ("aria-label", "The open question")], all_of_it)
    }

    fn conclusion(&self, found: &Conclusion) -> Html {
        let is_bad = self.facts.status != Status::Succeeded;
        let category = self.facts.category.filter(|name| !matches!(*name, "" | "unknown"));
        let tag = category.map(|name| el("code", &[("class", "tag")], [text(name)]));
        let class = if is_bad { "text what bad" } else { "text what" };
        let mut parts = vec![
            el("h2", &[], std::iter::once(text(found.title)).chain(tag)),
            el("p", &[("class", class)], [text(&found.what)]),
        ];
        if let Some(other) = found.session.as_deref().and_then(|id| id.parse().ok()) {
            let there = link(&session_path(&other), other.as_str());
            parts.push(el("p", &[], [text("The other session: "), there]));
        }
        if let Some(spot) = &found.at {
            let row = self.waterfall.rows.iter().position(|row| row.sk == spot.sk);
            let place = row.map_or_else(|| text(&spot.name), |row| self.cite(row, &spot.name));
            parts.push(el("p", &[], [text("Where: "), place]));
        }
        if !found.points.is_empty() {
            let points = found.points.iter().map(|point| {
                let source = point
                    .source
                    .as_ref()
                    .map(|source| el("code", &[("class", "source whole")], [text(source)]));
                let seen = point.claim.as_deref().and_then(|claim| self.citation(claim));
                let said = text(format!("{} ", point.text));
                el("li", &[], std::iter::once(said).chain(seen).chain(source))
            });
            parts.push(el("ul", &[], points));
        }
        if !found.next.is_empty() {
            parts.push(el("h3", &[], [text("What to do next")]));
            let next = found.next.iter().map(|says| el("li", &[("class", "text")], [coded(says)]));
            parts.push(el("ol", &[], next));
        }
        let label = ("aria-label", "What came of it");
        el("section", &[("class", "conclusion"), label], parts)
    }

    /// The record that a claim rests on.
    fn citation(&self, claim: &str) -> Option<Html> {
        let cited = self.citations.iter().find(|citation| citation.claim == claim)?;
        let row = self.waterfall.rows.iter().position(|row| row.seq == Some(cited.seq))?;
        Some(self.cite(row, &format!("→ step {}", cited.seq)))
    }

    fn cite(&self, row: usize, words: &str) -> Html {
        let to = self.address(self.part.with_row(row), Some(row));
        el("a", &[("class", "cite"), ("href", &to)], [text(words)])
    }

    fn result(&self, result: &Value) -> Html {
        let summary = el("summary", &[], [el("h2", &[], [text("Result")])]);
        let value = self.json(result, &api(self.facts.id.as_str(), ""));
        el("section", &[("class", "panel")], [el("details", &[], [summary, value])])
    }

    /// A value, printed if it is small, else where it is.
    fn json(&self, value: &Value, at: &str) -> Html {
        match printed(value, JSON_BYTES_MAX) {
            Some(printed) => {
                let label = [("tabindex", "0"), ("role", "group"), ("aria-label", "JSON")];
                el("pre", &label, [text(printed)])
            }
            None => {
                let words = format!(
                    "more than {} bytes: all of it as JSON",
                    brief::number(JSON_BYTES_MAX as u64)
                );
                el("p", &[], [link(at, &words)])
            }
        }
    }

    // --- the records ---

    fn address(&self, part: Part, row: Option<usize>) -> String {
        let path = session_path(self.facts.id);
        let part = if part.number > 1 { format!("?part={}", part.number) } else { String::new() };
        let row = row.map(|row| format!("#record-{}", row + 1)).unwrap_or_default();
        format!("{path}{part}{row}")
    }

    /// The way to the other parts.
    fn parts(&self) -> Html {
        let Part { number, rows } = self.part;
        let last = rows.div_ceil(ROWS_MAX);
        if last <= 1 {
            return Html::default();
        }
        let range = self.part.range();
        let shown = [range.start + 1, range.end, rows].map(|n| brief::number(n as u64));
        let [from, to, all_of_them] = shown;
        let says = el("span", &[], [text(format!("Records {from} to {to} of {all_of_them}"))]);
        let turns = [
            (number > 1, 1, "First"),
            (number > 1, number - 1, "Before"),
            (number < last, number + 1, "Next"),
            (number < last, last, "Last"),
        ];
        let links = turns
            .into_iter()
            .filter(|(is_there, ..)| *is_there)
            .map(|(_, to, words)| link(&self.address(Part { number: to, rows }, None), words));
        let label = [("class", "bar"), ("aria-label", "Pages of records")];
        el("nav", &label, std::iter::once(says).chain(links))
    }

    fn table(&self) -> Html {
        let names = ["At", "Who", "Record", "What it says", "On the axis", "Took", "Tokens"];
        let heads = names.map(|name| el("th", &[("scope", "col")], [text(name)]));
        let rows = self
            .part
            .range()
            .zip(&self.records)
            .map(|(at, record)| self.row(at, &self.waterfall.rows[at], record));
        let axis = format!("The axis is {} long.", duration(self.waterfall.span_ms));
        let table = el(
            "table",
            &[("class", "records")],
            [
                el("caption", &[("class", "faint")], [text(axis)]),
                el("thead", &[], [el("tr", &[], heads)]),
                el("tbody", &[], rows),
            ],
        );
        el(
            "div",
            &[
                ("class", "wide"),
                ("tabindex", "0"),
                ("role", "group"),
                ("aria-label", "Records, in the order of time"),
            ],
            [table],
        )
    }

    fn row(&self, at: usize, row: &Row, record: &Value) -> Html {
        let lane = &self.waterfall.lanes[row.lane];
        let who = match lane.epoch {
            Some(epoch) if epoch > 1 => format!("{} {epoch}", lane.name),
            _ => lane.name.clone(),
        };
        let name = match row.seq {
            Some(seq) => format!("#{seq} {}", row.name),
            None => row.name.clone(),
        };
        let took =
            if row.to_ms > row.from_ms { duration(row.to_ms - row.from_ms) } else { String::new() };
        let tokens = if row.tokens > 0 { brief::number(row.tokens) } else { String::new() };
        let beside = row
            .beside
            .then(|| el("span", &[("class", "faint")], [text(" (beside the one before)")]));
        let cells = [
            el("td", &[("class", "figure")], [text(format!("+{}", duration(row.from_ms)))]),
            el("td", &[("class", "faint")], [text(who)]),
            el(
                "th",
                &[("scope", "row"), ("class", row.tone.as_str())],
                std::iter::once(text(name)).chain(beside),
            ),
            el("td", &[], [self.said(at, row, record)]),
            el("td", &[("class", "axis-cell")], [self.bar(row)]),
            el("td", &[("class", "figure")], [text(took)]),
            el("td", &[("class", "figure")], [text(tokens)]),
        ];
        el("tr", &[], cells)
    }

    fn said(&self, at: usize, row: &Row, record: &Value) -> Html {
        let more = row.more.as_ref().map(|more| el("p", &[("class", "text")], [text(more)]));
        let skew = row.skew_ms.map(|ms| {
            let side = if ms > 0 { "ahead" } else { "behind" };
            let says = format!("its clock was {} {side}", duration(ms.unsigned_abs()));
            el("p", &[("class", "warn")], [text(says)])
        });
        let waits = self.waterfall.waits.iter().filter(|wait| Some(wait.seq) == row.seq);
        let waited = waits.map(|wait| {
            let word = if wait.is_over { "waited" } else { "has waited" };
            let what = if wait.of == "answer" { "an answer" } else { "a time" };
            let says = format!("{word} {} for {what}", duration(wait.to_ms - wait.from_ms));
            el("p", &[("class", "warn")], [text(says)])
        });
        let query =
            form_urlencoded::Serializer::new(String::new()).append_pair("sk", &row.sk).finish();
        let held = self.json(record, &api(self.facts.id.as_str(), &format!("/record?{query}")));
        // Inside what is folded, so that a link to it unfolds it.
        let place = format!("record-{}", at + 1);
        let held = el("div", &[("id", &place)], [held]);
        let summary = if row.what.is_empty() { "the record" } else { &row.what };
        let folded = el("details", &[], [el("summary", &[], [text(summary)]), held]);
        all(more.into_iter().chain(skew).chain(waited).chain([folded]))
    }

    fn bar(&self, row: &Row) -> Html {
        let span = self.waterfall.span_ms.max(1);
        let x = |ms: u64| ms.min(span).saturating_mul(AXIS) / span;
        let bar = |class: &str, from: u64, to: u64| {
            let wide = x(to).saturating_sub(x(from)).max(BAR_MIN);
            let (left, wide) = (x(from).min(AXIS - BAR_MIN).to_string(), wide.to_string());
            let place = [("x", left.as_str()), ("y", "2"), ("width", &wide), ("height", "6")];
            let attributes: Vec<_> = [("class", class)].into_iter().chain(place).collect();
            el("rect", &attributes, [])
        };
        let waits = self.waterfall.waits.iter().filter(|wait| Some(wait.seq) == row.seq);
        let waited = waits.map(|wait| bar("gap", wait.from_ms, wait.to_ms));
        let own = bar(row.tone.as_str(), row.from_ms, row.to_ms);
        let frame =
            [("viewBox", "0 0 1000 10"), ("preserveAspectRatio", "none"), ("aria-hidden", "true")];
        el("svg", &frame, waited.chain([own]))
    }
}

fn api(id: &str, rest: &str) -> String {
    format!("/api/sessions/{id}{rest}")
}

/// Text with what stands in backticks as code.
fn coded(says: &str) -> Html {
    all(says.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => text(part),
        _ => el("code", &[], [text(part)]),
    }))
}
