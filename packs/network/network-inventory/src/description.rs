//! Parses and validates the file that describes a network.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use files::Roots;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::campus::Campus;
use super::fault::Fault;

/// Largest file, in bytes. Ten routers take seven KiB.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Limits. Each call computes the routers' output, whose cost grows with the square of some of
/// these.
const DEVICES_MAX: usize = 100;
const LINKS_MAX: usize = 500;
const VRFS_MAX: usize = 50;
const SITES_MAX: usize = 50;
const FAULTS_MAX: usize = 50;

/// The bundled network, served by default.
const SHIPPED: &str = include_str!("../../networks/healthy/network.json");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Role {
    /// Provider: forwards labels, has no customers.
    P,
    /// Provider edge: has customers attached.
    #[serde(rename = "PE")]
    Pe,
    /// Route reflector: passes routes between edges.
    #[serde(rename = "RR")]
    Rr,
    /// Campus switch, with or without OSPF.
    #[serde(rename = "SWITCH")]
    Switch,
}

impl Role {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::P => "P",
            Self::Pe => "PE",
            Self::Rr => "RR",
            Self::Switch => "SWITCH",
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    pub name: String,
    pub role: Role,
    /// Router id and source address of sessions.
    pub loopback: Ipv4Addr,
    /// Prefix SID index; a switch has none.
    #[serde(default)]
    pub sid: u32,
    pub model: String,
    pub os: String,
}

/// One end of a link: device and interface.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct End(pub String, pub String);

/// A point-to-point link with IS-IS, LDP and segment routing, or with OSPF.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub a: End,
    pub b: End,
    /// `a` has the first address, `b` the second.
    pub subnet: Subnet,
    pub metric: u32,
    /// The OSPF area of the link; absent on a link with IS-IS.
    #[serde(default)]
    pub ospf_area: Option<Ipv4Addr>,
}

/// The two addresses of a link, written `10.0.1.0/31`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Subnet {
    pub first: Ipv4Addr,
    pub second: Ipv4Addr,
}

impl TryFrom<String> for Subnet {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let first = text.strip_suffix("/31").and_then(|address| address.parse::<Ipv4Addr>().ok());
        // The lower address is even; the other differs in the last bit.
        let first = first.filter(|first| u32::from(*first).is_multiple_of(2));
        let first = first.ok_or_else(|| "`subnet` must be such as 10.0.1.0/31".to_owned())?;
        Ok(Self { first, second: Ipv4Addr::from(u32::from(first) | 1) })
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vrf {
    pub name: String,
    pub sites: Vec<Site>,
}

/// A customer's attachment to an edge.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Site {
    pub device: String,
    pub rd: String,
    pub interface: String,
    pub ce_address: Ipv4Addr,
    pub ce_as: u32,
    pub prefixes: Vec<String>,
    pub import_route_targets: Vec<String>,
    pub export_route_targets: Vec<String>,
}

/// A valid network: all references resolve and no name is used twice.
#[derive(Debug, Clone)]
pub(super) struct Network {
    pub taken_at: DateTime<Utc>,
    pub as_number: u32,
    pub devices: Vec<Device>,
    pub links: Vec<Link>,
    pub vrfs: Vec<Vrf>,
    pub campus: Campus,
    pub faults: Vec<Fault>,
    /// Saved answers by device and tool. They take the place of the simulation.
    pub answers: BTreeMap<String, BTreeMap<String, Value>>,
}

/// A complete network file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    #[serde(rename = "name")]
    _name: String,
    taken_at: DateTime<Utc>,
    as_number: u32,
    devices: Vec<Device>,
    #[serde(default)]
    links: Vec<Link>,
    #[serde(default)]
    vrfs: Vec<Vrf>,
    #[serde(default)]
    campus: Campus,
    #[serde(default)]
    faults: Vec<Fault>,
    #[serde(default)]
    answers: BTreeMap<String, BTreeMap<String, Value>>,
}

/// A file that adds faults to another file's network.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Broken {
    base: PathBuf,
    faults: Vec<Fault>,
}

/// Why a network file cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    #[error("cannot read the inventory {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot read the inventory: {0}")]
    Refused(#[from] files::Refusal),
    #[error("the inventory {} is invalid: {problem}", path.display())]
    Malformed {
        path: PathBuf,
        /// The error and its position.
        problem: String,
    },
}

impl Network {
    /// The bundled network, without faults.
    pub(super) fn shipped() -> Self {
        match parse(SHIPPED).and_then(Self::of) {
            Ok(network) => network,
            Err(error) => unreachable!("a test reads the bundled network: {error}"),
        }
    }

    /// Reads a network file: a complete network, or the network of another file (`base`, relative
    /// to this one) with its own faults.
    pub(super) fn read(path: &Path, roots: &Roots) -> Result<Self, DescriptionError> {
        let text = read(path, roots)?;
        let malformed = |path: &Path, problem: String| DescriptionError::Malformed {
            path: path.to_owned(),
            problem,
        };
        let is_broken =
            serde_json::from_str::<Value>(&text).is_ok_and(|value| value.get("base").is_some());
        let whole = if is_broken {
            let broken: Broken = parse(&text).map_err(|problem| malformed(path, problem))?;
            let base = path.parent().unwrap_or(Path::new("")).join(&broken.base);
            let mut whole: Whole =
                parse(&read(&base, roots)?).map_err(|problem| malformed(&base, problem))?;
            whole.faults = broken.faults;
            whole
        } else {
            parse(&text).map_err(|problem| malformed(path, problem))?
        };
        Self::of(whole).map_err(|problem| malformed(path, problem))
    }

    fn of(whole: Whole) -> Result<Self, String> {
        let Whole { taken_at, as_number, devices, links, vrfs, campus, faults, answers, .. } =
            whole;
        let network = Self { taken_at, as_number, devices, links, vrfs, campus, faults, answers };
        network.check()?;
        Ok(network)
    }

    pub(super) fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// A device's sites with their VRFs.
    pub(super) fn sites<'a>(
        &'a self,
        device: &'a str,
    ) -> impl Iterator<Item = (&'a Vrf, &'a Site)> {
        let of = move |vrf: &'a Vrf| {
            vrf.sites.iter().filter(move |site| site.device == device).map(move |site| (vrf, site))
        };
        self.vrfs.iter().flat_map(of)
    }

    pub(super) fn has_interface(&self, device: &str, interface: &str) -> bool {
        let is_this = |end: &End| end.0 == device && end.1 == interface;
        self.links.iter().any(|link| is_this(&link.a) || is_this(&link.b))
            || self.campus.trunks.iter().any(|trunk| is_this(&trunk.a) || is_this(&trunk.b))
            || self.sites(device).any(|(_, site)| site.interface == interface)
    }

    fn check(&self) -> Result<(), String> {
        for (what, count, most) in [
            ("devices", self.devices.len(), DEVICES_MAX),
            ("links", self.links.len(), LINKS_MAX),
            ("vrfs", self.vrfs.len(), VRFS_MAX),
            ("faults", self.faults.len(), FAULTS_MAX),
        ] {
            if count > most {
                return Err(format!("`{what}` holds {count}, the limit is {most}"));
            }
        }
        let mut names = BTreeSet::new();
        let mut loopbacks = BTreeSet::new();
        for device in &self.devices {
            if !is_name(&device.name) {
                return Err(format!("{:?} is not a valid device name", device.name));
            }
            if !names.insert(&device.name) || !loopbacks.insert(device.loopback) {
                return Err(format!("`{}` is not unique, by name or loopback", device.name));
            }
        }
        self.check_interfaces()?;
        self.campus.check(self)?;
        if let Some(device) = self.answers.keys().find(|name| self.device(name).is_none()) {
            return Err(format!("unknown device `{device}`"));
        }
        self.faults.iter().try_for_each(|fault| fault.check(self))
    }

    fn check_interfaces(&self) -> Result<(), String> {
        let mut taken = BTreeSet::new();
        let ends = self.links.iter().flat_map(|link| [link.a.clone(), link.b.clone()]);
        let of_trunks = self.campus.trunks.iter();
        let mut of_sites: Vec<End> =
            of_trunks.flat_map(|trunk| [trunk.a.clone(), trunk.b.clone()]).collect();
        for vrf in &self.vrfs {
            if !is_name(&vrf.name) || vrf.sites.len() > SITES_MAX {
                return Err(format!(
                    "VRF {:?} needs a valid name and at most {SITES_MAX} sites",
                    vrf.name
                ));
            }
            for site in &vrf.sites {
                of_sites.push(End(site.device.clone(), site.interface.clone()));
            }
        }
        for end in ends.chain(of_sites) {
            if self.device(&end.0).is_none() {
                return Err(format!("unknown device `{}`", end.0));
            }
            if end.1.is_empty() || !taken.insert(end.clone()) {
                return Err(format!("interface `{}` of `{}` is used twice or empty", end.1, end.0));
            }
        }
        Ok(())
    }
}

/// Whether it is a valid name of a device or a VRF.
fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

/// The file that this network file is based on, if it is readable and names one.
pub fn referred(path: &Path) -> Vec<PathBuf> {
    let text = files::read::text(path, FILE_BYTES_MAX).ok();
    let value: Option<Value> = text.and_then(|text| serde_json::from_str(&text).ok());
    let base = value.as_ref().and_then(|value| value.get("base")?.as_str());
    base.map(|base| path.parent().unwrap_or(Path::new("")).join(base)).into_iter().collect()
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| mcp::json_problem(&error))
}

fn read(path: &Path, roots: &Roots) -> Result<String, DescriptionError> {
    let path = match roots.admit(path) {
        Err(files::Refusal::Unreadable { path, why }) => {
            return Err(DescriptionError::Unreadable { path, source: why.into() });
        }
        admitted => admitted?,
    };
    files::read::text(&path, FILE_BYTES_MAX)
        .map_err(|source| DescriptionError::Unreadable { path, source })
}
