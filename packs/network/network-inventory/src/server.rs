//! The MCP server: eleven read-only tools.

use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::{tool, tool_router};
use serde_json::Value;

use super::arguments::{DeviceName, Interfaces, Logs, Nothing, Routing, Vpn, Whole};
use super::description::{Device, Network};
use super::refusal::Refusal;
use super::show::{interfaces, logs, mpls, routing, switching, system, vpn};
use mcp::reply::{answered, reply};

/// Clones share their network.
#[derive(Debug, Clone)]
pub struct Server {
    network: Arc<Network>,
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Server {
    pub(super) fn new(network: Network) -> Self {
        Self { network: Arc::new(network), tool_router: Self::tool_router() }
    }

    /// Every device.
    #[tool(
        description = "List every device of the inventory, with its role and its software.",
        annotations(title = "Devices", read_only_hint = true, open_world_hint = false)
    )]
    async fn get_devices(&self, Parameters(Nothing {}): Parameters<Nothing>) -> CallToolResult {
        answered("get_devices", &system::devices(&self.network))
    }

    /// Routing protocols of a device.
    #[tool(
        description = "Read the routing protocols of a device: BGP neighbors with their session state and prefixes, IS-IS and OSPF adjacencies.",
        annotations(title = "Routing", read_only_hint = true, open_world_hint = false)
    )]
    async fn get_routing_info(&self, Parameters(asked): Parameters<Routing>) -> CallToolResult {
        let answer = |device: &Device| Ok(routing::routing(&self.network, device, asked.protocol));
        self.about("get_routing_info", &asked.device_name, answer)
    }

    /// Interfaces of a device.
    #[tool(
        description = "Read the interfaces of a device, or one of them: admin and oper status, MTU, errors and carrier transitions.",
        annotations(title = "Interfaces", read_only_hint = true, open_world_hint = false)
    )]
    async fn get_interface_info(
        &self,
        Parameters(asked): Parameters<Interfaces>,
    ) -> CallToolResult {
        let one = asked.interface.as_ref().map(|interface| interface.0.as_str());
        let answer = |device: &Device| interfaces::interfaces(&self.network, device, one);
        self.about("get_interface_info", &asked.device_name, answer)
    }

    /// Labels of a device.
    #[tool(
        description = "Read MPLS on a device: LDP sessions, segment routing prefix SIDs and the label forwarding table.",
        annotations(title = "MPLS", read_only_hint = true, open_world_hint = false)
    )]
    async fn get_mpls_info(&self, Parameters(asked): Parameters<Whole>) -> CallToolResult {
        let answer = |device: &Device| Ok(mpls::mpls(&self.network, device));
        self.about("get_mpls_info", &asked.device_name, answer)
    }

    /// Customers' networks at a device.
    #[tool(
        description = "Read the L3VPN VRFs of a device, or one of them: route targets, routes, customer interfaces and customer sessions.",
        annotations(title = "VPN", read_only_hint = true, open_world_hint = false)
    )]
    async fn get_vpn_info(&self, Parameters(asked): Parameters<Vpn>) -> CallToolResult {
        let one = asked.vrf.as_ref().map(|vrf| vrf.0.as_str());
        let answer = |device: &Device| vpn::vpn(&self.network, device, one);
        self.about("get_vpn_info", &asked.device_name, answer)
    }

    /// Log of a device.
    #[tool(
        description = "Read the log of a device: entries of the last minutes, optionally those with any of some keywords, oldest first.",
        annotations(title = "Logs", read_only_hint = true, open_world_hint = false)
    )]
    async fn get_logs(&self, Parameters(asked): Parameters<Logs>) -> CallToolResult {
        let words = asked.keywords.as_ref();
        let answer = |device: &Device| Ok(logs::logs(&self.network, device, words, asked.minutes));
        self.about("get_logs", &asked.device_name, answer)
    }

    /// Switching of a device.
    #[tool(
        description = "Read the switching of a device: VLANs, trunks with what both ends allow, and the spanning tree.",
        annotations(title = "Switching", read_only_hint = true, open_world_hint = false)
    )]
    async fn get_switching_info(&self, Parameters(asked): Parameters<Whole>) -> CallToolResult {
        let answer = |device: &Device| Ok(switching::switching(&self.network, device));
        self.about("get_switching_info", &asked.device_name, answer)
    }

    /// Access lists of a device.
    #[tool(
        description = "Read the access lists of a device: each rule, and how many packets it matched.",
        annotations(title = "Access lists", read_only_hint = true, open_world_hint = false)
    )]
    async fn get_access_lists(&self, Parameters(asked): Parameters<Whole>) -> CallToolResult {
        let answer = |device: &Device| Ok(switching::access_lists(&self.network, device));
        self.about("get_access_lists", &asked.device_name, answer)
    }

    /// Name resolution of a device.
    #[tool(
        description = "Read the name resolution (DNS) of a device: its name servers, and a lookup of each known name.",
        annotations(title = "Name resolution", read_only_hint = true, open_world_hint = false)
    )]
    async fn get_name_resolution(&self, Parameters(asked): Parameters<Whole>) -> CallToolResult {
        let answer = |device: &Device| Ok(switching::name_resolution(&self.network, device));
        self.about("get_name_resolution", &asked.device_name, answer)
    }

    /// What a device is and how busy it is.
    #[tool(
        description = "Read the system of a device: model, software version, uptime, CPU and memory utilization.",
        annotations(title = "System", read_only_hint = true, open_world_hint = false)
    )]
    async fn get_system_info(&self, Parameters(asked): Parameters<Whole>) -> CallToolResult {
        let answer = |device: &Device| Ok(system::system(&self.network, device));
        self.about("get_system_info", &asked.device_name, answer)
    }

    /// Who is next to a device.
    #[tool(
        description = "Read the topology around a device: LLDP neighbors by interface.",
        annotations(title = "Topology", read_only_hint = true, open_world_hint = false)
    )]
    async fn get_topology_neighbors(&self, Parameters(asked): Parameters<Whole>) -> CallToolResult {
        let answer = |device: &Device| Ok(system::topology(&self.network, device));
        self.about("get_topology_neighbors", &asked.device_name, answer)
    }
}

impl Server {
    fn about(
        &self,
        tool: &'static str,
        name: &DeviceName,
        answer: impl FnOnce(&Device) -> Result<Value, Refusal>,
    ) -> CallToolResult {
        let device = self.network.device(&name.0).ok_or_else(|| Refusal::Device {
            asked: name.0.clone(),
            present: self.network.devices.iter().map(|device| device.name.clone()).collect(),
        });
        let device = match device {
            Ok(device) => device,
            Err(refusal) => return reply(tool, Err::<Value, _>(refusal)),
        };
        match self.network.answers.get(&device.name) {
            None => reply(tool, answer(device)),
            Some(saved) => match saved.get(tool) {
                Some(Value::Object(answer)) => answered(tool, answer),
                // Structured content is an object; anything else is text, as most servers send it.
                Some(Value::String(text)) => {
                    CallToolResult::success(vec![ContentBlock::text(text)])
                }
                Some(other) => CallToolResult::success(vec![ContentBlock::text(other.to_string())]),
                None => {
                    let refusal = Refusal::NotSaved { device: device.name.clone(), tool };
                    reply(tool, Err::<Value, _>(refusal))
                }
            },
        }
    }
}

mcp::serve_tools! {
    Server,
    name = "network-inventory",
    instructions = "Read-only view of the routers of a service provider's network, as a file describes it. Start with get_devices.",
}
