"""The layers of one stack: the library, and the vendor layers that its functions ask for."""

from __future__ import annotations

from aws_cdk import AssetHashType
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.wheels import ROOT, built_layer

RUNTIME = lambda_.Runtime.PYTHON_3_13
ARCHITECTURE = lambda_.Architecture.ARM_64

NOT_CODE = ["**/__pycache__", "**/*.pyc", "**/.DS_Store"]
"""What is left out of code assets, so that running the tests changes no asset."""


class Layers(Construct):
    """Layer versions, made once a stack.

    Each stack has its own: a layer's version changes with its content, and CloudFormation refuses to change a value
    that another stack imports.
    """

    def __init__(self, scope: Construct, id: str, *, vendor: bool) -> None:
        """Make the library's layer.

        Args:
            scope: the stack.
            id: the construct's id.
            vendor: whether vendor layers hold wheels. The local cloud's functions run on the laptop's own processor:
                its vendor layers hold their requirements alone, and the packages come from the project's environment,
                where the same versions are pinned.
        """
        super().__init__(scope, id)
        self._vendor = vendor
        self._made: dict[str, lambda_.LayerVersion] = {}
        self._library = lambda_.LayerVersion(
            self,
            "Library",
            code=lambda_.Code.from_asset(str(ROOT / "layers" / "cicada"), exclude=NOT_CODE),
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[ARCHITECTURE],
            description="The library: all behaviour",
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
                code=self._wheels(name) if self._vendor else _requirements(name),
                compatible_runtimes=[RUNTIME],
                compatible_architectures=[ARCHITECTURE],
                description=f"Third-party packages: layers/vendor/{name}/requirements.lock",
            )
        return self._made[name]

    @staticmethod
    def _wheels(name: str) -> lambda_.Code:
        folder = built_layer(name)
        # The folder's name says what is in it: hashing 90 MB at each synthesis would say nothing more.
        return lambda_.Code.from_asset(str(folder), asset_hash=folder.name, asset_hash_type=AssetHashType.CUSTOM)


def _requirements(name: str) -> lambda_.Code:
    return lambda_.Code.from_asset(str(ROOT / "layers" / "vendor" / name), exclude=["*.lock"])
