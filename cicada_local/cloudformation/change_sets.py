"""Change sets that leave a stack as ``CreateStack`` would: with its exports, its outputs, and its failures told; and
stacks that are protected against deletion.

moto applies a change set to the resources alone: the outputs and exports that other stacks import stay unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

from moto.cloudformation.exceptions import CloudFormationError, ValidationError
from moto.cloudformation.models import ChangeSet, CloudFormationBackend, Stack, cloudformation_backends
from moto.cloudformation.responses import CloudFormationResponse
from moto.core.responses import ActionResult, EmptyResult

from cicada_local.cloudformation.stack_outputs import resolve_stack_outputs

logger = logging.getLogger(__name__)


class ChangeSetNotFound(CloudFormationError):
    """No change set of that name belongs to that stack."""

    code = "ChangeSetNotFound"

    def __init__(self, name: str) -> None:
        super().__init__(f"ChangeSet [{name}] does not exist")


class ExportInUse(Exception):
    """An update removes an export that another stack imports."""


class Backend(CloudFormationBackend):
    """moto's CloudFormation, executing change sets whole."""

    def create_change_set(self, *args: Any, **kwargs: Any) -> tuple[str, str]:
        """Create one; a parameter that keeps its previous value keeps its name in the parameter store too."""
        if kwargs["change_set_type"] == "UPDATE":
            kwargs["parameters"] = _previous_names(self.get_stack(kwargs["stack_name"]), kwargs["parameters"])
        return super().create_change_set(*args, **kwargs)

    def change_set_of(self, name_or_id: str, stack: str | None) -> ChangeSet | None:
        """The newest change set of that name and stack; the stack by name or id.

        moto takes the newest of that name of any stack, deleted ones included, and the CDK gives all the same.
        """
        for change_set in reversed(list(self.change_sets.values())):
            if name_or_id == change_set.change_set_id:
                return change_set
            names_its_stack = stack in (None, change_set.stack_name, change_set.stack_id)
            if names_its_stack and name_or_id == change_set.change_set_name and change_set.stack_id in self.stacks:
                return change_set
        return None

    def execute_change_set(self, change_set_name: str, stack_name: str | None = None) -> None:
        """Create or update the change set's stack.

        A failure is told as CloudFormation tells it, by the stack's events and status.

        Raises:
            ChangeSetNotFound: there is none.
        """
        change_set = self.change_set_of(change_set_name, stack_name)
        if change_set is None:
            raise ChangeSetNotFound(change_set_name)
        stack = self.stacks[change_set.stack_id]
        kind = change_set.change_set_type
        stack._add_stack_event(f"{kind}_IN_PROGRESS", resource_status_reason="User Initiated")
        try:
            if kind == "CREATE":
                self._create(stack, change_set)
            else:
                self._update(stack, change_set)
        except Exception as error:
            logger.exception("stack %s failed", stack.name)
            stack._add_stack_event(f"{kind}_FAILED", resource_status_reason=f"{type(error).__name__}: {error}")
            self._roll_back(stack, kind)
            change_set.execution_status = "EXECUTE_FAILED"
            return
        for export in stack.exports:
            self.exports[export.name] = export
        change_set.execution_status = "EXECUTE_COMPLETE"
        stack._add_stack_event(f"{kind}_COMPLETE")
        stack.status = f"{kind}_COMPLETE"

    def delete_stack(self, name_or_stack_id: str) -> None:
        """Delete a stack.

        Raises:
            ValidationError: it is protected against that.
        """
        for stack in list(self.stacks.values()):
            if name_or_stack_id in (stack.name, stack.stack_id) and stack.enable_termination_protection:
                raise ValidationError(
                    message=f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
                )
        super().delete_stack(name_or_stack_id)

    def _create(self, stack: Stack, change_set: ChangeSet) -> None:
        resolved = self._resolved(change_set)
        stack.template = change_set.template
        stack.template_dict = resolved
        stack.description = stack.template_dict.get("Description")
        stack.parameters = change_set.parameters
        stack.cross_stack_resources = self.exports
        stack.resource_map = stack._create_resource_map()
        stack.output_map = stack._create_output_map()
        self._validate_export_uniqueness(stack)
        stack.resource_map.create(stack.template_dict)

    def _update(self, stack: Stack, change_set: ChangeSet) -> None:
        resolved = self._resolved(change_set)
        before = [export.name for export in stack.exports]
        self._keep_exports_in_use(stack, before, resolved)
        stack.resource_map.update(resolved, change_set.parameters)
        stack.template = change_set.template
        stack.template_dict = resolved
        stack.parameters = change_set.parameters
        stack.output_map = stack._create_output_map()
        for name in before:
            self.exports.pop(name, None)

    def _keep_exports_in_use(self, stack: Stack, before: list[str], template: dict[str, Any]) -> None:
        """Refuse an update that removes an export while another stack imports it."""
        outputs = template.get("Outputs", {}).values()
        remaining = [output["Export"]["Name"] for output in outputs if "Export" in output]
        others = [other for other in self.stacks.values() if other is not stack]
        for name in before:
            users = [other.name for other in others if name in _imported(other.template_dict)]
            if users and name not in remaining:
                raise ExportInUse(f"Export {name} cannot be deleted as it is in use by {', '.join(users)}")

    def _resolved(self, change_set: ChangeSet) -> dict[str, Any]:
        """The change set's template with the outputs of other stacks as they are now."""
        resolved: dict[str, Any] = resolve_stack_outputs(
            change_set.template_dict, stack_name=change_set.stack_name, region=self.region_name, read=self._outputs_of
        )
        return resolved

    def _outputs_of(self, name: str) -> Mapping[str, str] | None:
        for stack in self.stacks.values():
            if stack.name == name and stack.status.endswith("_COMPLETE") and stack.status != "ROLLBACK_COMPLETE":
                return {output.key: str(output.value) for output in stack.output_map.values() if output is not None}
        return None

    def _roll_back(self, stack: Stack, kind: str) -> None:
        """Take away what a failed creation has made; a failed update stays as far as it got."""
        if kind != "CREATE":
            stack.status = "UPDATE_ROLLBACK_COMPLETE"
            stack._add_stack_event(stack.status)
            return
        stack.template_dict["Outputs"] = {}  # moto would make anew what they refer to
        stack.output_map = stack._create_output_map()
        try:
            stack.resource_map.delete()
        except Exception:
            logger.exception("stack %s could not be rolled back", stack.name)
        stack.status = "ROLLBACK_COMPLETE"
        stack._add_stack_event(stack.status)


def _imported(node: Any) -> set[str]:
    """The exports that a template imports by their plain names."""
    if isinstance(node, list):
        return set().union(*map(_imported, node))
    if not isinstance(node, dict):
        return set()
    name = node.get("Fn::ImportValue")
    return {name} if isinstance(name, str) else set().union(*map(_imported, node.values()))


def _previous_names(stack: Stack, parameters: dict[str, str]) -> dict[str, str]:
    """Parameters of an update, in which moto gives the value of a stored parameter where its name belongs."""
    resolved = stack.resource_map.resolved_parameters
    declared = stack.template_dict.get("Parameters", {})
    kept: dict[str, str] = {}
    for key, value in parameters.items():
        stored = str(declared.get(key, {}).get("Type", "")).startswith("AWS::SSM::Parameter::")
        if not stored or value != resolved.get(key):
            kept[key] = value
        elif key in stack.parameters:
            kept[key] = stack.parameters[key]
    return kept


def _describe_change_set(self: CloudFormationResponse) -> ActionResult:
    name = self._get_param("ChangeSetName")
    change_set = cast(Backend, self.cloudformation_backend).change_set_of(name, self._get_param("StackName"))
    if change_set is None:
        raise ChangeSetNotFound(name)
    return ActionResult(change_set)


def _delete_change_set(self: CloudFormationResponse) -> EmptyResult:
    backend = cast(Backend, self.cloudformation_backend)
    change_set = backend.change_set_of(self._get_param("ChangeSetName"), self._get_param("StackName"))
    if change_set is not None:
        del backend.change_sets[change_set.change_set_id]
    return EmptyResult()


def _update_termination_protection(self: CloudFormationResponse) -> ActionResult:
    stack = self.cloudformation_backend.get_stack(self._get_param("StackName"))
    stack.enable_termination_protection = bool(self._get_bool_param("EnableTerminationProtection"))
    return ActionResult({"StackId": stack.stack_id})


_responses: Any = CloudFormationResponse
_responses.update_termination_protection = _update_termination_protection
_responses.describe_change_set = _describe_change_set
_responses.delete_change_set = _delete_change_set
Backend.__module__ = CloudFormationBackend.__module__  # moto looks for the service's URLs beside its backend's module
cloudformation_backends.backend = Backend
