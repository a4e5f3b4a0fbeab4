"""What the local answerer quotes of documents, what it declines, and that its own quotations hold."""

from __future__ import annotations

import pytest

from cicada.answering.prompt import number_sources, rag_prompt
from cicada.citations import check_citations
from cicada.citations.sentences import abstains
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.protocol.events import Source
from cicada.retrieval.ports import Hit
from cicada_local.bedrock.answerer import ExtractiveAnswerer
from cicada_local.bedrock.extractive.documents import MAX_UNIT_CHARS, units_of
from cicada_local.bedrock.extractive.judging import judge_sentences
from cicada_local.bedrock.extractive.prose import NOTHING_FOUND, plain_markdown
from cicada_local.bedrock.minilm import MiniLM

SERVER = """Lantern is a small web server for static files. It needs no configuration file.

By default Lantern listens on port 8080. Another port is chosen with the option --port.

To start it at boot, add this line to your crontab:

@reboot lantern --daemon

Is Lantern safe? It refuses requests that leave the folder: `../' in a path is an error. Files whose names begin with a
dot are not served."""
HISTORY = """Lantern was first written in 2009 as a school project. Its author kept bees.

Later versions added compression. The test suite runs with ./run-tests and takes "about an hour"."""


def sources() -> tuple[Source, ...]:
    places = (("server.md", "Lantern", "Usage", SERVER), ("history.txt", "History of Lantern", None, HISTORY))
    passages = [
        Passage(
            id=source,
            collection="shelf",
            text=text,
            context=text,
            locator=DocumentLocator(source=source, title=title, section=section),
        )
        for source, title, section, text in places
    ]
    return number_sources([Hit(passage, 0.99) for passage in passages])


@pytest.fixture(scope="module")
def answerer() -> ExtractiveAnswerer:
    return ExtractiveAnswerer(MiniLM.load())


def ask(answerer: ExtractiveAnswerer, question: str) -> str:
    prompt = rag_prompt(question, sources())
    return answerer.answer(prompt.system, prompt.user)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Which port does Lantern use unless told otherwise?", "listens on port 8080"),
        ("lantern start at boot", "to your crontab: @reboot lantern --daemon"),
        ("when was lantern first written", "in 2009"),
        ("Does Lantern serve files whose names begin with a dot?", "are not served"),
    ],
)
def test_the_sentence_that_answers_is_quoted_and_holds(answerer: ExtractiveAnswerer, question: str, words: str) -> None:
    answer = ask(answerer, question)
    assert words in answer
    citations = check_citations(answer, sources())
    assert citations
    assert {citation.verdict for citation in citations} == {"verified"}


def test_each_part_of_a_question_is_answered(answerer: ExtractiveAnswerer) -> None:
    answer = ask(answerer, "Which port does Lantern listen on by default, and when was it first written?")
    assert "listens on port 8080" in answer
    assert "in 2009" in answer


@pytest.mark.parametrize(
    "question",
    [
        "How long should I boil an egg?",
        "who won the football world cup in 1974",
        "How much does commercial support for Lantern cost per year?",
    ],
)
def test_what_documents_do_not_tell_is_declined(answerer: ExtractiveAnswerer, question: str) -> None:
    answer = ask(answerer, question)
    assert answer == NOTHING_FOUND
    assert abstains(answer)
    assert check_citations(answer, sources()) == ()


def test_thanks_need_no_sources(answerer: ExtractiveAnswerer) -> None:
    assert ask(answerer, "Vielen Dank!").startswith("Gern geschehen!")
    assert ask(answerer, "What can I ask?") == "Among the sources here:\n- Lantern [1]\n- History of Lantern [2]"


def test_long_sentences_are_read_by_their_lines() -> None:
    options = "\n".join(f"  --option-{n} VALUE  sets what the option of the number {n} is about" for n in range(9))
    options += "\n           and goes on here"
    units = units_of(f"Usage: lantern [options]\n{options}")
    assert max(map(len, units)) <= MAX_UNIT_CHARS
    assert "--option-3 VALUE sets what the option of the number 3 is about" in units
    assert units[-1].endswith("and goes on here")


def test_quotations_are_safe_in_markdown_and_still_word_by_word(answerer: ExtractiveAnswerer) -> None:
    assert plain_markdown("use `a' or `b'") == "use 'a' or 'b'"
    assert plain_markdown("call `a` first") == "call `a` first"
    assert plain_markdown("define __init__ first") == "define `__init__` first"
    answer = ask(answerer, "Is it safe when requests leave the folder?")
    assert "`" not in answer
    assert {citation.verdict for citation in check_citations(answer, sources())} == {"verified"}


def test_the_local_judge_supports_what_is_quoted_word_by_word() -> None:
    user = (
        '<passage n="1" place="Lantern">Files are not served. Start it with --daemon.</passage>\n'
        '<sentence n="1" passages="1">Lantern says: “Start it with --daemon.”</sentence>'
    )
    assert judge_sentences(user) == {"sentences": [{"n": 1, "verdict": "supported"}]}
