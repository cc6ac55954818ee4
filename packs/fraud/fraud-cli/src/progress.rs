//! The progress of a batch, as a bar.

/// Width of the bar, in characters.
const WIDTH: usize = 24;

/// A bar with counts, and the worst payment so far.
pub fn bar(done: usize, all: usize, worst: Option<&str>) -> String {
    let full = (done.min(all) * WIDTH).checked_div(all).unwrap_or(WIDTH);
    let worst = worst.map_or_else(String::new, |worst| format!(" · worst: {worst}"));
    format!("[{}{}] {done} of {all}{worst}", "#".repeat(full), "-".repeat(WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_with_the_payments_done() {
        assert_eq!(bar(0, 8, None), "[------------------------] 0 of 8");
        assert_eq!(
            bar(2, 8, Some("t1 critical 91.0 %")),
            "[######------------------] 2 of 8 · worst: t1 critical 91.0 %"
        );
        assert_eq!(bar(8, 8, None), "[########################] 8 of 8");
        assert_eq!(bar(0, 0, None), "[########################] 0 of 0");
    }
}
