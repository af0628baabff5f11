// How the words of a page are looked up, and those of the shell.
import shell from "./words/shell.json" with { type: "json" };

export const LANGUAGES = shell.languages;
export const PAGES = shell.pages;

// t("cell", {row: "a"}): the sentence with its values filled in; a word that is missing is looked for in English.
export const speaker = (words, language) => (key, values = {}) => {
  const text = words[language]?.[key] ?? words.en?.[key] ?? key;
  return String(text).replace(/\{(\w+)\}/g, (whole, name) => (Object.hasOwn(values, name) ? String(values[name]) : whole));
};

export const shellSpeaker = (language) => speaker(shell.words, language);
