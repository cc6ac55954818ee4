// JSON with exact integers, and the canonical text that digests cover (docs/protocol.md, "Digests").
//
// JSON.parse rounds integers beyond 2^53. `parse` returns those as BigInt, and `stringify` writes BigInt as integers.

const INTEGER_MIN = -(2n ** 63n);
const INTEGER_MAX = 2n ** 64n - 1n;
const DEPTH_MAX = 100;

/** The value cannot be journaled as JSON. */
export class JsonError extends TypeError {
  constructor(path, problem) {
    super(`${path || "the value"} ${problem}`);
    this.name = "JsonError";
  }
}

/** Parses JSON; integers that a number cannot hold exactly become BigInt. */
export function parse(text) {
  // Few texts have such integers, and JSON.parse is much faster.
  return /\d{16}/.test(text) ? new Parser(text).document() : JSON.parse(text);
}

/** Writes a value as JSON. `undefined` members are left out, as JSON.stringify does. Throws JsonError. */
export function stringify(value) {
  return write(value === undefined ? null : value, false, "", 0);
}

/** The canonical text of a value. */
export function canonical(value) {
  return write(value === undefined ? null : value, true, "", 0);
}

function write(value, isCanonical, path, depth) {
  if (depth > DEPTH_MAX) throw new JsonError(path, `is nested deeper than ${DEPTH_MAX} levels`);
  switch (typeof value) {
    case "string":
      return text(value, isCanonical, path);
    case "boolean":
      return String(value);
    case "number":
      return number(value, isCanonical, path);
    case "bigint":
      if (value < INTEGER_MIN || value > INTEGER_MAX) throw new JsonError(path, "is an integer of more than 64 bits");
      return String(value);
    case "object":
      if (value === null) return "null";
      if (typeof value.toJSON === "function") return write(value.toJSON() ?? null, isCanonical, path, depth + 1);
      if (Array.isArray(value)) return list(value, isCanonical, path, depth);
      return object(value, isCanonical, path, depth);
    default:
      throw new JsonError(path, `is a ${typeof value}, which JSON does not have`);
  }
}

function list(values, isCanonical, path, depth) {
  const items = values.map((value, index) => write(value ?? null, isCanonical, `${path}[${index}]`, depth + 1));
  return `[${items.join(",")}]`;
}

function object(value, isCanonical, path, depth) {
  if (value instanceof Map || value instanceof Set) {
    throw new JsonError(path, `is a ${value.constructor.name}; convert it to an object or an array`);
  }
  let names = Object.keys(value).filter((name) => value[name] !== undefined);
  if (isCanonical) names = names.sort(byUtf8);
  const members = names.map((name) => {
    const inside = path ? `${path}.${name}` : name;
    return `${text(name, isCanonical, inside)}:${write(value[name], isCanonical, inside, depth + 1)}`;
  });
  return `{${members.join(",")}}`;
}

// UTF-16 order, which `sort` uses, differs from byte order beyond the basic plane.
function byUtf8(a, b) {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function text(value, isCanonical, path) {
  if (!value.isWellFormed()) throw new JsonError(path, "has a lone surrogate, which is no Unicode text");
  // JSON.stringify escapes as the canonical form does: short escapes where there are any, else \u00xx.
  return JSON.stringify(value);
}

function number(value, isCanonical, path) {
  if (!Number.isFinite(value)) throw new JsonError(path, `is ${value}, which JSON does not have`);
  if (isCanonical) return decimal(value);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new JsonError(path, "is beyond 2^53 - 1, where numbers are not exact; use a BigInt or a text");
  }
  return Object.is(value, -0) ? "0" : String(value);
}

// The shortest text that reads back as the same double, without an exponent.
function decimal(value) {
  if (value === 0) return "0";
  const [mantissa, exponent] = String(Math.abs(value)).split("e");
  const sign = value < 0 ? "-" : "";
  if (exponent === undefined) return sign + mantissa;
  const [whole, fraction = ""] = mantissa.split(".");
  const digits = whole + fraction;
  const point = whole.length + Number(exponent);
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  if (point >= digits.length) return sign + digits + "0".repeat(point - digits.length);
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

class Parser {
  constructor(source) {
    this.source = source;
    this.at = 0;
  }

  document() {
    const value = this.value();
    this.space();
    if (this.at < this.source.length) this.fail();
    return value;
  }

  value() {
    this.space();
    const first = this.source[this.at];
    if (first === "{") return this.object();
    if (first === "[") return this.list();
    if (first === '"') return this.string();
    return this.scalar();
  }

  object() {
    const value = {};
    this.members("}", () => {
      this.space();
      const name = this.string();
      this.space();
      this.take(":");
      // Not by assignment: `__proto__` would set the prototype.
      Object.defineProperty(value, name, { value: this.value(), enumerable: true, writable: true, configurable: true });
    });
    return value;
  }

  list() {
    const values = [];
    this.members("]", () => values.push(this.value()));
    return values;
  }

  members(end, read) {
    this.at += 1;
    this.space();
    if (this.source[this.at] === end) {
      this.at += 1;
      return;
    }
    for (;;) {
      read();
      this.space();
      if (this.source[this.at] === end) break;
      this.take(",");
    }
    this.at += 1;
  }

  string() {
    return JSON.parse(this.match(/"(?:[^"\\]|\\.)*"/y));
  }

  scalar() {
    const token = this.match(/-?\d[\d.eE+-]*|true|false|null/y);
    const value = JSON.parse(token);
    const isExact = typeof value !== "number" || !/^-?\d+$/.test(token) || Number.isSafeInteger(value);
    return isExact ? value : BigInt(token);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.source);
    if (!found) this.fail();
    this.at = pattern.lastIndex;
    return found[0];
  }

  take(character) {
    if (this.source[this.at] !== character) this.fail();
    this.at += 1;
  }

  space() {
    while (" \t\r\n".includes(this.source[this.at] ?? "x")) this.at += 1;
  }

  fail() {
    throw new SyntaxError(`invalid JSON at position ${this.at}`);
  }
}
