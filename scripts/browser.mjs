// Tests the page in a headless Chromium against a stack of its own.
//
//   node browser.mjs INCIDENTS SCREENSHOTS [main]    INCIDENTS: the folder of bundled incidents; main: only the main path, up to
//                                                    the first answers
//
// stack.mjs lists what else it needs. Prints a line for each check and exits 1 at the first failure. Saves
// a picture of each view in SCREENSHOTS.

import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gzipSync } from "node:zlib";
import { aws, browse, require, settled, start, stop, trigger, until } from "./stack.mjs";

const WITHIN_MS = 260_000;
const [incidents, screenshots, part] = process.argv.slice(2);
// A caller's timeout would leave the stack running.
setTimeout(() => { console.error(`not done after ${WITHIN_MS} ms`); process.exit(1); }, WITHIN_MS).unref();
const { FOLDER, DAYBOOK } = process.env;
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
/** What a phone on a slow line gets in a second. */
const FIRST_LOAD_BYTES_MAX = 60_000;
/** Until a stack that is to stop has heard of it. */
const GATE_AFTER_MS = 500;
/** For a few hostile texts of 20,000 characters each, on a busy machine. */
const MARKDOWN_MS_MAX = 5000;
const MARKUP = "<img src=x onerror=alert(1)>";

// --- what there is to see ---

// The network agent's server starts when the gate is there, so that things can happen in the middle of a run.
const gate = join(FOLDER, "gate");
const gated = { command: "sh", args: ["-c", 'until [ -e "$2" ]; do sleep 0.1; done; exec "$0" mcp network-inventory --inventory "$1"',
  DAYBOOK, join(incidents, "../../network/networks/mtu-mismatch/network.json"), gate] };
writeFileSync(join(FOLDER, "servers.json"), JSON.stringify({ mcpServers: { "network-inventory": gated } }));
const environment = { DAYBOOK_MCP_SERVERS: join(FOLDER, "servers.json"), MCP_CONNECT_TIMEOUT: "120", MCP_INIT_TIMEOUT: "120", PATH: process.env.PATH,
  // What the triggers below name.
  DAYBOOK_ALLOWED_PATHS: `${incidents}:${FOLDER}` };

// An incident whose logs somebody wrote who would like to run a script in the reader's browser.
const hostile = join(FOLDER, "hostile");
cpSync(join(incidents, "s3-permission-revoked"), hostile, { recursive: true });
const logs = join(hostile, "functions/data-processor/filter-log-events.json");
for (const file of [logs, join(hostile, "incident.json")]) {
  writeFileSync(file, readFileSync(file, "utf8").replaceAll("An error occurred", `${MARKUP} An error occurred`));
}

const incident = (folder) => ({ agent: "incident", dedupe_key: String(Math.random()),
  input: { ...JSON.parse(readFileSync(join(folder, "incident.json"), "utf8")), snapshot: folder } });
const assistant = (message) => ({ agent: "assistant", input: { message } });
const asking = assistant("simulate 250 mg of theophylline every 8 h for 1 day");

const endpoint = await start("127.0.0.1:0", environment);
const put = (detail) => trigger(endpoint, detail);

// --- the browser ---

const browser = await browse();
const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: "reduce", colorScheme: "light" });
context.setDefaultTimeout(20_000);
const page = await context.newPage();
const problems = [];
let isDown = false;
page.on("console", (message) => { if (["error", "warning"].includes(message.type()) && !isDown) problems.push(message.text()); });
page.on("pageerror", (error) => problems.push(String(error)));
page.on("dialog", (dialog) => { problems.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
page.on("request", (request) => { if (!request.url().startsWith(endpoint)) problems.push(`a request to ${request.url()}`); });

async function seen(what, check) {
  const began = Date.now();
  await check();
  assert.deepEqual(problems, [], what);
  console.log(`seen: ${what} (${Date.now() - began} ms)`);
}

/** Looks at the whole of a view, in light and dark: a picture, and nothing serious for people who read with a screen reader, by keyboard or with weak eyes. */
async function look(view) {
  for (const theme of ["light", "dark"]) {
    await page.evaluate((name) => { document.documentElement.dataset.theme = name; }, theme);
    await page.screenshot({ path: join(screenshots, `${view}-${theme}.png`), fullPage: true });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    const serious = violations.filter((found) => ["serious", "critical"].includes(found.impact));
    assert.deepEqual(serious.map((found) => `${found.id}: ${found.nodes.map((node) => `${node.html} ${node.failureSummary}`).join("\n")}`), [], `${view}, ${theme}`);
  }
  await page.evaluate(() => { document.documentElement.dataset.theme = "light"; });
}

const go = (route) => page.evaluate((hash) => { location.hash = hash; }, route);
const text = (selector) => page.locator(selector).innerText();
const rows = () => page.locator(".sessions tbody tr[data-id]");
const count = (n) => page.waitForFunction((wanted) => document.querySelectorAll(".sessions tbody tr[data-id]").length === wanted, n);
const shows = async (id) => page.locator(".summary .id", { hasText: id }).waitFor();
/** Opens a session at its timeline. */
const open = async (id) => {
  await go(`#/session/${id}?tab=timeline`);
  await shows(id);
  await page.locator(".row").first().waitFor();
};
const tab = (name) => page.getByRole("tab", { name, exact: true }).click();
/** Clicks a filter of the list, which is taken back by a second click. */
const facet = (value) => page.locator(`[data-facet="${value}"]`).click();
const button = (name) => page.getByRole("button", { name, exact: true });
const badge = (word) => page.locator(".summary .badge", { hasText: word }).waitFor();

// --- the list ---

const loaded = [];
// A stream has no end.
page.on("response", (response) => { if (!response.url().includes("/api/changes")) loaded.push(response); });
await page.goto(endpoint);
await page.getByText("No sessions yet").waitFor();
page.removeAllListeners("response");
await seen(`the first load has less than ${FIRST_LOAD_BYTES_MAX} bytes, compressed`, async () => {
  const sizes = await Promise.all(loaded.map(async (response) => gzipSync(await response.body()).length));
  const all = sizes.reduce((sum, size) => sum + size, 0);
  console.log(`the first load: ${loaded.length} files, ${all} bytes`);
  assert.ok(loaded.length > 8 && all < FIRST_LOAD_BYTES_MAX);
});
await seen("an empty list says how to begin", async () => {
  await page.getByText("daybook trigger", { exact: true }).waitFor();
  await page.locator(".cards .card").nth(2).waitFor();
  await look("empty");
});
const first = await put(incident(join(incidents, "s3-permission-revoked")));
await seen("a session that is triggered appears by itself and is seen to end", async () => {
  await rows().locator(".badge", { hasText: "succeeded" }).waitFor();
  assert.match(await text(".sessions"), /s3:GetObject/);
});
const ids = { first };
for (const [name, detail] of Object.entries({
  again: incident(join(incidents, "s3-permission-revoked")), other: incident(join(incidents, "reserved-concurrency-zero")),
  hostile: incident(hostile), unknown: { agent: MARKUP }, failed: { agent: "incident", input: { lambda_name: "data-processor" } },
  said: assistant(`set ${MARKUP} to 5`), asking, second: asking,
})) ids[name] = await put(detail);
for (const id of Object.values(ids)) await settled(endpoint, id);
const all = Object.keys(ids).length;

await seen("the list has every session with its finding, and filters by status, agent, text and time", async () => {
  await count(all);
  for (const said of ["asks:", "McpConnection"]) await page.locator(".sessions", { hasText: said }).waitFor();
  await look("list");
  await facet("status:WAITING");
  await count(3);
  await facet("agent:assistant");
  await facet("status:WAITING");
  await count(3);
  await page.reload();
  await count(3);
  assert.equal(await page.getByRole("searchbox").inputValue(), "agent:assistant");
  await facet("agent:assistant");
  await count(all);
  await facet("verdict:diagnosed");
  await count(4);
  await facet("verdict:diagnosed");
  await count(all);
  await page.keyboard.press("/");
  await page.keyboard.type(ids.asking.slice(-12));
  await count(1);
  await page.getByRole("searchbox").fill("");
  await count(all);
  await page.locator("select[name=span]").selectOption("1h");
  await count(all);
});
await seen("run and verdict are two badges, and nothing unknown is green", async () => {
  assert.equal(await page.locator(".sessions .badge.good").count(), 0);
  const ended = page.locator(`tr[data-id="${ids.first}"]`);
  assert.match(await ended.locator(".badge").innerText(), /succeeded/);
  assert.match(await ended.locator(".verdict").innerText(), /diagnosed/);
  for (const word of ["unknown", "not judged"]) assert.equal(await page.locator(".verdict.good", { hasText: word }).count(), 0);
});
await seen("the search finds inputs, findings and tool calls", async () => {
  for (const [query, n] of [["tool:get_recent_logs", 4], ["tool:get_recent_logs data-processor", 3], ["reserved concurrency", 1], ["nothing has this", 0]]) {
    await page.getByRole("searchbox").fill(query);
    await count(n);
  }
  await page.getByRole("searchbox").fill("");
  await count(all);
});
await seen("an hour of the histogram leaves its sessions, and its button takes that back", async () => {
  await page.locator(".histogram .column:enabled").last().click();
  await page.getByRole("button", { name: /^× / }).click();
  await count(all);
});

// --- sessions ---

await seen("a row opens by keyboard", async () => {
  await page.locator("h1").click();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator(".summary h1").waitFor();
  await page.keyboard.press("Escape");
  await count(all);
});
await seen("what was just typed is still searched for after a look at a session", async () => {
  await page.keyboard.press("/");
  await page.keyboard.type(ids.asking.slice(-12));
  await rows().first().click();
  await page.locator(".summary h1").waitFor();
  await page.goBack();
  await count(1);
  assert.equal(await page.getByRole("searchbox").inputValue(), ids.asking.slice(-12));
  await page.getByRole("searchbox").fill("");
  await count(all);
});
await go(`#/session/${ids.failed}`);
await seen("a failed session says what failed, where, and what to do next", async () => {
  await badge("failed");
  assert.match(await text(".conclusion"), /What went wrong[\s\S]*mcp_connection[\s\S]*Where: step 3, catalogue[\s\S]*What to do next[\s\S]*daybook tools aws-diagnostics/);
  await look("failed");
  // Whether an anchor names the verdict yet is a matter of seconds.
  const chip = page.locator(".summary button.chip");
  assert.equal(/^✓ Verified$/.test(await chip.innerText()), await chip.evaluate((item) => item.classList.contains("verified")));
  await chip.click();
  await page.locator(".seal", { hasText: "the hash chain verifies" }).waitFor();
  await look("audit");
  await tab("Graph");
  assert.equal(await page.locator(".node.failed").count(), 2, "the graph's node and the machine's state");
  await look("graph");
  await tab("Summary");
  await page.getByRole("link", { name: "step 3, catalogue" }).click();
  await page.locator(".record h2", { hasText: "Step 3" }).waitFor();
});
await seen("the tab is named after the session, and says how many questions wait", async () => {
  await page.waitForFunction(() => /^\(3\) .* · incident · Daybook$/.test(document.title));
  assert.equal(await text("#needs"), "Needs you (3)");
});
await seen("a record opens by keyboard with its payload, hash and parent, and closes", async () => {
  await page.keyboard.press("k");
  await page.locator(".record h2", { hasNotText: "Step 3" }).waitFor();
  await page.keyboard.press("j");
  await page.locator(".record h2", { hasText: "Step 3" }).waitFor();
  await page.locator(".record .tree").first().waitFor();
  assert.match(await text(".record .fields"), /hash\n[0-9a-f]{64}\nparent\n[0-9a-f]{64}/);
  await look("record");
  await page.keyboard.press("Escape");
  await page.locator(".record").waitFor({ state: "hidden" });
});
await seen("the axis zooms", async () => {
  const before = await text(".axis");
  await page.keyboard.press("+");
  assert.notEqual(await text(".axis"), before);
  await page.keyboard.press("0");
});
await go(`#/session/${ids.first}`);
await seen("a diagnosis leads from each claim to the place in the tool's result, also after a reload", async () => {
  await badge("succeeded");
  assert.match(await text(".conclusion"), /Diagnosis[\s\S]*Root cause[\s\S]*s3:GetObject[\s\S]*Remediation/);
  await look("succeeded");
  const link = page.locator(".conclusion .cite").nth(1);
  await link.focus();
  await page.keyboard.press("Enter");
  await page.locator(".record mark.cited").waitFor();
  const cited = await text(".record mark.cited");
  await page.reload();
  await page.locator(".record mark.cited").waitFor();
  assert.equal(await text(".record mark.cited"), cited);
});
await seen("both graphs show the path, and the tables show usage and runs", async () => {
  await tab("Graph");
  assert.match(await page.locator(".picture svg").last().getAttribute("aria-label"), /InvokeAgent visited once.*Success visited once, most recent/);
  assert.match(await page.locator(".picture svg").first().getAttribute("aria-label"), /agent_reason visited \d times/);
  await tab("Cost");
  assert.match(await text("#panel"), /Usage[\s\S]*get_recent_logs[\s\S]*total/);
  await look("cost");
  await tab("Audit");
  assert.match(await text("#panel"), /Runs[\s\S]*completed/);
});
await seen("a conversation has what was asked, said and called, and a reload keeps the tab", async () => {
  await page.keyboard.press("2");
  await page.locator(".said.tool", { hasText: "get_recent_logs" }).first().waitFor();
  await page.reload();
  await page.locator(".said.tool", { hasText: "get_recent_logs" }).first().waitFor();
  await page.getByText("What the model was sent").first().click();
  await page.getByText("None: the agent's policy answered.").waitFor();
  await look("conversation");
  await page.getByRole("button", { name: "Step 4 in the timeline" }).click();
  await page.locator(".record h2", { hasText: "Step 4" }).waitFor();
});
await seen("data folds, is searched, and shows the pointer of a part", async () => {
  const data = page.locator(".record .data").last();
  await data.getByRole("searchbox").fill("Statement");
  await page.keyboard.press("Enter");
  await data.locator(".found").waitFor();
  assert.match(await data.locator("code.faint").innerText(), /Statement/);
  await data.getByRole("combobox").selectOption("raw");
  await data.locator("pre").waitFor();
});

// --- two sessions, and all of them ---

await go("#/");
await seen("two sessions that are chosen in the list are compared", async () => {
  await count(all);
  for (const id of [ids.first, ids.other]) await page.getByLabel(`Select session ${id}`).check();
  await page.getByRole("link", { name: "Compare selected" }).click();
  await page.locator(".compared .first").waitFor();
  assert.match(await text("main"), /Different paths[\s\S]*Input and settings[\s\S]*lambda_name[\s\S]*Result[\s\S]*root_cause[\s\S]*only in/);
  await look("compare");
  await page.getByRole("link", { name: /^First difference/ }).click();
  assert.equal(await page.evaluate(() => document.activeElement.className), "differs first");
});
await seen("a session is compared with the previous run of the same input", async () => {
  await open(ids.again);
  await page.getByRole("link", { name: "Compare with previous run" }).click();
  await page.locator(".sides").waitFor();
  assert.match(await text(".sides"), new RegExp(ids.first));
  assert.match(await text("main"), /No difference: all \d+ steps/);
});
await page.getByRole("link", { name: "Health" }).click();
await seen("health counts sessions by status and agent, and says whether the breaker is open", async () => {
  await page.locator(".bars").waitFor();
  assert.match(await text("main"), /at most the newest 500[\s\S]*4 succeeded[\s\S]*incident[\s\S]*closed: sessions are admitted · 5 of 20/);
  await look("health");
});
await seen("what a session holds is text and nothing else, in every view", async () => {
  for (const [route, shows] of [["#/", ".sessions"], [`#/session/${ids.unknown}`, ".conclusion"],
    [`#/session/${ids.said}`, ".ask"], [`#/compare/${ids.hostile}/${ids.unknown}`, ".sides"], [`#/health?${MARKUP}`, ".bars"]]) {
    await go(route);
    await page.locator(shows).waitFor();
    // The assistant quotes the parts that it does not understand.
    const said = shows === ".ask" ? "<img" : MARKUP;
    if (shows !== ".bars") await page.locator(shows, { hasText: said }).waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0, route);
  }
  await open(ids.hostile);
  for (const row of ["#1 claim", "get_recent_logs data-processor →"]) {
    await page.locator(".row", { hasText: row }).click();
    const output = page.locator(".record .data").last();
    await page.locator(".record h3", { hasText: "Output" }).waitFor();
    await output.getByRole("searchbox").fill("onerror");
    await page.keyboard.press("Enter");
    await output.locator(".found", { hasText: MARKUP }).waitFor();
  }
  assert.equal(await page.locator("main img, main script").count(), 0);
});

await seen("hostile Markdown makes no element but text, and links lead where they say", async () => {
  const hostile = ["# <script>alert(1)</script>", "![x](https://evil.example/x.png) <img src=x onerror=alert(1)>", "[click](javascript:alert(1)) [docs](https://example.org/a)",
    "- a\n  - b **c** `d`", "> > > > > > > > deep", "| a | b |\n|---|---|\n| <b>1</b> | 2 |", "```\n<style>*{display:none}</style>\n```"].join("\n\n");
  const made = await page.evaluate(async (text) => {
    const { markdown } = await import("/page/markdown.js");
    const frame = markdown(text);
    return { tags: [...new Set([...frame.querySelectorAll("*")].map((item) => item.localName))].sort(), links: [...frame.querySelectorAll("a")].map((item) => [item.href, item.textContent]), text: frame.textContent };
  }, hostile);
  for (const tag of made.tags) assert.ok(["a", "blockquote", "code", "div", "h3", "li", "p", "pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"].includes(tag), tag);
  assert.deepEqual(made.links, [["https://example.org/a", "https://example.org/a"]]);
  assert.match(made.text, /javascript:alert/);
  // What a regular expression could take minutes for freezes the tab.
  const ms = await page.evaluate(async (texts) => {
    const { markdown } = await import("/page/markdown.js");
    const began = performance.now();
    for (const text of texts) markdown(text);
    return performance.now() - began;
  }, [`| a |\n${" ".repeat(20_000)}x`, "[".repeat(20_000), "`".repeat(20_000), "*".repeat(20_000), `|${" |".repeat(10_000)}x`]);
  assert.ok(ms < MARKDOWN_MS_MAX, `${ms} ms`);
});
await seen("an address that cannot be read leads to the list", async () => {
  await go("#/session/%");
  await rows().first().waitFor();
  assert.equal(await page.evaluate(() => location.hash), "#/");
});

// --- answers ---

const card = () => page.locator(".ask:not(.answered)");
/** Decides, and does not wait for the time to undo. */
const decide = async (name) => {
  await card().getByRole("button", { name, exact: true }).click();
  await page.getByRole("button", { name: "Send now" }).click();
};
const edited = (change) => card().locator(".edited").evaluate((area, more) => {
  area.closest("details").open = true;
  area.value = JSON.stringify({ ...JSON.parse(area.value), ...more });
  area.dispatchEvent(new Event("input"));
}, change);
await open(ids.asking);
await seen("the open question shows the tool call, and arguments that are not JSON are refused", async () => {
  assert.match(await text(".ask"), /Approval needed[\s\S]*expires in[\s\S]*The agent wants to run[\s\S]*load_simulation/);
  await look("waiting");
  await card().getByText("Edit the arguments").click();
  const before = await card().locator(".edited").inputValue();
  await card().locator(".edited").fill("{");
  await card().getByRole("button", { name: "Approve as edited" }).click();
  await page.locator(".ask [role=alert]", { hasText: "not valid JSON" }).waitFor();
  await card().locator(".edited").fill(before);
});
const next = (prompt) => card().locator(".prompt", { hasText: prompt }).first().waitFor();
await seen("a double click is one answer, which can be undone before it is sent", async () => {
  await card().getByRole("button", { name: "Approve", exact: true }).dblclick();
  assert.equal(await card().getByRole("button", { name: "Approve", exact: true }).isDisabled(), true);
  await page.getByRole("button", { name: "Undo" }).click();
  await card().getByText("Not sent.").waitFor();
  assert.equal((await (await fetch(`${endpoint}/api/sessions/${ids.asking}`)).json()).session.status, "WAITING");
});
await seen("an approval by keyboard alone is on the page within a second or two, and the session goes on", async () => {
  const place = await card().getByRole("button", { name: "Approve", exact: true }).boundingBox();
  await card().getByRole("button", { name: "Approve", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Send now" }).focus();
  const began = Date.now();
  await page.keyboard.press("Enter");
  await page.locator(".row", { hasText: "approve" }).first().waitFor();
  console.log(`the approval was on the page after ${Date.now() - began} ms`);
  await next("set_parameter_value");
  const below = await card().getByRole("button", { name: "Approve", exact: true }).boundingBox();
  assert.ok(below.y > place.y + place.height, "the next question's button takes the place of the last one's");
});
await seen("arguments that do not fit the tool are refused with a reason, and edited ones are what runs", async () => {
  await edited({ value: "much" });
  assert.match(await card().locator(".changes").innerText(), /value .* → "much"/);
  await decide("Approve as edited");
  await page.locator(".ask:not(.answered) [role=alert]").filter({ hasText: /\S/ }).waitFor();
  problems.length = 0; // A refusal is an answer of status 400, of which a browser makes a note.
  await edited({ value: 300 });
  await decide("Approve as edited");
  await page.locator(".row", { hasText: "300" }).first().waitFor();
  await next("Doses");
});
await seen("a rejection with its reason is on record", async () => {
  await card().locator(".words").fill("not on a Friday");
  await decide("Reject");
  await page.locator(".row", { hasText: "not on a Friday" }).first().waitFor();
});
if (part === "main") {
  await browser.close();
  await stop("SIGKILL");
  process.exit(0);
}
await seen("the inbox has one card for each open question, and an answered one stays in its place", async () => {
  await go("#/inbox");
  await page.locator(`.ask[data-key^="${ids.second}"]`).waitFor();
  await look("inbox");
  // The one of free text has nothing to approve.
  const canApprove = page.locator(".ask:focus [data-decision=approve]");
  for (let n = 0; n < all && !(await canApprove.count()); n += 1) await page.keyboard.press("j");
  const which = await page.evaluate(() => document.activeElement.dataset.key);
  const top = (await page.locator(".ask").first().boundingBox()).y;
  await page.waitForFunction(() => [...document.querySelectorAll(".ask:focus button")].some((item) => !item.disabled));
  await page.keyboard.press("a");
  const decided = page.locator(`.ask[data-key="${which}"]`);
  if (await decided.getByRole("button", { name: "Send now" }).count()) await decided.getByRole("button", { name: "Send now" }).click();
  await page.locator(`.ask.answered[data-key="${which}"]`).waitFor();
  assert.equal((await page.locator(".ask").first().boundingBox()).y, top);
  await page.getByRole("button", { name: "Clear answered" }).click();
  assert.equal(await page.locator(".ask.answered").count(), 0);
});
await open(ids.said);
await seen("free text is an answer", async () => {
  await card().locator(".words").fill("which models are there");
  await decide("Reply");
  await page.locator(".row", { hasText: "which models are there" }).first().waitFor();
  await next("gentamicin");
});
await seen("a conversation takes a reply at its bottom", async () => {
  await tab("Conversation");
  await page.locator(".composer textarea").fill("which parameters has gentamicin");
  await button("Send").click();
  await page.locator(".said.person", { hasText: "which parameters has gentamicin" }).waitFor();
});
await seen("a session whose workflow has stopped is resumed", async () => {
  await settled(endpoint, ids.said);
  await aws(endpoint, "AWSStepFunctions.StopExecution", { executionArn: `arn:aws:states:us-east-1:000000000000:execution:daybook:${ids.said}` });
  await go(`#/session/${ids.said}?tab=graph`);
  await page.reload();
  await button("Resume: its workflow has stopped").click();
  await page.locator("figcaption", { hasText: "2 executions" }).waitFor();
});
await open(ids.second);
await seen("a cancellation asks once for its reason, ends a session, live, and is no failure", async () => {
  await button("Cancel session").click();
  await page.locator("#reason").fill("not needed");
  await button("Cancel now").click();
  await badge("cancelled");
  await tab("Summary");
  assert.match(await text(".conclusion"), /Cancelled by a person[\s\S]*not needed/);
  assert.equal(await page.locator(".conclusion .bad").count(), 0);
  await look("cancelled");
});

// --- starting ---

await seen("a session is started from the form of its agent, and the list of agents opens with a key", async () => {
  await page.locator("h1").click();
  await page.keyboard.press("n");
  await page.locator(".cards .card").first().waitFor();
  await look("agents");
  await page.locator(".cards .card", { hasText: "assistant" }).click();
  await page.getByLabel("message").fill("which models are there");
  await look("start");
  await button("Run").dblclick();
  await page.locator(".ask").waitFor();
  await page.waitForFunction(() => document.title.includes("which models are there"));
});
await seen("a session is run again, and with another input", async () => {
  await go(`#/session/${ids.first}`);
  await shows(ids.first);
  await button("Run again").click();
  await page.waitForFunction((id) => location.hash.startsWith("#/session/") && !location.hash.includes(id), ids.first);
  await badge("succeeded");
  await page.getByRole("link", { name: "Edit and run" }).click();
  await page.locator("form .form").waitFor();
  assert.equal(await page.locator('[data-field="lambda_name"]').inputValue(), "data-processor");
});

// --- a run that takes its time ---

const running = await put({ agent: "network", input: { query: "Is p3's interface to p4 healthy?" } });
await until(async () => (await fetch(`${endpoint}/api/sessions/${running}/timeline`)).ok, "the session does not begin");
await open(running);
await seen("a running session is watched live, and a reload in the middle of it loses nothing", async () => {
  await badge("running");
  await page.locator(".row", { hasText: "claim" }).waitFor();
  await look("running");
  await page.reload();
  await badge("running");
  await page.locator(".row", { hasText: "claim" }).waitFor();
});
await seen("the page reports a restart of the server and recovers", async () => {
  isDown = true;
  const stopped = stop("SIGTERM");
  setTimeout(() => writeFileSync(gate, ""), GATE_AFTER_MS);
  await stopped;
  await page.locator("#connection", { hasText: "not connected" }).waitFor();
  await start(new URL(endpoint).host, environment);
  await badge("succeeded");
  await page.waitForFunction(() => document.getElementById("connection").textContent === "");
  await page.locator(".row", { hasText: "SESSION_SUCCEEDED" }).waitFor();
  isDown = false;
});

// --- a narrow screen, and the keyboard alone ---

const { stateMachineArn } = await aws(endpoint, "AWSStepFunctions.CreateStateMachine", { name: "refuses", roleArn: "arn:aws:iam::000000000000:role/any",
  definition: JSON.stringify({ StartAt: "Refuse", States: { Refuse: { Type: "Fail", Error: "Refused", Cause: "because".repeat(80) } } }) });
const { executionArn } = await aws(endpoint, "AWSStepFunctions.StartExecution", { stateMachineArn });
await seen("every view fits a narrow screen and uses a wide one", async () => {
  for (const [name, route, shows] of ["narrow", "wide"].flatMap((size) => [["list", "#/", ".sessions tr[data-id]"], ["session", `#/session/${ids.first}`, ".conclusion h2"], ["question", `#/session/${ids.asking}?tab=timeline`, ".row"],
    ["conversation", `#/session/${ids.first}?tab=talk`, ".said"], ["inbox", "#/inbox", ".inbox"], ["start", "#/new/incident", "form .form"], ["graph", `#/session/${ids.first}?tab=graph`, ".node"],
    ["record", `#/session/${ids.first}/STEP%2300000004`, ".record .tree"], ["compare", `#/compare/${ids.first}/${ids.other}`, ".compared"], ["health", "#/health", ".bars"],
    ["executions", "#/executions", ".badge"], ["execution", `#/executions/${encodeURIComponent(executionArn)}`, ".badge.failed"]].map(([name, ...rest]) => [`${size}-${name}`, ...rest]))) {
    await page.setViewportSize(name.startsWith("narrow") ? { width: 380, height: 800 } : { width: 2560, height: 1300 });
    await go(route);
    await page.locator(shows).first().waitFor();
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${name} is ${wide} wide and has ${room}`);
    await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
  }
  await page.setViewportSize({ width: 1280, height: 860 });
});
await seen("the colours change and stay changed", async () => {
  await go("#/");
  await page.reload();
  await button("Switch to dark theme").click();
  await page.reload();
  await button("Switch to light theme").waitFor();
});
await seen("the keyboard alone gets from the list to a comparison and back", async () => {
  await rows().nth(2).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  for (const key of ["j", "x", "j", "x", "c"]) await page.keyboard.press(key);
  await page.locator(".compared").waitFor();
  await page.keyboard.press("Escape");
  await rows().nth(2).waitFor();
  await page.keyboard.press("?");
  await page.locator("#help[open]").waitFor();
  await page.keyboard.press("Escape");
  await until(async () => !(await page.locator("#help[open]").count()), "the list of keys stays");
});

// --- what is not there yet, or not now ---

await seen("a session that is opened before its first record appears by itself", async () => {
  const early = crypto.randomUUID();
  isDown = true;
  await go(`#/session/${early}`);
  await page.getByText("The page retries automatically.").waitFor();
  await aws(endpoint, "AWSStepFunctions.StartExecution", { stateMachineArn: "arn:aws:states:us-east-1:000000000000:stateMachine:daybook", name: early,
    input: JSON.stringify({ session_id: early, time: new Date().toISOString(), detail: {} }) });
  await badge("succeeded");
  isDown = false;
});
const waiting = await put(asking);
await settled(endpoint, waiting);
await seen("the page reports a refused stream and a lost answer, reconnects and sends it", async () => {
  isDown = true;
  await page.route("**/events", (route) => route.fulfill({ status: 503, json: { error: "busy" } }));
  await open(waiting);
  await page.locator("#connection", { hasText: "not connected, retrying" }).waitFor();
  await page.unroute("**/events");
  await page.waitForFunction(() => document.getElementById("connection").textContent === "");
  await page.route("**/answer", (route) => route.abort());
  await card().locator(".words").fill("not now");
  await decide("Reject");
  await page.getByText("Not sent yet: the stack does not respond.").waitFor();
  await page.unroute("**/answer");
  await page.locator(".row", { hasText: "not now" }).first().waitFor();
  isDown = false;
});

// --- without a script ---

const scriptless = await browser.newContext({ viewport: { width: 1280, height: 860 }, javaScriptEnabled: false });
scriptless.setDefaultTimeout(20_000);
const bare = await scriptless.newPage();
bare.on("request", (request) => { if (!request.url().startsWith(endpoint)) problems.push(`a request to ${request.url()}`); });
bare.on("console", (message) => problems.push(message.text()));
const another = await put(asking);
await settled(endpoint, another);

await seen("without a script the page says so and names the terminal's commands", async () => {
  await bare.goto(endpoint);
  assert.match(await bare.locator("main").innerText(), /needs JavaScript[\s\S]*daybook sessions[\s\S]*daybook show SESSION/);
});

// --- a day later ---

// The page asks on while the stack is down.
isDown = true;
await stop("SIGTERM");
await start(new URL(endpoint).host, { ...environment, JOURNAL_TTL_DAYS: "3" });
const brief = await put(asking);
await settled(endpoint, brief);
await stop("SIGTERM");
// A stack with a scaled clock goes on at the newest time of its file: a day, which ends both, and an hour.
const file = new DatabaseSync(join(FOLDER, "data/journal.db"));
file.exec(`UPDATE execution SET started_ms = started_ms + ${25 * 3600e3} WHERE status = 'SUCCEEDED'`);
file.close();
await start(new URL(endpoint).host, environment, ["--time-scale", "2"]);
for (const id of [brief, another]) await until(async () => await settled(endpoint, id) !== "WAITING", `session ${id} waits on`);
await page.goto(endpoint);
isDown = false;
await seen("a session whose time was up says where it waited, and what to do next", async () => {
  await go(`#/session/${brief}`);
  await shows(brief);
  await badge("timed out");
  assert.match(await text(".conclusion"), /What went wrong[\s\S]*Retention[\s\S]*Where: while it waited at step 6[\s\S]*JOURNAL_TTL_DAYS/);
  await look("timed-out");
});
await seen("an expired question says so, on its row and above all of them", async () => {
  await go(`#/session/${another}`);
  await shows(another);
  await badge("succeeded");
  assert.match(await text(".conclusion"), /Conversation[\s\S]*No answer in time[\s\S]*daybook chat/);
  await tab("Timeline");
  await page.locator(".row", { hasText: "#6 expired without an answer" }).waitFor();
  await look("expired");
  await go("#/");
  await page.locator(".sessions tr[data-id]", { hasText: "no answer in time" }).first().waitFor();
});
await browser.close();
await stop("SIGKILL");
