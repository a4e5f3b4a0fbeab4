/** What the page is told: `config.json` beside it, and `?ws=` and `?token=` in its address. */

import { tabStorage } from "./store.js";
import { DEFAULT_TIMING } from "./timing.js";

/**
 * @import { Timing } from "./timing.js"
 *
 * @typedef {{ id: string, name: string }} Episode
 *
 * @typedef {object} Settings
 * @property {string} webSocketUrl  without the token
 * @property {string} token  "" if there is none
 * @property {string[]} examples
 * @property {Episode[]} episodes  to choose from; none if they have to be typed
 * @property {Timing} timing
 */

/** The page cannot work with what it was told; the message is for the asker. */
export class SettingsError extends Error {
  /**
   * @param {string} message
   * @param {boolean} [temporary]  whether trying again later can help
   */
  constructor(message, temporary = false) {
    super(message);
    this.temporary = temporary;
  }
}

/**
 * Read the settings. The address wins over `config.json`, which then need not be there.
 *
 * A token is taken out of the address, so that it gets into no history, bookmark or screenshot, and is kept for
 * reloads of this tab; only the server that it came with ever gets it.
 *
 * @returns {Promise<Settings>}
 * @throws {SettingsError}
 */
export async function readSettings() {
  const address = new URL(location.href);
  const fromAddress = address.searchParams.get("ws");
  const config = await readConfig(fromAddress !== null);
  const webSocketUrl = socketUrl(fromAddress ?? config.webSocketUrl);
  const place = `cicada:token:${webSocketUrl}`;
  const token = address.searchParams.get("token");
  if (token !== null) {
    tabStorage.setItem(place, token);
    address.searchParams.delete("token");
    history.replaceState(history.state, "", address);
  }
  return {
    webSocketUrl,
    token: token ?? tabStorage.getItem(place) ?? "",
    examples: strings(config.examples),
    episodes: (Array.isArray(config.episodes) ? config.episodes : []).flatMap(readEpisode),
    timing: { ...DEFAULT_TIMING, ...config.timing },
  };
}

/**
 * The address to open. A browser can set no header on a WebSocket, so the token goes into its query.
 *
 * @param {Settings} settings
 * @returns {string}
 */
export function authorizedUrl({ webSocketUrl, token }) {
  const url = new URL(webSocketUrl);
  if (token) url.searchParams.set("token", token);
  return url.href;
}

/**
 * @param {boolean} optional
 * @returns {Promise<Record<string, any>>}
 */
async function readConfig(optional) {
  try {
    const response = await fetch(new URL("config.json", document.baseURI), { cache: "no-cache" });
    if (response.ok) return Object(await response.json());
    if (optional) return {};
    if (response.status === 503) throw new SettingsError("The server is still being set up.", true);
    throw new SettingsError(`config.json cannot be read: HTTP ${response.status}.`, response.status >= 500);
  } catch (error) {
    if (error instanceof SettingsError) throw error;
    if (optional) return {};
    if (error instanceof SyntaxError) throw new SettingsError("config.json is no valid JSON.");
    throw new SettingsError("The page's server cannot be reached.", true);
  }
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function socketUrl(value) {
  if (typeof value !== "string" || !value) throw new SettingsError("config.json names no webSocketUrl.");
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url === null || !["ws:", "wss:"].includes(url.protocol)) {
    throw new SettingsError(`“${value}” is no WebSocket address.`);
  }
  url.hash = "";
  return url.href;
}

/**
 * @param {unknown} value
 * @returns {Episode[]}
 */
function readEpisode(value) {
  if (typeof value === "string") return [{ id: value, name: value }];
  const { id, name } = Object(value);
  return typeof id === "string" ? [{ id, name: typeof name === "string" ? name : id }] : [];
}

/**
 * @param {unknown} value
 * @returns {string[]}
 */
function strings(value) {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
