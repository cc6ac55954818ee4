//! The baseline: how often each case agreed, by model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The outcome of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    pub agent: String,
    /// By model, then by case.
    pub models: BTreeMap<String, BTreeMap<String, Tally>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    pub runs: u32,
    pub agreed: u32,
    pub false_clears: u32,
}

impl Tally {
    fn is_worse_than(self, before: Self) -> bool {
        let share =
            |of: Self, in_units_of: Self| u64::from(of.agreed) * u64::from(in_units_of.runs);
        share(self, before) < share(before, self)
    }
}

impl Baseline {
    /// Counts a run.
    pub fn add(&mut self, model: &str, case: &str, agrees: bool, is_false_clear: bool) {
        let cases = self.models.entry(model.to_owned()).or_default();
        let tally = cases.entry(case.to_owned()).or_default();
        tally.runs += 1;
        tally.agreed += u32::from(agrees);
        tally.false_clears += u32::from(is_false_clear);
    }

    /// What became worse since `before`, for the models that were run. `chosen`: the cases that were asked
    /// for; all if empty.
    pub fn regressions(&self, before: &Self, chosen: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for (model, now) in &self.models {
            let known = before.models.get(model);
            for (case, before) in known.into_iter().flatten() {
                if !chosen.is_empty() && !chosen.contains(case) {
                    continue;
                }
                match now.get(case) {
                    None => found.push(format!("{case} ({model}) was not run")),
                    Some(now) if now.is_worse_than(*before) => found.push(format!(
                        "{case} ({model}) agrees in {} of {} runs, before in {} of {}",
                        now.agreed, now.runs, before.agreed, before.runs
                    )),
                    Some(_) => {}
                }
            }
            for (case, tally) in now.iter().filter(|(_, tally)| tally.false_clears > 0) {
                let (clears, runs) = (tally.false_clears, tally.runs);
                found.push(format!(
                    "{case} ({model}): {clears} of {runs} runs are a false all-clear"
                ));
            }
        }
        found
    }

    /// The cases of this run that `before` lacks.
    pub fn new_cases(&self, before: &Self) -> Vec<String> {
        let is_new = |model: &str, case: &str| {
            !before.models.get(model).is_some_and(|cases| cases.contains_key(case))
        };
        let mut found = Vec::new();
        for (model, cases) in &self.models {
            let new = cases.keys().filter(|case| is_new(model, case));
            found.extend(new.map(|case| format!("{case} ({model})")));
        }
        found
    }

    /// Whether every run agrees.
    pub fn agrees(&self) -> bool {
        self.models.values().flat_map(BTreeMap::values).all(|tally| tally.agreed == tally.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(runs: &[(&str, bool, bool)]) -> Baseline {
        let mut baseline = Baseline { agent: "a".to_owned(), ..Baseline::default() };
        for (case, agrees, is_false_clear) in runs {
            baseline.add("policy", case, *agrees, *is_false_clear);
        }
        baseline
    }

    #[test]
    fn a_case_that_agrees_less_often_is_a_regression() {
        let before = of(&[("x", true, false), ("x", false, false), ("y", false, false)]);
        let check = |now: Baseline, expected: &[&str]| {
            assert_eq!(now.regressions(&before, &[]), expected, "{now:?}");
        };
        check(of(&[("x", true, false), ("y", false, false)]), &[]);
        check(
            of(&[("x", false, false), ("x", true, false), ("x", false, false), ("y", true, false)]),
            &["x (policy) agrees in 1 of 3 runs, before in 1 of 2"],
        );
        check(of(&[("x", true, false)]), &["y (policy) was not run"]);
    }

    #[test]
    fn no_baseline_excuses_a_false_all_clear() {
        let before = of(&[("x", false, true)]);
        let now = of(&[("x", false, true), ("new", false, true)]);
        assert_eq!(now.regressions(&before, &[]).len(), 2);
        assert_eq!(now.new_cases(&before), ["new (policy)"]);
    }

    #[test]
    fn a_chosen_case_is_compared_alone() {
        let before = of(&[("x", true, false), ("y", true, false)]);
        let now = of(&[("x", true, false)]);
        assert_eq!(now.regressions(&before, &["x".to_owned()]), Vec::<String>::new());
    }

    #[test]
    fn a_baseline_reads_back() {
        let baseline = of(&[("x", true, false), ("y", false, true)]);
        let text = serde_json::to_string(&baseline).unwrap();
        assert_eq!(serde_json::from_str::<Baseline>(&text).unwrap(), baseline);
        assert!(
            serde_json::from_str::<Baseline>(r#"{"agent": "a", "models": {}, "x": 1}"#).is_err()
        );
    }
}
