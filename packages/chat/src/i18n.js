/** Texts in the reader's language: `strings/<language>.json`, with plural forms and values filled in. */

import de from "../strings/de.json" with { type: "json" };
import en from "../strings/en.json" with { type: "json" };
import es from "../strings/es.json" with { type: "json" };
import ja from "../strings/ja.json" with { type: "json" };

/** @type {Record<string, Record<string, string>>} */
const STRINGS = { en, de, es, ja };

let language = "en";
let plurals = new Intl.PluralRules(language);

/** The languages that there are strings for. */
export const LANGUAGES = Object.keys(STRINGS);

/**
 * Use the first of these languages that there are strings for; English if there are none.
 *
 * @param {readonly string[]} wanted  BCP 47 tags, the preferred one first
 * @returns {string} the language's tag
 */
export function useLanguage(wanted) {
  language = wanted.map((tag) => tag.toLowerCase().split("-")[0]).find((tag) => tag in STRINGS) ?? "en";
  plurals = new Intl.PluralRules(language);
  return language;
}

/**
 * A text. Where it has plural forms, `count` chooses one.
 *
 * @param {string} id
 * @param {Record<string, string | number>} [values]  numbers are written as the language writes them
 * @returns {string}
 */
export function t(id, values = {}) {
  const strings = STRINGS[language];
  const form = typeof values.count === "number" ? `${id}.${plurals.select(values.count)}` : id;
  const text = strings[form] ?? strings[`${id}.other`] ?? strings[id] ?? en[/** @type {keyof typeof en} */ (id)] ?? id;
  return text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? formatted(value) : value;
  });
}

/**
 * Whether there is a text of this id.
 *
 * @param {string} id
 * @returns {boolean}
 */
export function known(id) {
  return id in en || `${id}.other` in en;
}

/**
 * What the server says, in the reader's language where its code is known. English readers get the server's own words, which
 * may have details.
 *
 * @param {string} code
 * @param {string} message
 * @returns {string}
 */
export function told(code, message) {
  return STRINGS[language][`code.${code}`] ?? said(message);
}

/**
 * A sentence of the client, in the reader's language.
 *
 * @param {string} sentence
 * @returns {string}
 */
export function said(sentence) {
  return STRINGS[language][`said.${sentence}`] ?? sentence;
}

/**
 * @param {number} value
 * @param {Intl.NumberFormatOptions} [options]
 * @returns {string}
 */
export function formatted(value, options) {
  return value.toLocaleString(language, options);
}

/**
 * @param {Date} date
 * @param {Intl.DateTimeFormatOptions} options
 * @returns {string}
 */
export function formattedDate(date, options) {
  return date.toLocaleString(language, options);
}

/**
 * Fill the texts of a document: `data-t` names an element's text, `data-t-<attribute>` that of an attribute.
 *
 * @param {ParentNode} root
 */
export function translate(root) {
  for (const element of root.querySelectorAll("*")) {
    for (const { name, value } of [...element.attributes]) {
      if (name === "data-t") element.textContent = t(value);
      else if (name.startsWith("data-t-")) element.setAttribute(name.slice("data-t-".length), t(value));
    }
  }
}
