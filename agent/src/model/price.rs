//! Prices of tokens: a dated table that ships, and an optional file that overrides it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use journal::step::Usage;
use serde::Deserialize;

/// The table that ships.
const SHIPPED: &str = include_str!("../../prices.toml");

/// Prices by model, as triggers name it.
#[derive(Clone, Debug)]
pub struct Prices(BTreeMap<String, Price>);

/// Dollars per million tokens of one model.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    input: f64,
    output: f64,
    /// Defaults to `input`.
    cache_read: Option<f64>,
    /// Defaults to `input`.
    cache_write: Option<f64>,
}

/// An invalid price table.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    #[error("{0}")]
    Form(#[from] toml::de::Error),
    #[error("the price of `{0}` must be between 0 and 1,000,000 dollars per million tokens")]
    Price(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// The day on which the prices were looked up.
    #[serde(rename = "as_of")]
    _as_of: String,
    models: BTreeMap<String, Price>,
}

impl Default for Prices {
    /// The prices that ship.
    ///
    /// # Panics
    /// When the table that ships is invalid, which a test rules out.
    fn default() -> Self {
        static PRICES: LazyLock<Prices> = LazyLock::new(|| {
            Prices::parse(SHIPPED).unwrap_or_else(|error| panic!("prices.toml: {error}"))
        });
        PRICES.clone()
    }
}

impl Prices {
    /// # Errors
    /// When the text is not a valid table.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let table: Table = toml::from_str(text)?;
        let amounts = |price: &Price| {
            [Some(price.input), Some(price.output), price.cache_read, price.cache_write]
        };
        let is_price = |amount: f64| (0.0..=1e6).contains(&amount);
        for (model, price) in &table.models {
            if !amounts(price).into_iter().flatten().all(is_price) {
                return Err(Malformed::Price(model.clone()));
            }
        }
        Ok(Self(table.models))
    }

    /// These prices, overridden by those of `other`.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Adds the cost in millionths of a dollar, rounded up. Unsettled tokens cost the model's highest
    /// price. Tokens of a model without a price cost nothing and count as unpriced.
    pub fn charge(&self, model: &str, usage: Usage) -> Usage {
        match self.of(model) {
            Some(price) => Usage { micro_usd: price.micro_usd(usage), ..usage },
            None => {
                let all = [usage.input_tokens, usage.output_tokens, usage.unsettled_tokens];
                let unpriced_tokens = all.into_iter().fold(0, u32::saturating_add);
                Usage { unpriced_tokens, ..usage }
            }
        }
    }

    /// A cross-region profile on Bedrock has its model's price, unless the table lists the profile itself.
    fn of(&self, model: &str) -> Option<Price> {
        let plain = || {
            let (place, id) = model.strip_prefix("bedrock:")?.split_once('.')?;
            let is_place = ["us", "us-gov", "eu", "apac", "jp", "au", "global"].contains(&place);
            self.0.get(&format!("bedrock:{id}")).filter(|_| is_place)
        };
        self.0.get(model).or_else(plain).copied()
    }
}

impl Price {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 2^32 tokens at one dollar each; `as` saturates beyond"
    )]
    fn micro_usd(self, usage: Usage) -> u32 {
        // One dollar per million tokens is one millionth of a dollar per token.
        let cost = |tokens: u32, price: f64| f64::from(tokens) * price;
        let cached = usage.cache_read_tokens.saturating_add(usage.cache_write_tokens);
        let dearest = self.output.max(self.input).max(self.cache_write.unwrap_or(0.0));
        let sum = cost(usage.input_tokens.saturating_sub(cached), self.input)
            + cost(usage.cache_read_tokens, self.cache_read.unwrap_or(self.input))
            + cost(usage.cache_write_tokens, self.cache_write.unwrap_or(self.input))
            + cost(usage.output_tokens, self.output)
            + cost(usage.unsettled_tokens, dearest);
        // The binary rounding error of a fraction such as 0.3 must not add a whole millionth.
        (sum - 1e-6).ceil() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> Prices {
        Prices::parse(
            "as_of = \"2026-01-01\"\n[models.\"bedrock:a.b-v1:0\"]\ninput = 3.0\noutput = 15.0\n\
             cache_read = 0.3\n[models.\"openai:free\"]\ninput = 0\noutput = 0\n",
        )
        .unwrap()
    }

    fn usage(input_tokens: u32, output_tokens: u32) -> Usage {
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    #[test]
    fn a_usage_costs_what_the_table_says() {
        let cached = Usage { cache_read_tokens: 500, ..usage(1_000, 100) };
        let lost = Usage { unsettled_tokens: 10, ..Usage::default() };
        for (model, usage, micro_usd) in [
            ("bedrock:a.b-v1:0", usage(1_000, 100), 4_500),
            ("bedrock:eu.a.b-v1:0", usage(1_000, 100), 4_500),
            ("bedrock:a.b-v1:0", cached, 3_150),
            ("bedrock:a.b-v1:0", lost, 150),
            ("bedrock:a.b-v1:0", Usage { cache_read_tokens: 1, ..usage(1, 0) }, 1),
            ("openai:free", usage(1_000, 100), 0),
        ] {
            let charged = prices().charge(model, usage);
            assert_eq!((charged.micro_usd, charged.unpriced_tokens), (micro_usd, 0), "{model}");
        }
    }

    #[test]
    fn tokens_without_a_price_cost_nothing_and_say_so() {
        for model in ["openai:other", "bedrock:xx.a.b-v1:0", "bedrock:other"] {
            let charged = prices().charge(model, usage(1_000, 100));
            assert_eq!((charged.micro_usd, charged.unpriced_tokens), (0, 1_100), "{model}");
        }
        assert_eq!(prices().charge("openai:other", Usage::default()), Usage::default());
    }

    #[test]
    fn a_second_table_overrides_only_the_models_that_it_lists() {
        let other = "as_of = \"2026-02-01\"\n[models.\"openai:free\"]\ninput = 1\noutput = 1\n";
        let prices = prices().with(Prices::parse(other).unwrap());
        assert_eq!(prices.charge("openai:free", usage(1, 1)).micro_usd, 2);
        assert_eq!(prices.charge("bedrock:a.b-v1:0", usage(1, 0)).micro_usd, 3);
    }

    #[test]
    fn an_invalid_price_table_is_refused() {
        for text in [
            "",
            "as_of = \"x\"\n[models.m]\ninput = 1\n",
            "as_of = \"x\"\n[models.m]\ninput = -1\noutput = 1\n",
            "as_of = \"x\"\n[models.m]\ninput = 1\noutput = 1\nimput = 2\n",
        ] {
            assert!(Prices::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_table_that_ships_is_valid() {
        assert!(
            Prices::default().of("bedrock:anthropic.claude-3-5-sonnet-20241022-v2:0").is_some()
        );
    }
}
