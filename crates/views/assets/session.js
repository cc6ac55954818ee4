// Shows one session: a summary that stays in sight, the open question, the conclusion, and tabs: conversation, timeline, graph,
// cost and audit.

import { get, path, post, watch } from "./api.js";
import { coded, badgeOf, conclusion as concluded } from "./conclusion.js";
import { dataView } from "./data.js";
import { OPEN, age, askToCancel, badge, button, clock, copier, duration, el, needs, number, titled, tokens, visible, when, wideTable } from "./dom.js";
import { keyOf, questionCard } from "./inbox.js";
import { picture } from "./picture.js";
import { again } from "./start.js";
import { ledger, runs } from "./tables.js";
import { conversation } from "./talk.js";
import { timeline } from "./timeline.js";

/** Longer sessions are verified on request only: verification reads every payload. */
const VERIFIED_STEPS = 2000;
const LIVE_MS = 1000;
const TABS = [["summary", "Summary"], ["talk", "Conversation"], ["timeline", "Timeline"], ["graph", "Graph"], ["cost", "Cost"], ["audit", "Audit"]];
/** The chip of a verification, by the word of `daybook verify`. Only an anchored session is verified. */
const SEALS = {
  sound: ["✓ Verified", "verified"], consistent: ["Consistent, no anchor", "unproven"], open: ["Consistent, still open", "unproven"],
  "not provable": ["Not provable", "unproven"], damaged: ["✗ Damaged", "damaged"],
};

export async function session(frame, [id, ...wanted], { name, connected, query }) {
  let shown = null;
  let tab = null;
  let unwatch = null;
  let ticking = null;
  let left = false;
  /** Cards of questions: those that were answered stay in their place. */
  const cards = [];
  /** The result of the verification, once it is known. */
  let verified = null;

  const heading = el("div", { class: "line1" });
  const facts = el("div", { class: "facts" });
  const acts = el("div", { class: "acts" });
  const seal = el("button", { type: "button", class: "chip unproven", hidden: true, onclick: () => choose("audit") });
  const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Views of this session" }, TABS.map(([key, words]) =>
    el("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": "panel", onclick: () => choose(key) }, words)));
  const said = el("p", { class: "faint", role: "status" });
  const question = el("section", { class: "question", "aria-label": "Open questions", "aria-live": "polite" });
  const conclusion = el("section", { class: "conclusion", "aria-label": "Conclusion" });
  const result = el("section", { class: "result" });
  const panel = el("div", { id: "panel", role: "tabpanel", class: "panel-body" });
  const rows = timeline(id, { moved: (rest) => remember(rest), connected });
  const talk = conversation(id, { send, reveal: (sk) => { choose("timeline"); rows.go(sk, ""); } });
  const bodies = { graph: el("section", { class: "graphs", "aria-label": "Paths taken" }), cost: el("div"), audit: el("div") };
  const aside = el("div", { class: "aside" }, conclusion, result);
  const told = el("div", { class: "told" }, aside, panel);
  frame.append(el("header", { class: "summary" }, heading, facts, acts, said, tabs), question, told);
  // A wide screen has room for the summary beside every tab.
  const wide = matchMedia("(min-width: 1600px)");
  const rearrange = () => { if (tab) choose(tab); };
  wide.addEventListener("change", rearrange);
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const there = TABS.filter(([key]) => !tabs.querySelector(`#tab-${key}`).hidden);
    const place = there.findIndex(([key]) => key === tab);
    choose(there[(place + step + there.length) % there.length][0]);
    document.getElementById(`tab-${tab}`).focus();
    event.preventDefault();
    event.stopPropagation();
  });

  async function refresh() {
    shown = await get(path(id, "/timeline"));
    shown.at = performance.now();
    draw();
  }

  function draw() {
    const { session: drawn } = shown;
    const isOpen = OPEN.includes(drawn.status);
    name(`${titled(drawn)} · ${drawn.agent ?? "no agent"}`);
    drawSummary();
    drawQuestion();
    drawOnce(conclusion, [shown.failure, shown.conclusion, shown.citations], conclude);
    drawOnce(result, [drawn.result], results);
    arrange();
    drawTab();
    if (!isOpen) offerVerifying();
    clearTimeout(ticking);
    if (isOpen && !left) ticking = setTimeout(tick, LIVE_MS);
  }

  /** Time goes on without new records. */
  function tick() {
    drawSummary();
    if (tab === "timeline") rows.grow();
    if (!left) ticking = setTimeout(tick, LIVE_MS);
  }

  // --- summary ---

  function drawSummary() {
    const { session: drawn, waterfall } = shown;
    const isOpen = OPEN.includes(drawn.status);
    const elapsed = drawn.elapsed_ms === null ? null : drawn.elapsed_ms + (isOpen ? performance.now() - shown.at : 0);
    const claims = waterfall.lanes.filter((lane) => lane.epoch).length;
    const verdict = shown.conclusion?.verdict ?? (drawn.verdict ? { word: drawn.verdict, tone: drawn.verdict_tone ?? "neutral" } : null);
    drawOnce(heading, [drawn.title, drawn.agent, drawn.status, verdict], () => [el("h1", {}, titled(drawn)), badge(drawn.status), verdict ? badgeOf(verdict) : null, seal]);
    const words = [drawn.agent ?? "no agent", drawn.version ? `version ${drawn.version}` : "", duration(elapsed), `${number(drawn.steps)} ${drawn.steps === 1 ? "step" : "steps"}`,
      tokens(drawn.tokens, drawn.usd), claims > 1 ? `${claims} claims` : ""].filter(Boolean);
    drawOnce(facts, [words, age(drawn.initiated_at), drawn.error, drawn.fallback, drawn.asleep_until, drawn.needs_version], () => [
      ...words.map((fact) => el("span", {}, fact)), el("span", {}, "started ", when(drawn.initiated_at), ` (${age(drawn.initiated_at)})`), el("code", { class: "id" }, id),
      drawn.error && !shown.failure ? el("span", { class: "bad text" }, drawn.error) : null,
      drawn.fallback ? el("span", { class: "warn" }, drawn.fallback.message) : null,
      drawn.asleep_until ? el("span", { class: "warn" }, "sleeping until ", when(drawn.asleep_until)) : null,
      drawn.needs_version ? el("span", { class: "warn" }, needs(drawn.needs_version)) : null]);
    drawActs();
  }

  /** Redraws the buttons only when they change: a replaced button loses the keyboard focus. */
  function drawActs() {
    const { status, needs_version: lacking } = shown.session;
    // A verdict is final: only an open session without a running workflow can be resumed.
    const isLeft = OPEN.includes(status) && shown.machine && shown.machine.status !== "RUNNING";
    drawOnce(acts, [status, isLeft, lacking?.registered], () => [
      isLeft ? button("Resume: its workflow has stopped", () => send("resume", {}), { class: "primary" }) : null,
      lacking ? button(`Try again with version ${lacking.version}`, () => send("resume", {})) : null,
      ...(lacking?.registered ?? []).map((version) => button(`Continue with version ${version}`, () => send("resume", { as_version: version }))),
      button("Run again", runAgain),
      el("a", { class: "button", href: edited() }, "Edit and run"),
      el("a", { class: "button", href: `#/compare/${encodeURIComponent(id)}/before` }, "Compare with previous run"),
      copier("Copy id", () => id),
      OPEN.includes(status) ? button("Cancel session", () => askToCancel("Cancel this session?", (body) => send("cancel", body)), { class: "danger" }) : null,
    ]);
  }

  /** The address of the form with this session's input. */
  const edited = () => `#/new/${encodeURIComponent(shown.session.agent ?? "")}?from=${encodeURIComponent(id)}`;

  async function runAgain(event) {
    const pressed = event.currentTarget;
    pressed.disabled = true;
    try {
      location.hash = `#/session/${await again(id, crypto.randomUUID())}`;
    } catch (error) {
      tell(error.message, true);
      pressed.disabled = false;
    }
  }

  /** Redraws a section only when its data change, so that focus and scroll position stay. */
  function drawOnce(into, data, make) {
    const text = JSON.stringify(data);
    if (into.dataset.text === text) return;
    into.dataset.text = text;
    into.replaceChildren(...make().flat().filter(Boolean));
  }

  function tell(words, isBad = false) {
    said.className = isBad ? "bad" : "faint";
    said.textContent = visible(words);
  }

  // --- the open question ---

  function drawQuestion() {
    const { session: drawn } = shown;
    const current = drawn.open_question ? keyOf(drawn) : null;
    for (const card of cards) if (card.key !== current && !card.isOver()) card.elsewhere();
    // No further question can take the place of a button.
    if (!OPEN.includes(drawn.status)) for (const card of cards) { card.element.style.minHeight = ""; card.element.classList.add("closed"); }
    if (!current || cards.some((card) => card.key === current && !card.isOver())) return;
    // A question that was asked again replaces its former card.
    const card = questionCard(drawn, { answered: () => refresh().catch(() => connected(false)) });
    cards.push(card);
    question.append(card.element);
  }

  // --- conclusion ---

  function conclude() {
    conclusion.classList.toggle("bad-end", shown.failure?.tone === "bad");
    conclusion.classList.toggle("plain-end", shown.failure?.tone === "plain");
    return [...(shown.failure ? failed(shown.failure) : []), ...(shown.conclusion ? concluded(shown.conclusion, citation) : [])];
  }

  function failed({ title, tone, what, at, next, session: other }) {
    const category = shown.session.error_category ?? "";
    return [
      el("h2", {}, title, tone === "bad" && !["", "unknown"].includes(category) ? el("code", { class: "tag" }, category) : null),
      el("p", { class: `text what ${tone === "bad" ? "bad" : ""}` }, what),
      other ? el("p", {}, "The other session: ", el("a", { href: `#/session/${encodeURIComponent(other)}` }, other)) : null,
      at ? el("p", {}, "Where: ", link(at.sk, "", at.name)) : null,
      next.length ? el("h3", {}, "What to do next") : null,
      next.length ? el("ol", {}, next.map((text) => el("li", { class: "text" }, coded(text)))) : null,
      /^(InputError|InvalidTrigger|EntrypointError):/.test(shown.session.error ?? "") ? el("p", {}, el("a", { class: "button primary", href: edited() }, "Correct and run")) : null,
    ];
  }

  function citation(claim) {
    const found = claim && shown.citations?.find((known) => known.claim === claim);
    return found ? link(`STEP#${String(found.seq).padStart(8, "0")}`, found.pointer, `→ step ${found.seq}`) : null;
  }

  /** A link to a record, and to a part of it. */
  function link(sk, pointer, words) {
    return el("a", { class: "cite", href: `#/session/${encodeURIComponent(id)}/${encodeURIComponent(sk)}${pointer.split("/").map(encodeURIComponent).join("/")}` }, words);
  }

  function results() {
    const value = shown.session.result;
    if (!value) return [];
    return [el("details", { class: "panel", open: !shown.conclusion }, el("summary", {}, el("h2", {}, "Result")), dataView(value, { label: "Result" }))];
  }

  // --- tabs ---

  const hasSummary = () => Boolean(shown?.failure || shown?.conclusion || shown?.session.result);

  /** Shows the summary as a tab, or on a wide screen beside the others. */
  function arrange() {
    const isBeside = wide.matches && hasSummary();
    told.classList.toggle("both", isBeside);
    aside.hidden = !isBeside && tab !== "summary";
    panel.hidden = tab === "summary" && !isBeside;
    tabs.querySelector("#tab-summary").hidden = isBeside || !hasSummary();
  }

  function choose(key) {
    const canShow = key !== "summary" || (hasSummary() && !wide.matches);
    tab = canShow ? key : "timeline";
    arrange();
    for (const [other] of TABS) {
      const item = tabs.querySelector(`#tab-${other}`);
      item.setAttribute("aria-selected", String(other === tab));
      item.tabIndex = other === tab ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `tab-${tab}`);
    panel.replaceChildren(...[{ talk: talk.element, timeline: rows.element }[tab] ?? bodies[tab]].filter(Boolean));
    remember("");
    if (shown) drawTab();
  }

  function drawTab() {
    if (tab === "talk") talk.update(shown);
    else if (tab === "timeline") rows.update(shown);
    else if (tab === "graph") drawOnce(bodies.graph, [shown.machine, shown.graph], pictures);
    else if (tab === "cost") drawOnce(bodies.cost, [shown.ledger], () => [ledger(shown.ledger) ?? el("p", { class: "faint" }, "No effects yet.")]);
    else if (tab === "audit") drawOnce(bodies.audit, [shown.runs, shown.lease, verified, shown.waterfall.rows.length], audit);
  }

  function pictures() {
    const { machine, graph } = shown;
    const notes = [
      machine?.status && machine.status !== "RUNNING" ? `execution ${machine.status.toLowerCase()}` : "",
      machine?.executions > 1 ? `${machine.executions} executions` : "", machine?.is_cut ? "newest states only" : "",
    ].filter(Boolean).join(" · ");
    const visits = (node) => { choose("timeline"); rows.filter(node); };
    return [graph ? picture("Agent graph", graph, "Click a node for its records.", visits) : null, machine?.drawing ? picture("State machine", machine.drawing, notes) : null];
  }

  // --- audit: the hash chain, and who did what ---

  function audit() {
    const people = el("section", { class: "panel" }, el("h2", {}, "Who did what"), el("p", { class: "faint" }, "fetching …"));
    get(path(id)).then(({ events, steps }) => {
      const acted = [...events.map((event) => [event.timestamp, event.status, event.principal, event.writer]), ...steps.map((step) => [step.finished_at, `step ${step.seq}, ${step.kind}`, step.principal, ""])]
        .filter(([, , principal]) => principal).sort(([a], [b]) => (a < b ? -1 : 1));
      people.lastChild.replaceWith(acted.length === 0 ? el("p", { class: "faint" }, "No record names a person.")
        : wideTable("Who did what", ["When", "What", "Who"], acted.map(([at, what, principal]) => [clock(at), what, principalOf(principal)])));
    }).catch((error) => { people.lastChild.textContent = visible(error.message); });
    return [el("section", { class: "panel" }, el("h2", {}, "Hash chain"), ...proof()), people, runs(shown.runs, shown.lease, shown.machine)];
  }

  function proof() {
    if (!verified) return [el("p", { class: "faint seal" }, OPEN.includes(shown.session.status) ? "Verified once the session has ended." : "Not verified yet."), button("Verify the hash chain", verify)];
    if (verified.error) return [el("p", { class: "bad seal" }, verified.error), button("Verify the hash chain", verify)];
    const about = `${verified.records} records, ${verified.state}`;
    // The words of `daybook verify`; only an anchored session is sound.
    const words = {
      damaged: "✗ damaged: verification failed",
      "not provable": `? not provable: ${[verified.state, ...verified.unmet].join("; ")}`,
      sound: `✓ sound: the hash chain verifies and an anchor names the verdict: ${about}`,
      consistent: `~ consistent: the hash chain verifies, without an anchor: ${about}`,
      open: `~ open: the hash chain verifies, without a verdict: ${about}`,
    };
    const facts = [["Anchors", verified.anchors?.join(", ")], ["Unsealed", verified.unsealed?.join?.(", ")]].filter(([, value]) => value);
    return [el("p", { class: verified.word === "damaged" ? "bad seal" : "seal" }, words[verified.word] ?? verified.word),
      facts.length ? el("dl", { class: "fields" }, facts.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)])) : "",
      verified.damage.length ? el("ul", {}, verified.damage.map((line) => el("li", { class: "text" }, line))) : "", button("Verify again", verify)];
  }

  /** Verifies the hash chain once; long sessions only on request. */
  function offerVerifying() {
    if (seal.dataset.asked) return;
    seal.dataset.asked = "yes";
    if (shown.session.steps <= VERIFIED_STEPS) verify();
  }

  async function verify() {
    try {
      verified = await get(path(id, "/verify"));
      const [words, kind] = SEALS[verified.word] ?? [verified.word, "unproven"];
      seal.className = `chip ${kind}`;
      seal.textContent = words;
    } catch (error) {
      verified = { error: visible(error.message) };
      seal.className = "chip unproven";
      seal.textContent = "Not verified";
    }
    seal.hidden = false;
    drawTab();
  }

  // --- actions and live updates ---

  async function send(what, body) {
    tell("sending …");
    try {
      await post(path(id, `/${what}`), body);
      tell({ cancel: "Cancellation recorded.", resume: "Resumed.", answer: "Answer recorded." }[what]);
      await refresh();
      if (what === "resume") listen();
      return true;
    } catch (error) {
      tell(error.message, true);
      return false;
    }
  }

  /** Keeps tab and record in the address, so that reloads and links restore them; not once another view is shown. */
  function remember(rest) {
    const where = `#/session/${encodeURIComponent(id)}${rest}`;
    if (frame.isConnected) history.replaceState(null, "", rest || tab === "summary" ? where : `${where}?tab=${tab}`);
  }

  /** Opens the record that the address names, at the part that it cites. */
  function go([sk, ...place], text = "") {
    if (!sk) {
      const other = new URLSearchParams(text).get("tab") ?? "summary";
      if (other !== tab && TABS.some(([known]) => known === other)) choose(other);
      return;
    }
    if (tab !== "timeline") choose("timeline");
    rows.go(sk, place.map((part) => `/${part}`).join(""));
  }

  function key(pressed) {
    const place = Number(pressed);
    const there = TABS.filter(([known]) => !tabs.querySelector(`#tab-${known}`).hidden);
    if (place >= 1 && place <= there.length) choose(there[place - 1][0]);
    else if (tab === "timeline" && rows.key(pressed)) return true;
    else if (["j", "k", "ArrowDown", "ArrowUp"].includes(pressed) && tab !== "talk") { choose("timeline"); rows.key(pressed); }
    else return false;
    return true;
  }

  function listen() {
    unwatch?.();
    unwatch = watch(id, {
      connected,
      isOver: () => !OPEN.includes(shown.session.status),
      changed: () => refresh().then(() => connected(true), () => connected(false)),
      progressed: (news) => {
        const share = news.total ? `${Math.round((100 * news.progress) / news.total)} %` : String(news.progress ?? "");
        tell(["running", news.tool, share, news.message].filter(Boolean).join(" · "));
      },
    });
  }

  const asked = query.get("tab");
  shown = await get(path(id, "/timeline"));
  shown.at = performance.now();
  choose(wanted[0] ? "timeline" : TABS.some(([known]) => known === asked) ? asked : "summary");
  draw();
  if (OPEN.includes(shown.session.status)) listen();
  if (wanted[0]) go(wanted);
  return {
    key, go: ([other, ...rest], text) => other === id && (go(rest, text), true),
    leave: () => { left = true; wide.removeEventListener("change", rearrange); clearTimeout(ticking); unwatch?.(); rows.leave(); for (const card of cards) card.leave(); },
  };
}

/** A principal in words. */
function principalOf(principal) {
  return typeof principal === "string" ? principal : Object.values(principal).filter((part) => typeof part === "string").join(" ");
}
