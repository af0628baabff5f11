// What the page asks the studio, and what it was told: kept by question, so that an offline page can answer the same.
import { ask, keep, token } from "./token.js";

// bytes of answers that are kept for one view
const MOST = 24 << 20;

// An error for people, in the language `lang`.
export class Wrong extends Error {
  constructor(message, todo = "", status = 0, lang = document.documentElement.lang) {
    super(message);
    Object.assign(this, { name: "Wrong", todo, status, lang });
  }

  get whole() {
    return [this.message, this.todo].filter(Boolean).join(" ");
  }
}

const key = (path, body) => JSON.stringify([path, body ?? null]);
const saved = document.getElementById("offline");
export const offline = saved ? JSON.parse(saved.textContent) : null;

const unpacked = (text) => {
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  return new Float32Array(bytes.buffer);
};
export const base64 = (bytes) => {
  const parts = [];
  for (let at = 0; at < bytes.length; at += 0x8000) parts.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  return btoa(parts.join(""));
};

export class Recorder {
  constructor() {
    [this.kept, this.bytes, this.cut] = [new Map(), 0, false];
  }

  keep(path, body, value, bytes) {
    const question = key(path, body);
    this.drop(question);
    this.kept.set(question, { value, bytes });
    this.bytes += bytes;
    if (this.bytes <= MOST) return;
    // the oldest arrays first: without what is said of a text, an offline page could show none of its maps
    const large = (name) => Boolean(this.kept.get(name).value.data?.buffer);
    for (const oldest of [...this.kept.keys()].sort((a, b) => large(b) - large(a))) {
      if (this.bytes <= MOST) break;
      if (oldest !== question) this.drop(oldest);
    }
    this.cut = true;
  }

  drop(question) {
    this.bytes -= this.kept.get(question)?.bytes ?? 0;
    this.kept.delete(question);
  }

  // For the offline page: plain JSON.
  answers() {
    return [...this.kept].map(([question, { value }]) => [question, value.data instanceof Float32Array && value.shape
      ? { floats: base64(new Uint8Array(value.data.buffer, value.data.byteOffset, value.data.byteLength)), shape: value.shape, about: value.about } : { json: value }]);
  }
}

// What the studio says is English. The sentences that people meet most are among the words, with {0}, {1} … for a file's name
// in front, what is in quotes or brackets, lists and numbers.
const PARTS = /^.*\.\w{3,5}(?=: )|"[^"]*"|\(.*\)|Known: .*|\d[\d,]*/g;
export const translated = (text, t) => {
  const values = {};
  let count = 0;
  const sentence = text.replace(PARTS, (part) => {
    values[count] = part;
    return `{${count++}}`;
  });
  return t(sentence, values);
};

const asked = async (path, body, options, t) => {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  let response;
  try {
    response = await fetch(path, {
      method: body === undefined ? "GET" : "POST", body: body && JSON.stringify(body),
      headers: { ...headers, ...options.headers }, signal: options.signal, credentials: "omit",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Wrong(t("gone"));
  }
  if (response.ok) return response;
  const told = await response.json().then((content) => content.error, () => null);
  const english = told?.message ?? `${response.status} ${response.statusText}`;
  const message = translated(english, t);
  throw new Wrong(message, told?.what_to_do, response.status, message === english ? "en" : undefined);
};

// The answers to questions that may be asked again, the newest `most` of them; what failed is asked anew. One that is looked
// at again is new again, also for who saves the page.
export const remembering = (ask, most = Infinity) => {
  const known = new Map();
  return (question) => {
    const name = JSON.stringify(question);
    const found = known.get(name);
    const answer = found ?? ask(question);
    known.delete(name);
    known.set(name, answer);
    if (found) answer.then(({ keep }) => keep?.(), () => {});
    else answer.catch(() => known.delete(name));
    if (known.size > most) known.delete(known.keys().next().value);
    return answer;
  };
};

// json, floats, send, act and events for one view; `t` speaks for the shell, `signal` ends what is under way.
export const asker = (recorder, t, signal) => {
  const answers = offline && new Map(offline.answers);
  const remembered = (path, body) => {
    const found = answers.get(key(path, body));
    if (!found) throw new Wrong(t("absent"));
    if (!found.floats && found.floats !== "") return found.json;
    return { data: unpacked(found.floats), shape: found.shape, about: found.about };
  };
  const json = async (path, body) => {
    if (offline) return structuredClone(remembered(path, body));
    const text = await (await asked(path, body, { signal }, t)).text();
    const value = JSON.parse(text);
    recorder.keep(path, body, value, text.length);
    // what the page does to it does not change what was told
    return structuredClone(value);
  };
  const floats = async (path, body) => {
    if (offline) return remembered(path, body);
    const response = await asked(path, body, { signal }, t);
    const shape = (response.headers.get("X-Shape") || "").split(",").filter(Boolean).map(Number);
    const about = JSON.parse(response.headers.get("X-About") || "{}");
    const data = new Float32Array(await response.arrayBuffer());
    const keep = () => recorder.keep(path, body, { data, shape, about }, data.byteLength);
    keep();
    return { data, shape, about, keep };
  };
  // What is too large to be kept among the answers of a view.
  const send = async (path, body) => (await asked(path, body, { signal }, t)).json();
  const act = async (path, body = {}) => {
    if (offline) throw new Wrong(t("absent"));
    let wrong = false;
    for (;;) {
      const given = token() ?? await ask(t, wrong);
      if (!given) throw new DOMException("nobody gave the token", "AbortError");
      try {
        return await (await asked(path, body, { signal, headers: { "X-Jumok-Token": given } }, t)).json();
      } catch (error) {
        if (error.status !== 401) throw error;
        keep(null);
        wrong = true;
      }
    }
  };
  const events = (path, handler) => {
    if (offline) return () => {};
    const source = new EventSource(path);
    source.onmessage = (event) => handler(JSON.parse(event.data));
    const close = () => source.close();
    signal.addEventListener("abort", close);
    return close;
  };
  return { json, floats, send, act, events };
};
