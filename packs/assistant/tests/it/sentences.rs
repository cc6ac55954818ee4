//! Sentences as the trade writes them: what is run, or which part is asked about.
//!
//! Forms come from prescription abbreviations (bid, tid, q8h, po), the ISMP list of error-prone
//! abbreviations (od, qod, µg, naked and trailing decimals), dosing sections of package inserts
//! ("infused over 90 minutes", "mg/kg/day divided every 8 hours") and the talk of pharmacometricians
//! (CL, V, ka, F).

use graph::question::Decision;

use crate::laboratory::{hear, hear_with};

/// Lines of a conversation, separated by ` || `, and the last regimen that is run.
const RUN: &[(&str, &str)] = &[
    (
        "simulate 250 mg of theophylline every 8 h for 3 days",
        "theophylline-oral 250 mg x9 q8h for 72h",
    ),
    ("Theophylline 300 mg PO BID x 5 days", "theophylline-oral 300 mg x10 q12h for 120h"),
    ("theophylline 200 mg p.o. t.i.d. for 48 h", "theophylline-oral 200 mg x6 q8h for 48h"),
    ("theophylline 150 mg qid for 2 days", "theophylline-oral 150 mg x8 q6h for 48h"),
    (
        "theophylline 200 mg orally three times a day for 3 days",
        "theophylline-oral 200 mg x9 q8h for 72h",
    ),
    ("theophylline 200 mg 3 times daily for 3 days", "theophylline-oral 200 mg x9 q8h for 72h"),
    ("theophylline 200 mg 2x/day for 3 days", "theophylline-oral 200 mg x6 q12h for 72h"),
    ("theophylline 400 mg od for 5 days", "theophylline-oral 400 mg x5 q24h for 120h"),
    ("theophylline 400 mg qod for 8 days", "theophylline-oral 400 mg x4 q48h for 192h"),
    ("vancomycin 1 g every other day for 2 weeks", "vancomycin-infusion 1000 mg x7 q48h for 336h"),
    (
        "vancomycin 1 g IV q12h over 90 minutes for 6 doses",
        "vancomycin-infusion 1000 mg x6 q12h for 72h Dosing|InfusionDuration=1.5",
    ),
    (
        "vancomycin 1 g infused over 2 hours every 12 hours for 3 days",
        "vancomycin-infusion 1000 mg x6 q12h for 72h Dosing|InfusionDuration=2",
    ),
    (
        "vancomycin 15 mg/kg q12h for 3 days in a 80 kg patient",
        "vancomycin-infusion 1200 mg x6 q12h for 72h",
    ),
    ("vancomycin 15 mg/kg q12h x 6 || 70 kg", "vancomycin-infusion 1050 mg x6 q12h for 72h"),
    (
        "Give 1,200 mg vancomycin every 12 hours, 6 doses",
        "vancomycin-infusion 1200 mg x6 q12h for 72h",
    ),
    (
        "gentamicin 0.12 g IV bolus three times a day for a week",
        "gentamicin-bolus 120 mg x21 q8h for 168h",
    ),
    (
        "gentamicin 5 mg/kg once daily for 3 days, 70 kg adult",
        "gentamicin-bolus 350 mg x3 q24h for 72h",
    ),
    ("gentamicin 100 mg, 8 hourly, for 48 h", "gentamicin-bolus 100 mg x6 q8h for 48h"),
    (
        "theophylline two 200 mg tablets twice daily for 4 days",
        "theophylline-oral 400 mg x8 q12h for 96h",
    ),
    ("theophylline 200 mg at 8 and 20 for 3 days", "theophylline-oral 200 mg x6 q12h for 72h"),
    ("theophylline ½ g once", "theophylline-oral 500 mg x1 q8h for 24h"),
    ("theophylline 250000 µg once", "theophylline-oral 250 mg x1 q8h for 24h"),
    ("theophylline 1.2e2 mg q6h x 4", "theophylline-oral 120 mg x4 q6h for 24h"),
    (
        "theophylline one hundred and fifty mg every six hours for two days",
        "theophylline-oral 150 mg x8 q6h for 48h",
    ),
    (
        "vancomycin 1 g q12h for 3 days with a clearance of 3 L/h and V 20 L",
        "vancomycin-infusion 1000 mg x6 q12h for 72h Drug|CentralVolume=20 Drug|Clearance=3",
    ),
    (
        "load theophylline, set the dose to 200 mg and run it",
        "theophylline-oral 200 mg x1 q8h for 24h",
    ),
    (
        "vancomycin 1 g once every 12 hours for 2 days",
        "vancomycin-infusion 1000 mg x4 q12h for 48h",
    ),
    (
        "vancomycin 45 mg/kg/day divided q8h for 2 days, 80 kg",
        "vancomycin-infusion 1200 mg x6 q8h for 48h",
    ),
    (
        "simulate 750 mg vancomycin as a 1-h infusion q8h, six doses",
        "vancomycin-infusion 750 mg x6 q8h for 48h",
    ),
    ("vancomycin 1 g/12h for 72 h", "vancomycin-infusion 1000 mg x6 q12h for 72h"),
    ("vancomycin 1.5 g daily", "vancomycin-infusion 1500 mg x3 q24h for 72h"),
    ("simulate theophylline", "theophylline-oral 320 mg x1 q8h for 24h"),
    ("simulate 250 of theophylline || mg", "theophylline-oral 250 mg x1 q8h for 24h"),
    ("simulate 100 mg || aspirin || theophylline", "theophylline-oral 100 mg x1 q8h for 24h"),
    ("theophylline 250 mg for 3 days || every 8 h", "theophylline-oral 250 mg x9 q8h for 72h"),
    ("theophylline 5000 mg once || 500 mg", "theophylline-oral 500 mg x1 q8h for 24h"),
    (
        "theophylline 250 mg q8h for 2 days || decrease by 50 || mg || run",
        "theophylline-oral 200 mg x6 q8h for 48h",
    ),
    (
        "theophylline 250 mg q8h for 2 days || double the dose and then run it",
        "theophylline-oral 500 mg x6 q8h for 48h",
    ),
    (
        "theophylline 250 mg q8h for 2 days || increase 20 % and run",
        "theophylline-oral 300 mg x6 q8h for 48h",
    ),
    (
        "theophylline 250 mg q8h for 2 days || 300 mg instead of 250 mg and run",
        "theophylline-oral 300 mg x6 q8h for 48h",
    ),
    (
        "theophylline 250 mg q8h for 2 days || set clearance to 2 L/h, reduce the dose by 50 mg and then run it",
        "theophylline-oral 200 mg x6 q8h for 48h Drug|Clearance=2",
    ),
    ("vancomycin 1000mg bid 6 days", "vancomycin-infusion 1000 mg x12 q12h for 144h"),
    ("250 mg q8h theophylline, 2 weeks", "theophylline-oral 250 mg x42 q8h for 336h"),
    (
        "theophylline 300 mg BID (8am and 8pm) for 3 days",
        "theophylline-oral 300 mg x6 q12h for 72h",
    ),
    (
        "vancomycin 1g q12h for 3 days || change the interval to 8 h and the dose to 750 mg, then run",
        "vancomycin-infusion 750 mg x9 q8h for 72h",
    ),
    (
        "vancomycin 1g q12h for 3 days || make it 1.5 g q24h and run",
        "vancomycin-infusion 1500 mg x3 q24h for 72h",
    ),
    (
        "vancomycin 1g q12h for 3 days || halve the clearance and run it",
        "vancomycin-infusion 1000 mg x6 q12h for 72h Drug|Clearance=2.85",
    ),
    (
        "Vancomycin 1.25g IV q8h × 3 days, infuse over 90 min",
        "vancomycin-infusion 1250 mg x9 q8h for 72h Dosing|InfusionDuration=1.5",
    ),
    (
        "start gentamicin 7 mg/kg q24h for 3 doses, weight 65 kg",
        "gentamicin-bolus 455 mg x3 q24h for 72h",
    ),
    (
        "what would the trough be with vancomycin 750 mg q8h for 3 days",
        "vancomycin-infusion 750 mg x9 q8h for 72h",
    ),
    (
        "Please simulate oral theophylline, 200 mg, four times daily, for one week",
        "theophylline-oral 200 mg x28 q6h for 168h",
    ),
    (
        "theophylline 250 mg at 08:00, 16:00 and 00:00 for 2 days",
        "theophylline-oral 250 mg x6 q8h for 48h",
    ),
    (
        "gentamicin 240 mg once every 24 hours, 4 doses, bolus",
        "gentamicin-bolus 240 mg x4 q24h for 96h",
    ),
    (
        "vancomycin 500 mg q6h for 4 days, 2 h infusion",
        "vancomycin-infusion 500 mg x16 q6h for 96h Dosing|InfusionDuration=2",
    ),
    (
        "gentamicin 1.5 mg/kg/dose q8h for 2 days in a 70-kg adult",
        "gentamicin-bolus 105 mg x6 q8h for 48h",
    ),
    (
        "vancomycin 1 g q12h for 72 hours with CL 60 mL/min",
        "vancomycin-infusion 1000 mg x6 q12h for 72h Drug|Clearance=3.6",
    ),
    (
        "theophylline 300 mg q12h x 10 doses with ka 0.3 /h and F 0.9",
        "theophylline-oral 300 mg x10 q12h for 120h Drug|AbsorptionRate=0.3 Drug|Bioavailability=0.9",
    ),
    (
        "theophylline single 250 mg dose, simulate for 48 h",
        "theophylline-oral 250 mg x1 q8h for 48h",
    ),
    (
        "theophylline 250 mg every 8 h for 3 days with lag time 30 min",
        "theophylline-oral 250 mg x9 q8h for 72h Drug|LagTime=0.5",
    ),
    ("theophylline 250 mg weekly x 3", "theophylline-oral 250 mg x3 q168h for 504h"),
    (
        "10 mg/kg vancomycin q12h for 5 days (weight: 90 kg)",
        "vancomycin-infusion 900 mg x10 q12h for 120h",
    ),
    (
        "vancomycin: dose 1000 mg, interval 12 h, 6 doses, infusion time 1.5 h",
        "vancomycin-infusion 1000 mg x6 q12h for 72h Dosing|InfusionDuration=1.5",
    ),
    (
        "gentamicin 3 mg/kg/day in three divided doses for 2 days, 70 kg",
        "gentamicin-bolus 70 mg x6 q8h for 48h",
    ),
];

/// Sentences that other people wrote who had not seen the rules.
const FRESH: &[(&str, &str)] = &[
    (
        "theophylline 2 tablets q12h 3 days || 200 mg each",
        "theophylline-oral 400 mg x6 q12h for 72h",
    ),
    (
        "theophylline 2 tablets q12h 3 days || a tablet has 200 mg",
        "theophylline-oral 400 mg x6 q12h for 72h",
    ),
    (
        "theophylline 200 mg tablets q12h for 3 days || 2",
        "theophylline-oral 400 mg x6 q12h for 72h",
    ),
    (
        "vancomycin 1 g every 12 hours for 3 days and 1 hour infusion",
        "vancomycin-infusion 1000 mg x6 q12h for 72h",
    ),
    (
        "vancomycin 15-20 mg/kg q12h for 3 days, 80 kg || 15",
        "vancomycin-infusion 1200 mg x6 q12h for 72h",
    ),
    ("gentamicin 5 mg/kg/day q12h for 2 days, 70 kg", "gentamicin-bolus 175 mg x4 q12h for 48h"),
    ("vancomycin 1 g every third day for 9 days", "vancomycin-infusion 1000 mg x3 q72h for 216h"),
    ("Vanc 1 g IV q12h over 60 min for 3 days", "vancomycin-infusion 1000 mg x6 q12h for 72h"),
    ("gent 80 mg TDS x 9 doses", "gentamicin-bolus 80 mg x9 q8h for 72h"),
    ("vancomycin 1 g, 2 infusions daily for 3 days", "vancomycin-infusion 1000 mg x6 q12h for 72h"),
    (
        "theophylline 400 mg q12h for 2 days || reduce by a quarter and run",
        "theophylline-oral 300 mg x4 q12h for 48h",
    ),
    (
        "vancomycin 1 g q12h, 4 doses, simulate for 4 days",
        "vancomycin-infusion 1000 mg x4 q12h for 96h",
    ),
];

/// Sentences that are not run, and the part that the question quotes.
const ASKED: &[(&str, &str)] = &[
    ("theophylline 100-200 mg tid for 3 days", "`100-200 mg`"),
    ("theophylline 100 to 200 mg tid for 3 days", "`100 to 200 mg`"),
    ("vancomycin 1 g q6-8h for 2 days", "`q6-8h`"),
    ("vancomycin 1 g then 500 mg q12h", "`500 mg`"),
    ("vancomycin 2 g loading dose then 1 g q12h", "`2 g loading dose`"),
    ("theophylline 200 mg at 8, 12 and 20 for 3 days", "`at 8, 12 and 20`"),
    ("theophylline 200 mg q8h until day 3", "`until day 3`"),
    ("don't give theophylline 250 mg", "`don't"),
    ("either 250 or 300 mg of theophylline tid for 2 days", "`250 or 300 mg`"),
    ("if renal function is poor, vancomycin 500 mg q24h", "`if renal"),
    ("vancomycin 500 mg q24h in renal failure", "`renal failure`"),
    ("simulate vancomycin 1 g", "`1 g`"),
    ("simula 250 mg de teofilina cada 8 horas", "`de teofilina cada`"),
    ("gentamicin 3 times weekly 100 mg", "`3 times weekly`"),
    ("theophylline 0,5 g once", "`0,5 g`"),
    ("theophylline 2 tablets bid for 3 days", "`2 tablets`"),
    ("theophylline 10 mL q8h for 2 days", "`10 mL`"),
    ("vancomycin 1000 IU q12h for 2 days", "`1000 IU`"),
    ("vancomycin 15 mg/kg q12h for 3 days", "`15 mg/kg`"),
    ("vancomycin 50 mg/h for 24 h", "`50 mg/h`"),
    ("theophylline 500 mg a day for 3 days", "`500 mg a day`"),
    ("theophylline 250 mg q8h for 1 hour", "`for 1 hour`"),
    ("theophylline 400 mg daily", "how long"),
    ("theophylline 250 mg single dose q8h", "`single dose`"),
    ("theophylline 250 mg q8h x 6 for 1 day", "`x 6`"),
    ("theophylline about 250 mg once", "`about"),
    ("theophylline 250 mg sc once", "`sc once`"),
    ("theophylline and vancomycin 1 g q12h", "`vancomycin`"),
    ("vancomycin 1 g q12h for 3 days prn", "`prn`"),
    ("theophylline 250 mg for a 60 kg patient once", "`60 kg`"),
    ("theophylline 1 200 mg once", "`1`"),
    ("theophylline 250 mg once with ketchup", "`ketchup`"),
    ("theophylline 250 mg every morning and 250 mg every evening for 5 days", "`every evening`"),
    ("theophylline 250 mg every morning and every evening for 5 days", "`every evening`"),
    ("vancomycin 1.000 mg once", "`1.000 mg`"),
    ("double dose of theophylline once", "`double dose`"),
    ("theophylline 250 mg tid, skip the second dose", "`skip"),
    ("vancomycin 1 g q12h, hold after 3 doses", "`hold after`"),
    ("gentamicin 80 mg IV TDS for 5/7", "`for 5/7`"),
    ("vancomycin 1 g q12h x 3 days, then stop", "`stop`"),
    ("theophylline 5 mg/kg loading then 0.5 mg/kg/h", "`0.5 mg/kg/h`"),
    ("vancomycin 1 g every 12 hours for 3 days, no infusion", "`no infusion`"),
    ("theophylline 200mg 2-0-2 for 3 days", "`2-0`"),
    ("theophylline 200 mg q8h for 3 days; compare with 300 mg q12h", "`q12h`"),
    ("gentamicin 5mg/kg in a patient weighing 154 lb, once", "`lb`"),
    ("theophylline 250 mg x 3 daily for 2 days", "`x 3 daily`"),
    ("vancomycin 1 g x 2 daily for 3 days", "`x 2 daily`"),
    ("vancomycin 1 g x 2 weekly for 2 weeks", "`x 2 weekly`"),
    ("vancomycin 1 g 2x weekly for 2 weeks", "`2x weekly`"),
    ("vancomycin 1 g, 3 IV doses daily for 3 days", "`3 IV doses daily`"),
    ("vancomycin 1 g \u{d7}2 per day for 3 days", "2 per day"),
    ("vancomycin 1 g, 2 doses, daily, for 3 days", "48 h of doses, and 72 h"),
    ("gentamicin 240 mg daily x 2 for a week", "48 h of doses, and 168 h"),
    ("vancomycin 1 g four times a day x 2", "`x 2`"),
    ("vancomycin 1 g q12h with CL 0.06 L/h/kg for 3 days, 75 kg", "for the whole person"),
    ("what dose of vancomycin gives a trough of 15", "cannot search"),
    ("simulate tobramycin 120 mg q8h for 1 day", "no model of this drug"),
    ("theophylline 250 mg q8h for 3 days, half-life 6 h", "`half-life 6 h`"),
    ("theophylline 250 mg on days 1, 3 and 5", "`days`"),
    ("theophylline 100 mg and 200 mg alternating q8h", "`alternating`"),
    ("vancomycin 1 gram IV every 12 hours starting in 6 hours for 3 days", "`starting in`"),
];

fn lines(text: &str) -> Vec<&str> {
    text.split(" || ").collect()
}

#[test]
fn sentences_of_the_trade_are_run_as_they_say() {
    let wrong = RUN.iter().chain(FRESH).filter_map(|(text, expected)| {
        let heard = hear(&lines(text));
        let is_right = heard.ran.last().map(String::as_str) == Some(*expected);
        (!is_right || heard.ending != "done")
            .then(|| format!("{text}: {:?} {}", heard.ran, heard.reply))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_part_with_no_or_two_meanings_is_quoted_and_not_run() {
    let wrong = ASKED.iter().filter_map(|(text, quoted)| {
        let heard = hear(&lines(text));
        let is_idle = heard.ran.is_empty() && heard.set.is_empty() && heard.ending == "open";
        let is_right = is_idle && heard.reply.contains(quoted);
        (!is_right).then(|| format!("{text}: {:?} {}", heard.ran, heard.reply))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Each word of a sentence is followed by an unknown one in turn.
#[test]
fn a_sentence_with_an_unknown_word_is_never_run() {
    let text = "simulate 250 mg of theophylline every 8 h for 3 days";
    let words: Vec<&str> = text.split(' ').collect();
    for (at, unknown) in (0..=words.len()).zip(["zorp", "nicht", "\u{1f48a}", "薬"].iter().cycle())
    {
        let mut changed = words.clone();
        changed.insert(at, unknown);
        let text = changed.join(" ");
        let heard = hear(&[&text]);
        assert!(heard.ran.is_empty() && heard.confirmations.is_empty(), "{text}");
        assert!(heard.reply.contains('`'), "{text}: {}", heard.reply);
    }
}

#[test]
fn a_number_that_is_left_out_changes_the_run_or_asks() {
    let text = "simulate 250 mg of theophylline every 8 h for 3 days";
    let whole = hear(&[text]).ran;
    for number in ["250 ", "8 ", "3 "] {
        let heard = hear(&[&text.replacen(number, "", 1)]);
        assert_ne!(heard.ran, whole, "without {number}");
    }
}

#[test]
fn the_whole_regimen_is_shown_before_load_and_run() {
    let heard = hear(&["vancomycin 15 mg/kg q12h x 8, 80 kg"]);
    let shown = "Regimen: vancomycin-infusion (iv_infusion): 1200 mg × 8, every 12 h, each infused \
                 over 1 h, simulated for 96 h";
    for tool in ["load_simulation", "run_simulation"] {
        let named = |text: &&String| text.starts_with(&format!("Tool: {tool}"));
        let text = heard.confirmations.iter().find(named).unwrap();
        assert!(text.contains(shown) && text.contains("15 mg/kg × 80 kg"), "{text}");
        assert!(text.contains("Dosing|Doses 8 count (default 6)"), "{text}");
        assert!(text.contains("Warning: only the dose is for 80 kg"), "{text}");
    }
}

#[test]
fn doses_that_do_not_fit_are_warned_about() {
    let heard =
        hear(&["theophylline 250 mg q8h for 1 day", "set the number of doses to 9 and run"]);
    let last = heard.confirmations.last().unwrap();
    assert!(last.contains("Warning: 9 doses every 8 h do not fit into 24 h; 3 do"), "{last}");
}

#[test]
fn words_at_the_gate_change_the_plan_and_keep_the_rest() {
    let mut first = true;
    let said = ["theophylline 250 mg q8h for 2 days", "make it 300"];
    let heard = hear_with(&said, |_| {
        if std::mem::take(&mut first) { Decision::Say } else { Decision::Approve }
    });
    assert_eq!(heard.ran, ["theophylline-oral 300 mg x6 q8h for 48h"], "{}", heard.reply);
}

/// What people write there instead of an approval, with the regimen that is run.
#[test]
fn corrections_at_the_gate_are_taken_as_they_are_written() {
    for (words, expected) in [
        ("no, make it 1.25 g q8h", "vancomycin-infusion 1250 mg x9 q8h for 72h"),
        ("yes but with 6 doses", "vancomycin-infusion 1000 mg x6 q12h for 72h"),
        ("drop the dose to 750", "vancomycin-infusion 750 mg x6 q12h for 72h"),
        ("lower the dose from 1 g to 750 mg", "vancomycin-infusion 750 mg x6 q12h for 72h"),
        (
            "same but over 2 hours",
            "vancomycin-infusion 1000 mg x6 q12h for 72h Dosing|InfusionDuration=2",
        ),
        (
            "no, I meant theophylline 200 mg q8h for 1 day",
            "theophylline-oral 200 mg x3 q8h for 24h",
        ),
    ] {
        let mut first = true;
        let heard = hear_with(&["vancomycin 1 g q12h for 3 days", words], |_| {
            if std::mem::take(&mut first) { Decision::Say } else { Decision::Approve }
        });
        assert_eq!(heard.ran, [expected], "{words}: {}", heard.reply);
    }
}

#[test]
fn another_weight_at_the_gate_computes_the_dose_again() {
    let mut first = true;
    let said = ["gentamicin 5 mg/kg q24h 3 doses", "80 kg", "for 90 kg"];
    let heard = hear_with(&said, |_| {
        if std::mem::take(&mut first) { Decision::Say } else { Decision::Approve }
    });
    assert_eq!(heard.ran, ["gentamicin-bolus 450 mg x3 q24h for 72h"], "{}", heard.reply);
    let last = heard.confirmations.last().unwrap();
    assert!(last.contains("5 mg/kg × 90 kg") && !last.contains("80 kg"), "{last}");
}

/// Words at the first confirmations, one after the other, and the regimen that is run.
#[test]
fn what_was_computed_is_computed_again_when_its_inputs_change() {
    for (said, words, expected) in [
        (
            "vancomycin 2 g/day divided every 12 h for 3 days",
            &["divided every 8 h"][..],
            "666.6666667 mg x9 q8h",
        ),
        (
            "vancomycin 15 mg/kg q12h for 3 days, 80 kg",
            &["double the dose", "for 100 kg"],
            "3000 mg x6 q12h",
        ),
        ("vancomycin 15 mg/kg q12h for 3 days, 80 kg", &["weight 90 kg"], "1350 mg x6 q12h"),
        ("vancomycin 15 mg/kg q12h for 3 days, 80 kg", &["1 g"], "1000 mg x6 q12h"),
        ("vancomycin 1 g q12h for 3 days", &["dose 750"], "750 mg x6 q12h"),
    ] {
        let lines: Vec<&str> = [said].iter().chain(words).copied().collect();
        let mut left = words.len();
        let heard = hear_with(&lines, |_| {
            if left > 0 {
                left -= 1;
                return Decision::Say;
            }
            Decision::Approve
        });
        let ran = heard.ran.last().map(String::as_str).unwrap_or_default();
        assert!(ran.contains(expected), "{said} || {words:?}: {ran} {}", heard.reply);
    }
    let heard = hear(&["gentamicin 5 mg/kg q24h 3 doses, 80 kg", "run it for 70 kg"]);
    assert_eq!(heard.ran.len(), 1, "{:?}", heard.ran);
    assert!(heard.reply.contains("`70 kg`"), "{}", heard.reply);
}

#[test]
fn a_question_of_before_is_not_complained_about_again() {
    let heard =
        hear(&["theophylline 250 mg q8h for 2 days", "level at the fourth gizmo", "AUC0-24"]);
    assert!(!heard.reply.contains("gizmo"), "{}", heard.reply);
    let heard =
        hear(&["theophylline 250 mg q8h for 2 days", "level at the fourth gizmo", "trough"]);
    assert!(heard.reply.contains("trough") && !heard.reply.contains("gizmo"), "{}", heard.reply);
}

#[test]
fn a_number_far_from_the_dose_is_asked_about() {
    let mut first = true;
    let heard = hear_with(&["theophylline 250 mg q8h for 2 days", "make it 6"], |_| {
        if std::mem::take(&mut first) { Decision::Say } else { Decision::Approve }
    });
    assert!(heard.ran.is_empty() && heard.reply.contains("6 doses"), "{}", heard.reply);
}

#[test]
fn words_not_understood_at_the_gate_run_nothing() {
    let mut first = true;
    let said = ["theophylline 250 mg q8h for 2 days", "make it pink"];
    let heard = hear_with(&said, |_| {
        if std::mem::take(&mut first) { Decision::Say } else { Decision::Approve }
    });
    assert!(heard.ran.is_empty() && heard.reply.contains("`pink`"), "{}", heard.reply);
}

/// The order before a question may not have been carried out.
#[test]
fn an_answered_question_does_not_carry_out_an_earlier_order() {
    let run = "vancomycin 1.5 g q12h for 3 days";
    for (lines, expected) in [
        (&[run, "what is the Cmax?"][..], "done"),
        (&[run, "frobnicate the dose and run it", "what is the Cmax?"], "open"),
        (&[run, "frobnicate the dose and run it", "set the dose to 1000 mg and run it"], "done"),
        (&[run, "frobnicate the dose and run it"], "open"),
    ] {
        let heard = hear(lines);
        assert_eq!(heard.ending, expected, "{lines:?}: {}", heard.reply);
    }
}
