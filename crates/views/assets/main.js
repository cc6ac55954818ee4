// Routes addresses to views, and holds what views share: theme, keyboard shortcuts, title, connection status, and how many
// questions wait.

import { AGAIN_MS, Refused, get, logIn } from "./api.js";
import { el, skeleton, visible } from "./dom.js";
import { list } from "./list.js";

const main = document.getElementById("main");
const connection = document.getElementById("connection");
const needs = document.getElementById("needs");
let view = null;
let shownKind = null;
let title = "";
let waiting = 0;

/** Shows a view's connection status: true, false with the reason, or null if the view keeps no connection. */
function connected(state, wrong) {
  connection.textContent = state === false ? visible(`${wrong ?? "not connected"}, retrying`) : "";
  connection.className = state === false ? "bad" : "";
}

/** Names the tab: what is shown, and how many questions wait. */
function name(words = title) {
  title = words;
  document.title = visible(`${waiting ? `(${waiting}) ` : ""}${title ? `${title} · ` : ""}Daybook`);
}

/** Views by the first segment of the address; each gets the other segments. All but the list are fetched when they are first shown. */
const VIEWS = {
  session: async (...given) => (await import("./session.js")).session(...given),
  compare: async (...given) => (await import("./compare.js")).compare(...given),
  executions: async (...given) => (await import("./executions.js")).executions(...given),
  health: async (...given) => (await import("./health.js")).health(...given),
  inbox: async (...given) => (await import("./inbox.js")).inbox(...given),
  new: async (...given) => (await import("./start.js")).begin(...given),
  "": list,
};

async function route() {
  const [where, query = ""] = location.hash.split("?");
  const [, kind = "", ...coded] = where.split("/");
  let rest = null;
  try { rest = coded.map(decodeURIComponent); } catch { location.replace("#/"); return; }
  // The view that is shown may handle the address itself.
  if (kind === shownKind && view?.go?.(rest, query)) return;
  leave();
  shownKind = kind;
  connected(null);
  const frame = el("div", { class: "view" });
  const wait = skeleton();
  main.replaceChildren(frame, wait);
  name({ inbox: "Needs you", executions: "Executions", health: "Health", new: "New session", compare: "Comparison", session: "Session" }[kind] ?? "Sessions");
  // One solid button a view: the others have their own.
  document.getElementById("new").classList.toggle("primary", kind === "" || kind === "health");
  for (const item of document.querySelectorAll("nav a")) {
    if (item.dataset.kind === kind) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
  try {
    const made = await (VIEWS[kind] ?? list)(frame, rest, { name, connected, counted, query: new URLSearchParams(query) });
    // The user has navigated away while this view was loading.
    if (!frame.isConnected) return made.leave?.();
    view = made;
    pause = AGAIN_MS[0];
  } catch (error) {
    fail(frame, error);
  } finally {
    wait.remove();
  }
}

/** Leaves the view that is shown. */
function leave() {
  view?.leave?.();
  view = null;
}

/** Whether the error may be transient: the stack is starting, or the session has no records yet. */
const passes = ({ status }) => status === undefined || status === 503 || (status === 404 && shownKind === "session");
let pause = AGAIN_MS[0];

function fail(frame, error) {
  // The form for the token is shown.
  if (error.status === 401) return;
  if (passes(error)) {
    setTimeout(() => { if (frame.isConnected) route(); }, pause);
    pause = Math.min(2 * pause, AGAIN_MS[1]);
  }
  frame.replaceChildren(el("div", { class: "notice bad", role: "alert" },
    el("p", {}, error instanceof Refused ? error.message : "The stack does not respond. Is `daybook dev` running?"),
    passes(error) ? el("p", { class: "faint" }, "The page retries automatically.") : "",
    el("p", {}, el("button", { type: "button", onclick: route }, "Try again"), " ", el("a", { href: "#/" }, "All sessions"))));
}

/** Asks for the token above the view: what was typed there stays until the login. */
function askForToken() {
  if (document.getElementById("token")) return;
  const token = el("input", { type: "password", id: "token", autocomplete: "off", required: true });
  const said = el("p", { role: "alert", class: "bad" });
  const form = el("form", {},
    el("label", { for: "token" }, "Token of this stack (DAYBOOK_TOKEN)"), token,
    el("button", { class: "primary" }, "Log in"), said);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await logIn(token.value);
      dialog.close();
      // Answers that were not sent are sent now.
      leave();
      route();
      count();
    } catch (error) {
      said.textContent = visible(error.message);
    }
  });
  const dialog = el("dialog", { "aria-label": "Log in", onclose: () => dialog.remove() }, form);
  document.body.append(dialog);
  dialog.showModal();
}

// --- how many questions wait ---

const COUNTED_MS = 4000;
const COUNTED_MAX = 50;
let counting = null;

/** Shows the number of open questions in the header and in the tab's title, and notifies if there are more than before. */
function counted(open, isMore = false) {
  if (open.length > waiting && document.hidden && globalThis.Notification?.permission === "granted") {
    const { prompt } = open[0].open_question;
    new Notification("Daybook needs you", { body: visible(prompt).slice(0, 200), tag: "daybook" });
  }
  waiting = open.length;
  needs.textContent = waiting ? `Needs you (${waiting}${isMore ? "+" : ""})` : "Needs you";
  needs.classList.toggle("asks", waiting > 0);
  name();
}

async function count() {
  clearTimeout(counting);
  try {
    const { sessions, more } = await get(`/api/sessions?status=WAITING&limit=${COUNTED_MAX}`);
    counted(sessions.filter((session) => session.open_question), more !== null);
  } catch { /* The view reports connection problems. */ }
  counting = setTimeout(count, document.hidden ? 5 * COUNTED_MS : COUNTED_MS);
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
const GOES = { n: "#/new", i: "#/inbox" };

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, dialog[open]");
  if (event.key === "Escape" && event.target.matches("input, textarea")) event.target.blur();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "?") help.showModal();
  else if (view?.key?.(event.key)) { /* The view handled it. */ } else if (GOES[event.key]) location.hash = GOES[event.key];
  else if (event.key === "Escape" && shownKind) location.hash = "#/";
  else return;
  event.preventDefault();
});

addEventListener("hashchange", route);
addEventListener("loggedout", askForToken);
// The answers that can still be undone are sent when the tab closes. A page that comes back is drawn anew.
addEventListener("pagehide", leave);
addEventListener("pageshow", (event) => { if (event.persisted) route(); });
route();
count();
