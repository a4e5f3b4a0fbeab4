"""One deployment: every stack in turn goes from the template that is deployed to the new one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from cicada_cli.stack_changes import advice
from cicada_cli.stack_changes.resource_rules import ResourceRules, rules_of
from cicada_cli.stack_changes.templates import (
    Read,
    Resource,
    Template,
    exports,
    imports,
    order,
    property_of,
    reads,
    references,
    resources,
    text,
)

POLICIES = ("DeletionPolicy", "UpdateReplacePolicy")
KEPT_POLICIES = ("Retain", "RetainExceptOnCreate")


class Kind(StrEnum):
    """Kinds of consequences for the deployer."""

    REFUSED = "refused"
    """CloudFormation refuses the update, or it fails and is rolled back."""
    LOST = "lost"
    """Data is deleted, or can no longer be reached or read."""
    STALE = "stale"
    """A stack keeps an outdated value."""
    RELOAD = "reload"
    """Data must be loaded again."""
    KEPT = "kept"
    """A resource is retained in the account without a stack."""

    @property
    def blocks(self) -> bool:
        """Whether the deployment should not be started."""
        return self in (Kind.REFUSED, Kind.LOST, Kind.STALE)


@dataclass(frozen=True)
class Consequence:
    """One thing that the deployment would do."""

    kind: Kind
    stack: str
    subject: str
    """A resource's logical id and type, an export's name, or an output's."""
    what: str
    steps: str = ""
    """How the change can be made; empty where there is nothing to do."""

    def __str__(self) -> str:
        """The consequence as text."""
        steps = f" {self.steps}" if self.steps else ""
        return f"{self.stack}: {self.subject} {self.what}.{steps}"


@dataclass(frozen=True)
class Name:
    """A resource's name, with all that it must be unique in."""

    type: str
    scope: str
    value: str


@dataclass(frozen=True)
class Deployed:
    """What is there before a deployment."""

    stacks: Mapping[str, Template] = field(default_factory=dict)
    kept: frozenset[Name] = frozenset()
    """Names of resources that earlier deployments have left behind."""


@dataclass
class _Step:
    """The deployment as far as it has got."""

    stacks: dict[str, Template]
    kept: set[Name]
    changed: set[Read] = field(default_factory=set)
    """Outputs that have another value than before."""
    found: list[Consequence] = field(default_factory=list)


def consequences_of(deployed: Mapping[str, Template], wanted: Mapping[str, Template]) -> list[Consequence]:
    """What one deployment would do.

    Args:
        deployed: the templates of the deployed stacks, by the stacks' names.
        wanted: the templates that are about to be deployed, all of them.
    """
    return deploy(Deployed(deployed), wanted)[0]


def deploy(deployed: Deployed, wanted: Mapping[str, Template]) -> tuple[list[Consequence], Deployed]:
    """What one deployment would do, and what is there afterwards if it is done.

    Args:
        deployed: what is there.
        wanted: the templates that are about to be deployed, all of them.
    """
    step = _Step(dict(deployed.stacks), set(deployed.kept))
    for stack in order(wanted):
        _update(step, stack, step.stacks.get(stack, {}), wanted[stack])
        step.stacks[stack] = wanted[stack]
    for stack in step.stacks.keys() - wanted.keys():
        _say(step, Kind.KEPT, stack, "the stack", "is no longer part of the deployment and is retained")
    return step.found, Deployed(step.stacks, frozenset(step.kept))


def _say(step: _Step, kind: Kind, stack: str, subject: str, what: str, steps: str = "") -> None:
    step.found.append(Consequence(kind, stack, subject, what, steps))


def _update(step: _Step, stack: str, old: Template, new: Template) -> None:
    _check_reads(step, stack, new)
    if text(old) == text(new):
        _check_stale(step, stack, new)
        return
    if old and _only_policies_differ(old, new):
        _say(step, Kind.REFUSED, stack, "DeletionPolicy", "cannot be the only change of a stack", advice.METADATA)
    replaced = _replaced(step, old, new)
    _check_exports(step, stack, old, new, replaced)
    for id, resource in resources(new).items():
        _check_resource(step, stack, id, resources(old).get(id), resource, id in replaced)
    _check_names(step, stack, old, new, replaced | (resources(new).keys() - resources(old).keys()))
    for id, resource in resources(old).items():
        if id not in resources(new):
            _check_removal(step, stack, id, resource, old, new)
    step.changed |= _changed_outputs(step, stack, old, new, replaced)


def _only_policies_differ(old: Template, new: Template) -> bool:
    """Whether what becomes of resources after their deletion changes, and no resource itself."""

    def without_policies(template: Template) -> dict[str, dict[str, Any]]:
        return {
            id: {name: value for name, value in resource.items() if name not in POLICIES}
            for id, resource in resources(template).items()
        }

    return text(resources(old)) != text(resources(new)) and without_policies(old) == without_policies(new)


# --- what is read from other stacks ---


def _check_reads(step: _Step, stack: str, new: Template) -> None:
    for producer, output in sorted(reads(new)):
        if output not in step.stacks.get(producer, {}).get("Outputs", {}):
            _say(step, Kind.REFUSED, stack, f"output {output} of {producer}", "is referenced but does not exist")
    exported = {name for template in step.stacks.values() for name in exports(template)}
    for name in sorted(imports(new) - exported):
        _say(step, Kind.REFUSED, stack, f"export {name}", "is imported but does not exist")


def _check_stale(step: _Step, stack: str, unchanged: Template) -> None:
    for producer, output in sorted(reads(unchanged) & step.changed):
        _say(
            step,
            Kind.STALE,
            stack,
            f"output {output} of {producer}",
            "has changed, and the CDK skips this stack because its template has not",
            advice.FORCE,
        )


def _check_exports(step: _Step, stack: str, old: Template, new: Template, replaced: set[str]) -> None:
    others = {name: template for name, template in step.stacks.items() if name != stack}
    for name, output in exports(old).items():
        users = sorted(other for other, template in others.items() if name in imports(template))
        now = exports(new).get(name)
        if not users or (now is not None and not _other_value(step, old, new, output, now, replaced)):
            continue
        done = "removed" if now is None else "changed"
        _say(
            step,
            Kind.REFUSED,
            stack,
            f"export {name}",
            f"cannot be {done} while {', '.join(users)} imports it",
            advice.BOTH,
        )
    taken = {name: other for other, template in others.items() for name in exports(template)}
    for name in exports(new).keys() & taken.keys():
        _say(step, Kind.REFUSED, stack, f"export {name}", f"already exists in {taken[name]}")


def _other_value(step: _Step, old: Template, new: Template, before: str, now: str, replaced: set[str]) -> bool:
    value = new["Outputs"][now]["Value"]
    return text(old["Outputs"][before]["Value"]) != text(value) or _depends_on_changes(step, value, replaced)


def _changed_outputs(step: _Step, stack: str, old: Template, new: Template, replaced: set[str]) -> set[Read]:
    found = set()
    for name in old.get("Outputs", {}):
        if name not in new.get("Outputs", {}) or _other_value(step, old, new, name, name, replaced):
            found.add((stack, name))
    return found


# --- what becomes of resources ---


def _depends_on_changes(step: _Step, value: Any, replaced: set[str]) -> bool:
    return bool(references(value) & replaced or reads(value) & step.changed)


def _replaced(step: _Step, old: Template, new: Template) -> set[str]:
    """The resources that the update replaces, including those that refer to replaced ones."""
    both = {id for id in resources(new) if id in resources(old)}
    found: set[str] = set()
    while True:
        more = {
            id
            for id in both - found
            if any(
                text(property_of(resources(old)[id], name)) != text(property_of(resources(new)[id], name))
                or _depends_on_changes(step, property_of(resources(new)[id], name), found)
                for name in rules_of(resources(new)[id]["Type"]).replaced_by
            )
        }
        if not more:
            return found
        found |= more


def _check_resource(step: _Step, stack: str, id: str, before: Resource | None, now: Resource, replaced: bool) -> None:
    if before is None:
        return
    subject, rules = f"{id} ({now['Type']})", rules_of(now["Type"])
    if before["Type"] != now["Type"]:
        _say(step, Kind.REFUSED, stack, subject, f"cannot replace a resource of type {before['Type']}")
        return
    for name in rules.fixed:
        if text(property_of(before, name)) != text(property_of(now, name)):
            _say(step, Kind.REFUSED, stack, subject, f"cannot change its {name}", advice.ANOTHER_PREFIX)
    if now["Type"] == "AWS::DynamoDB::Table" and not replaced:
        for what in _index_problems(before, now):
            _say(step, Kind.REFUSED, stack, subject, what, advice.ONE_INDEX)
    if replaced and rules.holds is not None:
        if rules.reloadable:
            _say(step, Kind.RELOAD, stack, subject, f"is replaced, and loses {rules.holds}", advice.steps_for(now))
        else:
            _say(step, Kind.LOST, stack, subject, f"is replaced, and loses {rules.holds}", advice.ANOTHER_PREFIX)


def _index_problems(before: Resource, now: Resource) -> Iterator[str]:
    """DynamoDB makes or removes one index of a table at a time, and changes no index's keys."""
    old, new = (
        {each["IndexName"]: each for each in property_of(table, "GlobalSecondaryIndexes") or []}
        for table in (before, now)
    )
    if len(old.keys() ^ new.keys()) > 1:
        yield "cannot have more than one index made or removed in one update"
    for name in old.keys() & new.keys():
        if any(text(old[name].get(part)) != text(new[name].get(part)) for part in ("KeySchema", "Projection")):
            yield f"cannot change the keys of its index {name}"


def _check_removal(step: _Step, stack: str, id: str, resource: Resource, old: Template, new: Template) -> None:
    subject, rules = f"{id} ({resource['Type']})", rules_of(resource["Type"])
    kept = resource.get("DeletionPolicy") in KEPT_POLICIES
    if kept:
        name = _name_of(stack, resource, rules)
        step.kept |= set() if name is None else {name}
    if resource["Type"] == "AWS::KMS::Key":
        users = ", ".join(_encrypted_by(old, id))
        if users:
            _say(
                step,
                Kind.LOST,
                stack,
                subject,
                f"is removed, and what it encrypts in {users} cannot be read",
                advice.RETIRE_KEY,
            )
        else:
            gone = "stays in the account" if kept else "is deleted by KMS after its waiting period"
            _say(step, Kind.KEPT, stack, subject, f"leaves the stack and {gone}", advice.REWRITTEN)
    elif kept:
        _say(step, Kind.KEPT, stack, subject, "leaves the stack and is retained in the account")
    elif rules.holds is not None and not _goes_with_its_owner(id, rules, old, new):
        kind = Kind.RELOAD if rules.reloadable else Kind.LOST
        _say(step, kind, stack, subject, f"is deleted with {rules.holds}", advice.steps_for(resource))


def _encrypted_by(template: Template, key: str) -> list[str]:
    """The resources with data that a key encrypts."""
    return [
        id
        for id, resource in resources(template).items()
        if id != key and rules_of(resource["Type"]).holds is not None and key in references(resource.get("Properties"))
    ]


def _goes_with_its_owner(id: str, rules: ResourceRules, old: Template, new: Template) -> bool:
    """Whether every resource that used this one is removed as well."""
    owners = [
        other
        for other, resource in resources(old).items()
        if resource["Type"] == rules.goes_with and id in references(resource)
    ]
    return bool(owners) and not any(owner in resources(new) for owner in owners)


# --- names ---


def _check_names(step: _Step, stack: str, old: Template, new: Template, created: set[str]) -> None:
    """CloudFormation makes what is new before it deletes what is old."""
    taken = {name: f"{id} of {other}" for other in step.stacks for id, name in _names(other, step.stacks[other])}
    taken |= dict.fromkeys(step.kept, "something that an earlier deployment left")
    for id in sorted(created):
        resource = resources(new)[id]
        rules = rules_of(resource["Type"])
        name = _name_of(stack, resource, rules)
        what = ""
        if name in taken and not _is_new(step, resource, rules.within, created):
            what = f"needs the name of {taken[name]}"
        elif rules.one_each is not None and not _is_new(step, resource, (rules.one_each,), created):
            rivals = [
                other
                for other, each in resources(old).items()
                if each["Type"] == resource["Type"]
                and text(property_of(each, rules.one_each)) == text(property_of(resource, rules.one_each))
            ]
            what = f"conflicts with {rivals[0]}, of the same {rules.one_each}" if rivals else ""
        if what:
            _say(step, Kind.REFUSED, stack, f"{id} ({resource['Type']})", what, advice.steps_for(resource))


def _is_new(step: _Step, resource: Resource, names: Iterable[str], created: set[str]) -> bool:
    """Whether properties refer to something that the deployment makes."""
    return _depends_on_changes(step, [property_of(resource, name) for name in names], created)


def _names(stack: str, template: Template) -> Iterator[tuple[str, Name]]:
    for id, resource in resources(template).items():
        name = _name_of(stack, resource, rules_of(resource["Type"]))
        if name is not None:
            yield id, name


def _name_of(stack: str, resource: Resource, rules: ResourceRules) -> Name | None:
    """A resource's name, where the template gives it one."""
    value = None if rules.name is None else property_of(resource, rules.name)
    if value is None:
        return None
    scope = f"{stack} {text([property_of(resource, each) for each in rules.within])}" if rules.within else ""
    return Name(resource["Type"], scope, text(value))
