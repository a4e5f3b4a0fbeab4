"""The layers of one stack: the library, and the vendor layers that its functions ask for."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Sequence
from pathlib import Path

from aws_cdk import AssetHashType
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.builds import ROOT, built
from stacks.bytecode import FUNCTION_FOLDER, LAYER_FOLDER, NOT_CODE, compiled, source_key
from stacks.wheels import built_layer

RUNTIME = lambda_.Runtime.PYTHON_3_13
ARCHITECTURE = lambda_.Architecture.ARM_64


class Layers(Construct):
    """Layer versions, made once a stack.

    Each stack has its own: a layer's version changes with its content, and CloudFormation refuses to change a value
    that another stack imports.
    """

    def __init__(self, scope: Construct, id: str, *, local: bool) -> None:
        """Make the library's layer.

        Args:
            scope: the stack.
            id: the construct's id.
            local: for the local cloud, whose functions run on the laptop's own processor and Python: vendor layers hold
                their requirements alone, the packages come from the project's environment, where the same versions
                are pinned, and there is no bytecode.
        """
        super().__init__(scope, id)
        self._local = local
        self._made: dict[str, lambda_.LayerVersion] = {}
        self._library = lambda_.LayerVersion(
            self,
            "Library",
            code=_code("library", ROOT / "layers" / "cicada", LAYER_FOLDER, local=local),
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[ARCHITECTURE],
            description="The Cicada library",
        )

    def of(self, *vendor: str) -> list[lambda_.ILayerVersion]:
        """The library's layer and the named vendor layers.

        Raises:
            WheelsUnavailable: a vendor layer could not be built.
        """
        return [self._library, *(self._vendor_layer(name) for name in vendor)]

    def _vendor_layer(self, name: str) -> lambda_.LayerVersion:
        if name not in self._made:
            self._made[name] = lambda_.LayerVersion(
                self,
                f"Vendor{name.capitalize()}",
                code=_requirements(name) if self._local else _as_built(built_layer(name)),
                compatible_runtimes=[RUNTIME],
                compatible_architectures=[ARCHITECTURE],
                description=f"Third-party packages: layers/vendor/{name}/requirements.lock",
            )
        return self._made[name]


def function_code(folder: str, *, brings: Sequence[Path] = (), local: bool) -> lambda_.Code:
    """The code of a folder of ``lambdas/``, with bytecode unless it is for the local cloud.

    Args:
        folder: the folder's name.
        brings: further folders that lie beside the handler, under their own names.
        local: for the local cloud.
    """
    source = ROOT / "lambdas" / folder
    if brings:
        source = _with(source, brings)
    return _code(f"function_{folder}", source, FUNCTION_FOLDER, local=local)


def _with(source: Path, brings: Sequence[Path]) -> Path:
    """A copy of a function's folder that holds further folders."""

    def make(folder: Path) -> None:
        ignore = shutil.ignore_patterns(*(pattern.removeprefix("**/") for pattern in NOT_CODE))
        shutil.copytree(source, folder, ignore=ignore, dirs_exist_ok=True)
        for one in brings:
            shutil.copytree(one, folder / one.name, ignore=ignore)

    key = source_key(source, functools.reduce(lambda above, one: source_key(one, above + one.name), brings, ""))
    return built(f"source_{source.name}", key, make)


_compiled = functools.cache(compiled)
"""No source changes while the app is synthesised, and each stack has the library's layer: its files are read once."""


def _code(name: str, source: Path, seen_as: str, *, local: bool) -> lambda_.Code:
    folder = None if local else _compiled(name, source, seen_as)
    if folder is None:
        return lambda_.Code.from_asset(str(source), exclude=list(NOT_CODE))
    return _as_built(folder)


def _as_built(folder: Path) -> lambda_.Code:
    # The folder's name says what is in it: hashing 90 MB at each synthesis would say nothing more.
    return lambda_.Code.from_asset(str(folder), asset_hash=folder.name, asset_hash_type=AssetHashType.CUSTOM)


def _requirements(name: str) -> lambda_.Code:
    return lambda_.Code.from_asset(str(ROOT / "layers" / "vendor" / name), exclude=["*.lock"])
