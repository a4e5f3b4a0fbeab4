/** What the corpus holds, in a few lines. */

import { el } from "./dom.js";
import { t } from "./i18n.js";

/**
 * @import { CollectionListed } from "../../client/src/replies.js"
 * @import { Corpus } from "./corpus.js"
 */

/** The command that loads a folder; the same in every language. */
const COMMAND = "cicada load FOLDER --collection NAME";

/**
 * The lines for the empty conversation: each collection with its counts, or how to load one.
 *
 * @param {Corpus} corpus
 * @returns {HTMLElement[]}
 */
export function holdings({ collections, empty }) {
  if (empty) return [el("p", {}, t("holdings.empty"), " ", t("holdings.load"), " ", el("code", {}, COMMAND))];
  return [el("h2", {}, t("holdings.title")), el("ul", {}, ...collections.map(holding))];
}

/**
 * @param {CollectionListed} collection
 * @returns {HTMLElement}
 */
function holding({ title, description, passages, documents, episodes, moreEpisodes }) {
  const many = episodes.length + moreEpisodes;
  const counts = [
    many ? t("holdings.episodes", { count: many }) : t("holdings.documents", { count: documents }),
    t("holdings.passages", { count: passages }),
  ];
  return el(
    "li",
    {},
    el("strong", { dir: "auto" }, title),
    ...(description ? [el("span", { dir: "auto" }, description)] : []),
    el("small", {}, counts.join(" · ")),
  );
}
