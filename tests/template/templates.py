"""Synthesises the app and reads its templates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from aws_cdk import App

from stacks.app import add_stacks
from stacks.context import parse
from stacks.findings import flat

ROOT = Path(__file__).resolve().parents[2]

UNSTAGED = {"aws:cdk:disable-asset-staging": True}
"""The context in which the CDK leaves packages where they are: a copy of them is most of a synthesis."""

FUNCTIONS = {
    "message_processor": "MessageProcessor",
    "answer": "Answer",
    "corpus": "CorpusReader",
    "exhausted": "Exhausted",
    "recovery_sweep": "RecoverySweep",
    "index_maintenance": "IndexMaintenanceWorker",
    "page_files": "PageFiles",
    "record_settings": "RecordSettings",
    "ingest_start": "Start",
    "ingest_plan": "Plan",
    "ingest_document": "Document",
    "ingest_commit": "Commit",
    "retrieve": "Retrieve",
    "index_document": "IndexDocument",
    "get_document_summary": "DocumentSummary",
    "extract_citations": "ExtractCitations",
    "graph_query": "GraphQuery",
    "facets": "Facets",
    "enrich_schema": "EnrichSchema",
    "connection": "Connection",
    "authorizer": "Authorizer",
}
"""Folders below lambdas/, and how their resources' ids begin."""

OPTIONAL_FUNCTIONS = {"http": "Http", "uploads": "UserUploads"}
"""The same of those that a setting adds."""


STACKS = ("Data", "Page", "SignIn", "Answering", "Ingest", "Integrators", "Gateway")
"""In their order; the third is there with a user pool only, the second unless it is turned off."""


@dataclass(frozen=True)
class Resource:
    """One resource of one template."""

    id: str
    type: str
    properties: dict[str, Any]
    rest: dict[str, Any]


@dataclass(frozen=True)
class Synthesis:
    """What the CDK wrote."""

    folder: Path
    prefix: str

    @property
    def stacks(self) -> tuple[str, ...]:
        return tuple(stack for stack in STACKS if (self.folder / f"{self.prefix}-{stack}.template.json").exists())

    def template(self, stack: str) -> dict[str, Any]:
        return _read_once(self.folder / f"{self.prefix}-{stack}.template.json")

    def templates(self) -> dict[str, dict[str, Any]]:
        """All of them, by the stacks' names."""
        return {
            path.name.removesuffix(".template.json"): _read_once(path)
            for path in sorted(self.folder.glob("*.template.json"))
        }

    def resources(self, *types: str, stacks: Sequence[str] = STACKS) -> Iterator[Resource]:
        """The resources of all stacks, or those of some types or stacks."""
        for stack in self.stacks:
            if stack not in stacks:
                continue
            for id, resource in self.template(stack)["Resources"].items():
                if not types or resource["Type"] in types:
                    yield Resource(id, resource["Type"], resource.get("Properties", {}), resource)

    def one(self, type: str, *, stack: str | None = None) -> Resource:
        """The only resource of a type, in all stacks or in one."""
        (resource,) = self.resources(type, stacks=STACKS if stack is None else [stack])
        return resource

    def machine(self, id: str) -> Resource:
        """The state machine whose id begins so: ``Workflow`` answers, ``Machine`` loads uploads."""
        (found,) = (one for one in self.resources("AWS::StepFunctions::StateMachine") if one.id.startswith(id))
        return found

    def function(self, folder: str) -> Resource:
        """The function of a folder of lambdas/."""
        (found,) = (
            f
            for f in self.resources("AWS::Lambda::Function")
            if f.id.startswith({**FUNCTIONS, **OPTIONAL_FUNCTIONS}[folder] + "Function")
        )
        return found

    def rule_for(self, folder: str) -> Resource:
        """The scheduled rule that invokes the function of a folder."""
        arn = f"<{self.function(folder).id}.Arn>"
        (found,) = (
            rule
            for rule in self.resources("AWS::Events::Rule")
            if arn in {flat(target["Arn"]) for target in rule.properties["Targets"]}
        )
        return found

    def async_invocation(self, folder: str) -> dict[str, Any]:
        """How asynchronous events of the function of a folder are treated."""
        name = f"<{self.function(folder).id}>"
        (found,) = (
            config.properties
            for config in self.resources("AWS::Lambda::EventInvokeConfig")
            if flat(config.properties["FunctionName"]) == name
        )
        return found

    def environment(self, folder: str) -> dict[str, str]:
        """A function's variables, with references flattened."""
        return {
            name: flat(value) for name, value in self.function(folder).properties["Environment"]["Variables"].items()
        }

    def permissions(self, role: str, effect: str = "Allow") -> list[tuple[str, str, Any]]:
        """What the roles whose id begins so may do: ``(action, resource, condition)``, sorted."""
        documents = [
            *(
                policy.properties["PolicyDocument"]
                for policy in self.resources("AWS::IAM::Policy")
                if policy.id.startswith(role)
            ),
            *(
                policy["PolicyDocument"]
                for each in self.resources("AWS::IAM::Role")
                if each.id.startswith(role)
                for policy in each.properties.get("Policies", [])
            ),
        ]
        found = []
        for statement in (one for document in documents for one in document["Statement"]):
            if statement["Effect"] != effect:
                continue
            for action in as_list(statement["Action"]):
                for resource in as_list(statement["Resource"]):
                    found.append((action, flat(resource), flat_all(statement.get("Condition"))))
        return sorted(found, key=str)

    def layers(self, folder: str) -> list[Path]:
        """The folders that a function's layers were made from, in order."""
        function = self.function(folder)
        resources = self.template(self._stack_of(function))["Resources"]
        layers = (resources[layer["Ref"]]["Properties"] for layer in function.properties.get("Layers", []))
        return [self._asset(function, layer["Content"]["S3Key"]) for layer in layers]

    def code(self, folder: str) -> Path:
        """The folder that a function's code was made from."""
        function = self.function(folder)
        return self._asset(function, function.properties["Code"]["S3Key"])

    def _stack_of(self, function: Resource) -> str:
        return next(stack for stack in self.stacks if function.id in self.template(stack)["Resources"])

    def _asset(self, function: Resource, object_key: str) -> Path:
        stack, key = self._stack_of(function), object_key.removesuffix(".zip")
        assets = json.loads((self.folder / f"{self.prefix}-{stack}.assets.json").read_text())["files"]
        return self.folder / str(assets[key]["source"]["path"])


@cache
def _read_once(path: Path) -> dict[str, Any]:
    """A template, which nobody changes."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def synthesise(
    settings: dict[str, Any], folder: Path, *, more_context: Mapping[str, Any] | None = None, **app: Any
) -> Synthesis:
    """Synthesise the stacks with some settings; ``more_context`` is what `cdk -c` adds."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"] | dict(more_context or {})
    application = App(context=context, outdir=str(folder), builtin_cloud_formation_validation=False, **app)
    parsed = parse(settings, source="the test")
    add_stacks(application, parsed)
    application.synth()
    return Synthesis(folder, parsed.stack_prefix)


def flat_all(value: Any) -> Any:
    """A condition, flattened."""
    if isinstance(value, dict) and not any(key.startswith("Fn::") or key == "Ref" for key in value):
        return {key: flat_all(inner) for key, inner in value.items()}
    return flat(value) if isinstance(value, dict) else value


def as_list(value: Any) -> list[Any]:
    """CloudFormation's one-or-many as many."""
    return value if isinstance(value, list) else [value]
