//! Admits requests with the crate `guard`. A browser exchanges the token for a cookie with the id of a
//! login, which ends after some hours and never leaves this process.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{COOKIE, HeaderName, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Response, Uri};
use axum::middleware::Next;
use guard::{Secret, TokenMissing, bearer, is_forwarded_https};
use tokio::time::Instant;
use uuid::Uuid;

use super::wire::{self, Refusal};

/// The cookie that holds a login's id in a browser.
const COOKIE_NAME: &str = "daybook";

/// How long a login is valid, by the machine's clock. Then the page asks for the token again.
const LOGIN_LIFETIME: Duration = Duration::from_secs(12 * 3_600);

/// Most logins. A further one ends the oldest.
const LOGINS_MAX: usize = 64;

/// Sent by AWS clients whose credentials have a session token.
const SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// The guard of a stack. It accepts the token in the header, or a login in the cookie.
#[derive(Clone, Debug)]
pub struct Guard {
    guard: guard::Guard,
    has_token: bool,
    logins: Arc<Mutex<VecDeque<LogIn>>>,
}

/// A browser that has sent the token.
#[derive(Debug)]
struct LogIn {
    id: Secret,
    ends_at: Instant,
}

impl Guard {
    /// The guard of a stack that listens on this address. A token that is set is required on loopback, too.
    ///
    /// # Errors
    /// If the address is not loopback and there is no token.
    pub fn new(listen: IpAddr, token: Option<&str>) -> Result<Self, TokenMissing> {
        let has_token = token.is_some_and(|token| !token.is_empty());
        let guard = guard::Guard::new(listen, token)?;
        Ok(Self { guard, has_token, logins: Arc::default() })
    }

    /// Checks Host, Origin, the site of the page, and the token or the login.
    fn admit(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        self.guard.admit_source(headers, uri)?;
        match self.guard.admit_token(bearer(headers)) {
            Err(_) if cookies(headers).any(|id| self.is_logged_in(id, Instant::now())) => Ok(()),
            admitted => Ok(admitted?),
        }
    }

    /// As [`Self::admit`], for agents' processes, whose AWS clients send the token among their credentials.
    fn admit_agent(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        self.guard.admit_source(headers, uri)?;
        let of_aws = headers.get(SECURITY_TOKEN).and_then(|value| value.to_str().ok());
        Ok(self.guard.admit_token(bearer(headers).into_iter().chain(of_aws))?)
    }

    /// Begins a login; returns its id.
    fn log_in(&self, now: Instant) -> String {
        let id = random();
        let mut logins = self.logins();
        logins.retain(|login| now < login.ends_at);
        if logins.len() >= LOGINS_MAX {
            logins.pop_front();
        }
        logins.push_back(LogIn { id: Secret::new(&id), ends_at: now + LOGIN_LIFETIME });
        id
    }

    fn is_logged_in(&self, id: &str, now: Instant) -> bool {
        self.logins().iter().any(|login| login.id.is(id) && now < login.ends_at)
    }

    fn logins(&self) -> MutexGuard<'_, VecDeque<LogIn>> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A secret of 244 random bits.
pub(crate) fn random() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

impl From<guard::Refusal> for Refusal {
    fn from(refusal: guard::Refusal) -> Self {
        match refusal {
            guard::Refusal::Token => {
                Self::new(401, "Unauthorized", "this stack requires its token as a bearer token")
            }
            guard::Refusal::Host | guard::Refusal::Origin | guard::Refusal::Site => {
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

/// As [`check`], for the port of agents' processes.
pub(super) async fn check_agent(
    State(guard): State<Guard>,
    request: Request,
    next: Next,
) -> Response<Body> {
    match guard.admit_agent(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => wire::api(Err(refusal)),
    }
}

/// Checks only Host and Origin: other sites may link to the page.
pub(super) async fn check_address(
    State(guard): State<Guard>,
    request: Request,
    next: Next,
) -> Response<Body> {
    match guard.guard.admit_address(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => wire::api(Err(refusal.into())),
    }
}

/// `POST /login` with the bearer token: begins a login and sets its cookie, because a browser's event
/// streams cannot send the header. Without a token there is nothing to log in to.
pub(super) async fn log_in(State(guard): State<Guard>, headers: HeaderMap) -> Response<Body> {
    // A login begins no other login, so that its end is the end.
    if let Err(refusal) = guard.guard.admit_token(bearer(&headers)) {
        return wire::api(Err(refusal.into()));
    }
    let mut response = wire::respond(204, "text/plain", Body::empty(), None);
    if guard.has_token {
        let cookie = cookie(&guard.log_in(Instant::now()), is_forwarded_https(&headers));
        response.headers_mut().extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
    }
    response
}

/// The cookie of a login. Requests of other sites do not send it, and scripts cannot read it. Behind a
/// proxy with TLS, browsers never send it without TLS.
fn cookie(id: &str, is_https: bool) -> Option<HeaderValue> {
    let (lifetime_s, secure) = (LOGIN_LIFETIME.as_secs(), if is_https { "; Secure" } else { "" });
    let attributes = format!("Path=/; Max-Age={lifetime_s}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&format!("{COOKIE_NAME}={id}; {attributes}")).ok()
}

/// The values of the login's cookie.
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
        let id = guard.log_in(Instant::now());
        for (cookies, expected) in [
            (format!("a=b; daybook={id}"), 200),
            (format!("daybook={id}0"), 401),
            ("daybook=".to_owned(), 401),
            ("daybook=secret".to_owned(), 401),
            ("x".to_owned(), 401),
        ] {
            assert_eq!(status(&guard, &[host.clone(), (COOKIE, &cookies)]), expected, "{cookies}");
        }
    }

    async fn logged_in(guard: &Guard, headers: &[(&str, &str)]) -> (u16, Option<String>) {
        let header = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        };
        let answer = log_in(State(guard.clone()), headers.iter().map(header).collect()).await;
        let cookie = answer.headers().get(SET_COOKIE);
        (answer.status().as_u16(), cookie.map(|cookie| cookie.to_str().unwrap().to_owned()))
    }

    #[tokio::test]
    async fn login_sets_a_cookie_hidden_from_scripts_and_other_sites() {
        let guard = Guard::new("127.0.0.1".parse().unwrap(), Some("secret")).unwrap();
        let bearer = ("authorization", "Bearer secret");
        let (status, cookie) = logged_in(&guard, &[bearer]).await;
        let cookie = cookie.unwrap();
        let (id, attributes) = cookie.split_once("; ").unwrap();
        assert_eq!(status, 204);
        assert_eq!(attributes, "Path=/; Max-Age=43200; HttpOnly; SameSite=Strict");
        assert!(id.len() > 64 && !cookie.contains("secret"), "{cookie}");
        assert_ne!(logged_in(&guard, &[bearer]).await.1, Some(cookie.clone()));
        let (_, secure) = logged_in(&guard, &[bearer, ("x-forwarded-proto", "https")]).await;
        assert!(secure.unwrap().ends_with("; Secure"));
        assert_eq!(logged_in(&guard, &[("cookie", id)]).await, (401, None), "only the token");
        let open = Guard::new("127.0.0.1".parse().unwrap(), None).unwrap();
        assert_eq!(logged_in(&open, &[]).await, (204, None));
    }

    #[test]
    fn a_login_ends_in_time_and_logins_are_bounded() {
        let guard = Guard::new("127.0.0.1".parse().unwrap(), Some("secret")).unwrap();
        let now = Instant::now();
        let first = guard.log_in(now);
        assert!(guard.is_logged_in(&first, now));
        for _ in 0..LOGINS_MAX {
            guard.log_in(now);
        }
        assert!(!guard.is_logged_in(&first, now), "the oldest login ended");
        assert_eq!(guard.logins().len(), LOGINS_MAX);
        let last = guard.log_in(now);
        let later = now + LOGIN_LIFETIME;
        assert!(!guard.is_logged_in(&last, later));
        guard.log_in(later);
        assert_eq!(guard.logins().len(), 1);
    }
}
