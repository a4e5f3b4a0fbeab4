/** One quiet line, which opens where there is more to say. */

import { el, icon } from "./dom.js";

/**
 * @param {string} sign  the icon's name
 * @param {(Node | string)[]} line
 * @param {(Node | string)[]} [details]  a paragraph each, unless they are elements
 * @returns {HTMLElement}
 */
export function note(sign, line, details = []) {
  const words = el("span", { class: "line", dir: "auto" }, ...line);
  if (details.length === 0) return el("p", { class: "note" }, icon(sign), words);
  const body = details.map((detail) => (typeof detail === "string" ? el("p", { dir: "auto" }, detail) : detail));
  const summary = el("summary", {}, icon(sign), words, icon("chevron"));
  return el("details", { class: "note" }, summary, el("div", { class: "more-said" }, ...body));
}
