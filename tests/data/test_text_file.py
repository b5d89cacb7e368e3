"""Bytes to text, strictly."""

import pytest

from launcher.data.encodings import likely_encoding
from launcher.data.reading import Reading
from launcher.data.text_file import read_text
from launcher.errors import BadValue, DataError

ENGLISH = "text,label\nIt’s “fine” – really,1\ncafé, naïve,0\n"
CHINESE = "text,label\n今天天气很好，我们去公园散步吧,1\n再见,0\n"


def refused(path, match: str) -> DataError:
    with pytest.raises(DataError, match=match) as error:
        read_text(path)
    assert all(problem.where and problem.right and problem.type for problem in error.value.problems)
    return error.value


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_utf8_is_read_with_and_without_a_byte_order_mark(write, mark):
    decoded = read_text(write("a.csv", mark + ENGLISH.encode()))
    assert (decoded.whole(), decoded.notices) == (ENGLISH, ())


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [(ENGLISH, "cp1252", "It’s “fine” – really,1"), (CHINESE, "gb18030", "今天天气很好，我们去公园散步吧,1")],
)
def test_b030_bytes_that_prove_another_encoding_are_read_as_it_and_said(write, text, encoding, shown):
    decoded = read_text(write("a.csv", text.encode(encoding)))
    assert decoded.whole() == text
    assert decoded.notices == (
        f"a.csv: not UTF-8; read as {encoding} (line 2: {shown}); data.encoding=NAME reads it as another",
    )


@pytest.mark.parametrize(
    ("data", "doubt"),
    [
        ("ä\x81,1\n".encode("latin-1"), "cp1252 has no letters for"),
        ("Привет, как дела? Хорошо\n".encode("cp1251"), "accented ones|rare ones|does not fit"),
        ("Ελληνικά κείμενα εδώ\n".encode("cp1253"), "accented ones|rare ones|no letters for|does not fit"),
        ("안녕하세요 오늘 날씨가 아주 좋습니다 우리 같이 공원에 가요 나는 학교\n".encode("euc_kr"), "Korean"),
        ("これはテストです。今日はいい天気ですね\n".encode("euc_jp"), "Japanese"),
        ("It’s “fine” – café, naïve ".encode() + b"caf\xe9\n", "it is damaged"),
    ],
)
def test_bytes_that_prove_nothing_are_refused_with_byte_line_and_doubt(write, data, doubt):
    path = write("a.csv", b"a\n" + data)
    message = str(refused(path, doubt))
    assert f"{path}:" in message and "byte" in message and "iconv -f" in message


@pytest.mark.parametrize("size", [1, 2, 3, 50])
@pytest.mark.parametrize(
    "data",
    [
        ENGLISH.encode("cp1252") * 3,
        CHINESE.encode("gb18030") * 3,
        "今天天气很好\n再见\n".encode("gb18030"),
        CHINESE.encode() + b"\xff" + CHINESE.encode(),
        b"\xef\xbb\xbf" + ENGLISH.encode() + b"\xe9",
        CHINESE.encode("gb18030") + b"\x81",
        "Привет, как дела? Хорошо\n".encode("cp1251"),
        "안녕하세요 오늘 날씨가 아주 좋습니다 우리 같이 공원에 가요 나는 학교\n".encode("euc_kr"),
        b"a\r\xe9\x81t",
    ],
    ids=range(9),
)
def test_what_is_found_does_not_depend_on_the_pieces_of_a_file(write, monkeypatch, data, size):
    def told(path):
        try:
            found = read_text(path)
        except DataError as error:
            return error.problems
        return found.whole(), found.notices

    path = write("a.csv", data)
    at_once = told(path)
    monkeypatch.setattr("launcher.data.text_file.HELD_BYTES", 0)
    monkeypatch.setattr("launcher.data.compression._PIECE_BYTES", size)
    assert told(path) == at_once


def test_a_file_without_the_byte_order_mark_that_its_encoding_begins_with_is_refused(write, monkeypatch):
    path, reading = write("a.csv", ENGLISH.encode("utf-16-le")), Reading(encoding="utf-16")
    assert read_text(path, reading).whole() == ENGLISH  # short: as Python takes it
    monkeypatch.setattr("launcher.data.text_file.HELD_BYTES", 0)
    with pytest.raises(DataError, match="does not fit data.encoding: utf-16"):
        read_text(path, reading)
    assert read_text(path, Reading(encoding="utf-16-le")).whole() == ENGLISH


def test_byte_order_mark_is_a_promise(write):
    refused(write("a.csv", b"\xef\xbb\xbf" + ENGLISH.encode("cp1252")), "mark says UTF-8")


def test_encoding_that_the_recipe_names_is_taken(write):
    text = "Привет\n"
    assert read_text(write("a.csv", text.encode("cp1251")), Reading(encoding="cp1251")).whole() == text
    with pytest.raises(DataError, match="does not fit data.encoding: ascii"):
        read_text(write("b.csv", text.encode()), Reading(encoding="ascii"))
    with pytest.raises(BadValue, match="unknown encoding 'utf-9'"):
        read_text(write("c.csv", text), Reading(encoding="utf-9"))


def test_the_wrong_line_is_shown_as_it_would_read(write):
    assert "caf\xe9" in str(refused(write("a.csv", "é é é\n".encode() + b"caf\xe9"), "cp1252"))


def test_offset_counts_a_byte_order_mark(write):
    refused(write("a.csv", b"\xef\xbb\xbfab\xff"), r"byte 5 \(0xff\)")


def test_offset_is_in_the_millions_where_it_is(write):
    refused(write("a.csv", b"a" * 1_000_000 + b"\n\xe9\x81t"), r"a.csv:2  byte 1,000,001")


def test_likely_encoding_of_text_that_is_mostly_ascii():
    assert likely_encoding(("word " * 1000 + "é").encode("cp1252")) == "cp1252"
    assert likely_encoding(("word " * 1000 + "中文").encode("gb18030")) == "gb18030"


@pytest.mark.parametrize(
    ("start", "kind"),
    [(b"\x1f\x8b\x08", "gzip"), (b"(\xb5/\xfd", "zstd"), (b"PK\x03\x04", "zip"), (b"PAR1", "parquet")],
)
def test_compressed_and_binary_files_are_named_as_such(write, start, kind):
    refused(write("a.csv", start + b"\0\1"), kind)


def test_utf16_is_named_and_the_line_to_type_recodes_it(write):
    path = write("a.csv", ENGLISH.encode("utf-16"))
    assert "iconv -f utf-16 -t utf-8" in str(refused(path, "utf-16-le"))
    refused(write("b.csv", ENGLISH.encode("utf-16-le")), "zero bytes")


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
def test_the_encoding_to_type_reads_utf16_without_a_mark(write, name):
    path = write("a.csv", ENGLISH.encode(name))
    assert f"data.encoding={name}," in str(refused(path, "zero bytes"))
    assert read_text(path, Reading(encoding=name)).whole() == ENGLISH


def test_bytes_that_no_text_holds_are_told_as_binary(write):
    refused(write("a.csv", bytes(range(1, 256)) * 9), "the file is binary")


def test_a_zero_byte_in_a_text_is_told_with_its_line(write):
    message = str(refused(write("a.csv", ENGLISH.encode() * 9 + b"a\0b,1\n"), "byte .* is zero"))
    assert "a.csv:28  " in message and "tr -d '\\000'" in message


@pytest.mark.parametrize("ending", [b"", "café\n".encode("cp1252")])
@pytest.mark.parametrize("held_bytes", [0, 2**23])
def test_a_zero_byte_far_behind_is_told_in_files_of_any_size(write, monkeypatch, held_bytes, ending):
    monkeypatch.setattr("launcher.data.text_file.HELD_BYTES", held_bytes)
    path = write("a.csv", b"text,label\n" + b"good,1\n" * 2000 + b"a\0b,1\n" + ending)
    message = str(refused(path, "byte 14,012 is zero"))
    assert "a.csv:2002  " in message


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b" \n\n"])
def test_empty_file_is_refused(write, content):
    refused(write("a.csv", content), "the file is empty")


def test_missing_file_names_the_nearest_beside_it(write):
    there = write("train.csv", "x")
    assert f"data.train_file={there}" in str(refused(there.with_name("trian.csv"), "no such file"))


def test_missing_file_with_a_known_source_says_where_to_get_it(tmp_path):
    with pytest.raises(DataError, match="the file from https://example.org"):
        read_text(tmp_path / "a.csv", Reading(source="https://example.org"))


def test_folder_is_refused_with_the_files_in_it(write):
    path = write("train.csv", "x").parent
    assert "train.csv" in str(refused(path, "this is a folder"))


def test_missing_evaluation_file_names_its_own_key(tmp_path):
    with pytest.raises(DataError, match="data.eval_file=FILE"):
        read_text(tmp_path / "nowhere" / "a.csv", Reading(key="data.eval_file"))
