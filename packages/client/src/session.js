/**
 * Who is signed in: the tokens, kept for reloads of this tab, renewed ahead of their end, given back at the end.
 *
 * They lie in the tab's own storage: no other tab or site reads them, and they are gone with the tab. A script on this page
 * could read them, but none from elsewhere runs here (`headers.json`). They never get into an address or a log.
 */

import { IssuerUnreachable, Oidc, SignInRefused } from "./oidc.js";

/**
 * @import { Pending, SignIn, Tokens } from "./oidc.js"
 *
 * @typedef {object} SessionState  For those who show it.
 * @property {"out" | "busy" | "in" | "refused"} state  `refused`: signed in with an account that may not ask.
 * @property {string} name  of the user; "" if nobody is signed in
 * @property {string} reason  why it is so, in words for the user; "" if there is nothing to say
 *
 * @typedef {Tokens & { endsAt: number }} Kept  `endsAt`: milliseconds since the epoch
 * @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} Keeping
 */

const PROTOCOL = "cicada.v1";
const BEARER = "cicada.bearer.";

/** Tokens are renewed this long before their end, or a fifth of their life if that is less. */
const AHEAD_MS = 300_000;
/** The last moments of a token do not count: the server's clock may be ahead. */
const MARGIN_MS = 5_000;
/** Between two tries to reach the issuer. */
const RETRY_MS = 5_000;
/** Tries to exchange the code that the user came back with; it is good for some minutes. */
const REDEEM_TRIES = 3;
/** A token that is refused so soon after its renewal was not refused for its age. */
const REFUSED_AGAIN_MS = 60_000;
const REVOKE_MS = 3_000;
/** The longest time that a browser's timer can wait (32 bits); a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const ENDED = "Your session has ended. Sign in again.";

/**
 * The subprotocols that carry a token to the server; null if it is none that could be sent.
 *
 * @param {string} token
 * @returns {string[] | null}
 */
export function bearer(token) {
  return /^[\w.~-]+$/.test(token) ? [PROTOCOL, BEARER + token] : null;
}

/** One user's session with the issuer, in this tab. */
export class Session {
  #signIn;
  #oidc;
  #storage;
  #now;
  #timers;
  #onChange;
  /** @type {Kept | null} */
  #kept = null;
  #isBusy = false;
  #reason = "";
  /** @type {Promise<boolean> | null} */
  #renewing = null;
  #renewedAt = -Infinity;
  /** @type {any} */
  #timer;

  /**
   * @param {SignIn} signIn
   * @param {object} options
   * @param {string} options.redirectUri  where sign-ins return
   * @param {Keeping} options.storage  this tab's
   * @param {() => void} options.onChange  told when the state, or the token, has changed
   * @param {Oidc} [options.oidc]
   * @param {() => number} [options.now]  milliseconds since the epoch
   * @param {{ set: (act: () => void, ms: number) => any, clear: (timer: any) => void }} [options.timers]
   */
  constructor(signIn, options) {
    this.#signIn = signIn;
    this.#oidc = options.oidc ?? new Oidc(signIn, options.redirectUri);
    this.#storage = options.storage;
    this.#onChange = options.onChange;
    this.#now = options.now ?? Date.now;
    this.#timers = options.timers ?? { set: (act, ms) => setTimeout(act, ms), clear: (timer) => clearTimeout(timer) };
  }

  /** @returns {SessionState} */
  get state() {
    const name = this.#kept ? nameOf(this.#kept.claims) : "";
    if (this.#isBusy) return { state: "busy", name, reason: "Signing in…" };
    if (!this.#kept) return { state: "out", name, reason: this.#reason || "Sign in to ask." };
    if (!this.#mayAsk(this.#kept.claims)) return { state: "refused", name, reason: refusal(name) };
    return { state: "in", name, reason: this.#reason };
  }

  /**
   * What a connection offers the server; null if there is no valid token now. Then `onChange` tells when there is.
   *
   * @returns {string[] | null}
   */
  get protocols() {
    if (this.state.state !== "in" || !this.#kept) return null;
    return this.#kept.endsAt - MARGIN_MS > this.#now() ? bearer(this.#kept.token) : null;
  }

  /**
   * Take up the session of an earlier page of this tab, or the sign-in that the user comes back from.
   *
   * @param {URLSearchParams} query  the page's own; what of it belongs to a sign-in must not stay in the address
   */
  async restore(query) {
    const pending = this.#take("sign-in");
    this.#kept = this.#read("tokens");
    if (query.has("state") && (query.has("code") || query.has("error"))) await this.#complete(query, pending);
    else if (this.#kept) this.#schedule();
    this.#onChange();
  }

  /**
   * Where the user has to go to sign in; null if that is not known.
   *
   * @returns {Promise<string | null>}
   */
  async begin() {
    return this.#busily(async () => {
      const { url, pending } = await this.#oidc.authorization();
      this.#write("sign-in", pending);
      return url;
    });
  }

  /**
   * Get new tokens. Several calls at once are one.
   *
   * @returns {Promise<boolean>} whether there are any
   */
  renew() {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = null;
      this.#onChange();
    });
    return this.#renewing;
  }

  /**
   * The server does not accept the token: another may do, once.
   *
   * @param {string} reason  in the server's words
   */
  async refused(reason) {
    if (!this.#kept) return;
    if (this.#now() - this.#renewedAt < REFUSED_AGAIN_MS) {
      this.#end(reason);
      this.#onChange();
    } else {
      await this.renew();
    }
  }

  /** Connections fail, and a browser is not told why: the token may be refused. An older one is renewed. */
  suspect() {
    if (this.#kept && this.#now() - this.#renewedAt > AHEAD_MS) void this.renew();
  }

  /** The network may be back, or the computer was asleep. */
  check() {
    if (this.#kept) this.#schedule();
  }

  /**
   * End the session, here and at the issuer.
   *
   * @returns {Promise<string | null>} where the issuer's own session is ended; null if it cannot be
   */
  async signOut() {
    const refreshToken = this.#kept?.refreshToken;
    this.#end("");
    this.#onChange();
    const gone = new Promise((resolve) => this.#timers.set(() => resolve(null), REVOKE_MS));
    await Promise.race([this.#revoke(refreshToken), gone]); // without it the token ends with its time
    return this.#oidc.endOfSession().catch(() => null);
  }

  /** @param {string | null | undefined} refreshToken */
  async #revoke(refreshToken) {
    if (refreshToken) await this.#oidc.revoke(refreshToken).catch(() => null);
  }

  /**
   * @param {URLSearchParams} query
   * @param {Pending | null} pending
   */
  async #complete(query, pending) {
    if (!pending || query.get("state") !== pending.state) {
      // A link could bring somebody else's sign-in; who is signed in already stays so.
      if (!this.#kept) this.#reason = "The sign-in was not begun on this page. Sign in again.";
      else this.#schedule();
      return;
    }
    const error = query.get("error");
    if (error) {
      this.#reason = error === "access_denied" ? "You did not sign in." : `The sign-in service refuses: ${error}.`;
      return;
    }
    await this.#busily(() => this.#redeem(query.get("code") ?? "", pending));
  }

  /**
   * @param {string} code
   * @param {Pending} pending
   */
  async #redeem(code, pending) {
    for (let tries = 1; ; tries += 1) {
      try {
        return this.#keep(await this.#oidc.redeem(code, pending));
      } catch (error) {
        if (!(error instanceof IssuerUnreachable) || tries === REDEEM_TRIES) throw error;
        await new Promise((resolve) => this.#timers.set(() => resolve(null), RETRY_MS / 5));
      }
    }
  }

  /**
   * @template T
   * @param {() => Promise<T>} act
   * @returns {Promise<T | null>}
   */
  async #busily(act) {
    this.#isBusy = true;
    this.#reason = "";
    this.#onChange();
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof IssuerUnreachable || error instanceof SignInRefused)) throw error;
      this.#reason = `${error.message}${error instanceof IssuerUnreachable ? " Try again." : ""}`;
      return null;
    } finally {
      this.#isBusy = false;
      this.#onChange();
    }
  }

  async #renew() {
    const kept = this.#kept;
    if (!kept?.refreshToken) {
      if (kept) this.#end(ENDED);
      return false;
    }
    try {
      const tokens = await this.#oidc.refresh(kept.refreshToken);
      if (this.#kept !== kept) {
        void this.#revoke(tokens.refreshToken); // signed out meanwhile: the new one must not outlive the session
        return false;
      }
      this.#keep({ ...tokens, claims: { ...kept.claims, ...tokens.claims } });
      return true;
    } catch (error) {
      if (this.#kept !== kept) return false;
      if (error instanceof IssuerUnreachable) {
        if (kept.endsAt <= this.#now()) this.#reason = `${error.message} Trying again…`;
        this.#timers.clear(this.#timer);
        this.#timer = this.#timers.set(() => void this.renew(), RETRY_MS);
      } else if (error instanceof SignInRefused) {
        this.#end(ENDED);
      } else {
        throw error;
      }
      return false;
    }
  }

  /** @param {Tokens} tokens */
  #keep(tokens) {
    this.#renewedAt = this.#now();
    this.#kept = { ...tokens, endsAt: this.#renewedAt + tokens.lastsMs };
    this.#reason = "";
    this.#write("tokens", this.#kept);
    this.#schedule();
  }

  /** Renew ahead of the end. Without a refresh token the session ends with its token. */
  #schedule() {
    if (!this.#kept) return;
    const { endsAt, lastsMs, refreshToken } = this.#kept;
    const at = refreshToken ? endsAt - Math.min(AHEAD_MS, lastsMs / 5) : endsAt - MARGIN_MS;
    this.#timers.clear(this.#timer);
    const waitMs = Math.max(0, at - this.#now());
    const act = waitMs > MAX_TIMER_MS ? () => this.#schedule() : () => void this.renew();
    this.#timer = this.#timers.set(act, Math.min(waitMs, MAX_TIMER_MS));
  }

  /** @param {string} reason */
  #end(reason) {
    this.#kept = null;
    this.#reason = reason;
    this.#timers.clear(this.#timer);
    this.#storage.removeItem(this.#place("tokens"));
  }

  /** @param {Record<string, any>} claims */
  #mayAsk(claims) {
    const { groups = [], groupsClaim } = this.#signIn;
    if (!groups.length || !groupsClaim) return true;
    const told = claims[groupsClaim];
    const own = Array.isArray(told) ? told : `${told ?? ""}`.split(/[\s,]+/);
    return groups.some((group) => own.includes(group));
  }

  // --- what outlives a reload ---

  /** @param {"tokens" | "sign-in"} what */
  #place(what) {
    return `cicada:${what}:${this.#signIn.issuer}:${this.#signIn.clientId}`;
  }

  /** @param {"tokens" | "sign-in"} what */
  #read(what) {
    try {
      return JSON.parse(this.#storage.getItem(this.#place(what)) ?? "null");
    } catch {
      return null; // written by something else
    }
  }

  /** @param {"tokens" | "sign-in"} what */
  #take(what) {
    const found = this.#read(what);
    this.#storage.removeItem(this.#place(what));
    return found;
  }

  /**
   * @param {"tokens" | "sign-in"} what
   * @param {Pending | Kept} value
   */
  #write(what, value) {
    try {
      this.#storage.setItem(this.#place(what), JSON.stringify(value));
    } catch {
      // full: the page works on, without outliving a reload
    }
  }
}

/** @param {Record<string, any>} claims */
function nameOf(claims) {
  const names = [claims.name, claims.preferred_username, claims.email, claims["cognito:username"], claims.username, claims.sub];
  return `${names.find((one) => typeof one === "string" && one) ?? ""}`;
}

/** @param {string} name */
function refusal(name) {
  return `${name} is in no group that may ask here. Have an administrator add the account, then sign in again.`;
}
