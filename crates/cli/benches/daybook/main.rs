//! Benchmarks of Daybook on this machine, compared with the raw disk in the same run.
//!
//! Most workloads run in short bursts over several rounds, and the median is printed. Absolute results
//! depend on the machine; compare the ratio to the raw disk in the same round. Arguments after `--` select
//! parts: `speed`, `steps`, `list`, `memory`, `heartbeat`, `recovery`; the default is all of them. `kills=N` and `agent=A` set
//! how often `recovery` kills a stack, and of which agent. `scale` fills a file with 1,000,000 sessions, and [`alone`] has
//! workloads for external tools.
//!
//! No result fails the benchmark.

#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing to say")]
#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use journal::item::Item;
use journal::sqlite::{Durability, SqliteStore};
use journal::store::{Condition, Store as _};
use mimalloc::MiMalloc;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::report::{FSYNC, Report};

mod alone;
mod heartbeat;
mod list;
mod memory;
mod recovery;
mod report;
mod runs;
mod sessions;
mod steps;

/// As the program's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How long each measurement runs in each round.
const BURST: Duration = Duration::from_millis(1_500);

/// How many rounds; the median counts.
const ROUNDS: usize = 3;

/// What a record and an outcome weigh, in bytes.
const RECORD_BYTES: usize = 300;

/// Writers, runs and sessions at once.
const AT_ONCE: [usize; 3] = [1, 16, 64];

/// Records of other sizes, in bytes, for how appending grows with them.
const LARGER: [usize; 3] = [3_000, 30_000, 300_000];

/// A part of the bench by its word.
type Part = (&'static str, fn(&mut Report));

/// In the order in which they are measured.
const PARTS: [Part; 6] = [
    ("speed", speed),
    ("steps", steps::measure),
    ("list", lists),
    ("memory", memory::measure),
    ("heartbeat", heartbeat::measure),
    ("recovery", recovery::measure),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(asked) = alone::asked(&arguments) {
        return alone::measure(&asked);
    }
    let is_asked = |word: &str| arguments.iter().any(|argument| argument == word);
    let mut report = Report::new();
    if is_asked("scale") {
        list::measure(&mut report, list::Files::Million);
    } else {
        let any = PARTS.iter().any(|(word, _)| is_asked(word));
        for (_, part) in PARTS.iter().filter(|(word, _)| !any || is_asked(word)) {
            part(&mut report);
        }
    }
    report.write(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("../bench.json"));
}

fn lists(report: &mut Report) {
    list::measure(report, list::Files::HundredThousand);
}

/// Rates, in rounds.
fn speed(report: &mut Report) {
    let runtime = runtime();
    let mut rates: BTreeMap<(usize, String), Vec<(f64, f64)>> = BTreeMap::new();
    let mut costs: BTreeMap<(usize, String), Vec<f64>> = BTreeMap::new();
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS} of {} ms each", round + 1, BURST.as_millis());
        let raw = raw_disk();
        let mut add = |row: usize, at: String, pace: Pace| {
            costs.entry((row, at.clone())).or_default().push(pace.processor_ms);
            rates.entry((row, at)).or_default().push((pace.rate, pace.rate / raw));
        };
        add(0, "1".to_owned(), Pace { rate: raw, processor_ms: 0.0 });
        for at_once in AT_ONCE {
            let at = format!("{at_once:>2}");
            add(1, at.clone(), runtime.block_on(appends(at_once, RECORD_BYTES)));
            add(2, at.clone(), runtime.block_on(runs::of_ten(at_once, BURST)));
            add(3, at, runtime.block_on(sessions::rate(at_once, BURST)));
        }
        for bytes in LARGER {
            add(4, format!("{bytes:>6} B"), runtime.block_on(appends(1, bytes)));
        }
    }
    for ((row, at), mut measured) in rates {
        let (what, targets) = ROWS[row];
        let target = targets.iter().find(|(of, _)| *of == at.trim()).map(|(_, target)| *target);
        let middle = |values: Vec<f64>| {
            let mut values = values;
            median(&mut values)
        };
        let rate = middle(measured.iter().map(|(rate, _)| *rate).collect());
        let ratio = middle(measured.drain(..).map(|(_, ratio)| ratio).collect());
        report.add_rate(what, at, rate, ratio, target);
    }
    // What limits a rate: so many processors by this time is the most there can be.
    for (row, what) in [(2, "processor time of a ten-step run"), (3, "processor time of a session")]
    {
        for ((_, at), times) in costs.iter_mut().filter(|((of, _), _)| *of == row) {
            report.add(what, at, median(times), "ms", FSYNC);
        }
    }
    let ms = runtime.block_on(sessions::checkup_ms());
    report.add("checkup, trigger to verdict", 1, ms, "ms", FSYNC);
}

/// What a row is called, and what we mean it to be at which number.
const ROWS: [(&str, &[(&str, &str)]); 5] = [
    ("raw append + fdatasync", &[]),
    ("journal append", &[("1", "0.7 of disk"), ("64", "30,000")]),
    ("ten-step run", &[("1", "200"), ("64", "2,800")]),
    ("whole session of ten steps", &[("64", "400")]),
    ("journal append of larger records", &[]),
];

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn rate(done: usize, since: Instant) -> f64 {
    f64::from(u32::try_from(done).unwrap()) / since.elapsed().as_secs_f64()
}

fn scratch() -> tempfile::TempDir {
    // Beside the build, on a disk: the system's folder for temporary files may be memory.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn store(folder: &Path) -> SqliteStore {
    SqliteStore::open(&folder.join("journal.db"), Durability::Fsync).unwrap()
}

fn raw_disk() -> f64 {
    let folder = scratch();
    let mut file = File::create(folder.path().join("raw")).unwrap();
    let (record, began, mut done) = ([b'x'; RECORD_BYTES], Instant::now(), 0);
    while began.elapsed() < BURST {
        file.write_all(&record).unwrap();
        file.sync_data().unwrap();
        done += 1;
    }
    rate(done, began)
}

async fn appends(writers: usize, bytes: usize) -> Pace {
    let folder = scratch();
    let store = store(folder.path());
    in_parallel(writers, move |writer| {
        let store = store.clone();
        async move {
            let (began, mut done) = (Instant::now(), 0);
            while began.elapsed() < BURST {
                let item = Item::new(format!("SESSION#{writer}"), format!("STEP#{done:08}"))
                    .with("Payload", "x".repeat(bytes - 40));
                store.put(item, Condition::Absent).await.unwrap();
                done += 1;
            }
            done
        }
    })
    .await
}

/// How much was done.
#[derive(Clone, Copy)]
struct Pace {
    /// A second.
    rate: f64,
    /// Of all threads of this process, for each thing done.
    processor_ms: f64,
}

/// Sums what many tasks did, as a rate over the whole time.
async fn in_parallel<F: Future<Output = usize> + Send + 'static>(
    tasks: usize,
    work: impl Fn(usize) -> F,
) -> Pace {
    let (began, used) = (Instant::now(), processor_ms());
    let set: JoinSet<usize> = (0..tasks).map(work).collect();
    let done: usize = set.join_all().await.into_iter().sum();
    let each = f64::from(u32::try_from(done.max(1)).unwrap());
    Pace { rate: rate(done, began), processor_ms: (processor_ms() - used) / each }
}

/// What this process has used of the processors.
fn processor_ms() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap().as_secs_f64() * 1e3
}
