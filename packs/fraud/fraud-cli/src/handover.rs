//! The case file of a batch: a page and a table that a person can hand on, with the cited payments.
//!
//! Names of merchants and everything else in the data are untrusted text: the page escapes them, and no
//! cell of the table is a formula in a spreadsheet.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use card_transactions::Payment;
use files::private;
use serde_json::Value;
use views::text::clean;

use super::report::{self, Investigated};

pub const PAGE: &str = "case.html";
pub const TABLE: &str = "case.csv";

/// Columns of the table. Each line is one cited payment of a finding.
const COLUMNS: [&str; 24] = [
    "rank",
    "transaction_id",
    "session_id",
    "status",
    "action",
    "severity",
    "score",
    "score_is",
    "evidence",
    "confidence",
    "finding",
    "strength",
    "explanation",
    "cited_transaction_id",
    "timestamp",
    "card_id",
    "merchant_id",
    "merchant_category",
    "amount",
    "currency",
    "country",
    "city",
    "channel",
    "error",
];

/// A case file. The payments are the worst first.
pub struct Case<'a> {
    /// Name of the data.
    pub source: &'a str,
    pub done: &'a [Investigated],
    /// The payments that were asked for and not investigated.
    pub left_out: &'a [String],
    /// Payments of the data, by id.
    pub payments: &'a BTreeMap<String, Payment>,
    /// Lines about the quality of the scores.
    pub quality: &'a [String],
}

/// Checks that the folder has no case file yet.
///
/// # Errors
/// When it has one: it may have been handed on already.
pub fn check(folder: &Path) -> Result<(), String> {
    let existing = [PAGE, TABLE].into_iter().find(|name| folder.join(name).exists());
    existing.map_or(Ok(()), |name| Err(format!("{} exists", folder.join(name).display())))
}

/// Writes the page and the table, for this user alone. Returns their paths.
///
/// # Errors
/// When a file cannot be written.
pub fn write(folder: &Path, case: &Case<'_>) -> io::Result<[PathBuf; 2]> {
    private::folder(folder)?;
    let paths = [folder.join(PAGE), folder.join(TABLE)];
    private::write(&paths[0], case.page().as_bytes())?;
    private::write(&paths[1], &case.table()?)?;
    Ok(paths)
}

/// Every payment that a finding cites, and the investigated ones.
pub fn cited(done: &[Investigated]) -> BTreeSet<&str> {
    let own = done.iter().map(|investigated| investigated.id.as_str());
    own.chain(done.iter().flat_map(|i| i.findings().iter().flat_map(rows))).collect()
}

fn rows(finding: &Value) -> Vec<&str> {
    let rows = finding.get("rows").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    rows.iter().filter_map(Value::as_str).collect()
}

impl Case<'_> {
    fn table(&self) -> io::Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(COLUMNS)?;
        for (at, investigated) in self.done.iter().enumerate() {
            for line in self.lines(at + 1, investigated) {
                writer.write_record(line.map(|cell| safe_cell(&cell)))?;
            }
        }
        for id in self.left_out {
            let mut line: [String; COLUMNS.len()] = Default::default();
            line[1].clone_from(id);
            "not investigated".clone_into(&mut line[3]);
            writer.write_record(line.map(|cell| safe_cell(&cell)))?;
        }
        writer.into_inner().map_err(|error| io::Error::other(error.to_string()))
    }

    /// A line for each cited payment; one without a finding if there is none.
    fn lines(&self, rank: usize, of: &Investigated) -> Vec<[String; COLUMNS.len()]> {
        let share =
            |share: Option<f64>| share.map_or_else(String::new, |share| format!("{share:.3}"));
        let line = |finding: Option<&Value>, cited: &str| {
            let part = |name: &str| {
                let text = finding.and_then(|finding| finding.get(name)?.as_str());
                text.unwrap_or_default().to_owned()
            };
            let strength = finding.and_then(|finding| finding.get("strength")?.as_f64());
            let paid = self.payments.get(cited);
            let of_row = |field: fn(&Payment) -> &str| {
                paid.map_or_else(String::new, |payment| field(payment).to_owned())
            };
            [
                rank.to_string(),
                of.id.clone(),
                of.session_id().to_owned(),
                of.status().to_owned(),
                of.action().unwrap_or("not assessed").to_owned(),
                of.severity().unwrap_or_default().to_owned(),
                share(of.score()),
                of.score_is().to_owned(),
                share(of.evidence()),
                share(of.confidence()),
                part("pattern"),
                share(strength),
                part("explanation"),
                cited.to_owned(),
                of_row(|payment| &payment.timestamp),
                of_row(|payment| &payment.card_id),
                of_row(|payment| &payment.merchant_id),
                of_row(|payment| &payment.merchant_category),
                of_row(|payment| &payment.amount),
                of_row(|payment| &payment.currency),
                of_row(|payment| &payment.country),
                of_row(|payment| &payment.city),
                of_row(|payment| payment.channel.as_str()),
                of.error().unwrap_or_default().to_owned(),
            ]
        };
        let findings = of.findings();
        if findings.is_empty() {
            return vec![line(None, &of.id)];
        }
        let each =
            |finding| rows(finding).into_iter().map(|row| line(Some(finding), row)).collect();
        findings.iter().flat_map(|finding| -> Vec<_> { each(finding) }).collect()
    }

    fn page(&self) -> String {
        let mut page = String::from(HEAD);
        let counts = report::counts(self.done);
        push(&mut page, "h1", &format!("Card payments: {} investigated", self.done.len()));
        push(&mut page, "p", &format!("{counts}. Data: {}.", self.source));
        push(
            &mut page,
            "p",
            "The payments are listed worst first. Each finding cites the payments that show it. An agent wrote \
             this; a person decides. `daybook show SESSION` has the records.",
        );
        for line in self.quality {
            push(&mut page, "pre", line);
        }
        if !self.left_out.is_empty() {
            let ids = self.left_out.join(", ");
            push(&mut page, "p", &format!("Not investigated: {ids}."));
        }
        page.push_str(&self.overview());
        for (at, investigated) in self.done.iter().enumerate() {
            page.push_str(&self.section(at + 1, investigated));
        }
        page.push_str("</body></html>\n");
        page
    }

    fn overview(&self) -> String {
        let row = |(at, of): (usize, &Investigated)| {
            let cells = [
                (at + 1).to_string(),
                of.id.clone(),
                of.action().unwrap_or("not assessed").replace('_', " "),
                of.judged().to_owned(),
                of.score().map_or_else(|| "none".to_owned(), report::percent),
                of.score_is().to_owned(),
            ];
            table_row("td", &cells)
        };
        let head = ["", "Payment", "Action", "Severity", "Score", "Score is"].map(str::to_owned);
        let rows: String = self.done.iter().enumerate().map(row).collect();
        format!("<table>{}{rows}</table>\n", table_row("th", &head))
    }

    fn section(&self, rank: usize, of: &Investigated) -> String {
        let mut page = String::from("<section>");
        push(&mut page, "h2", &format!("{rank}. {}", of.id));
        push(&mut page, "p", of.summary().unwrap_or("The payment was not assessed."));
        if let Some(error) = of.error() {
            push(&mut page, "p", &format!("Error: {error}"));
        }
        if let Some(basis) = of.basis() {
            push(&mut page, "p", &format!("Score: {basis}."));
        }
        for advice in of.recommendations() {
            let part = |name: &str| advice.get(name).and_then(Value::as_str).unwrap_or_default();
            let action = part("action").replace('_', " ");
            push(&mut page, "p", &format!("Recommended: {action}. {}", part("reason")));
        }
        push(&mut page, "p", &format!("Session {}", of.session_id()));
        page.push_str(&self.payments(&[of.id.as_str()]));
        for finding in of.findings() {
            let part = |name: &str| finding.get(name).and_then(Value::as_str).unwrap_or_default();
            let strength = finding.get("strength").and_then(Value::as_f64);
            let strength = strength.map_or_else(String::new, report::percent);
            push(&mut page, "h3", &format!("{} {strength}", part("pattern").replace('_', " ")));
            push(&mut page, "p", part("explanation"));
            page.push_str(&self.payments(&rows(finding)));
        }
        page.push_str("</section>\n");
        page
    }

    /// The cited payments; ids alone where the data are a service.
    fn payments(&self, ids: &[&str]) -> String {
        let row = |id: &&str| match self.payments.get(*id) {
            Some(payment) => table_row(
                "td",
                &[
                    (*id).to_owned(),
                    payment.timestamp.clone(),
                    payment.card_id.clone(),
                    format!("{} ({})", payment.merchant_id, payment.merchant_category),
                    format!("{} {}", payment.amount, payment.currency),
                    format!("{} ({})", payment.city, payment.country),
                    payment.channel.as_str().to_owned(),
                ],
            ),
            None => table_row("td", &[(*id).to_owned()]),
        };
        let head = ["Payment", "Time", "Card", "Merchant", "Amount", "Place", "Channel"]
            .map(str::to_owned);
        let rows: String = ids.iter().map(row).collect();
        format!("<table>{}{rows}</table>\n", table_row("th", &head))
    }
}

/// No scripts, nothing from elsewhere.
const HEAD: &str = "<!doctype html>
<html lang=\"en\"><head><meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">
<meta name=\"referrer\" content=\"no-referrer\"><title>Case file</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1rem; }
td, th { border: 1px solid #bbb; padding: .2rem .5rem; text-align: left; overflow-wrap: anywhere; }
section { border-top: 2px solid #444; margin-top: 2rem; break-inside: avoid; }
pre { margin: 0; }
</style></head><body>
";

fn push(page: &mut String, tag: &str, text: &str) {
    page.push_str(&format!("<{tag}>{}</{tag}>\n", escaped(text)));
}

fn table_row(tag: &str, cells: &[String]) -> String {
    let cells: String =
        cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
    format!("<tr>{cells}</tr>")
}

/// Text for an element or a quoted attribute, without characters that deceive a reader.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A cell that no spreadsheet takes for a formula: an apostrophe comes before a text that could be one. Plain
/// numbers stay.
///
/// Source: OWASP, "CSV Injection". Spreadsheets also skip spaces and take full-width signs.
fn safe_cell(text: &str) -> String {
    let text = clean(text);
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite)
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '.'));
    let first = text.chars().find(|c| !c.is_whitespace());
    let is_risky = first.is_some_and(|c| {
        matches!(c, '=' | '+' | '-' | '@' | '|' | '%' | '\\' | '＝' | '＋' | '－' | '＠' | '−')
    });
    if is_risky && !is_number { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use card_transactions::Channel;
    use serde_json::json;

    use super::*;

    const EVIL: &str = "=HYPERLINK(\"http://x\",\"y\")<script>alert(1)</script>\u{202e}\"'&";

    fn payment(merchant: &str) -> Payment {
        Payment {
            transaction_id: "t0".to_owned(),
            timestamp: "2026-01-01T00:00:00Z".to_owned(),
            card_id: "c1".to_owned(),
            merchant_id: merchant.to_owned(),
            merchant_category: "shop".to_owned(),
            amount: "-89.00".to_owned(),
            currency: "EUR".to_owned(),
            country: "DE".to_owned(),
            city: "Köln".to_owned(),
            channel: Channel::Online,
        }
    }

    fn investigated() -> Investigated {
        let result = json!({
            "score": 0.9, "severity": "CRITICAL", "confidence_score": 0.8,
            "calibration": {"is_calibrated": false, "basis": "uncalibrated: few", "evidence": 0.9},
            "findings": [{"pattern": "velocity", "strength": 0.7, "explanation": EVIL, "rows": ["t0", "t1"]}],
            "recommendations": [{"action": "block_card", "reason": EVIL}],
        });
        let session = json!({"session_id": "s-1", "status": "SUCCEEDED", "result": result});
        Investigated { id: "t1".to_owned(), session }
    }

    fn written() -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let (done, quality) = ([investigated()], ["area".to_owned()]);
        let payments = BTreeMap::from([("t0".to_owned(), payment(EVIL))]);
        let case = Case {
            source: EVIL,
            done: &done,
            left_out: &["@SUM(1)".to_owned()],
            payments: &payments,
            quality: &quality,
        };
        let folder = folder.path().join("new");
        let paths = write(&folder, &case).unwrap();
        assert!(check(&folder).unwrap_err().ends_with("case.html exists"));
        for path in &paths {
            assert!(!private::is_open_to_others(path).unwrap());
        }
        assert!(!private::is_open_to_others(&folder).unwrap());
        let [page, table] = paths.map(|path| std::fs::read_to_string(path).unwrap());
        (page, table)
    }

    #[test]
    fn everything_in_the_page_is_escaped() {
        let (page, _) = written();
        assert!(!page.contains("<script") && !page.contains('\u{202e}'), "{page}");
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
        for text in ["t1", "block card", "velocity 70.0 %", "s-1", "uncalibrated: few", "Köln (DE)"]
        {
            assert!(page.contains(text), "{text}");
        }
        assert!(page.contains("Not investigated: @SUM(1)."));
    }

    #[test]
    fn no_cell_of_the_table_is_a_formula() {
        let (_, table) = written();
        let mut reader = csv::Reader::from_reader(table.as_bytes());
        let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        // Two cited payments, and one that was not investigated.
        assert_eq!(lines.len(), 3);
        assert_eq!((&lines[0][13], &lines[1][13]), ("t0", "t1"));
        assert_eq!(&lines[0][18], "-89.00", "a plain number stays");
        assert!(lines[0][16].starts_with("'=HYPERLINK"), "{:?}", lines[0]);
        for line in &lines {
            for cell in line {
                let first = cell.chars().next();
                let is_number = cell.parse::<f64>().is_ok();
                assert!(!first.is_some_and(|c| "=+-@|%".contains(c)) || is_number, "{cell}");
                assert!(!cell.contains(['\n', '\r', '\t']), "{cell:?}");
            }
        }
    }

    #[test]
    fn formulas_are_recognised_in_every_disguise() {
        for text in [
            "=1+1", " =1", "\t=1", "+1+cmd", "-1+1", "@A1", "＝1", "%0A=1", "-", "--1", "-1e5x",
            "|x",
        ] {
            assert!(safe_cell(text).starts_with('\''), "{text:?} {:?}", safe_cell(text));
        }
        for text in ["12.50", "-89.00", "Köln", "a=b", ""] {
            assert_eq!(safe_cell(text), text);
        }
    }
}
