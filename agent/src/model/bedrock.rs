//! Models on Amazon Bedrock, over its `ConverseStream` API.
//!
//! The client does not retry: the graph does. Region and credentials come from the default AWS
//! provider chain. The client ignores `AWS_ENDPOINT_URL`, which may point at the local stack; only
//! Bedrock's own variable changes its endpoint.

mod wire;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::interceptors::BeforeDeserializationInterceptorContextMut;
use aws_sdk_bedrockruntime::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_bedrockruntime::error::{BoxError, ProvideErrorMetadata, SdkError};
use aws_sdk_bedrockruntime::types::{ContentBlockDelta, ContentBlockStart, ConverseStreamOutput};
use aws_smithy_types::body::SdkBody;
use graph::effect::Chat;
use graph::outcome::Failure;
use http_body_util::{LengthLimitError, Limited};

use super::assembly::Heard;
use super::{
    Attempt, BEDROCK_AUTH, BEDROCK_TRANSIENT, CONNECT_WITHIN, INVALID, Model, UNKNOWN,
    WIRE_BYTES_MAX, chain,
};

/// A client from the environment.
pub(super) async fn client_of_environment() -> Client {
    client(&aws_config::load_defaults(BehaviorVersion::latest()).await)
}

/// A client from this configuration, without its general endpoint URL.
pub fn client(config: &SdkConfig) -> Client {
    let mut builder = config.clone().into_builder();
    builder.set_endpoint_url(None);
    let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT_WITHIN).build();
    let config = aws_sdk_bedrockruntime::config::Builder::from(&builder.build())
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        .interceptor(Bounded)
        .build();
    Client::from_conf(config)
}

/// Interceptor: fails a reply with too many bytes before the SDK parses it.
#[derive(Debug)]
struct Bounded;

impl Intercept for Bounded {
    fn name(&self) -> &'static str {
        "Bounded"
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let body = context.response_mut().body_mut();
        let whole = std::mem::replace(body, SdkBody::taken());
        *body = whole.map(|body| SdkBody::from_body_1_x(Limited::new(body, WIRE_BYTES_MAX)));
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Converse<'a> {
    pub(super) client: &'a Client,
    pub(super) id: String,
}

impl Model for Converse<'_> {
    async fn attempt(&self, chat: &Chat) -> Attempt {
        let request = match wire::request(chat) {
            Ok(request) => request.model_id(&self.id),
            Err(error) => return Attempt::failed(Failure::refused(UNKNOWN, error.to_string())),
        };
        let mut stream = match request.send_with(self.client).await {
            Ok(response) => response.stream,
            Err(error) => return Attempt::failed(failure(&error)),
        };
        let mut heard = Heard::default();
        let listened = loop {
            match stream.recv().await {
                Ok(Some(event)) => match heard.take(event) {
                    Ok(()) => {}
                    Err(failure) => break Err(failure),
                },
                Ok(None) => break Ok(()),
                Err(error) => break Err(failure(&error)),
            }
        };
        heard.attempt(listened, chat, &self.id, BEDROCK_TRANSIENT)
    }

    fn late(&self, seconds: u64) -> Failure {
        Failure::unknown(BEDROCK_TRANSIENT, format!("no reply within {seconds} s"))
    }
}

impl Heard {
    fn take(&mut self, event: ConverseStreamOutput) -> Result<(), Failure> {
        match event {
            ConverseStreamOutput::ContentBlockStart(event) => {
                if let Some(ContentBlockStart::ToolUse(tool)) = event.start {
                    let place = i64::from(event.content_block_index);
                    self.reply.call(place, &tool.tool_use_id, &tool.name, "")?;
                }
            }
            ConverseStreamOutput::ContentBlockDelta(event) => match event.delta {
                Some(ContentBlockDelta::Text(text)) => self.reply.text(&text)?,
                Some(ContentBlockDelta::ToolUse(tool)) => {
                    let place = i64::from(event.content_block_index);
                    self.reply.call(place, "", "", &tool.input)?;
                }
                // Reasoning and citations are not used.
                _ => {}
            },
            ConverseStreamOutput::MessageStop(_) => self.reply.end(),
            ConverseStreamOutput::Metadata(event) => {
                self.usage = event.usage.map(|usage| wire::usage(&usage));
            }
            // Unknown events, and events without content.
            _ => {}
        }
        Ok(())
    }
}

/// Classifies an SDK error.
fn failure<E, R>(error: &SdkError<E, R>) -> Failure
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug + 'static,
{
    if causes(error).any(|cause| cause.is::<LengthLimitError>()) {
        let message = format!("the reply takes more than {WIRE_BYTES_MAX} bytes");
        return Failure::unknown(INVALID, message);
    }
    match error {
        SdkError::ServiceError(refusal) => {
            let error = refusal.err();
            let code = error.code().unwrap_or("an error without a code");
            let message = error.message().unwrap_or("without a message");
            let failure = by_code(code, &format!("{code}: {message}"));
            match error.code() {
                Some(code) => failure.with_code(code),
                None => failure,
            }
        }
        SdkError::ConstructionFailure(_) => Failure::refused(UNKNOWN, chain(error)),
        SdkError::DispatchFailure(_) if causes(error).any(is_about_credentials) => {
            Failure::refused(BEDROCK_AUTH, format!("no AWS credentials: {}", chain(error)))
                .with_code(NO_CREDENTIALS)
        }
        SdkError::DispatchFailure(failed) if failed.is_io() && is_about_connecting(error) => {
            Failure::not_sent(BEDROCK_TRANSIENT, chain(error))
        }
        SdkError::DispatchFailure(_) | SdkError::TimeoutError(_) => {
            Failure::unknown(BEDROCK_TRANSIENT, format!("the reply broke off: {}", chain(error)))
        }
        _ => Failure::unknown(INVALID, chain(error)),
    }
}

/// Source: Amazon Bedrock, "ConverseStream", errors, and AWS, "Common errors".
fn by_code(code: &str, message: &str) -> Failure {
    match code {
        "AccessDeniedException"
        | "UnauthorizedException"
        | "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "InvalidSignatureException"
        | "IncompleteSignature"
        | "MissingAuthenticationTokenException"
        | "ExpiredTokenException"
        | "ExpiredToken"
        | "OptInRequired" => Failure::refused(BEDROCK_AUTH, message),
        "ThrottlingException"
        | "TooManyRequestsException"
        | "ServiceQuotaExceededException"
        | "ServiceUnavailableException"
        | "ModelNotReadyException" => Failure::not_sent(BEDROCK_TRANSIENT, message),
        "ModelTimeoutException"
        | "ModelErrorException"
        | "ModelStreamErrorException"
        | "InternalServerException" => Failure::unknown(BEDROCK_TRANSIENT, message),
        _ => Failure::refused(UNKNOWN, message),
    }
}

/// The code of a request that could not be signed.
///
/// Source: the event journaling specification, section 4, after botocore's exception.
const NO_CREDENTIALS: &str = "NoCredentialsError";

fn is_about_credentials(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<aws_credential_types::provider::error::CredentialsError>()
}

/// Whether connecting failed.
fn is_about_connecting(error: &(dyn std::error::Error + 'static)) -> bool {
    let refused = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        kind == Some(std::io::ErrorKind::ConnectionRefused)
            || cause.to_string().contains("dns error")
            || cause.to_string().contains("error trying to connect")
    };
    causes(error).any(refused)
}

fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

#[cfg(test)]
mod tests {
    use aws_config::Region;
    use aws_credential_types::Credentials;
    use aws_credential_types::provider::error::CredentialsError;
    use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};
    use aws_sdk_bedrockruntime::config::interceptors::BeforeTransmitInterceptorContextMut;
    use graph::effect::Message;
    use graph::outcome::FailureKind;

    use super::*;

    /// Interceptor: stops every request and reports its address.
    #[derive(Debug)]
    struct Stopped;

    impl Intercept for Stopped {
        fn name(&self) -> &'static str {
            "Stopped"
        }

        fn modify_before_transmit(
            &self,
            context: &mut BeforeTransmitInterceptorContextMut<'_>,
            _: &RuntimeComponents,
            _: &mut ConfigBag,
        ) -> Result<(), BoxError> {
            Err(format!("stopped on the way to {}", context.request().uri()).into())
        }
    }

    #[tokio::test]
    async fn the_general_endpoint_url_does_not_redirect_bedrock() {
        let credentials = Credentials::new("a", "b", None, None, "test");
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .endpoint_url("http://127.0.0.1:4599")
            .build();
        let client = client(&config);
        let stopping = client.config().to_builder().interceptor(Stopped).build();
        let client = Client::from_conf(stopping);
        let chat = Chat { messages: vec![Message::user(1, "hello")], ..Chat::default() };
        let attempt = Converse { client: &client, id: "m".to_owned() }.attempt(&chat).await;
        let message = attempt.brought.unwrap_err().message;
        let address = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse-stream";
        assert!(message.contains(address), "{message}");
    }

    #[test]
    fn a_refusal_says_whether_to_try_again() {
        use FailureKind as K;
        for (code, category, kind) in [
            ("AccessDeniedException", BEDROCK_AUTH, K::Refused),
            ("ExpiredTokenException", BEDROCK_AUTH, K::Refused),
            ("ThrottlingException", BEDROCK_TRANSIENT, K::NotSent),
            ("ServiceUnavailableException", BEDROCK_TRANSIENT, K::NotSent),
            ("ModelTimeoutException", BEDROCK_TRANSIENT, K::Unknown),
            ("ValidationException", UNKNOWN, K::Refused),
            ("ResourceNotFoundException", UNKNOWN, K::Refused),
            ("NeverHeardOf", UNKNOWN, K::Refused),
        ] {
            let failure = by_code(code, "said");
            assert_eq!((failure.category.as_str(), failure.kind), (category, kind), "{code}");
        }
    }

    #[tokio::test]
    async fn missing_credentials_are_named() {
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(SharedCredentialsProvider::new(Nobody))
            .build();
        let client = client(&config);
        let chat = Chat { messages: vec![Message::user(1, "hello")], ..Chat::default() };
        let attempt = Converse { client: &client, id: "m".to_owned() }.attempt(&chat).await;
        let failure = attempt.brought.unwrap_err();
        let (code, category) = (failure.code.as_deref(), failure.category.as_str());
        assert_eq!((code, category), (Some("NoCredentialsError"), BEDROCK_AUTH), "{failure}");
        assert!(failure.message.starts_with("no AWS credentials: "), "{failure}");
    }

    /// A provider that finds no credentials.
    #[derive(Debug)]
    struct Nobody;

    impl ProvideCredentials for Nobody {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            future::ProvideCredentials::ready(Err(CredentialsError::not_loaded("no profile")))
        }
    }
}
