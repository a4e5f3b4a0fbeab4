"""What one deployment would do to deployed stacks: what CloudFormation refuses, and what would be lost.

It compares the templates that are deployed with those that are about to be, and asks no service.
"""

from cicada_cli.stack_changes.step import Consequence, Deployed, Kind, consequences_of, deploy

__all__ = ["Consequence", "Deployed", "Kind", "consequences_of", "deploy"]
