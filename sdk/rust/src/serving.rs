//! Connects an agent to its host: frames on stdin and stdout, one JSON object a line.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::pin::pin;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use serde_json::{Value, json};

use crate::PROTOCOL;
use crate::agent::Agent;

const KIT: &str = concat!("rust/", env!("CARGO_PKG_VERSION"));

/// Exit code after a wrong use.
const USAGE: i32 = 64;

/// Exit code after a host that breaks the protocol.
const BROKEN: i32 = 70;

/// Runs the agent for the host that started this program. Does not return.
pub fn run(agent: Agent) -> ! {
    block_on(serve(agent))
}

/// The same inside of a runtime: a step's function can then use that runtime. The agent's function runs in the task that
/// awaits this future.
pub async fn serve(agent: Agent) -> ! {
    if std::io::stdin().is_terminal() {
        eprintln!(
            "This program is the agent {}; a host starts it.\nhint: name it in daybook.toml, then run `daybook dev`",
            agent.description()["name"]
        );
        process::exit(USAGE);
    }
    let mut pipe = Pipe::take();
    let frames = Frames::read_on_a_thread();
    let first = frames.next().await;
    pipe.send(&json!({"type": "hello", "protocol": PROTOCOL, "kit": KIT}));
    if first["protocol"] != PROTOCOL {
        process::exit(0);
    }
    match first["type"].as_str() {
        Some("describe") => {
            pipe.send(agent.description());
            process::exit(0);
        }
        Some("start") => {}
        _ => broken(&format!("the first frame is {first}, neither `start` nor `describe`")),
    }
    let mut run = agent.start(&first);
    let ended = std::future::poll_fn(|cx| {
        loop {
            let end = run.advance(cx.waker());
            run.program.frames().iter().for_each(|frame| pipe.send(frame));
            if let Some(end) = end {
                return Poll::Ready(end);
            }
            match run.program.deliver() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(problem) => broken(&problem),
            }
            let Poll::Ready(frame) = frames.poll(cx) else { return Poll::Pending };
            if let Err(problem) = run.program.receive(frame) {
                broken(&problem);
            }
        }
    });
    let end = ended.await;
    pipe.send(&end);
    process::exit(0)
}

fn broken(problem: &str) -> ! {
    eprintln!("the host breaks the protocol: {problem}");
    process::exit(BROKEN)
}

/// The host's end of stdout.
struct Pipe(File);

impl Pipe {
    /// Takes stdout: what the agent prints goes to stderr from now on, which is the program's log.
    fn take() -> Self {
        let own = std::io::stdout().as_fd().try_clone_to_owned();
        let moved = own.and_then(|own| {
            rustix::stdio::dup2_stdout(std::io::stderr())?;
            Ok(own)
        });
        match moved {
            Ok(own) => Self(own.into()),
            Err(error) => {
                eprintln!("cannot take stdout for the host: {error}");
                process::exit(BROKEN);
            }
        }
    }

    fn send(&mut self, frame: &Value) {
        let line = format!("{frame}\n");
        // The host is gone.
        if self.0.write_all(line.as_bytes()).is_err() {
            process::exit(0);
        }
    }
}

/// The frames of the host, read by a thread.
#[derive(Clone, Default)]
struct Frames(Arc<Mutex<Read>>);

#[derive(Default)]
struct Read {
    frames: VecDeque<Value>,
    waker: Option<Waker>,
}

impl Frames {
    fn read_on_a_thread() -> Self {
        let frames = Self::default();
        let read = frames.clone();
        thread::spawn(move || {
            let mut lines = BufReader::new(std::io::stdin()).lines();
            while let Some(Ok(line)) = lines.next() {
                match serde_json::from_str(&line) {
                    Ok(frame) => read.push(frame),
                    Err(error) => broken(&format!("{error}: {line}")),
                }
            }
            // The host is gone.
            process::exit(0);
        });
        frames
    }

    fn push(&self, frame: Value) {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        read.frames.push_back(frame);
        let waker = read.waker.take();
        drop(read);
        waker.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Value> {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match read.frames.pop_front() {
            Some(frame) => Poll::Ready(frame),
            None => {
                read.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    async fn next(&self) -> Value {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }
}

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
