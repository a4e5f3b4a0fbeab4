/** A small game whose people answer from the corpus. `deployment.json` holds the deployment's WebSocket URL. */

import { AnswerFailed, CicadaClient, withoutMarkers } from "./cicada-client.js";

const WIDTH = 9;
const HEIGHT = 5;
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const PEOPLE = [
  { name: "Tamsin", face: "🎣", x: 6, y: 1 },
  { name: "the keeper", face: "🏮", x: 2, y: 3 },
];

const { webSocketUrl } = await (await fetch("deployment.json")).json();
const client = new CicadaClient(webSocketUrl);
const conversation = crypto.randomUUID();

const player = { x: 4, y: 2 };
const find = (id) => document.getElementById(id);
const room = find("room");
const cells = Array.from({ length: WIDTH * HEIGHT }, () => room.appendChild(document.createElement("div")));
let answer = null;

function draw() {
  for (const cell of cells) cell.textContent = "";
  for (const { face, x, y } of PEOPLE) cells[y * WIDTH + x].textContent = face;
  cells[player.y * WIDTH + player.x].textContent = "🙂";
}

function neighbour() {
  return PEOPLE.find(({ x, y }) => Math.abs(x - player.x) + Math.abs(y - player.y) === 1);
}

function isFree(x, y) {
  return x >= 0 && x < WIDTH && y >= 0 && y < HEIGHT && !PEOPLE.some((one) => one.x === x && one.y === y);
}

room.addEventListener("keydown", (event) => {
  const step = STEPS[event.key];
  if (step && isFree(player.x + step[0], player.y + step[1])) {
    player.x += step[0];
    player.y += step[1];
    find("talk").hidden = true;
    draw();
  }
  if (event.key === "Enter" && neighbour()) {
    find("who").textContent = neighbour().name;
    find("talk").hidden = false;
    find("question").focus();
  }
  if (step || event.key === "Enter") event.preventDefault();
});

find("talk").addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = find("question").value.trim();
  if (!question) return;
  answer?.cancel(); // somebody else is asked: nobody waits for the earlier answer
  find("speech").hidden = false;
  find("said").textContent = "…";
  find("notes").textContent = "";
  answer = client.ask(question, { sessionId: conversation });
  await speak(answer);
});

/** Show an answer while it is written. After a fallback its text starts again. */
async function speak(stream) {
  try {
    for await (const { text, sources, citations, complete } of stream) {
      if (stream !== answer) return;
      if (text) find("said").textContent = withoutMarkers(text);
      if (!complete) continue;
      const cited = new Set(citations.map(({ n }) => n));
      const notes = sources.filter(({ n }) => cited.has(n)).map(({ locator }) => `${locator.heading}, ${locator.place}`);
      find("notes").textContent = notes.join(" · ");
    }
  } catch (error) {
    if (!(error instanceof AnswerFailed)) throw error;
    if (stream === answer) find("said").textContent = error.code === "cancelled" ? "" : `“I cannot say.” (${error.message})`;
  }
}

draw();
room.focus();
