//! An agent's conclusion for people: plain data that the terminal and the page render in the same way.
//!
//! An agent converts its result to a [`Conclusion`] ([`crate::presentation`]); [`generic`] converts any
//! result. All texts and lists are bounded before a viewer gets them.

pub mod generic;
pub mod read;

use serde::Serialize;

/// Most entries of a list: findings, actions, facts, rows of a table.
pub const ITEMS_MAX: usize = 100;

/// Most tables, and most notes.
pub const SECTIONS_MAX: usize = 20;

/// Most columns of a table.
pub const COLUMNS_MAX: usize = 12;

/// Longest name, label or heading, in characters.
pub const NAME_CHARS_MAX: usize = 200;

/// Longest sentence, value or cell, in characters.
pub const TEXT_CHARS_MAX: usize = 4_000;

/// Most characters of all texts of a conclusion together.
pub const CHARS_MAX: usize = 200_000;

/// The assessment of a value. A value that the agent did not check is never [`Tone::Good`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Checked and good.
    Good,
    /// Checked and bad.
    Bad,
    /// Needs attention: partly checked, not assessed, or suspicious.
    Warn,
    /// No assessment.
    #[default]
    Neutral,
}

/// What an agent concluded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conclusion {
    /// The kind of conclusion, such as "Diagnosis".
    pub title: &'static str,
    /// `None` if the agent gives no verdict.
    pub verdict: Option<Verdict>,
    /// A few sentences; may be empty.
    pub summary: String,
    pub headings: Headings,
    pub facts: Vec<Fact>,
    /// An action refers to a finding by its index.
    pub findings: Vec<Finding>,
    /// The most urgent first.
    pub actions: Vec<Action>,
    pub tables: Vec<Table>,
    pub notes: Vec<Note>,
}

/// The agent's verdict in a word or two, such as "likely fraud".
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub word: String,
    pub tone: Tone,
}

/// The headings of a conclusion's parts, in the agent's own terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Headings {
    /// Empty for no heading.
    pub summary: &'static str,
    pub findings: &'static str,
    pub actions: &'static str,
}

/// A named value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fact {
    pub name: String,
    pub value: String,
    pub tone: Tone,
    /// In thousandths; viewers draw it as a bar.
    pub share_permille: Option<u16>,
}

/// A fact that supports the conclusion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its name, such as the pattern that it shows.
    pub label: Option<String>,
    pub text: String,
    pub tone: Tone,
    pub evidence: Option<Evidence>,
    /// The JSON pointer of the claim in the result.
    pub claim: Option<String>,
}

/// The evidence of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Readable, such as the tool and the field.
    pub source: String,
    /// The quoted value; empty if the agent searched and found nothing.
    pub quote: Option<String>,
    /// The record that shows it.
    #[serde(skip)]
    pub record: Option<RecordAt>,
}

/// A place in a tool's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordAt {
    /// `None` for any tool.
    pub tool: Option<String>,
    pub place: Place,
}

/// A place in a tool's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The whole content.
    Whole,
    /// A JSON pointer. `/error` also means the error of a failed call.
    Pointer(String),
    /// The first object of the list at a JSON pointer whose field has this value.
    Item { list: String, field: String, value: String },
}

/// A recommended action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Action {
    pub title: String,
    /// May be empty.
    pub details: String,
    /// One or two words each, such as "needs approval".
    pub notes: Vec<String>,
    /// The findings that justify it, by index.
    pub evidence: Vec<usize>,
}

/// A table. Each row has one cell per column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
}

/// Lines of text under a heading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Note {
    pub title: String,
    pub lines: Vec<String>,
    pub tone: Tone,
}

impl Default for Headings {
    fn default() -> Self {
        Self { summary: "", findings: "Findings", actions: "What to do next" }
    }
}

impl Verdict {
    pub fn new(word: impl Into<String>, tone: Tone) -> Self {
        Self { word: word.into(), tone }
    }
}

impl Fact {
    pub fn new(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: value.into(), ..Self::default() }
    }

    #[must_use]
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

impl Action {
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }
}

impl Cell {
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), tone: Tone::Neutral }
    }
}

impl Table {
    pub fn new(title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Self { title: title.to_owned(), columns, rows: Vec::new() }
    }
}

impl Conclusion {
    /// Truncates to the limits of this module, and adds a note if anything was truncated.
    pub(crate) fn bounded(mut self) -> Self {
        let mut cut = Cut { is_cut: false, chars_left: CHARS_MAX };
        if let Some(verdict) = &mut self.verdict {
            cut.name(&mut verdict.word);
        }
        cut.text(&mut self.summary);
        cut.list(&mut self.facts, ITEMS_MAX);
        for fact in &mut self.facts {
            cut.name(&mut fact.name);
            cut.text(&mut fact.value);
            fact.share_permille = fact.share_permille.map(|share| share.min(1_000));
        }
        cut.list(&mut self.findings, ITEMS_MAX);
        for finding in &mut self.findings {
            finding.label.iter_mut().for_each(|label| cut.name(label));
            cut.text(&mut finding.text);
            let Some(evidence) = &mut finding.evidence else { continue };
            cut.text(&mut evidence.source);
            evidence.quote.iter_mut().for_each(|quote| cut.text(quote));
        }
        let findings = self.findings.len();
        cut.list(&mut self.actions, ITEMS_MAX);
        for action in &mut self.actions {
            cut.text(&mut action.title);
            cut.text(&mut action.details);
            cut.list(&mut action.notes, SECTIONS_MAX);
            action.notes.iter_mut().for_each(|note| cut.name(note));
            cut.list(&mut action.evidence, ITEMS_MAX);
            action.evidence.retain(|index| *index < findings);
        }
        cut.list(&mut self.tables, SECTIONS_MAX);
        self.tables.iter_mut().for_each(|table| cut.table(table));
        cut.list(&mut self.notes, SECTIONS_MAX);
        for note in &mut self.notes {
            cut.name(&mut note.title);
            cut.list(&mut note.lines, ITEMS_MAX);
            note.lines.iter_mut().for_each(|line| cut.text(line));
        }
        if cut.is_cut {
            let line = "Truncated; the session's result is complete.".to_owned();
            self.notes.push(Note { lines: vec![line], ..Note::default() });
        }
        self
    }
}

/// Truncates to the limits, and records whether anything was truncated.
struct Cut {
    is_cut: bool,
    chars_left: usize,
}

impl Cut {
    fn name(&mut self, text: &mut String) {
        self.clip(text, NAME_CHARS_MAX);
    }

    fn text(&mut self, text: &mut String) {
        self.clip(text, TEXT_CHARS_MAX);
    }

    fn clip(&mut self, text: &mut String, chars_max: usize) {
        self.is_cut |= clip(text, chars_max.min(self.chars_left));
        self.chars_left = self.chars_left.saturating_sub(text.chars().count());
    }

    fn list<T>(&mut self, list: &mut Vec<T>, items_max: usize) {
        self.is_cut |= list.len() > items_max;
        list.truncate(items_max);
    }

    fn table(&mut self, table: &mut Table) {
        self.name(&mut table.title);
        self.list(&mut table.columns, COLUMNS_MAX);
        table.columns.iter_mut().for_each(|name| self.name(name));
        self.list(&mut table.rows, ITEMS_MAX);
        for row in &mut table.rows {
            row.resize(table.columns.len(), Cell::default());
            row.iter_mut().for_each(|cell| self.text(&mut cell.text));
        }
    }
}

/// Truncates a text, with an ellipsis as the last character. Returns whether it was longer.
pub(crate) fn clip(text: &mut String, chars_max: usize) -> bool {
    if text.char_indices().nth(chars_max).is_none() {
        return false;
    }
    let end = text.char_indices().nth(chars_max.saturating_sub(1)).map_or(0, |(at, _)| at);
    text.truncate(end);
    text.push('…');
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conclusion_is_truncated_to_its_limits() {
        let long = "ä".repeat(TEXT_CHARS_MAX + 1);
        let many = ITEMS_MAX + 1;
        let finding =
            Finding { label: Some(long.clone()), text: long.clone(), ..Finding::default() };
        let action = Action { evidence: (0..many).collect(), ..Action::new(long.clone()) };
        let mut rows = vec![vec![Cell::from("x"); many]; many];
        rows[0][0] = long.as_str().into();
        let table = Table { rows, ..Table::new(&long, &vec!["c"; many]) };
        let fact = Fact { share_permille: Some(7_000), ..Fact::new(&long, long.clone()) };
        let bounded = Conclusion {
            verdict: Some(Verdict::new(long.clone(), Tone::Bad)),
            summary: long.clone(),
            facts: vec![fact; many],
            findings: vec![finding; many],
            actions: vec![action; many],
            tables: vec![table; 2 * SECTIONS_MAX],
            notes: vec![Note { title: long.clone(), lines: vec![long; 2], ..Note::default() }],
            ..Conclusion::default()
        }
        .bounded();
        assert_eq!(bounded.summary.chars().count(), TEXT_CHARS_MAX);
        assert_eq!((bounded.facts.len(), bounded.findings.len()), (ITEMS_MAX, ITEMS_MAX));
        assert_eq!(bounded.facts[0].share_permille, Some(1_000));
        assert_eq!(bounded.actions[0].evidence.len(), ITEMS_MAX);
        let table = &bounded.tables[0];
        assert_eq!((table.rows.len(), table.rows[0].len()), (ITEMS_MAX, COLUMNS_MAX));
        assert!(bounded.notes.last().unwrap().lines[0].starts_with("Truncated"));
        // Texts beyond the total limit become an ellipsis each.
        assert!(serde_json::to_string(&bounded).unwrap().len() < 10 * CHARS_MAX);
        let small = Conclusion { summary: "x".to_owned(), ..Conclusion::default() };
        assert_eq!(small.clone().bounded(), small, "what fits stays as it is");
    }
}
