// Starts a session: agents as cards, a form from the schema of the chosen agent's input, and the same as a command.

import { get, path, start } from "./api.js";
import { button, copier, el, visible } from "./dom.js";

/** Longer texts get a field of several lines. */
const LONG_CHARS = 200;
const OFFERED = 3;

/** A text as one argument of a shell. */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The first type of a schema that is not null. */
const typeOf = (schema) => [schema.type ?? []].flat().find((type) => type !== "null") ?? (schema.enum ? "string" : "object");

const isEmpty = (schema) => Object.keys(schema?.properties ?? {}).length === 0;

/** An example of an agent's input: the schema's own, or nothing for an agent that needs none. */
function examples(agent) {
  const own = agent.input_schema?.examples ?? [];
  return own.length === 0 && isEmpty(agent.input_schema) ? [{}] : own;
}

const words = (example) => Object.values(example).filter((value) => typeof value === "string").join(" · ") || "no input";

/** Cards of a few sessions that run without any preparation; a click starts one. */
export function offers() {
  const frame = el("div", { class: "cards" });
  const said = el("p", { class: "bad", role: "alert" });
  get("/api/agents").then(({ agents, can_start: canStart }) => {
    if (!canStart) return;
    const ready = agents.flatMap((agent) => examples(agent).slice(0, 1).map((input) => ({ agent, input }))).slice(0, OFFERED);
    frame.append(...ready.map(({ agent, input }) => button([], async (event) => {
      const pressed = event.currentTarget;
      pressed.disabled = true;
      try {
        location.hash = `#/session/${await start({ agent: agent.name, input })}`;
      } catch (error) {
        said.textContent = visible(error.message);
        pressed.disabled = false;
      }
    }, { class: "card" })).map((card, index) => {
      const { agent, input } = ready[index];
      card.append(el("strong", {}, `Run ${agent.name}`), el("span", { class: "faint" }, agent.summary), el("code", {}, words(input)));
      return card;
    }));
  }).catch((error) => { said.textContent = visible(error.message); });
  return [frame, said];
}

/** The input and the settings that a session started with, or null. One that was refused before its first step has them in the refusal. */
export function begun({ steps, events }) {
  const found = [steps[0]?.outcome, ...events.map((event) => event.detail)].find((held) => held && typeof held === "object" && "input" in held);
  return found ? { input: found.input, settings: found.settings ?? {} } : null;
}

async function opening(id) {
  const whole = await get(path(id));
  const found = begun(whole);
  if (!found) throw new Error(`session ${id} has no recorded input`);
  return { agent: whole.session.agent, ...found };
}

/** Starts a session with the agent, input and settings of another one; returns its id. */
export async function again(id, key) {
  const { agent, input, settings } = await opening(id);
  const detail = { agent, input, dedupe_key: `again-${key}` };
  if (settings.model) detail.model = settings.model;
  return start(detail, key);
}

export async function begin(frame, [wanted], { name, query }) {
  const { agents, can_start: canStart } = await get("/api/agents");
  const from = query.get("from");
  let lost = null;
  const earlier = from ? await opening(from).catch((error) => { if (!error.message) throw error; lost = error.message; return null; }) : null;
  let agent = agents.find((known) => known.name === (wanted ?? earlier?.agent)) ?? null;
  if (!canStart) {
    frame.append(el("div", { class: "notice" }, el("p", {}, "Sessions of this journal start elsewhere. Use "), el("code", {}, "daybook trigger --target aws")));
    return {};
  }
  if (agent) form();
  else cards();

  function cards() {
    name("New session");
    frame.replaceChildren(el("h1", {}, "New session"), el("p", { class: "faint" }, "Choose an agent."),
      el("div", { class: "cards" }, agents.map((known) => el("a", { class: "card", href: `#/new/${encodeURIComponent(known.name)}` },
        el("strong", {}, known.name), el("span", { class: "faint" }, known.summary),
        el("span", { class: "small-text faint" }, [`version ${known.version}`, known.critical.length ? `asks before ${known.critical.length} ${known.critical.length === 1 ? "tool" : "tools"}` : ""].filter(Boolean).join(" · "))))));
  }

  function form() {
    name(`New session of ${agent.name}`);
    const schema = agent.input_schema ?? {};
    let input = earlier && earlier.agent === agent.name ? structuredClone(earlier.input) : structuredClone(examples(agent)[0] ?? {});
    let key = crypto.randomUUID();
    let asJson = isOdd(input);
    const fields = el("div", { class: "form" });
    const wrong = el("p", { class: "bad", role: "alert" });
    const model = el("input", { list: "models", placeholder: "the agent's default", autocomplete: "off", spellcheck: false, value: earlier?.settings?.model ?? "" });
    const budget = Object.fromEntries(["tokens", "usd", "seconds"].map((of) => [of, el("input", { type: "number", min: 0, step: of === "usd" ? "0.01" : "1", placeholder: "the agent's" })]));
    const run = el("button", { class: "primary" }, "Run");
    const toggle = button("", () => { if (read()) { asJson = !asJson; draw(); } }, { class: "quiet" });
    const made = el("form", { class: "form", onsubmit: submit, oninput: () => { key = crypto.randomUUID(); } }, fields,
      el("div", { class: "pair" }, el("label", {}, "Model", model, el("datalist", { id: "models" }, ["policy", "bedrock:", "openai:"].map((value) => el("option", { value })))),
        el("label", {}, "Budget: tokens", budget.tokens), el("label", {}, "Budget: dollars", budget.usd), el("label", {}, "Budget: seconds", budget.seconds)),
      wrong,
      el("div", { class: "acts" }, run, toggle,
        copier("Copy as command", () => (read() ? `daybook trigger --detail ${quoted(JSON.stringify(detail()))}` : "")),
        copier("Copy as curl", () => (read() ? `curl -X POST ${location.origin}/api/sessions -H 'content-type: application/json' -H 'idempotency-key: ${key}' -d ${quoted(JSON.stringify(detail()))}` : ""))));
    const known = examples(agent).filter((example) => Object.keys(example).length > 0);
    frame.replaceChildren(el("p", {}, el("a", { href: "#/new" }, "All agents")), el("h1", {}, `New session of ${agent.name}`), el("p", { class: "faint" }, agent.summary),
      lost ? el("p", { class: "warn" }, lost) : "",
      from && earlier ? el("p", { class: "faint" }, "With the input of ", el("a", { href: `#/session/${encodeURIComponent(from)}` }, from)) : "",
      known.length ? el("div", { class: "bar" }, el("span", { class: "faint" }, "Examples"), known.map((example) =>
        button(words(example).slice(0, 60), () => { input = structuredClone(example); asJson = false; key = crypto.randomUUID(); draw(); }, { class: "chip" }))) : "",
      made);
    draw();

    /** Whether the form cannot show the input. */
    function isOdd(value) {
      if (value === null || typeof value !== "object" || Array.isArray(value)) return true;
      return Object.keys(value).some((field) => !(field in (schema.properties ?? {})));
    }

    function draw() {
      wrong.textContent = "";
      toggle.textContent = asJson ? "Edit as form" : "Edit as JSON";
      toggle.hidden = isEmpty(schema) && !asJson && agent.input_schema !== null && schema.additionalProperties === false;
      if (asJson || (isEmpty(schema) && schema.additionalProperties !== false)) {
        asJson = true;
        fields.replaceChildren(el("label", {}, "Input as JSON", el("textarea", { name: "json", rows: 10, spellcheck: false, value: JSON.stringify(input, null, 2) })));
        return;
      }
      if (isOdd(input)) { wrong.textContent = "The form lacks fields of this input."; asJson = true; draw(); return; }
      const required = schema.required ?? [];
      const drawn = Object.entries(schema.properties ?? {}).map(([field, of]) => drawField(field, of, input[field], required.includes(field)));
      fields.replaceChildren(...(drawn.length ? drawn : [el("p", { class: "faint" }, "This agent needs no input.")]));
    }

    /** Reads the form into `input`; says what is wrong, if anything. */
    function read() {
      try {
        if (asJson) input = JSON.parse(fields.querySelector("textarea").value);
        else for (const item of fields.querySelectorAll("[data-field]")) {
          const value = valueOf(item);
          if (value === undefined) delete input[item.dataset.field];
          else input[item.dataset.field] = value;
        }
        wrong.textContent = "";
        return true;
      } catch (error) {
        wrong.textContent = visible(error.message);
        return false;
      }
    }

    function detail() {
      const made = { agent: agent.name, input };
      if (model.value.trim()) made.model = model.value.trim();
      const limits = Object.entries(budget).filter(([, item]) => item.value !== "").map(([of, item]) => [of, Number(item.value)]);
      if (limits.length) made.budget = Object.fromEntries(limits);
      // The agent may take an equal input for a repetition; a person who runs it again means it.
      if (earlier) made.dedupe_key = `again-${key}`;
      return made;
    }

    async function submit(event) {
      event.preventDefault();
      if (!read()) return;
      run.disabled = true;
      try {
        location.hash = `#/session/${await start(detail(), key)}`;
      } catch (error) {
        wrong.textContent = visible(error.message);
      } finally {
        run.disabled = false;
      }
    }
  }

  return {};
}

function drawField(field, schema, value, isRequired) {
  const type = typeOf(schema);
  const common = { "data-field": field, "data-type": schema.enum ? "enum" : type, required: isRequired };
  let item;
  if (schema.enum) {
    const choices = schema.enum.map((choice) => el("option", { value: JSON.stringify(choice), selected: choice === value }, String(choice)));
    item = el("select", common, isRequired ? null : el("option", { value: "" }, "—"), choices);
  } else if (type === "boolean") item = el("select", common, [["", "—"], ["true", "yes"], ["false", "no"]].map(([of, label]) => el("option", { value: of, selected: String(value) === of }, label)));
  else if (type === "integer" || type === "number") item = el("input", { ...common, type: "number", step: type === "integer" ? "1" : "any", value: value ?? "" });
  else if (type === "string") item = (schema.maxLength ?? 0) > LONG_CHARS && !["path", "snapshot", "data", "inventory"].includes(field)
    ? el("textarea", { ...common, rows: 3, value: value ?? "" }) : el("input", { ...common, type: "text", value: value ?? "", spellcheck: false });
  else item = el("textarea", { ...common, rows: 4, spellcheck: false, value: value === undefined ? "" : JSON.stringify(value, null, 2) });
  return el("label", {}, `${(schema.title ?? field).replaceAll("_", " ")}${isRequired ? "" : " (optional)"}`, item,
    schema.description ? el("span", { class: "hint" }, schema.description) : null);
}

/** The value of a field; undefined if it is empty. */
function valueOf(item) {
  const { field, type } = item.dataset;
  if (item.value === "") return undefined;
  if (type === "string") return item.value;
  if (type === "integer" || type === "number") return Number(item.value);
  try { return JSON.parse(item.value); } catch { throw new Error(`${field.replaceAll("_", " ")} is not valid JSON`); }
}
