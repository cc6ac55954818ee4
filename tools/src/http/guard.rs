//! Who may ask: those who address this machine by a name of ours, from no foreign page, and with
//! the token if there is one.
//!
//! A page in a browser can send requests to any port of this machine, and a name of its own can be
//! made to point here. The first shows in `Origin`, the second in `Host`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

/// What is asked of every request.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    listen: IpAddr,
    token: Option<Token>,
}

/// A server that others can reach needs a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("listening on {0}, which is not loopback, needs DAYBOOK_TOKEN to be set")]
pub struct TokenMissing(pub IpAddr);

/// A secret; its `Debug` shows nothing of it.
#[derive(Clone)]
struct Token(Arc<str>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Guard {
    /// The guard of a server that listens there. An empty token is none.
    ///
    /// # Errors
    /// When the address is not loopback and there is no token.
    pub(super) fn new(listen: IpAddr, token: Option<&str>) -> Result<Self, TokenMissing> {
        let token = token.filter(|token| !token.is_empty()).map(|token| Token(token.into()));
        if token.is_none() && !listen.is_loopback() {
            return Err(TokenMissing(listen));
        }
        Ok(Self { listen, token })
    }

    /// Judges a request by its headers; the status and the reason of a refusal.
    fn admit(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), (StatusCode, &'static str)> {
        let host = text(headers, &HOST).or_else(|| uri.authority().map(|a| a.as_str()));
        let Some(host) = host.filter(|host| self.is_ours(host)) else {
            return Err((StatusCode::FORBIDDEN, "the Host of this request is not ours"));
        };
        // We serve no pages: only a page at our own address could be meant for us.
        if headers.contains_key(ORIGIN) {
            let origin = text(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
            if origin != Some(host) {
                return Err((StatusCode::FORBIDDEN, "the Origin of this request is not ours"));
            }
        }
        match &self.token {
            Some(token) if !presents(headers, &token.0) => {
                Err((StatusCode::UNAUTHORIZED, "this server wants its token as bearer"))
            }
            _ => Ok(()),
        }
    }

    fn is_ours(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(rest),
            None => host.split(':').next().unwrap_or(host),
        };
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        match name.parse::<IpAddr>() {
            Ok(address) if address.is_loopback() || address == self.listen => true,
            // Behind a token, every address by which one of all interfaces is reached is ours.
            Ok(_) => self.listen.is_unspecified(),
            Err(_) => false,
        }
    }
}

/// Lets a request through or answers it with the reason why not.
pub(super) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    match guard.admit(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refusal @ (StatusCode::UNAUTHORIZED, _)) => {
            ([(WWW_AUTHENTICATE, "Bearer")], refusal).into_response()
        }
        Err(refusal) => refusal.into_response(),
    }
}

fn presents(headers: &HeaderMap, token: &str) -> bool {
    text(headers, &AUTHORIZATION)
        .and_then(|value| value.strip_prefix("Bearer "))
        .is_some_and(|given| same(given.as_bytes(), token.as_bytes()))
}

/// Compares in a time that does not tell where two texts part.
fn same(given: &[u8], expected: &[u8]) -> bool {
    let different = given.iter().zip(expected).fold(0, |acc, (a, b)| acc | (a ^ b));
    given.len() == expected.len() && std::hint::black_box(different) == 0
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(guard: &Guard, headers: &[(HeaderName, &str)]) -> u16 {
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        guard
            .admit(&headers, &Uri::from_static("/mcp"))
            .err()
            .map_or(200, |(status, _)| status.into())
    }

    #[test]
    fn only_our_own_names_and_pages_are_served() {
        let guard = Guard::new("127.0.0.1".parse().unwrap(), None).unwrap();
        for (host, expected) in [
            ("127.0.0.1:4600", 200),
            ("localhost:1", 200),
            ("[::1]:4600", 200),
            ("evil.example:4600", 403),
            ("127.0.0.1.evil.example", 403),
            ("192.168.0.7:4600", 403),
            ("", 403),
        ] {
            assert_eq!(status(&guard, &[(HOST, host)]), expected, "{host}");
        }
        assert_eq!(status(&guard, &[]), 403);
        for (origin, expected) in [
            ("http://localhost:4600", 200),
            ("http://localhost:3000", 403),
            ("https://evil.example", 403),
            ("null", 403),
        ] {
            let headers = [(HOST, "localhost:4600"), (ORIGIN, origin)];
            assert_eq!(status(&guard, &headers), expected, "{origin}");
        }
    }

    #[test]
    fn a_token_is_wanted_wherever_there_is_one_and_always_beyond_loopback() {
        let everywhere: IpAddr = "0.0.0.0".parse().unwrap();
        assert_eq!(Guard::new(everywhere, None).unwrap_err(), TokenMissing(everywhere));
        assert!(Guard::new(everywhere, Some("")).is_err());
        for listen in ["0.0.0.0", "127.0.0.1"] {
            let guard = Guard::new(listen.parse().unwrap(), Some("secret")).unwrap();
            let host = (HOST, "127.0.0.1:4600");
            for (authorization, expected) in [
                ("Bearer secret", 200),
                ("Bearer secreT", 401),
                ("Bearer secrets", 401),
                ("Bearer ", 401),
                ("secret", 401),
            ] {
                let headers = [host.clone(), (AUTHORIZATION, authorization)];
                assert_eq!(status(&guard, &headers), expected, "{listen} {authorization}");
            }
            assert_eq!(status(&guard, &[host]), 401);
            assert!(!format!("{guard:?}").contains("secret"));
        }
    }
}
