//! Hash functions of both query languages.

use sha2::Digest as _;

/// The hexadecimal hash of a text.
///
/// # Errors
/// The algorithm is not one that Step Functions supports.
pub(crate) fn hex(algorithm: &str, text: &str) -> Result<String, String> {
    let bytes = text.as_bytes();
    Ok(match algorithm {
        "MD5" => hex::encode(md5::Md5::digest(bytes)),
        "SHA-1" => hex::encode(sha1::Sha1::digest(bytes)),
        "SHA-256" => hex::encode(sha2::Sha256::digest(bytes)),
        "SHA-384" => hex::encode(sha2::Sha384::digest(bytes)),
        "SHA-512" => hex::encode(sha2::Sha512::digest(bytes)),
        _ => {
            return Err(format!(
                "'{algorithm}' must be one of MD5, SHA-1, SHA-256, SHA-384, SHA-512"
            ));
        }
    })
}
