//! Where figures go: into a page that Prometheus reads, or as lines that CloudWatch reads, and nowhere
//! in a program that asked for neither. Whoever counts uses the facade `metrics` and does not know.

#[cfg(feature = "prometheus")]
mod page {
    use std::sync::OnceLock;
    use std::time::Duration;

    use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

    /// Upper bounds of the buckets of durations, in seconds: from an append to a long session.
    const SECONDS: [f64; 14] =
        [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 28_800.0];

    /// How often what was measured is put into its buckets where nobody reads the page: until then each
    /// measurement takes its room.
    const UPKEEP_EVERY: Duration = Duration::from_secs(5);

    static PAGE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

    pub(super) fn start() {
        PAGE.get_or_init(|| {
            let page = PrometheusBuilder::new().set_buckets(&SECONDS).ok()?;
            let page = page.install_recorder().ok()?;
            let kept = page.clone();
            std::thread::spawn(move || {
                loop {
                    std::thread::sleep(UPKEEP_EVERY);
                    kept.run_upkeep();
                }
            });
            Some(page)
        });
    }

    pub(super) fn is_on() -> bool {
        PAGE.get().is_some_and(Option::is_some)
    }

    pub(super) fn render() -> String {
        PAGE.get().and_then(Option::as_ref).map(PrometheusHandle::render).unwrap_or_default()
    }
}

#[cfg(feature = "embedded")]
mod lines {
    use std::sync::OnceLock;

    use metrics_cloudwatch_embedded::{Builder, Collector};

    static LINES: OnceLock<Option<&'static Collector>> = OnceLock::new();

    pub(super) fn start(namespace: &'static str) {
        LINES.get_or_init(|| Builder::new().cloudwatch_namespace(namespace).init().ok());
    }

    pub(super) fn is_on() -> bool {
        LINES.get().is_some_and(Option::is_some)
    }

    pub(super) fn flush() {
        if let Some(lines) = LINES.get().copied().flatten()
            && let Err(error) = lines.flush(std::io::stdout())
        {
            tracing::warn!(%error, "Figures were not written.");
        }
    }
}

/// Whether anybody keeps the figures.
pub fn is_on() -> bool {
    #[cfg(feature = "prometheus")]
    let page = page::is_on();
    #[cfg(not(feature = "prometheus"))]
    let page = false;
    #[cfg(feature = "embedded")]
    let lines = lines::is_on();
    #[cfg(not(feature = "embedded"))]
    let lines = false;
    page || lines
}

/// Keeps the figures of this program for [`render`]. Only the first call counts, and of a program's two
/// places for figures the first.
#[cfg(feature = "prometheus")]
pub fn keep() {
    page::start();
}

/// The figures so far in Prometheus' text format; nothing if they are not kept.
pub fn render() -> String {
    #[cfg(feature = "prometheus")]
    return page::render();
    #[cfg(not(feature = "prometheus"))]
    String::new()
}

/// Has the figures of this program written to stdout in CloudWatch's embedded metric format by
/// [`finish`]. Only the first call counts.
#[cfg(feature = "embedded")]
pub fn embed(namespace: &'static str) {
    lines::start(namespace);
}

/// Before a Lambda replies, after which it may be frozen: spans are out, within bounds, and figures
/// are written. Blocks the thread.
pub fn finish() {
    crate::export::flush();
    #[cfg(feature = "embedded")]
    lines::flush();
}
