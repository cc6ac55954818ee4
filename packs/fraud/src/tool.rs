//! The six tools and their prerequisites.

use serde::{Deserialize, Serialize};

/// A tool of `card-transactions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Tool {
    /// The payment, and the history of its card and merchant.
    #[serde(rename = "context_tool")]
    Context,
    /// Unusual patterns.
    #[serde(rename = "pattern_tool")]
    Pattern,
    /// The nearest past cases.
    #[serde(rename = "similarity_tool")]
    Similarity,
    /// Likelihood and explanations.
    #[serde(rename = "reasoning_tool")]
    Reasoning,
    /// Recommended actions.
    #[serde(rename = "recommendation_tool")]
    Recommendation,
    /// A draft rule against similar payments.
    #[serde(rename = "rule_draft_tool")]
    RuleDraft,
}

impl Tool {
    /// All tools, in the default order. The agent calls no other tool of a server.
    ///
    /// Source: the fraud specification, section 4.4.
    pub const ALL: [Self; 6] = [
        Self::Context,
        Self::Pattern,
        Self::Similarity,
        Self::Reasoning,
        Self::Recommendation,
        Self::RuleDraft,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Context => "context_tool",
            Self::Pattern => "pattern_tool",
            Self::Similarity => "similarity_tool",
            Self::Reasoning => "reasoning_tool",
            Self::Recommendation => "recommendation_tool",
            Self::RuleDraft => "rule_draft_tool",
        }
    }

    /// Its description for a model; the server's own is not used.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Context => "reads the payment and the history of its card and merchant",
            Self::Pattern => {
                "detects unusual patterns: velocity, amount, travel, place, card testing, hour, category"
            }
            Self::Similarity => "compares it with past labelled payments",
            Self::Reasoning => {
                "weighs findings and past cases: likelihood of fraud and explanations"
            }
            Self::Recommendation => "recommends actions for payment, card and merchant",
            Self::RuleDraft => "drafts a rule against similar payments and backtests it",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Tools that must have been called before, successfully or not.
    ///
    /// Source: the fraud specification, sections 4.3 and 5.
    pub const fn after(self) -> &'static [Self] {
        match self {
            Self::Context => &[],
            Self::Pattern | Self::Similarity => &[Self::Context],
            Self::Reasoning => &[Self::Context, Self::Pattern, Self::Similarity],
            Self::Recommendation => &[Self::Context, Self::Reasoning],
            Self::RuleDraft => &[Self::Context, Self::Recommendation],
        }
    }
}
