/** A conversation as a file. */

import { answerMarkdown } from "../packages/chat/src/shared_answer.js";

/** @import { Turn } from "../packages/client/src/conversation.js" */

/** How long the file's address is kept for the browser to read it. */
const KEPT_MS = 60_000;

/**
 * A conversation as Markdown: each question as a heading, its answer and the sources that it cites.
 *
 * @param {Turn[]} turns
 * @returns {string}
 */
export function conversationMarkdown(turns) {
  return turns.map(({ ask, exchange }) => `## ${oneLine(ask.query)}\n\n${answerMarkdown(exchange.tail)}`).join("\n");
}

/**
 * Have the browser save it.
 *
 * @param {Turn[]} turns  at least one
 */
export function saveConversation(turns) {
  const url = URL.createObjectURL(new Blob([conversationMarkdown(turns)], { type: "text/markdown" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${fileName(turns[0].ask.query)}.md`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}

/** @param {string} text */
function oneLine(text) {
  return text.replace(/\s+/g, " ").trim();
}

/** @param {string} text */
function fileName(text) {
  return oneLine(text.replace(/[^\p{L}\p{N} ]/gu, " ")).slice(0, 60) || "conversation";
}
