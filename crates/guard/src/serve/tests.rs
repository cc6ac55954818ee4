use std::net::SocketAddr;

use axum::routing::{get, post};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::*;

const SHORT: Limits = Limits {
    connections: 8,
    head: Duration::from_millis(300),
    body: Duration::from_millis(300),
    stall: Duration::from_millis(300),
};

/// Bounds that no test reaches, except for the number of connections.
const LONG: Limits = Limits {
    connections: 8,
    head: Duration::from_secs(60),
    body: Duration::from_secs(60),
    stall: Duration::from_secs(60),
};

/// A server that stops on drop.
struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinSet<()>,
}

impl Server {
    async fn start(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let router = Router::new()
            .route("/", get(|| async { "hello" }))
            .route("/long", get(|| async { Body::from_stream(ticks()) }))
            .route("/large", get(|| async { Body::from_stream(noise()) }))
            .route("/read", post(|body: String| async move { body }));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let stopped = async { drop(stopped.await) };
            serve_within(limits, listener, router, stopped).await;
        });
        Self { address, stop: Some(stop), serving }
    }

    async fn open(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes on a new connection.
    async fn send(&self, bytes: &str) -> TcpStream {
        let mut stream = self.open().await;
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream
    }

    async fn answer(&self, bytes: &str) -> String {
        rest(self.send(bytes).await).await
    }
}

fn ticks() -> impl futures_util::Stream<Item = Result<&'static str, Infallible>> + Send {
    futures_util::stream::unfold((), |()| async {
        sleep(Duration::from_millis(100)).await;
        Some((Ok("tick\n"), ()))
    })
}

/// Without an end and without a pause.
fn noise() -> impl futures_util::Stream<Item = Result<Vec<u8>, Infallible>> + Send {
    futures_util::stream::repeat_with(|| Ok(vec![b'x'; 64 * 1024]))
}

const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
const HALF: &str = "GET / HTTP/1.1\r\nhost: x\r\n";

/// All that the server still sends; bounded in time.
async fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = timeout(Duration::from_secs(10), stream.read_to_end(&mut bytes)).await;
    read.expect("the server closes the connection").unwrap();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn half_a_request_gets_408_in_time() {
    let server = Server::start(SHORT).await;
    let half = server.answer(HALF).await;
    assert!(half.starts_with("HTTP/1.1 408 ") && half.contains(LATE), "{half}");
    assert_eq!(server.answer("").await, "", "an idle connection is closed without a response");
    let kept = server.answer("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(kept.starts_with("HTTP/1.1 200 ") && kept.ends_with("hello"), "{kept}");
}

#[tokio::test]
async fn a_drip_of_header_bytes_does_not_extend_the_time() {
    let server = Server::start(SHORT).await;
    let mut stream = server.send(HALF).await;
    let begun = Instant::now();
    while stream.write_all(b"a: b\r\n").await.is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(5), "the server closes the connection");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn half_a_body_is_an_error_in_time() {
    let server = Server::start(SHORT).await;
    let head = "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n";
    let answer = server.answer(&format!("{head}abc")).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains(LATE), "{answer}");
    let whole = server.answer(&format!("{head}0123456789")).await;
    assert!(whole.contains("0123456789"), "{whole}");
}

#[tokio::test]
async fn hundreds_of_half_requests_keep_no_request_out() {
    let server = Server::start(LONG).await;
    let mut half = Vec::new();
    for _ in 0..300 {
        half.push(server.send(HALF).await);
    }
    let begun = Instant::now();
    let answer = server.answer(GET).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let evicted = rest(half.swap_remove(200)).await;
    assert!(evicted.starts_with("HTTP/1.1 503 ") && evicted.contains(EVICTED), "{evicted}");
}

#[tokio::test]
async fn a_server_with_only_open_requests_refuses_with_503() {
    let server = Server::start(LONG).await;
    let mut streams = Vec::new();
    for _ in 0..LONG.connections {
        let mut stream = server.send("GET /long HTTP/1.1\r\nhost: x\r\n\r\n").await;
        stream.read_u8().await.unwrap();
        streams.push(stream);
    }
    let refused = server.answer(GET).await;
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains(FULL), "{refused}");
    drop(streams.pop());
    let again = async {
        while !server.answer(GET).await.starts_with("HTTP/1.1 200 ") {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), again).await.expect("a closed stream frees its place");
}

#[tokio::test]
async fn a_stream_outlives_every_timeout_while_it_is_read() {
    let server = Server::start(SHORT).await;
    let mut stream = server.send("GET /long HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let begun = Instant::now();
    while begun.elapsed() < 5 * SHORT.head {
        timeout(Duration::from_secs(5), stream.read_u8()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut_off() {
    let server = Server::start(Limits { connections: 1, ..SHORT }).await;
    let mut deaf = server.send("GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await;
    deaf.read_u8().await.unwrap();
    assert!(server.answer(GET).await.contains(FULL));
    let free = async {
        while !server.answer(GET).await.starts_with("HTTP/1.1 200 ") {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(10), free).await.expect("its place becomes free");
    drop(deaf);
}

#[tokio::test]
async fn stopping_waits_for_open_requests_only() {
    let mut server = Server::start(LONG).await;
    let half = server.send(HALF).await;
    let slow = server.send("POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\na").await;
    sleep(Duration::from_millis(100)).await;
    server.stop.take().unwrap().send(()).unwrap();
    assert_eq!(rest(half).await, "");
    let mut slow = slow;
    slow.write_all(b"b").await.unwrap();
    assert!(rest(slow).await.ends_with("ab"));
    let ended = timeout(Duration::from_secs(10), server.serving.join_next()).await;
    ended.expect("the server stops").unwrap().unwrap();
}
