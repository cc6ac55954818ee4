//! The address of the local stack.

use std::net::IpAddr;

use reqwest::Url;
use workflow::env;

use crate::args::{self, Target};
use crate::config::Config;
use crate::failure::Failure;

/// The endpoint of `--endpoint` or `DAYBOOK_ENDPOINT`, or that of AWS's clients if it is on this machine.
pub(super) fn named(
    global: &args::Global,
    config: &Config,
    target: Target,
) -> Result<Option<Url>, Failure> {
    let http = |text: &str| {
        let url = Url::parse(text).ok();
        url.filter(|url| url.scheme() == "http" && url.has_host())
    };
    let given = [("--endpoint", &global.endpoint), (env::DAYBOOK_ENDPOINT, &config.endpoint)];
    if let Some((name, text)) =
        given.into_iter().find_map(|(name, text)| Some((name, text.as_ref()?)))
    {
        let wrong = || {
            Failure::usage(format!("{name} is `{text}`, expected http://HOST:PORT"))
                .hint(format!("the default is {}", args::DEFAULT_ENDPOINT))
        };
        return http(text).ok_or_else(wrong).map(Some);
    }
    let of_aws = config.aws_endpoint_url.as_deref().filter(|_| target == Target::Local);
    Ok(of_aws.and_then(http).filter(is_loopback))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
