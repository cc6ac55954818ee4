//! What the assistant asks of its host: its simulations outlive the processes of their server.

use ::graph::profile::{Profile, Server};

use super::tool::SERVER;

/// What the agent asks of its host.
pub static PROFILE: Profile = Profile {
    servers: &[Server {
        name: SERVER,
        options: &[],
        in_account: None,
        state_option: Some("--state"),
    }],
    ..Profile::PLAIN
};
