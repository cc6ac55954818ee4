//! Annotations of tools: what a call may change.

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::ToolAnnotations;

/// A tool's name, its title, and what a call may change.
pub type Hint = (&'static str, &'static str, Effect);

/// What a call may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Reads,
    /// It adds. A repeated call adds again.
    Creates,
    /// It overwrites. A repeated call changes nothing more.
    Overwrites,
}

/// Annotates tools; `open_world` says whether they reach beyond the server's own data.
///
/// # Panics
/// When the router has no tool of that name.
pub fn annotated<S>(mut router: ToolRouter<S>, open_world: bool, hints: &[Hint]) -> ToolRouter<S> {
    for (name, title, effect) in hints {
        let Some(route) = router.map.get_mut(*name) else { panic!("no tool is called {name}") };
        route.attr.annotations = Some(ToolAnnotations::from_raw(
            Some((*title).to_owned()),
            Some(*effect == Effect::Reads),
            Some(*effect == Effect::Overwrites),
            Some(*effect != Effect::Creates),
            Some(open_world),
        ));
    }
    router
}
