//! Judges each sentence of the plan, and the question, by what the tools answered.
//!
//! A sentence is not judged unless a rule knows what it asks and finds it in the answers.

use serde::Serialize;
use serde_json::Value;

use super::findings::{Fine, Read, read};
use super::interpret::{condition, words};
use super::leaves::UTILIZATION_PERCENT_MIN;
use super::lexicon;
use super::query::normal_interface;
use super::state::{Finding, State, StepStatus};

/// Minimum number of parts in order that count as redundant.
const REDUNDANT_MIN: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Looked at, and in order.
    Fine,
    /// Looked at, and not in order.
    NotFine,
    /// No rule knows this, or the answers do not show it.
    NotJudged,
    /// No tool answered.
    NotAnswered,
    /// The condition of the sentence is not met.
    NotNeeded,
}

/// A sentence and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Judgement {
    /// Index of the step, from 0; absent for the question itself.
    pub step_index: Option<usize>,
    pub sentence: String,
    pub verdict: Verdict,
    /// Why it is not judged or not answered.
    pub reason: Option<String>,
}

/// What the agent concludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Fine,
    NotFine,
    Unknown,
}

/// Words with which a person reports a fault. That everything else is in order does not explain it.
const SYMPTOMS: &[&str] = &[
    "why",
    "cannot",
    "can't",
    "unable",
    "complain",
    "complaint",
    "lost",
    "lose",
    "slow",
    "broken",
    "fail",
    "failing",
    "outage",
    "unreachable",
    "doesn't",
    "isn't",
    "won't",
    "dropping",
    "stopped",
    "longer",
    "wrong",
];

pub(super) fn outcome(state: &State, judged: &[Judgement]) -> Outcome {
    let has = |verdict| judged.iter().any(|judgement| judgement.verdict == verdict);
    if !state.work.findings.is_empty() || has(Verdict::NotFine) {
        Outcome::NotFine
    } else if has(Verdict::Fine)
        && !has(Verdict::NotJudged)
        && !has(Verdict::NotAnswered)
        && state.work.limit.is_none()
    {
        Outcome::Fine
    } else {
        Outcome::Unknown
    }
}

/// The judgements of all sentences, the question first.
pub(super) fn judgements(state: &State) -> Vec<Judgement> {
    let mut all = Vec::new();
    let mut reads = Vec::new();
    for index in 0..state.working_plan_steps.len() {
        let (mut judged, mut seen) = of_step(state, index);
        all.append(&mut judged);
        reads.append(&mut seen);
    }
    let mut question = of_question(state, &reads);
    if question.verdict == Verdict::Fine
        && words_of(&state.user_query).iter().any(|word| SYMPTOMS.contains(&word.as_str()))
        && state.work.findings.is_empty()
    {
        question.verdict = Verdict::NotJudged;
        question.reason = Some("nothing that was checked explains it".to_owned());
    }
    all.insert(0, question);
    all
}

fn words_of(text: &str) -> Vec<String> {
    text.to_lowercase()
        .replace('’', "'")
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .map(str::to_owned)
        .collect()
}

fn of_question(state: &State, reads: &[Read]) -> Judgement {
    let query = state.user_query.as_str();
    let judge = |verdict, reason: Option<String>| Judgement {
        step_index: None,
        sentence: query.to_owned(),
        verdict,
        reason,
    };
    if reads.is_empty() {
        return judge(Verdict::NotAnswered, Some("no tool answered".to_owned()));
    }
    let named =
        words(query).iter().any(|word| state.work.intent.split('_').any(|part| part == word));
    let is_general = lexicon::subjects(&words(query)).is_empty()
        && lexicon::attributes(&words(query)).is_empty()
        && (state.work.is_intent_recognised || !named);
    let (verdict, reason) = sentence_by(state, query, reads, is_general);
    judge(verdict, reason)
}

/// The sentences of a step that ask for something, and what its answers say.
fn of_step(state: &State, index: usize) -> (Vec<Judgement>, Vec<Read>) {
    let step = &state.working_plan_steps[index];
    let last = state.execution_results.iter().rev().find(|result| result.step_index == index);
    let calls = last.map_or(&[][..], |result| &result.executed_calls);
    let answers = calls.iter().filter_map(|call| Some((call, call.result.as_ref()?)));
    let reads: Vec<Read> =
        answers.map(|(call, answer)| read(&call.function, &call.params, answer)).collect();
    let status = state.status(index);
    let failed = calls.iter().find_map(|call| Some((&call.function, call.error.as_ref()?)));
    let judged = sentences(step).into_iter().map(|sentence| {
        let (verdict, reason) = match (status, failed) {
            (StepStatus::NotNeeded, _) => (Verdict::NotNeeded, None),
            (StepStatus::NotDone, _) => {
                let why = state.work.not_done.get(&index).cloned();
                (Verdict::NotAnswered, Some(why.unwrap_or_else(|| "no tool was called".to_owned())))
            }
            (_, Some((function, error))) if reads.is_empty() => {
                (Verdict::NotAnswered, Some(format!("{function} failed: {error}")))
            }
            (_, Some((function, error))) => match sentence_by(state, sentence, &reads, false) {
                (Verdict::Fine, _) => {
                    (Verdict::NotJudged, Some(format!("{function} failed: {error}")))
                }
                other => other,
            },
            _ => sentence_by(state, sentence, &reads, false),
        };
        Judgement { step_index: Some(index), sentence: sentence.to_owned(), verdict, reason }
    });
    (judged.collect(), reads)
}

/// The first sentence of a step, and those of the others that ask for something. The rest explains.
pub(super) fn sentences(step: &str) -> Vec<&str> {
    let mut all = step.split_inclusive(". ").map(str::trim).filter(|text| !text.is_empty());
    let first = all.next();
    let asks = |text: &&str| {
        let said = words(text);
        let verb = said.first().map_or("", String::as_str);
        let verbs = [
            "check", "look", "examine", "compare", "verify", "ensure", "confirm", "make", "list",
            "find", "read", "review", "inspect",
        ];
        let has = |word: &str| said.iter().any(|w| w == word);
        verbs.contains(&verb) || text.ends_with('?') || has("should") || has("must")
    };
    first.into_iter().chain(all.filter(asks)).collect()
}

/// Whether what a sentence asks about may be absent: "the VRFs, if the device has any".
fn is_optional(sentence: &str) -> bool {
    let small = sentence.to_lowercase();
    [
        "if the device",
        "if it has",
        "if any",
        "where the device",
        "if configured",
        "where configured",
    ]
    .iter()
    .any(|words| small.contains(words))
        || condition(sentence).is_some()
}

fn sentence_by(
    state: &State,
    sentence: &str,
    reads: &[Read],
    is_general: bool,
) -> (Verdict, Option<String>) {
    let not_judged = |reason: String| (Verdict::NotJudged, Some(reason));
    let said = words(sentence);
    let (mut subjects, mut attributes) = (lexicon::subjects(&said), lexicon::attributes(&said));
    // What to search a log for is not asked of the log.
    if subjects.contains(&"log") {
        subjects = vec!["log"];
        attributes.clear();
    }
    let concerns = |about: &[&'static str]| {
        subjects.is_empty()
            || about.is_empty()
            || about.iter().any(|subject| subjects.contains(subject))
    };
    let fine: Vec<&Fine> = reads.iter().flat_map(|read| &read.fine).collect();
    if let Some(limit) = percent(sentence)
        && let Some(high) = fine
            .iter()
            .find(|fine| fine.attribute == "utilization" && fine.number.is_some_and(|n| n >= limit))
    {
        let number = high.number.unwrap_or_default();
        return (Verdict::NotFine, Some(format!("{number}% is used, not under {limit}%")));
    }
    if reads.iter().flat_map(|read| &read.wrong).any(|wrong| concerns(&wrong.subjects)) {
        return (Verdict::NotFine, None);
    }
    let names = |word: &str| {
        state
            .device_name
            .to_lowercase()
            .split(", ")
            .any(|device| words(device).iter().any(|w| w == word))
            || reads.iter().any(|read| read.words.contains(word))
    };
    if let Some(word) =
        lexicon::unknown(&said).into_iter().find(|word| !is_measure(word, sentence) && !names(word))
    {
        return not_judged(format!("no rule knows `{word}`"));
    }
    if let Some(part) = reads.iter().flat_map(|read| &read.unknown).next() {
        return not_judged(format!("no rule knows what this means: {part}"));
    }
    if is_general {
        return if fine.is_empty() {
            not_judged("the answers show no state".to_owned())
        } else {
            (Verdict::Fine, None)
        };
    }
    if subjects.is_empty() && attributes.is_empty() {
        return not_judged("no rule knows what it asks".to_owned());
    }
    let absent = |subject: &str| reads.iter().any(|read| read.absent.contains(&subject));
    for subject in &subjects {
        let is_shown = fine.iter().any(|fine| fine.subjects.contains(subject));
        if !is_shown && absent(subject) && is_optional(sentence) {
            return (Verdict::NotNeeded, None);
        }
        if !is_shown {
            let what = if absent(subject) {
                "the device has no"
            } else {
                "the answers show nothing about"
            };
            return not_judged(format!("{what} {subject}"));
        }
    }
    needs(state, &subjects, &attributes, &fine)
}

/// Whether each attribute that is asked about is in order.
fn needs(
    state: &State,
    subjects: &[&str],
    attributes: &[&str],
    fine: &[&Fine],
) -> (Verdict, Option<String>) {
    let concerns =
        |fine: &&&Fine| subjects.is_empty() || fine.subjects.iter().any(|s| subjects.contains(s));
    for attribute in attributes {
        if *attribute == "redundancy" {
            let mut names: Vec<&str> =
                fine.iter().filter(concerns).map(|fine| fine.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            let is_counted = fine.iter().any(|fine| fine.attribute == "redundancy");
            let names = names.iter().filter(|name| !name.to_lowercase().starts_with("lo")).count();
            if names < REDUNDANT_MIN && !is_counted {
                return (
                    Verdict::NotFine,
                    Some("there are not two of them: no redundancy".to_owned()),
                );
            }
        } else if !fine.iter().any(|fine| fine.attribute == *attribute) {
            return (Verdict::NotJudged, Some(format!("the answers show no {attribute}")));
        }
    }
    if let Some(asked) = &state.work.interface
        && subjects.contains(&"interface")
        && !fine.iter().any(|fine| normal_interface(&fine.name) == normal_interface(asked))
    {
        return (Verdict::NotJudged, Some(format!("the answers do not show {asked}")));
    }
    (Verdict::Fine, None)
}

/// A number that the sentence compares with, in percent, if it is not the rules' own.
fn percent(sentence: &str) -> Option<f64> {
    let said = words(sentence);
    let at = said.iter().position(|word| word == "percent")?;
    let number: f64 = said.get(at.checked_sub(1)?)?.parse().ok()?;
    (number < UTILIZATION_PERCENT_MIN).then_some(number)
}

/// Whether a number belongs to a unit, such as percent.
fn is_measure(word: &str, sentence: &str) -> bool {
    let said = words(sentence);
    let at = said.iter().position(|w| w == word);
    let next = at.and_then(|at| said.get(at + 1)).map_or("", String::as_str);
    word.parse::<f64>().is_ok() && ["percent", "hour", "minute"].contains(&next)
}

/// Whether a finding is about what the question asks: its subjects, or a name in it.
pub(super) fn is_relevant(state: &State, finding: &Finding) -> bool {
    let asked = words(&state.user_query);
    let subjects = lexicon::subjects(&asked);
    if subjects.is_empty() {
        return true;
    }
    if let Some(interface) = &state.work.interface {
        let is_this = |word: &str| normal_interface(word) == normal_interface(interface);
        return finding.finding.split(|c: char| c.is_whitespace() || c == ',').any(is_this);
    }
    finding.subjects.is_empty() || finding.subjects.iter().any(|s| subjects.contains(&s.as_str()))
}

/// The judgements as the session's result shows them.
pub(super) fn shown(judged: &[Judgement]) -> Value {
    serde_json::to_value(judged).unwrap_or_default()
}
