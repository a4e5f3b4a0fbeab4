"""Profiles in the deployed thing: by frames, by the command line, and apart from another user's."""

from __future__ import annotations

import json
import uuid

from cicada_cli.main import main


def call(socket, operation, **fields):
    request_id = str(uuid.uuid4())
    socket.send("profile", requestId=request_id, operation=operation, **fields)
    while True:
        frame = socket.receive()
        if frame["requestId"] == request_id:
            return frame


def test_a_profile_is_kept_for_its_user_alone(connect, user):
    mine, theirs = connect(), connect(f"jonas-{uuid.uuid4()}")
    made = call(mine, "create", kind="character", name="Tamsin Oake", set=[{"field": "hair", "value": "red"}])
    assert (made["type"], made["version"]) == ("profile", 1)
    for operation, fields in (
        ("show", {"id": made["id"]}),
        ("update", {"id": made["id"], "expectedVersion": 1, "set": [{"field": "hair", "value": "black"}]}),
        ("delete", {"id": made["id"], "expectedVersion": 1}),
    ):
        assert call(theirs, operation, **fields)["code"] == "profile_unknown"
    assert call(theirs, "list")["profiles"] == []
    changed = call(mine, "update", id=made["id"], expectedVersion=1, set=[{"field": "hair", "value": "grey"}])
    assert changed["version"] == 2
    refused = call(mine, "delete", id=made["id"], expectedVersion=1)
    assert (refused["type"], refused["code"]) == ("error", "profile_conflict")


def test_the_command_line_keeps_and_shows_a_profile(cloud, issuer, user, capsys):
    token = ["--url", cloud.websocket_url, "--token", issuer.token(user)]
    assert main(["profile", "create", "location", "The Boathouse", "door=locked", *token]) == 0
    assert main(["profile", "set", "the boathouse", "door=open", *token]) == 0
    capsys.readouterr()
    assert main(["profile", "history", "the boathouse", "--json", *token]) == 0
    history = [*map(json.loads, capsys.readouterr().out.splitlines())]
    assert [change["version"] for change in history] == [2, 1]
    assert history[0]["edits"] == [{"field": "door", "before": "locked", "after": "open"}]
