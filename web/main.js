/** Puts the page together. */

import { Connection } from "./connection.js";
import { Conversation } from "./conversation.js";
import { authorizedUrl, keepToken, readSettings, SettingsError } from "./settings.js";
import { Store } from "./store.js";
import { View } from "./view.js";
import { counted } from "./words.js";

/** @import { Settings } from "./settings.js" */

/** Between two looks whether the server is set up by now. */
const SETTINGS_RETRY_MS = 2_000;

/** @type {Conversation | undefined} */
let conversation;
/** @type {Connection | undefined} */
let connection;

const view = new View({
  ask: (query, episodes) => conversation && view.add(conversation.ask(query, episodes)),
  cancel: (turn) => conversation?.cancel(turn),
  call: (action) => connection?.call(action) ?? Promise.reject(new Error("not connected yet")),
  clear: () => conversation?.clear(),
  retry: () => connection?.retry(),
  signIn: (token) => {
    if (settings) keepToken(settings, token);
    location.reload();
  },
});

const settings = await patientSettings();
if (settings) start(settings);

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
  const { timing } = settings;
  const opened = new Connection(authorizedUrl(settings), {
    timing,
    onChange: (exchange) => {
      talk.changed(exchange);
      const turn = talk.turns.find((one) => one.exchange === exchange);
      if (turn) view.changed(turn);
    },
    onStatus: (status) => view.showStatus(status),
  });
  const talk = new Conversation(new Store(settings.webSocketUrl), opened, timing);
  connection = opened;
  conversation = talk;

  view.ready(settings.examples, settings.episodes);
  const restored = talk.restore();
  for (const turn of restored) view.add(turn);
  if (restored.length) view.announce(`${counted(restored.length, "earlier question")} shown again.`);

  addEventListener("online", () => opened.check());
  addEventListener("pageshow", () => opened.check());
  document.addEventListener("visibilitychange", () => opened.attend(!document.hidden));
  opened.attend(!document.hidden);
  if (matchMedia("(pointer: fine)").matches) view.focus(); // on a touch screen it would call up the keyboard
}
