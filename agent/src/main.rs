//! The binary `agent`: the container's program with the agents that ship.

fn main() -> Result<(), agent::container::Error> {
    agent::container::main_with(packs::all().into())
}
