//! The assistant's settings: simulations survive the processes of their server.

use ::graph::profile::{Profile, Server};

use super::tool::SERVER;

pub static PROFILE: Profile = Profile {
    servers: &[Server {
        name: SERVER,
        options: &[],
        in_account: None,
        state_option: Some("--state"),
    }],
    ..Profile::PLAIN
};
