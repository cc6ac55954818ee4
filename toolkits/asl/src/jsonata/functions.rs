//! The functions that Step Functions adds to JSONata, and replacements for those with side effects.

use std::cell::Cell;

use jsonata_core::evaluator::{Evaluator, EvaluatorError};
use jsonata_core::value::JValue;

use crate::digest;
use crate::time::Timestamp;
use crate::token;

/// Most items that `$range` returns.
///
/// Source: AWS, "Transforming data with JSONata in Step Functions", `$range`.
const RANGE_ITEMS_MAX: f64 = 1_000.0;

/// The error for a call of something that is no function.
pub(super) const NO_FUNCTION: &str = "T1006: Attempted to invoke a non-function";

/// The functions that [`register`] adds, by name.
pub(super) const NAMES: [&str; 9] =
    ["partition", "range", "hash", "parse", "uuid", "random", "millis", "now", "eval"];

pub(super) type Failed = EvaluatorError;
pub(super) type Result<T = JValue> = std::result::Result<T, Failed>;

pub(super) fn register(evaluator: &mut Evaluator, now: Timestamp, seed: &str) {
    add(evaluator, "partition", partition);
    add(evaluator, "range", range);
    add(evaluator, "hash", hash);
    add(evaluator, "parse", parse);
    let uuids = Draws::new(seed, "uuid");
    add(evaluator, "uuid", move |_: &[JValue]| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&uuids.draw()[..16]);
        Ok(JValue::from(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()))
    });
    let randoms = Draws::new(seed, "random");
    add(evaluator, "random", move |arguments: &[JValue]| match arguments.first() {
        None => Ok(JValue::from(fraction(&randoms.draw()))),
        Some(JValue::Number(seed)) => Ok(JValue::from(java_random(*seed as i64))),
        Some(_) => Err(wrong("random", 1)),
    });
    add(evaluator, "millis", move |_: &[JValue]| Ok(JValue::from(now.as_millis())));
    add(evaluator, "now", move |arguments: &[JValue]| match arguments {
        [] => Ok(JValue::from(now.with_millis())),
        _ => Err(error(
            "$now takes no arguments here; use $fromMillis($millis(), picture, timezone)",
        )),
    });
    // Step Functions has no `$eval`: a call of it fails like that of any unknown function.
    add(evaluator, "eval", |_: &[JValue]| Err(error(NO_FUNCTION)));
}

pub(super) fn add(
    evaluator: &mut Evaluator,
    name: &str,
    function: impl Fn(&[JValue]) -> Result + 'static,
) {
    evaluator
        .register_fn_override(name, function)
        .expect("none of these is compiled into the fast path");
}

pub(super) fn error(message: &str) -> Failed {
    EvaluatorError::EvaluationError(message.to_owned())
}

fn wrong(function: &str, argument: usize) -> EvaluatorError {
    error(&format!(
        "T0410: Argument {argument} of function \"{function}\" does not match function signature"
    ))
}

/// Pseudo-random values: draw n is a hash of seed, purpose and n.
struct Draws {
    seed: String,
    purpose: &'static str,
    drawn: Cell<u64>,
}

impl Draws {
    fn new(seed: &str, purpose: &'static str) -> Draws {
        Draws { seed: seed.to_owned(), purpose, drawn: Cell::new(0) }
    }

    fn draw(&self) -> [u8; 32] {
        let count = self.drawn.get();
        self.drawn.set(count + 1);
        token::digest(&[&self.seed, self.purpose, &count.to_string()])
    }
}

/// A double in [0, 1) from the first 53 bits.
pub(crate) fn fraction(bytes: &[u8; 32]) -> f64 {
    let mut first = [0; 8];
    first.copy_from_slice(&bytes[..8]);
    (u64::from_be_bytes(first) >> 11) as f64 / (1_u64 << 53) as f64
}

/// The first double of a `java.util.Random` with this seed, as `$random(seed)` returns on AWS.
///
/// Source: Java, `java.util.Random`, `next` and `nextDouble`.
fn java_random(seed: i64) -> f64 {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = (seed as u64 ^ MULTIPLIER) & MASK;
    let mut next = |bits: u32| {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        state >> (48 - bits)
    };
    let (high, low) = (next(26), next(27));
    ((high << 27) + low) as f64 / (1_u64 << 53) as f64
}

fn whole(function: &str, arguments: &[JValue], index: usize) -> Result<f64> {
    match arguments.get(index) {
        Some(JValue::Number(value)) if value.fract() == 0.0 => Ok(*value),
        _ => Err(wrong(function, index + 1)),
    }
}

fn partition(arguments: &[JValue]) -> Result {
    let items = match arguments.first() {
        None | Some(JValue::Undefined) => return Ok(JValue::Undefined),
        Some(JValue::Array(items)) => items,
        Some(_) => return Err(wrong("partition", 1)),
    };
    let size = whole("partition", arguments, 1)?;
    if size < 1.0 {
        return Err(wrong("partition", 2));
    }
    Ok(JValue::array(
        items.chunks(size as usize).map(|chunk| JValue::array(chunk.to_vec())).collect(),
    ))
}

fn range(arguments: &[JValue]) -> Result {
    let first = whole("range", arguments, 0)?;
    let last = whole("range", arguments, 1)?;
    let step = whole("range", arguments, 2)?;
    if step == 0.0 {
        return Err(wrong("range", 3));
    }
    let count = ((last - first) / step).floor() + 1.0;
    if count > RANGE_ITEMS_MAX {
        return Err(error("D2014: $range gives at most 1000 items"));
    }
    if count == 1.0 {
        // A sequence of one item is that item, as everywhere in JSONata.
        return Ok(JValue::from(first));
    }
    let items =
        (0..count.max(0.0) as u32).map(|index| JValue::from(first + f64::from(index) * step));
    Ok(JValue::array(items.collect()))
}

fn hash(arguments: &[JValue]) -> Result {
    let text = match arguments.first() {
        None | Some(JValue::Undefined) => return Ok(JValue::Undefined),
        Some(JValue::String(text)) => text,
        Some(_) => return Err(wrong("hash", 1)),
    };
    let algorithm = match arguments.get(1) {
        None | Some(JValue::Undefined) => "SHA-256",
        Some(JValue::String(name)) => name,
        Some(_) => return Err(wrong("hash", 2)),
    };
    let digest =
        digest::hex(algorithm, text).map_err(|problem| error(&format!("$hash: {problem}")))?;
    Ok(JValue::from(digest))
}

fn parse(arguments: &[JValue]) -> Result {
    match arguments.first() {
        None | Some(JValue::Undefined) => Ok(JValue::Undefined),
        Some(JValue::String(text)) => {
            JValue::from_json_str(text).map_err(|_| error("$parse was given text that is not JSON"))
        }
        Some(_) => Err(wrong("parse", 1)),
    }
}
