//! Process control beyond the standard library: children that die with the parent, and process groups.

use tokio::process::Command;

/// The kernel kills the child when the thread that started it ends, however it ends.
#[cfg(target_os = "linux")]
pub(crate) fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    #[expect(unsafe_code, reason = "only prctl ties a child's life to its parent's")]
    // SAFETY: between fork and exec only async-signal-safe calls are made: prctl, getppid, _exit.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // The parent may have died before prctl.
            if u32::try_from(libc::getppid()).ok() != Some(parent) {
                libc::_exit(1);
            }
            Ok(())
        });
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn die_with_parent(_: &mut Command) {}

/// Kills a process group whose leader has not been waited for.
#[expect(unsafe_code, reason = "the standard library kills single processes only")]
pub(crate) fn kill_group(leader: u32) {
    let Ok(leader) = i32::try_from(leader) else { return };
    assert!(leader > 1, "a group of our own");
    // SAFETY: one system call on integers; it fails if there is no such group.
    unsafe {
        libc::kill(-leader, libc::SIGKILL);
    }
}
