//! Judges each sentence of the plan, and the question, by what the tools answered.
//!
//! A sentence is not judged unless a rule knows what it asks and finds it in the answers.

use serde::Serialize;
use serde_json::Value;

use super::across::{across, targets};
use super::asks::{self, Ask};
use super::facts::{Fine, Read};
use super::findings::read;
use super::interpret::{self, condition, words};
use super::lexicon;
use super::links::links;
use super::query::normal_interface;
use super::sentence::{by_name, judged, too_few};
use super::shared::{Uneven, both_active, missing_vlans, uneven};
use super::specific;
use super::state::{ExecutedToolCall, Finding, State, StepStatus};

/// How many unknown parts a reason quotes.
const UNKNOWN_MAX: usize = 3;

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
    // Several steps may share a call.
    let mut reads: Vec<(&ExecutedToolCall, Read)> = Vec::new();
    let mut of_steps = Vec::new();
    for index in 0..state.working_plan_steps.len() {
        let calls = last_calls(state, index);
        let at: Vec<usize> = calls.iter().filter_map(|call| position(&mut reads, call)).collect();
        of_steps.push((calls, at));
    }
    let mut owned: Vec<Read> = reads.into_iter().map(|(_, read)| read).collect();
    specific::stale(&mut owned);
    let mut lost = links(&mut owned);
    lost.extend(across(&owned));
    lost.extend(targets(&mut owned).into_iter().map(|why| ("vpn", why)));
    lost.extend(both_active(&owned).into_iter().map(|why| ("fhrp", why)));
    lost.extend(missing_vlans(&state.user_query, &owned).into_iter().map(|why| ("vlan", why)));
    let uneven = match uneven(&owned) {
        Some(Uneven::Lost(why)) => {
            lost.push(("bgp", why));
            None
        }
        Some(Uneven::Open(why)) => Some(why),
        None => None,
    };
    let reads: Vec<&Read> = owned.iter().collect();
    let mut all = Vec::new();
    for (index, (calls, at)) in of_steps.into_iter().enumerate() {
        let seen: Vec<&Read> = at.into_iter().map(|at| reads[at]).collect();
        all.extend(of_sentences(state, index, calls, &seen));
    }
    for judged in &mut all {
        let said = words(&judged.sentence);
        let subjects = lexicon::subjects(&said);
        if uneven.is_some()
            && judged.verdict == Verdict::Fine
            && lexicon::attributes(&said).contains(&"prefixes")
        {
            (judged.verdict, judged.reason) = (Verdict::NotJudged, uneven.clone());
        }
        if let Some((_, why)) = lost.iter().find(|(subject, _)| subjects.contains(subject))
            && matches!(judged.verdict, Verdict::Fine | Verdict::NotJudged)
        {
            (judged.verdict, judged.reason) = (Verdict::NotFine, Some(why.clone()));
        }
    }
    let mut question = of_question(state, &reads, &all);
    let asked = lexicon::subjects(&words(&state.user_query));
    let about = |subject: &str| asked.is_empty() || asked.contains(&subject);
    if let Some((_, why)) = lost.iter().find(|(subject, _)| about(subject))
        && question.verdict != Verdict::NotAnswered
    {
        (question.verdict, question.reason) = (Verdict::NotFine, Some(why.clone()));
    }
    // Sessions that are all established have a path below them, whichever protocol finds it.
    if question.verdict == Verdict::Fine && asked == ["bgp"] {
        let is_below = |judged: &&mut Judgement| interpret::subjects(&judged.sentence) == ["isis"];
        let is_silent = |judged: &Judgement| {
            judged.reason.as_deref().is_some_and(|why| why.ends_with("show nothing about isis"))
        };
        for judged in all.iter_mut().filter(is_below).filter(|judged| is_silent(judged)) {
            judged.verdict = Verdict::NotNeeded;
        }
    }
    if question.verdict == Verdict::Fine
        && specific::reports_a_fault(&words_of(&state.user_query))
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

fn of_question(state: &State, reads: &[&Read], sentences: &[Judgement]) -> Judgement {
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
    // That one part is in order says nothing about the whole that was asked about.
    let is_open = |judged: &&Judgement| judged.verdict == Verdict::NotAnswered;
    let open = sentences.iter().filter(is_open).count();
    if is_general && verdict == Verdict::Fine && open > 0 {
        let all = sentences.len();
        let reason = format!("{open} of {all} sentences of the plan were not answered");
        return judge(Verdict::NotJudged, Some(reason));
    }
    judge(verdict, reason)
}

/// The calls of a step's last attempt.
fn last_calls(state: &State, index: usize) -> &[ExecutedToolCall] {
    let last = state.execution_results.iter().rev().find(|result| result.step_index == index);
    last.map_or(&[][..], |result| &result.executed_calls)
}

/// Reads the answer of a call, unless the same was read before.
fn position<'a>(
    reads: &mut Vec<(&'a ExecutedToolCall, Read)>,
    call: &'a ExecutedToolCall,
) -> Option<usize> {
    let answer = call.result.as_ref()?;
    if let Some(known) = reads.iter().position(|(known, _)| *known == call) {
        return Some(known);
    }
    reads.push((call, read(&call.function, &call.params, answer)));
    Some(reads.len() - 1)
}

/// The sentences of a step that ask for something, judged by its answers.
fn of_sentences(
    state: &State,
    index: usize,
    calls: &[ExecutedToolCall],
    reads: &[&Read],
) -> Vec<Judgement> {
    let step = &state.working_plan_steps[index];
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
            (_, Some((function, error))) => match sentence_by(state, sentence, reads, false) {
                (Verdict::Fine, _) => {
                    (Verdict::NotJudged, Some(format!("{function} failed: {error}")))
                }
                other => other,
            },
            _ => sentence_by(state, sentence, reads, false),
        };
        Judgement { step_index: Some(index), sentence: sentence.to_owned(), verdict, reason }
    });
    judged.collect()
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

/// What the answers say about a sentence, for each device that the question is about. Answers about other devices
/// prove nothing.
fn sentence_by(
    state: &State,
    sentence: &str,
    reads: &[&Read],
    is_general: bool,
) -> (Verdict, Option<String>) {
    let devices = &state.work.devices;
    let rank = |verdict: Verdict| match verdict {
        Verdict::NotNeeded => 0,
        Verdict::Fine => 1,
        Verdict::NotAnswered => 2,
        Verdict::NotJudged => 3,
        Verdict::NotFine => 4,
    };
    let of_device = |device: &String| {
        let is_this =
            |read: &&&Read| read.device.is_empty() || read.device.eq_ignore_ascii_case(device);
        let own: Vec<&Read> = reads.iter().filter(is_this).copied().collect();
        if own.is_empty() {
            return (Verdict::NotJudged, Some(format!("{device} was not asked")));
        }
        let (verdict, reason) = judge_device(state, sentence, &own, is_general);
        let label = |reason: String| match devices.len() {
            1 => reason,
            _ => format!("{device}: {reason}"),
        };
        (verdict, reason.map(label))
    };
    devices
        .iter()
        .map(of_device)
        .max_by_key(|(verdict, _)| rank(*verdict))
        .unwrap_or((Verdict::NotAnswered, Some("no device is known".to_owned())))
}

/// The subjects of a sentence, and what it asks about them.
fn asked_of(said: &[String]) -> (Vec<&'static str>, Vec<&'static str>) {
    let (subjects, mut attributes) = (lexicon::subjects(said), lexicon::attributes(said));
    // What to search a log for is not asked of the log.
    if subjects.contains(&"log") {
        return (vec!["log"], Vec::new());
    }
    // What a rule of an access list drops is no error.
    if subjects == ["acl"] {
        attributes.retain(|attribute| *attribute != "errors");
    }
    (subjects, attributes)
}

fn judge_device(
    state: &State,
    sentence: &str,
    reads: &[&Read],
    is_general: bool,
) -> (Verdict, Option<String>) {
    let not_judged = |reason: String| (Verdict::NotJudged, Some(reason));
    let said = words(sentence);
    let (mut subjects, mut attributes) = asked_of(&said);
    let fine: Vec<&Fine> = reads.iter().flat_map(|read| &read.fine).collect();
    if let Some(why) =
        specific::above(sentence, &fine).or_else(|| specific::restarted(sentence, &fine))
    {
        return (Verdict::NotFine, Some(why));
    }
    let names = asks::names(sentence, &said, &state.device_name);
    match specific::root(sentence, &names, &state.device_name, reads) {
        Some(Err(why)) => return (Verdict::NotFine, Some(why)),
        // The VLAN of a spanning tree says which one.
        Some(Ok(())) => {
            subjects.retain(|subject| *subject != "vlan");
            attributes.retain(|attribute| *attribute != "root");
        }
        None => {}
    }
    let concerns = |about: &[&'static str]| {
        subjects.is_empty()
            || about.is_empty()
            || about.iter().any(|subject| subjects.contains(subject))
    };
    let off = specific::switched_off(reads, concerns);
    // A question about one interface is not answered by another one.
    let asked = state.work.interface.as_deref().filter(|_| sentence == state.user_query);
    let is_asked = |text: &str| asked.is_none_or(|interface| mentions(text, interface));
    let mut wrong = reads.iter().flat_map(|read| &read.wrong);
    if wrong.any(|wrong| concerns(&wrong.subjects) && is_asked(&wrong.text)) {
        return (Verdict::NotFine, off);
    }
    let is_question = sentence == state.user_query;
    if let Some(why) = off.filter(|_| is_question && specific::asks_all_up(sentence)) {
        return (Verdict::NotFine, Some(why));
    }
    let is_counted = |fine: &&&Fine| fine.attribute == "state" && concerns(&fine.subjects);
    // A part whose state cannot be read may be in order.
    let is_read = reads.iter().all(|read| read.unknown.is_empty());
    if let Some(why) = too_few(
        sentence,
        &subjects,
        &attributes,
        &fine.iter().filter(is_counted).collect::<Vec<_>>(),
        &fine,
    )
    .filter(|_| is_read)
    {
        return (Verdict::NotFine, Some(why));
    }
    if subjects != ["log"] && asks::wants_off(sentence) {
        return not_judged("no rule knows what should be off".to_owned());
    }
    let unknown: Vec<&str> =
        reads.iter().flat_map(|read| &read.unknown).map(String::as_str).take(UNKNOWN_MAX).collect();
    if !unknown.is_empty() {
        return not_judged(format!("no rule knows what this means: {}", unknown.join("; ")));
    }
    let shown: Vec<(&Fine, &[String])> = reads
        .iter()
        .flat_map(|read| read.fine.iter().map(|fine| (fine, read.tokens[fine.object].as_slice())))
        .collect();
    let ask = Ask {
        head: interpret::subjects(sentence),
        subjects,
        attributes,
        is_optional: is_optional(sentence),
        is_general,
    };
    if names.is_empty() {
        return judged(&ask, &shown, reads);
    }
    by_name(&ask, &names, &shown, reads)
}

/// Whether a finding is about what the question asks: its subjects, or a name in it.
pub(super) fn is_relevant(state: &State, finding: &Finding) -> bool {
    let asked = words(&state.user_query);
    let subjects = lexicon::subjects(&asked);
    if subjects.is_empty() {
        return true;
    }
    if let Some(interface) = &state.work.interface {
        return mentions(&finding.finding, interface);
    }
    finding.subjects.is_empty() || finding.subjects.iter().any(|s| subjects.contains(&s.as_str()))
}

fn mentions(text: &str, interface: &str) -> bool {
    let is_this = |word: &str| normal_interface(word) == normal_interface(interface);
    text.split(|c: char| c.is_whitespace() || c == ',' || c == ':').any(is_this)
}

pub(super) fn shown(judged: &[Judgement]) -> Value {
    serde_json::to_value(judged).unwrap_or_default()
}
