"""Clusters of rows, and the rotation that comes before them."""

from itertools import pairwise

import numpy as np
import pytest

from cicada.index.vectors.encoding import MAX_MEANS, MIN_MEAN_ROWS, cluster_rows, mean_rows
from cicada.index.vectors.part import rotate

MAX_CLUSTER_ROWS = MAX_MEANS * MIN_MEAN_ROWS


def _groups(count: int, dimensions: int, groups: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows around well separated centres, and which centre each is of."""
    generator = np.random.default_rng(seed)
    centres = 10 * generator.standard_normal((groups, dimensions), dtype=np.float32)
    group = generator.integers(0, groups, count)
    return centres[group] + generator.standard_normal((count, dimensions), dtype=np.float32), group


def test_every_row_is_in_exactly_one_cluster_and_none_is_empty():
    rows, _ = _groups(3_000, 16, 12)
    order, offsets = cluster_rows(rows, seed=0)
    assert sorted(order) == list(range(3_000))
    assert offsets[0] == 0
    assert offsets[-1] == 3_000
    assert (np.diff(offsets) > 0).all()


def test_rows_that_belong_together_lie_together():
    rows, group = _groups(4_096, 16, 4)
    order, offsets = cluster_rows(rows, seed=0)
    pure = [len(set(group[order[start:end]])) == 1 for start, end in pairwise(offsets)]
    assert np.mean(pure) >= 0.75


def test_equal_rows_are_cut_into_clusters_of_limited_size():
    _, offsets = cluster_rows(np.ones((3 * MAX_CLUSTER_ROWS, 4), dtype=np.float32), seed=0)
    assert np.diff(offsets).max() <= MAX_CLUSTER_ROWS


def test_a_crowded_place_among_scattered_rows_is_cut_too():
    crowd = np.zeros((MAX_CLUSTER_ROWS + 500, 8), dtype=np.float32)
    scattered, _ = _groups(2_000, 8, 50)
    order, offsets = cluster_rows(np.concatenate([scattered, crowd]), seed=0)
    assert np.diff(offsets).max() <= MAX_CLUSTER_ROWS
    assert len(set(order)) == len(scattered) + len(crowd)


def test_clusters_get_larger_where_there_is_no_room_for_more_centroids():
    assert mean_rows(1_000, 384) == MIN_MEAN_ROWS
    assert mean_rows(262_144, 384) == 256
    assert mean_rows(262_144, 1_024) > 512


def test_the_same_seed_gives_the_same_clusters():
    rows, _ = _groups(2_000, 8, 5)
    first, again = cluster_rows(rows, seed=3), cluster_rows(rows, seed=3)
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])


def test_no_rows_have_no_clusters():
    order, offsets = cluster_rows(np.zeros((0, 8), dtype=np.float32), seed=0)
    assert order.shape == (0,)
    assert offsets.tolist() == [0]


@pytest.mark.parametrize("dimensions", [1, 2, 3, 7, 64, 100, 384, 1024])
def test_a_rotation_keeps_every_dot_product(dimensions):
    rows = np.random.default_rng(1).standard_normal((20, dimensions), dtype=np.float32)
    rotated = rotate(rows)
    assert np.allclose(rotated @ rotated.T, rows @ rows.T, atol=1e-3)


def test_a_rotation_spreads_what_lies_in_one_coordinate_over_all():
    row = np.zeros((1, 384), dtype=np.float32)
    row[0, 5] = 1
    assert np.abs(rotate(row)).max() < 0.3


def test_a_rotation_is_the_same_for_one_row_and_for_many():
    rows = np.random.default_rng(2).standard_normal((5_000, 24), dtype=np.float32)
    assert np.allclose(rotate(rows)[4_321], rotate(rows[4_321:4_322])[0], atol=1e-5)


PINNED = [5.0, 3.5, 4.8284, 7.5, 5.0, 4.5, 1.1716, -11.5, -3.6569, -9.0711, 4.364, 9.7782]


def test_a_rotation_never_changes():
    rotated = rotate(np.arange(12, dtype=np.float32)[None])[0]
    assert rotated == pytest.approx(PINNED, abs=1e-4)
