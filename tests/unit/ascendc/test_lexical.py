"""Encoding, comments, continued lines, attributes and brackets: read as the compiler does, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mc2proof.protocol.ascendc import load_sources
from mc2proof.protocol.ascendc.macros import Macros
from mc2proof.protocol.ascendc.prepass import prepare
from mc2proof.protocol.errors import Mc2proofError, SourceError, UnsupportedError
from mc2proof.protocol.program import Protocol

LoadText = Callable[..., Protocol]
Lower = Callable[..., list[str]]

HEAD = "[[bisheng::core_ratio(1, 1)]] __global__ __aicore__ void k(GM_ADDR heap, Tiling tiling) {\n"


def prepared(text: str) -> str:
    return prepare(text.encode(), "k.h", Macros()).text.decode()


# --- characters ---------------------------------------------------------------------------------


def test_a_byte_order_mark_is_skipped() -> None:
    result = prepare(b"\xef\xbb\xbf#define D 4\nint a;", "k.h", Macros()).text
    assert result.split() == [b"int", b"a;"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"\xff\xfe", "1: the file is UTF-16"),
        ("int a;".encode("utf-16"), "1: the file is UTF-16"),
        ("int a;\n// é".encode("latin-1") + b"\n", "2: the file is not UTF-8 (byte 0xe9)"),
        ("// 数".encode()[:-1], "1: the file ends inside a UTF-8 character"),
        (b"int a;\n// b\rint c;\n", "2: a carriage return inside a line"),
        (b"int\0a;", "1: a NUL byte"),
        (b'auto a = "b;\n', "1: string without end"),
    ],
)
def test_what_is_no_text(source: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "k.h"
    path.write_bytes(source)
    with pytest.raises(SourceError) as error:
        load_sources([path])
    assert f"{path}:{message}" in str(error.value)


@pytest.mark.parametrize("end", ["\\\n", "\\ \t\n", "\\\r\n"])
def test_a_line_comment_goes_on_after_a_backslash(end: str) -> None:
    assert prepared(f"int a; // note {end}int b;\nint c;").split() == ["int", "a;", "int", "c;"]
    assert "int b" in prepared("int a; // note \\ x\nint b;")


def test_directives_go_on_after_a_backslash_and_in_a_comment() -> None:
    assert prepared("#define A \\ \n int a;\nint b;").split() == ["int", "b;"]
    assert prepared("#define A /* one\ntwo */ int a;\nint b;").split() == ["int", "b;"]
    assert prepared("int a; /* one\n*/ int b;").split() == ["int", "a;", "int", "b;"]
    assert "int b" in prepared("#define A \\ // no continuation\nint b;")


@pytest.mark.parametrize("text", ["int a\\\nb;", "int a; /\\\n/ int b;", "a &\\\n& b;", "#define AB\\\nC"])
def test_a_token_on_two_lines_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedError, match=r"^k\.h:1: .*a token that continues"):
        prepared(text)


def test_what_looks_like_a_directive_in_a_raw_string_is_none() -> None:
    assert "int b" in prepared('auto a = R"(\n#if 0\n)"; int b;')


# --- words and attributes -----------------------------------------------------------------------


def test_functions_with_underscores_are_called(lower: Lower) -> None:
    before = "inline void __late_wait(uint32_t x) { aclshmem_barrier_all(); }\n"
    assert lower("__late_wait(0);", before) == ["aclshmem_barrier_all"]


@pytest.mark.parametrize(
    "body", ["__unknown(n);", "__builtin_trap();", "unsigned __int128 x = n; x = x << 40;"]
)
def test_unknown_words_stay_and_are_refused(lower: Lower, body: str) -> None:
    with pytest.raises(UnsupportedError, match=r"kernel\.h:"):
        lower(body)


def test_builtin_expect_means_its_first_argument(lower: Lower) -> None:
    (line, inner) = lower("if (__builtin_expect(n > 3, 1)) { CrossCoreSetFlag<2, PIPE_MTE3>(1); }")
    assert "n > 3" in line
    assert inner == "  set MTE3 1"
    with pytest.raises(UnsupportedError, match="__builtin_expect"):
        lower("if (__builtin_expect(n > 3, n++)) { aclshmem_barrier_all(); }")


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("[[gnu::cleanup(f)]] int a;", "gnu::cleanup(f)"),
        ("void f() { __attribute__((cleanup(g))) int a; }", "cleanup(g)"),
        ("[[bisheng::other]] void f() {}", "bisheng::other"),
        ("__attribute__((always_inline, alias(h))) void f();", "alias(h)"),
    ],
)
def test_attributes_that_may_change_the_meaning(text: str, attribute: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        prepared(text)
    assert f"k.h:1: unsupported: attribute {attribute}" in str(error.value)


@pytest.mark.parametrize("ratio", ["[[bisheng::core_ratio(1, %s)]]", "__mix__(1, %s)"])
def test_core_ratios_are_evaluated_or_refused(load_text: LoadText, ratio: str) -> None:
    text = "#define TWO (2)\n" + ratio + " __global__ void k(GM_ADDR heap) {}\n"
    assert load_text(text % "TWO").vectors_per_cube == 2
    assert load_text(text % "2").vectors_per_cube == 2
    for unknown in ("RATIO", "1 + 1", "010", "TWO * 1"):
        with pytest.raises(UnsupportedError, match=r"kernel\.h:2: unsupported: a core ratio"):
            load_text(text % unknown)


@pytest.mark.parametrize(
    "text",
    [
        "[ [bisheng::core_ratio(1, 2)] ] __global__ void k(GM_ADDR heap) {}",
        "__attribute__((core_ratio(1, 2))) __global__ void k(GM_ADDR heap) {}",
        "[[bisheng::core_ratio(1, 2)]] __global__ void k(GM_ADDR p);\n__global__ void k(GM_ADDR heap) {}",
        "__mix__(1, 2) __cube__ __global__ void k(GM_ADDR heap) {}",
    ],
)
def test_no_core_ratio_is_overlooked(load_text: LoadText, text: str) -> None:
    with pytest.raises(Mc2proofError, match=r"kernel\.h:1: .*(core.ratio|attribute)"):
        load_text(text)


def test_unknown_role_macros_are_named(load_text: LoadText) -> None:
    with pytest.raises(UnsupportedError, match=r"kernel\.h:3: unsupported: macro ASCEND_IS_NOT_AIC"):
        load_text(HEAD + "\nif ASCEND_IS_NOT_AIC {\naclshmem_barrier_all(); }\n}\n")


# --- syntax errors ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "void f() {\n  if (a < b {\n  g();\n  }\n}\n",
            "2: syntax error: `(` is not closed before `}` in line 5",
        ),
        ("void f() {\n  g(a));\n}\n", "2: syntax error: `)` closes nothing"),
        ("void f() {\n}\n}\n", "3: syntax error: `}` closes nothing"),
        ("namespace a {\nvoid f() {\n", "2: syntax error: `{` is never closed"),
    ],
)
def test_brackets_must_match(text: str, message: str) -> None:
    with pytest.raises(SourceError) as error:
        prepared(text)
    assert str(error.value) == f"k.h:{message}"


def test_brackets_in_strings_and_inactive_text_do_not_count() -> None:
    prepared("#if 0\nvoid f() {\n#endif\nauto a = \"{\"; char b = '(', c = u8'}';")


@pytest.mark.parametrize("fault", ["n = 3 +;", "int = 5;", "else { n = 1; }", "n = = 2;"])
def test_a_broken_member_body_is_a_syntax_error(load_text: LoadText, fault: str) -> None:
    text = (
        "template <typename T> class C {\npublic:\n  void F(uint32_t n);\n};\n"
        "template <typename T> void C<T>::F(uint32_t n) {\n"
        f"  {fault}\n}}\n{HEAD}C<half> c;\nc.F(1);\n}}\n"
    )
    with pytest.raises(SourceError, match=r"kernel\.h:6: syntax error"):
        load_text(text)


def test_without_an_entry_the_syntax_error_is_named(load_text: LoadText) -> None:
    with pytest.raises(SourceError, match=r"part\.h:2: syntax error"):
        load_text('#include "part.h"\n', others={"part.h": "void f() {\n  int a = ;\n}\n"})


def test_an_entry_that_is_nearly_right(load_text: LoadText) -> None:
    with pytest.raises(SourceError, match=r"no __global__ function Al; .*did you mean All\?"):
        load_text("__global__ void All(GM_ADDR p) {}\n", entry="Al")


# --- several files ------------------------------------------------------------------------------


def load(tmp_path: Path, order: list[str], **files: str) -> Protocol:
    for name, text in files.items():
        (tmp_path / f"{name}.h").write_text(text)
    return load_sources([tmp_path / f"{name}.h" for name in order])[0]


KERNEL = HEAD + "CrossCoreSetFlag<2, PIPE_MTE3>(F());\n}\n"


def test_a_given_file_is_read_where_another_includes_it(tmp_path: Path) -> None:
    part = "#pragma once\n#ifdef MODE\nuint32_t F() { return N; }\n#else\n#error no mode\n#endif\n"
    kernel = '#define MODE\n#define N 2\n#include "part.h"\n' + KERNEL
    for order in (["part", "kernel"], ["kernel", "part"], ["kernel"]):
        assert load(tmp_path, order, part=part, kernel=kernel).name == "k"


def test_a_macro_before_an_include_renames_in_it(tmp_path: Path) -> None:
    part = "#pragma once\nuint32_t G() { return 2; }\nuint32_t F() { return G(); }\n"
    kernel = '#define G H\n#include "part.h"\n' + KERNEL
    with pytest.raises(UnsupportedError, match=r"part\.h:2: unsupported: macro G"):
        load(tmp_path, ["part", "kernel"], part=part, kernel=kernel)


def test_a_macro_of_a_file_that_nobody_includes_is_in_doubt(tmp_path: Path) -> None:
    config = "#define BASE 0\n"
    kernel = "constexpr uint32_t BASE2 = 1;\nuint32_t F() { return BASE2; }\n" + KERNEL
    assert load(tmp_path, ["kernel", "config"], config=config, kernel=kernel).name == "k"
    with pytest.raises(UnsupportedError, match=r"kernel\.h:\d: unsupported: macro BASE of .*config\.h:1"):
        load(tmp_path, ["kernel", "config"], config=config, kernel=kernel.replace("BASE2", "BASE"))


def test_two_kernels_must_read_their_common_header_alike(tmp_path: Path) -> None:
    part = "#pragma once\nuint32_t F() { return N; }\n"
    one = '#define N 1\n#include "part.h"\n' + KERNEL
    two = '#define N 2\n#include "part.h"\n' + KERNEL.replace("void k", "void k2")
    with pytest.raises(UnsupportedError, match=r"two\.h:2: .*part\.h reads differently"):
        load(tmp_path, ["one", "two"], part=part, one=one, two=two)
    assert load(tmp_path, ["one", "two"], part=part, one=one, two=two.replace("N 2", "N 1")).name == "k"
