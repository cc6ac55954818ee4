//! Model cost: tokens and dollars.

use stack::view::Tokens;

use super::brief::number;

/// Tokens and dollars; `None` without model usage.
pub fn cost(tokens: Tokens, usd: f64) -> Option<String> {
    let Tokens { input, output, unsettled, cache_read, cache_write, unpriced } = tokens;
    if input + output + unsettled == 0 && usd == 0.0 {
        return None;
    }
    let mut text = format!("{} tokens in, {} out", number(input), number(output));
    if unsettled > 0 {
        text.push_str(&format!(", {} unsettled", number(unsettled)));
    }
    if cache_read + cache_write > 0 {
        let (read, written) = (number(cache_read), number(cache_write));
        text.push_str(&format!(", {read} read from and {written} written to a cache"));
    }
    if unpriced == 0 {
        text.push_str(&format!(", ${usd:.4}"));
    } else if unpriced == input + output + unsettled {
        text.push_str(", no price known");
    } else {
        text.push_str(&format!(", ${usd:.4} and {} without a price", number(unpriced)));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_reports_unpriced_tokens() {
        let tokens = Tokens { input: 1_200, output: 80, ..Tokens::default() };
        for (tokens, usd, expected) in [
            (tokens, 0.0048, "1,200 tokens in, 80 out, $0.0048"),
            (Tokens { unpriced: 1_280, ..tokens }, 0.0, "1,200 tokens in, 80 out, no price known"),
            (
                Tokens { unsettled: 7, unpriced: 7, ..tokens },
                0.0048,
                "1,200 tokens in, 80 out, 7 unsettled, $0.0048 and 7 without a price",
            ),
            (
                Tokens { cache_read: 600, ..tokens },
                0.003,
                "1,200 tokens in, 80 out, 600 read from and 0 written to a cache, $0.0030",
            ),
        ] {
            assert_eq!(cost(tokens, usd).as_deref(), Some(expected));
        }
        assert_eq!(cost(Tokens::default(), 0.0), None);
    }
}
