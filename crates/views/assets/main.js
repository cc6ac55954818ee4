// Routes addresses to views, and holds what views share: theme, keyboard shortcuts, connection status.

import { AGAIN_MS, Refused, logIn } from "./api.js";
import { compare } from "./compare.js";
import { el, visible } from "./dom.js";
import { health } from "./health.js";
import { list } from "./list.js";
import { session } from "./session.js";

const main = document.getElementById("main");
const place = document.getElementById("place");
const connection = document.getElementById("connection");
let view = null;
let shownKind = null;

/** Shows a view's connection status: true, false with the reason, or null if the view keeps no connection. */
function connected(state, wrong) {
  connection.textContent = state === false ? visible(`${wrong ?? "not connected"}, retrying`) : "";
  connection.className = state === false ? "bad" : "";
}

/** Views by the first segment of the address; each gets the other segments. */
const VIEWS = { session, compare, health, "": list };

async function route() {
  const [where, query = ""] = location.hash.split("?");
  const [, kind = "", ...coded] = where.split("/");
  const rest = coded.map(decodeURIComponent);
  // The view that is shown may handle the address itself.
  if (kind === shownKind && view?.go?.(rest, query)) return;
  view?.leave();
  view = null;
  shownKind = kind;
  connected(null);
  const frame = el("div");
  main.replaceChildren(frame);
  place.replaceChildren();
  for (const item of document.querySelectorAll("nav a")) {
    if (item.dataset.kind === kind) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
  try {
    const made = await (VIEWS[kind] ?? list)(frame, rest, { place, connected, query: new URLSearchParams(query) });
    // The user has navigated away while this view was loading.
    if (!frame.isConnected) return made.leave();
    view = made;
    pause = AGAIN_MS[0];
  } catch (error) {
    fail(frame, error);
  }
}

/** Whether the error may be transient: the stack is starting, or the session has no records yet. */
const passes = ({ status }) => status === undefined || status === 503 || (status === 404 && shownKind === "session");
let pause = AGAIN_MS[0];

function fail(frame, error) {
  if (error instanceof Refused && error.status === 401) {
    askForToken(frame);
    return;
  }
  if (passes(error)) {
    setTimeout(() => { if (frame.isConnected) route(); }, pause);
    pause = Math.min(2 * pause, AGAIN_MS[1]);
  }
  frame.replaceChildren(el("div", { class: "notice bad", role: "alert" },
    el("p", {}, error instanceof Refused ? error.message : "The stack does not respond. Is `daybook dev` running?"),
    passes(error) ? el("p", { class: "faint" }, "The page retries automatically.") : "",
    el("p", {}, el("button", { type: "button", onclick: route }, "Try again"), " ", el("a", { href: "#/" }, "All sessions"))));
}

function askForToken(frame) {
  const token = el("input", { type: "password", id: "token", autocomplete: "off", required: true });
  const said = el("p", { role: "alert", class: "bad" });
  const form = el("form", { class: "notice" },
    el("label", { for: "token" }, "Token of this stack (DAYBOOK_TOKEN)"), token,
    el("button", {}, "Log in"), said);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await logIn(token.value);
      route();
    } catch (error) {
      said.textContent = visible(error.message);
    }
  });
  frame.replaceChildren(form);
  token.focus();
}

// --- theme: the system's until the user chooses one ---

const theme = document.getElementById("theme");
const systemDark = matchMedia("(prefers-color-scheme: dark)");

function paint() {
  const chosen = localStorage.getItem("theme");
  const isDark = chosen ? chosen === "dark" : systemDark.matches;
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  theme.textContent = isDark ? "Light" : "Dark";
  theme.setAttribute("aria-label", `Switch to ${isDark ? "light" : "dark"} theme`);
}

theme.addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  paint();
});
systemDark.addEventListener("change", paint);
paint();

// --- keys ---

const help = document.getElementById("help");
document.getElementById("keys").addEventListener("click", () => help.showModal());

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, dialog[open]");
  if (event.key === "Escape" && event.target.matches("input, textarea")) event.target.blur();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "?") help.showModal();
  else if (!view?.key(event.key)) return;
  event.preventDefault();
});

addEventListener("hashchange", route);
route();
