//! Where figures go: into a page that Prometheus reads, or as lines that CloudWatch reads, and nowhere
//! in a program that asked for neither. Whoever counts uses the facade `metrics` and does not know.

/// What stands before the names of our figures on the page.
const PREFIX: &str = "daybook_";

/// What a figure is, as far as its name on the page depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// A duration, a size, a state.
    Other,
}

/// The name of a figure on Prometheus' page: `SessionsEnded` becomes `daybook_sessions_ended_total`. One
/// without capitals is Prometheus' own already and stays as it is.
///
/// Source of the form: Prometheus, "Metric and label naming".
pub fn on_the_page(name: &str, kind: Kind) -> String {
    if !name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return name.to_owned();
    }
    let mut page = PREFIX.to_owned();
    for (index, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && index > 0 {
            page.push('_');
        }
        page.push(letter.to_ascii_lowercase());
    }
    if kind == Kind::Counter {
        page.push_str("_total");
    }
    page
}

#[cfg(feature = "prometheus")]
mod page {
    use std::sync::OnceLock;
    use std::time::Duration;

    use metrics::{
        Counter, Gauge, Histogram, Key, KeyName, Label, Metadata, Recorder, SharedString, Unit,
    };
    use metrics_exporter_prometheus::{
        BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
    };

    use super::{Kind, on_the_page};

    /// Upper bounds of the buckets of durations, in seconds: from an append to a long session.
    const SECONDS: [f64; 14] =
        [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 28_800.0];

    /// How often what was measured is put into its buckets where nobody reads the page: until then each
    /// measurement takes its room.
    const UPKEEP_EVERY: Duration = Duration::from_secs(5);

    static PAGE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

    /// The recorder, told by the names that stand on the page.
    pub(super) struct Page(PrometheusRecorder);

    impl Page {
        pub(super) fn new(buckets: &[(&str, &[f64])]) -> Result<Self, BuildError> {
            let mut builder = PrometheusBuilder::new().set_buckets(&SECONDS)?;
            for (name, bounds) in buckets {
                let name = Matcher::Full(on_the_page(name, Kind::Other));
                builder = builder.set_buckets_for_metric(name, bounds)?;
            }
            Ok(Self(builder.build_recorder()))
        }

        pub(super) fn handle(&self) -> PrometheusHandle {
            self.0.handle()
        }
    }

    fn named(name: &KeyName, kind: Kind) -> KeyName {
        on_the_page(name.as_str(), kind).into()
    }

    fn key(key: &Key, kind: Kind) -> Key {
        let labels: Vec<Label> = key.labels().cloned().collect();
        Key::from_parts(on_the_page(key.name(), kind), labels)
    }

    impl Recorder for Page {
        fn describe_counter(&self, name: KeyName, unit: Option<Unit>, what: SharedString) {
            self.0.describe_counter(named(&name, Kind::Counter), unit, what);
        }

        fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, what: SharedString) {
            self.0.describe_gauge(named(&name, Kind::Other), unit, what);
        }

        fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, what: SharedString) {
            self.0.describe_histogram(named(&name, Kind::Other), unit, what);
        }

        fn register_counter(&self, of: &Key, metadata: &Metadata<'_>) -> Counter {
            self.0.register_counter(&key(of, Kind::Counter), metadata)
        }

        fn register_gauge(&self, of: &Key, metadata: &Metadata<'_>) -> Gauge {
            self.0.register_gauge(&key(of, Kind::Other), metadata)
        }

        fn register_histogram(&self, of: &Key, metadata: &Metadata<'_>) -> Histogram {
            self.0.register_histogram(&key(of, Kind::Other), metadata)
        }
    }

    pub(super) fn start(buckets: &[(&str, &[f64])]) {
        PAGE.get_or_init(|| {
            let page = Page::new(buckets).ok()?;
            let (kept, shown) = (page.handle(), page.handle());
            metrics::set_global_recorder(page).ok()?;
            std::thread::spawn(move || {
                loop {
                    std::thread::sleep(UPKEEP_EVERY);
                    kept.run_upkeep();
                }
            });
            Some(shown)
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

/// Keeps the figures of this program for [`render`], durations in buckets from a millisecond to eight hours,
/// the named ones in their own. Only the first call counts, and of a program's two places for figures the
/// first.
#[cfg(feature = "prometheus")]
pub fn keep(buckets: &[(&str, &[f64])]) {
    page::start(buckets);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_called_on_the_page_as_prometheus_names_figures() {
        for (name, kind, expected) in [
            ("SessionsEnded", Kind::Counter, "daybook_sessions_ended_total"),
            ("SessionSeconds", Kind::Other, "daybook_session_seconds"),
            ("SpentMicroUsd", Kind::Counter, "daybook_spent_micro_usd_total"),
            ("ops_agent_steps", Kind::Other, "ops_agent_steps"),
            ("ops_agent_decisions_total", Kind::Counter, "ops_agent_decisions_total"),
        ] {
            assert_eq!(on_the_page(name, kind), expected);
        }
    }

    #[cfg(feature = "prometheus")]
    #[test]
    fn a_figure_with_buckets_of_its_own_is_counted_in_them() {
        let page = page::Page::new(&[("Steps", &[1.0, 2.0])]).unwrap();
        let shown = page.handle();
        metrics::with_local_recorder(&page, || {
            metrics::histogram!("Steps").record(2.0);
            metrics::histogram!("Seconds").record(0.02);
        });
        let page = shown.render();
        let steps: Vec<&str> = page.lines().filter(|l| l.starts_with("daybook_steps_b")).collect();
        let expected = [
            "daybook_steps_bucket{le=\"1\"} 0",
            "daybook_steps_bucket{le=\"2\"} 1",
            "daybook_steps_bucket{le=\"+Inf\"} 1",
        ];
        assert_eq!(steps, expected);
        assert!(page.contains("daybook_seconds_bucket{le=\"0.05\"} 1"), "{page}");
    }
}
