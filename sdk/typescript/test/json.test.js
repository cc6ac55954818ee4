import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { covered, digest } from "../src/digest.js";
import { JsonError, parse, stringify } from "../src/json.js";

const vectors = parse(readFileSync(new URL("../../protocol-vectors.json", import.meta.url), "utf8"));

test("every vector has its canonical text and digest", () => {
  assert.ok(vectors.length > 10);
  for (const { effect, canonical, digest: expected } of vectors) {
    assert.equal(covered(effect), canonical);
    assert.equal(digest(effect), expected);
  }
});

test("integers are exact in both directions", () => {
  const text = '{"a":[18446744073709551615,-9223372036854775808,1],"b":"1234567890123456789"}';
  assert.deepEqual(parse(text).a, [18446744073709551615n, -9223372036854775808n, 1]);
  assert.equal(stringify(parse(text)), text);
  assert.equal(Object.getPrototypeOf(parse('{"__proto__":{"x":12345678901234567}}')), Object.prototype);
});

test("what JSON cannot hold is refused with its place", () => {
  const circle = {};
  circle.circle = circle;
  for (const [value, problem] of [
    [{ a: [0, NaN] }, /^a\[1\] is NaN/],
    [{ a: 2 ** 53 }, /^a is beyond 2\^53/],
    [2n ** 64n, /more than 64 bits/],
    ["\ud800", /lone surrogate/],
    [{ f: () => 1 }, /^f is a function/],
    [{ m: new Map() }, /is a Map/],
    [circle, /nested deeper/],
  ]) {
    assert.throws(() => stringify(value), (error) => error instanceof JsonError && problem.test(error.message));
  }
});

test("invalid JSON is refused", () => {
  for (const text of ['{"a":12345678901234567', "[1234567890123456789,]", '{"a" 12345678901234567}', "12345678901234567 x"]) {
    assert.throws(() => parse(text), SyntaxError);
  }
});
