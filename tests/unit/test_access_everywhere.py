"""As random users over random rules, through every path: what is found equals what an index without the forbidden
collections gives, and nothing of these is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from cicada.agents.ports import Actor
from cicada.agents.source_registry import NumberedSources
from cicada.agents.tools.evidence import GatherEvidenceTool
from cicada.agents.tools.inputs import GatherEvidence, SearchScript
from cicada.agents.tools.search import SearchScriptTool
from cicada.answering.corpus_api import CorpusApi
from cicada.answering.prompt import number_sources
from cicada.attempts.strategy import Answered, AnswerGiven, AskedQuestion, Retrieved
from cicada.conversation.conversation import Conversation
from cicada.corpus.declared.declaration import SECTION, CollectionDeclaration
from cicada.corpus.passages import Passage
from cicada.delivery.record import Question, RequestKey
from cicada.errors import CicadaError
from cicada.identity import Caller
from cicada.index.reader import IndexReader
from cicada.index.writer import IndexWriter
from cicada.models.ports import Filled, Usage
from cicada.profiles.service import ProfileService
from cicada.protocol.actions import CorpusAction, ListCollections, ListDocuments, ReadPassages, Search
from cicada.retrieval.documents import DocumentReader
from cicada.retrieval.facets import OWN_FIELDS, ShardFacets
from cicada.retrieval.graph import EntityGraph
from cicada.retrieval.knowledge.assembling import ContextAssembler
from cicada.retrieval.knowledge.contracts import catalogue_of
from cicada.retrieval.knowledge.gazetteer import Gazetteer, IndexNames
from cicada.retrieval.knowledge.resolving import IndexResolver
from cicada.retrieval.knowledge.search import KnowledgeSearch
from cicada.retrieval.knowledge.selecting import ModelSelector
from cicada.retrieval.knowledge.structured_calls import Need, Selection
from cicada.retrieval.names import NameChecker, NameCheckingRetriever
from cicada.retrieval.ports import UNLIMITED, Filters, Hit, SearchMode, SearchQuery
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING, AccessRules, Readable
from tests.support.answers import new_budget
from tests.support.cached_answers import Shelf
from tests.support.catalogues import declared
from tests.support.embedding import WordEmbedder
from tests.support.entities import reading
from tests.support.object_stores import InMemoryStore
from tests.support.originals import InMemoryOriginals
from tests.support.passages import indexable, make_passage
from tests.support.profiles import InMemoryProfiles
from tests.support.questions import NOW_S, ScriptedModel
from tests.support.sessions import InMemorySessions

ID = str(UUID(int=1))
NAMES = ("ambry", "bestiary", "chronicle", "dossier")
GROUPS = ("gms", "players", "scribes")
QUERY = "the lantern of Mira Oake and the tollwife"
MODES: tuple[SearchMode, ...] = ("hybrid", "dense", "keyword")
RULES = st.builds(
    AccessRules,
    st.sampled_from(["everybody", "nobody"]),
    st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(GROUPS), unique=True).map(tuple)),
)
USERS = st.lists(st.sampled_from(GROUPS), unique=True).map(tuple)


def corpus(random: Random) -> dict[str, list[Passage]]:
    """Collections with nearly the same texts, each of which tells whose it is."""
    return {name: [passage(random, name, n) for n in range(random.randint(2, 5))] for name in NAMES}


def passage(random: Random, collection: str, number: int) -> Passage:
    text = f"{random.choice(['The', 'A'])} lantern {random.choice(['burns', 'hangs'])} in the {collection}hall."
    entities = random.sample(["Mira Oake", "Jon", f"Lord {collection.capitalize()}"], random.randint(0, 3))
    return make_passage(number, collection=collection, episode=f"ep{random.randint(1, 2)}").model_copy(
        update={
            "id": f"{collection}-{number}",
            "text": text,
            "context": f"{text} {random.choice(['Rain falls.', 'Mira Oake rows.'])}",
            "entities": tuple(entities),
            "metadata": {SECTION: "entries", "source": f"{collection}.md", "mood": random.choice(["calm", collection])},
        }
    )


def declarations(random: Random) -> dict[str, CollectionDeclaration | None]:
    def declaration(name: str) -> CollectionDeclaration:
        aliases = {"Mira Oake": ("the tollwife",), f"Lord {name.capitalize()}": (f"old {name}",)}
        return declared(name, {"people": (f"Who somebody of the {name} is.", ())}, aliases=aliases)

    return {name: declaration(name) if random.random() < 0.7 else None for name in NAMES}


def told_by(ask: Callable[[], Any]) -> Any:
    """What is answered, or the words of the refusal."""
    try:
        return ask()
    except CicadaError as error:
        return (error.code, error.told)


class RightsOfTheAsker:
    """Access rules that give whoever asks what a test sets."""

    readable: Callable[[tuple[str, ...]], Readable]

    def rules(self) -> Any:
        return self


class House:
    """Everything that searches one index; what it holds in memory is shared by whoever asks."""

    def __init__(self, reader: IndexReader) -> None:
        self.retriever = ShardRetriever(reader, WordEmbedder())
        self.facets, self.graph, self.documents = ShardFacets(reader), EntityGraph(reader), DocumentReader(reader)
        self.access = RightsOfTheAsker()
        names = NameChecker(reader)
        self.corpus = CorpusApi(
            reader,
            NameCheckingRetriever(self.retriever, names),
            names,
            self.access,
            InMemoryOriginals(),
            top_k=5,
            min_score=0.0,
        )
        self.prompts: list[str] = []
        self.knowledge = KnowledgeSearch(
            lambda readable: catalogue_of(reader.current().manifest, readable),
            ModelSelector(self),
            Gazetteer(IndexNames(reader)),
            IndexResolver(reader, catalogue_of=lambda index, readable: catalogue_of(index.manifest, readable)),
            self.retriever,
            ContextAssembler(1000, lambda _: 10, min_score=0.2),
        )

    model_id, max_tokens = "chooses-everything", 512

    def fill(self, prompt: Any, form: Any, **_: Any) -> Any:
        """The selector's model: it chooses what it was not offered, too."""
        self.prompts.append(prompt.system)
        needs = [Need.model_construct(need=f"{name}/people", confidence=0.9) for name in NAMES]
        return Filled(Selection.model_construct(needs=tuple(needs)), Usage(), 1)

    def answers(self, readable: Readable) -> Iterator[tuple[str, Any]]:
        """What every path tells an asker."""
        for filters in (
            Filters(),
            Filters(collections=NAMES[:2]),
            Filters(entities=("Mira Oake", "Lord Bestiary")),
            Filters(episodes=("ep1",), metadata={"mood": ("calm", "ambry")}),
        ):
            for mode in MODES:
                asked = SearchQuery(QUERY, filters, top_k=5, min_score=0.0, mode=mode, readable=readable)
                found = self.retriever.search(asked)
                yield f"search {mode} {filters}", (found.hits, found.searched, found.degraded)
            yield f"facets {filters}", told_by(lambda: self._facets(filters, readable))  # noqa: B023 - called at once
            yield f"graph {filters}", told_by(lambda: self._graph(filters, readable))  # noqa: B023
            yield f"knowledge {filters}", told_by(lambda: self._knowledge(filters, readable))  # noqa: B023
        for name in NAMES:
            found = told_by(lambda: self.documents.read(name, f"{name}.md", readable=readable).passages)  # noqa: B023
            yield f"document {name}", found
        yield from self._corpus(readable)
        yield "tools", self._tools(readable)
        yield "prompts", self.prompts
        self.prompts = []

    def _corpus(self, readable: Readable) -> Iterator[tuple[str, Any]]:
        """What the client actions about the corpus tell."""
        self.access.readable = lambda groups: readable
        actions: list[CorpusAction] = [
            ListCollections(requestId=ID),
            Search(requestId=ID, query=QUERY),
            Search(requestId=ID, query=QUERY, collections=NAMES[:2], documents=(f"{NAMES[1]}.md", f"{NAMES[2]}.md")),
            *(ListDocuments(requestId=ID, collection=name) for name in NAMES),
            *(ReadPassages(requestId=ID, passageId=f"{name}-1") for name in NAMES),
            *(ReadPassages(requestId=ID, passageId="chronicle-0", collection=name) for name in NAMES),
        ]
        for action in actions:
            told = self.corpus.handle(action, Caller("mara", "c1", "f1"))
            asked = action.model_dump(exclude={"request_id", "query"})  # the asker's own words may be told back
            yield f"action {asked}", told.model_copy(update={"index_version": None, "request_id": None})

    def _facets(self, filters: Filters, readable: Readable) -> Any:
        counted = self.facets.count([*OWN_FIELDS, "mood"], filters, readable=readable, limit=20)
        return replace(counted, index_version="")

    def _knowledge(self, filters: Filters, readable: Readable) -> Any:
        asked = SearchQuery(f"Who is {QUERY} or old bestiary?", filters, readable=readable)
        gathered = self.knowledge.gather(asked)
        return gathered and replace(gathered, index_version="", timings_ms={})

    def _graph(self, filters: Filters, readable: Readable) -> list[Any]:
        near = self.graph.neighbours("Mira Oke", filters, readable=readable, limit=9)
        pairs = self.graph.cooccurring([], filters, readable=readable, limit=9)
        ways = self.graph.paths("Jon", "Lord Dossier", filters, readable=readable, max_hops=3, limit=9)
        hidden = ways.unknown and [replace(one, name="") for one in ways.unknown]  # the asker's own words
        return [replace(one, index_version="") for one in (near, pairs, replace(ways, unknown=tuple(hidden)))]

    def _tools(self, readable: Readable) -> list[Any]:
        actor = Actor("mara", "r1", "Is the lantern hers?", 1, readable=readable)
        profiles = ProfileService(InMemoryProfiles())
        registry = NumberedSources()
        search = SearchScriptTool(profiles, self.retriever)
        evidence = GatherEvidenceTool(profiles, self.retriever)
        return [
            search.run(SearchScript(query=QUERY), actor, registry, UNLIMITED),
            search.run(SearchScript(query=QUERY, collections=NAMES[1:3]), actor, registry, UNLIMITED),
            evidence.run(
                GatherEvidence(statement="The lantern burns.", contrary="It hangs."), actor, registry, UNLIMITED
            ),
            registry.sources,
        ]


@contextmanager
def house_of(texts: dict[str, list[Passage]], said: dict[str, CollectionDeclaration | None]) -> Iterator[House]:
    store = InMemoryStore()
    writer = IndexWriter(store, WordEmbedder(), segment_rows=3)
    for name, passages in texts.items():
        writer.replace(name, indexable(passages), declaration=said[name])
    with reading(store) as reader:
        yield House(reader)


def none_of(told: Any, forbidden: list[str], path: str) -> None:
    words = repr(told).lower()
    for name in forbidden:  # an unknown name that the asker gave is told back in quotation marks
        given = words.replace(f"“{name}”", "").replace(f"“{name}.md”", "")
        assert name not in given, f"{path} tells of {name}"


@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.generate])  # shrinking takes minutes
@example(1, AccessRules(readers={"bestiary": ("gms",), "dossier": ()}), [("players",), ("gms",)])
@given(st.integers(0, 10**6), RULES, st.lists(USERS, min_size=1, max_size=3))
def test_a_restricted_index_is_one_without_the_forbidden_collections(
    seed: int, rules: AccessRules, users: list[tuple[str, ...]]
) -> None:
    random = Random(seed)
    texts, said = corpus(random), declarations(random)
    with ExitStack() as stack:
        whole = stack.enter_context(house_of(texts, said))
        list(whole.answers(EVERYTHING))  # what an administrator asked stays in memory
        for groups in users:
            readable = rules.readable(groups)
            mine = {name: texts[name] for name in NAMES if readable.allows(name)}
            forbidden = [name for name in NAMES if name not in mine]
            told = list(whole.answers(readable))
            if not mine:
                for path, found in told:
                    none_of(found, [one.id for listed in texts.values() for one in listed], path)
                continue
            small = stack.enter_context(house_of(mine, said))
            expected = list(small.answers(EVERYTHING))
            for (path, found), (same_path, should_be) in zip(told, expected, strict=True):
                assert (path, found) == (same_path, should_be)
                none_of(found, forbidden, path)


@settings(max_examples=25, deadline=None)
@given(RULES, USERS, USERS)
def test_no_cached_answer_crosses_a_difference_in_rights(
    rules: AccessRules, one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    for sharing in ("deployment", "tenant", "user"):
        shelf = Shelf(sharing=sharing)
        shelf.keep("Who locked the boathouse?", tenant="t", readable=rules.readable(one))
        found = shelf.look_up("Who locked the boathouse?", tenant="t", readable=rules.readable(other))
        assert (found.use == "answer") is (rules.readable(one).key == rules.readable(other).key)
        if found.use == "miss":
            assert found.compared == 0


def test_with_an_engine_of_its_own_rules_an_answer_is_for_equal_groups_only() -> None:
    shelf = Shelf(sharing="deployment", by_groups=True)
    shelf.keep("Who locked the boathouse?", readable=AccessRules().readable(("gms",)))
    for groups, use in ((("gms",), "answer"), (("players",), "miss"), ((), "miss")):
        found = shelf.look_up("Who locked the boathouse?", readable=AccessRules().readable(groups))
        assert found.use == use, groups


def talk(sessions: InMemorySessions, model: ScriptedModel) -> Conversation:
    return Conversation(sessions, model, now_s=lambda: NOW_S)


def keep_turn(number: int, collections: set[str], sessions: InMemorySessions) -> None:
    """Keep the turn of an answer whose passages are of some collections."""
    passages = [make_passage(number, collection=name) for name in sorted(collections)]
    sources = number_sources([Hit(one, 0.9) for one in passages])
    asked = AskedQuestion(
        RequestKey("mara", f"r{number}"),
        Question("What did she say?", session_id="s1"),
        "What did Mira say?",
        readable=lambda: EVERYTHING,
    )
    text = f"Mira spoke of {' and '.join(sorted(collections))}."
    retrieved = Retrieved(sources, len(sources), "v1")
    given_answer = AnswerGiven(asked, "rag", text, retrieved, Answered("end_turn", "m"), NOW_S * 1000 - 100 + number)
    talk(sessions, ScriptedModel()).keep(given_answer)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sets(st.sampled_from(NAMES), max_size=2), min_size=1, max_size=3), RULES, USERS)
def test_no_turn_that_rests_on_a_forbidden_collection_completes_a_question(
    rested: list[set[str]], rules: AccessRules, groups: tuple[str, ...]
) -> None:
    readable = rules.readable(groups)
    sessions, completed = InMemorySessions(), "What did Mira say next?"
    model = ScriptedModel(completed)
    for number, names in enumerate(rested):
        keep_turn(number, names, sessions)
    question = Question("And what did she say next?", session_id="s1")
    done = talk(sessions, model).complete(question, "mara", lambda: readable, new_budget(calls=4))
    usable = [names for names in rested if all(map(readable.allows, names))]
    assert (done.query == completed) is bool(usable)
    if usable:
        assert set(done.rests_on or ()) == set().union(*usable)
    none_of(model.prompts, [name for name in NAMES if not readable.allows(name)], "the conversation")
