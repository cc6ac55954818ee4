//! The command that breaks functions and heals them.

use clap::{Args as Group, Subcommand};

/// `chaos`.
#[derive(Debug, Group)]
pub struct Chaos {
    /// What is done.
    #[command(subcommand)]
    pub deed: Deed,
}

/// What `chaos` does.
#[derive(Debug, Subcommand)]
pub enum Deed {
    /// Breaks a function
    Inject(ChaosFault),
    /// Heals a function, as often as you like
    Revert(ChaosFault),
}

/// A fault of a function.
#[derive(Debug, Group)]
pub struct ChaosFault {
    /// What is broken.
    #[command(subcommand)]
    pub fault: FaultName,
}

/// What is broken.
#[derive(Debug, Subcommand)]
pub enum FaultName {
    /// The function's role loses S3, CloudWatch or both: --target s3, cloudwatch, both
    Permission(Victim),
    /// The function is left no invocation at a time, or one: --to 0, 1
    Throttle {
        /// How many are left
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=1))]
        to: Option<u8>,
        /// Whose.
        #[command(flatten)]
        victim: Victim,
    },
    /// Nothing leaves the function's security groups any more
    Network(Victim),
}

/// Whose function it is.
#[derive(Debug, Group)]
pub struct Victim {
    /// The function
    #[arg(long, value_name = "NAME", default_value = "data-processor")]
    pub function: String,
    /// The account that the credentials have to be of
    #[arg(long, value_name = "ID")]
    pub account: Option<String>,
}
