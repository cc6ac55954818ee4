//! A client that sends the `traceparent` also as a header, for proxies and frameworks in front of a
//! server, which do not read messages.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse};

use super::super::connection::TRACEPARENT_META;

/// The header with the value of the message's `_meta`.
///
/// Source: W3C, "Trace Context", section 3.2.
pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The `traceparent` of a message.
pub(super) fn traceparent(message: &ClientJsonRpcMessage) -> Option<HeaderValue> {
    let JsonRpcMessage::Request(request) = message else { return None };
    let ClientRequest::CallToolRequest(call) = &request.request else { return None };
    let said = call.params.meta.as_ref()?.0.0.get(TRACEPARENT_META)?;
    HeaderValue::from_str(said.as_str()?).ok()
}

/// A client of Streamable HTTP that adds the header.
#[derive(Clone, Debug)]
pub(in crate::tool) struct Traced(pub(super) Client);

type Headers = HashMap<HeaderName, HeaderValue>;
type Failed = StreamableHttpError<reqwest::Error>;

fn with_traceparent(mut headers: Headers, message: &ClientJsonRpcMessage) -> Headers {
    headers.extend(traceparent(message).map(|value| (TRACEPARENT, value)));
    headers
}

impl StreamableHttpClient for Traced {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let headers = with_traceparent(headers, &message);
        self.0.post_message(uri, message, session, token, headers).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        event_bytes_max: usize,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let headers = with_traceparent(headers, &message);
        let posted = self.0.post_message_with_max_sse_event_size(
            uri,
            message,
            session,
            token,
            headers,
            event_bytes_max,
        );
        posted.await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        self.0.get_stream(uri, session, last_event, token, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        event_bytes_max: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let opened = self.0.get_stream_with_max_sse_event_size(
            uri,
            session,
            last_event,
            token,
            headers,
            event_bytes_max,
        );
        opened.await
    }
}
