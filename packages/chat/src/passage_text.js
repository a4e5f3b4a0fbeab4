/** A passage's words as nodes, with those marked that an answer rests on. */

import { el } from "./dom.js";

/** @import { Range } from "./marks.js" */

/**
 * @param {string} text
 * @param {Range[]} marks  in order
 * @param {Range} [part]  of the text; the whole if it is left out
 * @returns {(Node | string)[]}
 */
export function markedText(text, marks, [from, to] = [0, text.length]) {
  /** @type {(Node | string)[]} */
  const nodes = [];
  let end = from;
  for (const [start, stop] of marks) {
    if (stop <= end || start >= to) continue;
    const [first, last] = [Math.max(start, end), Math.min(stop, to)];
    nodes.push(text.slice(end, first), el("mark", {}, text.slice(first, last)));
    end = last;
  }
  nodes.push(text.slice(end, to));
  return nodes.filter((node) => node !== "");
}
