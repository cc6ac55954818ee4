//! What speaks for the cardholder: habits that explain a finding.

use super::super::features::DAY_MS;
use super::super::row::{Channel, Transaction};
use super::{Defence, Finding, Pattern, Scene};

/// Intervals of regular charges, in days, and how far they may vary.
const INTERVALS: [(i64, i64); 6] = [(7, 1), (14, 2), (30, 4), (61, 6), (91, 7), (365, 12)];

/// Habits at a merchant that make it the card's own.
const OWN_MERCHANT_ROWS: usize = 2;

/// Most rows cited.
const ROWS: usize = 3;

impl Scene<'_> {
    /// Weakens the findings that the card's habits explain, and says why.
    pub(super) fn defend(&self, findings: &mut Vec<Finding>) -> Vec<Defence> {
        let mut defences = Vec::new();
        if let Some(purchase) = self.purchase() {
            let explanation = format!(
                "a refund of an earlier purchase of {} {}",
                purchase.amount, purchase.currency
            );
            defences.push(defence("refund_of_a_purchase", explanation, &[purchase]));
            findings.clear();
            return defences;
        }
        let charges = self.regular_charges();
        if !charges.is_empty() {
            let explanation = format!(
                "{} charges of about this amount at this merchant at a regular interval",
                charges.len()
            );
            defences.push(defence("regular_charge", explanation, &charges));
            weaken(findings, 6, Pattern::is_about_the_card);
        }
        let own = self.own_merchant();
        if charges.is_empty() && !own.is_empty() {
            let explanation =
                format!("the card paid {} times at this merchant, similar amounts", own.len());
            defences.push(defence("known_merchant", explanation, &own));
            weaken(findings, 3, |pattern| pattern.is_about_the_card() && !is_a_series(pattern));
            weaken(findings, 2, |pattern| pattern == Pattern::Velocity);
        }
        if self.is_everyday_at_home() {
            let explanation =
                "a usual amount with the card present, where it usually pays".to_owned();
            defences.push(defence("everyday_at_home", explanation, &[]));
            let is_mild = |pattern| {
                matches!(pattern, Pattern::MerchantCategory | Pattern::OddHour | Pattern::Velocity)
            };
            weaken(findings, 2, is_mild);
        }
        defences
    }

    /// Earlier charges of the merchant that make this one regular.
    pub(super) fn regular_charges(&self) -> Vec<&Transaction> {
        let value = self.payment.amount.value();
        let alike: Vec<&Transaction> = self
            .before
            .iter()
            .filter(|past| past.label_at(self.payment.at_ms) != Some(true))
            .map(|past| &past.transaction)
            .filter(|past| {
                past.merchant == self.payment.merchant
                    && past.currency == self.payment.currency
                    && (past.amount.value() - value).abs() * 4 <= value.abs()
            })
            .collect();
        let mut times: Vec<i64> = alike.iter().map(|past| past.at_ms).collect();
        times.push(self.payment.at_ms);
        let is_regular = INTERVALS.iter().any(|(days, around)| {
            times.windows(2).all(|pair| {
                let gap = (pair[1] - pair[0] + DAY_MS / 2) / DAY_MS;
                (gap - days).abs() <= *around
            })
        });
        if alike.len() >= 2 && is_regular { alike } else { Vec::new() }
    }

    /// Habits at the merchant, if this payment is like them.
    fn own_merchant(&self) -> Vec<&Transaction> {
        let at: Vec<&Transaction> = self
            .habits
            .iter()
            .map(|past| &past.transaction)
            .filter(|past| past.merchant == self.payment.merchant)
            .collect();
        let most = at.iter().map(|past| past.amount.value()).max().unwrap_or_default();
        let is_alike = self.payment.amount.value() * 2 <= most * 3
            && at.iter().any(|past| past.country == self.payment.country);
        if at.len() >= OWN_MERCHANT_ROWS && is_alike { at } else { Vec::new() }
    }

    fn is_everyday_at_home(&self) -> bool {
        let is_usual = self.usual.is_some_and(|usual| self.payment.amount.value() <= usual * 2);
        is_usual && self.payment.channel != Channel::Atm && self.is_at_home(self.payment)
    }
}

/// Whether a known merchant explains little of it: a drip makes its merchant known, the usual machine is where
/// withdrawals are split, and a stored card is misused where it is stored. What is usual there is counted already.
fn is_a_series(pattern: Pattern) -> bool {
    matches!(
        pattern,
        Pattern::SlowDrip | Pattern::Structuring | Pattern::ContactlessLimit | Pattern::Velocity
    )
}

fn weaken(findings: &mut [Finding], divisor: u32, concerns: impl Fn(Pattern) -> bool) {
    for finding in findings.iter_mut().filter(|finding| concerns(finding.pattern)) {
        finding.strength_permille /= divisor;
    }
}

fn defence(name: &'static str, explanation: String, rows: &[&Transaction]) -> Defence {
    let rows = rows.iter().rev().take(ROWS).map(|row| row.id.clone()).collect();
    Defence { name, explanation, rows }
}
