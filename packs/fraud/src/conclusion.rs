//! The conclusion of an investigation: score, confidence, severity, findings, and the result.

use graph::definition::Finish;
use serde_json::{Value, json};

use super::answer;
use super::state::{Action, Severity, State, Status};
use super::tool::Tool;

/// Error category of an investigation without any evidence.
pub const CATEGORY_NO_EVIDENCE: &str = "no_evidence";

/// Minimum scores, in thousandths, of critical, high and medium severity.
const SEVERITIES: [(u32, Severity); 3] =
    [(850, Severity::Critical), (500, Severity::High), (250, Severity::Medium)];

/// Minimum number of earlier payments for a well-known card.
const HISTORY_MIN: u32 = 15;

/// Minimum confidence, in thousandths, for a low score to mean no sign of fraud.
const SUPPORTED: u32 = 500;

/// Likelihood of fraud, in thousandths: the reasoning's, or without it the strength of the
/// strongest finding. `None` if nothing judged the payment, or if too little is known to release
/// it: such a number would rest on nothing.
pub fn score_permille(state: &State) -> Option<u32> {
    weighed_permille(state).filter(|_| is_assessed(state))
}

fn weighed_permille(state: &State) -> Option<u32> {
    if state.status == Status::Failed {
        return None;
    }
    state.likelihood_permille().or_else(|| strongest(state))
}

/// Whether something speaks for a fraud, or enough was looked at to say that nothing does.
fn is_assessed(state: &State) -> bool {
    if severity_so_far(state) != Some(Severity::Low) {
        return true;
    }
    let advised = recommendations(state);
    let is_release = |advice: &Value| advice["action"] == "release";
    let is_released = !advised.is_empty() && advised.iter().all(is_release);
    let is_completed = !matches!(state.status, Status::TimedOut | Status::Failed);
    is_completed && is_released && confidence_permille(state) >= SUPPORTED
}

fn strongest(state: &State) -> Option<u32> {
    let strengths = state.findings()?.into_iter().map(|finding| finding.strength_permille);
    Some(strengths.max().unwrap_or_default())
}

/// Confidence in the score, in thousandths: a share for each tool that answered, minus a penalty
/// for what was unavailable.
pub fn confidence_permille(state: &State) -> u32 {
    let has = |tool: Tool, part: u32| if state.answers.has(tool) { part } else { 0 };
    let mut confidence = has(Tool::Context, 200) + has(Tool::Reasoning, 200);
    if let Some(patterns) = answer::read::<answer::Patterns>(&state.answers.pattern) {
        let unseen = u32::try_from(patterns.not_checked.len()).unwrap_or(u32::MAX);
        confidence += 350_u32.saturating_sub(unseen.saturating_mul(50));
    }
    if let Some(similarity) = answer::read::<answer::Similarity>(&state.answers.similarity) {
        confidence += if similarity.near_fraud_permille.is_some() { 250 } else { 50 };
    }
    let context = answer::read::<answer::Context>(&state.answers.context);
    let is_thin = context.is_some_and(|context| context.card.transactions < HISTORY_MIN);
    if is_thin { confidence.saturating_sub(200) } else { confidence }
}

/// The severity of the result. `None` without a score.
pub fn severity(state: &State) -> Option<Severity> {
    score_permille(state)?;
    severity_so_far(state)
}

/// By the risk, which decides the recommendations, too. `None` if nothing judged the payment.
pub fn severity_so_far(state: &State) -> Option<Severity> {
    let risk = weighed_permille(state).map(|score| state.risk_permille().unwrap_or(score))?;
    let reached = SEVERITIES.iter().find(|(from, _)| risk >= *from);
    Some(reached.map_or(Severity::Low, |(_, severity)| *severity))
}

/// The session's end. Without evidence it fails with the first error, or is partial after a
/// timeout.
pub fn finish(state: &State) -> Finish {
    let result = result(state);
    if state.status != Status::Failed {
        return Finish::Completed(result);
    }
    let why = state.error.as_deref().unwrap_or("no tool returned evidence");
    match Finish::failed("InvestigationError", "NoEvidence", why, CATEGORY_NO_EVIDENCE) {
        Finish::Failed { error, category, .. } => Finish::Failed { error, category, result },
        completed @ Finish::Completed(_) => completed,
    }
}

/// Whether any tool gave evidence.
pub fn has_evidence(state: &State) -> bool {
    state.answers.has(Tool::Pattern) || state.answers.has(Tool::Similarity)
}

/// Whether the evidence and the recommendations are sufficient to end.
///
/// # Errors
/// What is missing.
pub fn sufficient(state: &State) -> Result<(), String> {
    let missing =
        [Tool::Pattern, Tool::Reasoning].into_iter().find(|tool| !state.answers.has(*tool));
    if let Some(tool) = missing {
        return Err(format!("the evidence is not sufficient: {} gave no answer", tool.name()));
    }
    if recommendations(state).is_empty() {
        return Err("there are no recommendations".to_owned());
    }
    Ok(())
}

/// The evidence and what it comes to, as the record before the recommendations has it.
pub fn insights(state: &State) -> Value {
    json!({
        "transaction_id": state.transaction_id,
        "evidence": evidence(state)
            .into_iter()
            .map(|piece| json!({"tool": piece["tool"], "pattern": piece["pattern"], "rows": piece["rows"]}))
            .collect::<Vec<_>>(),
        "not_checked": state.not_checked(),
        "likelihood_permille": state.likelihood_permille(),
        "risk_permille": state.risk_permille(),
        "calibration": state.reasoning().map(|reasoning| reasoning.calibration),
        "severity": severity_so_far(state),
        "confidence_permille": confidence_permille(state),
        "tools": tool_log(state),
    })
}

fn tool_log(state: &State) -> Vec<Value> {
    let tools = state.tool_executions.iter();
    tools.map(|done| json!([done.tool_name, done.status])).collect()
}

/// The result, with the fields of the fraud specification, section 2, in their order; then the
/// score and the findings.
pub fn result(state: &State) -> Value {
    let options = &state.options;
    json!({
        "investigation_id": options.investigation_id,
        "transaction_id": state.transaction_id,
        "context": or_empty(&state.answers.context),
        "pattern_results": or_empty(&state.answers.pattern),
        "similarity_results": or_empty(&state.answers.similarity),
        "hypotheses": hypotheses(state),
        "evidence": evidence(state),
        "reasoning": reasoning(state),
        "recommendations": recommendations(state),
        "rule_draft": rule_draft(state),
        "confidence_score": share(confidence_permille(state)),
        "severity": severity(state),
        "status": state.status,
        "completed_steps": state.completed_steps,
        "next_action": state.next_action.map_or("", Action::name),
        "step_count": state.step_count,
        "max_steps": options.max_steps,
        "started_at": state.started_at,
        "completed_at": state.completed_at,
        "feature_flags": {
            "planner_llm_enabled": state.has_model,
            "reasoning_llm_enabled": state.has_model && options.reasoning_llm,
            "vector_search_enabled": vector_search(state),
            "prompt_guard_enabled": options.prompt_guard,
        },
        "safeguards": {
            "max_steps": options.max_steps,
            "investigation_timeout_seconds": state.timeout_seconds,
            "tool_timeout_seconds": options.tool_timeout_seconds,
        },
        "planner_decisions": planner_decisions(state),
        "tool_executions": state.tool_executions,
        "error": state.error,
        "score": score_permille(state).map(share),
        "findings": findings(state),
        "calibration": calibration(state),
        "model_failed": state.model_failed,
    })
}

fn hypotheses(state: &State) -> Vec<String> {
    let shown = |h: answer::Hypothesis| format!("{}: {}", h.name, h.statement);
    let reasoning = state.reasoning();
    reasoning.map_or_else(Vec::new, |r| r.hypotheses.into_iter().map(shown).collect())
}

/// The reasoning tool's answer, and a model's words beside it.
fn reasoning(state: &State) -> Value {
    let mut reasoning = or_empty(&state.answers.reasoning);
    if let Some(explanation) = &state.explanation {
        reasoning["explanation"] = json!(explanation);
    }
    reasoning
}

/// What the score is: a probability by the labels known then, or a judgement.
fn calibration(state: &State) -> Value {
    let Some(reasoning) = state.reasoning() else { return Value::Null };
    let evidence = reasoning.evidence_permille.unwrap_or(reasoning.likelihood_permille);
    json!({
        "is_calibrated": reasoning.is_calibrated,
        "basis": reasoning.calibration,
        "evidence": share(evidence),
    })
}

/// Whether the past cases were compared by their texts, too.
fn vector_search(state: &State) -> bool {
    let method = state.answers.similarity.get("method").and_then(Value::as_str);
    method.is_some_and(|method| method.contains("text"))
}

/// The audit record.
pub fn audit(state: &State) -> Value {
    let fallbacks = state.planner_decisions.iter().filter(|decision| decision.used_fallback);
    json!({
        "investigation_id": state.options.investigation_id,
        "transaction_id": state.transaction_id,
        "status": state.status,
        "severity": severity(state),
        "score_permille": score_permille(state),
        "confidence_permille": confidence_permille(state),
        "tools": tool_log(state),
        "decisions": state.planner_decisions.len(),
        "decisions_by_fallback": fallbacks.count(),
        "error": state.error,
    })
}

/// The tools' evidence, each piece with the rows that show it.
pub fn evidence(state: &State) -> Vec<Value> {
    let findings = state.findings().unwrap_or_default();
    let mut evidence: Vec<Value> = findings
        .into_iter()
        .map(|finding| {
            json!({"tool": Tool::Pattern, "pattern": finding.pattern, "rows": finding.rows,
                "strength": share(finding.strength_permille)})
        })
        .collect();
    let near = answer::read::<answer::Similarity>(&state.answers.similarity)
        .and_then(|similarity| similarity.near_fraud_permille);
    if let (Some(near), Some(answer::PastCases { cases })) =
        (near, answer::read(&state.answers.similarity))
    {
        let rows: Vec<String> = cases.into_iter().map(|case| case.transaction_id).collect();
        evidence.push(json!({"tool": Tool::Similarity, "near_frauds": share(near), "rows": rows}));
    }
    evidence
}

pub fn recommendations(state: &State) -> Vec<Value> {
    answer::read::<answer::Recommendations>(&state.answers.recommendation)
        .map_or_else(Vec::new, |answer| answer.recommendations)
}

fn rule_draft(state: &State) -> Option<Value> {
    let drafts = answer::read::<answer::RuleDrafts>(&state.answers.rule_draft);
    drafts.and_then(|drafts| drafts.rule_draft)
}

fn findings(state: &State) -> Vec<Value> {
    let findings = state.findings().unwrap_or_default();
    let shown = |finding: answer::Finding| {
        json!({"pattern": finding.pattern, "explanation": finding.explanation,
            "rows": finding.rows, "strength": share(finding.strength_permille)})
    };
    findings.into_iter().map(shown).collect()
}

fn planner_decisions(state: &State) -> Vec<Value> {
    let decisions = state.planner_decisions.iter();
    decisions
        .map(|decision| {
            json!({
                "step": decision.step,
                "selected_tool": decision.selected.name(),
                "reason": decision.reason,
                "confidence": share(decision.confidence_permille),
                "timestamp": decision.timestamp,
                "used_fallback": decision.used_fallback,
                "rejected": decision.rejected,
            })
        })
        .collect()
}

fn or_empty(answer: &Value) -> Value {
    if answer.is_null() { json!({}) } else { answer.clone() }
}

/// Thousandths as a decimal number. Only results contain such numbers, the state never.
fn share(permille: u32) -> f64 {
    f64::from(permille) / 1_000.0
}
