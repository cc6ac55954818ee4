//! The words of the trade: subjects of checks with their synonyms, what is asked about them, and
//! ordinary words of a sentence.

use std::sync::OnceLock;

use super::interpret::words;

/// Subjects of network checks with their synonyms, separated by `|`.
const SUBJECTS: &[(&str, &str)] = &[
    ("bgp", "bgp|ibgp|ebgp|bgp4|mp bgp|peering"),
    ("ospf", "ospf|ospfv2|ospfv3"),
    ("isis", "isis"),
    ("eigrp", "eigrp"),
    ("rip", "rip|ripng"),
    ("ldp", "ldp|label distribution"),
    ("mpls", "mpls|label|lsp|lfib|forwarding table|label path|rsvp|traffic engineering"),
    ("segment routing", "segment routing|sid|prefix sid|srgb|segment identifier|sr mpls|srv6"),
    ("bfd", "bfd|bidirectional forwarding"),
    (
        "optics",
        "optic|optical|transceiver|sfp|qsfp|xfp|ddm|rx power|tx power|laser|light|dbm|dom|receive power|transmit power|light level|alarm threshold",
    ),
    ("lag", "lag|lacp|port channel|portchannel|etherchannel|bundle|bundle ether|link aggregation"),
    ("stp", "stp|rstp|mstp|pvst|rpvst|spanning tree|802 1d|802 1w|802 1s|bpdu|root bridge"),
    ("vlan", "vlan|802 1q|dot1q|trunk|switchport"),
    (
        "acl",
        "acl|access list|access control list|access control|access group|packet filter|firewall filter|filter|firewall",
    ),
    ("dns", "dns|domain name|name server|nameserver|resolver|resolution|name resolution|resolve"),
    ("ntp", "ntp|ptp|chrony|clock|time synchronization|time synchronisation|stratum"),
    (
        "fhrp",
        "hsrp|vrrp|glbp|fhrp|first hop redundancy|virtual router|gateway redundancy|standby group|standby",
    ),
    ("vpn", "vpn|vrf|l3vpn|l2vpn|vpnv4|route target|routing instance|vprn"),
    ("overlay", "vxlan|evpn|vni|vtep|pseudowire|xconnect|l2circuit|vpls"),
    ("route", "static route|default route|rib|fib|routing table|routing entry"),
    ("arp", "arp|neighbor discovery"),
    ("mac", "mac address|mac table|fdb|cam table"),
    ("lldp", "lldp|cdp|topology"),
    ("log", "log|syslog|logging"),
    ("cpu", "cpu|processor|control plane load"),
    ("memory", "memory|ram|heap"),
    ("system", "system|uptime|reload|reboot|restart|crash|version"),
    (
        "environment",
        "environment|environmental|alarm|temperature|fan|power supply|psu|chassis|hardware|line card",
    ),
    (
        "ha",
        "sso|nsr|nsf|issu|failover|supervisor|route processor|vpc|mlag|stack member|high availability",
    ),
    ("multicast", "multicast|pim|igmp|mld|mroute|msdp"),
    ("qos", "qos|queue|policy map|policer|shaper|class of service"),
    ("dhcp", "dhcp"),
    ("nat", "nat"),
    ("ipsec", "ipsec|ike|crypto"),
    ("tunnel", "tunnel|gre"),
    ("aaa", "aaa|radius|tacac"),
    ("snmp", "snmp"),
    ("probe", "ip sla|sla|probe|ping|latency|jitter|packet loss|traceroute"),
    ("poe", "poe|power over ethernet|inline power"),
    ("config", "configuration|running config|compliance|drift"),
    ("port security", "port security|psecure|dot1x|802 1x"),
    ("interface", "interface|port|ethernet|uplink|line protocol|link|switchport interface"),
];

/// What a sentence asks about a subject, beside its state.
const ATTRIBUTES: &[(&str, &str)] = &[
    ("state", "status|state|up|established"),
    ("errors", "error|crc|fcs|discard|drop|runt|giant|counter"),
    ("flaps", "flap|flapping|transition|stable|stability|bounce"),
    ("mtu", "mtu|jumbo"),
    ("prefixes", "prefix|prefix received|pfxrcd"),
    ("utilization", "utilization|utilisation|usage|load|busy"),
    ("uptime", "uptime|restart|reload|reboot|crash"),
    ("power", "rx power|tx power|receive power|transmit power|light|dbm|signal"),
    ("targets", "route target|import"),
    ("root", "root bridge|root port|root"),
    ("vlans", "allowed vlan|allowed|native vlan"),
    ("area", "area"),
    ("timers", "hello|dead interval|timer"),
    ("duplex", "duplex"),
    ("speed", "speed"),
    ("stratum", "stratum"),
    ("authentication", "authentication|auth"),
    ("redundancy", "redundancy|redundant|both|two"),
];

/// Subjects that a more specific synonym beside them replaces, such as the port in "port channel".
const GENERAL: &[&str] = &["interface", "system"];

/// Ordinary words of a sentence, and words of the trade that every rule about states covers.
const ORDINARY: &str = "a about above actually admin adjacency after again all alive also an and any anything \
are around as ask at available be been before being below between both bring but by can carry check clean come compare \
complete confirm connected core correct correctly could count counters current currently customer customers date detail \
device devices did direction do does doing down each edge either else enough ensure entry error errors established every \
everything examine far fault faults few find fine first for formed forwarding found four from full functional general \
get give good group groups had happening has have having health healthy hear heard here hour how i if in incident including \
information inspect internal into investigate is issue issues it its kindly last least less let list local look made make \
many matches me message messages minutes more most much must my name near necessary need needs neighbor neighbors neighbour \
neighbours network no node normal not note now number of off ok okay on once one only open oper operational or order \
other others our out output outside over overview own p pe peer peers percent perform please problem problems protocol \
protocols provider ready received red report review right role router routers routing rr run running s sample saw see send \
server servers service session sessions should show shown since so some standard state states stay status still stp \
such summarise summarize summary sure switch take table tell than that the their them then there these they think this \
those three through time to today together toward towards troubleshoot tune two under unplanned until up us use used value \
values verify very warning warnings was way we well were what when where whether which while who will with within working \
would wrong yes yet you your accept account across active against alarm alarms allow among asked audit bad become big block blocked brings called came card \
cause change changed changes close closed common confirmed could dead degraded disabled either empty enabled end ends event events exists explain \
expected fail failed failing failure few field fit form forward gone great has highest hold impact indicate intended keep known learn learned \
leave left level like long lost low lower main mean means member members mismatch missing miswired month near never next none \
old path point possible present primary proper properly quick reach reachable read reason recent recently record remain remote requested \
resource resources right same second secondary sees shut shutdown side sides site sites small source spare speak speaks standby start started started stop \
stuck sync synced synchronized synchronised test than think three traffic type unexpected unknown unlabelled upstream usual via view visible wait want week what whole why without word work works worse worst reflector another follow something imported earlier go  neither pe both since cable hardware software heard end every each over \
inbound outbound ingress egress route routes label labels operating instance instances advertise advertised partner neighbouring independent imports exports export import target loopback core ping area address addresses pop hop connect idle init evidence exchange tunnel interfaces links severity critical \
counted counts limit maximum threshold thresholds expect expects dr bdr root designated permit deny rule rules apply applied resolves names answer answers zone vs versus day days switching lookup design designed vlans broadcast reload tree trees blocking forwards blocks \
during agree agrees often seven six eight nine ten eleven twelve behind really pair pairs gateway gateways share shares shared properly \
unused spare spares purpose alternate backup backups neighborship neighborships switches stack recent lately longer anyone anything \
frame frames rate rates host hosts user users client clients office branch building floor rack room fabric leaf spine leaves spines border distribution \
access aggregation campus backbone ring hub spoke hubs spokes subnet segment lan wan metro behave behaves behaving operates functions normally keeps kept \
holding holds peered talk talks talking seen fibre fiber cable cables somebody someone anybody configured bit harmless serious acceptable worry \
worrying concern concerning significant actual real really together separately respectively right now moment present presently";

struct Lexicon {
    subjects: Vec<(&'static str, Vec<String>)>,
    attributes: Vec<(&'static str, Vec<String>)>,
    ordinary: Vec<String>,
}

fn lexicon() -> &'static Lexicon {
    static LEXICON: OnceLock<Lexicon> = OnceLock::new();
    LEXICON.get_or_init(|| {
        let phrase = |text: &str| format!(" {} ", words(text).join(" "));
        let read = |table: &[(&'static str, &'static str)]| {
            let entry = |(name, all): &(&'static str, &'static str)| {
                (*name, all.split('|').map(phrase).collect())
            };
            table.iter().map(entry).collect()
        };
        let mut ordinary = words(ORDINARY);
        ordinary.sort();
        Lexicon { subjects: read(SUBJECTS), attributes: read(ATTRIBUTES), ordinary }
    })
}

fn matches(table: &[(&'static str, Vec<String>)], said: &[String]) -> Vec<&'static str> {
    let text = format!(" {} ", said.join(" "));
    let has = |phrases: &[String]| phrases.iter().any(|phrase| text.contains(phrase.as_str()));
    table.iter().filter(|(_, phrases)| has(phrases)).map(|(name, _)| *name).collect()
}

/// The subjects that these words name. A general one counts only if no other is named.
pub(super) fn subjects(said: &[String]) -> Vec<&'static str> {
    let all = matches(&lexicon().subjects, said);
    let special: Vec<_> = all.iter().copied().filter(|name| !GENERAL.contains(name)).collect();
    let is_kept = |name: &str| match name {
        // The alarm thresholds of a module.
        "environment" => !special.contains(&"optics"),
        "interface" => !special.iter().any(|s| ["lag", "port security", "vlan"].contains(s)),
        _ => true,
    };
    all.into_iter().filter(|name| is_kept(name)).collect()
}

/// What these words ask about their subjects, beside the state.
pub(super) fn attributes(said: &[String]) -> Vec<&'static str> {
    let is_segment = said.windows(2).any(|pair| pair[0] == "prefix" && pair[1] == "sid");
    let all = matches(&lexicon().attributes, said).into_iter();
    all.filter(|name| *name != "prefixes" || !is_segment).collect()
}

/// The words that no rule knows.
pub(super) fn unknown(said: &[String]) -> Vec<&str> {
    let text = format!(" {} ", said.join(" "));
    let tables = [&lexicon().subjects, &lexicon().attributes];
    let phrases = tables.into_iter().flatten().flat_map(|(_, phrases)| phrases);
    let covered: Vec<&str> = phrases
        .filter(|phrase| text.contains(phrase.as_str()))
        .flat_map(|phrase| phrase.split_whitespace())
        .collect();
    let is_known = |word: &str| {
        lexicon().ordinary.binary_search_by(|known| known.as_str().cmp(word)).is_ok()
            || covered.contains(&word)
            || word.len() == 1 && !word.starts_with(|c: char| c.is_ascii_digit())
    };
    said.iter().map(String::as_str).filter(|word| !is_known(word)).collect()
}
