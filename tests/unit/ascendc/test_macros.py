"""Macros mean what they mean where they stand, and one that is no integer is refused where it is used."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mc2proof.protocol.ascendc.macros import Macros
from mc2proof.protocol.ascendc.prepass import prepare
from mc2proof.protocol.errors import Mc2proofError, SourceError, UnsupportedError
from mc2proof.protocol.expr import Const
from mc2proof.protocol.program import Protocol, Role, SetFlag, statements

LoadText = Callable[..., Protocol]
Lower = Callable[..., list[str]]

HEAD = "[[bisheng::core_ratio(1, 1)]] __global__ __aicore__ void k(GM_ADDR heap, Tiling tiling) {\n"
SET = "CrossCoreSetFlag<2, PIPE_MTE3>"


def flags(load_text: LoadText, before: str, body: str, **options: object) -> list[int]:
    """The flags that a kernel sets."""
    program = load_text(before + HEAD + body + "\n}\n", **options).programs[Role.AIV]
    found = [s.flag for s in statements(program) if isinstance(s, SetFlag)]
    return [flag.value for flag in found if isinstance(flag, Const)]


def refusal(load_text: LoadText, before: str, body: str, **options: object) -> str:
    with pytest.raises(UnsupportedError) as error:
        load_text(before + HEAD + body + "\n}\n", **options)
    return str(error.value)


# --- where they stand ---------------------------------------------------------------------------


def test_a_macro_has_the_value_of_its_position(load_text: LoadText) -> None:
    before = "#define ID 1\nuint32_t F() { return ID; }\n#undef ID\n#define ID 2\n"
    assert flags(load_text, before, f"{SET}(F()); {SET}(ID);") == [1, 2]


def test_a_macro_that_comes_later_changes_nothing_before(load_text: LoadText) -> None:
    before = "constexpr uint32_t BASE = 3;\nuint32_t F() { return BASE; }\n#define BASE 0\n"
    assert flags(load_text, before, f"{SET}(F()); {SET}(BASE);") == [3, 0]


def test_macros_of_macros_are_expanded_where_they_are_used(load_text: LoadText) -> None:
    before = "#define A (B)\n#define B 1\nuint32_t F() { return A; }\n#undef B\n#define B 2\n"
    assert flags(load_text, before, f"{SET}(F()); {SET}(A);") == [1, 2]


def test_a_macro_hides_a_variable_of_its_name(load_text: LoadText) -> None:
    body = f"uint32_t x = 1;\n#define x 2\n{SET}(x);\n#undef x\n{SET}(x);"
    assert flags(load_text, "", body) == [2, 1]


def test_a_macro_that_renames_for_a_while(load_text: LoadText) -> None:
    body = f"uint32_t a = 1, b = 2;\n#define a b\n{SET}(a);\n#undef a\n"
    assert "kernel.h:4: unsupported: macro a" in refusal(load_text, "", body)


def test_a_redefinition_without_undef_is_refused_where_it_is_used(load_text: LoadText) -> None:
    message = refusal(load_text, "#define N 1\n#define N 2\n", f"{SET}(N);")
    assert "kernel.h:4: unsupported: macro N, which is defined in several ways" in message


def test_a_function_like_macro_without_parentheses_is_no_use(load_text: LoadText) -> None:
    assert flags(load_text, "#define x(y) z\n", f"uint32_t x = 1; {SET}(x);") == [1]


# --- what they stand for ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "body", "name"),
    [
        ("struct C { void P() {} void Q() { aclshmem_barrier_all(); } };\n#define P Q\n", "C c; c.P();", "P"),
        ("#define bufferSize tileCnt\n", f"{SET}(tiling.bufferSize);", "bufferSize"),
        ("#define Small uint8_t\n", f"Small x = 257; {SET}(x);", "Small"),
        ("#define UNLESS(x) if (!(x))\n", f"UNLESS(tiling.n) {{ {SET}(1); }}", "UNLESS"),
        ("#define STEP aclshmem_barrier_all()\n", "STEP;", "STEP"),
        ("#define STEP aclshmem_barrier_all();\n", "STEP\nuint32_t x = 1;", "STEP"),
        ("namespace a { void F() {} }\n#define a b\n", "a::F();", "a"),
        ("template <typename T> void F() {}\n#define T4 uint32_t\n", "F<T4>();", "T4"),
        ("#define b c\n", "uint32_t c = 1; { uint32_t b = 2; }", "b"),
        ("#define F(x) x\nuint32_t G(uint32_t n = F(3)) { return n; }\n", "G();", "F"),
        ("#define MORE X, Y\nenum E { A, B = MORE };\n", f"{SET}(B);", "MORE"),
        ("#define INIT = 3\nstruct S { uint32_t n INIT; };\n", "S s;", "INIT"),
    ],
)
def test_other_macros_are_refused_by_name(load_text: LoadText, before: str, body: str, name: str) -> None:
    assert f"unsupported: macro {name}" in refusal(load_text, before, body)


def test_macros_that_do_not_lie_on_the_way_do_not_matter(load_text: LoadText) -> None:
    before = (
        "#define LOG(x) Print(x)\nvoid Other() { LOG(1); }\nstruct S { void F() { LOG(2); } uint32_t n; };\n"
    )
    assert flags(load_text, before, f"S s; s.n = 1; {SET}(s.n);") == [1]


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("#define P Q\nvoid P() {}\n", 2),
        ("#define P Q\nstruct P { int a; };\n", 2),
        ("#define P Q\nenum { A, P, B };\n", 2),
        ("#define FOR(T) template <> void Step<T>() {}\ntemplate <int T> void Step() {}\nFOR(2)\n", 3),
        ("#define OPEN namespace x {\nOPEN }\n", None),
    ],
)
def test_macros_that_declare_are_refused(load_text: LoadText, before: str, line: int | None) -> None:
    with pytest.raises(Mc2proofError, match=rf"kernel\.h:{line or ''}"):
        load_text(before + HEAD + f"{SET}(1);\n}}\n")


@pytest.mark.parametrize(
    "before",
    [
        "#define INLINE __aicore__ inline\nINLINE uint32_t F() { return 1; }\n",
        "#define DEV __attribute__((always_inline)) __gm__\n#define FN DEV\nFN uint32_t F() { return 1; }\n",
        "#define __aicore__\n__aicore__ uint32_t F() { return 1; }\n",
        "#define NOTE(x)\nuint32_t F() { NOTE(a + (b)); return 1; }\n",
    ],
)
def test_macros_that_stand_for_nothing_are_read(load_text: LoadText, before: str) -> None:
    assert flags(load_text, before, f"{SET}(F());") == [1]


@pytest.mark.parametrize(
    "line",
    [
        "#define if(x) while(x)",
        "#define uint32_t uint8_t",
        "#define int",
        "#define GM_ADDR uint64_t",
        "#define __global__",
        '#define ENTRY extern "C" __global__ __aicore__',
        "#define ENTRY(n) __global__ void n() {}",
        "#define RATIO [[bisheng::core_ratio(1, 2)]]",
        "#define MIX __mix__(1, 2)",
        '#pragma push_macro("N")',
    ],
)
def test_macros_that_change_the_language_or_make_entries(load_text: LoadText, line: str) -> None:
    with pytest.raises(UnsupportedError, match=r"kernel\.h:2: unsupported: #"):
        load_text("\n" + line + "\n" + HEAD + "}\n")


def test_the_same_in_inactive_text_is_no_matter(load_text: LoadText) -> None:
    assert flags(load_text, "#if 0\n#define if while\n#what\n#endif\n", f"{SET}(1);") == [1]


def test_a_define_of_the_user_counts_from_the_start(load_text: LoadText) -> None:
    assert flags(load_text, "", f"{SET}(N);", defines={"N": "5"}) == [5]
    with pytest.raises(UnsupportedError, match=r"kernel\.h:3: unsupported: macro N"):
        load_text(f"\n{HEAD}N void Broken() {{}}\n}}\n", defines={"N": "__global__"})
    with pytest.raises(UnsupportedError, match=r"which may declare anything"):
        load_text(f"N void Broken() {{}}\n{HEAD}}}\n", defines={"N": "__global__"})


# --- defaults and guards ------------------------------------------------------------------------


def test_a_default_gives_way_to_a_define(load_text: LoadText) -> None:
    before = "#ifndef N\n#define N 4\n#endif\n"
    assert flags(load_text, before, f"{SET}(N);", defines={"N": "3"}) == [3]
    assert flags(load_text, before, f"{SET}(N);", defines={"N": None}) == [4]
    assert "kernel.h:1: unsupported: #ifndef N" in refusal(load_text, before, f"{SET}(N);")


def test_only_what_is_around_the_whole_file_is_a_guard(load_text: LoadText) -> None:
    once = "#ifndef ONCE\n#define ONCE\naclshmem_barrier_all();\n#endif\n"
    assert "kernel.h:2: unsupported: #ifndef ONCE" in refusal(load_text, "", once + once)
    lines = flags(load_text, "", f"#undef ONCE\n{once}{once}{SET}(1);")
    assert lines == [1]


@pytest.mark.parametrize("opening", ["#ifndef H", "#if !defined(H)", "#pragma once\n// x\n#ifndef H"])
def test_include_guards(load_text: LoadText, opening: str) -> None:
    others = {"part.h": f"{opening}\n#define H\nuint32_t F() {{ return 1; }}\n#endif  // H\n"}
    assert flags(load_text, '#include "part.h"\n#include "part.h"\n', f"{SET}(F());", others=others) == [1]


def test_content_that_is_guarded_twice_is_there_once() -> None:
    text = "#undef G\n#ifndef G\n#define G\nint a;\n#endif\n#ifndef G\n#define G\nint b;\n#endif\n"
    result = prepare(text.encode(), "k.h", Macros()).text.decode()
    assert ("int a" in result, "int b" in result) == (True, False)


# --- includes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("include", ['"part.h"', '"missing.h"', "<missing.h>"])
@pytest.mark.parametrize(
    "around",
    ["void f() {\n%s\n}\n", "struct S {\n%s\n};\n", "int x[] = {\n%s\n};\n", "int x =\n%s\n3;\n"],
)
def test_includes_stand_between_declarations(load_text: LoadText, include: str, around: str) -> None:
    with pytest.raises(UnsupportedError, match=r"kernel\.h:2: unsupported: #include inside"):
        load_text(around % f"#include {include}" + HEAD + "}\n", others={"part.h": "\n"})


def test_includes_in_extern_c_are_read_and_those_in_namespaces_refused(load_text: LoadText) -> None:
    others = {"part.h": "uint32_t F() { return 1; }\n"}
    include = '#include "part.h"\n#include <b.h>\n'
    assert flags(load_text, f'extern "C" {{\n{include}}}\n', f"{SET}(F());", others=others) == [1]
    message = refusal(load_text, f"namespace a::b {{\n{include}}}\n", "", others=others)
    assert "kernel.h:2: unsupported: #include inside a namespace" in message
    assert flags(load_text, "namespace a {\n#include <b.h>\n}\n", f"{SET}(1);") == [1]


def test_a_file_that_reads_in_two_ways_is_refused(load_text: LoadText) -> None:
    others = {"part.inc": "constexpr uint32_t NAME = VALUE;\n"}
    before = '#define VALUE 1\n#include "part.inc"\n#undef VALUE\n#define VALUE 2\n#include "part.inc"\n'
    message = refusal(load_text, before, f"{SET}(NAME);", others=others)
    assert "kernel.h:5: unsupported: " in message
    assert "part.inc reads differently" in message


def test_a_file_that_includes_itself(load_text: LoadText) -> None:
    assert "includes itself" in refusal(load_text, '#include "kernel.h"\n', "")


def test_a_computed_include_is_refused(load_text: LoadText) -> None:
    assert "#include HEADER" in refusal(load_text, '#define HEADER "a.h"\n#include HEADER\n', "")


# --- conditions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("#define A 1 + 1\n#if A * 2 == 4\n", False),
        ("#define A 1 + 1\n#if A * 2 == 3\n", True),
        ("#define A B\n#define B A\n#if A == 0\n", True),
        ("#if true && !false\n", True),
    ],
)
def test_conditions_expand_macros_as_text(text: str, taken: bool) -> None:
    result = prepare(f"{text}int yes;\n#endif\n".encode(), "k.h", Macros(given={"A": None})).text
    assert (b"yes" in result) == taken


@pytest.mark.parametrize(
    "text",
    [
        "#define F(x) x\n#if F(1)\n#endif\n",
        '#define A "text"\n#if A\n#endif\n',
        "#if 0 - 1 > 0u\n#endif\n",
        "#if 0x7fffffffffffffff + 1 > 0\n#endif\n",
    ],
)
def test_conditions_that_are_not_evaluated(text: str) -> None:
    with pytest.raises(UnsupportedError, match=r"^k\.h:\d: unsupported: "):
        prepare(text.encode(), "k.h", Macros())


@pytest.mark.parametrize(
    ("directives", "taken"),
    [
        ("#ifdef B\nint a;\n#elifdef C\nint b;\n#else\nint c;\n#endif", b"int a;"),
        ("#if 0\nint a;\n#elifdef B\nint b;\n#else\nint c;\n#endif", b"int b;"),
        ("#if 0\nint a;\n#elifndef B\nint b;\n#else\nint c;\n#endif", b"int c;"),
        ("#if 1\nint a;\n#elifdef UNKNOWN\nint b;\n#endif", b"int a;"),
    ],
)
def test_elifdef_and_elifndef(directives: str, taken: bytes) -> None:
    assert prepare(f"#define B 1\n{directives}\n".encode(), "k.h", Macros()).text.strip() == taken


@pytest.mark.parametrize(
    "line", ["#include_next <a.h>", "#elifx", "#IF 1", "#import <a>", "%:define A", "int $a;"]
)
def test_unknown_directives_and_characters(line: str) -> None:
    with pytest.raises(Mc2proofError, match=r"^k\.h:2: unsupported: "):
        prepare(f"\n{line}\n".encode(), "k.h", Macros())


@pytest.mark.parametrize("line", ["#define 3", "#ifdef A B\n#endif", "#undef", "#else\n#else\n#endif"])
def test_malformed_directives(line: str) -> None:
    with pytest.raises(SourceError, match=r"^k\.h:\d: #"):
        prepare(f"#if 1\n{line}\n#endif\n".encode(), "k.h", Macros())
