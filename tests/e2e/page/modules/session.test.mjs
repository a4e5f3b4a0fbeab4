/** The sign-in without a browser: PKCE, state and nonce, renewal, refusals, an issuer that is away, the end. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { beforeEach, test } from "node:test";

import { claimsOf, Oidc } from "../../../../packages/client/src/oidc.js";
import { bearer, Session } from "../../../../packages/client/src/session.js";
import { Clock } from "./support.mjs";

const ISSUER = "https://issuer.example/pool";
const HOME = "https://page.example/";
const SIGN_IN = { issuer: ISSUER, clientId: "page", scopes: "openid email" };
const HOUR_MS = 3_600_000;

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const jwt = (claims) => `${encode({ alg: "RS256" })}.${encode(claims)}.c2ln`;

/** Answers as an issuer does, and can be away. */
class Issuer {
  asked = [];
  away = false;
  error = null;
  nonce = "";
  count = 0;
  claims = { email: "mara@example.com" };
  opaque = false;
  rotates = true;
  accessClaims = {};
  endpoints = {};
  expiresIn = 3600;

  fetch = async (url, init = {}) => {
    const fields = Object.fromEntries(init.body ?? []);
    this.asked.push({ url: `${url}`, redirect: init.redirect, ...fields });
    if (this.away) throw new TypeError("Failed to fetch");
    if (`${url}` === `${ISSUER}/.well-known/openid-configuration`) {
      return Response.json({
        issuer: ISSUER,
        authorization_endpoint: "https://login.example/oauth2/authorize",
        token_endpoint: "https://login.example/oauth2/token",
        revocation_endpoint: "https://login.example/oauth2/revoke",
        end_session_endpoint: "https://login.example/logout",
        ...this.endpoints,
      });
    }
    if (this.error) return Response.json({ error: this.error }, { status: this.status ?? 400 });
    if (`${url}`.endsWith("/revoke")) return new Response(null, { status: 200 });
    this.count += 1;
    return Response.json({
      access_token: this.opaque ? "opaque" : jwt({ sub: "u1", username: "u1", n: this.count, ...this.accessClaims }),
      id_token: jwt({ iss: ISSUER, aud: "page", nonce: this.nonce, sub: "u1", ...this.claims }),
      ...(fields.grant_type === "refresh_token" && !this.rotates ? {} : { refresh_token: `refresh-${this.count}` }),
      expires_in: this.expiresIn,
    });
  };

  /** The requests of a kind. */
  of(kind) {
    return this.asked.filter((one) => one.grant_type === kind || one.url.endsWith(kind));
  }
}

class Storage {
  values = new Map();
  getItem = (key) => this.values.get(key) ?? null;
  setItem = (key, value) => void this.values.set(key, value);
  removeItem = (key) => void this.values.delete(key);
}

let issuer;
let storage;
let clock;
let changes;

beforeEach(() => {
  [issuer, storage, clock, changes] = [new Issuer(), new Storage(), new Clock(), 0];
});

/** A page's session, as after a load. */
function load(signIn = SIGN_IN) {
  return new Session(signIn, {
    redirectUri: HOME,
    storage,
    oidc: new Oidc(signIn, HOME, { fetch: issuer.fetch }),
    now: () => clock.now,
    timers: clock.timers,
    onChange: () => (changes += 1),
  });
}

/** What is under way goes on; time stands still. */
async function settle() {
  for (let i = 0; i < 20; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

async function begin(session = load()) {
  const url = new URL(await session.begin());
  issuer.nonce = url.searchParams.get("nonce");
  return url.searchParams;
}

async function signedIn(signIn = SIGN_IN) {
  const asked = await begin(load(signIn));
  const session = load(signIn);
  await session.restore(new URLSearchParams({ code: "c1", state: asked.get("state") }));
  return session;
}

const tokenOf = (session) => session.protocols?.[1]?.replace("cicada.bearer.", "") ?? null;

test("a sign-in asks for a code with PKCE, and exchanges it with the verifier", async () => {
  const asked = await begin();
  assert.equal(asked.get("response_type"), "code");
  assert.equal(asked.get("code_challenge_method"), "S256");
  assert.deepEqual([asked.get("client_id"), asked.get("redirect_uri"), asked.get("scope")], ["page", HOME, "openid email"]);
  const session = load();
  await session.restore(new URLSearchParams({ code: "c1", state: asked.get("state") }));
  const [redeemed] = issuer.of("authorization_code");
  assert.equal(createHash("sha256").update(redeemed.code_verifier).digest("base64url"), asked.get("code_challenge"));
  assert.deepEqual([redeemed.code, redeemed.redirect_uri, redeemed.client_id], ["c1", HOME, "page"]);
  assert.deepEqual(session.state, { state: "in", name: "mara@example.com", reason: "" });
  assert.deepEqual(session.protocols[0], "cicada.v1");
  assert.equal(claimsOf(tokenOf(session)).n, 1);
});

test("two sign-ins share no secret", async () => {
  const [one, other] = [await begin(), await begin()];
  for (const name of ["state", "nonce", "code_challenge"]) {
    assert.notEqual(one.get(name), other.get(name));
    assert.ok(one.get(name).length >= 43);
  }
});

test("a session outlives a reload of its tab, and no token is in what is remembered of a sign-in", async () => {
  await begin();
  assert.ok(![...storage.values.values()].some((value) => value.includes("refresh")));
  const session = await signedIn();
  const again = load();
  await again.restore(new URLSearchParams());
  assert.equal(tokenOf(again), tokenOf(session));
  assert.equal(again.state.state, "in");
});

for (const [what, query] of Object.entries({
  "of another tab": { code: "c1", state: "other" },
  "that a link brings": { code: "c1", state: "" },
  "that failed elsewhere": { error: "access_denied", state: "other" },
})) {
  test(`a sign-in ${what} is not taken up`, async () => {
    await begin();
    const session = load();
    await session.restore(new URLSearchParams(query));
    assert.deepEqual(session.state, {
      state: "out",
      name: "",
      reason: "The sign-in was not begun on this page. Sign in again.",
    });
    assert.equal(issuer.of("authorization_code").length, 0);
  });
}

test("a link does not end or change a session", async () => {
  const token = tokenOf(await signedIn());
  const session = load();
  await session.restore(new URLSearchParams({ code: "planted", state: "x" }));
  assert.equal(tokenOf(session), token);
});

test("a state is good for one return", async () => {
  const asked = await begin();
  const query = new URLSearchParams({ code: "c1", state: asked.get("state") });
  await load().restore(query);
  storage.removeItem(`cicada:tokens:${ISSUER}:page`);
  const again = load();
  await again.restore(query);
  assert.equal(again.state.state, "out");
});

for (const [name, claims] of Object.entries({ nonce: { nonce: "x" }, audience: { aud: "other" }, issuer: { iss: "https://x.example" } })) {
  test(`an ID token with another ${name} is refused`, async () => {
    issuer.claims = claims;
    const session = await signedIn();
    assert.equal(session.state.reason, "The sign-in does not belong to this page. Sign in again.");
    assert.equal(session.protocols, null);
  });
}

test("who turns back at the issuer is told so", async () => {
  const asked = await begin();
  const session = load();
  await session.restore(new URLSearchParams({ error: "access_denied", state: asked.get("state") }));
  assert.deepEqual([session.state.state, session.state.reason], ["out", "You did not sign in."]);
});

test("an issuer that is away is told, and a later try works", async () => {
  issuer.away = true;
  const session = load();
  assert.equal(await session.begin(), null);
  assert.equal(session.state.reason, "The sign-in service cannot be reached. Try again.");
  issuer.away = false;
  assert.ok(await session.begin());
});

test("a network that is lost on the way back is borne", async () => {
  const asked = await begin();
  const session = load();
  issuer.away = true;
  const restored = session.restore(new URLSearchParams({ code: "c1", state: asked.get("state") }));
  await settle();
  assert.deepEqual([session.state.state, session.state.reason], ["busy", "Signing in…"]);
  issuer.away = false;
  clock.pass(1000);
  await restored;
  assert.equal(session.state.state, "in");
});

test("a network that stays away ends the sign-in with words", async () => {
  const asked = await begin();
  const session = load();
  issuer.away = true;
  const restored = session.restore(new URLSearchParams({ code: "c1", state: asked.get("state") }));
  for (let i = 0; i < 3; i += 1) {
    await settle();
    clock.pass(1000);
  }
  await restored;
  assert.deepEqual([session.state.state, session.state.reason], ["out", "The sign-in service cannot be reached. Try again."]);
});

test("a code that the issuer does not take is told", async () => {
  issuer.error = "invalid_grant";
  const session = await signedIn();
  assert.equal(session.state.reason, "The sign-in service refuses: invalid_grant.");
});

test("tokens are renewed ahead of their end, with the latest refresh token", async () => {
  const session = await signedIn();
  for (const [n, from] of [[2, "refresh-1"], [3, "refresh-2"]]) {
    clock.pass(HOUR_MS - 300_000 - 1);
    await settle();
    assert.equal(issuer.of("refresh_token").length, n - 2);
    clock.pass(1);
    await settle();
    assert.equal(issuer.of("refresh_token").at(-1).refresh_token, from);
    assert.equal(claimsOf(tokenOf(session)).n, n);
  }
});

test("an issuer that keeps a refresh token goes on with it", async () => {
  issuer.rotates = false;
  const session = await signedIn();
  for (const n of [2, 3]) {
    clock.pass(HOUR_MS - 300_000);
    await settle();
    assert.equal(issuer.of("refresh_token").at(-1).refresh_token, "refresh-1");
    assert.equal(claimsOf(tokenOf(session)).n, n);
  }
});

test("an issuer that is away at the renewal is asked until it is back, and the token serves meanwhile", async () => {
  const session = await signedIn();
  issuer.away = true;
  clock.pass(HOUR_MS - 300_000);
  await settle();
  assert.deepEqual([session.state.state, session.state.reason], ["in", ""]);
  assert.ok(session.protocols);
  clock.pass(295_000);
  await settle();
  assert.equal(session.protocols, null);
  clock.pass(5_000);
  await settle();
  assert.equal(session.state.reason, "The sign-in service cannot be reached. Trying again…");
  issuer.away = false;
  clock.pass(5_000);
  await settle();
  assert.deepEqual([session.state.reason, claimsOf(tokenOf(session)).n], ["", 2]);
});

test("a refresh token that is worth nothing ends the session", async () => {
  const session = await signedIn();
  issuer.error = "invalid_grant";
  clock.pass(HOUR_MS);
  await settle();
  assert.deepEqual(session.state, { state: "out", name: "", reason: "Your session has ended. Sign in again." });
  assert.equal(storage.values.size, 0);
});

test("a token that the server refuses is renewed once, and refused again it ends the session in the server's words", async () => {
  const session = await signedIn();
  clock.pass(120_000);
  await session.refused("no");
  assert.equal(claimsOf(tokenOf(session)).n, 2);
  await session.refused("Your access was revoked.");
  assert.deepEqual([session.state.state, session.state.reason], ["out", "Your access was revoked."]);
});

test("failing connections renew a token that is not fresh", async () => {
  const session = await signedIn();
  session.suspect();
  await settle();
  assert.equal(issuer.of("refresh_token").length, 0);
  clock.pass(301_000);
  session.suspect();
  session.suspect();
  await settle();
  assert.equal(issuer.of("refresh_token").length, 1);
});

test("without a refresh token the session ends with its token", async () => {
  const fetch = issuer.fetch;
  issuer.fetch = async (...args) => {
    const response = await fetch(...args);
    return Response.json({ ...(await response.json()), refresh_token: undefined });
  };
  const session = await signedIn();
  clock.pass(HOUR_MS - 5_000);
  await settle();
  assert.deepEqual([session.state.state, session.state.reason], ["out", "Your session has ended. Sign in again."]);
});

test("an access token that is no JWT is not sent: the ID token is", async () => {
  issuer.opaque = true;
  assert.equal(claimsOf(tokenOf(await signedIn())).aud, "page");
});

test("who is in none of the groups is told so, and nothing is sent to the server", async () => {
  const signIn = { ...SIGN_IN, groupsClaim: "cognito:groups", groups: ["users", "admins"] };
  for (const [told, state] of [[undefined, "refused"], [["guests"], "refused"], [["guests", "admins"], "in"], ["users other", "in"]]) {
    issuer.claims = { email: "mara@example.com", "cognito:groups": told };
    const session = await signedIn(signIn);
    assert.equal(session.state.state, state);
    assert.equal(session.protocols === null, state === "refused");
    if (state === "refused") assert.match(session.state.reason, /^mara@example\.com is in no group that may ask here\./);
  }
});

test("signing out revokes the refresh token, forgets all, and ends the issuer's session", async () => {
  const session = await signedIn();
  const url = new URL(await session.signOut());
  assert.deepEqual(issuer.of("/revoke").map(({ token, client_id }) => [token, client_id]), [["refresh-1", "page"]]);
  assert.equal(storage.values.size, 0);
  assert.deepEqual([session.protocols, session.state.state], [null, "out"]);
  assert.equal(`${url.origin}${url.pathname}`, "https://login.example/logout");
  assert.deepEqual([url.searchParams.get("client_id"), url.searchParams.get("logout_uri")], ["page", HOME]);
  clock.pass(2 * HOUR_MS);
  await settle();
  assert.equal(issuer.of("refresh_token").length, 0);
});

test("signing out works without the issuer", async () => {
  const session = await signedIn();
  issuer.away = true;
  await session.signOut();
  assert.deepEqual([storage.values.size, session.state.state], [0, "out"]);
});

test("a discovery document of another issuer is not followed", async () => {
  const fetch = issuer.fetch;
  issuer.fetch = (url, init) => fetch(`${url}`.replace("/other", ""), init);
  const session = load({ ...SIGN_IN, issuer: `${ISSUER}/other` });
  assert.equal(await session.begin(), null);
  assert.match(session.state.reason, /does not say how to sign in/);
});

test("an issuer's addresses begin with https://, and no redirect is followed", async () => {
  for (const address of ["http://login.example/token", "javascript:alert(1)", "/token", 7]) {
    issuer.endpoints = { token_endpoint: address };
    const session = load();
    assert.equal(await session.begin(), null);
    assert.equal(session.state.reason, `${ISSUER} names a token_endpoint that does not begin with https://.`);
  }
  issuer.endpoints = { end_session_endpoint: "javascript:alert(1)" };
  assert.equal(await load().begin(), null);
  issuer.endpoints = { token_endpoint: "http://localhost:9/token" };
  await signedIn();
  assert.deepEqual(new Set(issuer.asked.map((one) => one.redirect)), new Set(["error"]));
});

test("a token lasts for as long as it says, whatever the issuer says of another", async () => {
  issuer.accessClaims = { iat: 1_000, exp: 1_600 };
  const session = await signedIn();
  clock.pass(594_000);
  assert.ok(tokenOf(session));
  clock.pass(2_000);
  assert.equal(tokenOf(session), null);
});

test("a token that lasts longer than a browser's timer is neither renewed at once nor forgotten", async () => {
  const { set } = clock.timers;
  const waits = [];
  clock.timers.set = (act, ms) => set(act, (waits.push(ms), ms));
  issuer.expiresIn = 60 * 24 * 3600;
  await signedIn();
  clock.pass(59 * 24 * HOUR_MS);
  await settle();
  assert.equal(issuer.of("refresh_token").length, 0);
  clock.pass(24 * HOUR_MS);
  await settle();
  assert.equal(issuer.of("refresh_token").length, 1);
  assert.ok(waits.every((ms) => ms < 2 ** 31), `${waits}`);
});

test("a refresh token that arrives after signing out is revoked", async () => {
  const session = await signedIn();
  const renewed = session.renew();
  await session.signOut();
  assert.equal(await renewed, false);
  await settle();
  assert.deepEqual(issuer.of("/revoke").map((one) => one.token), ["refresh-1", "refresh-2"]);
  assert.equal(session.state.state, "out");
});

test("a full storage does not end a session", async () => {
  const session = await signedIn();
  storage.setItem = () => {
    throw new Error("QuotaExceededError");
  };
  assert.equal(await session.renew(), true);
  assert.equal(claimsOf(tokenOf(session)).n, 2);
});

test("what cannot be a subprotocol is not offered", () => {
  assert.deepEqual(bearer("a.b-c_d~1"), ["cicada.v1", "cicada.bearer.a.b-c_d~1"]);
  for (const token of ["", "a b", "a/b", "a=b", "ü"]) assert.equal(bearer(token), null);
});
