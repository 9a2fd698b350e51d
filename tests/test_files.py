"""Reading what somebody else wrote: it ends soon, takes little, and nothing but regular files is opened."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from understudy import files
from understudy.errors import InputError, visible
from understudy.files import (
    DEEPEST,
    MOST_ENTRIES,
    has_file,
    names_in,
    parse_json,
    parse_tensors,
    read_file,
    refusing_damage,
)


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """A read that waits is a failure, not a hang."""
    signal.alarm(5)
    yield
    signal.alarm(0)


def odd_files(folder: Path) -> dict[str, Path]:
    """Everything that has a name and is no regular file."""
    os.mkfifo(folder / "pipe")
    (folder / "directory").mkdir()
    (folder / "real").write_bytes(b"x")
    (folder / "link").symlink_to(folder / "real")
    (folder / "endless").symlink_to("/dev/zero")
    (folder / "loop").symlink_to(folder / "loop")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(folder / "socket"))
    return {name: folder / name for name in ("pipe", "directory", "link", "endless", "loop", "socket")} | {
        "device": Path("/dev/zero")
    }


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    for name, path in odd_files(tmp_path).items():
        with pytest.raises(InputError):
            read_file(path, most=100)
        assert has_file(tmp_path, name) is False
    assert read_file(tmp_path / "real", most=1) == b"x"
    assert has_file(tmp_path, "real")


def test_a_name_that_a_person_gave_may_be_a_link_but_no_pipe_or_device(tmp_path: Path) -> None:
    odd = odd_files(tmp_path)
    assert read_file(odd["link"], most=1, follow=True) == b"x"
    for name in set(odd) - {"link"}:
        with pytest.raises(InputError):
            read_file(odd[name], most=100, follow=True)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**40)
    monkeypatch.setattr(files.os, "fdopen", None)  # its size is known before a byte is read
    with pytest.raises(InputError, match="larger than 1000 bytes"):
        read_file(tmp_path / "sparse", most=1000)


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "growing").write_bytes(b"x" * 11)
    sizes = os.stat_result((0o100644, 0, 0, 1, 0, 0, 5, 0, 0, 0))
    monkeypatch.setattr(files.os, "fstat", lambda handle: sizes)
    with pytest.raises(InputError, match="larger than 10 bytes"):
        read_file(tmp_path / "growing", most=10)


def test_a_directory_of_too_many_files_is_refused(tmp_path: Path) -> None:
    for number in range(MOST_ENTRIES):
        (tmp_path / str(number)).touch()
    assert len(names_in(tmp_path)) == MOST_ENTRIES
    (tmp_path / "one more").touch()
    with pytest.raises(InputError, match="more than"):
        names_in(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 900 + "]" * 900,
        '{"a":' * (DEEPEST + 1) + "1" + "}" * (DEEPEST + 1),
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        "[Infinity]",
        "[-Infinity]",
        "[1e400]",
        "1" * 41,
        "1" * 100_000,
        '"\\',
        "",
        "\xff",
    ],
)
def test_documents_without_bounds_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text.encode("latin-1"))


def test_other_documents_are_read_as_ever() -> None:
    deep = "[" * DEEPEST + "]" * DEEPEST
    words = json.dumps({"[[[{": '\\"]]]' + "[" * 1000, "n": [1, -2, 3.5e-300, True, None]})
    for text in (deep, words, '{"a": "\\\\", "b": "["}'):
        assert parse_json(text.encode()) == json.loads(text)


def test_numbers_are_no_larger_than_their_file() -> None:
    good = safetensors.numpy.save({"a": np.arange(3)})
    assert parse_tensors(good)["a"].tolist() == [0, 1, 2]
    claim = json.dumps({"a": {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8 * 10**12]}}).encode()
    for bad in (len(claim).to_bytes(8, "little") + claim, (2**62).to_bytes(8, "little") + b"{}", b"", good[:-1]):
        with pytest.raises(ValueError, match="numbers"):
            parse_tensors(bad)


@pytest.mark.parametrize(
    "name", ["\x1b[2Jx", "a\nrefused: b", "\u202etxt", "\udcff", "\u200b", "\x9b1m", "\r", "\u2028"]
)
def test_what_a_terminal_acts_on_is_escaped(name: str) -> None:
    shown = visible(f"'{name}'")
    assert shown.isprintable()
    assert "\\" in shown
    refusal = InputError(f"file '{name}'", f"holds {name}", f"Remove {name}")
    assert str(refusal).isprintable()
    assert all(part.isprintable() for part in (refusal.where, refusal.rule, refusal.remedy))


def test_words_of_other_languages_are_shown_as_they_are() -> None:
    for words in ("größe", "年齢", "القيمة", "naïve [bold]"):
        assert visible(words) == words


def test_a_call_with_arguments_that_do_not_fit_is_no_damage() -> None:
    @refusing_damage("release")
    def work(release: object, *, level: float = 0.05) -> None:
        raise TypeError("of the work")

    with pytest.raises(TypeError, match="unexpected keyword"):
        work(None, frob=1)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="not what this is done with"):
        work(None)


def test_a_space_that_keeps_a_number_with_its_unit_is_shown_as_a_space() -> None:
    assert visible("51\u00a0% of them") == "51 % of them"
    assert visible("a\u202eb") == "a\\u202eb"
