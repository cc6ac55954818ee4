//! The arguments of the tools, validated on arrival. A refusal names the argument.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use mcp::argument::{text, wrong};
use mcp::schema::portable;

/// How far back logs are read when nobody says, in minutes.
const MINUTES_DEFAULT: u32 = 60;

/// How far back logs can be read: thirty days.
const MINUTES_MAX: u32 = 30 * 24 * 60;

/// The name of a device.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct DeviceName(pub String);

impl TryFrom<Value> for DeviceName {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        text("device_name", "the name of a device, as get_devices has it", value).map(Self)
    }
}

/// The name of an interface.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct InterfaceName(pub String);

impl TryFrom<Value> for InterfaceName {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        text("interface", "the name of an interface, such as HundredGigE0/0/0/0", value).map(Self)
    }
}

/// The name of a VRF.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct VrfName(pub String);

impl TryFrom<Value> for VrfName {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        text("vrf", "the name of a VRF, as the device has it", value).map(Self)
    }
}

/// Words to look for.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Keywords(pub Vec<String>);

impl TryFrom<Value> for Keywords {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let words = text("keywords", "one or more words, parted by spaces or commas", value)?;
        let words = words.split([' ', ',', '|']).filter(|word| !word.is_empty());
        Ok(Self(words.map(str::to_lowercase).collect()))
    }
}

/// How far back.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Minutes(pub u32);

impl Default for Minutes {
    fn default() -> Self {
        Self(MINUTES_DEFAULT)
    }
}

impl TryFrom<Value> for Minutes {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let fit = number.filter(|number| (1..=MINUTES_MAX).contains(number));
        fit.map(Self).ok_or_else(|| {
            wrong("minutes", &format!("a whole number from 1 to {MINUTES_MAX}"), &value)
        })
    }
}

/// Which protocols.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Protocol {
    Bgp,
    Isis,
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
    /// Name of a device, as get_devices has it.
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub device_name: DeviceName,
}

/// Arguments of `get_routing_info`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = portable)]
pub(super) struct Routing {
    /// Name of a device, as get_devices has it.
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
    /// Name of a device, as get_devices has it.
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
    /// Name of a device, as get_devices has it.
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
    /// Name of a device, as get_devices has it.
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub device_name: DeviceName,
    /// Words of which an entry has to have one, parted by spaces or commas; all entries if absent.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub keywords: Option<Keywords>,
    /// How far back; the last 60 minutes if absent.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = MINUTES_MAX))]
    pub minutes: Minutes,
}
