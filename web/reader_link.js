/** The passage that is read, in the page's address: `#read/<collection>/<passage>` opens it again. */

/**
 * @import { Chat } from "../packages/chat/src/chat.js"
 * @import { PassageName } from "../packages/chat/src/reader_view.js"
 */

const PREFIX = "#read/";

/**
 * @param {PassageName} name
 * @returns {string}
 */
export function readerLink({ collection, passageId }) {
  const url = new URL(location.href);
  url.hash = PREFIX + [collection, passageId].filter(Boolean).map(encodeURIComponent).join("/");
  return url.href;
}

/**
 * @param {string} hash
 * @returns {PassageName | null} null where it names no passage
 */
export function linkedPassage(hash) {
  if (!hash.startsWith(PREFIX)) return null;
  try {
    const parts = hash.slice(PREFIX.length).split("/").map(decodeURIComponent);
    const passageId = parts.at(-1) ?? "";
    return passageId && parts.length <= 2 ? { collection: parts.length === 2 ? parts[0] : "", passageId } : null;
  } catch {
    return null;
  }
}

/**
 * Keep the passage that is shown in the address. The browser's button *Back* closes it.
 *
 * @param {PassageName | null} name
 */
export function noteReading(name) {
  const before = linkedPassage(location.hash);
  if (name && before) history.replaceState(history.state, "", readerLink(name));
  else if (name) history.pushState({ reading: true }, "", readerLink(name));
  else if (before && history.state?.reading) history.back();
  else if (before) history.replaceState(null, "", location.pathname + location.search);
}

/**
 * Show what the address names, now and when it changes.
 *
 * @param {Chat} chat
 */
export function followReaderLink(chat) {
  history.scrollRestoration = "manual";
  const follow = () => {
    const name = linkedPassage(location.hash);
    if (name) void chat.view.reader.open(name);
    else chat.view.reader.close();
  };
  addEventListener("popstate", follow);
  if (linkedPassage(location.hash)) follow();
}
