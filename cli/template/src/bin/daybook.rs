// The whole of `daybook`, with the agent of this crate beside those that ship.

fn main() -> std::process::ExitCode {
    cli::main_with(vec![janitor::agent()])
}
