//! Who sends a request. The guard has admitted it; no body can change the answer.
//!
//! A stack with a token knows that a caller holds it, and records the token's name. Without a token it
//! cannot know the caller: loopback TCP carries no credentials of the peer. Then it records the OS user
//! that the client states, as stated, or that the caller is unknown.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response};
use axum::middleware::Next;
use journal::principal::{Name, Principal};
use workflow::contract::USER_HEADER;

/// The name of a token's holder, if no other is set.
pub const TOKEN_NAME: &str = "default";

/// What a server knows of its callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callers {
    /// They hold the server's token, which has this name.
    Token(Name),
    /// They may state their OS user.
    Stated,
    /// Nothing: the stack calls itself.
    Unknown,
}

impl Callers {
    /// The callers of a server with or without a token; an empty one counts as none.
    pub fn new(token: Option<&str>, name: Option<Name>) -> Self {
        match token.filter(|token| !token.is_empty()) {
            Some(_) => name.or_else(|| TOKEN_NAME.parse().ok()).map_or(Self::Unknown, Self::Token),
            None => Self::Stated,
        }
    }

    fn principal(&self, headers: &HeaderMap) -> Principal {
        match self {
            Self::Token(name) => Principal::Token(name.clone()),
            Self::Stated => stated(headers).map_or(Principal::Unknown, Principal::OsUser),
            Self::Unknown => Principal::Unknown,
        }
    }
}

/// The user that the request states, if it states exactly one.
fn stated(headers: &HeaderMap) -> Option<Name> {
    let mut users = headers.get_all(USER_HEADER).iter();
    let user = users.next().filter(|_| users.next().is_none())?;
    user.to_str().ok()?.parse().ok()
}

/// Adds the principal to an admitted request.
pub(super) async fn identify(
    State(callers): State<Callers>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let principal = callers.principal(request.headers());
    request.extensions_mut().insert(principal);
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokens_holder_is_known_and_a_user_is_only_stated() {
        let token = Callers::new(Some("secret"), Some("ci".parse().unwrap()));
        let unnamed = Callers::new(Some("secret"), None);
        let open = Callers::new(Some(""), Some("ci".parse().unwrap()));
        for (callers, users, expected) in [
            (&token, &["root"][..], "token:ci"),
            (&unnamed, &[], "token:default"),
            (&open, &["alice"], "os-user:alice"),
            (&open, &[], "unknown"),
            (&open, &["alice", "bob"], "unknown"),
            (&open, &["a b"], "unknown"),
            (&open, &[""], "unknown"),
            (&Callers::Unknown, &["alice"], "unknown"),
        ] {
            let given =
                users.iter().map(|user| (USER_HEADER.parse().unwrap(), user.parse().unwrap()));
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                let _: bool = headers.append::<axum::http::HeaderName>(name, value);
            }
            assert_eq!(callers.principal(&headers).to_string(), expected, "{users:?}");
        }
    }
}
