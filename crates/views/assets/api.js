// HTTP client of the page. It calls only the server that delivered the page.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function get(path) {
  return answer(await fetch(path, { headers: { accept: "application/json" } }));
}

export async function post(path, body, more = {}) {
  const headers = { "content-type": "application/json", ...more };
  return answer(await fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** Trades the token for a cookie, which also opens streams. */
export async function logIn(token) {
  const response = await fetch("/login", { method: "POST", headers: { authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Refused(response.status, "Invalid token.");
}

/** Without a login, or after its end. */
const loggedOut = () => dispatchEvent(new Event("loggedout"));

async function answer(response) {
  if (response.status === 401) loggedOut();
  const text = await response.text();
  let body = null;
  try { body = JSON.parse(text); } catch { /* not an answer of the stack */ }
  if (!response.ok || body === null) {
    const said = body?.message ?? body?.error?.message ?? body?.error ?? (text.slice(0, 200) || "no response");
    throw new Refused(response.status, said);
  }
  return body;
}

/** Starts a session; the key makes a repeated request start one session only. Returns its id. */
export async function start(detail, key = crypto.randomUUID()) {
  return (await post("/api/sessions", detail, { "idempotency-key": key })).session_id;
}

export const path = (id, rest = "") => `/api/sessions/${encodeURIComponent(id)}${rest}`;

/**
 * Calls `read` now and every `ms`, until it returns true or the element has left the page. A hidden page waits, unless `isHiddenToo`.
 * Only the first refusal is thrown. Returns what reads at once.
 */
export async function poll(element, ms, connected, read, isHiddenToo = false) {
  let [timer, isFirst] = [null, true];
  const say = (state) => { if (element.isConnected) connected(state); };
  const again = () => { clearTimeout(timer); timer = setTimeout(tick, ms); };
  const tick = () => { if (element.isConnected) (document.hidden && !isHiddenToo ? again : now)(); };
  async function now() {
    let isDone = false;
    try {
      isDone = await read();
      say(true);
    } catch (error) {
      if (isFirst && error.status) throw error;
      say(false);
    } finally {
      isFirst = false;
      if (!isDone) again();
    }
  }
  await now();
  return now;
}

/** Delays between reconnects of a refused stream: the first and the maximum. */
export const AGAIN_MS = [1000, 30_000];

const POLLED_MS = 3000;

/**
 * Calls `changed`, debounced, when the session has new records, and `progressed` with a tool's progress.
 * The browser resumes a broken stream at its last event. A refused stream is reopened with backoff until the session has ended.
 */
export function watch(id, { changed, progressed, connected, isOver }) {
  const [first, longest] = AGAIN_MS;
  let [source, due, again, pause] = [null, null, null, first];
  const soon = () => { due ??= setTimeout(() => { due = null; changed(); }, 120); };
  const open = () => {
    source = new EventSource(path(id, "/events"));
    for (const type of ["event", "step", "session"]) source.addEventListener(type, soon);
    source.addEventListener("progress", (event) => progressed(JSON.parse(event.data)));
    source.addEventListener("journal", (event) => {
      const { error } = JSON.parse(event.data);
      connected(error === null, error);
      if (error === null) soon();
    });
    source.addEventListener("open", () => { pause = first; connected(true); });
    source.addEventListener("error", () => {
      const isRefused = source.readyState === EventSource.CLOSED;
      connected(isRefused && isOver() ? null : false);
      if (!isRefused || isOver()) return;
      again = setTimeout(open, pause);
      pause = Math.min(2 * pause, longest);
    });
  };
  open();
  return () => { [due, again].forEach(clearTimeout); source.close(); };
}

/**
 * Follows a list of sessions: `changed` gets the first list whole, then only the rows that changed. A hidden page
 * closes the stream, because a browser opens few connections to one server. Where the server has no such stream, the list is
 * read every `POLLED_MS`.
 */
export function watchList(query, { changed, connected }) {
  let [source, timer, left, pause] = [null, null, false, AGAIN_MS[0]];
  const close = () => { source?.close(); source = null; clearTimeout(timer); };
  const read = async () => {
    try {
      const { sessions, ...rest } = await get(`/api/sessions?${query}`);
      if (left) return;
      changed({ sessions, order: sessions.map((session) => session.session_id), ...rest });
      connected(true);
    } catch { connected(false); }
    if (!left && !document.hidden) timer = setTimeout(read, POLLED_MS);
  };
  const open = () => {
    close();
    source = new EventSource(`/api/changes?${query}`);
    source.addEventListener("sessions", (event) => { pause = AGAIN_MS[0]; connected(true); changed(JSON.parse(event.data)); });
    source.addEventListener("journal", (event) => connected(false, JSON.parse(event.data).error));
    source.addEventListener("error", async () => {
      if (left || source?.readyState !== EventSource.CLOSED) { if (!left) connected(false); return; }
      close();
      // The stream was refused: is there one at all?
      const found = await fetch(`/api/changes?${query}&limit=1`, { headers: { accept: "application/json" }, signal: AbortSignal.timeout(2000) }).catch(() => null);
      found?.body?.cancel().catch(() => {});
      if (left) return;
      if (found?.status === 404) { read(); return; }
      if (found?.status === 401) loggedOut();
      connected(false);
      timer = setTimeout(open, pause);
      pause = Math.min(2 * pause, AGAIN_MS[1]);
    });
  };
  const seen = () => { if (document.hidden) close(); else open(); };
  document.addEventListener("visibilitychange", seen);
  open();
  return () => { left = true; close(); document.removeEventListener("visibilitychange", seen); };
}

/** Sends what the page still owes when it is left: the browser finishes the request. */
export function postLast(path, body) {
  fetch(path, { method: "POST", keepalive: true, headers: { "content-type": "application/json" }, body: JSON.stringify(body) }).catch(() => {});
}
