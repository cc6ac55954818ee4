//! URLs of endpoints on this machine.

/// A local endpoint's URL: `http://` with a loopback address or `localhost`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loopback(String);

impl Loopback {
    /// Parses a URL; fails if it is not on this machine.
    pub fn of(url: &str) -> Option<Self> {
        is_loopback(url).then(|| Self(url.to_owned()))
    }

    /// The URL as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_loopback(endpoint: &str) -> bool {
    let Some(rest) = endpoint.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    guard::is_loopback(authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for endpoint in [
            "http://127.0.0.1:5000",
            "http://127.8.8.8",
            "http://localhost:5000/",
            "http://LOCALHOST",
            "http://[::1]:5000",
        ] {
            assert!(is_loopback(endpoint), "{endpoint}");
        }
        for endpoint in [
            "",
            "127.0.0.1:5000",
            "https://iam.amazonaws.com",
            "http://10.0.0.1",
            "http://0.0.0.0:5000",
            "http://127.0.0.1.evil.example",
            "http://localhost.evil.example",
            "http://127.0.0.1@evil.example",
            "http://evil.example/127.0.0.1",
            "http://evil.example\\@127.0.0.1",
            "http://[::2]",
            "http://[::1]evil.example",
            "http://[::1]:80.evil.example",
            "http://127.0.0.1:80@evil.example",
        ] {
            assert!(!is_loopback(endpoint), "{endpoint}");
        }
    }
}
