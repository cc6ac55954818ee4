//! Changes to the file of a journal. Each says in `what` what it did, and returns whether it changed anything.

use std::collections::BTreeMap;

use journal::id::SessionId;
use journal::item::Item;
use rusqlite::{Connection, OptionalExtension as _, Result, params};
use serde_json::{Value, json};
use stack::executions::packed;

/// Numbers that a seed determines (splitmix64).
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % bound.max(1) as u64).unwrap()
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// A record, or a part of a payload.
#[derive(Clone)]
struct Row {
    pos: i64,
    pk: String,
    sk: String,
    body: Value,
}

/// The rows of a session, without its lease and its wait, which are no records.
fn rows(file: &Connection, session: &SessionId) -> Result<Vec<Row>> {
    let sql = "SELECT pos, pk, sk, body FROM item JOIN partition ON partition.id = item.partition \
               WHERE (pk = 'SESSION#' || ?1 AND (sk LIKE 'EVENT#%' OR sk LIKE 'STEP#%')) \
                  OR pk LIKE 'BLOB#' || ?1 || '%' ORDER BY pk DESC, sk";
    let mut statement = file.prepare(sql)?;
    let rows = statement.query_map([session.as_str()], |row| {
        let body: String = row.get(3)?;
        let body = serde_json::from_str(&body).unwrap();
        Ok(Row { pos: row.get(0)?, pk: row.get(1)?, sk: row.get(2)?, body })
    })?;
    rows.collect()
}

fn write(file: &Connection, row: &Row) -> Result<bool> {
    let (text, pos) = (row.body.to_string(), row.pos);
    let sql = "UPDATE item SET body = ?1, sk = ?2 WHERE pos = ?3 AND (body <> ?1 OR sk <> ?2)";
    Ok(file.execute(sql, params![text, row.sk, pos])? > 0)
}

impl Row {
    fn item(&self) -> Item {
        let mut json = self.body.clone();
        json["PK"] = json!({ "S": self.pk });
        json["SK"] = json!({ "S": self.sk });
        Item::from_json(&json).unwrap()
    }

    /// Makes its own hash fit again.
    fn rehash(&mut self) {
        if self.body.get("Hash").is_some() {
            self.body["Hash"] = json!({ "S": self.item().hash().as_str() });
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.body[name]["S"].as_str()
    }

    fn is_verdict(&self) -> bool {
        self.text("Status")
            .is_some_and(|status| status.starts_with("SESSION_") && status != "SESSION_INITIATED")
    }
}

/// A change to one session.
pub fn single(
    file: &Connection,
    session: &SessionId,
    draw: &mut Draw,
    what: &mut String,
) -> Result<bool> {
    let rows = rows(file, session)?;
    let at = draw.below(rows.len());
    let row = &rows[at];
    let (kind, name) = (draw.below(16), format!("{} {}", row.pk, row.sk));
    let (did, changed) = match kind {
        0 => ("deleted", delete(file, row)?),
        1 => return attribute(file, row, false, draw, what),
        2 => return attribute(file, row, true, draw, what),
        3 => ("forged with all that follows", forge(file, &rows, at, draw)?),
        4 => ("moved in time", rename(file, row, draw)?),
        5 => ("swapped with another", swap(file, row, draw.of(&rows), draw)?),
        6 => ("deleted with all that follows", truncate(file, &rows, at)?),
        7 => ("expired, and the rest deleted", expire(file, &rows)?),
        8 => ("made unreadable", unreadable(file, row, draw)?),
        9 => ("its column changed", column(file, row, draw)?),
        10 => ("the session deleted", erase(file, session)?),
        11 => ("added once more", again(file, row, draw)?),
        12 => ("the verdict replaced", verdict(file, &rows, draw)?),
        13 => return leaf(file, session, draw, what),
        14 => return tree(file, draw, what),
        _ => ("a junk attribute in every record", junk(file, &rows, draw)?),
    };
    *what = format!("{name}: {did}");
    Ok(changed)
}

fn delete(file: &Connection, row: &Row) -> Result<bool> {
    Ok(file.execute("DELETE FROM item WHERE pos = ?1", [row.pos])? > 0)
}

/// Changes, removes or adds one attribute of a record.
fn attribute(
    file: &Connection,
    row: &Row,
    rehash: bool,
    draw: &mut Draw,
    what: &mut String,
) -> Result<bool> {
    let mut row = row.clone();
    let attributes = row.body.as_object_mut().unwrap();
    let names: Vec<_> = attributes.keys().cloned().collect();
    let name = draw.of(&names).clone();
    let did = match draw.below(4) {
        0 => {
            attributes.remove(&name);
            "removed"
        }
        1 => {
            attributes.insert("Extra".to_owned(), json!({ "S": "x" }));
            "added beside"
        }
        _ => {
            alter(&mut attributes[&name], draw);
            "changed"
        }
    };
    if rehash {
        row.rehash();
    }
    *what = format!("{} {}: {name} {did}, hash made anew: {rehash}", row.pk, row.sk);
    write(file, &row)
}

/// Changes a value a little.
fn alter(value: &mut Value, draw: &mut Draw) {
    if let Some(text) = value["S"].as_str().map(str::to_owned) {
        let mut chars: Vec<char> = text.chars().collect();
        let at = draw.below(chars.len() + 1);
        match chars.get_mut(at) {
            Some(c) => *c = if *c == '1' { '2' } else { '1' },
            None => chars.push('1'),
        }
        *value = json!({ "S": chars.into_iter().collect::<String>() });
    } else if let Some(number) = value["N"].as_str().and_then(|n| n.parse::<i64>().ok()) {
        *value = json!({ "N": (number + 1).to_string() });
    } else {
        *value = json!({ "S": "x" });
    }
}

/// Changes a record, and makes every later hash of its session fit again, the verdict's too.
fn forge(file: &Connection, rows: &[Row], at: usize, draw: &mut Draw) -> Result<bool> {
    let mut rows = rows.to_vec();
    let hidden = ["Hash", "PrevHash", "EndHash", "Seq"];
    let names: Vec<_> = rows[at].body.as_object().unwrap().keys().cloned().collect();
    let name = draw.of(&names).clone();
    if hidden.contains(&name.as_str()) {
        return Ok(false);
    }
    alter(&mut rows[at].body[&name], draw);
    relink(&mut rows);
    let mut changed = false;
    for row in &rows {
        changed |= write(file, row)?;
    }
    Ok(changed)
}

/// Computes every hash of a session anew, from its first step to its verdict.
fn relink(rows: &mut [Row]) {
    let old: Vec<String> =
        rows.iter().map(|row| row.text("Hash").unwrap_or_default().to_owned()).collect();
    let mut renewed: BTreeMap<String, String> = BTreeMap::new();
    // Steps first, then events, the verdict last: the order in which they name one another.
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|at| {
        (rows[*at].is_verdict(), !rows[*at].sk.starts_with("STEP#"), rows[*at].sk.clone())
    });
    for at in order {
        let mut text = rows[at].body.to_string();
        for (from, to) in &renewed {
            text = text.replace(from, to);
        }
        rows[at].body = serde_json::from_str(&text).unwrap();
        rows[at].rehash();
        if let Some(new) = rows[at].text("Hash")
            && !old[at].is_empty()
        {
            renewed.insert(old[at].clone(), new.to_owned());
        }
    }
}

fn rename(file: &Connection, row: &Row, draw: &mut Draw) -> Result<bool> {
    let mut row = row.clone();
    let mut chars: Vec<char> = row.sk.chars().collect();
    let digits: Vec<usize> = (0..chars.len()).filter(|at| chars[*at].is_ascii_digit()).collect();
    if digits.is_empty() {
        return Ok(false);
    }
    let at = *draw.of(&digits);
    chars[at] = if chars[at] == '0' { '1' } else { '0' };
    row.sk = chars.into_iter().collect();
    if draw.below(2) == 0 {
        row.rehash();
    }
    write(file, &row)
}

fn swap(file: &Connection, one: &Row, other: &Row, draw: &mut Draw) -> Result<bool> {
    let (mut one, mut other) = (one.clone(), other.clone());
    std::mem::swap(&mut one.body, &mut other.body);
    if draw.below(2) == 0 {
        one.rehash();
        other.rehash();
    }
    Ok(write(file, &one)? | write(file, &other)?)
}

fn truncate(file: &Connection, rows: &[Row], at: usize) -> Result<bool> {
    let mut changed = false;
    for row in &rows[at..] {
        changed |= delete(file, row)?;
    }
    Ok(changed)
}

/// Leaves the first record alone, with an expiry in the past.
fn expire(file: &Connection, rows: &[Row]) -> Result<bool> {
    for row in rows {
        if row.text("Status") == Some("SESSION_INITIATED") {
            let mut row = row.clone();
            row.body["ExpiresAt"] = json!({ "N": "1" });
            row.rehash();
            write(file, &row)?;
        } else {
            delete(file, row)?;
        }
    }
    Ok(true)
}

fn unreadable(file: &Connection, row: &Row, draw: &mut Draw) -> Result<bool> {
    let sql = match draw.below(4) {
        0 => "UPDATE item SET body = CAST(x'ff' || body AS TEXT) WHERE pos = ?1",
        1 => "UPDATE item SET body = CAST(body AS BLOB) WHERE pos = ?1",
        2 => "UPDATE item SET body = '[]' WHERE pos = ?1",
        _ => "UPDATE item SET sk = CAST(sk AS BLOB) WHERE pos = ?1",
    };
    Ok(file.execute(sql, [row.pos])? > 0)
}

fn column(file: &Connection, row: &Row, draw: &mut Draw) -> Result<bool> {
    let sql = match draw.below(3) {
        0 => "UPDATE item SET day = NULL WHERE pos = ?1 AND day IS NOT NULL",
        1 => "UPDATE item SET day = '1971-01-01' WHERE pos = ?1",
        _ => "UPDATE item SET at = '1971-01-01T00:00:00.000000000Z' WHERE pos = ?1",
    };
    Ok(file.execute(sql, [row.pos])? > 0)
}

/// Removes a session with all that the stack's tables say of it. Its leaves stay.
fn erase(file: &Connection, session: &SessionId) -> Result<bool> {
    let of = "(SELECT id FROM partition WHERE pk LIKE '%#' || ?1 || '%')";
    let id = session.as_str();
    let changed = file.execute(&format!("DELETE FROM item WHERE partition IN {of}"), [id])?;
    file.execute("DELETE FROM partition WHERE pk LIKE '%#' || ?1 || '%'", [id])?;
    file.execute("DELETE FROM execution WHERE name LIKE ?1 || '%'", [id])?;
    Ok(changed > 0)
}

/// A second copy of a record under another key.
fn again(file: &Connection, row: &Row, draw: &mut Draw) -> Result<bool> {
    let mut row = row.clone();
    row.sk = match draw.below(3) {
        0 => format!("{}1", row.sk),
        1 => "STEP#00009999".to_owned(),
        _ => "EVENT#2026-01-01T00:00:00.000000000Z".to_owned(),
    };
    row.rehash();
    let sql = "INSERT INTO item (partition, sk, body, day, at) SELECT partition, ?1, ?2, day, at FROM item WHERE pos = ?3";
    Ok(file.execute(sql, params![row.sk, row.body.to_string(), row.pos])? > 0)
}

/// Another result, with hashes that fit, in the execution's output, too.
fn verdict(file: &Connection, rows: &[Row], draw: &mut Draw) -> Result<bool> {
    let mut rows = rows.to_vec();
    let Some(at) = rows.iter().position(Row::is_verdict) else { return Ok(false) };
    let before = rows[at].text("Hash").unwrap_or_default().to_owned();
    let to = ["SESSION_SUCCEEDED", "SESSION_FAILED", "SESSION_CANCELLED"];
    rows[at].body["Status"] = json!({ "S": *draw.of(&to) });
    relink(&mut rows);
    let after = rows[at].text("Hash").unwrap_or_default().to_owned();
    let changed = write(file, &rows[at])?;
    let sql = "UPDATE execution SET output = replace(output, ?1, ?2)";
    file.execute(sql, params![before, after])?;
    replace_in_histories(file, &before, &after)?;
    Ok(changed)
}

/// Replaces a text in all packed events.
fn replace_in_histories(file: &Connection, before: &str, after: &str) -> Result<()> {
    let mut events = file.prepare("SELECT execution, id, body FROM execution_event")?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let events: Vec<(i64, i64, Vec<u8>)> =
        events.query_map([], read)?.collect::<rusqlite::Result<_>>()?;
    for (execution, id, body) in events {
        let text = packed::unpack(&body).unwrap().replace(before, after);
        let body = packed::pack_all([text.as_str()]).unwrap().remove(0);
        let sql = "UPDATE execution_event SET body = ?1 WHERE execution = ?2 AND id = ?3";
        file.execute(sql, params![body, execution, id])?;
    }
    Ok(())
}

fn junk(file: &Connection, rows: &[Row], draw: &mut Draw) -> Result<bool> {
    let rehash = draw.below(2) == 0;
    for row in rows {
        let mut row = row.clone();
        row.body["Junk"] = json!({ "N": "1" });
        if rehash {
            row.rehash();
        }
        write(file, &row)?;
    }
    Ok(true)
}

/// Changes a leaf of the session.
fn leaf(
    file: &Connection,
    session: &SessionId,
    draw: &mut Draw,
    what: &mut String,
) -> Result<bool> {
    let sql = "SELECT n FROM log_leaf WHERE session = ?1 ORDER BY random() LIMIT 1";
    let n: Option<i64> = file.query_row(sql, [session.as_str()], |row| row.get(0)).optional()?;
    let Some(n) = n else { return Ok(false) };
    let change = match draw.below(4) {
        0 => "DELETE FROM log_leaf WHERE n = ?1",
        1 => {
            "UPDATE log_leaf SET leaf = CAST(replace(CAST(leaf AS TEXT), '0', '1') AS BLOB) WHERE n = ?1"
        }
        2 => "UPDATE log_leaf SET session = 'x' WHERE n = ?1",
        _ => "UPDATE log_leaf SET n = n + 1000000 WHERE n = ?1",
    };
    *what = format!("leaf {n}: {change}");
    Ok(file.execute(change, [n])? > 0)
}

/// Changes the tree, or its checkpoints.
fn tree(file: &Connection, draw: &mut Draw, what: &mut String) -> Result<bool> {
    let change = match draw.below(4) {
        0 => {
            "UPDATE log_node SET hash = zeroblob(32) WHERE (level, i) IN (SELECT level, i FROM log_node ORDER BY random() LIMIT 1)"
        }
        1 => {
            "DELETE FROM log_node WHERE (level, i) IN (SELECT level, i FROM log_node ORDER BY random() LIMIT 1)"
        }
        2 => "DELETE FROM log_checkpoint",
        _ => "UPDATE log_checkpoint SET note = replace(note, 'A', 'B')",
    };
    what.push_str(change);
    Ok(file.execute(change, [])? > 0)
}

/// A change to two sessions.
pub fn pair(
    file: &Connection,
    [one, other]: [&SessionId; 2],
    draw: &mut Draw,
    what: &mut String,
) -> Result<bool> {
    let (mine, theirs) = (rows(file, one)?, rows(file, other)?);
    let (row, their) = (draw.of(&mine).clone(), draw.of(&theirs).clone());
    let (did, changed) = match draw.below(9) {
        0 => ("records exchanged", exchange(file, one, other)?),
        1 => ("two records exchanged", swap(file, &row, &their, draw)?),
        2 => ("one removed, the other forged", {
            let at = draw.below(theirs.len());
            erase(file, one)? && forge(file, &theirs, at, draw)?
        }),
        3 => ("a record moved from one to the other", carry(file, &row, other, true)?),
        4 => ("a record copied from one to the other", carry(file, &row, other, false)?),
        5 => ("both set back", {
            let (at, their_at) = (draw.below(mine.len()), draw.below(theirs.len()));
            truncate(file, &mine, at)? | truncate(file, &theirs, their_at)?
        }),
        6 => ("verdicts exchanged", {
            let verdict = |rows: &[Row]| rows.iter().find(|row| row.is_verdict()).cloned();
            match (verdict(&mine), verdict(&theirs)) {
                (Some(row), Some(their)) => swap(file, &row, &their, draw)?,
                _ => false,
            }
        }),
        7 => ("leaves exchanged", {
            let sql = "UPDATE log_leaf SET session = CASE session WHEN ?1 THEN ?2 ELSE ?1 END WHERE session IN (?1, ?2)";
            file.execute(sql, params![one.as_str(), other.as_str()])? > 0
        }),
        _ => ("one removed with its leaves, the tree made anew", {
            let gone = erase(file, one)?;
            file.execute("DELETE FROM log_leaf WHERE session = ?1", [one.as_str()])?;
            super::super::log::rebuild_tree(file);
            gone
        }),
    };
    what.push_str(did);
    Ok(changed)
}

fn exchange(file: &Connection, one: &SessionId, other: &SessionId) -> Result<bool> {
    let set = |from: &str, to: &str| {
        file.execute("UPDATE partition SET pk = ?2 WHERE pk = ?1", params![from, to])
    };
    let (one, other) = (format!("SESSION#{one}"), format!("SESSION#{other}"));
    let mut changed = set(&one, "between")?;
    changed += set(&other, &one)?;
    changed += set("between", &other)?;
    Ok(changed > 0)
}

fn carry(file: &Connection, row: &Row, to: &SessionId, is_moved: bool) -> Result<bool> {
    if !row.pk.starts_with("SESSION#") {
        return Ok(false);
    }
    let mut copy = row.clone();
    copy.pk = format!("SESSION#{to}");
    copy.rehash();
    let sql = "INSERT INTO item (partition, sk, body, day, at) \
               SELECT (SELECT id FROM partition WHERE pk = ?1), sk, ?2, day, at FROM item WHERE pos = ?3";
    let added = file.execute(sql, params![copy.pk, copy.body.to_string(), row.pos])? > 0;
    Ok(added && (!is_moved || delete(file, row)?))
}
