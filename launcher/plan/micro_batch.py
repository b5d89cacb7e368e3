"""The micro batches that keep a global batch."""

# Rows at once beyond which more only takes memory: the card is busy long before.
MOST_ROWS = 128


def micro_batches(rows_per_rank: int, most: int = MOST_ROWS) -> list[int]:
    """The divisors of a rank's rows up to `most`, largest first."""
    return [size for size in range(min(rows_per_rank, most), 0, -1) if rows_per_rank % size == 0]
