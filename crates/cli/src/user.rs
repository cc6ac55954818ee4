//! The OS user of this process, which a local stack records as stated.

use journal::principal::Name;
use nix::unistd::{Uid, User};

/// The effective user's name, or `uid-N` if the system has no name for it; `None` if a principal cannot
/// hold the name.
pub fn name() -> Option<Name> {
    let uid = Uid::effective();
    match User::from_uid(uid) {
        Ok(Some(user)) => user.name.parse().ok(),
        Ok(None) | Err(_) => format!("uid-{uid}").parse().ok(),
    }
}
