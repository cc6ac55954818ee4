//! `show` output of VRFs at an edge: imports, exports and routes.

use serde_json::{Value, json};

use crate::derive::BgpState;
use crate::description::{Device, Network, Site, Vrf};
use crate::refusal::Refusal;

/// All VRFs of a device, or the requested one.
pub(crate) fn vpn(
    network: &Network,
    device: &Device,
    asked: Option<&str>,
) -> Result<Value, Refusal> {
    let sites: Vec<_> = network.sites(&device.name).collect();
    let is_asked = |vrf: &Vrf| asked.is_none_or(|asked| vrf.name.eq_ignore_ascii_case(asked));
    let shown: Vec<Value> = sites
        .iter()
        .filter(|(vrf, _)| is_asked(vrf))
        .map(|(vrf, site)| one(network, device, vrf, site))
        .collect();
    match asked {
        Some(asked) if shown.is_empty() => Err(Refusal::Vrf {
            device: device.name.clone(),
            asked: asked.to_owned(),
            present: sites.iter().map(|(vrf, _)| vrf.name.clone()).collect(),
        }),
        _ => Ok(json!({"device_name": device.name, "vrfs": shown})),
    }
}

fn one(network: &Network, device: &Device, vrf: &Vrf, site: &Site) -> Value {
    let session = network.customer_session(device, site);
    let mut routes: Vec<Value> = Vec::new();
    if session == BgpState::Established {
        let own = site.prefixes.iter();
        routes.extend(own.map(
            |prefix| json!({"prefix": prefix, "protocol": "bgp", "next_hop": site.ce_address}),
        ));
    }
    let mut imports = Vec::new();
    for target in network.imports(vrf, site) {
        let matching = network.vpn_routes(device, target);
        imports.push(json!({"route_target": target, "matching_routes": matching.len()}));
        routes.extend(matching.iter().map(|route| {
            json!({
                "prefix": route.prefix, "protocol": "vpnv4", "next_hop": route.from.loopback,
                "next_hop_name": route.from.name, "label": route.label,
            })
        }));
    }
    let is_up = network.is_up(&device.name, &site.interface);
    let mut shown = json!({
        "name": vrf.name,
        "route_distinguisher": site.rd,
        "import_route_targets": imports,
        "export_route_targets": site.export_route_targets,
        "interfaces": [{
            "name": site.interface, "admin_status": "UP",
            "oper_status": if is_up { "UP" } else { "DOWN" },
        }],
    });
    let (state, error) = match session {
        BgpState::Established => ("ESTABLISHED", None),
        BgpState::Idle(reason) => ("IDLE", Some(reason)),
        BgpState::Active => ("ACTIVE", None),
    };
    let mut customer = json!({
        "neighbor_address": site.ce_address, "remote_as": site.ce_as, "session_state": state,
    });
    if let Some(error) = error {
        customer["last_error"] = json!(error);
    }
    shown["bgp_neighbors"] = json!([customer]);
    if let Some(limit) = network.prefix_limit(vrf, site) {
        let refused = routes.len().saturating_sub(limit as usize);
        routes.truncate(limit as usize);
        shown["route_limit"] =
            json!({"limit": limit, "used": routes.len(), "refused_routes": refused});
    }
    shown["routes"] = json!(routes);
    shown
}
