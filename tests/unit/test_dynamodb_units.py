"""How the benchmark of AWS calls works out DynamoDB's units."""

from __future__ import annotations

import pytest

from benchmarks.dynamodb_units import item_bytes, read_units, write_units


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ({}, 0),
        ({"pk": {"S": "abc"}}, 5),
        ({"pk": {"S": "é"}}, 4),
        ({"n": {"N": "1"}}, 1 + 2),
        ({"n": {"N": "-12345"}}, 1 + 4),
        ({"n": {"N": "1700000000"}}, 1 + 2),  # zeros at the end take no room
        ({"b": {"BOOL": True}}, 2),
        ({"m": {"M": {"a": {"S": "xy"}}}}, 1 + 3 + 1 + 1 + 2),
        ({"l": {"L": [{"S": "xy"}, {"N": "7"}]}}, 1 + 3 + 1 + 2 + 1 + 2),
        ({"s": {"SS": ["ab", "c"]}}, 1 + 3),
    ],
)
def test_an_items_size_is_that_of_its_names_and_values(item, size):
    assert item_bytes(item) == size


def test_writes_are_billed_by_the_kib_and_reads_by_four():
    assert [write_units(size) for size in (0, 1, 1024, 1025, 4096)] == [1, 1, 1, 2, 4]
    assert [read_units(size, consistent=True) for size in (0, 4096, 4097)] == [1, 1, 2]
    assert read_units(4097, consistent=False) == 1.0
