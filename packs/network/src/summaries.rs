//! Reads summaries of BGP neighbors, as devices print them: a state, or a number of prefixes in its place.
//!
//! Sources: Cisco IOS, NX-OS, IOS XR and FRRouting, `show bgp summary`; Arista EOS, `show ip bgp summary`; Junos,
//! `show bgp summary`; Nokia SR OS, `show router bgp summary`.

use serde_json::{Map, Value, json};

use super::columns::{Block, is_rule};
use super::durations;

/// Lines below a neighbor of SR OS until its state.
const DESCRIPTION_LINES_MAX: usize = 4;

/// A neighbor of a summary.
#[derive(Default)]
struct Neighbor {
    name: String,
    remote_as: String,
    up_down: String,
    flaps: Option<f64>,
    state: Option<String>,
    received: Option<u64>,
    accepted: Option<u64>,
}

impl Neighbor {
    fn object(self, local_as: Option<&str>) -> Value {
        let mut members = Map::new();
        members.insert("neighbor".to_owned(), json!(self.name));
        if !self.remote_as.is_empty() {
            members.insert("remote_as".to_owned(), json!(self.remote_as));
        }
        if let Some(local) = local_as {
            members.insert("local_as".to_owned(), json!(local));
        }
        let is_up =
            self.state.as_deref().is_some_and(|state| state.to_lowercase().starts_with("estab"));
        // Of a neighbor that is down it says since when.
        if is_up && !self.up_down.is_empty() {
            members.insert("up_down".to_owned(), json!(self.up_down));
        }
        if let Some(flaps) = self.flaps {
            members.insert("flaps".to_owned(), json!(flaps));
        }
        members.insert("state".to_owned(), json!(self.state));
        for (name, number) in
            [("prefixes_received", self.received), ("prefixes_accepted", self.accepted)]
        {
            if let Some(number) = number {
                members.insert(name.to_owned(), json!(number));
            }
        }
        Value::Object(members)
    }
}

/// A summary that starts at the first of these lines; `local_as` is what a line above it says.
pub(super) fn summary(lines: &[&str], local_as: Option<&str>) -> Option<Block> {
    let small = lines.first()?.to_lowercase();
    let (used, found) = if small.contains("neighbor") && small.contains("pfxrcd") {
        cisco(lines)?
    } else if small.trim_start().starts_with("peer") && small.contains("state|#active") {
        junos(lines)?
    } else if small.trim() == "neighbor" {
        nokia(lines)?
    } else {
        return None;
    };
    let all: Vec<Value> = found.into_iter().map(|neighbor| neighbor.object(local_as)).collect();
    (!all.is_empty()).then(|| Block { lines: used, shown: vec![("bgp", Value::Array(all))] })
}

/// Whether a word is the address of a neighbor.
fn is_address(word: &str) -> bool {
    let bare = word.split(['%', '+']).next().unwrap_or(word);
    bare.parse::<std::net::IpAddr>().is_ok()
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn is_duration(word: &str) -> bool {
    word.eq_ignore_ascii_case("never") || durations::seconds(word).is_some()
}

fn cisco(lines: &[&str]) -> Option<(usize, Vec<Neighbor>)> {
    let names: Vec<String> = lines[0].split_whitespace().map(str::to_lowercase).collect();
    let first = names.iter().position(|name| name == "neighbor")?;
    let up_down = names.iter().position(|name| name.starts_with("up/d"))?.checked_sub(first + 1)?;
    let as_at = names.iter().position(|name| name == "as")?.checked_sub(first + 1)?;
    let (mut used, mut found) = (1, Vec::new());
    while used < lines.len() {
        let line = lines[used];
        let mut words: Vec<&str> =
            line.trim_start_matches(['*', '>', ' ']).split_whitespace().collect();
        let Some(at) = words.iter().position(|word| is_address(word)) else {
            if is_rule(line) {
                used += 1;
                continue;
            }
            break;
        };
        used += 1;
        // A long address stands on a line of its own.
        if words.len() == at + 1
            && let Some(next) = lines.get(used).filter(|next| next.starts_with(' '))
        {
            words.extend(next.split_whitespace());
            used += 1;
        }
        found.push(cisco_row(words[at], &words[at + 1..], as_at, up_down));
    }
    Some((used, found))
}

fn cisco_row(name: &str, cells: &[&str], as_at: usize, up_down: usize) -> Neighbor {
    let mut neighbor = Neighbor { name: name.to_owned(), ..Neighbor::default() };
    let is_whole = cells.get(as_at).is_some_and(|cell| is_number(cell))
        && cells.get(up_down).is_some_and(|cell| is_duration(cell));
    if !is_whole {
        // A row of another form, or one that is cut.
        neighbor.state = cells
            .get(up_down + 1..)
            .filter(|rest| !rest.is_empty())
            .map(|rest| format!("{}?", rest.join(" ")));
        return neighbor;
    }
    neighbor.remote_as = cells[as_at].to_owned();
    neighbor.up_down = cells[up_down].to_owned();
    let rest = &cells[up_down + 1..];
    let number = |at: usize| rest.get(at).and_then(|cell| cell.parse::<u64>().ok());
    if let Some(received) = number(0) {
        neighbor.state = Some("Established".to_owned());
        neighbor.received = Some(received);
    } else {
        let end = rest.iter().position(|cell| is_number(cell)).unwrap_or(rest.len());
        // FRRouting prints descriptions last; the state has at most a reason in parentheses.
        let end =
            end.min(if rest.get(1).is_some_and(|cell| cell.starts_with('(')) { 2 } else { 1 });
        neighbor.state = Some(rest[..end].join(" ")).filter(|state| !state.is_empty());
        neighbor.received = number(end);
        neighbor.accepted = number(end + 1);
    }
    neighbor
}

fn junos(lines: &[&str]) -> Option<(usize, Vec<Neighbor>)> {
    let (mut used, mut found): (usize, Vec<Neighbor>) = (1, Vec::new());
    for line in &lines[1..] {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [name, rest @ ..] if is_address(name) && !line.starts_with(' ') => {
                found.push(junos_row(name, rest));
            }
            // The prefixes of a table: active, received, accepted and damped.
            [table, counts, ..] if line.starts_with(' ') && table.ends_with(':') => {
                let (Some(last), Some(counts)) = (found.last_mut(), counts_of(counts)) else {
                    break;
                };
                last.received = Some(last.received.unwrap_or(0) + counts[1]);
                last.accepted = Some(last.accepted.unwrap_or(0) + counts[2]);
            }
            _ => break,
        }
        used += 1;
    }
    Some((used, found))
}

fn counts_of(text: &str) -> Option<Vec<u64>> {
    let all: Option<Vec<u64>> = text.split('/').map(|part| part.parse().ok()).collect();
    all.filter(|counts| counts.len() >= 3)
}

fn junos_row(name: &str, cells: &[&str]) -> Neighbor {
    let mut neighbor = Neighbor { name: name.to_owned(), ..Neighbor::default() };
    let [remote_as, _, _, _, flaps, up_down, rest @ ..] = cells else { return neighbor };
    // `2w4d 3:02:11`.
    let (day, rest) = match rest {
        [clock, rest @ ..] if clock.contains(':') && !up_down.contains(':') => (Some(clock), rest),
        _ => (None, rest),
    };
    (*remote_as).clone_into(&mut neighbor.remote_as);
    neighbor.flaps = flaps.parse().ok();
    neighbor.up_down = [*up_down].into_iter().chain(day.copied()).collect::<Vec<_>>().join(" ");
    if !is_number(remote_as) || !is_duration(&neighbor.up_down) {
        neighbor.state = rest.first().map(|state| format!("{state}?"));
        return neighbor;
    }
    match rest.first() {
        Some(first) if counts_of(first).is_some() => {
            neighbor.state = Some("Established".to_owned());
            let all: Vec<Vec<u64>> = rest.iter().filter_map(|cell| counts_of(cell)).collect();
            neighbor.received = Some(all.iter().map(|counts| counts[1]).sum());
            neighbor.accepted = Some(all.iter().map(|counts| counts[2]).sum());
        }
        Some(state) => neighbor.state = Some((*state).to_owned()),
        None => {}
    }
    neighbor
}

fn nokia(lines: &[&str]) -> Option<(usize, Vec<Neighbor>)> {
    let head = lines.iter().take(DESCRIPTION_LINES_MAX + 2);
    let header = head.clone().position(|line| line.contains("State|Rcv/Act/Sent"))?;
    let (mut used, mut found): (usize, Vec<Neighbor>) = (header + 1, Vec::new());
    let mut in_neighbor = 0;
    for line in &lines[header + 1..] {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            // The end of the table.
            [] => break,
            _ if is_rule(line) && !found.is_empty() => {
                used += 1;
                break;
            }
            _ if is_rule(line) => {}
            // The rest of the heading.
            _ if found.is_empty() && !line.contains(|c: char| c.is_ascii_digit()) => {}
            [name] if is_address(name) && !line.starts_with(' ') => {
                found.push(Neighbor { name: (*name).to_owned(), ..Neighbor::default() });
                in_neighbor = 0;
            }
            [remote_as, packets, queue, up_down, rest @ ..]
                if [remote_as, packets, queue].iter().all(|cell| is_number(cell))
                    && is_duration(up_down) =>
            {
                let Some(last) = found.last_mut() else { break };
                (*remote_as).clone_into(&mut last.remote_as);
                (*up_down).clone_into(&mut last.up_down);
                match rest.first().map(|first| (counts_of(first), first)) {
                    Some((Some(counts), _)) => {
                        last.state = Some("Established".to_owned());
                        last.received = Some(counts[0]);
                    }
                    Some((None, state)) => last.state = Some((*state).to_owned()),
                    None => {}
                }
            }
            [packets, rest @ ..] if is_number(packets) && line.starts_with(' ') => {
                let more = rest.iter().find_map(|cell| counts_of(cell));
                let Some(last) = found.last_mut() else { break };
                if let Some(counts) = more {
                    last.received = Some(last.received.unwrap_or(0) + counts[0]);
                }
            }
            // A description.
            _ if !found.is_empty() && in_neighbor < DESCRIPTION_LINES_MAX => in_neighbor += 1,
            _ => break,
        }
        used += 1;
    }
    Some((used, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let lines: Vec<&str> = text.lines().collect();
        let block = summary(&lines, None).unwrap();
        assert_eq!(block.lines, lines.len(), "{text}");
        let said = |neighbor: &Value| {
            let of = |name: &str| match &neighbor[name] {
                Value::String(text) => text.clone(),
                Value::Null => "-".to_owned(),
                other => other.to_string(),
            };
            [of("neighbor"), of("remote_as"), of("state"), of("prefixes_received")].join(" ")
        };
        let all: Vec<String> = block.shown[0].1.as_array().unwrap().iter().map(said).collect();
        assert_eq!(all, expected, "{text}");
    }

    #[test]
    fn summaries_of_cisco_and_arista_are_read() {
        check(
            "Neighbor        V    AS    MsgRcvd    MsgSent   TblVer  InQ OutQ Up/Down  State/PfxRcd\n\
             10.0.0.2        4 65000      1312       1310       88    0    0     2w3d 120\n\
             *10.0.0.3       4 65001         0          0        0    0    0    never Idle (Admin)\n\
             10.0.0.4        4 65002        10         10        0    0    0    01:02:03 Shut (Admin)\n\
             2001:DB8:0:1234::5\n\
             \x20               4 65003        10         10        0    0    0    1d02h 7\n\
             10.0.0.6        4 65004        10         10        0    0    0    1d02h l2",
            &[
                "10.0.0.2 65000 Established 120",
                "10.0.0.3 65001 Idle (Admin) -",
                "10.0.0.4 65002 Shut (Admin) -",
                "2001:DB8:0:1234::5 65003 Established 7",
                "10.0.0.6 65004 l2 -",
            ],
        );
        // IOS XR.
        check(
            "Neighbor        Spk    AS MsgRcvd MsgSent   TblVer  InQ OutQ  Up/Down  St/PfxRcd\n\
             10.0.0.2          0 65000     100     100        4    0    0    3d04h         12\n\
             10.0.0.3          0 65000       0       0        0    0    0 00:00:00 Active",
            &["10.0.0.2 65000 Established 12", "10.0.0.3 65000 Active -"],
        );
        // EOS, with descriptions.
        check(
            "  Description              Neighbor V AS           MsgRcvd   MsgSent  InQ OutQ  Up/Down State   PfxRcd PfxAcc\n\
             \x20 rr one                   10.0.0.2 4 65000            100       100    0    0    3d04h Estab   12     12\n\
             \x20 customer                 10.0.0.3 4 65001              0         0    0    0    3d04h Idle(Admin)",
            &["10.0.0.2 65000 Estab 12", "10.0.0.3 65001 Idle(Admin) -"],
        );
    }

    #[test]
    fn a_row_that_is_cut_has_no_state() {
        check(
            "Neighbor        V    AS    MsgRcvd    MsgSent   TblVer  InQ OutQ Up/Down  State/PfxRcd\n\
             10.0.0.2        4 65000      1312",
            &["10.0.0.2 - - -"],
        );
    }

    #[test]
    fn a_summary_of_junos_is_read() {
        let head = "Peer                     AS      InPkt     OutPkt    OutQ   Flaps Last Up/Dwn State|#Active/Received/Accepted/Damped...\n";
        let rows = "10.0.0.2              65000      13120      13101       0      12 4d 3:02:11 Establ\n\
            \x20 inet.0: 3/7/7/0\n\
            \x20 inet6.0: 0/2/2/0\n\
            10.0.0.3              65001          1          2       0       0     3:02:11 Connect\n\
            10.0.0.4              65002          1          2       0       0 1w2d 3:02:11 4/5/5/0 0/0/0/0";
        check(
            &format!("{head}{rows}"),
            &[
                "10.0.0.2 65000 Establ 9",
                "10.0.0.3 65001 Connect -",
                "10.0.0.4 65002 Established 5",
            ],
        );
    }

    #[test]
    fn a_summary_of_sros_is_read() {
        check(
            "Neighbor\nDescription\n\
             \x20                  AS PktRcvd InQ  Up/Down   State|Rcv/Act/Sent (Addr Family)\n\
             \x20                     PktSent OutQ\n\
             -------------------------------------------------------------------------------\n\
             10.0.0.2\nto the reflector\n\
             \x20               65000    1234    0 10h12m00s 100/90/50 (IPv4)\n\
             \x20                        1230    0           5/5/3 (VpnIPv4)\n\
             10.0.0.9\n\
             \x20               65001       0    0 01d02h33m Connect\n\
             \x20                           0    0\n\
             -------------------------------------------------------------------------------",
            &["10.0.0.2 65000 Established 105", "10.0.0.9 65001 Connect -"],
        );
    }
}
