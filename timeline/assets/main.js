// Which view is shown, and what all views share: the theme, the keys, the connection's state.

import { AGAIN_MS, Refused, logIn } from "./api.js";
import { compare } from "./compare.js";
import { el } from "./dom.js";
import { health } from "./health.js";
import { list } from "./list.js";
import { session } from "./session.js";

const main = document.getElementById("main");
const place = document.getElementById("place");
const connection = document.getElementById("connection");
let view = null;
let shownKind = null;

/** What a view tells of its connection: true, false with what is wrong, or null when there is none to keep. */
function connected(state, wrong) {
  connection.textContent = state === false ? `${wrong ?? "not connected"}, trying again` : "";
  connection.className = state === false ? "bad" : "";
}

/** Views by the first word of the address; each gets the rest of it. */
const VIEWS = { session, compare, health, "": list };

async function route() {
  const [where, query = ""] = location.hash.split("?");
  const [, kind = "", ...coded] = where.split("/");
  const rest = coded.map(decodeURIComponent);
  // A view that is there already may know its way to what the address names.
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
    // Whoever went on before this view was there does not get it.
    if (!frame.isConnected) return made.leave();
    view = made;
    pause = AGAIN_MS[0];
  } catch (error) {
    fail(frame, error);
  }
}

/** Whether it may be over in a while: a stack that starts, or a session of which nothing is written yet. */
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
    el("p", {}, error instanceof Refused ? error.message : "The stack does not answer. Is `daybook dev` running?"),
    passes(error) ? el("p", { class: "faint" }, "The page looks again by itself.") : "",
    el("p", {}, el("button", { type: "button", onclick: route }, "Try again"), " ", el("a", { href: "#/" }, "All sessions"))));
}

function askForToken(frame) {
  const token = el("input", { type: "password", id: "token", autocomplete: "off", required: true });
  const said = el("p", { role: "alert", class: "bad" });
  const form = el("form", { class: "notice" },
    el("label", { for: "token" }, "This stack wants its token (DAYBOOK_TOKEN)"), token,
    el("button", {}, "Go on"), said);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await logIn(token.value);
      route();
    } catch (error) {
      said.textContent = error.message;
    }
  });
  frame.replaceChildren(form);
  token.focus();
}

// --- theme: the system's until somebody chooses ---

const theme = document.getElementById("theme");
const systemDark = matchMedia("(prefers-color-scheme: dark)");

function paint() {
  const chosen = localStorage.getItem("theme");
  const isDark = chosen ? chosen === "dark" : systemDark.matches;
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  theme.textContent = isDark ? "Light" : "Dark";
  theme.setAttribute("aria-label", `Change to ${isDark ? "light" : "dark"} colours`);
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
