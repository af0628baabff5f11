// The state of a view in the address: #/translate?run=en-fr&head=3. A link reproduces the view; the token is never in it.

// strings that would be read as something else
const SPECIAL = /^(?:-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|true|false|'.*)$/is;
const FORBIDDEN = new Set(["token", "page", "__proto__"]);

const decoded = (text) => {
  if (text.startsWith("'")) return text.slice(1);
  if (text === "true" || text === "false") return text === "true";
  return SPECIAL.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
};
const encoded = (value) => (typeof value === "string" && SPECIAL.test(value) ? `'${value}` : String(value));

export const read = (hash) => {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const state = {};
  for (const [name, value] of new URLSearchParams(query)) {
    if (!FORBIDDEN.has(name)) state[name] = decoded(value);
  }
  return { page: path, state };
};

export const write = (page, state) => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (!FORBIDDEN.has(name) && ["string", "number", "boolean"].includes(typeof value)) query.append(name, encoded(value));
  }
  const text = query.toString();
  return `#/${page}${text ? `?${text}` : ""}`;
};

export const merged = (state, more) => {
  const result = { ...state };
  for (const [name, value] of Object.entries(more)) {
    if ((value ?? null) === null) delete result[name];
    else if (!FORBIDDEN.has(name)) result[name] = value;
  }
  return result;
};

// A whole number that a link may hold, as near to it as there is one.
export const fitted = (x, low, high, otherwise = low) => (Number.isFinite(x) ? Math.min(Math.max(Math.round(x), low), high) : otherwise);
