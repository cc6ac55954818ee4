// The container, with the agent of this crate beside those that ship.

fn main() -> Result<(), agent::container::Error> {
    agent::container::main_with(vec![janitor::agent()])
}
