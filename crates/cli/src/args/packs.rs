//! Command-line extensions from packs: commands, options and help text.

use std::io::{self, Write};

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

/// Writes a shell's completions, with what packs add.
///
/// # Errors
/// When the output cannot be written.
pub fn write_completions(
    extensions: &[Extension],
    shell: clap_complete::Shell,
    to: &mut impl Write,
) -> io::Result<()> {
    let mut text = Vec::new();
    let mut definition = definition(extensions);
    let name = definition.get_name().to_owned();
    clap_complete::generate(shell, &mut definition, name, &mut text);
    to.write_all(&text)
}

/// Writes the manual page: the program, then each of its commands.
///
/// # Errors
/// When the output cannot be written.
pub fn write_man(extensions: &[Extension], to: &mut impl Write) -> io::Result<()> {
    let mut definition = definition(extensions);
    definition.build();
    clap_mangen::Man::new(definition.clone()).render(to)?;
    for command in definition.get_subcommands().filter(|command| !command.is_hide_set()) {
        let page = clap_mangen::Man::new(command.clone());
        page.render_name_section(to)?;
        page.render_synopsis_section(to)?;
        page.render_description_section(to)?;
        page.render_options_section(to)?;
    }
    Ok(())
}

/// The commands by what a person wants; what packs add comes last.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["dev", "trigger", "chat", "eval"]),
    ("Inspect", &["sessions", "show", "tail", "open", "compare", "ui", "verify", "export"]),
    ("Decide", &["answer", "cancel", "resume", "halt", "unhalt"]),
    ("Develop", &["agents", "new", "check", "tools", "mcp", "workflow", "completions", "man"]),
    (
        "Operate",
        &[
            "doctor", "drain", "backup", "restore", "import", "prune", "hold", "release", "erase",
            "keys", "witness",
        ],
    ),
];

/// The program's help, with its commands in groups. Only this help lists the global options.
fn grouped(definition: clap::Command) -> clap::Command {
    let about = |name: &str| {
        let command = definition.find_subcommand(name);
        command.map(|command| command.get_about().map(ToString::to_string).unwrap_or_default())
    };
    let line = |name: &str| about(name).map(|about| format!("  {name:<12} {}\n", short(&about)));
    let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
    let others: Vec<_> = definition.get_subcommands().map(clap::Command::get_name).collect();
    let others: Vec<_> = others.into_iter().filter(|name| !grouped.contains(name)).collect();
    let groups = GROUPS.iter().map(|(heading, names)| (*heading, *names));
    let parts = groups.chain([("More", &others[..])]).filter_map(|(heading, names)| {
        let lines: String = names.iter().filter_map(|name| line(name)).collect();
        (!lines.is_empty()).then(|| format!("{heading}:\n{lines}"))
    });
    let parts: Vec<_> = parts.collect();
    let text = format!("{}\n`daybook help COMMAND` explains a command.", parts.join("\n"));
    definition.before_help(text).help_template(
        "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{options}{after-help}",
    )
}

/// Most columns of what a command does, so that no line of the list wraps.
const ABOUT_COLUMNS: usize = 84;

/// What a command does, up to the last part of its sentence that fits.
fn short(about: &str) -> &str {
    if about.len() <= ABOUT_COLUMNS {
        return about;
    }
    let ends = about.match_indices([';', ':', ',']).map(|(at, _)| at);
    ends.take_while(|at| *at <= ABOUT_COLUMNS).last().map_or(about, |at| &about[..at])
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
    grouped(without_globals(all))
}

/// Hides the global options in the help of each command: the program's own help has them. An option of a
/// command's own with the same name stays.
fn without_globals(all: clap::Command) -> clap::Command {
    let globals: Vec<_> = all.get_arguments().filter(|it| it.is_global_set()).cloned().collect();
    all.mut_subcommands(|command| {
        let own: Vec<_> = command.get_arguments().map(|it| it.get_id().clone()).collect();
        let absent = globals.iter().filter(|global| !own.contains(global.get_id()));
        absent.fold(command, |command, global| command.arg(global.clone().hide(true)))
    })
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
