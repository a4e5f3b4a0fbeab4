/** An answer as Markdown, with its sources, to be used elsewhere. */

import { t } from "./i18n.js";
import { markersIn } from "../../client/src/markers.js";
import { placeOf } from "./words.js";

/** @import { RequestTail } from "../../client/src/tail.js" */

/**
 * @param {RequestTail} tail
 * @returns {string} the text as it was written, and the sources that it cites
 */
export function answerMarkdown({ text, sources }) {
  const cited = [...new Set(markersIn(text).flatMap(({ numbers }) => numbers))].sort((a, b) => a - b);
  const lines = cited.flatMap((n) => {
    const source = sources.get(n);
    return source ? [`- [${n}] ${placeOf(source.locator).join(" · ")}`] : [];
  });
  return lines.length ? `${text.trim()}\n\n${t("share.sources")}\n\n${lines.join("\n")}\n` : `${text.trim()}\n`;
}
