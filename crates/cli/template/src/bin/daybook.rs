// The program `daybook`, with this crate's agent and the bundled ones.

fn main() -> std::process::ExitCode {
    cli::main_with(vec![janitor::agent()])
}
