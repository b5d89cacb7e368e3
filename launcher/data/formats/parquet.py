"""parquet: typed columns, read by pyarrow a thousand rows at a time. Records have numbers, not lines."""

from pathlib import Path
from typing import Any

from launcher.data.arrow import load_package, table_of
from launcher.data.format import FORMATS, Format
from launcher.data.reading import DEFAULT, Reading
from launcher.data.table import Table
from launcher.errors import DataError, Problem

_ROWS_AT_ONCE = 1024


def load_parquet(path: Path, reading: Reading = DEFAULT) -> Table:
    """All rows. Raises DataError for what is no parquet file, is damaged, or holds no rows' types."""
    pyarrow, parquet = load_package("pyarrow", path), load_package("pyarrow.parquet", path)
    try:
        with path.open("rb") as file:
            opened: Any = parquet.ParquetFile(file)
            return table_of(opened.iter_batches(_ROWS_AT_ONCE), opened.schema_arrow.names, path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(
            Problem(
                where=str(path),
                what=f"this is no whole parquet file: {str(error).splitlines()[0][:200]}",
                right="a parquet file as pyarrow, pandas or datasets write it",
                type=f"fetch {path.name} again, or {reading.key}=FILE",
            )
        ) from None


FORMATS.register(
    "parquet",
    Format(
        name="parquet",
        summary="typed columns (Apache Parquet)",
        suffixes=(".parquet", ".pq"),
        load=load_parquet,
    ),
)
