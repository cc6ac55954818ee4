//! The list of the bundled packs' extensions of `daybook`.

use extension::Extension;

/// Optional parts, which take minutes to compile.
#[derive(Clone, Copy, Default)]
pub struct Optional {
    pub account: Option<incident_cli::Account>,
    /// Compares payments by their texts.
    pub embeddings: Option<fraud_cli::OpenEmbedding>,
}

/// All extensions, in the order of the agents.
pub fn all(optional: Optional) -> Vec<Extension> {
    vec![
        incident_cli::extension(optional.account),
        fraud_cli::extension(optional.embeddings),
        network_cli::extension(),
        assistant_cli::extension(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_accepts_the_options_of_its_host() {
        let extensions = all(Optional::default());
        let servers: Vec<_> = extensions.iter().flat_map(|extension| &extension.servers).collect();
        let names: Vec<_> = servers.iter().map(|server| server.info().name).collect();
        let started: Vec<_> =
            packs::all().iter().flat_map(|agent| agent.profile().servers).collect();
        assert_eq!(names, started.iter().map(|server| server.name).collect::<Vec<_>>());
        // The command line's own option, the stack's folder, where servers keep their data.
        let global = clap::Arg::new("data").long("data");
        for (server, started) in servers.iter().zip(started) {
            let options: Vec<_> = server.options().into_iter().chain([global.clone()]).collect();
            let taken: Vec<_> = options.iter().filter_map(clap::Arg::get_long).collect();
            let sources = started.options.iter().map(|(_, option)| *option);
            for option in sources.chain(started.state_option) {
                assert!(taken.contains(&option.trim_start_matches("--")), "{option}");
            }
        }
    }

    #[test]
    fn commands_and_options_are_consistent() {
        let mut mcp = clap::Command::new("mcp");
        for extension in all(Optional::default()) {
            for command in &extension.commands {
                command.definition().debug_assert();
            }
            if let Some(dev) = extension.dev {
                (dev.define)(clap::Command::new("dev")).debug_assert();
            }
            mcp = mcp.args(extension.servers.iter().flat_map(|server| server.options()));
        }
        mcp.debug_assert();
    }

    #[test]
    fn each_input_belongs_to_an_agent() {
        for input in all(Optional::default()).iter().filter_map(|extension| extension.input) {
            assert!(packs::find(input.agent).is_some(), "{}", input.agent);
        }
    }
}
