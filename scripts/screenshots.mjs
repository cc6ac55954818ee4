// Takes the pictures that README and docs show, of real sessions of what is bundled: screenshots.mjs ROOT PICTURES
//
// stack.mjs lists what else it needs. Exits 1 if a picture is larger than PICTURE_BYTES_MAX, so that documents open quickly.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { browse, settled, start, stop, trigger } from "./stack.mjs";

const [root, pictures] = process.argv.slice(2);
const PICTURE_BYTES_MAX = 150_000;
const json = (path) => JSON.parse(readFileSync(join(root, path), "utf8"));
const incident = (name) => ({ agent: "incident", input: { ...json(`packs/incident/incidents/${name}/incident.json`), snapshot: join(root, "packs/incident/incidents", name) } });

// A tool server that does not start, at a path that does not exist.
const servers = join(process.env.FOLDER, "servers.json");
writeFileSync(servers, JSON.stringify({ mcpServers: { "aws-diagnostics": { command: "/opt/diagnostics/server" } } }));
const broken = await start("127.0.0.1:0", { DAYBOOK_MCP_SERVERS: servers, DAYBOOK_ALLOWED_PATHS: root });
const ids = { failed: await trigger(broken, { agent: "incident", input: { lambda_name: "data-processor" } }) };
await settled(broken, ids.failed);
await stop();

const endpoint = await start("127.0.0.1:0", { PATH: process.env.PATH, DAYBOOK_ALLOWED_PATHS: root });
for (const [name, detail] of Object.entries({
  network: { agent: "network", input: { ...json("packs/network/networks/wrong-route-target/query.json"), inventory: join(root, "packs/network/networks/wrong-route-target/network.json") } },
  throttled: incident("reserved-concurrency-zero"), refused: { agent: "incident", input: { lambda_name: 7 } },
  fraud: { agent: "fraud", input: { ...json("packs/fraud/transactions/account-takeover.json"), data: join(root, "packs/fraud/transactions/sample.csv") } },
  blocked: incident("network-blocked"),
  asking: { agent: "assistant", input: { message: "simulate 250 mg of theophylline every 8 h for 1 day" } },
  diagnosed: incident("s3-permission-revoked"),
})) {
  ids[name] = await trigger(endpoint, detail);
  await settled(endpoint, ids[name]);
}

const browser = await browse();
const context = await browser.newContext({ viewport: { width: 1040, height: 660 }, reducedMotion: "reduce" });
const page = await context.newPage();

async function picture(name, route, shows, scheme = "light") {
  await page.emulateMedia({ colorScheme: scheme });
  await page.goto("about:blank");
  await page.goto(`${endpoint}/${route}`);
  await page.locator(shows).first().waitFor();
  await page.waitForLoadState("networkidle", { timeout: 2_000 }).catch(() => {});
  const bytes = await page.screenshot({ path: join(pictures, `${name}.png`) });
  console.log(`${name}.png: ${bytes.length} bytes`);
  assert.ok(bytes.length <= PICTURE_BYTES_MAX, `${name}.png has ${bytes.length} bytes, ${PICTURE_BYTES_MAX} at most`);
}

await picture("sessions", "#/", ".histogram .column:enabled");
await picture("start", "#/new/assistant", "form .form");
await picture("diagnosis", `#/session/${ids.throttled}`, ".summary button.chip");
await page.locator(".conclusion .cite").first().click();
await picture("evidence", new URL(page.url()).hash, "mark.cited");
await picture("conversation", `#/session/${ids.diagnosed}?tab=talk`, ".said.tool");
await picture("failure", `#/session/${ids.failed}`, ".summary button.chip", "dark");
await picture("question", "#/inbox", ".ask h2");
await picture("compare", `#/compare/${ids.diagnosed}/${ids.throttled}`, ".compared");
await picture("health", "#/health", ".bars");
await browser.close();
await stop("SIGKILL");
