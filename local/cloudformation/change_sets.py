"""Change sets that leave a stack as ``CreateStack`` would: with its exports, its outputs, and its failures told.

moto applies a change set to the resources alone: the outputs and exports that other stacks import stay unknown.
"""

from __future__ import annotations

import logging

from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.models import ChangeSet, CloudFormationBackend, Stack, cloudformation_backends

logger = logging.getLogger(__name__)


class Backend(CloudFormationBackend):
    """moto's CloudFormation, executing change sets whole."""

    def execute_change_set(self, change_set_name: str, stack_name: str | None = None) -> None:
        """Create or update the change set's stack.

        A failure is told as CloudFormation tells it, by the stack's events and status.

        Raises:
            ValidationError: there is no such change set.
        """
        # moto keeps the change sets of deleted stacks, under names that a later stack's may repeat.
        living = [one for one in self.change_sets.values() if one.stack_id in self.stacks]
        change_set = self.change_sets.get(change_set_name) or next(
            (
                one
                for one in reversed(living)
                if one.change_set_name == change_set_name and stack_name in (None, one.stack_name, one.stack_id)
            ),
            None,
        )
        if change_set is None:
            raise ValidationError(change_set_name)
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

    def _create(self, stack: Stack, change_set: ChangeSet) -> None:
        stack.template = change_set.template
        stack._parse_template()
        stack.description = stack.template_dict.get("Description")
        stack.parameters = change_set.parameters
        stack.cross_stack_resources = self.exports
        stack.resource_map = stack._create_resource_map()
        stack.output_map = stack._create_output_map()
        self._validate_export_uniqueness(stack)
        stack.resource_map.create(stack.template_dict)

    def _update(self, stack: Stack, change_set: ChangeSet) -> None:
        before = [export.name for export in stack.exports]
        stack.resource_map.update(change_set.template_dict, change_set.parameters)
        stack.template = change_set.template
        stack._parse_template()
        stack.parameters = change_set.parameters
        stack.output_map = stack._create_output_map()
        for name in before:
            self.exports.pop(name, None)

    def _roll_back(self, stack: Stack, kind: str) -> None:
        """Take away what a failed creation has made; a failed update stays as far as it got."""
        if kind != "CREATE":
            stack.status = "UPDATE_ROLLBACK_COMPLETE"
            stack._add_stack_event(stack.status)
            return
        try:
            stack.resource_map.delete()
        except Exception:
            logger.exception("stack %s could not be rolled back", stack.name)
        stack.status = "ROLLBACK_COMPLETE"
        stack._add_stack_event(stack.status)


Backend.__module__ = CloudFormationBackend.__module__  # moto looks for the service's URLs beside its backend's module
cloudformation_backends.backend = Backend
