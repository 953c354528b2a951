"""What cannot be read or decided is refused with file and line; what does not lie on the way is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mc2proof.protocol.ascendc import load_sources, lowering
from mc2proof.protocol.ascendc.facts import parse_facts
from mc2proof.protocol.errors import LimitError, SourceError, UnsupportedError
from mc2proof.protocol.program import Protocol

LoadText = Callable[..., Protocol]

FACTS = 'plain_types = ["Guard", "Kernel", "Local", "Pipe"]\n[regions.heap]\nname = "heap"\nkind = "shared"\n'

HEAD = (
    "[[bisheng::core_ratio(1, 1)]] __global__ __aicore__ void k(GM_ADDR heap, uint32_t n, Tiling tiling) {\n"
)


def refusal(load_text: LoadText, before: str, body: str) -> UnsupportedError:
    with pytest.raises(UnsupportedError) as error:
        load_text(before + HEAD + body + "\n}\n")
    return error.value


@pytest.mark.parametrize(
    ("body", "construct"),
    [
        ("\nMystery(n);", "call of Mystery"),
        ("\nlib::Mystery<3>(n);", "call of Mystery"),
        ("\nAscendC::IBSet(heap, heap, 0, 0);", "call of IBSet"),
        ("\naclshmem_quiet();", "call of aclshmem_quiet"),
        ("lib::Pipe p;\np.Init(n);", "call of Pipe::Init"),
        ("lib::Kernel k;\nk(n);", "call of k, a Kernel"),
        ("\ntiling.Run(n);", "call of Tiling::Run"),
        ("lib::Guard g;\nlib::Guard h(n);", "call of the constructor of Guard"),
        ("\nauto f = [] {};", "lambda expression `[] {}`"),
        ("for (uint32_t i = 0; i < n; ++i) {\nbreak; }", "break inside a loop that only a run decides"),
        ("while (n) { if (n > 2) {\nreturn; } }", "return inside a loop that only a run decides"),
        ("\nwhile (true) { aclshmem_barrier_all(); }", "a loop without end"),
        ("switch (n) {\ncase 1: n = 2; case 2: n = 3; break; }", "a case that falls through"),
        ("\ngoto end; end: ;", "goto statement"),
        ("\naclshmem_ptr(heap, 0);", "aclshmem_ptr of another rank"),
        ("\nCrossCoreSetFlag(1);", "CrossCoreSetFlag without mode and pipe as template arguments"),
        ("\nCrossCoreSetFlag<2, PIPE_X>(1);", "pipe PIPE_X"),
        ("\nSetFlag<HardEvent::A_B>(1);", "event A_B"),
        ("\nCrossCoreSetFlag<2, PIPE_V>(1, 2);", "CrossCoreSetFlag with 2 arguments"),
        ("\nn = unknown;", "name unknown: neither the sources nor facts have it"),
        ("uint32_t a[4];\na[n] = 1;", "an element whose index only a run decides: `a[n]`"),
        ("\n*heap = 1;", "a store to memory: `*heap = 1`"),
        ("uint32_t x = 0;\nbool b = n > 2 && x++ > 1;", "side effects that depend on a condition: `x++ > 1`"),
        ("\nstatic uint32_t calls = 0;", "a static local variable"),
        ("\nhalf h = (half)n;", "a cast to half"),
        ("uint32_t v = 0;\nuint32_t w = (v)(n) + n;", "call of v, a uint32_t"),
        ("\nuint64_t w = (uint64_t)heap & 3;", "`&` of an address: `(uint64_t)heap & 3`"),
        ("\nuint32_t w = heap + 1;", "an address as an integer: `heap + 1`"),
        ("lib::Local p;\np.a = 1; n = p;", "an object as an integer: `n = p`"),
        ("Local p{1, 2};\nn = p.a;", "the order of the members of Local (give it in facts, field_order)"),
        ("lib::Local p;\nn = p.a;", "a, a member that the sources do not set"),
        ("\nn = sizeof(lib::Local);", "sizeof(Local): give its size in facts"),
        ("uint32_t x = 1;\nauto p = (__gm__ uint8_t*)&x;", "a pointer to uint32_t as one to uint8_t"),
        ("\nuint32_t x(half);", "`uint32_t x(half);`: a function, or a variable that looks like one"),
    ],
)  # fmt: skip
def test_the_construct_and_its_line(load_text: LoadText, body: str, construct: str) -> None:
    error = refusal(load_text, "", body)
    assert error.construct == construct
    assert error.span is not None
    assert error.span.file.endswith("kernel.h")
    assert error.span.line == 3


@pytest.mark.parametrize(
    ("before", "body", "construct"),
    [
        ("void f(int a) {} void f(float a) {}\n", "f(n);", "call of f, which is overloaded"),
        ("void f();\n", "f();", "call of f"),
        ("struct S { void f(); };\n", "S s; s.f();", "call of S::f, whose body the sources lack"),
        ("struct S { virtual void f() {} };\n", "S s; s.f();", "call of S::f, which is virtual"),
        ("struct S { ~S() { f(); } };\n", "S s;", "S, whose destructor does something"),
        ("struct S { S(const S& o) {} S() {} };\n", "S s; S t = s;", "a copy of S"),
        ("struct S { uint32_t a : 3; };\n", "S s; s.a = n;", "S::a, a bit field"),
        ("struct S { uint32_t& a; };\n", "S s; s.a = n;", "a, a member that is a reference"),
        ("template <> struct S<1> { };\n", "S<1> s;", "S is declared more than once or specialised"),
        ("namespace a { void f() {} }\n", "f();", "call of f"),
        ("template <typename T> void f() { T x; }\n", "f();", "call of f: template argument T is not"),
        ("#define F(x) g(x)\n", "F(n);", "macro F"),
        ("#define N 1\n#define N 2\n", "n = N;", "macro N, which is defined in several ways"),
        ("#define CrossCoreSetFlag Other\n", "CrossCoreSetFlag<2, PIPE_V>(n);", "macro CrossCoreSetFlag"),
        ("uint32_t counter = 3;\n", "n = counter;", "name counter"),
        (
            "namespace a { void f() {} } namespace b { void f() {} } using namespace a; using namespace b;\n",
            "f();",
            "f is ambiguous",
        ),
        ("uint32_t f(uint32_t x) { return x ? f(x - 1) : 0; }\n", "f(n);", "recursion: call of f"),
        ("template <typename T> struct S { T a; };\n", "S s;", "S without template argument T"),
    ],
)  # fmt: skip
def test_declarations_that_are_refused_where_they_are_used(
    load_text: LoadText, before: str, body: str, construct: str
) -> None:
    assert refusal(load_text, before, body).construct.startswith(construct)
    load_text(before + HEAD + "}")  # and only there


def test_the_call_sites_of_a_refusal(load_text: LoadText) -> None:
    text = (
        "void g(uint32_t n) {\n  Mystery(n);\n}\nvoid f(uint32_t n) {\n  g(n);\n}\n" + HEAD + "  f(n);\n}\n"
    )
    with pytest.raises(UnsupportedError) as error:
        load_text(text)
    span = error.value.span
    assert span is not None
    assert [(c.line, c.column) for c in (*span.calls, span)] == [(8, 3), (5, 3), (2, 3)]


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("uint32_t x;\nn = x;", 3, "x is read before it is assigned"),
        ("uint32_t x; if (n) { x = 1; }\nn = x;", 3, "x may be read before it is assigned"),
        ("uint32_t x; for (uint32_t i = 0; i < n; ++i) { x = i; }\nn = x;", 3, "x may be read before"),
        ("GM_ADDR p{nullptr};\nauto q = p + 1;", 3, "a null pointer is used as an address"),
        ("uint32_t a[2] = {1, 2};\na[2] = 1;", 3, "index 2 of uint32_t[2]"),
        ("\nuint32_t a[2] = {1, 2, 3};", 3, "3 values for uint32_t[2], which holds 2"),
    ],
)
def test_errors_of_the_source(load_text: LoadText, body: str, line: int, message: str) -> None:
    with pytest.raises(SourceError) as error:
        load_text(HEAD + body + "\n}\n")
    assert error.value.message.startswith(message)
    assert error.value.span is not None
    assert error.value.span.line == line


def test_a_member_that_no_constructor_sets(load_text: LoadText) -> None:
    text = "struct S {\n  uint32_t a;\n  uint32_t f() {\n    return a;\n  }\n};\n" + HEAD + "S s; s.f();\n}"
    with pytest.raises(SourceError, match=r"kernel\.h:4: a is read before it is assigned"):
        load_text(text)


def test_a_function_that_may_end_without_result(load_text: LoadText) -> None:
    text = "uint32_t f(uint32_t n) { if (n) { return 1; } }\n" + HEAD + "\nn = f(n);\n}"
    with pytest.raises(SourceError, match=r"kernel\.h:4: f may end without a result"):
        load_text(text)


# --- syntax errors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (HEAD + "  n = 3 +;\n}\n", 2),
        (HEAD + "  if (n) {\n  n = 3;\n}\n", None),  # a missing brace: anywhere after it opened
        ("void f() {\n  int a = ;\n}\n" + HEAD + "f();\n}\n", 2),
        ("struct S {\n  int a = ;\n};\n" + HEAD + "S s;\n}\n", 2),
        ("struct S {\n  int f() {\n" + HEAD + "}\n", None),  # hides the entry
    ],
)
def test_syntax_errors_on_the_way(load_text: LoadText, text: str, line: int | None) -> None:
    with pytest.raises(SourceError, match=r"kernel\.h:\d+: syntax error") as error:
        load_text(text)
    assert error.value.span is not None
    assert line is None or error.value.span.line == line


def test_syntax_errors_elsewhere_do_not_matter(load_text: LoadText) -> None:
    text = "void other() {\n  int a = ;\n  3 +;\n}\nstruct T { int b = ; };\n" + HEAD + "n = 3;\n}\n"
    assert load_text(text).name == "k"


# --- entries and files ------------------------------------------------------------------------


def test_entries_by_name(load_text: LoadText) -> None:
    text = "__global__ void a(GM_ADDR p) {}\n__global__ void b(GM_ADDR p);\n__global__ void c(GM_ADDR p) {}\n"
    assert load_text(text, entry="c").name == "c"
    with pytest.raises(SourceError, match=r"no __global__ function b; there is a, c"):
        load_text(text, entry="b")
    with pytest.raises(SourceError, match=r"no __global__ function in .*kernel\.h"):
        load_text("void a() {}")


def test_an_entry_that_is_a_template(load_text: LoadText) -> None:
    with pytest.raises(UnsupportedError, match="k, an entry that is a template"):
        load_text("template <typename T> __global__ void k(GM_ADDR p) {}")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"none\.h: No such file"):
        load_sources([tmp_path / "none.h"])


def test_includes_are_followed_where_they_are_there(
    load_text: LoadText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "deep.h").write_text("#pragma once\n#define DEEP 4\n")
    text = (
        '#pragma once\n#include "missing/lib.h"\n#include <shmem.h>\n#include "part.h"\n#include "deep.h"\n'
        "#if DEEP == 4\n" + HEAD + "CrossCoreSetFlag<2, PIPE_V>(Part(DEEP));\n}\n#endif\n"
    )
    others = {"part.h": '#pragma once\n#include "kernel.h"\nuint32_t Part(uint32_t n) { return n + 1; }\n'}
    protocol = load_text(text, others=others, include_dirs=[tmp_path / "lib"])
    assert [Path(file).name for file in protocol.files] == ["kernel.h", "part.h", "deep.h"]
    monkeypatch.chdir(tmp_path)
    paths = [Path("kernel.h"), Path("part.h")]
    (again,) = load_sources(paths, include_dirs=[Path("lib")], facts=parse_facts(FACTS, "f"))
    assert again.files == ("kernel.h", "part.h", "lib/deep.h")
    assert again.digest() == protocol.digest()


def test_defines_choose_branches(load_text: LoadText) -> None:
    text = "#ifdef FAST\n" + HEAD + "}\n#else\n" + HEAD.replace("void k", "void slow") + "}\n#endif\n"
    assert load_text(text, defines={"FAST": "1"}).name == "k"
    assert load_text(text, defines={"FAST": None}).name == "slow"
    with pytest.raises(UnsupportedError, match=r"kernel\.h:1: .*#ifdef FAST"):
        load_text(text)


def test_defines_are_constants_too(load_text: LoadText) -> None:
    text = HEAD + "CrossCoreSetFlag<2, PIPE_V>(DEPTH + 1);\n}\n"
    (statement,) = load_text(text, defines={"DEPTH": "(4)"}).programs.popitem()[1]
    assert str(statement.flag) == "5"  # type: ignore[union-attr]


def test_a_loop_that_takes_too_long_is_stopped(load_text: LoadText, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "MAX_STEPS", 5000)
    calls = "".join(f"void f{i}(uint32_t n) {{ f{i + 1}(n); f{i + 1}(n); }}\n" for i in range(20, -1, -1))
    text = "void f21(uint32_t n) { n = 1; }\n" + calls + HEAD + "f0(n);\n}\n"
    with pytest.raises(LimitError, match=r"kernel\.h:\d+: symbolic execution exceeds max-steps"):
        load_text(text)


def test_calls_that_nest_too_deep_are_stopped(load_text: LoadText) -> None:
    calls = "".join(f"void f{i}(uint32_t n) {{ f{i + 1}(n); }}\n" for i in range(69, -1, -1))
    text = "void f70(uint32_t n) { n = 1; }\n" + calls + HEAD + "f0(n);\n}\n"
    with pytest.raises(LimitError, match="max-inline-depth"):
        load_text(text)
