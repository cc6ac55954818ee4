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

export async function post(path, body) {
  const headers = { "content-type": "application/json" };
  return answer(await fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** Trades the token for a cookie, which also opens streams. */
export async function logIn(token) {
  const response = await fetch("/login", { method: "POST", headers: { authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Refused(response.status, "Invalid token.");
}

async function answer(response) {
  const text = await response.text();
  let body = null;
  try { body = JSON.parse(text); } catch { /* not an answer of the stack */ }
  if (!response.ok || body === null) {
    const said = body?.message ?? body?.error?.message ?? (text.slice(0, 200) || "no response");
    throw new Refused(response.status, said);
  }
  return body;
}

export const path = (id, rest = "") => `/api/sessions/${encodeURIComponent(id)}${rest}`;

/** Delays between reconnects of a refused stream: the first and the maximum. */
export const AGAIN_MS = [1000, 30_000];

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
