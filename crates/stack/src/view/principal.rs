//! Who acted on a session.

use journal::principal;
use serde::Serialize;

/// Who acted, and who checked that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Principal {
    pub kind: &'static str,
    pub name: Option<String>,
    /// Null if the client only stated the name, or there is none.
    pub vouched_by: Option<&'static str>,
}

impl Principal {
    pub(super) fn of(principal: &principal::Principal) -> Self {
        let (kind, vouched_by) = (principal.kind(), principal.vouched_by());
        Self { kind, name: principal.name().map(str::to_owned), vouched_by }
    }
}
