//! Reads the values, thresholds and alarms of optical modules, as devices print them.
//!
//! Sources: Junos, `show interfaces diagnostics optics`; Cisco IOS, `show interfaces transceiver detail`; NX-OS,
//! `show interface transceiver details`; Arista EOS, `show interfaces transceiver detail`.

use serde_json::{Map, Value, json};

use super::columns::{Block, is_rule};
use super::query;

/// What is measured, by a word of its heading in lower case: the longer first.
const MEASURED: &[(&str, &str)] = &[
    ("receive power", "rx_power_dbm"),
    ("rx power", "rx_power_dbm"),
    ("transmit power", "tx_power_dbm"),
    ("tx power", "tx_power_dbm"),
    ("temperature", "temperature"),
    ("voltage", "voltage"),
    ("current", "bias_current"),
];

/// The bounds of a row, as their headings are ordered.
const BOUNDS_IOS: [&str; 4] = ["high_alarm", "high_warning", "low_warning", "low_alarm"];
const BOUNDS_NXOS: [&str; 4] = ["high_alarm", "low_alarm", "high_warning", "low_warning"];

/// What a module without light measures, in dBm.
const NO_LIGHT_DBM: f64 = -40.0;

/// How many lines above the first row headings may take.
const HEADING_LINES_MAX: usize = 5;

pub(super) fn block(lines: &[&str]) -> Option<Block> {
    ios(lines).or_else(|| nxos(lines))
}

fn small(line: &str) -> String {
    line.trim().to_lowercase()
}

/// What a line such as `Laser rx power low alarm : Off` shows; `None` if it is none, and nothing if it says nothing
/// about health.
pub(super) fn junos(line: &str) -> Option<Option<(String, Value)>> {
    let (name, value) = line.split_once(" : ")?;
    let name = small(name);
    let of = ["laser ", "module ", "receiver signal", "lane "];
    if !of.iter().any(|word| name.starts_with(word)) {
        return None;
    }
    let value = value.trim();
    let key = name
        .replace("receiver signal average optical power", "rx power")
        .replace("laser receiver power", "rx power")
        .replace("laser rx power", "rx power")
        .replace("laser output power", "tx power")
        .replace("rx power", "rx_power_dbm")
        .replace("tx power", "tx_power_dbm");
    let is_flag = ["on", "off"].contains(&value.to_lowercase().as_str());
    // A flag or a threshold of a power has the power's name without its unit.
    let key = if key.ends_with("dbm") { key } else { key.replace("_dbm", "") };
    let key = key.split_whitespace().collect::<Vec<_>>().join("_");
    let dbm = value.split('/').find_map(|part| part.trim().strip_suffix("dBm"));
    let dbm = dbm.and_then(|dbm| dbm.trim().parse::<f64>().ok());
    let shown = match dbm {
        _ if is_flag => Some((key, json!(value))),
        Some(dbm) => Some((key.replace("_threshold", ""), json!(dbm))),
        None if value.to_lowercase().contains("inf") => Some((key, json!(NO_LIGHT_DBM))),
        // The device's own flags judge the other quantities.
        None => None,
    };
    // A bound beside a flag of the same name.
    Some(shown.map(|(key, value)| {
        (
            if value.is_number() && name.contains("threshold") {
                format!("{key}_bound")
            } else {
                key
            },
            value,
        )
    }))
}

/// The number in a cell, and whether the device marks it as outside of its thresholds.
fn measured(cells: &[&str]) -> Vec<f64> {
    cells.iter().filter_map(|cell| cell.parse::<f64>().ok()).collect()
}

fn is_mark(cell: &str) -> bool {
    ["++", "+", "-", "--"].contains(&cell)
}

fn members(
    port: &str,
    name: &str,
    numbers: &[f64],
    bounds: [&str; 4],
    mark: Option<&str>,
) -> Value {
    let mut members = Map::new();
    members.insert("port".to_owned(), json!(port));
    members.insert(name.to_owned(), json!(numbers[0]));
    let stem = name.trim_end_matches("_dbm");
    for (bound, number) in bounds.iter().zip(&numbers[1..]) {
        members.insert(format!("{stem}_{bound}"), json!(number));
    }
    let side = |mark: &str| if mark.starts_with('+') { "high" } else { "low" };
    if let Some(mark) = mark {
        let what = if mark.len() > 1 { "alarm" } else { "warning" };
        members.insert(format!("{stem}_{}_{what}_flag", side(mark)), json!("on"));
    }
    Value::Object(members)
}

/// Rows of a port, its value and four thresholds, below headings of up to three lines.
fn ios(lines: &[&str]) -> Option<Block> {
    let first = small(lines.first()?);
    if !first.contains("high alarm") || !first.contains("low alarm") {
        return None;
    }
    let head: Vec<String> = lines
        .iter()
        .take(HEADING_LINES_MAX)
        .take_while(|line| !is_rule(line))
        .map(|line| small(line))
        .collect();
    let joined = head.join(" ");
    let last = head.last()?;
    if !last.starts_with("port") {
        return None;
    }
    let is_power = joined.contains("optical");
    let name = match () {
        () if is_power && joined.contains("receive") => "rx_power_dbm",
        () if is_power => "tx_power_dbm",
        () => MEASURED.iter().find(|(word, _)| joined.contains(word))?.1,
    };
    let mut used = head.len();
    let mut found = Vec::new();
    for line in &lines[head.len()..] {
        let cells: Vec<&str> = line.split_whitespace().collect();
        if is_rule(line) {
            used += 1;
            continue;
        }
        let Some((port, rest)) = cells.split_first().filter(|(port, _)| query::is_interface(port))
        else {
            break;
        };
        let numbers = measured(rest);
        used += 1;
        if numbers.len() < 5 {
            found.push(json!({"port": port, "optics_row": line.trim()}));
            continue;
        }
        let mark = rest.iter().copied().find(|cell| is_mark(cell));
        // Lanes stand before the value.
        found.push(members(port, name, &numbers[numbers.len() - 5..], BOUNDS_IOS, mark));
    }
    (!found.is_empty()).then(|| Block { lines: used, shown: vec![("optics", json!(found))] })
}

/// A port, facts about its module, and rows of a value with four thresholds.
fn nxos(lines: &[&str]) -> Option<Block> {
    let port = lines.first()?.trim();
    if !query::is_interface(port) || !small(lines.get(1)?).starts_with("transceiver is") {
        return None;
    }
    let (mut used, mut found) = (1, Vec::new());
    for line in &lines[1..] {
        let text = small(line);
        if query::is_interface(line.trim()) {
            break;
        }
        let has_value = text.contains(|c: char| c.is_ascii_digit()) || text.contains("n/a");
        let row = MEASURED.iter().find(|(word, _)| has_value && text.starts_with(word));
        if let Some((word, name)) = row {
            let rest = &line.trim()[word.len()..];
            let cells: Vec<&str> = rest.split_whitespace().collect();
            let numbers = measured(&cells);
            if numbers.len() >= 5 {
                let mark = cells.iter().copied().find(|cell| is_mark(cell));
                found.push(members(port, name, &numbers[..5], BOUNDS_NXOS, mark));
            } else {
                found.push(json!({"port": port, "optics_row": line.trim()}));
            }
        } else if super::logs::is_bad(&text)
            && !text.starts_with("note:")
            && !text.contains("fault count = 0")
        {
            break;
        }
        used += 1;
    }
    (!found.is_empty()).then(|| Block { lines: used, shown: vec![("optics", json!(found))] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<Value> {
        let lines: Vec<&str> = text.lines().collect();
        let block = block(&lines).unwrap();
        assert_eq!(block.lines, lines.len(), "{text}");
        block.shown[0].1.as_array().unwrap().clone()
    }

    #[test]
    fn thresholds_of_ios_are_read() {
        let found = shown(
            "           Optical               High Alarm  High Warn  Low Warn   Low Alarm\n\
             \x20          Receive Power         Threshold   Threshold  Threshold  Threshold\n\
             Port       (dBm)                 (dBm)       (dBm)      (dBm)      (dBm)\n\
             ---------  ------------------    ----------  ---------  ---------  ---------\n\
             Te1/1/1    -4.2                   2.0         -1.0       -9.9      -13.9\n\
             Te1/1/2    -25.2  --              2.0         -1.0       -9.9      -13.9",
        );
        assert_eq!(found[0]["rx_power_dbm"], -4.2);
        assert_eq!(found[0]["rx_power_low_alarm"], -13.9);
        assert_eq!(found[0].get("rx_power_low_alarm_flag"), None);
        assert_eq!(found[1]["rx_power_low_alarm_flag"], "on");
    }

    #[test]
    fn thresholds_of_nxos_are_read() {
        let found = shown(
            "Ethernet1/1\n    transceiver is present\n    type is 10Gbase-LR\n\
             \x20               Current              Alarms                  Warnings\n\
             \x20 Temperature   35.33 C        75.00 C     -5.00 C     70.00 C        0.00 C\n\
             \x20 Rx Power      -4.11 dBm       1.99 dBm  -13.97 dBm   -1.00 dBm       -9.91 dBm\n\
             \x20 Transmit Fault Count = 0\n\
             \x20 Note: ++  high-alarm; +  high-warning; --  low-alarm; -  low-warning",
        );
        assert_eq!(found.len(), 2);
        assert_eq!(found[1]["rx_power_low_warning"], -9.91);
        assert_eq!(found[1]["port"], "Ethernet1/1");
    }
}
