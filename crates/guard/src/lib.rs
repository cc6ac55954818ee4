//! Admission of HTTP requests to local servers: by `Host`, `Origin`, `Sec-Fetch-Site` and token; and
//! [`serve()`], which bounds their connections in number and time.
//!
//! A web page can send requests to any local port (cross-site request forgery), and its author can
//! point a domain to this machine (DNS rebinding). The first shows in `Origin` and `Sec-Fetch-Site`, the
//! second in `Host`. A header that is repeated or not ASCII is refused: two readers could differ on it.

mod connections;
mod serve;
mod stall;

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use subtle::ConstantTimeEq as _;

pub use serve::serve;

/// Set by browsers: where the page that sent the request comes from.
///
/// Source: W3C, "Fetch Metadata Request Headers".
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Set by a proxy: the scheme of the request that it received.
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The rules for the requests of one server.
#[derive(Clone, Debug)]
pub struct Guard {
    listen: IpAddr,
    token: Option<Secret>,
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
    /// A page of another site sent it, according to its browser.
    #[error("the Sec-Fetch-Site header of this request names another site")]
    Site,
    /// Its token is missing or wrong. Each server words this for its clients.
    #[error("the token of this request is missing or wrong")]
    Token,
}

impl Refusal {
    /// The HTTP status of the answer.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin | Self::Site => StatusCode::FORBIDDEN,
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
        let token = token.filter(|token| !token.is_empty()).map(Secret::new);
        if token.is_none() && !listen.is_loopback() {
            return Err(TokenMissing(listen));
        }
        Ok(Self { listen, token })
    }

    /// Checks where a request comes from: its `Host`, its `Origin`, and its `Sec-Fetch-Site`.
    ///
    /// # Errors
    /// [`Refusal::Host`], [`Refusal::Origin`] and [`Refusal::Site`].
    pub fn admit_source(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        self.admit_address(headers, uri)?;
        // Pages of another port of this machine are of the same site, and not ours.
        match single(headers, &SEC_FETCH_SITE) {
            Single::Absent | Single::Text("same-origin" | "none") => Ok(()),
            Single::Text(_) | Single::Unusable => Err(Refusal::Site),
        }
    }

    /// Checks a request's `Host` and `Origin`. Suffices for the page's own files, which other sites may
    /// link to.
    ///
    /// # Errors
    /// [`Refusal::Host`] and [`Refusal::Origin`].
    pub fn admit_address(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        let authority = uri.authority().map(|authority| authority.as_str());
        let host = match (single(headers, &HOST), authority) {
            (Single::Text(host), None) => host,
            (Single::Text(host), Some(authority)) if host == authority => host,
            (Single::Absent, Some(authority)) => authority,
            _ => return Err(Refusal::Host),
        };
        if !self.is_ours(host) {
            return Err(Refusal::Host);
        }
        // Only a page from the requested address is same-origin.
        let scheme = if is_forwarded_https(headers) { "https://" } else { "http://" };
        match single(headers, &ORIGIN) {
            Single::Absent => Ok(()),
            Single::Text(origin) if origin.strip_prefix(scheme) == Some(host) => Ok(()),
            Single::Text(_) | Single::Unusable => Err(Refusal::Origin),
        }
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
        match Name::of(host) {
            // On all interfaces any IP address may be this server's; the token protects it.
            Some(Name::Address(_)) if self.listen.is_unspecified() => true,
            Some(Name::Address(address)) if address == self.listen => true,
            _ => is_loopback(host),
        }
    }
}

/// Whether a `Host` header names an IP address or `localhost`. A domain that an attacker controls
/// (DNS rebinding) does neither.
pub fn is_address(headers: &HeaderMap) -> bool {
    matches!(single(headers, &HOST), Single::Text(host) if Name::of(host).is_some())
}

/// Whether an authority, `HOST` or `HOST:PORT`, is `localhost` or a loopback address.
pub fn is_loopback(authority: &str) -> bool {
    match Name::of(authority) {
        Some(Name::Localhost) => true,
        Some(Name::Address(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether a proxy says that it received this request over TLS.
pub fn is_forwarded_https(headers: &HeaderMap) -> bool {
    matches!(single(headers, &X_FORWARDED_PROTO), Single::Text("https"))
}

/// A host that can be this machine.
enum Name {
    Localhost,
    Address(IpAddr),
}

impl Name {
    /// Parses `HOST` or `HOST:PORT`, with an IPv6 address in brackets. `None` for any other host.
    fn of(host: &str) -> Option<Self> {
        let (name, rest) = match host.strip_prefix('[') {
            Some(host) => {
                let (address, rest) = host.split_once(']')?;
                (Self::Address(address.parse::<Ipv6Addr>().ok()?.into()), rest)
            }
            None => {
                let (name, rest) = host.split_at(host.find(':').unwrap_or(host.len()));
                if name.eq_ignore_ascii_case("localhost") {
                    (Self::Localhost, rest)
                } else {
                    (Self::Address(name.parse().ok()?), rest)
                }
            }
        };
        let is_port = |port: &str| {
            port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok()
        };
        (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port)).then_some(name)
    }
}

/// A request's bearer token. A repeated header has none.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    match single(headers, &AUTHORIZATION) {
        Single::Text(text) => text.strip_prefix("Bearer "),
        Single::Absent | Single::Unusable => None,
    }
}

/// A secret that `Debug` redacts.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Compares in constant time.
    pub fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }

    /// The secret itself, for the one who must know it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A header that may occur once.
enum Single<'a> {
    Absent,
    Text(&'a str),
    /// Repeated, or not visible ASCII.
    Unusable,
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Single<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(|value| value.to_str()), values.next()) {
        (None, _) => Single::Absent,
        (Some(Ok(text)), None) => Single::Text(text),
        _ => Single::Unusable,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn status(guard: &Guard, headers: &[(HeaderName, &str)]) -> u16 {
        let mut given = HeaderMap::new();
        for (name, value) in headers {
            given.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let headers = given;
        let admitted = guard
            .admit_source(&headers, &Uri::from_static("/"))
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
            ("[::1]", 200),
            ("[::1]evil", 403),
            ("[::1]evil:4599", 403),
            ("[::1]:4599.evil.example", 403),
            ("[::1", 403),
            ("[::1%25lo]", 403),
            ("[127.0.0.1]", 403),
            ("::1", 403),
            ("127.0.0.1:", 403),
            ("127.0.0.1:+80", 403),
            ("127.0.0.1:99999", 403),
            ("127.0.0.1:4599@evil.example", 403),
            ("user@127.0.0.1", 403),
            ("localhost.:4599", 403),
            ("loc\u{430}lhost:4599", 403),
            ("127.0.0.1, evil.example", 403),
        ] {
            assert_eq!(status(&guard, &[(HOST, host)]), expected, "{host}");
        }
        assert_eq!(status(&guard, &[]), 403);
        for (origin, expected) in [
            ("http://localhost:4599", 200),
            ("http://localhost:3000", 403),
            ("https://localhost:4599", 403),
            ("https://evil.example", 403),
            ("http://\u{e4}", 403),
            ("null", 403),
        ] {
            let headers = [(HOST, "localhost:4599"), (ORIGIN, origin)];
            assert_eq!(status(&guard, &headers), expected, "{origin}");
        }
    }

    #[test]
    fn a_repeated_header_is_refused() {
        let guard = Guard::new("127.0.0.1".parse().unwrap(), None).unwrap();
        let (host, origin) = ((HOST, "localhost:1"), (ORIGIN, "http://localhost:1"));
        for name in [HOST, ORIGIN, SEC_FETCH_SITE] {
            let value = if name == SEC_FETCH_SITE { "none" } else { "http://evil.example" };
            let once = [host.clone(), origin.clone(), (SEC_FETCH_SITE, "none")];
            assert_eq!(status(&guard, &once), 200);
            let twice: Vec<_> = once.into_iter().chain([(name.clone(), value)]).collect();
            assert_eq!(status(&guard, &twice), 403, "{name}");
        }
        let guarded = Guard::new("127.0.0.1".parse().unwrap(), Some("secret")).unwrap();
        let token = (AUTHORIZATION, "Bearer secret");
        assert_eq!(status(&guarded, &[host.clone(), token.clone()]), 200);
        assert_eq!(status(&guarded, &[host, token.clone(), token]), 401);
    }

    #[test]
    fn only_a_page_of_this_server_may_send_requests() {
        let guard = Guard::new("127.0.0.1".parse().unwrap(), None).unwrap();
        for (site, expected) in [
            ("same-origin", 200),
            ("none", 200),
            ("same-site", 403),
            ("cross-site", 403),
            ("", 403),
            ("none, cross-site", 403),
            ("\u{430}", 403),
        ] {
            let headers = [(HOST, "localhost:1"), (SEC_FETCH_SITE, site)];
            assert_eq!(status(&guard, &headers), expected, "{site}");
        }
    }

    #[test]
    fn a_request_line_and_a_host_header_must_agree() {
        let guard = Guard::new("127.0.0.1".parse().unwrap(), None).unwrap();
        let admitted = |host: &'static str, uri: &'static str| {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            guard.admit_address(&headers, &Uri::from_static(uri)).is_ok()
        };
        assert!(admitted("localhost:1", "/"));
        assert!(admitted("localhost:1", "http://localhost:1/"));
        assert!(!admitted("localhost:1", "http://evil.example/"));
        assert!(!admitted("evil.example", "http://localhost:1/"));
    }

    #[test]
    fn behind_tls_the_origin_is_https() {
        let guard = Guard::new("127.0.0.1".parse().unwrap(), None).unwrap();
        for (proto, origin, expected) in [
            ("https", "https://localhost:1", 200),
            ("https", "http://localhost:1", 403),
            ("http", "http://localhost:1", 200),
            ("http, https", "https://localhost:1", 403),
        ] {
            let headers = [(HOST, "localhost:1"), (X_FORWARDED_PROTO, proto), (ORIGIN, origin)];
            assert_eq!(status(&guard, &headers), expected, "{proto} {origin}");
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
