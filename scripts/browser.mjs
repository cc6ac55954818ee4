// Drives the page in a headless Chromium, as a person would, against a stack that runs.
//
//   node browser.mjs ENDPOINT SCREENSHOTS SESSIONS     SESSIONS: {"failed", "asking", "hostile"} as JSON
//
// PLAYWRIGHT is the folder that playwright-core and axe-core are installed in, CHROMIUM the browser. Prints a line for
// each thing seen; the first that does not hold ends it with 1. Each view is left in SCREENSHOTS as a picture.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [endpoint, screenshots, given] = process.argv.slice(2);
const sessions = JSON.parse(given);
const require = createRequire(join(process.env.PLAYWRIGHT, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: "reduce" });
context.setDefaultTimeout(20_000);
const page = await context.newPage();
const problems = [];
page.on("console", (message) => { if (["error", "warning"].includes(message.type())) problems.push(message.text()); });
page.on("pageerror", (error) => problems.push(String(error)));
page.on("dialog", (dialog) => { problems.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
page.on("request", (request) => { if (!request.url().startsWith(endpoint)) problems.push(`a request to ${request.url()}`); });

async function seen(what, check) {
  await check();
  assert.deepEqual(problems, [], what);
  console.log(`seen: ${what}`);
}

async function picture(name) {
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
}

/** Nothing serious for people who read with a screen reader, by keyboard or with weak eyes. */
async function accessible(view) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter((found) => ["serious", "critical"].includes(found.impact));
  assert.deepEqual(serious.map((found) => `${found.id}: ${found.nodes.map((node) => `${node.html} ${node.failureSummary}`).join("\n")}`), [], view);
}

async function fits(view) {
  const [wide, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= shown, `${view} is ${wide} wide and has ${shown}`);
}

const open = (id) => page.goto(`${endpoint}/#/session/${id}`).then(() => page.waitForSelector(".row"));
const rows = () => page.locator(".sessions tbody tr[data-index]");

await page.goto(endpoint);
await seen("the list has every session, with what stands out", async () => {
  await rows().nth(2).waitFor();
  assert.match(await page.locator(".sessions").innerText(), /asks:/);
  await picture("list");
  await accessible("list");
});
await seen("a search leaves what fits", async () => {
  await page.keyboard.press("/");
  await page.keyboard.type(sessions.asking.slice(-12));
  await page.waitForFunction(() => document.querySelectorAll(".sessions tbody tr[data-index]").length === 1);
  await page.getByRole("searchbox").fill("");
});
await seen("a filter asks the stack", async () => {
  await page.getByLabel("Status").selectOption("WAITING");
  await page.waitForFunction(() => document.querySelectorAll(".sessions tbody tr[data-index]").length === 1);
  await page.getByLabel("Status").selectOption("");
  await rows().nth(2).waitFor();
});
await seen("a row opens by keyboard", async () => {
  await page.locator("h1").click();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".row");
  await page.keyboard.press("Escape");
  await page.waitForSelector(".sessions");
});
await open(sessions.failed);
await seen("a failed session says what failed, and every record is a row", async () => {
  assert.match(await page.locator(".head").innerText(), /failed[\s\S]*mcp_connection/i);
  await page.locator(".row", { hasText: "AGENT_BACKGROUND_TASK_STARTED" }).waitFor();
  await picture("failed");
  await accessible("failed session");
});
await seen("a record opens by keyboard with its payload, and closes", async () => {
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.locator(".record pre, .record .fields").first().waitFor();
  await accessible("record");
  await page.keyboard.press("Escape");
  await page.locator(".record").waitFor({ state: "hidden" });
});
await seen("the axis zooms", async () => {
  const before = await page.locator(".axis").innerText();
  await page.keyboard.press("+");
  assert.notEqual(await page.locator(".axis").innerText(), before);
  await page.keyboard.press("0");
});
await seen("the graph shows the path", async () => {
  assert.ok(await page.locator(".node.visited").count() > 0);
});
await open(sessions.hostile);
await seen("what a session holds is text and nothing else", async () => {
  await page.locator(".row", { hasText: "#1 claim" }).click();
  await page.locator(".record pre", { hasText: "<img src=x" }).waitFor();
  assert.equal(await page.locator("main img, main script").count(), 0);
});
await open(sessions.asking);
await seen("the open question says what would run", async () => {
  await page.locator(".question h2").waitFor();
  await picture("question");
  await accessible("question");
});
await seen("it is readable in the dark and on a narrow screen", async () => {
  await page.locator("#theme").click();
  await accessible("question in the dark");
  await page.setViewportSize({ width: 380, height: 800 });
  await fits("a session");
  await picture("narrow-dark");
  await page.goto(`${endpoint}/#/`);
  await rows().nth(2).waitFor();
  await fits("the list");
  await picture("list-narrow-dark");
  await accessible("list in the dark");
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.locator("#theme").click();
  await open(sessions.asking);
});
await seen("a rejection with its reason is on record within a second, and the session goes on", async () => {
  await page.locator("#words").fill("not on a Friday");
  const first = await page.locator(".rows").evaluate((element) => element.style.height);
  const began = Date.now();
  await page.getByRole("button", { name: "Reject" }).click();
  await page.locator(".row", { hasText: "not on a Friday" }).first().waitFor();
  console.log(`the answer was on the page after ${Date.now() - began} ms`);
  assert.notEqual(await page.locator(".rows").evaluate((element) => element.style.height), first);
});
await seen("a cancellation ends it, live", async () => {
  await page.getByRole("button", { name: "Cancel this session" }).click();
  await page.locator(".head .badge", { hasText: "cancelled" }).waitFor();
  await picture("cancelled");
});
await browser.close();
