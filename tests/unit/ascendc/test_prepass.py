"""The pre-pass keeps every offset and line, and leaves nothing that the grammar misreads."""

from __future__ import annotations

import pytest

from mc2proof.protocol.ascendc.parse import _parser
from mc2proof.protocol.ascendc.prepass import prepare
from mc2proof.protocol.ascendc.preprocess import Macros
from mc2proof.protocol.errors import SourceError, UnsupportedError


def prepared(text: str, **defines: str | None) -> str:
    return prepare(text.encode(), "k.h", Macros(given=defines)).text.decode()


@pytest.mark.parametrize(
    "text",
    [
        "__global__ __aicore__ void k(__gm__ uint8_t* p, __ubuf__ void *q) {}",
        "__global__ __schedmode__(1) __aicore__ void k() {}",
        "__attribute__((always_inline)) void f() {}",
        "[[bisheng::core_ratio(1, 2)]] void f() {}",
        "void f() { if ASCEND_IS_AIV { g(); } if ASCEND_IS_AIC { h(); } }",
        "void f() { if ASCEND_IS_AIV{ g(); } }",
        "void f() { if constexpr (ASCEND_IS_AIC) { g(); } }",
        "void f() { k<<<8, nullptr, stream>>>(a, b); }",
        '#include "a.h"\n#pragma once\n#define X 1\nint a = X;',
        "// a comment with __gm__ { (\nint a; /* and\n { another */ int b;",
        'const char* a = "__gm__ { // no comment"; int b;',
        'const char* a = R"x( " { )x"; int b;',
        "int a = 1'000'000; char c = '{'; int b;",
        "#define LONG(a) \\\n  { a\nint b;",
        "auto p = (GM_ADDR)(f(x)) + y * z - w;",
        "auto p = (A::B<T>)(f(x)) + y;",
        "int 数 = 1; // 注释 {\nint b;",
    ],
)
def test_offsets_stay_and_the_grammar_reads_it(text: str) -> None:
    result = prepare(text.encode(), "k.h", Macros()).text
    assert len(result) == len(text.encode())
    newlines = [i for i, byte in enumerate(text.encode()) if byte == 0x0A]
    assert [i for i, byte in enumerate(result) if byte == 0x0A] == newlines
    assert not _parser().parse(result).root_node.has_error


def test_entries_and_ratios_are_remembered_with_their_offsets() -> None:
    text = b"[[bisheng::core_ratio(1, 2)]]\n__global__ __aicore__ void k() {}\n__mix__(1, 1) void f();"
    result = prepare(text, "k.h", Macros())
    assert result.entries == (text.index(b"__global__"),)
    assert result.ratios == ((0, (1, 2)), (text.index(b"__mix__"), (1, 1)))


def test_words_in_comments_and_strings_are_no_entries() -> None:
    text = b'// __global__\nconst char* s = "__global__"; /* __global__ */'
    assert prepare(text, "k.h", Macros()).entries == ()


@pytest.mark.parametrize("op", ["+", "-", "&", "*", "/", "<<", "=="])
def test_casts_before_an_operator_are_written_as_functional_casts(op: str) -> None:
    assert prepared(f"x = (T)(f(a)) {op} y;") == f"x =  T (f(a)) {op} y;"


@pytest.mark.parametrize(
    "text",
    [
        "x = (T)(a).b;",  # a cast of (a).b
        "x = (T)(a)[1];",
        "x = (T)(a)->b;",
        "x = f(a)(b);",  # no casts at all
        "if (a) (b);",
        "x = sizeof(T);",
        "void f(int)(x);",
        "x = (uint32_t*)(a) + b;",  # the grammar reads those right
        "x = (unsigned long)(a) + b;",
    ],
)
def test_what_is_no_such_cast_stays(text: str) -> None:
    assert prepared(text) == text


def test_casts_in_braces_but_not_at_the_start_of_a_statement() -> None:
    assert prepared("T p{(A)(x) + y, (A)(z) - y};") == "T p{ A (x) + y,  A (z) - y};"
    assert prepared("f({(A)(x) + y});") == "f({ A (x) + y});"
    assert prepared("void f() { (A)(x); if (b) { (A)(x); } }") == "void f() { (A)(x); if (b) { (A)(x); } }"


def test_a_cast_of_a_cast() -> None:
    assert prepared("p = (uint64_t)(T)(a) + b;") == "p = (uint64_t) T (a) + b;"
    assert prepared("p = (S)(T)(a) + b;") == "p = (S) T (a) + b;"


@pytest.mark.parametrize(
    ("condition", "defines", "taken"),
    [
        ("#if X == 3", {"X": "3"}, True),
        ("#if X == 3 && Y", {"X": "4"}, False),
        ("#if defined(X) || Y", {"X": ""}, True),
        ("#if !defined X", {"X": None}, True),
        ("#if X", {"X": None}, False),
        ("#ifdef X", {"X": "1"}, True),
        ("#ifndef X", {"X": "1"}, False),
        ("#if (1 << 4) - 0x10 == 0", {}, True),
        ("#if X ? 2 > 1 : 0", {"X": "1"}, True),
        ("#if X >= 9 // comment", {"X": "Y", "Y": "10"}, True),
        ("#if 0", {}, False),
        ("#if -1 + 2 * 3 == 5 && ~0 == -1 && !0", {}, True),
    ],
)
def test_conditions(condition: str, defines: dict[str, str | None], taken: bool) -> None:
    result = prepared(f"{condition}\nint yes;\n#else\nint no;\n#endif\n", **defines)
    assert ("yes" in result, "no" in result) == (taken, not taken)
    assert "#" not in result


def test_elif_takes_the_first_that_holds() -> None:
    text = "#if A\nint a;\n#elif B\nint b;\n#elif C\nint c;\n#else\nint d;\n#endif"
    assert prepared(text, A="0", B="1", C="1").split() == ["int", "b;"]
    assert prepared(text, A="0", B="0", C="0").split() == ["int", "d;"]


def test_inactive_branches_may_hold_anything() -> None:
    text = '#if 0\n#error no\n#if UNKNOWN\n#include "a.h"\n#endif\n#define X 1\n#else\nint a;\n#endif'
    macros = Macros()
    assert prepare(text.encode(), "k.h", macros).text.split() == [b"int", b"a;"]
    assert macros.text("X") is None


def test_an_include_guard_is_no_question() -> None:
    assert "int a;" in prepared("#ifndef A_H\n#define A_H\nint a;\n#endif\n")


def test_an_undecided_condition_is_refused_at_its_line() -> None:
    with pytest.raises(UnsupportedError, match=r"^k\.h:2: .*#if X > 1.*branches differ"):
        prepared("int a;\n#if X > 1\nint b;\n#endif\n")


def test_an_undecided_condition_with_equal_branches_does_not_matter() -> None:
    text = '#if X\n#include <a.h>\n#else\n#include "missing.h"\n#endif\nint a;'
    assert prepared(text).split() == ["int", "a;"]
    assert prepared("#ifdef X\nint a;\n#else\nint  a;\n#endif").split() == ["int", "a;"]


@pytest.mark.parametrize("line", ["#define Y 1", "#undef Y", "#ifdef Z\n#endif"])
def test_directives_in_an_undecided_branch_are_refused(line: str) -> None:
    with pytest.raises(UnsupportedError, match=r"^k\.h:1: "):
        prepared(f"#ifdef X\n{line}\n#endif\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int a;\n/* no end", "k.h:2: comment without end"),
        ("#if 1\nint a;", "k.h:1: #if without #endif"),
        ("int a;\n#endif", "k.h:2: #endif without #if"),
        ("#else\n", "k.h:1: #else without #if"),
        ("#if 1 +\n#endif", "k.h:1: #if: cannot read ``"),
        ("#if (1\n#endif", "k.h:1: #if: expected `)`"),
        ("#if 1 / 0\n#endif", "k.h:1: #if: "),
        ("\n#error not here\n", "k.h:2: #error not here"),
    ],
)
def test_broken_directives(text: str, message: str) -> None:
    with pytest.raises(SourceError) as error:
        prepared(text)
    assert str(error.value).startswith(message)


def test_macros_that_the_sources_define_count() -> None:
    text = "#define A 2\n#define B (A)\n#if B == 2\nint b;\n#endif\n"
    assert prepared(text).split() == ["int", "b;"]
    with pytest.raises(UnsupportedError):  # A is gone where B is expanded, as in C
        prepared(text.replace("#if", "#undef A\n#if X + "))
