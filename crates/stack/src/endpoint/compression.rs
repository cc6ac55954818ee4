//! Compresses the page's files and the API's JSON for clients that accept zstd.
//!
//! zstd is in the program already, because records are compressed with it. Clients without it, among them older
//! browsers, get the same bytes uncompressed. `tower-http` would bring a second compression library for this. Streams are never compressed: each of their events is sent at once.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, VARY,
};
use axum::http::{HeaderMap, Response};
use axum::middleware::Next;

use super::wire::{self, Refusal};

/// Smaller bodies are sent as they are.
const COMPRESSED_FROM_BYTES: usize = 1_024;

/// Compresses the body of a response, if the client accepts that.
pub(super) async fn compress(request: Request, next: Next) -> Response<Body> {
    let is_accepted = accepts(request.headers());
    let mut response = next.run(request).await;
    if is_stream(response.headers()) {
        return response;
    }
    response.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
    if !is_accepted {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return wire::api(Err(Refusal::new(500, "InternalFailure", "the response was cut off")));
    };
    if body.len() < COMPRESSED_FROM_BYTES {
        return Response::from_parts(head, Body::from(body));
    }
    match zstd::bulk::compress(&body, zstd::DEFAULT_COMPRESSION_LEVEL) {
        Ok(compressed) if compressed.len() < body.len() => {
            head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("zstd"));
            head.headers.remove(CONTENT_LENGTH);
            Response::from_parts(head, Body::from(compressed))
        }
        _ => Response::from_parts(head, Body::from(body)),
    }
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// Whether the client names zstd, without refusing it by a weight of zero.
fn accepts(headers: &HeaderMap) -> bool {
    let named = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|codings| codings.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map(str::parse::<f32>);
        name.trim() == "zstd" && !matches!(weight, Some(Ok(weight)) if weight <= 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_client_that_names_zstd_gets_it() {
        for (accepted, expected) in [
            ("gzip, deflate, br, zstd", true),
            ("zstd;q=0.5", true),
            ("gzip, zstd;q=0", false),
            ("gzip, br", false),
            ("*", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, accepted.parse().unwrap());
            assert_eq!(accepts(&headers), expected, "{accepted}");
        }
        assert!(!accepts(&HeaderMap::new()));
    }
}
