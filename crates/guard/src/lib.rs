//! Admission of HTTP requests to local servers: by `Host`, `Origin` and token.
//!
//! A web page can send requests to any local port (cross-site request forgery), and its author can
//! point a domain to this machine (DNS rebinding). The first shows in `Origin`, the second in `Host`.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use subtle::ConstantTimeEq as _;

/// The rules for the requests of one server.
#[derive(Clone, Debug)]
pub struct Guard {
    listen: IpAddr,
    token: Option<Token>,
}

/// A server that listens beyond loopback has no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("listening on {0}, which is not loopback, needs DAYBOOK_TOKEN to be set")]
pub struct TokenMissing(pub IpAddr);

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// `Host` is missing or names another server.
    #[error("the Host header of this request does not name this server")]
    Host,
    /// A page of another origin sent it.
    #[error("the Origin header of this request is not this server's")]
    Origin,
    /// Its token is missing or wrong. Each server words this for its clients.
    #[error("the token of this request is missing or wrong")]
    Token,
}

impl Refusal {
    /// The HTTP status of the answer.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
        }
    }
}

impl Guard {
    /// The guard of a server on this address. An empty token counts as none.
    ///
    /// # Errors
    /// If the address is not loopback and there is no token.
    pub fn new(listen: IpAddr, token: Option<&str>) -> Result<Self, TokenMissing> {
        let token = token.filter(|token| !token.is_empty()).map(|token| Token(token.into()));
        if token.is_none() && !listen.is_loopback() {
            return Err(TokenMissing(listen));
        }
        Ok(Self { listen, token })
    }

    /// Checks a request's `Host` and `Origin`.
    ///
    /// # Errors
    /// [`Refusal::Host`] and [`Refusal::Origin`].
    pub fn admit_address(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        let host = text(headers, &HOST).or_else(|| uri.authority().map(|a| a.as_str()));
        let Some(host) = host.filter(|host| self.is_ours(host)) else {
            return Err(Refusal::Host);
        };
        // Only a page from the requested address is same-origin.
        if headers.contains_key(ORIGIN) {
            let origin = text(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
            if origin != Some(host) {
                return Err(Refusal::Origin);
            }
        }
        Ok(())
    }

    /// Checks a request's tokens; one valid token suffices.
    ///
    /// # Errors
    /// [`Refusal::Token`].
    pub fn admit_token<'a>(&self, given: impl IntoIterator<Item = &'a str>) -> Result<(), Refusal> {
        match &self.token {
            Some(token) if !given.into_iter().any(|given| token.is(given)) => Err(Refusal::Token),
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
            // On all interfaces any IP address may be this server's; the token protects it.
            Ok(_) => self.listen.is_unspecified(),
            Err(_) => false,
        }
    }
}

/// A request's bearer token.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    text(headers, &AUTHORIZATION)?.strip_prefix("Bearer ")
}

/// A secret that `Debug` redacts.
#[derive(Clone)]
struct Token(Arc<str>);

impl Token {
    /// Compares in constant time.
    fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
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
        let admitted = guard
            .admit_address(&headers, &Uri::from_static("/"))
            .and_then(|()| guard.admit_token(bearer(&headers)));
        admitted.err().map_or(200, |refusal| refusal.status().as_u16())
    }

    #[test]
    fn only_our_own_names_and_pages_are_served() {
        let guard = Guard::new("127.0.0.1".parse().unwrap(), None).unwrap();
        for (host, expected) in [
            ("127.0.0.1:4599", 200),
            ("localhost:1", 200),
            ("LOCALHOST", 200),
            ("[::1]:4599", 200),
            ("evil.example:4599", 403),
            ("127.0.0.1.evil.example", 403),
            ("192.168.0.7:4599", 403),
            ("", 403),
        ] {
            assert_eq!(status(&guard, &[(HOST, host)]), expected, "{host}");
        }
        assert_eq!(status(&guard, &[]), 403);
        for (origin, expected) in [
            ("http://localhost:4599", 200),
            ("http://localhost:3000", 403),
            ("https://evil.example", 403),
            ("http://\u{e4}", 403),
            ("null", 403),
        ] {
            let headers = [(HOST, "localhost:4599"), (ORIGIN, origin)];
            assert_eq!(status(&guard, &headers), expected, "{origin}");
        }
    }

    #[test]
    fn a_token_is_required_if_set_or_beyond_loopback() {
        let everywhere: IpAddr = "0.0.0.0".parse().unwrap();
        assert_eq!(Guard::new(everywhere, None).unwrap_err(), TokenMissing(everywhere));
        assert!(Guard::new(everywhere, Some("")).is_err());
        for (listen, host) in [("0.0.0.0", "192.168.0.7:4599"), ("127.0.0.1", "127.0.0.1:4600")] {
            let guard = Guard::new(listen.parse().unwrap(), Some("secret")).unwrap();
            for (authorization, expected) in [
                ("Bearer secret", 200),
                ("Bearer secreT", 401),
                ("Bearer secrets", 401),
                ("Bearer ", 401),
                ("secret", 401),
            ] {
                let headers = [(HOST, host), (AUTHORIZATION, authorization)];
                assert_eq!(status(&guard, &headers), expected, "{listen} {authorization}");
            }
            assert_eq!(status(&guard, &[(HOST, host)]), 401);
            assert!(!format!("{guard:?}").contains("secret"));
        }
    }
}
