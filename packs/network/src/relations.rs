//! Rules about members that belong together: a number and its bound, lists of problems, the role and the state of a
//! port, rules of access lists.

use serde_json::Value;

use super::compare::is_intent;
use super::facts::Root;
use super::fields::{Field, field};
use super::findings::Reader;
use super::interpret::name_words;
use super::lexicon;
use super::object::{Location, Object, number};

/// Numbers of messages that a session has not sent yet, and how many say that it cannot send.
const OUTPUT_QUEUES: &[&str] = &["output_queue", "outputqueue", "out_queue", "out_q", "outq"];
const OUTPUT_QUEUE_MIN: f64 = 100.0;

/// Roles in which a spanning tree port forwards, and those in which it does not.
const FORWARDING_ROLES: &[&str] = &["root", "designated", "desg", "master"];
const BLOCKING_ROLES: &[&str] = &["alternate", "altn", "backup", "back"];
const FORWARDING: &[&str] = &["fwd", "forwarding", "forward"];
const BLOCKING: &[&str] = &["blk", "blocking", "blocked", "discarding", "dis"];

/// Marks in the type column of `show spanning-tree`.
const INCONSISTENT: &[&str] =
    &["ROOT_Inc", "LOOP_Inc", "PVID_Inc", "TYPE_Inc", "BA_Inc", "Dispute"];

impl Reader {
    /// A list that is empty, or of which each element is a problem.
    pub(super) fn list(
        &mut self,
        name: &str,
        items: &[Value],
        object: &Object<'_>,
        at: &Location,
        subjects: &[&'static str],
    ) {
        let mut about = lexicon::subjects(&name_words(name));
        if about.is_empty() {
            about.extend(subjects);
        }
        let is_of_problems =
            matches!(field(name), Field::Problems | Field::Errors) && name != "conflicts_with";
        if items.is_empty() && subjects.contains(&"dns") && name.contains("answer") {
            return self.wrong(subjects, format!("{}: no answer", at.words(object)));
        }
        match (items, is_of_problems) {
            ([], true) => self.fine(&about, "state", None, &object.name()),
            ([], false) if name == "entries" && subjects.contains(&"log") => {
                self.fine(&["log"], "state", None, "");
            }
            ([], false) if Self::is_collection(name) && !is_intent(name) => {
                self.read.absent.extend(about)
            }
            (items, true) => {
                let texts: Vec<String> = items
                    .iter()
                    .take(3)
                    .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                    .collect();
                self.wrong(&about, format!("{}: {name}: {}", at.words(object), texts.join("; ")));
            }
            _ => {}
        }
    }

    /// Members that belong together.
    pub(super) fn pairs(
        &mut self,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
        self.compare(object, location, subjects);
        self.port_role(object, location, subjects);
        self.standby(object, location, subjects);
        self.root(object, subjects);
        self.chain(object, location, subjects);
        if let (Some(used), Some(limit)) = (object.number("used"), object.number("limit")) {
            if limit > 0.0 && used >= limit {
                self.wrong(
                    subjects,
                    format!("{} limit of {limit} reached", location.words(object)),
                );
            } else {
                self.fine(subjects, "limit", Some(used), &object.name());
            }
        }
        for name in OUTPUT_QUEUES {
            if let Some(waiting) = object.number(name).filter(|it| *it >= OUTPUT_QUEUE_MIN) {
                self.unknown(format!("{}: {name} is {waiting}", location.words(object)));
            }
        }
        self.memory(object, location, subjects);
        self.access_rule(object, location, subjects);
    }

    /// Memory as used and total.
    fn memory(&mut self, object: &Object<'_>, location: &Location, subjects: &[&'static str]) {
        let of = |word: &str| {
            let is_this = |(name, _): &&(String, &Value)| {
                name.split('_').any(|part| part == word) && !name.contains("percent")
            };
            object.0.iter().find(is_this).and_then(|(_, value)| number(value))
        };
        let is_shown = object.0.iter().any(|(name, _)| field(name) == Field::Utilization);
        if let (Some(used), Some(total)) = (of("used"), of("total"))
            && subjects.contains(&"memory")
            && !is_shown
            && total > 0.0
        {
            let percent = (used * 100.0 / total).round();
            self.figure("used_percent", percent, Field::Utilization, object, location, subjects);
        }
    }

    /// A rule of an access list that drops packets.
    pub(super) fn access_rule(
        &mut self,
        object: &Object<'_>,
        location: &Location,
        subjects: &[&'static str],
    ) {
        let action =
            object.get("action").and_then(Value::as_str).unwrap_or_default().to_lowercase();
        if action == "permit" || action == "accept" {
            return self.fine(subjects, "state", None, &object.name());
        }
        if !["deny", "drop", "discard", "reject", "block"].contains(&action.as_str()) {
            return;
        }
        let sequence =
            object.number("sequence").or_else(|| object.number("seq")).unwrap_or_default();
        let hits = ["hits", "matches", "hit_count", "match_count", "packets"]
            .iter()
            .find_map(|name| object.number(name));
        let list = if location.owner.is_empty() { object.name() } else { location.owner.clone() };
        let of = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or("any").to_owned();
        let what = format!("{} {} to {}", of("protocol"), of("source"), of("destination"));
        let text = format!("access list {list}: rule {sequence} denies {what}");
        match hits {
            Some(hits) if hits > 0.0 => {
                self.wrong(subjects, format!("{text}, {hits} packets so far"))
            }
            // A rule that matched nothing drops nothing.
            Some(_) => self.fine(subjects, "state", None, &object.name()),
            _ => self.unknown(format!("{text}; whether that is intended is not known")),
        }
    }

    /// A spanning tree port whose state does not fit its role: a designated port that blocks, or an alternate
    /// port that forwards, which is a loop.
    fn port_role(&mut self, object: &Object<'_>, location: &Location, subjects: &[&'static str]) {
        let of = |names: [&str; 2]| {
            let text = names.iter().find_map(|name| object.get(name)?.as_str())?.to_lowercase();
            Some(text)
        };
        let (Some(role), Some(state)) = (of(["role", "port_role"]), of(["state", "port_state"]))
        else {
            return;
        };
        let is = |text: &str, list: &[&str]| list.contains(&text);
        let is_blocked = is(&role, FORWARDING_ROLES) && is(&state, BLOCKING);
        let is_loop = is(&role, BLOCKING_ROLES) && is(&state, FORWARDING);
        let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
        if let Some(why) =
            INCONSISTENT.iter().find(|mark| subjects.contains(&"stp") && kind.contains(*mark))
        {
            let text = format!("{}: the port is inconsistent: {why}", location.words(object));
            self.wrong(subjects, text);
        }
        if subjects.contains(&"stp") && (is_blocked || is_loop) {
            let why = if is_loop { "a loop" } else { "it should forward" };
            let text = format!("{}: the {role} port is {state}: {why}", location.words(object));
            self.wrong(subjects, text);
        }
    }

    /// An answer of aliases that ends without an address.
    fn chain(&mut self, object: &Object<'_>, location: &Location, subjects: &[&'static str]) {
        let lists = ["answer", "answers"].iter().find_map(|name| object.get(name)?.as_array());
        let Some(records) = lists.filter(|_| subjects.contains(&"dns")) else { return };
        let is_alias = |record: &Value| match record {
            Value::String(text) => text.split_whitespace().any(|word| word == "CNAME"),
            _ => record.get("type").and_then(Value::as_str) == Some("CNAME"),
        };
        if !records.is_empty() && records.iter().all(is_alias) {
            let name = location.words(object);
            self.wrong(subjects, format!("{name}: the aliases end without an address"));
        }
    }

    /// The root of a spanning tree, and whether it is the device itself.
    fn root(&mut self, object: &Object<'_>, subjects: &[&'static str]) {
        let of = |names: &[&str]| {
            names.iter().find_map(|name| match object.get(name)? {
                Value::String(text) => Some(text.to_lowercase()),
                Value::Object(members) => {
                    let inner = Object::of(members);
                    let address = ["address", "mac_address", "bridge_id", "id"];
                    address.iter().find_map(|name| inner.get(name)?.as_str().map(str::to_lowercase))
                }
                _ => None,
            })
        };
        let root = of(&["root_id", "root_address", "root_bridge", "designated_root", "root"]);
        let own = of(&["bridge_id", "bridge_address", "bridge", "local_bridge"]);
        let flag = object.get("is_root").and_then(Value::as_bool);
        let is_own = flag.or_else(|| Some(root.as_ref()? == own.as_ref()?));
        if let Some(is_own) = is_own.filter(|_| subjects.contains(&"stp")) {
            let object = self.read.tokens.len() - 1;
            self.read.roots.push(Root { address: root.unwrap_or_default(), is_own, object });
        }
    }

    /// An active router without a standby, or with a second active one.
    fn standby(&mut self, object: &Object<'_>, location: &Location, subjects: &[&'static str]) {
        let names = ["standby", "standby_router", "standby_ip"];
        let standby = names.iter().find_map(|name| object.get(name)?.as_str());
        let is_absent = standby.is_some_and(|standby| {
            ["unknown", "none", "not configured"].contains(&standby.to_lowercase().as_str())
        });
        let of = |names: &[&str]| {
            let text = names.iter().find_map(|name| object.get(name)?.as_str());
            text.map(str::to_lowercase).filter(|state| state == "active" || state == "master")
        };
        let peer = of(&["peer_state", "neighbor_state", "remote_state", "standby_state"]);
        if subjects.contains(&"fhrp") && peer.is_some() && of(&["state", "local_state"]).is_some() {
            let text = format!("{}: both routers are active", location.words(object));
            self.wrong(subjects, text);
        }
        if subjects.contains(&"fhrp") && is_absent {
            let text =
                format!("{} has no standby router: redundancy is lost", location.words(object));
            self.wrong(subjects, text);
        }
    }
}
