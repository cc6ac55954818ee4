//! Drafts rules and backtests each on the data before proposing it.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::case_file::CaseFile;
use super::features::{Feature, Features};
use super::patterns::{Finding, Pattern};
use super::row::{Transaction, rfc3339};
use super::statistics::permille;

/// Most conditions of a rule, to keep it understandable.
const CONDITIONS_MAX: usize = 3;

/// Minimum number of known frauds that a rule catches; fewer may be a coincidence.
const FRAUDS_CAUGHT_MIN: u32 = 2;

/// Minimum share of frauds among the payments that a rule stops, in thousandths.
const PRECISION_PERMILLE_MIN: u32 = 500;

/// Most rejected drafts in the result.
const REJECTED_MAX: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// Greater than or equal.
    AtLeast,
    /// Less than or equal.
    AtMost,
}

/// One condition. Flags are 0 or 1; an unknown value meets no condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    pub field: Feature,
    pub is: Comparison,
    pub value: u32,
}

/// A rule's action on a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A person reviews the payment before settlement.
    Review,
}

/// A rule. All its conditions must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub name: String,
    pub all: Vec<Condition>,
    pub action: Action,
}

/// Backtest of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Backtest {
    /// Number of labelled payments tested.
    pub transactions: u32,
    /// Number of their cards.
    pub cards: u32,
    /// Whether the test covers all cards in the data, or a sample.
    pub is_whole: bool,
    /// Time of the first payment.
    pub from: String,
    /// Time of the last payment.
    pub to: String,
    /// Number of frauds among them.
    pub frauds: u32,
    /// Frauds that the rule stops.
    pub frauds_caught: u32,
    /// Honest payments that the rule stops.
    pub honest_stopped: u32,
    /// Cards without a known fraud.
    pub honest_cards: u32,
    /// Those of them with a stopped payment.
    pub honest_cards_stopped: u32,
    /// Value of the stopped frauds, by currency.
    pub value_caught: BTreeMap<String, String>,
    /// Value of the missed frauds, by currency.
    pub value_missed: BTreeMap<String, String>,
    /// Value of the stopped honest payments, by currency.
    pub value_honest_stopped: BTreeMap<String, String>,
    /// Share of frauds among the stopped payments, in thousandths.
    pub precision_permille: u32,
}

/// A rule that was tested and not proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rejected {
    pub name: String,
    pub reason: String,
}

/// A proposed rule with its backtest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleDraft {
    pub rule: Rule,
    pub backtest: Backtest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleDrafts {
    pub transaction_id: String,
    /// The best rule that passed.
    pub rule_draft: Option<RuleDraft>,
    /// Why no rule is proposed.
    pub reason: Option<String>,
    /// Other rules that were tested.
    pub rejected: Vec<Rejected>,
}

impl Condition {
    fn holds(&self, features: &Features) -> bool {
        features.get(self.field).is_some_and(|number| match self.is {
            Comparison::AtLeast => number >= self.value,
            Comparison::AtMost => number <= self.value,
        })
    }
}

impl Rule {
    pub fn stops(&self, features: &Features) -> bool {
        self.all.iter().all(|condition| condition.holds(features))
    }
}

/// Drafts rules against the findings, backtests them, and proposes the best one that passes.
pub fn draft(case: &CaseFile, findings: &[Finding]) -> RuleDrafts {
    let own = Features::of(&case.card, &case.target);
    let trials = Trial::all(case);
    let frauds = trials.iter().filter(|trial| trial.is_fraud).count();
    let mut drafts = RuleDrafts {
        transaction_id: case.target.id.clone(),
        rule_draft: None,
        reason: None,
        rejected: Vec::new(),
    };
    if frauds == 0 {
        let reason = "the data has no known earlier fraud to test a rule on";
        drafts.reason = Some(reason.to_owned());
        return drafts;
    }
    let candidates = findings.iter().flat_map(|finding| candidates(finding.pattern));
    let candidates: Vec<Rule> = candidates.filter(|rule| rule.stops(&own)).collect();
    if candidates.is_empty() {
        drafts.reason = Some("no finding gives a rule".to_owned());
        return drafts;
    }
    let mut best: Option<RuleDraft> = None;
    for rule in candidates {
        let backtest = backtest(&rule, &trials, case.is_whole);
        match refusal(&backtest) {
            Some(reason) => drafts.rejected.push(Rejected { name: rule.name, reason }),
            None if best.as_ref().is_none_or(|best| merit(&backtest) > merit(&best.backtest)) => {
                let loser = best.replace(RuleDraft { rule, backtest });
                drafts.rejected.extend(loser.map(|loser| outdone(loser.rule)));
            }
            None => drafts.rejected.push(outdone(rule)),
        }
    }
    drafts.rejected.truncate(REJECTED_MAX);
    if best.is_none() {
        drafts.reason = Some("no draft passed its backtest".to_owned());
    }
    drafts.rule_draft = best;
    drafts
}

fn outdone(rule: Rule) -> Rejected {
    Rejected { name: rule.name, reason: "another rule scores better".to_owned() }
}

/// Score: frauds caught, minus a penalty for each honest payment stopped.
fn merit(backtest: &Backtest) -> (u32, std::cmp::Reverse<u32>) {
    (
        backtest.frauds_caught * backtest.precision_permille,
        std::cmp::Reverse(backtest.honest_cards_stopped),
    )
}

fn refusal(backtest: &Backtest) -> Option<String> {
    let Backtest { frauds_caught, honest_stopped, precision_permille, .. } = backtest;
    if *frauds_caught < FRAUDS_CAUGHT_MIN {
        return Some(format!("it would have caught {frauds_caught} known frauds"));
    }
    (*precision_permille < PRECISION_PERMILLE_MIN).then(|| {
        format!("it would have stopped {honest_stopped} honest payments for {frauds_caught} frauds")
    })
}

/// A labelled payment of the backtest.
struct Trial<'a> {
    payment: &'a Transaction,
    features: Features,
    is_fraud: bool,
}

impl<'a> Trial<'a> {
    fn all(case: &'a CaseFile) -> Vec<Self> {
        case.known_cases()
            .map(|(before, past)| Self {
                payment: &past.transaction,
                features: Features::of(before, &past.transaction),
                is_fraud: past.is_known_fraud(),
            })
            .collect()
    }
}

fn backtest(rule: &Rule, trials: &[Trial<'_>], is_whole: bool) -> Backtest {
    let (mut caught, mut missed, mut stopped) = (Sums::default(), Sums::default(), Sums::default());
    let (mut cards, mut bad_cards, mut stopped_cards) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for trial in trials {
        let card = trial.payment.card.as_str();
        cards.insert(card);
        match (trial.is_fraud, rule.stops(&trial.features)) {
            (true, true) => caught.add(trial.payment),
            (true, false) => missed.add(trial.payment),
            (false, true) => {
                stopped.add(trial.payment);
                stopped_cards.insert(card);
            }
            (false, false) => {}
        }
        if trial.is_fraud {
            bad_cards.insert(card);
        }
    }
    let time = |at_ms: Option<i64>| at_ms.map(rfc3339).unwrap_or_default();
    Backtest {
        transactions: count(trials.len()),
        cards: count(cards.len()),
        is_whole,
        from: time(trials.iter().map(|trial| trial.payment.at_ms).min()),
        to: time(trials.iter().map(|trial| trial.payment.at_ms).max()),
        frauds: count(caught.count + missed.count),
        frauds_caught: count(caught.count),
        honest_stopped: count(stopped.count),
        honest_cards: count(cards.len() - bad_cards.len()),
        honest_cards_stopped: count(stopped_cards.difference(&bad_cards).count()),
        precision_permille: permille(caught.count, caught.count + stopped.count),
        value_caught: caught.by_currency(),
        value_missed: missed.by_currency(),
        value_honest_stopped: stopped.by_currency(),
    }
}

#[derive(Default)]
struct Sums<'a> {
    count: usize,
    by_currency: BTreeMap<&'a str, Vec<Amount>>,
}

impl<'a> Sums<'a> {
    fn add(&mut self, payment: &'a Transaction) {
        self.count += 1;
        self.by_currency.entry(&payment.currency).or_default().push(payment.amount);
    }

    fn by_currency(self) -> BTreeMap<String, String> {
        let sum = |amounts: Vec<Amount>| amounts.into_iter().sum::<Amount>().to_string();
        self.by_currency
            .into_iter()
            .map(|(currency, amounts)| (currency.to_owned(), sum(amounts)))
            .collect()
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The candidate rules for a pattern, from broad to narrow.
fn candidates(pattern: Pattern) -> Vec<Rule> {
    use Comparison::{AtLeast, AtMost};
    use Feature as F;
    let each = |name: &str, values: &[u32], conditions: &dyn Fn(u32) -> Vec<Condition>| {
        values.iter().map(|value| rule(&format!("{name}_{value}"), conditions(*value))).collect()
    };
    let c = |field, is, value| Condition { field, is, value };
    let online = c(F::IsOnline, AtLeast, 1);
    let unknown_category = c(F::CategorySharePermille, AtMost, 0);
    match pattern {
        Pattern::Velocity => {
            each("payments_within_an_hour", &[4, 5, 6, 8], &|n| vec![c(F::Payments1h, AtLeast, n)])
        }
        Pattern::AmountOutlier => {
            let mut rules: Vec<Rule> =
                each("times_the_usual_permille", &[4_000, 6_000, 9_000], &|n| {
                    vec![c(F::AmountRatioPermille, AtLeast, n)]
                });
            rules.extend(each("times_the_usual_online_permille", &[3_500, 5_000], &|n| {
                vec![c(F::AmountRatioPermille, AtLeast, n), online]
            }));
            rules
        }
        Pattern::ImpossibleTravel => each("faster_than_an_airliner_kmh", &[900, 1_500], &|n| {
            vec![c(F::JourneyKmh, AtLeast, n), c(F::JourneyKm, AtLeast, 150)]
        }),
        Pattern::UnusualPlace => each("dear_in_a_new_country_permille", &[1_500, 3_000], &|n| {
            vec![c(F::IsNewCountry, AtLeast, 1), c(F::AmountRatioPermille, AtLeast, n)]
        }),
        Pattern::CardTesting => each("small_online_payments", &[2, 3, 4], &|n| {
            vec![c(F::SmallPayments1h, AtLeast, n), online]
        }),
        Pattern::OddHour => each("dear_at_an_odd_hour_permille", &[3_000, 5_000], &|n| {
            vec![c(F::HourSharePermille, AtMost, 40), c(F::AmountRatioPermille, AtLeast, n)]
        }),
        Pattern::MerchantCategory => {
            let mut rules: Vec<Rule> =
                each("dear_in_a_new_category_permille", &[2_000, 4_000], &|n| {
                    vec![unknown_category, c(F::AmountRatioPermille, AtLeast, n)]
                });
            rules.extend(each("dear_in_a_new_category_online_permille", &[1_500, 3_000], &|n| {
                vec![unknown_category, c(F::AmountRatioPermille, AtLeast, n), online]
            }));
            rules
        }
        // A rule about a single merchant would be a block list, which is out of scope; the other
        // patterns have no feature that a rule could use.
        Pattern::MerchantRisk
        | Pattern::DistributedTesting
        | Pattern::Collusion
        | Pattern::Structuring
        | Pattern::SlowDrip
        | Pattern::DormantCard
        | Pattern::ContactlessLimit
        | Pattern::UnmatchedRefund
        | Pattern::BustOut
        | Pattern::PassThrough
        | Pattern::CommonPoint => Vec::new(),
    }
}

fn rule(name: &str, all: Vec<Condition>) -> Rule {
    debug_assert!(all.len() <= CONDITIONS_MAX, "too many conditions");
    Rule { name: name.to_owned(), all, action: Action::Review }
}
