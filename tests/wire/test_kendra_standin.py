"""The Kendra stand-in does what AWS does: each line of its conformance list, by a boto3 client over real HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from cicada_local.kendra import Kendra, server
from tests.wire.engine_services import EngineService, serving

INDEX = "11111111-2222-3333-4444-555555555555"
STRING, LIST, LONG, DATE = "StringValue", "StringListValue", "LongValue", "DateValue"


@pytest.fixture
def service() -> Iterator[EngineService]:
    service = EngineService()
    with serving(service, Kendra(service.faults, [INDEX])) as running:
        yield running


@pytest.fixture
def client(service: EngineService) -> Any:
    return service.client("kendra", parameter_validation=False)


def attribute(key: str, kind: str, value: Any) -> dict[str, Any]:
    return {"Key": key, "Value": {kind: value}}


def document(id: str, text: str, *attributes: dict[str, Any], title: str = "") -> dict[str, Any]:
    return {"Id": id, "Title": title, "Blob": text.encode(), "Attributes": list(attributes)}


def put(client: Any, *documents: dict[str, Any]) -> list[dict[str, Any]]:
    failed: list[dict[str, Any]] = client.batch_put_document(IndexId=INDEX, Documents=list(documents))[
        "FailedDocuments"
    ]
    return failed


def declare(client: Any, **types: str) -> None:
    updates = [{"Name": name, "Type": type} for name, type in types.items()]
    client.update_index(Id=INDEX, DocumentMetadataConfigurationUpdates=updates)


def retrieved(client: Any, text: str, **request: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.retrieve(IndexId=INDEX, QueryText=text, **request)["ResultItems"]
    return items


def ids(items: list[dict[str, Any]]) -> str:
    return "".join(sorted(item["DocumentId"] for item in items))


def refusal(call: Any, **request: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as raised:
        call(**request)
    error = raised.value.response["Error"]
    return error["Code"], error["Message"]


def test_every_line_of_the_conformance_list_has_a_test() -> None:
    lines = re.findall(r"^(K\d\d) ", server.__doc__ or "", re.MULTILINE)
    tested = {name[5:8].upper() for name in globals() if re.match(r"test_k\d\d_", name)}
    assert set(lines) == tested
    assert len(lines) == len(tested)


def test_k01_the_protocol(client: Any) -> None:
    answer = client.retrieve(IndexId=INDEX, QueryText="bell")
    assert answer["ResultItems"] == []
    assert answer["ResponseMetadata"]["HTTPHeaders"]["x-amzn-requestid"]
    with pytest.raises(ClientError) as raised:
        client.retrieve(IndexId=INDEX)
    assert raised.value.response["Error"]["Message"].endswith(
        "'/QueryText' failed to satisfy constraint: Member must not be null"
    )


def test_k02_a_request_without_a_signature(service: EngineService) -> None:
    unsigned = service.client("kendra", config=Config(signature_version=UNSIGNED))
    assert refusal(unsigned.retrieve, IndexId=INDEX, QueryText="bell")[0] == "MissingAuthenticationTokenException"


@pytest.mark.parametrize("over", [{"IndexId": "short"}, {"QueryText": 7}, {"Query": "bell"}, {"PageSize": "ten"}])
def test_k03_members_that_break_the_model(client: Any, over: dict[str, Any]) -> None:
    import json
    import urllib.error
    import urllib.request

    request = urllib.request.Request(  # botocore itself sends no such members
        client.meta.endpoint_url,
        data=json.dumps({"IndexId": INDEX, "QueryText": "bell", **over}).encode(),
        headers={
            "X-Amz-Target": "AWSKendraFrontendService.Retrieve",
            "Authorization": "AWS4-HMAC-SHA256 Credential=t/20261121/us-east-1/kendra/aws4_request, Signature=0",
        },
    )
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request, timeout=5)
    assert raised.value.code == 400
    assert json.load(raised.value)["__type"] == "ValidationException"


def test_k04_an_unknown_index(client: Any) -> None:
    unknown = INDEX.replace("1", "9")
    assert refusal(client.retrieve, IndexId=unknown, QueryText="bell")[0] == "ResourceNotFoundException"


def test_k05_passages_of_documents(client: Any) -> None:
    text = " ".join(f"bell{n % 7} word" for n in range(250)) + " bell."
    uri = attribute("_source_uri", STRING, "https://example.org/a")
    assert put(client, document("a", text, uri, title="The fog bell"), document("b", "Silence.")) == []
    items = retrieved(client, "fog bell")
    assert [item["DocumentId"] for item in items] == ["a", "a", "a"]
    assert max(len(re.findall(r"\w+", item["Content"])) for item in items) <= 200
    assert " ".join(sorted(" ".join(item["Content"] for item in items).split())) == " ".join(sorted(text.split()))
    assert {item["DocumentTitle"] for item in items} == {"The fog bell"}
    assert {item["DocumentURI"] for item in items} == {"https://example.org/a"}
    assert items[0]["DocumentAttributes"] == [uri]
    assert not {item["Id"] for item in items} & {item["Id"] for item in retrieved(client, "fog bell")}


def test_k06_a_long_query_is_cut(client: Any) -> None:
    put(client, document("a", "The harbour."), document("b", "A lamp."))
    filler = " ".join(f"filler{n}" for n in range(29))
    assert ids(retrieved(client, f"{filler}, and the: harbour; lamp")) == "a"


def test_k07_pages(client: Any) -> None:
    for start in range(0, 120, 10):
        put(client, *(document(f"{n:03}", "A bell.") for n in range(start, start + 10)))
    assert len(retrieved(client, "bell")) == 10
    assert len(retrieved(client, "bell", PageSize=500)) == 100
    pages = [retrieved(client, "bell", PageNumber=n, PageSize=40) for n in (1, 2, 3, 4)]
    assert [len(page) for page in pages] == [40, 40, 20, 0]
    assert len({item["DocumentId"] for page in pages for item in page}) == 100


SOURCE, TAGS, YEAR = ("source", STRING), ("tags", LIST), ("_excerpt_page_number", LONG)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({"EqualsTo": attribute(*SOURCE, "one")}, "a"),
        ({"OrAllFilters": [{"EqualsTo": attribute(*SOURCE, name)} for name in ("one", "two")]}, "ab"),
        ({"AndAllFilters": [{"EqualsTo": attribute(*SOURCE, name)} for name in ("one", "two")]}, ""),
        ({"NotFilter": {"EqualsTo": attribute(*SOURCE, "one")}}, "bc"),
        ({"ContainsAny": attribute(*TAGS, ["x", "z"])}, "ab"),
        ({"ContainsAll": attribute(*TAGS, ["x", "y"])}, "a"),
        ({"GreaterThan": attribute(*YEAR, 1)}, "b"),
        ({"GreaterThanOrEquals": attribute(*YEAR, 1)}, "ab"),
        ({"LessThan": attribute(*YEAR, 2)}, "a"),
        ({"LessThanOrEquals": attribute(*YEAR, 2)}, "ab"),
    ],
)
def test_k08_filters(client: Any, where: dict[str, Any], found: str) -> None:
    declare(client, source="STRING_VALUE", tags="STRING_LIST_VALUE")
    put(
        client,
        document("a", "A bell.", attribute(*SOURCE, "one"), attribute(*TAGS, ["x", "y"]), attribute(*YEAR, 1)),
        document("b", "A bell.", attribute(*SOURCE, "two"), attribute(*TAGS, ["x"]), attribute(*YEAR, 2)),
        document("c", "A bell."),
    )
    assert ids(retrieved(client, "bell", AttributeFilter=where)) == found
    two = {**where, "EqualsTo": attribute(*SOURCE, "one"), "NotFilter": {"EqualsTo": attribute(*SOURCE, "one")}}
    assert refusal(retrieved, client=client, text="bell", AttributeFilter=two)[0] == "ValidationException"


@pytest.mark.parametrize(
    "where",
    [
        {"EqualsTo": attribute("colour", STRING, "red")},
        {"EqualsTo": attribute("_category", LONG, 1)},
        {"EqualsTo": attribute("_authors", LIST, ["Ada"])},
        {"ContainsAny": attribute("_category", STRING, "a")},
        {"GreaterThan": attribute("_category", STRING, "a")},
    ],
)
def test_k09_attributes_that_do_not_fit(client: Any, where: dict[str, Any]) -> None:
    assert refusal(retrieved, client=client, text="bell", AttributeFilter=where)[0] == "ValidationException"


def test_k10_confidence(client: Any) -> None:
    german = attribute("_language_code", STRING, "de")
    put(
        client,
        document("a", "The fog bell."),
        document("b", "Die fog bell.", german),
        document("c", "A long story of a bell and of much else that happened there."),
    )
    buckets = {item["DocumentId"]: item["ScoreAttributes"]["ScoreConfidence"] for item in retrieved(client, "fog bell")}
    assert buckets["b"] == "NOT_AVAILABLE"
    order = ["VERY_HIGH", "HIGH", "MEDIUM", "LOW"]
    assert order.index(buckets["a"]) < order.index(buckets["c"])


def test_k11_requested_attributes(client: Any) -> None:
    put(client, document("a", "A bell.", attribute("_category", STRING, "x"), attribute("_version", STRING, "1")))
    (item,) = retrieved(client, "bell", RequestedDocumentAttributes=["_version"])
    assert [one["Key"] for one in item["DocumentAttributes"]] == ["_version"]


def test_k12_putting_documents(client: Any) -> None:
    many = [document(str(n), "A bell.") for n in range(11)]
    assert refusal(client.batch_put_document, IndexId=INDEX, Documents=many)[0] == "ValidationException"
    bad = document("bad", "A bell.", attribute("source", STRING, "one"))
    (failed,) = put(client, bad, document("good", "A bell."))
    assert (failed["Id"], failed["ErrorCode"]) == ("bad", "InvalidRequest")
    assert "source" in failed["ErrorMessage"]
    declare(client, source="STRING_VALUE")
    assert put(client, bad) == []
    assert sorted(item["DocumentId"] for item in retrieved(client, "bell")) == ["bad", "good"]
    client.batch_delete_document(IndexId=INDEX, DocumentIdList=["bad"])
    assert ids(retrieved(client, "bell")) == "good"


def test_k13_filters_are_flat_and_short(client: Any) -> None:
    equal = {"EqualsTo": attribute("_category", STRING, "a")}
    deep = {"AndAllFilters": [{"OrAllFilters": [{"NotFilter": equal}]}]}
    names = [f"name {number}" for number in range(11)]
    assert ids(retrieved(client, "bell", AttributeFilter=deep)) == ""
    assert ids(retrieved(client, "bell", AttributeFilter={"OrAllFilters": [equal] * 10})) == ""
    assert (
        ids(retrieved(client, "bell", AttributeFilter={"ContainsAny": attribute("_authors", LIST, names[:10])})) == ""
    )
    for where, told in (
        ({"AndAllFilters": [{"OrAllFilters": [{"AndAllFilters": [equal]}]}]}, "depth of more than 2"),
        ({"OrAllFilters": [equal] * 11}, "length of more than 10"),
        ({"ContainsAny": attribute("_authors", LIST, names)}, "more than 10 strings"),
    ):
        code, message = refusal(retrieved, client=client, text="bell", AttributeFilter=where)
        assert code == "ValidationException"
        assert told in message


def test_k14_a_user_context_hides_what_its_user_and_groups_may_not_read(client: Any) -> None:
    def listed(id: str, *entries: tuple[str, str, str]) -> dict[str, Any]:
        members = [{"Type": type, "Name": name, "Access": access} for type, name, access in entries]
        return {**document(id, "The bell."), **({"AccessControlList": members} if members else {})}

    everybodys, mine = listed("a"), listed("b", ("USER", "mara", "ALLOW"), ("GROUP", "gm", "ALLOW"))
    assert put(client, everybodys, mine, listed("c", ("GROUP", "gm", "ALLOW"), ("USER", "mara", "DENY"))) == []
    assert ids(retrieved(client, "bell")) == "abc"
    for context, seen in (
        ({"Groups": ["gm", "players"]}, "abc"),
        ({"Groups": ["players"]}, "a"),
        ({"UserId": "mara"}, "ab"),
        ({"UserId": "mara", "Groups": ["gm"]}, "ab"),
    ):
        assert ids(retrieved(client, "bell", UserContext=context)) == seen, context
    code, _ = refusal(retrieved, client=client, text="bell", UserContext={"Groups": []})
    assert code == "ValidationException"


def test_faults_strike(service: EngineService, client: Any) -> None:
    service.faults.arm("kendra.throttle", times=1)
    assert refusal(client.retrieve, IndexId=INDEX, QueryText="bell")[0] == "ThrottlingException"
    service.faults.arm("kendra.error", times=1, operation="Retrieve")
    assert refusal(client.retrieve, IndexId=INDEX, QueryText="bell")[0] == "InternalServerException"
    client.retrieve(IndexId=INDEX, QueryText="bell")
