//! Compact history events: compressed with zstd and a dictionary of typical ones.
//!
//! An event has a few hundred bytes of JSON, most of which every history repeats: names of fields, states and functions.
//! Alone, it hardly compresses, so it is compressed as if it followed the events in `dictionary-1.json`, which are those of
//! typical histories. That file must never change, because stored events need it; a better one gets the next number.

use std::sync::{LazyLock, Mutex, PoisonError};

use journal::store::Error;
use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::get_frame_content_size;

/// The first byte of a packed event: the number of its dictionary.
const NUMBER: u8 = 1;

const DICTIONARY: &[u8] = include_bytes!("dictionary-1.json");

/// The first bytes of each frame, which are not stored.
///
/// Source: RFC 8878, section 3.1.1.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

const LEVEL: i32 = 1;

/// Largest event, in bytes. Its texts are at most 256 KiB each, before JSON's escapes.
const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

static ENCODER: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, LEVEL));

static DECODER: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

/// Creating one takes longer than packing an event.
static COMPRESSOR: Mutex<Option<Compressor<'static>>> = Mutex::new(None);

static DECOMPRESSOR: Mutex<Option<Decompressor<'static>>> = Mutex::new(None);

/// Packs events in order.
///
/// # Errors
/// If zstd has no memory.
pub fn pack_all<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<Vec<u8>>, Error> {
    let mut shared = COMPRESSOR.lock().unwrap_or_else(PoisonError::into_inner);
    let failed = |error: std::io::Error| Error::Unavailable(error.into());
    let compressor = match &mut *shared {
        Some(compressor) => compressor,
        None => {
            let new = Compressor::with_prepared_dictionary(&ENCODER);
            shared.insert(new.map_err(failed)?)
        }
    };
    let pack = |text: &str| {
        let frame = compressor.compress(text.as_bytes()).map_err(failed)?;
        let body = frame.strip_prefix(&MAGIC).unwrap_or(&frame);
        Ok([&[NUMBER][..], body].concat())
    };
    texts.into_iter().map(pack).collect()
}

/// The event in packed bytes.
///
/// # Errors
/// [`Error::Corrupt`] if they are damaged, or of a dictionary that this version does not have.
pub fn unpack(packed: &[u8]) -> Result<String, Error> {
    let Some((&NUMBER, body)) = packed.split_first() else {
        return Err(damaged("it has no dictionary of this version"));
    };
    let frame = [&MAGIC[..], body].concat();
    let bytes = get_frame_content_size(&frame).ok().flatten();
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.filter(|bytes| *bytes <= EVENT_BYTES_MAX);
    let Some(bytes) = bytes else { return Err(damaged("it does not say its length")) };
    let mut shared = DECOMPRESSOR.lock().unwrap_or_else(PoisonError::into_inner);
    let decompressor = match &mut *shared {
        Some(decompressor) => decompressor,
        None => {
            let new = Decompressor::with_prepared_dictionary(&DECODER);
            shared.insert(new.map_err(|error| Error::Unavailable(error.into()))?)
        }
    };
    let text =
        decompressor.decompress(&frame, bytes).map_err(|error| damaged(error.to_string()))?;
    String::from_utf8(text).map_err(|error| damaged(error.to_string()))
}

fn damaged(why: impl Into<String>) -> Error {
    Error::Corrupt(format!("an event of a history cannot be read: {}", why.into()).into())
}

#[cfg(test)]
mod tests {
    use journal::item::Hash;

    use super::*;

    const EVENT: &str = r#"{"timestamp":1795257000.25,"type":"TaskStateEntered","id":16,"previousEventId":15,"stateEnteredEventDetails":{"name":"CheckStatus","input":"{}","inputDetails":{"truncated":false}}}"#;

    #[test]
    fn a_packed_event_is_the_same_and_smaller() {
        let long = format!(r#"{{"output":"{}"}}"#, "é\\\" ".repeat(100_000));
        for text in [EVENT, "", "{}", &long] {
            let packed = pack_all([text]).unwrap().remove(0);
            assert_eq!(unpack(&packed).unwrap(), text);
        }
        let packed = pack_all([EVENT]).unwrap().remove(0);
        assert!(packed.len() < EVENT.len() / 2, "{} of {}", packed.len(), EVENT.len());
    }

    /// Stored histories need it.
    #[test]
    fn the_dictionary_never_changes() {
        let hash = "61b0469dc359f5d10ca1973a7609f622fe44f2b9e2f03e7f3c4541b78da64dd0";
        assert_eq!(Hash::of(DICTIONARY).as_str(), hash);
        let packed =
            "0120b41d0100403235373030302e320700dbb3230151431200f52c006a78a0b8ce06cbc4c617cc3908";
        assert_eq!(unpack(&hex::decode(packed).unwrap()).unwrap(), EVENT);
    }

    #[test]
    fn damaged_events_are_named_and_harm_nothing() {
        let packed = pack_all([EVENT]).unwrap().remove(0);
        assert!(unpack(&[]).is_err() && unpack(&[2, 1, 1]).is_err() && unpack(&[1]).is_err());
        for at in 0..packed.len() {
            assert!(unpack(&packed[..at]).is_err(), "cut at {at}");
            let mut changed = packed.clone();
            changed[at] ^= 0x55;
            let _ = unpack(&changed);
        }
        assert_eq!(unpack(&packed).unwrap(), EVENT);
    }
}
