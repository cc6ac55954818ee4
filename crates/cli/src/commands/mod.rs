//! The commands: each runs a resolved action and returns its exit code.

mod account;
mod actions;
mod answer;
mod backoff;
mod backup;
mod catalogue;
mod chat;
mod check;
pub(crate) mod cloud;
mod compare;
mod dev;
mod doctor;
mod drain;
pub(crate) mod eval;
mod halts;
mod keys;
mod machine;
mod new;
mod open;
mod own_stack;
mod pack;
mod prune;
mod read;
mod restore;
mod serve;
mod servers;
pub(crate) mod steer;
mod transfer;
mod trigger;
mod ui;
mod verify;
mod watch;
mod witness;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::failure::{Exit, Failure};
use crate::output;
use crate::resolve::cloud::Cloud;
use crate::resolve::{Action, Context, Resolved};

#[cfg(feature = "live")]
pub(crate) use cloud::said;

/// Looks up the resource names of the account's stack.
#[cfg(feature = "live")]
async fn there(context: &Context) -> Result<Cloud, Failure> {
    let aws = aws_config::load_defaults(aws_config::BehaviorVersion::latest()).await;
    crate::outputs::named(&context.cloud, &aws).await
}

/// Without AWS support, only the environment has the names.
#[cfg(not(feature = "live"))]
async fn there(context: &Context) -> Result<Cloud, Failure> {
    Ok(context.cloud.clone())
}

/// Runs a command.
///
/// # Errors
/// The command's.
pub async fn run(command: Resolved) -> Result<Exit, Failure> {
    let Resolved { mut context, action } = command;
    if action.is_about_an_account(&context) {
        context.cloud = there(&context).await?;
    }
    match action {
        Action::Dev(options, environment) => dev::dev(&context, options, environment).await,
        Action::Trigger(order) => trigger::trigger(&context, order).await,
        Action::Sessions(filter) => read::sessions(&context, filter).await,
        Action::Show(what) => read::show(&context, &what).await,
        Action::Tail(session) => watch::tail(&context, &session).await,
        Action::Open(session) => open::open(&context, &session).await,
        Action::Compare(sessions) => compare::compare(&context, &sessions).await,
        Action::Completions(shell) => catalogue::completions(&context, shell),
        Action::Man => catalogue::man(&context),
        Action::Cancel(cancel) => steer::cancel(&context, cancel).await,
        Action::Resume(resume) => steer::resume(&context, resume).await,
        Action::Erase(erase) => steer::erase(&context, erase).await,
        Action::Halts(change, request) => halts::change(&context, change, &request).await,
        Action::Drain(within) => drain::drain(&context, within).await,
        Action::Answer { session, digest, decision } => {
            answer::answer(&context, &session, decision, digest.as_deref()).await
        }
        Action::Export(session) => transfer::export(&context, &session).await,
        Action::Import(file) => transfer::import(&context, &file).await,
        Action::Verify(subject, checks) => verify::verify(&context, subject, checks).await,
        Action::Backup(file) => backup::backup(&context, &file).await,
        Action::Restore(restore) => restore::restore(&context, &restore).await,
        Action::Prune(options) => prune::prune(&context, options).await,
        Action::Hold(held) => prune::hold(&context, held).await,
        Action::Release(held) => prune::release(&context, held).await,
        Action::Ui(listen) => ui::ui(&context, &listen).await,
        Action::Agents => catalogue::agents(&context),
        Action::Check(options, environment) => check::check(&context, &options, &environment).await,
        Action::NewAgent(new) => new::agent(&context, &new),
        Action::Tools(server, environment) => {
            catalogue::tools(&context, &server, &environment).await
        }
        Action::Chat(options) => chat::chat(&context, options).await,
        Action::OfPack(command) => pack::run(&context, command).await,
        Action::Witness(serve) => witness::serve(&context, serve).await,
        Action::Keys(action) => keys::keys(&context, action).await,
        Action::Doctor(environment) => doctor::doctor(&context, environment).await,
        Action::Eval(plan) => eval::eval(&context, *plan).await,
        Action::Workflow(action) => machine::machine(&context, &action).await,
        Action::Mcp(serving) => serve::mcp(&context, serving).await,
    }
}

/// Lets the stack of this data folder read these files. The folder is writable for the stack's user alone,
/// so a grant proves that this user named the file. Without one the session says which path it lacks.
fn grant(folder: &Path, files: &[PathBuf]) {
    let grants = folder.join(files::GRANTS_FOLDER);
    // The data folder of a stack on another machine is not here.
    for file in files.iter().filter(|_| folder.is_dir()) {
        match files::grant(&grants, file) {
            // The session names what it does not find.
            Err(error) if error.kind() != ErrorKind::NotFound => {
                output::say(&format!("cannot allow the stack to read {}: {error}", file.display()))
            }
            _ => {}
        }
    }
}
