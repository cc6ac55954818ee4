// The language of the search field: `tool:get_iam_state status:failed since:7d words`, and the same as parameters of the API.

/** Fields that the API filters by; anything else is searched for as text. */
const FIELDS = ["status", "verdict", "agent", "tool", "since", "until"];

/** A part of a query: a quoted text, a field with a quoted value, or a word. */
const PARTS = /(?:([a-z]+):)?(?:"([^"]*)"|(\S+))/gi;

/** Reads a query into its fields; the remaining words are its `text`. */
export function parsed(query) {
  const found = {};
  const words = [];
  for (const [all, field, quoted, word] of query.matchAll(PARTS)) {
    const name = field?.toLowerCase();
    const value = quoted ?? word ?? "";
    if (!FIELDS.includes(name)) words.push(quoted !== undefined && !field ? quoted : all);
    else if (value) found[name] = name === "status" ? value.toUpperCase().replaceAll("-", "_").replaceAll(" ", "_") : value;
  }
  if (words.length) found.text = words.join(" ");
  return found;
}

/** Writes fields as a query. */
export function written(fields) {
  const quote = (value) => (/[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value);
  const parts = FIELDS.filter((name) => fields[name]).map((name) => `${name}:${quote(name === "status" ? fields[name].toLowerCase() : fields[name])}`);
  return [...parts, ...(fields.text ? [fields.text] : [])].join(" ");
}

/** The query of an address: `q`, or the fields one by one. */
export function asked(query) {
  const fields = Object.fromEntries([...FIELDS, "text"].filter((name) => query.get(name)).map((name) => [name, query.get(name)]));
  return query.get("q") ?? written(fields);
}

/** The parameters of the API for a query. */
export function parameters(query, limit) {
  return new URLSearchParams({ limit, ...parsed(query) });
}
