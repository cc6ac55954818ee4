//! The binary `agent`, with the agents that ship.

fn main() -> Result<(), agent::container::Error> {
    agent::container::main_with(Vec::new())
}
