/** What the page is told: `config.json` beside it, and the token that its user gives it. */

import { tabStorage } from "../packages/client/src/store.js";
import { t } from "../packages/chat/src/i18n.js";
import { DEFAULT_TIMING } from "../packages/client/src/timing.js";

/**
 * @import { SignIn } from "../packages/client/src/oidc.js"
 * @import { Episode } from "../packages/chat/src/scope_view.js"
 * @import { Timing } from "../packages/client/src/timing.js"
 *
 * @typedef {object} Settings
 * @property {string} webSocketUrl
 * @property {string} home  the page's own address, which sign-ins return to
 * @property {SignIn | null} signIn  how users sign in; null if the page asks for a token instead
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
 * Read the settings.
 *
 * A link must neither redirect questions nor plant an account. So the address names a server (`?ws=`) only where
 * `config.json` allows it, and never a token.
 *
 * @returns {Promise<Settings>}
 * @throws {SettingsError}
 */
export async function readSettings() {
  const config = await readConfig();
  const fromAddress = config.serverFromAddress === true ? new URL(location.href).searchParams.get("ws") : null;
  const webSocketUrl = fromAddress === null ? socketUrl(config.webSocketUrl).href : withoutAccount(socketUrl(fromAddress));
  return {
    webSocketUrl,
    home: new URL(".", configUrl()).href,
    signIn: fromAddress === null ? readSignIn(config.signIn) : null, // a server that a link names gets no token
    token: tabStorage.getItem(placeOf(webSocketUrl)) ?? "",
    examples: strings(config.examples),
    episodes: (Array.isArray(config.episodes) ? config.episodes : []).flatMap(readEpisode),
    timing: { ...DEFAULT_TIMING, ...config.timing },
  };
}

/**
 * Keep a token for reloads of this tab; only the server that it is given for ever gets it.
 *
 * @param {Settings} settings
 * @param {string} token
 */
export function keepToken({ webSocketUrl }, token) {
  tabStorage.setItem(placeOf(webSocketUrl), token.trim());
}

/** @param {string} webSocketUrl */
function placeOf(webSocketUrl) {
  return `cicada:token:${webSocketUrl}`;
}

/** Where `config.json` is: beside the page, wherever a host shows that, as its document says. */
function configUrl() {
  const named = document.querySelector('meta[name="config"]')?.getAttribute("content");
  return new URL(named ?? "config.json", document.baseURI);
}

/** @returns {Promise<Record<string, any>>} */
async function readConfig() {
  try {
    const response = await fetch(configUrl(), { cache: "no-cache" });
    // A host may show the page for whatever is not there (yet).
    const isPage = response.headers.get("content-type")?.startsWith("text/html");
    if (response.ok && isPage) throw new SettingsError(t("settings.setUp"), true);
    if (response.ok) return Object(await response.json());
    if (response.status === 503) throw new SettingsError(t("settings.setUp"), true);
    throw new SettingsError(`config.json cannot be read: HTTP ${response.status}.`, response.status >= 500);
  } catch (error) {
    if (error instanceof SettingsError) throw error;
    if (error instanceof SyntaxError) throw new SettingsError("config.json is not valid JSON.");
    throw new SettingsError(t("settings.unreachable"), true);
  }
}

/**
 * A server's address without what could name an account there: its query may hold a token.
 *
 * @param {URL} url
 * @returns {string}
 */
function withoutAccount({ origin, pathname }) {
  return origin + pathname;
}

/**
 * @param {unknown} value
 * @returns {URL}
 */
function socketUrl(value) {
  if (typeof value !== "string" || !value) throw new SettingsError("config.json names no webSocketUrl.");
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url === null || !["ws:", "wss:"].includes(url.protocol)) {
    throw new SettingsError(`“${value}” is not a WebSocket address.`);
  }
  url.hash = "";
  return url;
}

/**
 * @param {unknown} value
 * @returns {SignIn | null}
 */
function readSignIn(value) {
  if (value === undefined || value === null) return null;
  const { issuer, clientId, scopes, groupsClaim, groups } = Object(value);
  if (!URL.canParse(issuer) || typeof clientId !== "string" || !clientId) {
    throw new SettingsError("config.json does not say where to sign in.");
  }
  const asked = typeof scopes === "string" ? scopes : "openid";
  return { issuer, clientId, scopes: asked, groupsClaim, groups: strings(groups) };
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
