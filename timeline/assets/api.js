// What the page asks of whoever served it, and nobody else.

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
  if (!response.ok) throw new Refused(response.status, "The token is another one.");
}

async function answer(response) {
  const text = await response.text();
  let body = null;
  try { body = JSON.parse(text); } catch { /* whoever answers thus is not the stack */ }
  if (!response.ok || body === null) {
    const said = body?.message ?? body?.error?.message ?? (text.slice(0, 200) || "no answer");
    throw new Refused(response.status, said);
  }
  return body;
}

export const path = (id, rest = "") => `/api/sessions/${encodeURIComponent(id)}${rest}`;

/** How long a stream that was refused is let alone: the first time, and the longest. */
export const AGAIN_MS = [1000, 30_000];

/**
 * Calls `changed` whenever the session has a new record, soon and not too often, and `progressed` with a tool's progress.
 * The browser takes a broken stream up again where it was; one that was refused is asked for anew until the session is over.
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
