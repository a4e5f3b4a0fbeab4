"""What a function of the local Lambda service can import."""

import pytest

from cicada_local.functions import FunctionConfig
from tests.wire.functions_cloud import Cloud, layer, zipped


def test_a_layers_modules_are_found_and_a_later_layer_wins(cloud: Cloud) -> None:
    cloud.deploy(
        "import fruit, only_first\ndef handler(event, context): return [fruit.NAME, only_first.NAME]",
        layers=(
            layer("first", {"python/fruit.py": "NAME = 'apple'", "python/only_first.py": "NAME = 'first'"}),
            layer("second", {"python/lib/python3.13/site-packages/fruit.py": "NAME = 'pear'"}),
        ),
    )
    assert cloud.invoke()["Payload"] == ["pear", "first"]


def test_the_functions_code_wins_over_layers_and_the_runtime(cloud: Cloud) -> None:
    cloud.deploy(
        "import fruit\ndef handler(event, context): return fruit.NAME",
        layers=(layer("fruit", {"python/fruit.py": "NAME = 'layer'"}),),
    )
    config = cloud.functions["f"]
    own = zipped(
        {"handler.py": "import fruit\ndef handler(event, context): return fruit.NAME", "fruit.py": "NAME='own'"}
    )
    cloud.functions["f"] = FunctionConfig("f", config.arn, config.handler, own, "own", config.layers, timeout_s=30.0)
    assert cloud.invoke()["Payload"] == "own"


def test_the_runtime_brings_boto3(cloud: Cloud) -> None:
    cloud.deploy("import boto3, botocore, urllib3\ndef handler(event, context): return boto3.__name__")
    assert cloud.invoke()["Payload"] == "boto3"


FOREIGN_ELF = b"\x7fELF" + bytes(14) + b"\xff\xff"


FOREIGN = layer("vendor", {"python/pydantic/__init__.py": "", "python/pydantic_core.abi3.so": FOREIGN_ELF})
"""Left out, so that only what it would bring comes from this Python's own packages."""


@pytest.mark.parametrize("module", ["aiohttp", "local.faults", "pytest"])
def test_beside_a_layer_that_is_left_out_only_its_modules_are_lent(cloud: Cloud, module: str) -> None:
    cloud.deploy(f"import {module}\ndef handler(event, context): return 'it could'", layers=(FOREIGN,))
    payload = cloud.invoke()["Payload"]
    assert payload["errorType"] == "Runtime.ImportModuleError"
    assert f"No module named '{module.split('.')[0]}'" in payload["errorMessage"]


def test_optional_imports_see_that_a_package_is_missing(cloud: Cloud) -> None:
    cloud.deploy(
        """
        try:
            import aiohttp
        except ImportError:
            aiohttp = None

        def handler(event, context):
            return aiohttp is None
        """,
        layers=(FOREIGN,),
    )
    assert cloud.invoke()["Payload"] is True


@pytest.mark.parametrize(("module", "comes"), [("pydantic", True), ("numpy", False)])
def test_a_layer_of_requirements_alone_lends_just_what_they_name(cloud: Cloud, module: str, comes: bool) -> None:
    cloud.deploy(
        f"import {module}\ndef handler(event, context): return {module}.__name__",
        layers=(
            layer(
                "base",
                {
                    "requirements.txt": "# every function's\npydantic==1\npydantic-core==1\ntyping-extensions==1\n"
                    "annotated-types==1\ntyping-inspection==1\n"
                },
            ),
        ),
    )
    answer = cloud.invoke()["Payload"]
    assert (answer == module) if comes else (answer["errorType"] == "Runtime.ImportModuleError")


def test_a_function_without_such_a_layer_may_import_whatever_is_installed(cloud: Cloud) -> None:
    cloud.deploy("import aiohttp\ndef handler(event, context): return aiohttp.__name__")
    assert cloud.invoke()["Payload"] == "aiohttp"


@pytest.mark.parametrize(
    "extension",
    [
        {"python/pydantic_core/_core.cpython-399-sparc-linux-gnu.so": b""},
        {"python/pydantic_core/_core.abi3.so": FOREIGN_ELF},
        {"python/pydantic.libs/libm.so": FOREIGN_ELF},
    ],
)
def test_a_layer_with_foreign_extensions_is_served_by_this_pythons_packages(
    cloud: Cloud, extension: dict[str, bytes]
) -> None:
    foreign = layer(
        "vendor",
        {
            **extension,
            "python/pydantic/__init__.py": "raise ImportError('the foreign layer was used')",
            "python/pydantic_core/__init__.py": "",
            "python/typing_extensions.py": "",
            "python/annotated_types/__init__.py": "",
            "python/typing_inspection/__init__.py": "",
        },
    )
    native = layer("own", {"python/fruit.py": "NAME = 'apple'"})
    cloud.deploy(
        """
        import fruit
        from pydantic import BaseModel

        class Question(BaseModel):
            text: str

        def handler(event, context):
            return [Question(text=event).text, fruit.NAME]
        """,
        layers=(foreign, native),
    )
    assert cloud.invoke("wer?")["Payload"] == ["wer?", "apple"]
