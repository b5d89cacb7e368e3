"""Bytes to text, strictly."""

import pytest

from launcher.data.text_file import likely_encoding, read_text
from launcher.errors import DataError

ENGLISH = "text,label\nIt’s “fine” – really,1\ncafé, naïve,0\n"
CHINESE = "text,label\n今天天气很好，我们去公园散步吧,1\n再见,0\n"


def refused(path, match: str) -> DataError:
    with pytest.raises(DataError, match=match) as error:
        read_text(path)
    assert all(problem.where and problem.right and problem.type for problem in error.value.problems)
    return error.value


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_utf8_is_read_with_and_without_a_byte_order_mark(write, mark):
    assert read_text(write("a.csv", mark + ENGLISH.encode())) == ENGLISH


@pytest.mark.parametrize(
    ("text", "encoding", "likely"),
    [(ENGLISH, "cp1252", "cp1252"), (CHINESE, "gb18030", "gb18030"), ("ä\x81,1\n", "latin-1", "latin-1")],
)
def test_other_encodings_are_named_with_byte_and_line(write, text, encoding, likely):
    data = text.encode(encoding)
    path = write("a.csv", data)
    offset = next(place for place, byte in enumerate(data) if byte >= 0x80)
    message = str(refused(path, f"byte {offset}"))
    assert f"{path}:{data[:offset].count(10) + 1}" in message
    assert f"iconv -f {likely} -t utf-8" in message


def test_the_wrong_line_is_shown_as_it_would_read(write):
    assert "It’s “fine” – really" in str(refused(write("a.csv", ENGLISH.encode("cp1252")), "cp1252"))


def test_offset_counts_a_byte_order_mark(write):
    refused(write("a.csv", b"\xef\xbb\xbfab\xff"), r"byte 5 \(0xff\)")


def test_offset_is_in_the_millions_where_it_is(write):
    refused(write("a.csv", b"a" * 1_000_000 + b"\n\xe9t"), r"a.csv:2  byte 1,000,001")


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


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b" \n\n"])
def test_empty_file_is_refused(write, content):
    refused(write("a.csv", content), "the file is empty")


def test_missing_file_names_the_nearest_beside_it(write):
    there = write("train.csv", "x")
    assert f"data.train_file={there}" in str(refused(there.with_name("trian.csv"), "no such file"))


def test_missing_file_with_a_known_source_says_where_to_get_it(tmp_path):
    with pytest.raises(DataError, match="the file from https://example.org"):
        read_text(tmp_path / "a.csv", source="https://example.org")


def test_folder_is_refused_with_the_files_in_it(write):
    path = write("train.csv", "x").parent
    assert "train.csv" in str(refused(path, "this is a folder"))


def test_missing_evaluation_file_names_its_own_key(tmp_path):
    with pytest.raises(DataError, match="data.eval_file=FILE"):
        read_text(tmp_path / "nowhere" / "a.csv", key="data.eval_file")
