//! What a run gives: the figures that a request names, a plot, and two runs side by side.

use graph::effect::ToolCall;
use serde_json::{Value, json};

use super::request::{Figure, Request};
use super::state::{AgentState, LoggedStep};
use super::tool;

/// Points of a plot's time series.
const PLOT_POINTS: usize = 61;

/// Rows of a plot.
const PLOT_ROWS: usize = 10;

/// The call that reads the figures of a request, if it names any.
pub(super) fn fetch(id: &str, request: &Request) -> Option<ToolCall> {
    if request.figures.is_empty() {
        return None;
    }
    let has_plot = request.figures.contains(&Figure::Plot);
    let points = if has_plot { PLOT_POINTS } else { 2 };
    let mut arguments = json!({ "simulation_id": id, "points_max": points });
    for figure in &request.figures {
        match figure {
            Figure::Above(level) => arguments["above"] = json!(level),
            Figure::At(times) => arguments["at_times"] = json!(times),
            _ => {}
        }
    }
    Some(ToolCall::built_in(tool::GET_RESULTS, arguments))
}

/// All figures of a run's summary.
pub(super) fn all(summary: &Value) -> String {
    let of = |name: &str| quantity(summary.get(name));
    let mut text = format!(
        "Cmax {} at {}, AUC {} over the simulated time, {} to infinity, half-life {}",
        of("cmax"),
        of("tmax"),
        of("auc_0_t"),
        of("auc_0_inf"),
        of("half_life")
    );
    for found in [trough(summary), steady(summary)].into_iter().flatten() {
        text = format!("{text}, {found}");
    }
    text
}

fn trough(summary: &Value) -> Option<String> {
    let trough = summary.get("trough")?;
    Some(format!("last trough {}", quantity(Some(trough))))
}

/// How near the last trough is to that of the steady state.
fn steady(summary: &Value) -> Option<String> {
    let share = summary.get("steady_state_share")?.as_f64()?;
    let percent = number(share * 100.0);
    Some(match share {
        share if share >= STEADY_SHARE => format!("at steady state ({percent} %)"),
        _ => format!("not at steady state ({percent} % of it)"),
    })
}

/// From this share of the trough at steady state on, a regimen counts as being there.
const STEADY_SHARE: f64 = 0.95;

/// The figures of a result that a request names.
pub(super) fn found(result: &Value, figures: &[Figure]) -> String {
    let summary = &result["summary"];
    let mut parts: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    let named: &[Figure] = if figures.is_empty() { &[Figure::All] } else { figures };
    for figure in named {
        let of = |name: &str| quantity(summary.get(name));
        match figure {
            Figure::Cmax => parts.push(format!("Cmax {} at {}", of("cmax"), of("tmax"))),
            Figure::Tmax => parts.push(format!("Tmax {}", of("tmax"))),
            Figure::Auc => parts.push(format!(
                "AUC {} over the simulated time, {} to infinity",
                of("auc_0_t"),
                of("auc_0_inf")
            )),
            Figure::HalfLife => parts.push(format!("half-life {}", of("half_life"))),
            Figure::Troughs => parts.push(troughs(result)),
            Figure::Steady => {
                let unknown = || "steady state: not known, the run has one dose".to_owned();
                parts.push(steady(summary).unwrap_or_else(unknown));
            }
            Figure::Above(level) => parts.push(above(result, *level)),
            Figure::At(times) => parts.push(at(result, times)),
            Figure::Plot => lines.extend(plot(result)),
            Figure::Compare | Figure::All => parts.push(all(summary)),
        }
    }
    let text = parts.join(", ");
    let text = if text.is_empty() { text } else { format!("{text}.") };
    match lines.is_empty() {
        true => text,
        false => format!("{text}\n{}", lines.join("\n")),
    }
}

fn troughs(result: &Value) -> String {
    let Some(troughs) = result.get("troughs").and_then(Value::as_array) else {
        return "troughs: the server does not report them".to_owned();
    };
    if troughs.is_empty() {
        return "troughs: none, the run has one dose".to_owned();
    }
    let shown = |point: &Value| {
        let (time, value) = (&point["time"], &point["concentration"]);
        format!("{} at {}", quantity(Some(value)), quantity(Some(time)))
    };
    let all: Vec<String> = troughs.iter().map(shown).collect();
    let steady = steady(&result["summary"]).map(|found| format!("; {found}"));
    format!("troughs {}{}", all.join(", "), steady.unwrap_or_default())
}

fn above(result: &Value, level: f64) -> String {
    let time = result.get("time_above").map(|time| quantity(Some(time)));
    match time {
        Some(time) => format!("{time} above {} mg/L", number(level)),
        None => format!("time above {} mg/L: the server does not report it", number(level)),
    }
}

fn at(result: &Value, times: &[f64]) -> String {
    let Some(points) = result.get("at").and_then(Value::as_array) else {
        return format!("concentration at {} h: the server does not report it", number(times[0]));
    };
    let shown = |point: &Value| {
        let (time, value) = (&point["time"], &point["concentration"]);
        format!("{} at {}", quantity(Some(value)), quantity(Some(time)))
    };
    points.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// The time series as rows of blocks, the highest concentration on top.
pub(super) fn plot(result: &Value) -> Vec<String> {
    let list = |name: &str| -> Vec<f64> {
        let values = result["series"].get(name).and_then(Value::as_array);
        values.into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let (times, concentrations) = (list("times"), list("concentrations"));
    let top = concentrations.iter().copied().fold(0.0, f64::max);
    if concentrations.len() < 3 || top <= 0.0 {
        return vec!["plot: the result has no concentrations to draw".to_owned()];
    }
    let rows = (0..PLOT_ROWS).rev().map(|row| {
        let column = |value: &f64| block(value / top * as_f64(PLOT_ROWS) - as_f64(row));
        let label =
            if row + 1 == PLOT_ROWS { format!("{} mg/L", number(top)) } else { String::new() };
        let columns: String = concentrations.iter().map(column).collect();
        format!("{label:>14} │{}", columns.trim_end())
    });
    let last = number(times.last().copied().unwrap_or_default());
    let width = concentrations.len();
    let axis = format!("{:>14} └{}", "0 mg/L", "─".repeat(width));
    let scale = format!("{:>14}  0 h{last:>width$} h", "", width = width.saturating_sub(5));
    rows.chain([axis, scale]).collect()
}

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(0.0, f64::from)
}

/// A block that fills this share of a row.
fn block(share: f64) -> char {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let eighths = (share * 8.0).round().clamp(0.0, 8.0) as usize;
    BLOCKS[eighths]
}

/// The last two runs of the thread, figure by figure.
pub(super) fn comparison(state: &AgentState) -> String {
    let ran = |step: &&LoggedStep| step.tool == tool::RUN && step.error.is_none();
    let mut runs: Vec<(usize, &LoggedStep)> =
        state.intermediate_steps.iter().enumerate().filter(|(_, step)| ran(step)).collect();
    let (Some((second_at, second)), Some((first_at, first))) = (runs.pop(), runs.pop()) else {
        return "I compare the last two runs of this conversation. Run two regimens first."
            .to_owned();
    };
    let name = |at: usize, step: &LoggedStep| {
        let id = step.arguments["simulation_id"].as_str().unwrap_or("?");
        let values = state.values_after(id, at);
        let of = |path: &str| {
            let found = values.as_ref().and_then(|values| values.get(path));
            found.map_or("?".to_owned(), |s| super::request::number(s.value))
        };
        let [dose, doses, interval] = ["Dosing|Dose", "Dosing|Doses", "Dosing|Interval"].map(of);
        format!("{id}: {dose} mg × {doses}, every {interval} h")
    };
    let mut lines =
        vec![format!("A: {}", name(first_at, first)), format!("B: {}", name(second_at, second))];
    for (title, field) in [
        ("Cmax", "cmax"),
        ("Tmax", "tmax"),
        ("last trough", "trough"),
        ("AUC over the simulated time", "auc_0_t"),
    ] {
        let value = |step: &LoggedStep| step.result["summary"].get(field).cloned();
        let (Some(a), Some(b)) = (value(first), value(second)) else { continue };
        let ratio = match (a["value"].as_f64(), b["value"].as_f64()) {
            (Some(a), Some(b)) if a > 0.0 => format!(", B/A {}", number(b / a)),
            _ => String::new(),
        };
        lines.push(format!("{title}: A {}, B {}{ratio}", quantity(Some(&a)), quantity(Some(&b))));
    }
    lines.join("\n")
}

/// Formats `{"value", "unit"}` for people.
fn quantity(value: Option<&Value>) -> String {
    let found = value.and_then(|v| Some((v.get("value")?.as_f64()?, v.get("unit")?.as_str()?)));
    found.map_or_else(|| "?".to_owned(), |(value, unit)| format!("{} {unit}", number(value)))
}

/// Rounds to four significant digits.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, reason = "a double's exponent is small")]
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(3 - magnitude).unwrap_or(0).min(12);
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_significant_digits() {
        for (value, text) in [
            (250.0, "250"),
            (7.7512, "7.751"),
            (0.012_345, "0.01235"),
            (1052.63, "1053"),
            (0.0, "0"),
            (5.4, "5.4"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_plot_has_its_peak_on_top_and_its_time_below() {
        let series =
            json!({ "times": [0.0, 1.0, 2.0, 3.0], "concentrations": [0.0, 8.0, 4.0, 2.0] });
        let lines = plot(&json!({ "series": series }));
        assert!(lines[0].contains("8 mg/L │ █"), "{lines:#?}");
        assert!(lines.last().unwrap().contains("3 h"), "{lines:#?}");
        assert_eq!(lines.len(), PLOT_ROWS + 2);
        assert!(plot(&json!({}))[0].contains("no concentrations"));
    }
}
