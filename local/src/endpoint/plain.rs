//! `GET /plain` and `GET /plain/sessions/{id}`: the timeline for browsers that run no script. Who may ask is
//! asked as for the API, only that a browser is told so by a page.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Extension, Path, RawQuery, Request, State};
use axum::http::header::{HOST, HeaderValue, LOCATION, SET_COOKIE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Response};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{get, post};
use timeline::plain::list::{List, SESSIONS};
use timeline::plain::session::{Part, Session};
use timeline::plain::{Facts, LIST, LOGIN, POLICY, Question, refusal, token_form};

use super::guard::{self, Guard};
use super::page::{Drawn, secured};
use super::wire::{self, Refusal};
use super::{Endpoint, Server, sessions};
use crate::list;
use crate::view;

/// Largest form with a token, in bytes.
const FORM_BYTES_MAX: usize = 16 * 1024;

/// With it a form's own page is named as its origin, which the guard wants to see.
const REFERRER: &str = "same-origin";

/// The pages, behind a guard.
pub(super) fn views(guard: Guard, server: Server) -> Router<Endpoint> {
    let open = Router::new()
        .route(LOGIN, post(log_in))
        .with_state(guard.clone())
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(from_fn_with_state(guard.clone(), guard::check_address));
    Router::new()
        .route(LIST, get(list))
        .route("/plain/sessions/{id}", get(session))
        .layer(Extension(server))
        .layer(from_fn_with_state(guard, check))
        .merge(open)
}

/// Lets a request through, or says on a page why not.
async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response<Body> {
    match guard.admit(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refused) if refused.status == 401 => respond(401, token_form(None)),
        Err(refused) => answer(Err(refused)),
    }
}

/// Trades the token that a form sends for a cookie.
async fn log_in(State(guard): State<Guard>, body: Bytes) -> Response<Body> {
    let token = form_urlencoded::parse(&body).find(|(name, _)| name == "token");
    let token = token.map(|(_, token)| token.into_owned()).unwrap_or_default();
    if !guard.opens(&token) {
        return respond(401, token_form(Some("The token is another one.")));
    }
    match guard::cookie(&token) {
        Err(refused) => respond(refused.status, token_form(Some(&refused.message))),
        Ok(cookie) => {
            let mut response = respond(303, String::new());
            response.headers_mut().insert(SET_COOKIE, cookie);
            response.headers_mut().insert(LOCATION, HeaderValue::from_static(LIST));
            response
        }
    }
}

/// The list takes what `GET /api/sessions` takes.
async fn list(State(endpoint): State<Endpoint>, RawQuery(query): RawQuery) -> Response<Body> {
    answer(list_page(&endpoint, query.as_deref().unwrap_or_default()).await)
}

/// `?part=` says which of a long session's records.
async fn session(
    State(endpoint): State<Endpoint>,
    Extension(server): Extension<Server>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response<Body> {
    let command = command(&endpoint, server, &headers);
    answer(session_page(&endpoint, &id, query.as_deref().unwrap_or_default(), &command).await)
}

async fn list_page(endpoint: &Endpoint, query: &str) -> Result<String, Refusal> {
    let now = endpoint.clock.now();
    let wish = sessions::wish(query, SESSIONS, now)?;
    let found = list::list(&endpoint.store, &endpoint.shelf, &wish, now).await;
    let found = found.map_err(|error| Refusal::journal(&error))?;
    let more = found.more.map(|place| place.to_string());
    let sessions = found.sessions.iter().map(facts).collect();
    Ok(List { query, sessions, searched: found.searched, more: more.as_deref() }.page())
}

async fn session_page(
    endpoint: &Endpoint,
    id: &str,
    query: &str,
    command: &str,
) -> Result<String, Refusal> {
    let drawn = Drawn::of(endpoint, id).await?;
    let rows = &drawn.waterfall.rows;
    let number = wire::parameter(query, "part").and_then(|text| text.parse().ok());
    let part = Part::of(number.unwrap_or(1), rows.len());
    let page = Session {
        facts: facts(&drawn.session),
        conclusion: drawn.conclusion.as_ref(),
        citations: drawn.citations.as_deref().unwrap_or_default(),
        waterfall: &drawn.waterfall,
        part,
        records: rows[part.range()].iter().map(|row| drawn.record(&row.sk)).collect(),
        command,
    };
    Ok(page.page())
}

fn facts(session: &view::Session) -> Facts<'_> {
    let question = session.open_question.as_ref().map(|open| Question {
        prompt: &open.prompt,
        tool: open.tool.as_deref(),
        arguments: open.arguments.as_ref(),
        justification: open.justification.as_deref(),
        choices: &open.choices,
        expires_at: open.expires_at,
    });
    let view::Tokens { input, output, unsettled, .. } = session.tokens;
    Facts {
        id: &session.session_id,
        status: session.status,
        agent: session.agent.as_deref(),
        began: session.initiated_at,
        took_ms: session.elapsed_ms,
        steps: session.steps,
        tokens: input + output + unsettled,
        usd: session.usd,
        error: session.error.as_deref(),
        category: session.error_category.as_deref(),
        result: session.result.as_ref(),
        question,
        asleep_until: session.asleep_until,
    }
}

/// How the command line is called that reaches the same sessions.
fn command(endpoint: &Endpoint, server: Server, headers: &HeaderMap) -> String {
    if endpoint.store.is_in_account() {
        return "daybook --target aws".to_owned();
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    match (server, host.as_ref().and_then(|host| Some((host.host(), host.port_u16()?)))) {
        (Server::Stack, Some((host, port))) => format!("daybook --endpoint http://{host}:{port}"),
        _ => "daybook".to_owned(),
    }
}

fn answer(page: Result<String, Refusal>) -> Response<Body> {
    match page {
        Ok(page) => respond(200, page),
        Err(refused) => respond(refused.status, refusal(&refused.message)),
    }
}

fn respond(status: u16, page: String) -> Response<Body> {
    secured(wire::respond(status, "text/html; charset=utf-8", page, None), POLICY, REFERRER)
}
