"""The npm packages as their users install them: types, the client in Node.js, the examples in a browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.page.browser import Browser
from tests.e2e.page.server import ScriptedServer
from tests.e2e.page.sessions import ANSWER, QUESTION, WHOLE

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which both packages are installed, without the network."""
    folder = tmp_path_factory.mktemp("project")
    _run(["node", str(ROOT / "packages" / "build.mjs"), str(folder)])
    (folder / "package.json").write_text('{"name": "project", "private": true, "type": "module"}')
    archives = sorted(str(path) for path in folder.glob("*.tgz"))
    assert len(archives) == 2
    _run(["npm", "install", "--offline", "--no-audit", "--no-fund", *archives], cwd=folder)
    return folder


def _run(command: list[str], cwd: Path | None = None) -> str:
    run = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_a_typescript_program_sees_the_types(project: Path) -> None:
    (project / "main.ts").write_text(
        'import { AnswerFailed, CicadaClient } from "cicada-client";\n'
        'import { CicadaChat } from "cicada-chat";\n'
        'const client = new CicadaClient("wss://x.example/live", { token: async () => "t" });\n'
        'const { text, sources } = await client.ask("Who?", { episodes: ["ep1"] }).answer();\n'
        "const shown: string = text + sources.map(({ n, locator }) => `${n} ${locator.heading}`).join();\n"
        "const chat = new CicadaChat();\n"
        "chat.token = () => null;\n"
        "// @ts-expect-error: a question is a string\n"
        "client.ask(7);\n"
        "export { AnswerFailed, shown };\n"
    )
    options = ["--strict", "--noEmit", "--target", "es2023", "--module", "esnext", "--moduleResolution", "bundler"]
    tsc = str(ROOT / "node_modules" / ".bin" / "tsc")
    _run([tsc, "main.ts", *options, "--lib", "es2023,dom,dom.iterable", "--ignoreConfig"], cwd=project)


def test_the_client_answers_in_node(project: Path) -> None:
    (project / "ask.mjs").write_text(
        'import { AnswerFailed, CicadaClient } from "cicada-client";\n'
        "const client = new CicadaClient(process.argv[2]);\n"
        "const states = [];\n"
        f"for await (const answer of client.ask({json.dumps(QUESTION)})) states.push(answer);\n"
        "const { text, grounded, requestId } = states.at(-1);\n"
        "const again = await client.resume(requestId).answer();\n"
        'const failed = await client.ask("unknown").answer().catch((error) => error);\n'
        "console.log(JSON.stringify({ text, grounded, again: again.text, grew: states.length > 2,\n"
        "  code: failed instanceof AnswerFailed ? failed.code : null }));\n"
        "client.close();\n"
    )
    failing = [*WHOLE[:1], {"type": "error", "code": "model_busy", "message": "Busy.", "retryable": True, "failed": []}]
    with ScriptedServer({QUESTION: WHOLE, "unknown": failing}) as server:
        said = _run(["node", "--experimental-websocket", "ask.mjs", server.websocket_url], cwd=project)
    assert json.loads(said) == {"text": ANSWER, "grounded": True, "again": ANSWER, "grew": True, "code": "model_busy"}


def _example(project: Path, name: str, package: str) -> Path:
    folder = project / name
    shutil.copytree(ROOT / "examples" / name, folder)
    shutil.copyfile(project / "node_modules" / package / "dist" / f"{package}.js", folder / f"{package}.js")
    return folder


def test_the_component_answers_in_another_page(project: Path, browser: Browser) -> None:
    folder = _example(project, "web_component", "cicada-chat")
    inside = "document.querySelector('cicada-chat').shadowRoot"
    with ScriptedServer({QUESTION: WHOLE}, folder=folder) as server, browser.page(server.page_url) as page:
        page.wait(f"{inside}?.querySelector('#send')?.disabled === false")
        assert page.run(f"{inside}.querySelectorAll('#examples button').length") == 2
        page.run(f"document.querySelector('cicada-chat').ask({json.dumps(QUESTION)})")
        page.wait(f"{inside}.querySelector('.turn')?.dataset.phase === 'complete'")
        assert page.run(f"{inside}.querySelector('.turn .answer').innerText") == ANSWER
        assert page.text("#last") == "Answered from the almanac."
        assert page.problems == []


def test_the_game_speaks_the_answer(project: Path, browser: Browser) -> None:
    folder = _example(project, "browser_game", "cicada-client")
    with ScriptedServer({QUESTION: WHOLE}, folder=folder) as server, browser.page(server.page_url) as page:
        page.wait("document.activeElement.id === 'room'")
        for key in ("ArrowUp", "ArrowRight", "Enter"):
            page.run(
                f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))"
            )
        page.wait("document.activeElement.id === 'question'")
        page.run(f"document.activeElement.value = {json.dumps(QUESTION)}; document.forms[0].requestSubmit()")
        page.wait("document.querySelector('#notes').textContent !== ''")
        assert page.text("#said")
        assert "[" not in page.text("#said")
        assert page.problems == []
