// Measures how smoothly the page scrolls through a session of 10,000 records, from top to bottom: scrolling.mjs ROOT
//
// stack.mjs lists what else it needs. The timeline is a real session's, repeated until it has so many rows: what is measured
// is the page, and `make bench` measures the stack. Prints the time between frames: the median, the 95th percentile, the
// longest, and the number of late frames, with the machine's load.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { browse, settled, start, stop, trigger } from "./stack.mjs";

const [root] = process.argv.slice(2);
const RECORDS = 10_000;
/** How far each frame scrolls: ten rows, which is what a fast turn of a wheel does. */
const STEP_PX = 260;
/** A frame longer than two frames of a 60 Hz screen is visibly late. */
const LATE_MS = 34;

const folder = join(root, "packs/incident/incidents/s3-permission-revoked");
const endpoint = await start("127.0.0.1:0", { PATH: process.env.PATH, DAYBOOK_ALLOWED_PATHS: folder });
const id = await trigger(endpoint, { agent: "incident", input: { ...JSON.parse(readFileSync(join(folder, "incident.json"), "utf8")), snapshot: folder } });
await settled(endpoint, id);
const timeline = await (await fetch(`${endpoint}/api/sessions/${id}/timeline`)).json();
const { rows, span_ms } = timeline.waterfall;
const runs = Math.ceil(RECORDS / rows.length);
timeline.waterfall.rows = Array.from({ length: RECORDS }, (_, at) => {
  const row = rows[at % rows.length];
  const begin = Math.floor(at / rows.length) * span_ms;
  return { ...row, sk: `${row.sk}-${at}`, seq: row.seq && at, from_ms: begin + row.from_ms, to_ms: begin + row.to_ms };
});
timeline.waterfall.span_ms = span_ms * runs;

const browser = await browse();
const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
await page.route("**/timeline", (route) => route.fulfill({ json: timeline }));
await page.goto(`${endpoint}/#/session/${id}?tab=timeline`);
await page.locator("#infrastructure").check();
await page.locator(".row").first().waitFor();
const loadBefore = loadavg()[0];
const { frames, reached } = await page.evaluate((step) => new Promise((done) => {
  const scroll = document.querySelector(".scroll");
  scroll.scrollTop = 0;
  const times = [];
  const frame = (now) => {
    times.push(now);
    const before = scroll.scrollTop;
    scroll.scrollTop += step;
    if (scroll.scrollTop > before) requestAnimationFrame(frame);
    else done({ frames: times.slice(1).map((time, at) => time - times[at]), reached: document.querySelector(".rows").lastElementChild.id });
  };
  requestAnimationFrame(frame);
}), STEP_PX);
assert.equal(reached, `row-${RECORDS - 1}`, "the last record comes into sight");
frames.sort((a, b) => a - b);
const at = (share) => frames[Math.min(frames.length - 1, Math.floor(share * frames.length))].toFixed(1);
const late = frames.filter((ms) => ms > LATE_MS).length;
console.log(`${RECORDS} records in ${frames.length} frames: median ${at(0.5)} ms, p95 ${at(0.95)} ms, longest ${at(1)} ms, ${late} later than ${LATE_MS} ms`);
console.log(`Chromium ${browser.version()} without a graphics card, ${cpus().length} cores, load ${loadBefore.toFixed(1)} before and ${loadavg()[0].toFixed(1)} after`);
await browser.close();
await stop("SIGKILL");
