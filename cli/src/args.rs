//! The command line as it is typed: plain arguments, nothing looked up.

pub mod chaos;
pub mod payments;
pub mod steer;

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{ArgGroup, Args as Group, Parser, Subcommand, ValueEnum};
use journal::listing::Place;
use journal::status::Status;
use local::list::When;

/// Where the local stack listens.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:4599";

/// The local endpoint.
pub const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:4599";

const EXIT_CODES: &str = "\
Exit: 0 succeeded · 1 the session did not succeed, or verification found damage
      2 could not find out · 64 usage";

/// Runs AI agents the way a bank runs its ledger: every session is a journal of immutable records.
#[derive(Debug, Parser)]
#[command(name = "daybook", version, max_term_width = 100, after_help = EXIT_CODES)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Args {
    /// What every command takes.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Group)]
pub struct Global {
    /// Where sessions run: local, or aws with the current credentials [env: DAYBOOK_TARGET]
    /// [default: local]
    #[arg(
        long,
        global = true,
        help_heading = "Global options",
        value_enum,
        hide_possible_values = true
    )]
    pub target: Option<TargetName>,
    /// The local stack's address [default: http://127.0.0.1:4599]
    #[arg(long, global = true, help_heading = "Global options", value_name = "URL")]
    pub endpoint: Option<String>,
    /// The local stack's folder [default: what the running stack says, else .daybook]
    #[arg(long, global = true, help_heading = "Global options", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Prints one JSON object a line
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    /// Logs more to stderr; twice for a developer's level. RUST_LOG stands over it
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

/// What `--target` may be: where sessions run, and for `chaos` what a role loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TargetName {
    /// This machine.
    Local,
    /// An AWS account.
    Aws,
    /// S3, for `chaos`.
    #[value(hide = true)]
    S3,
    /// CloudWatch, for `chaos`.
    #[value(hide = true)]
    Cloudwatch,
    /// Both of these, for `chaos`.
    #[value(hide = true)]
    Both,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the local stack until Ctrl-C
    #[command(after_help = "\
Prints `ready http://HOST:PORT` on stdout once it accepts. Any AWS client works with it:

  AWS_ENDPOINT_URL=http://127.0.0.1:4599 AWS_DEFAULT_REGION=us-east-1 \\
  AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x aws stepfunctions list-executions \\
    --state-machine-arn arn:aws:states:us-east-1:000000000000:stateMachine:daybook")]
    Dev(Dev),
    /// Starts a session and prints its id
    #[command(after_help = "\
Examples:
  daybook trigger                                    a checkup of the deployment
  daybook trigger --input incidents/network-blocked --wait
  daybook trigger --agent incident --input - --wait <message.json
  daybook trigger --detail '{\"agent\": \"checkup\", \"budget\": {\"seconds\": 30}}'

With --wait: exits 0 succeeded, 1 the session did not, 2 could not find out or a question is open.")]
    Trigger(Trigger),
    /// Investigates many card payments, a session each, and sums them up
    #[command(after_help = "\
Examples:
  daybook investigate transactions/sample.csv --ids suspicious.txt
  cut -d, -f1 alerts.csv | daybook investigate transactions.csv --ids - --parallel 8 --with-stack

Exit: 0 all investigations succeeded, 1 some did not, 2 could not find out.")]
    Investigate(payments::Investigate),
    /// Lists sessions, newest first
    #[command(after_help = "\
Examples:
  daybook sessions --since 7d --status failed,timed_out
  daybook sessions --text timeout --until 2026-11-22T08:00:00Z
  daybook sessions --agent incident --json | jq -r .session_id")]
    Sessions(Sessions),
    /// Shows a session: timeline, durations, tokens, open question, result
    #[command(after_help = "\
Examples:
  daybook show 0190a5c4 --steps
  daybook show 0190a5c4 --json --steps | jq 'select(.type == \"step\") | .outcome'")]
    Show(Show),
    /// Prints a session's journal as it grows, to its end
    Tail(One),
    /// Asks for a session's end
    Cancel(steer::Cancel),
    /// Carries on a session that nothing watches any more
    Resume(One),
    /// Answers the open question of a session; without a decision it shows the question and asks
    #[command(after_help = "\
In a terminal, without a decision: y approves, n rejects and asks why, e edits the arguments in $VISUAL
or $EDITOR (or on a line, if none is set), w answers in words, q leaves the question open.

Examples:
  daybook answer 0190a5c4
  daybook answer 0190a5c4 --approve
  daybook answer 0190a5c4 --reject --reason 'the dose is too high'
  daybook answer 0190a5c4 --edit arguments.json
  daybook answer 0190a5c4 --say 'use the two-compartment model'")]
    Answer(steer::Answer),
    /// Talks with the assistant about simulations, and asks before it touches one
    #[command(after_help = "\
At a confirmation: y approves, n [why] rejects, e [JSON] approves with other arguments, anything else
is words. Leaving ends nothing: the thread waits for a day.

Examples:
  daybook chat
  daybook chat --thread 0190a5c4                     joins a thread again
  printf '%s\\n' 'simulate 250 mg of theophylline' y y y y | daybook chat")]
    Chat(steer::Chat),
    /// Writes a session as JSON Lines to stdout: a record a line, then a witness with the head
    Export(One),
    /// Takes an exported session into the local journal
    #[command(after_help = "\
Example:
  daybook export 0190a5c4 >session.jsonl
  daybook --data elsewhere import session.jsonl")]
    Import(Import),
    /// Checks a session record by record and names what was changed, removed, added or reordered
    #[command(after_help = "\
Examples:
  daybook verify 0190a5c4
  daybook verify --file session.jsonl --head 8a1f…    against a head kept elsewhere")]
    Verify(Verify),
    /// Serves the page over a journal that no stack here runs: an account's, or a file
    #[command(after_help = "\
Prints `ready http://HOST:PORT` on stdout once it accepts. What the page is told for a session of an
account goes over the event bus and Step Functions, as answer, cancel and resume do.

Examples:
  daybook ui --target aws --stage dev
  daybook ui --data elsewhere")]
    Ui(Ui),
    /// Lists the agents that can be triggered
    Agents,
    /// Writes what an agent of your own begins with
    New(New),
    /// Lists what an MCP server offers: a configured one, or one of ours
    #[command(after_help = "\
Example:
  daybook tools aws-diagnostics")]
    Tools(Tools),
    /// Runs an MCP server of ours, on stdin and stdout or over HTTP
    #[command(after_help = "\
aws-diagnostics answers from an incident folder (--snapshot), or else from the account of the current
credentials, which --target aws has to allow, or from what AWS_ENDPOINT_URL names on this machine.
pk-sim simulates the models that ship and those of --models, and forgets its simulations when it ends
unless --state names a folder for them.
network-inventory answers from a described network (--inventory), or else from a healthy one that ships.

Examples, in any MCP client's configuration:
  {\"command\": \"daybook\", \"args\": [\"mcp\", \"aws-diagnostics\", \"--snapshot\", \"incidents/network-blocked\"]}
  {\"command\": \"daybook\", \"args\": [\"mcp\", \"pk-sim\", \"--state\", \"/var/lib/pk-sim\"]}

Over HTTP, with the bearer token in DAYBOOK_TOKEN if it is set:
  daybook mcp aws-diagnostics --target aws --record incidents/tonight --http 127.0.0.1:4600

card-transactions reads what --data names: a CSV or Parquet file, or a transaction service of this
machine (of any other with --allow-remote). A build with the feature `embeddings` compares past cases by
what they were for, too:
  daybook mcp card-transactions --data transactions/sample.csv
  daybook mcp card-transactions --data transactions/sample.csv --embeddings all-MiniLM-L6-v2")]
    Mcp(Mcp),
    /// Makes data to try agents with
    #[command(after_help = "\
Examples:
  daybook generate transactions --seed 7 --rows 5000 --output transactions.csv
  daybook generate transactions --seed 7 --rows 5000 --fraud-rate 0.05 | head")]
    Generate(payments::Generate),
    /// Breaks a Lambda function on purpose, and heals it
    #[command(after_help = "\
What is changed is written to .daybook/chaos before it is changed; revert puts it back from there.
It acts on what AWS_ENDPOINT_URL names on this machine, or else on the account of the current
credentials, and on that one only if --account names it.

Examples:
  daybook chaos inject permission --target s3 --account 123456789012
  daybook chaos inject throttle --to 0 --function payment-capture --account 123456789012
  daybook chaos revert permission --account 123456789012")]
    Chaos(chaos::Chaos),
    /// Checks a state machine, or runs it once, without a stack
    Workflow(Workflow),
    /// Looks for what keeps sessions from running here, or with --target aws in an account
    Doctor,
}

/// `workflow`.
#[derive(Debug, Group)]
pub struct Workflow {
    /// What to do with it.
    #[command(subcommand)]
    pub deed: WorkflowDeed,
}

/// What to do with a state machine.
#[derive(Debug, Subcommand)]
pub enum WorkflowDeed {
    /// Says what AWS would say of the definition; exits 1 if it would refuse it
    Check {
        /// The definition, or - for stdin
        #[arg(value_name = "PATH|-")]
        file: PathBuf,
    },
    /// Runs it once and prints its history: jumps over waits, calls only the functions of a file;
    /// exits 1 if it fails
    Run {
        /// The definition
        file: PathBuf,
        /// The input: a JSON file, or - for stdin [default: an empty object]
        #[arg(long, value_name = "PATH|-")]
        input: Option<PathBuf>,
        /// What its tasks may call: a file of functions, as for dev --functions
        #[arg(long, value_name = "FILE")]
        functions: Option<PathBuf>,
    },
}

/// `dev`.
#[derive(Debug, Group)]
pub struct Dev {
    /// Where to listen. Beyond loopback only with DAYBOOK_TOKEN set
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_LISTEN)]
    pub listen: String,
    /// Runs each session in a process of its own, as in the cloud
    #[arg(long)]
    pub isolate: bool,
    /// What a commit waits for
    #[arg(long, value_enum, default_value_t = Durability::Fsync)]
    pub durability: Durability,
    /// Runs the stack's clock this many times as fast
    #[arg(long, value_name = "N", default_value = "1")]
    pub time_scale: NonZeroU32,
    /// Runs this state machine instead of Daybook's own
    #[arg(long, value_name = "FILE")]
    pub workflow: Option<PathBuf>,
    /// What that state machine may call: a JSON file of commands and URLs by function name
    #[arg(long, value_name = "FILE", requires = "workflow")]
    pub functions: Option<PathBuf>,
    /// Plans of the network agent that stand over those that ship, one a file INTENT.json
    #[arg(long, value_name = "DIR")]
    pub plans: Option<PathBuf>,
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// The disk.
    Fsync,
    /// The operating system; a power cut may take the last commits.
    Relaxed,
}

/// `trigger`.
#[derive(Debug, Group)]
pub struct Trigger {
    /// The agent [default: incident for an incident folder, network for a network folder, else checkup]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// What the agent works on: a JSON file, an incident or network folder, or - for JSON on stdin
    #[arg(long, value_name = "PATH|-")]
    pub input: Option<PathBuf>,
    /// The event's detail; the other options stand over its fields
    #[arg(long, value_name = "JSON")]
    pub detail: Option<String>,
    /// policy, bedrock:ID, openai:NAME or transcript:FILE
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Follows the session to its end
    #[arg(long)]
    pub wait: bool,
    /// If nothing listens at the endpoint, starts a stack for the length of the run
    #[arg(long, requires = "wait")]
    pub with_stack: bool,
}

/// `sessions`.
#[derive(Debug, Group)]
pub struct Sessions {
    /// Begun since: so long ago (90s, 30m, 24h, 7d), or a time (2026-11-22T08:00:00Z)
    #[arg(long, value_name = "TIME", default_value = "24h")]
    pub since: When,
    /// Begun until, written as for --since [default: now]
    #[arg(long, value_name = "TIME")]
    pub until: Option<When>,
    /// Only sessions that stand so; several with commas
    #[arg(long, value_name = "STATUS", value_parser = status, value_delimiter = ',')]
    pub status: Vec<Status>,
    /// Only sessions of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only sessions with this text in their id, agent, error or open question
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value = "50")]
    pub limit: NonZeroU32,
    /// Only sessions behind this place, which a list that was cut short names
    #[arg(long, value_name = "PLACE")]
    pub after: Option<Place>,
}

/// `show`.
#[derive(Debug, Group)]
pub struct Show {
    /// The session's id, or how it begins
    pub session: String,
    /// Shows the steps among the events
    #[arg(long)]
    pub steps: bool,
    /// Shows the steps and what they hold
    #[arg(long)]
    pub payloads: bool,
    /// Shows tokens and dollars by node
    #[arg(long)]
    pub cost: bool,
}

/// `ui`.
#[derive(Debug, Group)]
pub struct Ui {
    /// Where to listen. Beyond loopback only with DAYBOOK_TOKEN set
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4600")]
    pub listen: String,
    /// With --target aws: the stage to look at, instead of DAYBOOK_STAGE and the names in the environment
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<String>,
}

/// A command on one session.
#[derive(Debug, Group)]
pub struct One {
    /// The session's id, or how it begins
    pub session: String,
}

/// `import`.
#[derive(Debug, Group)]
pub struct Import {
    /// An exported session, - for stdin
    pub file: PathBuf,
}

/// `verify`.
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("what").required(true).args(["session", "file"])))]
pub struct Verify {
    /// The session's id, or how it begins
    pub session: Option<String>,
    /// An exported session instead, - for stdin
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The head that a witness kept outside the journal, such as the execution's output
    #[arg(long, value_name = "HASH")]
    pub head: Option<String>,
}

/// `new`.
#[derive(Debug, Group)]
pub struct New {
    /// What is written.
    #[command(subcommand)]
    pub what: NewWhat,
}

/// What `new` writes.
#[derive(Debug, Subcommand)]
pub enum NewWhat {
    /// A crate with an agent, its tests, and a `daybook` of its own
    #[command(after_help = "\
Example:
  daybook new agent janitor
  cd janitor && cargo test")]
    Agent(NewAgent),
}

/// `new agent`.
#[derive(Debug, Group)]
pub struct NewAgent {
    /// The agent's name and the crate's; the folder of this name is made here
    pub name: String,
    /// Where the crate finds Daybook: a checkout's folder or a git URL [default: the checkout that
    /// this binary was built from]
    #[arg(long, value_name = "DIR|URL")]
    pub daybook: Option<String>,
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
    /// The incident folder to answer from (aws-diagnostics)
    #[arg(long, value_name = "DIR")]
    pub snapshot: Option<PathBuf>,
    /// Makes an incident folder of what the account answers (aws-diagnostics)
    #[arg(long, value_name = "DIR", conflicts_with = "snapshot")]
    pub record: Option<PathBuf>,
    /// Models of your own, one a file NAME.json (pk-sim)
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
    /// The network to answer from [default: a healthy one that ships] (network-inventory)
    #[arg(long, value_name = "FILE")]
    pub inventory: Option<PathBuf>,
    /// Keeps the simulations there (pk-sim)
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Lets a service on another machine be asked (card-transactions)
    #[arg(long)]
    pub allow_remote: bool,
    /// Compares past cases by their texts, too, with the sentence transformer in this folder
    /// (card-transactions)
    #[arg(long, value_name = "DIR")]
    pub embeddings: Option<PathBuf>,
    /// Serves Streamable HTTP there. Beyond loopback only with DAYBOOK_TOKEN set
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
}

fn status(text: &str) -> Result<Status, String> {
    Status::parse(&text.to_ascii_uppercase()).ok_or_else(|| {
        let names: Vec<_> = Status::ALL.iter().map(|status| status.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_status_is_read_in_any_case() {
        assert_eq!(status("failed"), Ok(Status::Failed));
        assert_eq!(status("TIMED_OUT"), Ok(Status::TimedOut));
        assert!(status("broken").unwrap_err().contains("REJECTED"));
    }
}
