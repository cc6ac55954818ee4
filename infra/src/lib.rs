//! Daybook's stack in an AWS account, said in Rust and built with the AWS CDK.
//!
//! [`synth`] makes the app: for each stage two stacks, the repository of the agent's image ([`image`])
//! and everything else ([`stack`]). What is decided is decided in plain Rust first: [`config`] reads and
//! checks what can be chosen, [`names`] gives everything its name, [`roles`] says what each role may do.
//! The rest hands this to the CDK, whose library runs in a jsii kernel ([`packages`]) and is reached
//! through the typed bindings in [`cdk`], which `jsii-codegen` writes from `infra/bindings.toml`.
//!
//! A property that the library does not have is a compile error:
//!
//! ```
//! use infra::cdk::aws_sqs::QueueProps;
//! let props = QueueProps::new().queue_name("dead-letters");
//! # let _ = props;
//! ```
//!
//! ```compile_fail,E0599
//! use infra::cdk::aws_sqs::QueueProps;
//! let props = QueueProps::new().queue_nam("dead-letters");
//! ```
//!
//! So is a value of another type, and a required property that is left out:
//!
//! ```
//! use infra::cdk::aws_dynamodb::{Attribute, AttributeType};
//! let key = Attribute::new("PK", AttributeType::String);
//! # let _ = key;
//! ```
//!
//! ```compile_fail,E0308
//! use infra::cdk::aws_dynamodb::{Attribute, AttributeType};
//! let key = Attribute::new("PK", "String");
//! ```
//!
//! ```compile_fail,E0061
//! use infra::cdk::aws_dynamodb::{Attribute, AttributeType};
//! let key = Attribute::new("PK");
//! ```

mod alarms;
pub mod cdk;
pub mod config;
mod functions;
pub mod image;
mod incidents;
mod machine;
pub mod names;
pub mod packages;
pub mod policy;
pub mod roles;
mod runtime;
pub mod stack;
mod table;
mod triggers;

use std::path::Path;

use anyhow::{Context as _, Result};
use jsii::Kernel;

use cdk::constructs::Construct;
use cdk::{App, AppProps};
use config::Config;

/// Where a run of [`synth`] reads and writes, beside the environment that the CDK's own commands set.
#[derive(Clone, Debug, Default)]
pub struct Options<'a> {
    /// The folder for the templates; without it the CDK's command says, or `cdk.out`.
    pub out: Option<&'a Path>,
    /// What is chosen, by name; stands over what the CDK's command passes.
    pub context: Vec<(String, String)>,
}

/// Makes the app and writes its templates.
///
/// # Errors
/// When a choice is not usable or the library refuses something.
pub fn synth(kernel: &Kernel, options: &Options<'_>) -> Result<()> {
    app(kernel, options)?.synth()?;
    Ok(())
}

/// Makes the app without writing anything.
///
/// # Errors
/// When a choice is not usable or the library refuses something.
pub fn app(kernel: &Kernel, options: &Options<'_>) -> Result<App> {
    let context: Vec<(&str, jsii::Value)> = options
        .context
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().into()))
        .collect();
    // Analytics and tree metadata would make the output depend on where it was made.
    let mut props =
        AppProps::new().context(&context).analytics_reporting(false).tree_metadata(false);
    if let Some(out) = options.out {
        props = props.outdir(out.to_str().context("the output folder's name is no UTF-8")?);
    }
    let app = App::new_with(kernel, props)?;
    let config = read_config(&app)?;
    let images = image::stack(&app, &config)?;
    stack::stack(&app, &config, &images)?;
    Ok(app)
}

fn read_config(app: &App) -> Result<Config> {
    let root: Construct = jsii::Is::upcast(app);
    let node = root.node()?;
    let mut given = Vec::new();
    for name in config::NAMES {
        given.push((*name, node.try_get_context(*name)?));
    }
    let lookup = |name: &str| {
        given.iter().find(|(known, _)| *known == name).and_then(|(_, value)| config::text(value))
    };
    Ok(Config::read(&lookup)?)
}
