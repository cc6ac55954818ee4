//! Command-line extensions from packs: commands, options and help text.

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use extension::Extension;

use super::{Args, Command, Dev, Global, Mcp};

/// A parsed command line.
#[derive(Debug)]
pub struct Parsed {
    pub global: Global,
    pub command: Typed,
}

/// A parsed command.
#[derive(Debug)]
pub enum Typed {
    /// A built-in command.
    Own(Box<Command>),
    /// A pack's command: its name and options.
    OfPack(String, ArgMatches),
}

impl Typed {
    /// Whether it runs agents, or lists them. A trigger of a stack at another place runs none.
    pub fn uses_agents(&self, global: &Global) -> bool {
        match self {
            Self::Own(command) => match **command {
                Command::Dev(_) | Command::Agents => true,
                Command::Trigger(_) | Command::Eval(_) | Command::Chat(_) => {
                    global.endpoint.is_none()
                }
                _ => false,
            },
            Self::OfPack(..) => false,
        }
    }
}

impl Typed {
    /// Whether it says itself what is wrong with the configuration.
    pub fn diagnoses(&self) -> bool {
        matches!(self, Self::Own(command) if matches!(**command, Command::Doctor | Command::Check(_)))
    }
}

/// Parses the command line of this process.
///
/// # Errors
/// When it asks for help or the version, or is invalid.
pub fn parse(extensions: &[Extension]) -> Result<Parsed, clap::Error> {
    let mut definition = definition(extensions);
    let matches = definition.try_get_matches_from_mut(std::env::args_os())?;
    parsed(&matches, extensions).map_err(|error| error.format(&mut definition))
}

fn parsed(matches: &ArgMatches, extensions: &[Extension]) -> Result<Parsed, clap::Error> {
    if let Some((name, options)) = matches.subcommand()
        && of_pack(extensions, name).is_some()
    {
        let command = Typed::OfPack(name.to_owned(), options.clone());
        return Ok(Parsed { global: Global::from_arg_matches(matches)?, command });
    }
    let Args { global, mut command } = Args::from_arg_matches(matches)?;
    if let Command::Mcp(Mcp { of_packs, .. }) | Command::Dev(Dev { of_packs, .. }) = &mut command
        && let Some((_, options)) = matches.subcommand()
    {
        of_packs.clone_from(options);
    }
    Ok(Parsed { global, command: Typed::Own(Box::new(command)) })
}

/// Finds a pack's command by name.
pub fn of_pack<'a>(
    extensions: &'a [Extension],
    name: &str,
) -> Option<&'a dyn extension::command::Command> {
    let commands = extensions.iter().flat_map(|extension| &extension.commands);
    commands.map(AsRef::as_ref).find(|command| command.definition().get_name() == name)
}

/// The built-in commands and everything that packs add.
fn definition(extensions: &[Extension]) -> clap::Command {
    let mut all = Args::command();
    for extension in extensions {
        for server in &extension.servers {
            all = all
                .mut_subcommand("mcp", |mcp| with_lines(mcp, server.help()).args(server.options()));
        }
        if let Some(dev) = &extension.dev {
            all = all.mut_subcommand("dev", dev.define);
        }
        if let Some(chat) = &extension.chat {
            all =
                all.mut_subcommand("chat", |own| with_lines(own, chat.examples).about(chat.about));
        }
        for (command, line) in extension.examples {
            all = all.mut_subcommand(command, |own| with_lines(own, line));
        }
        let added = extension.commands.iter().map(|command| command.definition());
        all = all.subcommands(added);
    }
    all
}

/// Appends lines to a command's help.
fn with_lines(command: clap::Command, lines: &str) -> clap::Command {
    let before =
        command.get_after_help().map_or_else(|| "Examples:".to_owned(), ToString::to_string);
    command.after_help(format!("{before}\n{lines}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packs() -> Vec<Extension> {
        packs_cli::all(packs_cli::Optional::default())
    }

    #[test]
    fn the_command_line_is_consistent() {
        definition(&[]).debug_assert();
        definition(&packs()).debug_assert();
    }

    fn typed(line: &[&str]) -> Result<Parsed, clap::Error> {
        let packs = packs();
        let matches = definition(&packs).try_get_matches_from(line)?;
        parsed(&matches, &packs)
    }

    #[test]
    fn a_pack_s_option_hides_the_global_one_of_its_name() {
        let line = ["daybook", "chaos", "inject", "permission", "--target", "s3", "--json"];
        let parsed = typed(&line).unwrap();
        assert_eq!((parsed.global.target.as_deref(), parsed.global.json), (Some("s3"), true));
        assert!(matches!(parsed.command, Typed::OfPack(name, _) if name == "chaos"));
        let refused = typed(&["daybook", "sessions", "--target", "s3"]).unwrap_err();
        assert!(refused.to_string().contains("[possible values: local, aws]"), "{refused}");
    }

    #[test]
    fn the_help_has_what_the_packs_add() {
        for (command, said) in [
            ("mcp", "--inventory <FILE>"),
            ("dev", "--plans <DIR>"),
            ("trigger", "--input packs/incident/"),
            ("chat", "Chat with the assistant"),
        ] {
            let help = typed(&["daybook", command, "--help"]).unwrap_err().to_string();
            assert!(help.contains(said), "{command}: {help}");
        }
    }
}
