//! Admits requests with the crate `guard`, and keeps the token in a cookie for browsers.

use std::net::IpAddr;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Response, Uri};
use axum::middleware::Next;
use guard::{TokenMissing, bearer};

use super::wire::{self, Refusal};

/// The cookie that holds the token in a browser.
const COOKIE_NAME: &str = "daybook";

/// The guard of a stack. It accepts the token in the header or in the cookie.
#[derive(Clone, Debug)]
pub struct Guard(guard::Guard);

impl Guard {
    /// The guard of a stack that listens on this address. A token that is set is required on loopback, too.
    ///
    /// # Errors
    /// If the address is not loopback and there is no token.
    pub fn new(listen: IpAddr, token: Option<&str>) -> Result<Self, TokenMissing> {
        Ok(Self(guard::Guard::new(listen, token)?))
    }

    /// Checks Host, Origin and the token.
    fn admit(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        self.admit_address(headers, uri)?;
        let given = bearer(headers).into_iter().chain(cookies(headers));
        Ok(self.0.admit_token(given)?)
    }

    /// Checks Host and Origin, and not the token.
    fn admit_address(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        Ok(self.0.admit_address(headers, uri)?)
    }
}

impl From<guard::Refusal> for Refusal {
    fn from(refusal: guard::Refusal) -> Self {
        match refusal {
            guard::Refusal::Token => {
                Self::new(401, "Unauthorized", "this stack requires its token as a bearer token")
            }
            guard::Refusal::Host | guard::Refusal::Origin => {
                Self::new(403, "Forbidden", refusal.to_string())
            }
        }
    }
}

/// Admits a request, or responds with the reason for the refusal.
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

/// As [`check`], without the token.
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

/// `POST /login` with the bearer token: sets it as a cookie, because a browser's event streams cannot
/// send the header.
pub(super) async fn log_in(headers: HeaderMap) -> Response<Body> {
    // The guard has admitted the request, so this is the token, if one is required.
    match cookie(bearer(&headers).unwrap_or_default()) {
        Ok(cookie) => {
            let mut response = wire::respond(204, "text/plain", Body::empty(), None);
            response.headers_mut().insert(SET_COOKIE, cookie);
            response
        }
        Err(refusal) => wire::api(Err(refusal)),
    }
}

/// The cookie that holds the token. Requests of other sites do not send it, and scripts cannot read it.
fn cookie(token: &str) -> Result<HeaderValue, Refusal> {
    let cookie = format!("{COOKIE_NAME}={token}; Path=/; HttpOnly; SameSite=Strict");
    let value = HeaderValue::from_str(&cookie).ok();
    value.filter(|_| token.bytes().all(is_cookie_octet)).ok_or_else(|| {
        Refusal::bad(
            "InvalidToken",
            "the token has a character that a cookie cannot hold; use letters and digits only",
        )
    })
}

/// Whether the octet is valid in a cookie's value.
///
/// Source: RFC 6265, section 4.1.1.
fn is_cookie_octet(octet: u8) -> bool {
    matches!(octet, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e)
}

/// The values of the token's cookie.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = all.flat_map(|cookies| cookies.split(';')).filter_map(|c| c.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use axum::http::header::{AUTHORIZATION, HOST, HeaderName};

    use super::*;

    fn status(guard: &Guard, headers: &[(HeaderName, &str)]) -> u16 {
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        guard.admit(&headers, &Uri::from_static("/")).err().map_or(200, |refusal| refusal.status)
    }

    #[test]
    fn a_token_is_required_in_the_header_or_the_cookie() {
        let here = Guard::new("127.0.0.1".parse().unwrap(), Some("secret")).unwrap();
        let local = (HOST, "127.0.0.1:4599");
        assert_eq!(
            status(&here, std::slice::from_ref(&local)),
            401,
            "a token that is set is required"
        );
        assert_eq!(status(&here, &[local.clone(), (AUTHORIZATION, "Bearer secret")]), 200);
        let open = Guard::new("127.0.0.1".parse().unwrap(), None).unwrap();
        assert_eq!(status(&open, &[local]), 200);
        let guard = Guard::new("0.0.0.0".parse().unwrap(), Some("secret")).unwrap();
        let host = (HOST, "192.168.0.7:4599");
        assert_eq!(status(&guard, std::slice::from_ref(&host)), 401);
        assert_eq!(status(&guard, &[host.clone(), (AUTHORIZATION, "Bearer secret")]), 200);
        for (cookies, expected) in
            [("a=b; daybook=secret", 200), ("daybook=", 401), ("daybook=secret2", 401), ("x", 401)]
        {
            assert_eq!(status(&guard, &[host.clone(), (COOKIE, cookies)]), expected, "{cookies}");
        }
    }

    #[tokio::test]
    async fn login_sets_a_cookie_hidden_from_scripts_and_other_sites() {
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
