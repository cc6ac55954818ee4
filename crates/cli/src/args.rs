//! The command line as typed. Parsing reads no file and no environment.

mod eval;
pub mod keep;
pub mod load;
mod new;
pub mod packs;
mod signing;
pub mod steer;
mod workflow;

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, ArgMatches, Args as Group, Parser, Subcommand, ValueEnum};
use journal::listing::ListCursor;
use journal::status::Status;
use stack::list::When;

pub use eval::Eval;
pub use new::{Language, New, NewAgent, NewWhat};
pub use signing::{Keys, KeysAction, Witness, WitnessAction, WitnessServe};
pub use workflow::{Workflow, WorkflowAction};

/// The default address of the local stack.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:4599";

/// The default endpoint, which is the local stack's address.
pub const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:4599";

const EXIT_CODES: &str = "\
Exit codes: 0 success · 1 the session did not succeed, or verification found damage
            2 result unknown, or a question is open · 64 invalid usage";

/// Runs AI agents durably: every session is a journal of immutable, verifiable records.
#[derive(Debug, Parser)]
#[command(name = "daybook", version, max_term_width = 100, after_help = EXIT_CODES)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Args {
    /// The global options.
    #[command(flatten)]
    pub global: Global,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Group)]
pub struct Global {
    /// Where sessions run: local, or aws (uses the current credentials) [env: DAYBOOK_TARGET]
    /// [default: local]
    // A string, because a pack's command may define an option of the same name with other values.
    #[arg(
        long,
        global = true,
        help_heading = "Global options",
        value_parser = PossibleValuesParser::new(["local", "aws"]),
        hide_possible_values = true
    )]
    pub target: Option<String>,
    /// URL of the local stack [default: http://127.0.0.1:4599]
    #[arg(long, global = true, help_heading = "Global options", value_name = "URL")]
    pub endpoint: Option<String>,
    /// Folder of the local stack [default: the folder of the running stack, else .daybook]
    #[arg(long, global = true, help_heading = "Global options", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Agents and MCP servers [default: daybook.toml, if it is there]
    #[arg(long, global = true, help_heading = "Global options", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    /// Log more to stderr: -v info, -vv debug, -vvv trace. RUST_LOG takes precedence
    #[arg(short, long, global = true, help_heading = "Global options", action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// Where sessions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// On this machine.
    Local,
    /// In an AWS account.
    Aws,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the local stack until Ctrl-C
    #[command(after_help = "\
Prints `ready http://HOST:PORT` to stdout when it accepts connections. Any AWS client can use it:

  AWS_ENDPOINT_URL=http://127.0.0.1:4599 AWS_DEFAULT_REGION=us-east-1 \\
  AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x aws stepfunctions list-executions \\
    --state-machine-arn arn:aws:states:us-east-1:000000000000:stateMachine:daybook")]
    Dev(Dev),
    /// Start a session and print its id
    #[command(after_help = "\
With --wait, exits 0 if the session succeeded, 1 if it did not, and 2 if its result is unknown or a
question is open.

Examples:
  daybook trigger                                    test the deployment
  daybook trigger --detail '{\"budget\": {\"seconds\": 30}}' --wait")]
    Trigger(Trigger),
    /// List sessions, newest first
    #[command(after_help = "\
Examples:
  daybook sessions --since 7d --status failed,timed_out
  daybook sessions --text timeout --until 2026-11-22T08:00:00Z")]
    Sessions(Sessions),
    /// Show a session: timeline, durations, tokens, open question and result
    #[command(after_help = "\
Examples:
  daybook show 0190a5c4 --steps
  daybook show 0190a5c4 --json --steps | jq 'select(.type == \"step\") | .outcome'")]
    Show(Show),
    /// Follow a session's journal until the session ends
    Tail(One),
    /// Print the address of a session's page; in a terminal, open it in a browser
    #[command(after_help = "Example: daybook open 0190a5c4")]
    Open(One),
    /// Compare sessions step by step: the first with each of the others
    #[command(after_help = "\
Examples:
  daybook compare 0190a5c4 0190a5d7
  daybook compare 0190a5c4 0190a5d7 --json | jq .comparison.first_difference")]
    Compare(Compare),
    /// Request that a session is cancelled
    Cancel(steer::Cancel),
    /// Resume a session whose execution has ended without a verdict, or that waits for a version of its agent
    Resume(steer::Resume),
    /// Destroy the key of an ended session's contents, for ever; needs a session that started with `dev --encrypt`
    #[command(after_help = "Example: daybook erase 0190a5c4 --reason 'request 1234'")]
    Erase(steer::Erase),
    /// Halt an agent, or all: what is under way ends, nothing new begins, and sessions wait for unhalt
    Halt(load::Halt),
    /// End a halt; its sessions go on at once
    Unhalt(load::Unhalt),
    /// Stop the local stack when its sessions at work have ended or paused; it admits no new ones
    Drain(load::Drain),
    /// Answer the open question of a session; without a decision, prompt for one
    #[command(after_help = "\
Without a decision, in a terminal: y approves, n rejects and asks for a reason, e edits the arguments in
$VISUAL or $EDITOR (or inline if neither is set), w answers in words, q leaves the question open.

Examples:
  daybook answer 0190a5c4
  daybook answer 0190a5c4 --approve
  daybook answer 0190a5c4 --reject --reason 'the dose is too high'
  daybook answer 0190a5c4 --edit arguments.json
  daybook answer 0190a5c4 --say 'use the two-compartment model'")]
    Answer(steer::Answer),
    /// Chat with an agent
    #[command(after_help = "\
At a confirmation: y approves, n [REASON] rejects, e [JSON] approves with edited arguments, and any
other text is an answer in words. Leaving does not end the thread: it waits for a day.

Examples:
  daybook chat
  daybook chat --thread 0190a5c4                     rejoin a thread")]
    Chat(steer::Chat),
    /// Write a session to stdout as JSON Lines: one record per line, then a line with the head hash
    Export(One),
    /// Import an exported session into the local journal
    #[command(after_help = "\
Example:
  daybook export 0190a5c4 >session.jsonl
  daybook --data elsewhere import session.jsonl")]
    Import(Import),
    /// Verify a session record by record; report changed, removed, added and reordered records
    #[command(after_help = "\
Examples:
  daybook verify 0190a5c4
  daybook verify --all                                every session, and the log of sessions
  daybook verify --file session.jsonl --head 8a1f…    check against a head hash kept elsewhere
  daybook verify --file session.jsonl --key log.pub   check with the log's public key alone")]
    Verify(Verify),
    /// Remove sessions that ended before a time, for good; the log of sessions says so
    #[command(after_help = "\
Removes whole sessions that have ended and verify, with their payloads and executions. A session that is
held stays. Needs --yes without a terminal.

Examples:
  daybook prune --before 90d --dry-run
  daybook prune --before 2026-01-01T00:00:00Z --keep-label case-7 --reason 'retention policy' --yes")]
    Prune(keep::Prune),
    /// Hold a session: no prune, expiry or erasure removes it or its contents
    #[command(after_help = "\
Example: daybook hold 0190a5c4 --label case-7 --reason 'litigation hold of 2026-11-24'")]
    Hold(keep::Hold),
    /// Release a session from a hold
    Release(keep::Release),
    /// Show or replace the key that signs the log of sessions
    #[command(after_help = "\
Examples:
  daybook keys show >log.pub     what others need to verify an export: daybook verify --file F --key log.pub
  daybook keys rotate            sign with a new key from now on; earlier checkpoints still verify")]
    Keys(Keys),
    /// Run a witness, which cosigns logs of sessions
    Witness(Witness),
    /// Serve the web page without a local stack, for an AWS account's journal or a data folder
    #[command(after_help = "\
Prints `ready http://HOST:PORT` to stdout when it accepts connections. For an account, the page sends
answers, cancellations and resumptions over the event bus and Step Functions, like the commands.

Examples:
  daybook ui --target aws --stage dev
  daybook ui --data elsewhere")]
    Ui(Ui),
    /// List the available agents
    Agents,
    /// Create a new agent
    New(New),
    /// Check an agent's file or daybook.toml: name everything that a run would refuse
    #[command(after_help = "\
Examples:
  daybook check agent.yaml
  daybook check --schema agent >agent.schema.json    for editors")]
    Check(Check),
    /// List the tools of an MCP server, configured or built in
    Tools(Tools),
    /// Run a built-in MCP server over stdio or HTTP
    #[command(after_help = "\
Over HTTP, with the bearer token from DAYBOOK_TOKEN if it is set:
  daybook mcp SERVER --http 127.0.0.1:4700

Servers, with examples for a shell or for an MCP client's configuration:")]
    Mcp(Mcp),
    /// Run an agent on a folder of cases and compare what it concludes with what they expect
    #[command(after_help = "\
Exits 0 if every run agrees, or with --baseline if nothing became worse; else 1; 2 if a run did not end.
docs/eval.md has the format of a case.")]
    Eval(Eval),
    /// Check a state machine or run it once, without a stack
    Workflow(Workflow),
    /// Copy the journal, also of a running stack, into one verified file
    Backup(keep::Backup),
    /// Verify a backup, and put it into a data folder that no stack uses
    Restore(keep::Restore),
    /// Check that sessions can run locally, or in an AWS account with --target aws
    Doctor,
    /// Write a shell's completions to stdout
    #[command(after_help = "\
Examples:
  daybook completions bash >/etc/bash_completion.d/daybook
  daybook completions zsh >~/.zfunc/_daybook
  daybook completions fish >~/.config/fish/completions/daybook.fish")]
    Completions(Completions),
    /// Write the manual page to stdout
    #[command(after_help = "Example: daybook man | man -l -")]
    Man,
}

/// `completions`.
#[derive(Debug, Group)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `compare`.
#[derive(Debug, Group)]
pub struct Compare {
    /// Session ids, or their first characters (6 or more)
    #[arg(required = true, num_args = 2..)]
    pub sessions: Vec<String>,
}

/// `dev`.
#[derive(Debug, Group)]
pub struct Dev {
    /// Address to listen on; other than loopback requires DAYBOOK_TOKEN
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_LISTEN)]
    pub listen: String,
    /// Run each session in its own process, as in the cloud
    #[arg(long)]
    pub isolate: bool,
    /// When a commit is durable
    #[arg(long, value_enum, default_value_t = Durability::Fsync)]
    pub durability: Durability,
    /// Encrypt the contents of new sessions, each under a key of its own, so that it can be erased
    #[arg(long)]
    pub encrypt: bool,
    /// Run the stack's clock N times as fast
    #[arg(long, value_name = "N", default_value = "1")]
    pub time_scale: NonZeroU32,
    /// Run this state machine instead of Daybook's own
    #[arg(long, value_name = "FILE")]
    pub workflow: Option<PathBuf>,
    /// Functions that state machines and rules may call: a JSON file of commands and URLs by name
    #[arg(long, value_name = "FILE")]
    pub functions: Option<PathBuf>,
    /// Start although the journal, or the end of it, is missing
    #[arg(long)]
    pub accept_loss: bool,
    /// Tell the targets in this JSON file what became of sessions: see docs/notify.md [env: DAYBOOK_NOTIFY]
    #[arg(long, value_name = "FILE")]
    pub notify: Option<PathBuf>,
    /// Let triggers name files below this folder, as they may below the working directory; repeatable
    #[arg(long, value_name = "PATH")]
    pub allow: Vec<PathBuf>,
    /// Check what a start needs, and exit
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub load: load::Caps,
    /// The options that packs add.
    #[arg(skip)]
    pub of_packs: ArgMatches,
}

/// When a commit is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// After fsync to disk.
    Fsync,
    /// After a write to the operating system; a power cut may lose the last commits.
    Relaxed,
}

/// `trigger`.
#[derive(Debug, Group)]
pub struct Trigger {
    /// The agent [default: the agent of the --input folder, else checkup]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The agent's input: a JSON file, a folder of a known kind, or - for JSON on stdin
    #[arg(long, value_name = "PATH|-")]
    pub input: Option<PathBuf>,
    /// The event's detail; the other options take precedence over its fields
    #[arg(long, value_name = "JSON")]
    pub detail: Option<String>,
    /// The model: policy, bedrock:ID, openai:NAME or transcript:FILE
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Follow the session until it ends
    #[arg(long)]
    pub wait: bool,
    /// Start a stack for this run if none is listening at the endpoint
    #[arg(long, requires = "wait")]
    pub with_stack: bool,
}

/// `sessions`.
#[derive(Debug, Group)]
pub struct Sessions {
    /// Started since: an age (90s, 30m, 24h, 7d) or a time (2026-11-22T08:00:00Z)
    #[arg(long, value_name = "TIME", default_value = "24h")]
    pub since: When,
    /// Started until, in the format of --since [default: now]
    #[arg(long, value_name = "TIME")]
    pub until: Option<When>,
    /// Only sessions with these statuses, separated by commas
    #[arg(long, value_name = "STATUS", value_parser = status, value_delimiter = ',')]
    pub status: Vec<Status>,
    /// Only sessions of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only sessions with this text in their id, title, agent, input, verdict, error or open question
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,
    /// Only sessions with this status in their agent's own words, in any case
    #[arg(long, value_name = "WORD")]
    pub state: Option<String>,
    /// Only sessions with this verdict of their agent
    #[arg(long, value_name = "WORD")]
    pub verdict: Option<String>,
    /// Only sessions that called a tool with this text in its name or arguments
    #[arg(long, value_name = "TEXT")]
    pub tool: Option<String>,
    /// Maximum number of sessions
    #[arg(long, value_name = "N", default_value = "50")]
    pub limit: NonZeroU32,
    /// Continue a list from this cursor, which the previous list printed
    #[arg(long, value_name = "CURSOR")]
    pub after: Option<ListCursor>,
}

/// `show`.
#[derive(Debug, Group)]
pub struct Show {
    /// Session id, or its first characters (6 or more)
    pub session: String,
    /// Include steps
    #[arg(long)]
    pub steps: bool,
    /// Include steps, their payloads and the requests to the model
    #[arg(long)]
    pub payloads: bool,
    /// Include tokens and cost by node
    #[arg(long)]
    pub cost: bool,
}

/// `ui`.
#[derive(Debug, Group)]
pub struct Ui {
    /// Address to listen on; other than loopback requires DAYBOOK_TOKEN
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4600")]
    pub listen: String,
    /// With --target aws: the stage; takes precedence over DAYBOOK_STAGE and resource names in the environment
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<String>,
}

/// A command on one session.
#[derive(Debug, Group)]
pub struct One {
    /// Session id, or its first characters (6 or more)
    pub session: String,
}

/// `import`.
#[derive(Debug, Group)]
pub struct Import {
    /// The exported session, or - for stdin
    pub file: PathBuf,
}

/// `verify`.
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("what").required(true).args(["session", "file", "all"])))]
pub struct Verify {
    /// Session id, or its first characters (6 or more)
    pub session: Option<String>,
    /// Verify an exported session instead, or - for stdin
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Expected head hash, from outside the journal (such as the execution's output)
    #[arg(long, value_name = "HASH", conflicts_with = "all")]
    pub head: Option<String>,
    /// Verify every session of the journal, and its log of sessions
    #[arg(long)]
    pub all: bool,
    /// Require the signature of this log: a file with its public keys, as `daybook keys show` prints them
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Require a cosignature of this witness, given its public key; repeat for several
    #[arg(long, value_name = "KEY", requires = "key")]
    pub witness: Vec<String>,
    /// Require that the log continues this checkpoint, which was kept elsewhere
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub checkpoint: Option<PathBuf>,
}

/// `check`.
#[derive(Debug, Group)]
pub struct Check {
    /// An agent's file in YAML or JSON, or a daybook.toml
    #[arg(required_unless_present = "schema", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Print the JSON schema of agents' files, or of daybook.toml
    #[arg(long, conflicts_with = "file", value_name = "KIND")]
    pub schema: Option<SchemaOf>,
}

/// A kind of files that has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// Agents' files.
    Agent,
    /// daybook.toml.
    Config,
}

/// `tools`.
#[derive(Debug, Group)]
pub struct Tools {
    /// The server's name
    pub server: String,
}

/// `mcp`.
#[derive(Debug, Group)]
pub struct Mcp {
    /// The server's name
    pub server: String,
    /// Serve Streamable HTTP on this address; other than loopback requires DAYBOOK_TOKEN
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// The options that packs add.
    #[arg(skip)]
    pub of_packs: ArgMatches,
}

fn status(text: &str) -> Result<Status, String> {
    Status::parse(&text.to_ascii_uppercase()).ok_or_else(|| {
        let names: Vec<_> = Status::ALL.iter().map(|status| status.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_parses_in_any_case() {
        assert_eq!(status("failed"), Ok(Status::Failed));
        assert_eq!(status("TIMED_OUT"), Ok(Status::TimedOut));
        assert!(status("broken").unwrap_err().contains("REJECTED"));
    }
}
