/** Puts the page together. */

import { Chat } from "../packages/chat/src/chat.js";
import { t, translate, useLanguage } from "../packages/chat/src/i18n.js";
import { bearer, Session } from "../packages/client/src/session.js";
import { tabStorage } from "../packages/client/src/store.js";
import { ConversationsView } from "./conversations_view.js";
import { saveConversation } from "./download.js";
import { followReaderLink, noteReading, readerLink } from "./reader_link.js";
import { keepToken, readSettings, SettingsError } from "./settings.js";
import { UploadsView } from "./uploads_view.js";
import { PageView } from "./view.js";

/** @import { Settings } from "./settings.js" */

/** Between two looks whether the server is set up by now. */
const SETTINGS_RETRY_MS = 2_000;
/** After so many failures in a row the token is suspected: a browser is not told why a socket was refused. */
const SUSPICIOUS_FAILURES = 2;
/** Where what is written and not sent waits while its writer signs in. */
const DRAFT = "cicada:draft";
/** Where the passage that the address named waits meanwhile. */
const READING = "cicada:reading";
/** The parameter of the address that names the conversation. */
const CONVERSATION = "c";

/** @type {Session | undefined} */
let session;

document.documentElement.lang = useLanguage(navigator.languages);
document.title = t("page.title");
translate(document);

const chat = new Chat({
  landmark: "main",
  onRead: noteReading,
  linkOf: readerLink,
  onStatus: (status) => {
    view.showStatus(status);
    if (status.state === "waiting" && status.failures >= SUSPICIOUS_FAILURES) session?.suspect();
  },
  onTurn: () => {
    view.showEmpty(false);
    showConversations();
  },
  onCorpus: () => {
    if (chat.corpus && chat.uploads) uploads.show(chat.corpus, chat.uploads);
  },
  onConversations: () => listed(),
  onAsk: () => {
    if (session?.state.state === "out") void signIn(); // the question waits, and is asked when its writer is back
  },
});
const conversations = new ConversationsView({
  open: (sessionId) => void openConversation(sessionId),
  begin: () => forget(),
  download: () => saveConversation(chat.turns),
  gone: () => forget(),
  announce: (text) => chat.view.announce(text),
});
const uploads = new UploadsView();
document.getElementById("bar")?.prepend(conversations.toggle);
document.getElementById("connection")?.before(uploads.toggle);
document.body.append(conversations.element, chat.view.element, uploads.element);
const view = new PageView({
  announce: (text) => chat.view.announce(text),
  clear: () => forget(),
  retry: () => {
    chat.view.focus();
    chat.connection?.retry();
  },
  signIn: () => void signIn(),
  signOut: () => void signOut(),
  useToken: (token) => {
    if (settings) keepToken(settings, token);
    location.reload();
  },
});

const address = cleanAddress();
const settings = await patientSettings();
if (settings) start(settings);

/**
 * What the page's address says, of which nothing about a sign-in stays in it.
 *
 * @returns {URLSearchParams}
 */
function cleanAddress() {
  const url = new URL(location.href);
  const found = new URLSearchParams(url.search);
  for (const name of ["code", "state", "error", "error_description", "iss", "session_state"]) url.searchParams.delete(name);
  if (url.href !== location.href) history.replaceState(null, "", url);
  return found;
}

/**
 * Read the settings, for as long as it can be hoped that they are there soon.
 *
 * @returns {Promise<Settings | null>}
 */
async function patientSettings() {
  for (;;) {
    try {
      const settings = await readSettings();
      view.hideBanner();
      return settings;
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      view.showBanner(error.message, error.temporary ? "waiting" : "broken");
      if (!error.temporary) return null;
      await new Promise((resolve) => setTimeout(resolve, SETTINGS_RETRY_MS));
    }
  }
}

/** @param {Settings} settings */
function start(settings) {
  const { token } = settings;
  const signedIn = settings.signIn && new Session(settings.signIn, {
    redirectUri: settings.home,
    storage: tabStorage,
    onChange: () => {
      if (signedIn) view.showSession(signedIn.state);
      chat.connection?.authorized();
    },
  });
  session = signedIn ?? undefined;
  chat.connect({
    ...settings,
    protocols: () => (signedIn ? signedIn.protocols : (bearer(token) ?? [])),
    onUnauthorized: (reason) => void signedIn?.refused(reason),
  });
  chat.view.draft = tabStorage.getItem(DRAFT) ?? "";
  tabStorage.removeItem(DRAFT);
  void signedIn?.restore(address);
  const reading = tabStorage.getItem(READING);
  tabStorage.removeItem(READING);
  if (reading && !location.hash) history.replaceState(null, "", reading);
  followReaderLink(chat);

  const check = () => {
    signedIn?.check();
    chat.check();
  };
  addEventListener("online", check);
  addEventListener("pageshow", check);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) signedIn?.check();
    chat.connection?.attend(!document.hidden);
  });
  if (matchMedia("(pointer: fine)").matches && !chat.view.reader.isOpen) chat.view.focus(); // on a touch screen it would call up the keyboard
}

/** Begin a new conversation. */
function forget() {
  chat.view.forget();
  view.showEmpty(true);
  showConversations();
}

/** The list was read. The first time, the conversation is shown that the address named. */
function listed() {
  const named = address.get(CONVERSATION);
  address.delete(CONVERSATION);
  if (named && named !== chat.sessionId && chat.conversations?.state === "known") void openConversation(named);
  else showConversations();
}

/** The list, and the address: it names the conversation, so that a bookmark opens it. */
function showConversations() {
  const empty = chat.turns.length === 0;
  if (chat.conversations) conversations.show(chat.conversations, chat.sessionId, empty);
  const url = new URL(location.href);
  if (empty || chat.conversations?.state !== "known") url.searchParams.delete(CONVERSATION);
  else url.searchParams.set(CONVERSATION, chat.sessionId);
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}

/** @param {string} sessionId */
async function openConversation(sessionId) {
  if (!(await chat.openConversation(sessionId))) view.showBanner(t("conversations.unknown"), "back");
  view.showEmpty(chat.turns.length === 0);
  showConversations();
}

async function signIn() {
  const url = await session?.begin();
  if (!url) return;
  tabStorage.setItem(DRAFT, chat.view.draft);
  if (location.hash) tabStorage.setItem(READING, location.hash);
  location.assign(url);
}

/** What was asked leaves the page with its asker. */
async function signOut() {
  forget();
  const url = await session?.signOut();
  if (url) location.assign(url);
}
