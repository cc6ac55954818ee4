//! The tools' arguments, validated on arrival. An error names the argument.

use schemars::JsonSchema;
use serde::Deserialize;

use mcp::argument;
use mcp::argument::{text, whole};
use mcp::schema::portable;

/// Default period of logs, in minutes.
const MINUTES_DEFAULT: u32 = 60;

/// Longest period of logs: thirty days.
const MINUTES_MAX: u32 = 30 * 24 * 60;

argument!(DeviceName(String), |value| {
    text("device_name", "a device name from get_devices", value)
});

argument!(InterfaceName(String), |value| {
    text("interface", "the name of an interface, such as HundredGigE0/0/0/0", value)
});

argument!(VrfName(String), |value| text("vrf", "the name of a VRF of the device", value));

argument!(Keywords(Vec<String>), |value| {
    let words = text("keywords", "one or more words, separated by spaces or commas", value)?;
    let words = words.split([' ', ',', '|']).filter(|word| !word.is_empty());
    Ok(words.map(str::to_lowercase).collect())
});

argument!(
    #[derive(Copy)]
    Minutes(u32),
    |value| whole("minutes", 1..=MINUTES_MAX, &value)
);

impl Default for Minutes {
    fn default() -> Self {
        Self(MINUTES_DEFAULT)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Protocol {
    Bgp,
    Isis,
    Ospf,
    #[default]
    All,
}

/// Arguments of `get_devices`: none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// Arguments of the tools that are about a device as a whole.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Whole {
    /// Device name from get_devices.
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub device_name: DeviceName,
}

/// Arguments of `get_routing_info`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = portable)]
pub(super) struct Routing {
    /// Device name from get_devices.
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub device_name: DeviceName,
    /// The protocol; all of them if absent.
    #[serde(default)]
    pub protocol: Protocol,
}

/// Arguments of `get_interface_info`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Interfaces {
    /// Device name from get_devices.
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub device_name: DeviceName,
    /// One interface; all of them if absent.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub interface: Option<InterfaceName>,
}

/// Arguments of `get_vpn_info`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Vpn {
    /// Device name from get_devices.
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub device_name: DeviceName,
    /// One VRF; all of them if absent.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub vrf: Option<VrfName>,
}

/// Arguments of `get_logs`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = portable)]
pub(super) struct Logs {
    /// Device name from get_devices.
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub device_name: DeviceName,
    /// Keywords, separated by spaces or commas: entries with any of them; all entries if absent.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub keywords: Option<Keywords>,
    /// Period in minutes; the last 60 if absent.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = MINUTES_MAX))]
    pub minutes: Minutes,
}
