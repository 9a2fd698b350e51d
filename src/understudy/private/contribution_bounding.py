"""Contribution bounding for user-level privacy: at most so many of each person's rows are summed (proofs/units.md).

Which rows are kept is a deterministic choice by hash (bottom-k sampling), the same on every machine and in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.arrays import Integers
from understudy.private.sums import Work
from understudy.schema import Schema
from understudy.schema.columns import UNLISTED
from understudy.schema.encode import encode_batch, encode_ids

Hashes = npt.NDArray[np.uint64]

HELD_CELLS = 2**25
"""Cells of encoded rows that are held at a time; a larger table is read in several passes."""

MOST_PASSES = 2**12
"""Groups of people are halved no further than to this many, which bounds the passes over a source."""

# Constants of SplitMix64: its increment, 2^64 divided by the golden ratio, and the two multipliers of its finaliser.
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def kept_rows(open_batches: Callable[[], Iterable[pa.RecordBatch]], work: Work) -> Iterator[Integers]:
    """Codes of the rows that count, person by person, in a few large pieces.

    People fall into groups by a hash of their ids. A group is read whole, wherever its rows lie; if it
    proves too large to hold, it is halved, and the other half is left for another pass.

    Guarantee:
        Which rows of a person count follows from that person's rows alone, whatever the order or
        the split of the table; there are at most ``max_rows`` of them. Rows without an id never count
        (proofs/units.md).
    """
    schema = work.layout.schema
    groups = [(0, 1)]
    while groups:
        residue, modulus = groups.pop()
        held, cells = [], 0
        for batch in open_batches():
            people = batch_of_people(schema, batch)
            held.append(people.only(residue, modulus))
            cells += held[-1].codes.size
            while cells > HELD_CELLS and modulus < MOST_PASSES:
                groups.append((residue + modulus, 2 * modulus))
                modulus *= 2
                held = [each.only(residue, modulus) for each in held]
                cells = sum(each.codes.size for each in held)
        yield chosen_codes(held, schema)


class People:
    """Some rows as codes, with the id of each row's person."""

    def __init__(self, ids: pa.Array, codes: Integers) -> None:
        self.ids, self.codes = ids, codes  # (num_rows,), (num_rows, num_used)

    def groups(self) -> Integers:
        """A number below 2^32 for each row that all rows of its person share."""
        coded = self.ids.dictionary_encode()
        numbers = np.asarray([crc32(name) for name in coded.dictionary.to_pylist()], dtype=np.int64)
        found: Integers = numbers[coded.indices.to_numpy(zero_copy_only=False)]
        return found

    def only(self, residue: int, modulus: int) -> People:
        """The rows of those people whose number leaves this residue."""
        if modulus == 1:
            return self
        own = np.flatnonzero(self.groups() % modulus == residue)
        return People(self.ids.take(pa.array(own)), self.codes[own])


def batch_of_people(schema: Schema, batch: pa.RecordBatch) -> People:
    """The rows of a batch that belong to somebody."""
    ids = encode_ids(schema.privacy.unit, batch.column(schema.privacy.unit))
    known = np.flatnonzero(ids.is_valid().to_numpy(zero_copy_only=False))
    return People(ids.take(pa.array(known)), encode_batch(schema, batch, unlisted=UNLISTED)[known])


def chosen_codes(held: list[People], schema: Schema) -> Integers:
    """Codes of the rows that count, of people whose rows are all there."""
    if not held:
        return np.empty((0, len(schema.used)), dtype=np.int64)
    ids = pa.chunked_array([each.ids for each in held], pa.binary()).combine_chunks()
    persons = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    codes = np.concatenate([each.codes for each in held])
    return codes[choose(persons, codes, schema.privacy.max_rows)]


def choose(persons: Integers, codes: Integers, max_rows: int) -> Integers:
    """Which rows count: for each person those whose hashes are lowest.

    A hash is of a row's codes and of how many equal rows of the person come before it, so that of many
    equal rows as large a part is kept as of others.

    Guarantee:
        The codes of a person's chosen rows are a function of the multiset of that person's codes (proofs/units.md).
        # (num_rows,), (num_rows, num_used) -> (num_chosen,)
    """
    hashes = hashes_of(codes)
    order = np.lexsort((hashes, persons))
    if _has_collisions(persons[order], hashes[order], codes[order]):
        order = np.lexsort((*codes.T, hashes, persons))
    owners, rows = persons[order], codes[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (owners[1:] != owners[:-1]) | (rows[1:] != rows[:-1]).any(axis=1)
    earlier = _since_start(is_new).astype(np.uint64)
    # The sort is stable: equal hashes of one person stay in the order of hashes and codes.
    ranked = np.lexsort((_mixed(hashes[order] + earlier * np.uint64(_GOLDEN)), owners))
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = owners[ranked][1:] != owners[ranked][:-1]
    return order[ranked[_since_start(is_first) < max_rows]]


def hashes_of(codes: Integers) -> Hashes:
    """A hash of each row of codes: the same on every machine and in every pass."""
    found: Hashes = np.zeros(len(codes), dtype=np.uint64)
    for column in codes.T:
        found = _mixed(found + column.astype(np.uint64) + np.uint64(_GOLDEN))
    return found


def _mixed(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014), a bijection of 64-bit words."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(_FIRST)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(_SECOND)
    return values ^ (values >> np.uint64(31))


def _since_start(starts: npt.NDArray[np.bool_]) -> Integers:
    """How far each place is from the last start."""
    places = np.arange(len(starts))
    return places - np.maximum.accumulate(np.where(starts, places, 0))


def _has_collisions(persons: Integers, hashes: Hashes, codes: Integers) -> bool:
    """Whether different rows of one person have the same hash."""
    same = np.flatnonzero((persons[1:] == persons[:-1]) & (hashes[1:] == hashes[:-1]))
    return bool((codes[same] != codes[same + 1]).any())
