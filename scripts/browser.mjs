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

const WITHIN_MS = 150_000;
const [incidents, screenshots, part] = process.argv.slice(2);
// A caller's timeout would leave the stack running.
setTimeout(() => { console.error(`not done after ${WITHIN_MS} ms`); process.exit(1); }, WITHIN_MS).unref();
const { FOLDER, DAYBOOK } = process.env;
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
/** What a phone on a slow line gets in a second. */
const FIRST_LOAD_BYTES_MAX = 60_000;
/** Until a stack that is to stop has heard of it. */
const GATE_AFTER_MS = 500;
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
const open = async (id) => {
  await go(`#/session/${id}`);
  await page.locator("#place code", { hasText: id }).waitFor();
  await page.locator(".row").first().waitFor();
};
const button = (name) => page.getByRole("button", { name, exact: true });
const badge = (word) => page.locator(".head .badge", { hasText: word }).waitFor();

// --- the list ---

const loaded = [];
page.on("response", (response) => loaded.push(response));
await page.goto(endpoint);
await page.getByText("No sessions yet").waitFor();
page.removeAllListeners("response");
await seen(`the first load has less than ${FIRST_LOAD_BYTES_MAX} bytes, compressed`, async () => {
  const sizes = await Promise.all(loaded.map(async (response) => gzipSync(await response.body()).length));
  const all = sizes.reduce((sum, size) => sum + size, 0);
  console.log(`the first load: ${loaded.length} files, ${all} bytes`);
  assert.ok(loaded.length > 10 && all < FIRST_LOAD_BYTES_MAX);
});
await seen("an empty list says how to begin", async () => {
  await page.getByText("daybook trigger", { exact: true }).waitFor();
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
  await page.locator("select[name=status]").selectOption("WAITING");
  await count(3);
  await page.locator("select[name=agent]").selectOption("assistant");
  await page.locator("select[name=status]").selectOption("");
  await count(3);
  await page.reload();
  await count(3);
  assert.equal(await page.locator("select[name=agent]").inputValue(), "assistant");
  await page.locator("select[name=agent]").selectOption("");
  await count(all);
  await page.keyboard.press("/");
  await page.keyboard.type(ids.asking.slice(-12));
  await count(1);
  await page.getByRole("searchbox").fill("");
  await count(all);
  await page.locator("select[name=span]").selectOption("1h");
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
  await page.locator(".row").first().waitFor();
  await page.keyboard.press("Escape");
  await count(all);
});
await seen("what was just typed is still searched for after a look at a session", async () => {
  await page.keyboard.press("/");
  await page.keyboard.type(ids.asking.slice(-12));
  await rows().first().click();
  await page.locator(".row").first().waitFor();
  await page.goBack();
  await count(1);
  assert.equal(await page.getByRole("searchbox").inputValue(), ids.asking.slice(-12));
  await page.getByRole("searchbox").fill("");
  await count(all);
});
await open(ids.failed);
await seen("a failed session says what failed, where, and what to do next", async () => {
  await badge("failed");
  assert.match(await text(".conclusion"), /What went wrong[\s\S]*mcp_connection[\s\S]*Where: step 3, catalogue[\s\S]*What to do next[\s\S]*daybook tools aws-diagnostics/);
  await page.locator(".seal", { hasText: "the hash chain verifies" }).waitFor();
  assert.equal(await page.locator(".node.failed").count(), 2, "the graph's node and the machine's state");
  await look("failed");
  await page.getByRole("link", { name: "step 3, catalogue" }).click();
  await page.locator(".record h2", { hasText: "Step 3" }).waitFor();
});
await seen("a record opens by keyboard with its payload, hash and parent, and closes", async () => {
  await page.keyboard.press("k");
  await page.locator(".record h2", { hasNotText: "Step 3" }).waitFor();
  await page.keyboard.press("j");
  await page.locator(".record h2", { hasText: "Step 3" }).waitFor();
  await page.locator(".record pre").first().waitFor();
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
await open(ids.first);
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
  assert.match(await page.locator(".picture svg").first().getAttribute("aria-label"), /InvokeAgent visited once.*Success visited once, most recent/);
  assert.match(await page.locator(".picture svg").last().getAttribute("aria-label"), /agent_reason visited \d times/);
  assert.match(await text(".graphs >> nth=1"), /Usage[\s\S]*get_recent_logs[\s\S]*total[\s\S]*Runs[\s\S]*completed/);
});

// --- two sessions, and all of them ---

await go("#/");
await seen("two sessions that are chosen in the list are compared", async () => {
  await count(all);
  for (const id of [ids.first, ids.other]) await page.getByLabel(`Compare session ${id}`).check();
  await page.getByRole("link", { name: "Compare selected" }).click();
  await page.locator(".compared .first").waitFor();
  assert.match(await text("main"), /Different paths[\s\S]*only in/);
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
    [`#/session/${ids.said}`, ".question"], [`#/compare/${ids.hostile}/${ids.unknown}`, ".sides"], [`#/health?${MARKUP}`, ".bars"]]) {
    await go(route);
    await page.locator(shows).waitFor();
    // The assistant quotes the parts that it does not understand.
    const said = shows === ".question" ? "<img" : MARKUP;
    if (shows !== ".bars") await page.locator(shows, { hasText: said }).waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0, route);
  }
  await open(ids.hostile);
  for (const row of ["#1 claim", "get_recent_logs data-processor →"]) {
    await page.locator(".row", { hasText: row }).click();
    await page.locator(".record pre", { hasText: MARKUP }).first().waitFor();
  }
  assert.equal(await page.locator("main img, main script").count(), 0);
});

// --- answers ---

await open(ids.asking);
await seen("the open question shows the tool call, and arguments that are not JSON are refused", async () => {
  assert.match(await text(".question"), /The agent wants to run[\s\S]*load_simulation/);
  await look("waiting");
  await page.locator("#arguments").fill("{");
  await button("Approve as edited").click();
  await page.locator(".question [role=alert]", { hasText: "not valid JSON" }).waitFor();
});
const next = (prompt) => page.locator(".question p.text", { hasText: prompt }).first().waitFor();
await seen("an approval by keyboard alone is on the page within a second or two, and the session goes on", async () => {
  await page.locator("#arguments").evaluate((area) => { area.value = area.defaultValue || area.previousElementSibling.textContent; });
  await button("Approve").focus();
  const began = Date.now();
  await page.keyboard.press("Enter");
  await page.locator(".row", { hasText: "approve" }).first().waitFor();
  console.log(`the approval was on the page after ${Date.now() - began} ms`);
  await next("set_parameter_value");
});
await seen("arguments that do not fit the tool are refused with a reason, and edited ones are what runs", async () => {
  const edited = (change) => page.locator("#arguments").evaluate((area, more) => { area.value = JSON.stringify({ ...JSON.parse(area.value), ...more }); }, change);
  await edited({ value: "much" });
  await button("Approve as edited").click();
  await page.locator(".question [role=alert]").filter({ hasText: /\S/ }).waitFor();
  problems.length = 0; // A refusal is an answer of status 400, of which a browser makes a note.
  await edited({ value: 300 });
  await button("Approve as edited").click();
  await page.locator(".row", { hasText: "300" }).first().waitFor();
  await next("Doses");
});
await seen("a rejection with its reason is on record", async () => {
  await page.locator("#words").fill("not on a Friday");
  await button("Reject").click();
  await page.locator(".row", { hasText: "not on a Friday" }).first().waitFor();
});
if (part === "main") {
  await browser.close();
  await stop("SIGKILL");
  process.exit(0);
}
await open(ids.said);
await seen("free text is an answer", async () => {
  await page.locator("#words").fill("which models are there");
  await button("Reply").click();
  await page.locator(".row", { hasText: "which models are there" }).first().waitFor();
  await next("gentamicin");
});
await seen("a session whose workflow has stopped is resumed", async () => {
  await aws(endpoint, "AWSStepFunctions.StopExecution", { executionArn: `arn:aws:states:us-east-1:000000000000:execution:daybook:${ids.said}` });
  await page.reload();
  await button("Resume: its workflow has stopped").click();
  await page.locator("figcaption", { hasText: "2 executions" }).waitFor();
});
await open(ids.second);
await seen("a cancellation ends a session, live", async () => {
  await button("Cancel session").click();
  await badge("cancelled");
  await look("cancelled");
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

await seen("every view fits a narrow screen", async () => {
  await page.setViewportSize({ width: 380, height: 800 });
  for (const [name, route, shows] of [["list", "#/", ".sessions tr[data-id]"], ["session", `#/session/${ids.first}`, ".node"], ["question", `#/session/${ids.asking}`, ".row"],
    ["record", `#/session/${ids.first}/STEP%2300000004`, ".record pre"], ["compare", `#/compare/${ids.first}/${ids.other}`, ".compared"], ["health", "#/health", ".bars"]]) {
    await go(route);
    await page.locator(shows).first().waitFor();
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${name} is ${wide} wide and has ${room}`);
    await page.screenshot({ path: join(screenshots, `narrow-${name}.png`), fullPage: true });
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
  await count(all + 1);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  for (const key of ["j", "x", "j", "x", "c"]) await page.keyboard.press(key);
  await page.locator(".compared").waitFor();
  await page.keyboard.press("Escape");
  await count(all + 1);
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
await seen("the page reports a refused stream and reconnects", async () => {
  isDown = true;
  await page.route("**/events", (route) => route.fulfill({ status: 503, json: { error: "busy" } }));
  await open(waiting);
  await page.locator("#connection", { hasText: "not connected, retrying" }).waitFor();
  await page.unroute("**/events");
  await page.waitForFunction(() => document.getElementById("connection").textContent === "");
  await page.locator("#words").fill("not now");
  await button("Reject").click();
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
await seen("a session whose time was up says where it waited, and what to do next", async () => {
  await open(brief);
  await badge("timed out");
  assert.match(await text(".conclusion"), /What went wrong[\s\S]*Retention[\s\S]*Where: while it waited at step 6[\s\S]*JOURNAL_TTL_DAYS/);
  await look("timed-out");
});
await seen("an expired question says so, on its row and above all of them", async () => {
  await open(another);
  await badge("succeeded");
  assert.match(await text(".conclusion"), /Conversation[\s\S]*No answer in time[\s\S]*daybook chat/);
  await page.locator(".row", { hasText: "#6 expired without an answer" }).waitFor();
  await look("expired");
  await go("#/");
  await page.locator(".sessions tr[data-id]", { hasText: "no answer in time" }).first().waitFor();
});
await browser.close();
await stop("SIGKILL");
