//! Who may ask: only those who address this machine by a name of ours, and pages that we served.
//!
//! A page in a browser can send requests to any port of this machine, and a name of its own can be
//! made to point here. The first shows in `Origin`, the second in `Host`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, HeaderName, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Response, Uri};
use axum::middleware::Next;

use super::wire::{self, Refusal};

/// The cookie that stands for the token in a browser.
const COOKIE_NAME: &str = "daybook";

/// What is asked of every request.
#[derive(Clone, Debug)]
pub struct Guard {
    listen: IpAddr,
    token: Option<Arc<str>>,
}

/// A stack that others can reach needs a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("listening on {0}, which is not loopback, needs DAYBOOK_TOKEN to be set")]
pub struct TokenMissing(pub IpAddr);

impl Guard {
    /// The guard of a stack that listens there. On loopback the token is not asked for.
    ///
    /// # Errors
    /// When the address is not loopback and there is no token.
    pub fn new(listen: IpAddr, token: Option<&str>) -> Result<Self, TokenMissing> {
        let token = token.filter(|token| !token.is_empty());
        match (listen.is_loopback(), token) {
            (true, _) => Ok(Self { listen, token: None }),
            (false, Some(token)) => Ok(Self { listen, token: Some(token.into()) }),
            (false, None) => Err(TokenMissing(listen)),
        }
    }

    /// Judges a request by its headers.
    pub(super) fn admit(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        self.admit_address(headers, uri)?;
        match &self.token {
            Some(token) if !presents(headers, token) => {
                Err(Refusal::new(401, "Unauthorized", "this stack wants its token as bearer"))
            }
            _ => Ok(()),
        }
    }

    /// Whether this is the token, or none is asked for.
    pub(super) fn opens(&self, given: &str) -> bool {
        self.token.as_ref().is_none_or(|token| same(given.as_bytes(), token.as_bytes()))
    }

    /// Judges by whom it addresses and whose page it comes from, and not by its token.
    fn admit_address(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        let host = text(headers, &HOST).or_else(|| uri.authority().map(|a| a.as_str()));
        let Some(host) = host.filter(|host| self.is_ours(host)) else {
            return Err(Refusal::new(403, "Forbidden", "the Host of this request is not ours"));
        };
        if let Some(origin) = text(headers, &ORIGIN)
            && origin.strip_prefix("http://") != Some(host)
        {
            return Err(Refusal::new(403, "Forbidden", "the Origin of this request is not ours"));
        }
        Ok(())
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
pub(super) async fn check(
    State(guard): State<Guard>,
    request: Request,
    next: Next,
) -> Response<Body> {
    match guard.admit(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => wire::api(Err(refusal)),
    }
}

/// The same without a look at the token.
pub(super) async fn check_address(
    State(guard): State<Guard>,
    request: Request,
    next: Next,
) -> Response<Body> {
    match guard.admit_address(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => wire::api(Err(refusal)),
    }
}

/// `POST /login` with the token as bearer: trades it for a cookie, since a browser's streams cannot
/// carry the header.
pub(super) async fn log_in(headers: HeaderMap) -> Response<Body> {
    // The guard has let it pass, so it is the token, unless none is asked for.
    match cookie(bearer(&headers).unwrap_or_default()) {
        Ok(cookie) => {
            let mut response = wire::respond(204, "text/plain", Body::empty(), None);
            response.headers_mut().insert(SET_COOKIE, cookie);
            response
        }
        Err(refusal) => wire::api(Err(refusal)),
    }
}

/// The cookie that stands for the token. It goes with no request that another site makes, and no script
/// reads it.
pub(super) fn cookie(token: &str) -> Result<HeaderValue, Refusal> {
    let cookie = format!("{COOKIE_NAME}={token}; Path=/; HttpOnly; SameSite=Strict");
    let value = HeaderValue::from_str(&cookie).ok();
    value.filter(|_| token.bytes().all(is_cookie_octet)).ok_or_else(|| {
        Refusal::bad(
            "InvalidToken",
            "the token holds a character that no cookie can: choose one of letters and digits",
        )
    })
}

/// What may stand in a cookie's value.
///
/// Source: RFC 6265, section 4.1.1.
fn is_cookie_octet(octet: u8) -> bool {
    matches!(octet, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e)
}

fn presents(headers: &HeaderMap, token: &str) -> bool {
    bearer(headers)
        .into_iter()
        .chain(cookies(headers))
        .any(|given| same(given.as_bytes(), token.as_bytes()))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    text(headers, &AUTHORIZATION)?.strip_prefix("Bearer ")
}

/// The values of our cookie.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = all.flat_map(|cookies| cookies.split(';')).filter_map(|c| c.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value)
}

/// Compares in a time that does not tell where two texts part.
fn same(given: &[u8], expected: &[u8]) -> bool {
    let different = given.iter().zip(expected).fold(0, |acc, (a, b)| acc | (a ^ b));
    given.len() == expected.len() && different == 0
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
        guard.admit(&headers, &Uri::from_static("/")).err().map_or(200, |refusal| refusal.status)
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
            ("null", 403),
        ] {
            let headers = [(HOST, "localhost:4599"), (ORIGIN, origin)];
            assert_eq!(status(&guard, &headers), expected, "{origin}");
        }
    }

    #[test]
    fn beyond_loopback_a_token_is_wanted() {
        let everywhere: IpAddr = "0.0.0.0".parse().unwrap();
        assert_eq!(Guard::new(everywhere, None).unwrap_err(), TokenMissing(everywhere));
        assert!(Guard::new(everywhere, Some("")).is_err());
        let guard = Guard::new(everywhere, Some("secret")).unwrap();
        let host = (HOST, "192.168.0.7:4599");
        for (authorization, expected) in
            [("Bearer secret", 200), ("Bearer secreT", 401), ("Bearer ", 401), ("secret", 401)]
        {
            let headers = [host.clone(), (AUTHORIZATION, authorization)];
            assert_eq!(status(&guard, &headers), expected, "{authorization}");
        }
        assert_eq!(status(&guard, std::slice::from_ref(&host)), 401);
        for (cookies, expected) in
            [("a=b; daybook=secret", 200), ("daybook=", 401), ("daybook=secret2", 401), ("x", 401)]
        {
            assert_eq!(status(&guard, &[host.clone(), (COOKIE, cookies)]), expected, "{cookies}");
        }
    }

    #[tokio::test]
    async fn a_token_is_traded_for_a_cookie_that_no_script_and_no_other_site_gets() {
        let given = |token: &str| {
            HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {token}").parse().unwrap())])
        };
        let answer = log_in(given("secret")).await;
        assert_eq!(
            answer.headers()[SET_COOKIE],
            "daybook=secret; Path=/; HttpOnly; SameSite=Strict"
        );
        for token in ["a;b", "a b", "a,b", "\"a\""] {
            let answer = log_in(given(token)).await;
            assert_eq!((answer.status().as_u16(), answer.headers().get(SET_COOKIE)), (400, None));
        }
    }
}
