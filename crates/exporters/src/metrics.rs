//! A page of metrics for Prometheus, under the names that [`on_the_page`] derives.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Label, Metadata, Recorder, SharedString, Unit,
};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use telemetry::metrics::{Kind, on_the_page, set_on};

/// Upper bounds of duration buckets, in seconds: from an append to a long session.
const SECONDS: [f64; 14] =
    [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 28_800.0];

/// How often measurements are put into buckets if the page is not read: until then each of them takes memory.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

static PAGE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// The recorder, under the names on the page.
struct Page(PrometheusRecorder);

impl Page {
    fn new(buckets: &[(&str, &[f64])]) -> Result<Self, BuildError> {
        let mut builder = PrometheusBuilder::new().set_buckets(&SECONDS)?;
        for (name, bounds) in buckets {
            let name = Matcher::Full(on_the_page(name, Kind::Other));
            builder = builder.set_buckets_for_metric(name, bounds)?;
        }
        Ok(Self(builder.build_recorder()))
    }

    fn handle(&self) -> PrometheusHandle {
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

/// Keeps this program's metrics for [`render`], durations in buckets from a millisecond to eight hours, the named ones
/// in their own buckets. Only the first call has an effect.
pub fn keep(buckets: &[(&str, &[f64])]) {
    PAGE.get_or_init(|| {
        let page = Page::new(buckets).ok()?;
        let (kept, shown) = (page.handle(), page.handle());
        metrics::set_global_recorder(page).ok()?;
        set_on();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(UPKEEP_EVERY);
                kept.run_upkeep();
            }
        });
        Some(shown)
    });
}

/// The metrics so far in Prometheus' text format; empty if they are not kept.
pub fn render() -> String {
    PAGE.get().and_then(Option::as_ref).map(PrometheusHandle::render).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_uses_its_own_buckets() {
        let page = Page::new(&[("Steps", &[1.0, 2.0])]).unwrap();
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
