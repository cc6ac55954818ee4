// Schemas: JSON schema objects, or schemas of a library that implements Standard JSON Schema (zod, valibot, arktype …).

/** The JSON schema. Not async: an effect gets its number when the agent's code asks for it. */
export function schemaOf(schema) {
  const library = schema?.["~standard"];
  if (!library) return schema;
  if (typeof library.jsonSchema?.input !== "function") {
    throw new TypeError(`schemas of this version of ${library.vendor} have no JSON schema; update it, or pass a JSON schema`);
  }
  const { $schema: _, ...json } = library.jsonSchema.input({ target: "draft-2020-12" });
  return json;
}

/** The value as the schema's library reads it: with its defaults and refinements. The host has validated the JSON schema. */
export async function validated(schema, value) {
  const library = schema?.["~standard"];
  if (!library) return value;
  const read = await library.validate(value);
  if (!read.issues) return read.value;
  const problems = read.issues.map(({ path = [], message }) => {
    const place = path.map((part) => (typeof part === "object" ? part.key : part)).join(".");
    return place ? `${place}: ${message}` : message;
  });
  throw new TypeError(problems.join("; "));
}
