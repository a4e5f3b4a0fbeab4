/**
 * OpenID Connect, as a public client does it: authorization code with PKCE, refresh, revocation. Without storage, without
 * the DOM. Endpoints come from the issuer's discovery document.
 *
 * Sources: OpenID Connect Core 1.0 and Discovery 1.0, RFC 6749, RFC 7636 (PKCE), RFC 7009 (revocation).
 *
 * @typedef {object} SignIn  What `config.json` says of the sign-in.
 * @property {string} issuer
 * @property {string} clientId
 * @property {string} scopes  parted by spaces
 * @property {string} [groupsClaim]  the claim that lists a user's groups
 * @property {string[]} [groups]  only users in one of these may ask; all if there are none
 *
 * @typedef {object} Pending  What has to be remembered while the user is away at the issuer.
 * @property {string} state
 * @property {string} nonce
 * @property {string} verifier
 *
 * @typedef {object} Tokens
 * @property {string} token  the one that is sent: the access token where it is a JWT, else the ID token
 * @property {string | null} refreshToken
 * @property {number} lastsMs
 * @property {Record<string, any>} claims  of the user: the ID token's, over the access token's
 */

/** The issuer cannot be reached, or does not work: trying again can help. */
export class IssuerUnreachable extends Error {}

/** The issuer, or this page, refuses the sign-in; `code` is an OAuth error where the issuer gave one. */
export class SignInRefused extends Error {
  /**
   * @param {string} message
   * @param {string} [code]
   */
  constructor(message, code = "") {
    super(message);
    this.code = code;
  }
}

/** How long an answer of the issuer is waited for. */
const TIMEOUT_MS = 15_000;
/** How long a token is taken to last where the issuer does not say. */
const DEFAULT_LASTS_S = 300;
/** Hosts that may be asked without TLS: this machine. */
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
/** The addresses in a discovery document that this client uses; the first two must be there. */
const ENDPOINTS = ["authorization_endpoint", "token_endpoint", "revocation_endpoint", "end_session_endpoint"];

/** One issuer, and the page as its client. */
export class Oidc {
  #signIn;
  #redirectUri;
  #fetch;
  #crypto;
  /** @type {Promise<Record<string, string>> | null} */
  #endpoints = null;

  /**
   * @param {SignIn} signIn
   * @param {string} redirectUri  where sign-ins return, as it is registered
   * @param {object} [outside]
   * @param {typeof fetch} [outside.fetch]
   * @param {Crypto} [outside.crypto]
   */
  constructor(signIn, redirectUri, outside = {}) {
    this.#signIn = signIn;
    this.#redirectUri = redirectUri;
    this.#fetch = outside.fetch ?? ((/** @type {any} */ input, /** @type {any} */ init) => fetch(input, init));
    this.#crypto = outside.crypto ?? crypto;
  }

  /**
   * Where the user has to go to sign in, and what to remember meanwhile.
   *
   * @returns {Promise<{ url: string, pending: Pending }>}
   * @throws {IssuerUnreachable | SignInRefused}
   */
  async authorization() {
    if (!this.#crypto.subtle) throw new SignInRefused("Signing in needs a secure address, which begins with https://.");
    const { authorization_endpoint } = await this.#discovered();
    const [state, nonce, verifier] = [this.#random(), this.#random(), this.#random()];
    const digest = await this.#crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
    const url = new URL(authorization_endpoint);
    const asked = {
      response_type: "code",
      client_id: this.#signIn.clientId,
      redirect_uri: this.#redirectUri,
      scope: this.#signIn.scopes,
      state,
      nonce,
      code_challenge: base64url(new Uint8Array(digest)),
      code_challenge_method: "S256",
    };
    for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
    return { url: url.href, pending: { state, nonce, verifier } };
  }

  /**
   * Tokens for the code that the user came back with.
   *
   * @param {string} code
   * @param {Pending} pending
   * @returns {Promise<Tokens>}
   * @throws {IssuerUnreachable | SignInRefused}
   */
  async redeem(code, { nonce, verifier }) {
    const answer = await this.#post("token_endpoint", {
      grant_type: "authorization_code",
      code,
      redirect_uri: this.#redirectUri,
      code_verifier: verifier,
    });
    const id = claimsOf(answer.id_token);
    const { issuer, clientId } = this.#signIn;
    const audiences = [id.aud].flat();
    if (bare(id.iss) !== bare(issuer) || !audiences.includes(clientId) || id.nonce !== nonce) {
      throw new SignInRefused("The sign-in does not belong to this page. Sign in again.");
    }
    return this.#tokens(answer);
  }

  /**
   * New tokens. An issuer that rotates refresh tokens gives a new one.
   *
   * @param {string} refreshToken
   * @returns {Promise<Tokens>}
   * @throws {IssuerUnreachable | SignInRefused}
   */
  async refresh(refreshToken) {
    const answer = await this.#post("token_endpoint", { grant_type: "refresh_token", refresh_token: refreshToken });
    return this.#tokens({ ...answer, refresh_token: answer.refresh_token ?? refreshToken });
  }

  /**
   * Have a refresh token, and what came of it, be worth nothing.
   *
   * @param {string} refreshToken
   * @throws {IssuerUnreachable | SignInRefused}
   */
  async revoke(refreshToken) {
    if ((await this.#discovered()).revocation_endpoint) await this.#post("revocation_endpoint", { token: refreshToken });
  }

  /**
   * Where the issuer's own session is ended; null if it does not say.
   *
   * Cognito names the address to return to in a way of its own; other issuers ignore what they do not know.
   *
   * @returns {Promise<string | null>}
   * @throws {IssuerUnreachable | SignInRefused}
   */
  async endOfSession() {
    const { end_session_endpoint } = await this.#discovered();
    if (!end_session_endpoint) return null;
    const url = new URL(end_session_endpoint);
    url.searchParams.set("client_id", this.#signIn.clientId);
    url.searchParams.set("logout_uri", this.#redirectUri);
    url.searchParams.set("post_logout_redirect_uri", this.#redirectUri);
    return url.href;
  }

  /** @returns {Promise<Record<string, string>>} */
  #discovered() {
    this.#endpoints ??= this.#discover().catch((error) => {
      this.#endpoints = null; // the next who needs them asks again
      throw error;
    });
    return this.#endpoints;
  }

  async #discover() {
    const { issuer } = this.#signIn;
    const found = await this.#ask(`${bare(issuer)}/.well-known/openid-configuration`);
    const isWhole = ENDPOINTS.slice(0, 2).every((name) => found[name]);
    if (bare(found.issuer) !== bare(issuer) || !isWhole) {
      throw new SignInRefused(`${issuer} does not say how to sign in.`);
    }
    const unsafe = ENDPOINTS.find((name) => found[name] && !isSafe(found[name]));
    if (unsafe) throw new SignInRefused(`${issuer} names a ${unsafe} that does not begin with https://.`);
    return found;
  }

  /**
   * @param {string} endpoint
   * @param {Record<string, string>} fields
   */
  async #post(endpoint, fields) {
    const url = (await this.#discovered())[endpoint];
    return this.#ask(url, { method: "POST", body: new URLSearchParams({ ...fields, client_id: this.#signIn.clientId }) });
  }

  /**
   * @param {string} url
   * @param {RequestInit} [init]
   * @returns {Promise<Record<string, any>>}
   */
  async #ask(url, init) {
    let response;
    let text;
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      // No secret follows a redirect.
      response = await this.#fetch(url, { ...init, credentials: "omit", redirect: "error", signal });
      text = await response.text();
    } catch {
      throw new IssuerUnreachable("The sign-in service cannot be reached.");
    }
    const answer = read(text);
    if (response.ok) return answer;
    if (response.status >= 500 || response.status === 429) {
      throw new IssuerUnreachable(`The sign-in service does not work at the moment (HTTP ${response.status}).`);
    }
    const code = typeof answer.error === "string" ? answer.error : `HTTP ${response.status}`;
    throw new SignInRefused(`The sign-in service refuses: ${code}.`, code);
  }

  /**
   * @param {Record<string, any>} answer
   * @returns {Tokens}
   */
  #tokens({ access_token, id_token, refresh_token, expires_in }) {
    const token = isJwt(access_token) ? access_token : id_token;
    if (!isJwt(token)) throw new SignInRefused("The sign-in service gave no token.");
    return {
      token,
      refreshToken: typeof refresh_token === "string" ? refresh_token : null,
      lastsMs: lifetimeS(token, expires_in) * 1000,
      claims: { ...claimsOf(access_token), ...claimsOf(id_token) },
    };
  }

  #random() {
    return base64url(this.#crypto.getRandomValues(new Uint8Array(32)));
  }
}

/**
 * What a token says. It came from the issuer over TLS, so its signature is the server's to check.
 *
 * @param {unknown} token
 * @returns {Record<string, any>}
 */
export function claimsOf(token) {
  if (!isJwt(token)) return {};
  try {
    const bytes = atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"));
    return Object(JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)))));
  } catch {
    return {};
  }
}

/**
 * How long a new token is valid, whatever this machine's clock says. `expires_in` is the access token's.
 *
 * @param {string} token
 * @param {unknown} told  `expires_in`
 */
function lifetimeS(token, told) {
  const { iat, exp } = claimsOf(token);
  if (Number.isFinite(iat) && Number.isFinite(exp) && exp > iat) return exp - iat;
  return Number(told) > 0 ? Number(told) : DEFAULT_LASTS_S;
}

/**
 * Whether secrets may go to an address.
 *
 * @param {unknown} address
 */
function isSafe(address) {
  if (typeof address !== "string" || !URL.canParse(address)) return false;
  const { protocol, hostname } = new URL(address);
  return protocol === "https:" || (protocol === "http:" && LOOPBACK.includes(hostname));
}

/**
 * @param {unknown} token
 * @returns {token is string}
 */
function isJwt(token) {
  return typeof token === "string" && /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token);
}

/** @param {unknown} issuer */
function bare(issuer) {
  return `${issuer}`.replace(/\/$/, "");
}

/** @param {string} text */
function read(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

/** @param {Uint8Array} bytes */
function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
