//! The identity of a span: W3C trace context, and its form in AWS X-Ray's header.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};
use std::str::FromStr;

use uuid::Uuid;

/// Length of a `traceparent` of version 00, in bytes.
///
/// Source: W3C, "Trace Context", section 3.2.
pub const TRACEPARENT_BYTES: usize = 55;

/// The identity of a span, as in W3C's `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceParent {
    pub trace_id: NonZeroU128,
    pub span_id: NonZeroU64,
    /// Whether the trace is to be recorded, as decided at its start.
    pub sampled: bool,
}

/// The text is not a valid `traceparent`. Callers continue without one: an invalid context must not stop any work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a W3C traceparent, such as 00-{{32 hex digits}}-{{16 hex digits}}-01")]
pub struct InvalidTraceParent;

impl TraceParent {
    /// A span that starts a new trace.
    pub fn fresh() -> Self {
        let trace_id = NonZeroU128::new(Uuid::new_v4().as_u128()).unwrap_or(NonZeroU128::MAX);
        Self { trace_id, span_id: NonZeroU64::MAX, sampled: true }.child()
    }

    /// Another span of the same trace.
    #[must_use]
    pub fn child(self) -> Self {
        let (_, id) = Uuid::new_v4().as_u64_pair();
        Self { span_id: NonZeroU64::new(id).unwrap_or(NonZeroU64::MAX), ..self }
    }

    /// The value of X-Ray's `TraceHeader` for the same span. X-Ray's trace id is W3C's with two hyphens.
    ///
    /// Source: AWS X-Ray Developer Guide, "Tracing header" and "Trace ID format".
    pub fn to_xray(self) -> String {
        let trace_id = format!("{:032x}", self.trace_id);
        let (first, rest) = trace_id.split_at(8);
        let sampled = u8::from(self.sampled);
        format!("Root=1-{first}-{rest};Parent={:016x};Sampled={sampled}", self.span_id)
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.sampled);
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace_id, self.span_id)
    }
}

impl FromStr for TraceParent {
    type Err = InvalidTraceParent;

    /// Parses version 00 strictly, and of later versions the common part.
    fn from_str(text: &str) -> Result<Self, InvalidTraceParent> {
        let known = text.get(..TRACEPARENT_BYTES).ok_or(InvalidTraceParent)?;
        let rest = &text[TRACEPARENT_BYTES..];
        let fields: Vec<&str> = known.split('-').collect();
        let [version, trace_id, span_id, flags] = fields[..] else {
            return Err(InvalidTraceParent);
        };
        let lengths = [version, trace_id, span_id, flags].map(str::len);
        let is_hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let ends_here = rest.is_empty() || (version != "00" && rest.starts_with('-'));
        if lengths != [2, 32, 16, 2]
            || ![version, trace_id, span_id, flags].into_iter().all(is_hex)
            || version == "ff"
            || !ends_here
        {
            return Err(InvalidTraceParent);
        }
        let number = |text| u128::from_str_radix(text, 16).map_err(|_| InvalidTraceParent);
        let span_id = u64::from_str_radix(span_id, 16).map_err(|_| InvalidTraceParent)?;
        Ok(Self {
            trace_id: NonZeroU128::new(number(trace_id)?).ok_or(InvalidTraceParent)?,
            span_id: NonZeroU64::new(span_id).ok_or(InvalidTraceParent)?,
            sampled: number(flags)? & 1 == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_trace_context_is_parsed_as_w3c_specifies() {
        let long = format!("{VALID}-what-will-be");
        for (text, is_read) in [
            (VALID, true),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true),
            ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true),
            (&long.replacen("00", "cc", 1), true),
            (&long, false),
            ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false),
            ("00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01", false),
            ("00-00000000000000000000000000000000-b7ad6b7169203331-01", false),
            ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false),
            ("00-0af7651916cd43dd8448eb211c80319cb-7ad6b7169203331-01", false),
            ("", false),
            ("é", false),
        ] {
            assert_eq!(text.parse::<TraceParent>().is_ok(), is_read, "{text}");
        }
    }

    #[test]
    fn the_x_ray_header_names_the_same_trace() {
        let parent: TraceParent = VALID.parse().unwrap();
        assert_eq!(
            parent.to_xray(),
            "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1"
        );
    }

    proptest! {
        #[test]
        fn a_printed_trace_context_parses_back(trace_id: NonZeroU128, span_id: NonZeroU64, sampled: bool) {
            let parent = TraceParent { trace_id, span_id, sampled };
            prop_assert_eq!(parent.to_string().parse(), Ok(parent));
        }

        #[test]
        fn parsing_any_text_never_panics(text in ".{0,80}") {
            if let Ok(parent) = text.parse::<TraceParent>() {
                prop_assert_eq!(parent.to_string().len(), TRACEPARENT_BYTES);
            }
        }
    }
}
