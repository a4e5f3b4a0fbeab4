"""What a search costs in fees of the engine, by a dated table that lies beside this module.

The shards take no fee a search: they are searched in the function's own memory. Embedding is priced apart, by
:mod:`cicada.models.prices`.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError

from cicada.corpus.passages import CorpusModel
from cicada_evaluation.errors import EvaluationRefused

_FLOAT_BYTES = 4
_HOURS = 24


class S3VectorsFees(CorpusModel):
    """A call, and the data that it goes through: the vectors of the whole index, with their keys and metadata."""

    usd_per_million_queries: float = Field(ge=0)
    usd_per_tb_processed: float = Field(ge=0)
    bytes_per_vector_besides: int = Field(ge=0, description="of key and filterable metadata")


class KendraFees(CorpusModel):
    """An index is paid by the hour, whether it is asked or not."""

    usd_per_hour: float = Field(ge=0)
    queries_per_day: int = Field(gt=0, description="that one capacity unit takes")


class Fees(CorpusModel):
    """All engines' fees."""

    date: str
    source: str
    s3vectors: S3VectorsFees
    kendra: KendraFees

    def usd_per_query(self, engine: str, *, vectors: int, dimensions: int) -> float:
        """What one search costs: with Kendra, its share of an index that is used to its full capacity.

        Args:
            engine: ``shards``, ``s3vectors`` or ``kendra``.
            vectors: in the index.
            dimensions: of each.
        """
        if engine == "s3vectors":
            vector_bytes = _FLOAT_BYTES * dimensions + self.s3vectors.bytes_per_vector_besides
            processed = vectors * vector_bytes / 1e12 * self.s3vectors.usd_per_tb_processed
            return self.s3vectors.usd_per_million_queries / 1e6 + processed
        if engine == "kendra":
            return self.kendra.usd_per_hour * _HOURS / self.kendra.queries_per_day
        return 0.0


def read_fees(path: Path | None = None) -> Fees:
    """Read a table of fees, by default the one that is delivered.

    Raises:
        EvaluationRefused: it cannot be read, or is none.
    """
    path = path or Path(__file__).with_name("fees.json")
    try:
        return Fees.model_validate_json(path.read_bytes())
    except OSError as error:
        raise EvaluationRefused(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise EvaluationRefused(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
