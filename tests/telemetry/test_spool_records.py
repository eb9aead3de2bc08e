"""The bytes of a segment: whatever is damaged costs itself only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holodeck.telemetry.spool.records import HEADER_SIZE, Damage, Kind, Record, pack, scan

PAYLOADS = st.lists(st.binary(max_size=200), min_size=1, max_size=8)


def records_of(data: bytes) -> list[bytes]:
    """The payloads of the sound records."""
    return [found.payload for found in scan(data) if isinstance(found, Record)]


@given(PAYLOADS)
def test_what_was_written_is_read(payloads: list[bytes]) -> None:
    """Any payloads come back in order, with nothing between them."""
    data = b"".join(pack(Kind.ENDED, payload) for payload in payloads)
    assert [found.payload for found in scan(data) if isinstance(found, Record)] == payloads
    assert not [found for found in scan(data) if isinstance(found, Damage)]


@given(PAYLOADS, st.data())
def test_a_torn_end_costs_the_last_record_only(payloads: list[bytes], data: st.DataObject) -> None:
    """Wherever the last record is cut, all others are read, and the rest is damage."""
    whole = [pack(Kind.ENDED, payload) for payload in payloads]
    cut = data.draw(st.integers(1, len(whole[-1]) - 1))
    torn = b"".join(whole[:-1]) + whole[-1][:cut]
    assert records_of(torn) == payloads[:-1]
    assert [found.length for found in scan(torn) if isinstance(found, Damage)] == [cut]


@given(PAYLOADS, st.data())
def test_a_flipped_byte_costs_one_record(payloads: list[bytes], data: st.DataObject) -> None:
    """Whichever byte is changed, in a header or a payload, every other record is still read."""
    whole = [pack(Kind.ENDED, payload) for payload in payloads]
    stream = bytearray(b"".join(whole))
    at = data.draw(st.integers(0, len(stream) - 1))
    stream[at] ^= data.draw(st.integers(1, 255))
    hit = next(i for i in range(len(whole)) if at < sum(map(len, whole[: i + 1])))
    assert records_of(bytes(stream)) == payloads[:hit] + payloads[hit + 1 :]


@given(st.binary(max_size=500))
def test_noise_is_no_record(noise: bytes) -> None:
    """Any bytes at all are read to their end without an error, and every byte belongs to something."""
    found = list(scan(noise + pack(Kind.STARTED, b"sound") + noise))
    lengths = [f.length if isinstance(f, Damage) else HEADER_SIZE + len(f.payload) for f in found]
    assert sum(lengths) == 2 * len(noise) + HEADER_SIZE + 5
    assert b"sound" in [f.payload for f in found if isinstance(f, Record)]
