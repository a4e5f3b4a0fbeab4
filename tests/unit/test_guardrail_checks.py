"""A guardrail's checks where no service plays a part: the pieces of an answer, marked prompts, and settings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cicada.answering.prompt import direct_prompt, rag_prompt
from cicada.errors import AnswerBlocked, AnswerTruncated, CicadaError, raise_final
from cicada.models.failure import Failure
from cicada.models.guardrail import INTERVENED, MAX_QUERY_CHARS, Guardrail, GuardrailUse, found_by
from cicada.models.guardrail_checks import MAX_CALL_CHARS, UNIT_CHARS, PieceChecker, cut_before
from cicada.models.ports import Prompt
from stacks.guardrail_settings import GuardrailSettings

TEXTS = st.lists(st.text("ab c.\n。🙂", max_size=700), max_size=8)


@given(TEXTS, st.booleans())
def test_an_answer_is_checked_whole_in_pieces_that_one_unit_holds(texts, waits):
    checked: list[str] = []

    def check(text: str) -> str:
        checked.append(text)
        return text

    pieces = PieceChecker(check, waits=waits)
    shown = ""
    for text in texts:
        for piece in pieces.feed(text):
            shown += piece.text
        if waits:
            assert shown == "".join(checked)  # nothing before its check
    shown += "".join(piece.text for piece in pieces.end())
    assert shown == "".join(checked) == "".join(texts)
    assert all(0 < len(piece) <= UNIT_CHARS for piece in checked)


@given(st.text("ab c.\n。", min_size=2), st.data())
def test_a_text_is_cut_within_its_bound(text, data):
    most = data.draw(st.integers(1, len(text) - 1))
    assert 0 < cut_before(text, most) <= most


def test_a_text_is_cut_after_a_sentence_else_after_a_word():
    assert cut_before("One. Two three four", 12) == len("One. ")
    assert cut_before("One two three", 10) == len("One two ")
    assert cut_before("x" * 20, 10) == 10
    assert cut_before("" + "二。三四", 3) == len("二。")


def blocks(prompt: Prompt, **guard: bool) -> list[tuple[str, list[str] | None]]:
    content = GuardrailUse(Guardrail("a", "1", **guard)).content(prompt)  # type: ignore[arg-type]
    read = []
    for block in content:
        marked = block.get("guardContent", {}).get("text")
        read.append((marked["text"], marked["qualifiers"]) if marked else (block["text"], None))
    assert "".join(text for text, _ in read) == prompt.user
    return read


def test_the_question_is_guarded_and_passages_are_grounding_sources_where_asked():
    prompt = Prompt("", "<passages>\nP & Q\n</passages>\n\n<question>\nP\n</question>", checked="P", sources="P & Q")
    assert [one for one in blocks(prompt) if one[1]] == [("P", ["guard_content"])]
    marked = [("P & Q", ["grounding_source"]), ("P", ["query", "guard_content"])]
    assert [one for one in blocks(prompt, grounding=True) if one[1]] == marked
    for without in (direct_prompt("A < B?"), rag_prompt("x" * (MAX_QUERY_CHARS + 1), ())):
        assert [one[1] for one in blocks(without, grounding=True) if one[1]] == [["guard_content"]]


def test_without_a_named_question_the_whole_turn_is_checked():
    assert blocks(Prompt("", "everything")) == [("everything", None)]
    assert GuardrailUse(None).content(Prompt("", "a question", checked="question")) == [{"text": "a question"}]


def test_the_kinds_of_policies_are_told_and_no_text():
    pii = {"piiEntities": [{"type": "EMAIL", "match": "a@b.c", "action": "ANONYMIZED"}]}
    attack = {"filters": [{"type": "PROMPT_ATTACK", "action": "BLOCKED"}, {"type": "HATE", "action": "NONE"}]}
    grounding = {"filters": [{"type": "RELEVANCE", "action": "BLOCKED"}, {"type": "GROUNDING", "action": "NONE"}]}
    found = found_by(
        [
            {"sensitiveInformationPolicy": pii, "contentPolicy": attack},
            {"contextualGroundingPolicy": grounding, "invocationMetrics": {}},
        ]
    )
    assert (found.blocked, found.masked) == (("prompt_attack", "relevance"), ("personal_data",))


def test_an_intervention_without_a_trace_is_a_block():
    use = GuardrailUse(Guardrail("a", "1"))
    error = use.verdict(INTERVENED)
    assert error is not None
    assert (error.told, error.by_guardrail) == (AnswerBlocked.told, True)


def test_failures_of_the_model_are_not_the_guardrails():
    use = GuardrailUse(Guardrail("a", "1", on_failure="open"))
    failure = Failure(AnswerTruncated("too long"), retry=False)
    assert use.read(failure) is failure
    assert not use.gives_way(failure)


def test_a_guardrail_ends_a_request_wherever_it_intervenes_and_a_models_filter_does_not():
    with pytest.raises(AnswerBlocked):
        raise_final(AnswerBlocked(by_guardrail=True))
    raise_final(AnswerBlocked())
    raise_final(CicadaError())
    raise_final(ValueError())


def test_a_long_message_is_cut_and_a_blank_one_is_the_usual():
    assert len(AnswerBlocked(told="x" * 900).told) == 500
    assert AnswerBlocked(told="  ").told == AnswerBlocked.told
    assert MAX_CALL_CHARS % UNIT_CHARS == 0


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"id": "abc"}, "both or neither"),
        ({"id": "abc", "version": "1", "create": {"words": ["x"]}}, "not both"),
        ({"id": "abc", "version": "latest"}, "pattern"),
        ({"create": {}}, "names nothing to check"),
        ({"create": {"personalData": {"EMAIL": "mask"}}, "stream": "async"}, "masks nothing"),
        ({"create": {"groundingThreshold": 0.5}}, "grounding: must be true"),
        ({"create": {"words": ["x"]}, "grounding": True}, "groundingThreshold"),
        ({"create": {"groundingThreshold": 1.0}, "grounding": True}, "less than or equal"),
        ({"create": {"patterns": [{"name": "x", "pattern": "(?=a)", "treatment": "block"}]}}, "ahead or behind"),
        ({"create": {"patterns": [{"name": "x", "pattern": "(", "treatment": "block"}]}}, "regular expression"),
        ({"create": {"personalData": {"SHOE_SIZE": "mask"}}}, "Input should be"),
        ({"create": {"words": ["x"], "blockedMessage": ""}}, "at least 1"),
    ],
)
def test_settings_that_bedrock_would_refuse_are_refused(settings, why):
    import json

    with pytest.raises(ValidationError, match=why):
        GuardrailSettings.model_validate_json(json.dumps(settings))
