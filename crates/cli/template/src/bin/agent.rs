// The container, with this crate's agent and the bundled ones.

fn main() -> Result<(), agent::container::Error> {
    agent::container::main_with(packs::all_and(vec![janitor::agent()])?)
}
