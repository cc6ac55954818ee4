//! Formats a router's state as structured `show` output.

pub(super) mod interfaces;
pub(super) mod logs;
pub(super) mod mpls;
pub(super) mod routing;
pub(super) mod switching;
pub(super) mod system;
pub(super) mod vpn;
