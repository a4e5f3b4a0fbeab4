/** Puts the chat into the page. `deployment.json` holds the deployment's WebSocket URL, the output `WebSocketUrl`. */

const response = await fetch("deployment.json");
const { webSocketUrl } = await response.json();

const chat = document.createElement("cicada-chat");
chat.setAttribute("url", webSocketUrl);
for (const question of ["Who locked the boathouse?", "What was served for supper in episode 2?"]) {
  chat.append(new Option(question));
}
// A deployment with sign-in wants the user's token; your own server hands it out.
// chat.token = async () => (await fetch("/token")).text();
chat.addEventListener("cicada-answer", ({ detail }) => {
  document.querySelector("#last").textContent = detail.grounded ? "Answered from the almanac." : "Answered without a source.";
});
chat.addEventListener("cicada-error", ({ detail }) => {
  document.querySelector("#last").textContent = `${detail.message} (${detail.code})`;
});
document.querySelector("#place").append(chat);
