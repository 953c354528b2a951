"""Faults of a kernel that were once read as something harmless: each is read right, or refused.

Every case is a way in which C++ differs from what the text seems to say; values are those of g++.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mc2proof.protocol.errors import SourceError, UnsupportedError
from mc2proof.protocol.program import Protocol

Lower = Callable[..., list[str]]
LoadText = Callable[..., Protocol]
ValueOf = Callable[..., int]

BARRIER = "aclshmem_barrier_all();"


def flag(value: str) -> str:
    return f"CrossCoreSetFlag<2, PIPE_MTE3>({value});"


def refused(lower: Lower, body: str, before: str = "") -> str:
    with pytest.raises((UnsupportedError, SourceError)) as error:
        lower(body, before)
    assert error.value.span is not None
    assert error.value.span.line > 0
    return str(error.value)


# --- names that libraries have too ------------------------------------------------------------


def test_a_function_of_the_sources_beats_one_of_the_library(lower: Lower) -> None:
    before = (
        "namespace mine { void aclshmem_barrier_all() {} uint32_t GetBlockIdx() { return 7; } "
        "void SetFlag(uint32_t x) { aclshmemx_barrier_all_vec(); } }\n"
    )
    body = "mine::aclshmem_barrier_all(); mine::SetFlag(1);" + flag("mine::GetBlockIdx()")
    assert lower(body, before) == ["aclshmemx_barrier_all_vec", "set MTE3 7"]


@pytest.mark.parametrize("call", ["other::aclshmem_barrier_all();", "other::CrossCoreSetFlag<2, PIPE_V>(1);"])
def test_a_name_of_another_namespace_is_no_library_function(lower: Lower, call: str) -> None:
    assert "call of" in refused(lower, call)


def test_names_of_the_library_namespace(lower: Lower) -> None:
    assert lower("AscendC::CrossCoreSetFlag<2, PIPE_V>(1); ::aclshmem_barrier_all();") == [
        "set V 1",
        "aclshmem_barrier_all",
    ]


def test_overloads_of_two_namespaces(lower: Lower) -> None:
    before = (
        "void F(uint64_t x) {} namespace a { void F(uint32_t x) { " + BARRIER + " } } using namespace a;\n"
    )
    assert "ambiguous" in refused(lower, "F(n);", before)


def test_an_overload_that_is_only_declared(lower: Lower) -> None:
    before = "struct C { void F(uint32_t x); void F(uint64_t x) {} };\n"
    assert "whose body the sources lack" in refused(lower, "C c; c.F(n);", before)


# --- references -------------------------------------------------------------------------------

REFERENCES = """
struct P { uint32_t x{0}; };
struct C {
  uint32_t n{0}; P p;
  uint32_t& Id() { return n; }
  C& Up() { n += 1; return *this; }
  P& Get() { return p; }
};
inline void AddOne(uint32_t& x) { x += 1; }
inline void Next(uint32_t*& p, uint32_t* q) { p = q; }
inline uint32_t& First(uint32_t& a, uint32_t& b) { return a; }
inline auto& Same(uint32_t& a) { return a; }
"""


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("C c; uint32_t& r = c.Id(); r = 5; uint32_t x = c.n;", 5),
        ("C c; c.Id() = 6; c.Id() += 1; uint32_t x = c.n;", 7),
        ("C c; c.Up().Up().Up(); uint32_t x = c.n;", 3),
        ("C c; c.Get().x = 4; uint32_t x = c.p.x;", 4),
        ("C c; auto& q = c.Get(); q.x = 4; uint32_t x = c.p.x;", 4),
        ("C c; auto q = c.Get(); q.x = 4; uint32_t x = c.p.x;", 0),
        ("C c; AddOne(c.Id()); uint32_t x = c.n;", 1),
        ("uint32_t x = 1; auto& r = ++x; r = 9;", 9),
        ("uint32_t x = 1; AddOne(x += 2);", 4),
        ("uint32_t x = 1, b = 2; AddOne(true ? x : b);", 2),
        ("uint32_t x = 1, b = 2; First(x, b) = 8;", 8),
        ("uint32_t x = 1; Same(x) = 8;", 8),
        ("uint32_t x = 1; (x = 3) += 1; ++(x -= 1);", 4),
        ("uint32_t a = 1, x = 2; uint32_t* p = &a; uint32_t*& r = p; r = &x; *p = 9;", 9),
        ("uint32_t a = 1, x = 2; uint32_t* p = &a; Next(p, &x); *p = 9;", 9),
        ("uint32_t c = 1; const uint64_t& r = c; c = 5; uint32_t x = r;", 1),
        ("uint32_t c = 1; const uint32_t& r = c; c = 5; uint32_t x = r;", 5),
        ("const uint32_t& r = n + 1; uint32_t x = r;", 8),
        ("uint32_t a[2] = {1, 2}; auto& r = a; r[1] = 9; uint32_t x = a[1];", 9),
    ],
)
def test_references(value_of: ValueOf, body: str, value: int) -> None:
    assert value_of("x", REFERENCES, body) == value


@pytest.mark.parametrize(
    "body",
    [
        "uint32_t a = 1, b = 2; AddOne(n > 3 ? a : b);",
        "uint32_t a = 1, b = 2; auto& r = n > 3 ? a : b; r = 1;",
        "uint32_t a = 1, b = 2; const uint32_t& r = n > 3 ? a : b; a = 9;",
        "AddOne(n + 1);",
        "int32_t a = 1; AddOne(a);",
        "uint32_t& r = static_cast<uint32_t&>(n);",
        "auto& word = *heap; word = 0;",
        "uint32_t& r = 3;",
    ],
)
def test_references_without_a_place(lower: Lower, body: str) -> None:
    refused(lower, body, REFERENCES)


@pytest.mark.parametrize(
    "before",
    [
        "uint32_t& F() { uint32_t local = 3; return local; }\n",
        "uint32_t& F(uint32_t& a, uint32_t& b) { if (a) { return a; } return b; }\n",
    ],
)
def test_returned_references_that_name_no_place(lower: Lower, before: str) -> None:
    arguments = "n, m" if "a," in before else ""
    refused(lower, f"uint32_t m = 1; F({arguments}) = 4;", before)


def test_a_word_is_read_once(lower: Lower) -> None:
    before = "inline GM_ADDR At(GM_ADDR p) { " + BARRIER + " return p; }\n"
    assert lower(flag("*At(heap)"), before) == ["aclshmem_barrier_all", "word = *(heap)", "set MTE3 word"]


# --- types ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("std::uint8_t x = 257;", 1),
        ("std::uint32_t a = 1; uint32_t x = a - 2 > 0 ? 1 : 2;", 1),
        ("signed short a = 40000; int32_t x = a;", -25536),
        ("short signed int a = 40000; int32_t x = a;", -25536),
        ("signed long a = 1; int64_t x = a - 2u;", -1),
        ("long unsigned a = 1; uint32_t x = a - 2 > 5 ? 1 : 2;", 1),
        ("int unsigned long long a = 1; uint32_t x = a - 2 > 5 ? 1 : 2;", 1),
        ("uint64_t x = -1u;", 2**32 - 1),
        ("int32_t x = std::min<int32_t>(-1, 5u);", -1),
        ("int32_t x = std::min<uint8_t>(257, 200);", 1),
        (
            "auto y = std::max(static_cast<uint8_t>(n), static_cast<uint8_t>(3)); y += 300; uint32_t x = y;",
            51,
        ),
        ("using T = uint8_t; T x = 257;", 1),
        ("uint32_t x = 7; x and_eq 3; x or_eq 8; x xor_eq 1;", 10),
        ("int32_t x = compl 1;", -2),
    ],
)
def test_types(value_of: ValueOf, body: str, value: int) -> None:
    assert value_of("x", body=body) == value


@pytest.mark.parametrize(
    "body",
    [
        "float f = n; uint32_t x = (f / 2) * 2; n = x;",
        "double d = n; if (d > 2) { aclshmem_barrier_all(); }",
        "float f = tiling.rows; n = f * 2;",
        "MyUint m = n; n = m / 2;",
        "lib::Count m = tiling.rows; n = m + 1;",
        "n = (float)tiling.rows;",
        "Local p; p.slot = n; n = p.slot + 1;",
        "unsigned __int128 w = 1; n = w << 40;",
        "n = 1 << 33;",
        "n = std::min(n, s);",
        "auto [u, v] = tiling.pair; n = u;",
        "typename Unknown::T x = 3; n = x + 1;",
    ],
)
def test_numbers_of_other_types(lower: Lower, body: str) -> None:
    refused(lower, body)


def test_a_number_of_an_unknown_type_may_be_stored(lower: Lower) -> None:
    assert lower("Local p; p.scale = n; float f = n; double g = 1;" + flag("1")) == ["set MTE3 1"]


def test_auto_takes_the_type_of_a_field(lower: Lower) -> None:
    facts = '[fields.rows]\ntype = "uint8_t"\n'
    body = "auto r = tiling.rows; r += (int64_t)300;" + flag("r")
    assert lower(body, facts=facts) == ["set MTE3 (uint8_t)(rows + 300)"]


@pytest.mark.parametrize(
    ("before", "value"),
    [
        ("template <uint64_t N> uint32_t F(int32_t i) { return (i - N < 0) ? 1 : 2; }\n", "F<4>(1)"),
        (
            "template <uint64_t N> struct A { uint32_t F(int32_t i) { return (i - N < 0) ? 1 : 2; } };\n",
            "A<4>().F(1)",
        ),
        (
            "template <uint8_t N = 258> uint32_t F() { return N; }\n",
            "F()",
        ),
    ],
)
def test_template_parameters_have_their_types(value_of: ValueOf, before: str, value: str) -> None:
    assert value_of(value, before) == 2


def test_a_trailing_result_type_converts(value_of: ValueOf) -> None:
    assert value_of("F(257)", "auto F(uint32_t x) -> uint8_t { return x; }\n") == 1


def test_enumerations(value_of: ValueOf) -> None:
    before = "enum class E : uint8_t { A = 250, B };\nenum Plain { P, Q };\n"
    assert (
        value_of("(uint32_t)e + (p == Q)", before, "E e = (E)251; Plain p = Q; if (e != E::B) { n = 0; }")
        == 252
    )


def test_pipes_by_name(lower: Lower) -> None:
    before = (
        "constexpr pipe_t OUT = PIPE_MTE3;\n"
        "template <uint8_t MODE, pipe_t P> void Signal(uint32_t i) { CrossCoreSetFlag<MODE, P>(i); }\n"
    )
    assert lower("CrossCoreSetFlag<2, OUT>(1); Signal<2, OUT>(2); Signal<2, PIPE_V>(3);", before) == [
        "set MTE3 1",
        "set MTE3 2",
        "set V 3",
    ]


# --- what is printed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("uint8_t x = n;" + flag("x"), "(uint8_t)n"),
        ("uint16_t x = 70000;" + flag("x"), "4464"),
        ("uint32_t x = GetBlockIdx();" + flag("x"), "block"),
        ("uint64_t m = n; uint32_t x = GetBlockIdx() & (m - 1);" + flag("x"), "block & (n - 1)"),
        ("uint64_t m = n;" + flag("s < m"), "(uint64_t)s < n"),
        ("uint8_t x = n & 15;" + flag("x"), "n & 15"),
    ],
)
def test_conversions_that_change_a_value_are_printed(lower: Lower, body: str, text: str) -> None:
    assert lower(body) == [f"set MTE3 {text}"]


# --- loops ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "step"),
    [
        ("uint32_t st = 1; for (uint32_t i = 0; i < 4; i += st) { st = 2; " + flag("i") + "}", "i = i + 2"),
        ("for (uint32_t i = 1; i < 9; i += i) { " + flag("i") + "}", "i = i + i"),
        ("S s; for (uint32_t i = 0; i < 4; i += s.st) { s.Set();" + flag("i") + "}", "i = i + 3"),
    ],
)
def test_steps_that_change(lower: Lower, body: str, step: str) -> None:
    before = "struct S { uint32_t st{1}; void Set() { st = 3; } };\n"
    lines = lower(body, before)
    assert lines[1].startswith("while i < ")
    assert lines[-1] == "  " + step


def test_a_step_that_does_something(lower: Lower) -> None:
    before = "uint32_t Step() { " + BARRIER + " return 2; }\n"
    assert lower("for (uint32_t i = 0; i < n; i += Step()) { " + flag("i") + "}", before) == [
        "i = 0",
        "while i < n",
        "  set MTE3 i",
        "  aclshmem_barrier_all",
        "  i = i + 2",
    ]


def test_a_constant_step(lower: Lower) -> None:
    body = "constexpr uint32_t st = 2; for (uint32_t i = 0; i < n; i += st) { " + flag("i") + "}"
    assert lower(body)[0] == "for uint32_t i = 0 .. n by 2"
    assert lower("for (uint8_t i = 0; i < 255; i += 2) { " + flag("i") + "}")[0] == "i = 0"  # it wraps


# --- objects ----------------------------------------------------------------------------------

OBJECTS = """
struct Gate { uint32_t v; Gate(uint32_t x) : v(x + 1) { aclshmem_barrier_all(); } };
struct Pair { uint32_t a; uint32_t b; Pair() : a(0), b(0) {} Pair(uint32_t x, uint32_t y) : a(y), b(x) {} };
struct Outer { Gate g; };
inline uint32_t Take(Gate g) { return g.v; }
inline Gate Make() { return 3; }
inline Gate MakeBraced() { return {4}; }
"""


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("Gate g = 3;", "g.v"),
        ("Gate g{3};", "g.v"),
        ("Gate g = {3};", "g.v"),
        ("auto g = Make();", "g.v"),
        ("uint32_t v = Take(3);", "v"),
        ("uint32_t v = Take({3});", "v"),
        ("Outer o{{3}};", "o.g.v"),
        ("Outer o = {3};", "o.g.v"),
    ],
)
def test_constructors_that_convert(lower: Lower, body: str, value: str) -> None:
    assert lower(body + flag(value), OBJECTS) == ["aclshmem_barrier_all", "set MTE3 4"]


def test_more_constructors(lower: Lower) -> None:
    assert lower("auto g = MakeBraced();" + flag("g.v"), OBJECTS) == ["aclshmem_barrier_all", "set MTE3 5"]
    assert lower("Pair p; p = {3, 4};" + flag("p.a"), OBJECTS) == ["set MTE3 4"]
    body = "Gate g = 1; g = 7;" + flag("g.v")
    assert lower(body, OBJECTS) == ["aclshmem_barrier_all", "aclshmem_barrier_all", "set MTE3 8"]


@pytest.mark.parametrize(
    ("before", "body", "why"),
    [
        ("struct T { uint32_t n; ~T() { f(); } };", "T t{3};", "destructor"),
        ("struct T { uint32_t n; ~T() { f(); } };", "T t = {3};", "destructor"),
        ("struct T { uint32_t n; ~T() { f(); } };", "T{3};", "destructor"),
        ("struct T { uint32_t n; ~T() { f(); } }; struct U { T t; };", "U u{{3}};", "destructor"),
        ("struct T { uint32_t n; ~T() { f(); } }; struct U { T t; };", "U u;", "destructor"),
        ("struct T { uint32_t n; ~T() { f(); } }; void F(T t) {}", "F({3});", "destructor"),
        (
            "struct T { uint32_t n; T& operator=(uint32_t x) { f(); return *this; } };",
            "T t; t = 1;",
            "of its own",
        ),
        (
            "struct T { T() {} T(const T& o) { f(); } }; struct U { T t; };",
            "U a; U b = a;",
            "copies in its own",
        ),
        ("struct T { T() {} template <typename O> T(const O& o) {} };", "T a; T b = a;", "copies in its own"),
        ("", "SomeBarrierGuard g;", "an object of type SomeBarrierGuard"),
        ("struct T { lib::Lock l; };", "T t;", "an object of type Lock"),
        ("struct T : lib::Lock { };", "T t;", "an object of type Lock"),
        ("", "lib::Lock g{heap};", "an object of type Lock"),
        ("struct T { T() { f(); } };", "T t();", "a function, or a variable"),
        ("struct A { uint32_t n{1}; }; struct B : A { uint32_t n{2}; };", "B b;", "hide each other"),
        (
            "struct A { uint32_t n; }; struct B { uint32_t n; }; struct C : A, B { };",
            "C c;",
            "hide each other",
        ),
        ("struct A { virtual void f() {} }; struct B : A { void f() {} };", "B b; b.f();", "virtual"),
        ("struct A { void f() override {} };", "A a; a.f();", "virtual"),
        ("struct A { uint32_t x; };", "A a = 3;", "constructor of A"),
        ("struct A { void operator,(int x) {} };", "A a; a, 3;", "an operator of its own"),
        ("struct A { A* operator&() { return this; } };", "A a; auto p = &a;", "an operator of its own"),
        (
            "enum E { X = 1 }; E operator|(E a, E b) { return a; }",
            "E e = X; e = e | X;",
            "for an enumeration",
        ),
        ("enum E { X = 1 }; bool operator!(E a) { return true; }", "E e = X; n = !e;", "for an enumeration"),
    ],
)
def test_objects_that_do_more_than_hold_members(lower: Lower, before: str, body: str, why: str) -> None:
    assert why in refused(lower, body, before + "\n")


def test_plain_types_are_an_assumption(load_text: LoadText) -> None:
    text = "__global__ void k(GM_ADDR heap) { lib::Local p; Kernel q; }"
    assumptions = [(a.code, a.text) for a in load_text(text).assumptions]
    assert ("fact", "facts.toml: making and destroying objects does nothing: Kernel, Local") in assumptions


@pytest.mark.parametrize(
    ("before", "body", "value"),
    [
        (
            "struct P { uint32_t a; uint32_t b; };",
            "uint32_t i = 1; P p{i, ++i}; uint32_t x = p.a * 10 + p.b;",
            12,
        ),
        (
            "struct C { uint32_t a; uint32_t b{a + 1}; C(uint32_t x) : a(x) {} };",
            "C c(4); uint32_t x = c.b;",
            5,
        ),
        (
            "struct C { uint32_t a; uint32_t b; C(uint32_t x) : b(a + 1), a(x) {} };",
            "C c(4); uint32_t x = c.b;",
            5,
        ),
        ("struct C { uint32_t a; };", "C c = C(); uint32_t x = c.a;", 0),
        ("struct C { uint32_t a; C() : a() {} };", "C c; uint32_t x = c.a;", 0),
    ],
)
def test_the_order_of_initialisers(value_of: ValueOf, before: str, body: str, value: int) -> None:
    assert value_of("x", before + "\n", body) == value


@pytest.mark.parametrize(
    ("before", "body", "message"),
    [
        ("struct C { uint32_t b; uint32_t a; C() : a(1), b(a) {} };\n", "C c;", "a is read before"),
        ("", "uint32_t x = 1; { uint32_t x = x + 1; n = x; }", "x is read before"),
    ],
)
def test_reading_too_early(lower: Lower, before: str, body: str, message: str) -> None:
    assert message in refused(lower, body, before)


# --- statements and calls ---------------------------------------------------------------------


def test_initialisers_of_switch_and_if(lower: Lower) -> None:
    assert (
        lower("switch (" + BARRIER + " n) { case 1: " + flag("1") + " break; }")[0] == "aclshmem_barrier_all"
    )
    assert lower("if (" + BARRIER + " n > 1) { " + flag("1") + " }")[0] == "aclshmem_barrier_all"
    assert lower("switch (uint32_t x = 3; x) { case 3: " + flag("x") + " }") == ["set MTE3 3"]


@pytest.mark.parametrize("extra", ["", ", Event()"])
def test_every_argument_of_a_put_is_evaluated(lower: Lower, extra: str) -> None:
    before = (
        "GM_ADDR Staging() { " + BARRIER + " return nullptr; }\n"
        "uint32_t Event() { aclshmemx_barrier_all_vec(); return 0; }\n"
    )
    lines = lower(f"aclshmemx_udma_put_nbi(heap, heap, Staging(), n, 1{extra});", before)
    expected = ["aclshmem_barrier_all"] + (["aclshmemx_barrier_all_vec"] if extra else [])
    assert lines == [*expected, "put n from heap to heap of 1"]


@pytest.mark.parametrize("call", ["F(n, ++n)", "F(n++, n)", "F(n + 1, n++)", "F(n++, n++)", "F(G(), G())"])
def test_arguments_whose_order_matters(lower: Lower, call: str) -> None:
    before = "void F(uint32_t a, uint32_t b) {}\nuint32_t G() { " + BARRIER + " return 1; }\n"
    assert "order of evaluation" in refused(lower, call + ";", before)


def test_arguments_whose_order_does_not_matter(lower: Lower) -> None:
    before = (
        "void F(uint32_t a, uint32_t b) { "
        + flag("a + b")
        + " }\nuint32_t G() { "
        + BARRIER
        + " return 1; }\n"
    )
    assert lower("uint32_t m = n; F(G(), n); F(m++, n);" + flag("m"), before) == [
        "aclshmem_barrier_all",
        "set MTE3 1 + n",
        "set MTE3 n + n",
        "set MTE3 n + 1",
    ]


@pytest.mark.parametrize(
    "before",
    [
        "uint32_t F(uint32_t x) { static const uint32_t first = x; return first; }\n",
        "uint32_t F(uint32_t x) { const uint32_t y = x; static const uint32_t first = y; return first; }\n",
    ],
)
def test_static_constants_that_keep_the_first_value(lower: Lower, before: str) -> None:
    assert "static local variable" in refused(lower, flag("F(3) + F(5)"), before)


def test_static_constants(lower: Lower) -> None:
    before = (
        "constexpr uint32_t BASE = 3;\nuint32_t F() { static const uint32_t id = BASE + 1; return id; }\n"
    )
    assert lower(flag("F()"), before) == ["set MTE3 4"]


@pytest.mark.parametrize("test", ["heap != nullptr", "heap", "nullptr != heap", "!(heap == nullptr)"])
def test_a_pointer_that_is_compared_with_null(load_text: LoadText, test: str) -> None:
    text = f"__global__ void k(GM_ADDR heap, TilingT* t) {{ if ({test}) {{ {BARRIER} }} }}"
    codes = [a for a in load_text(text).assumptions if a.code == "non-null"]
    assert [a.text for a in codes] == ["the address of heap that the kernel is given is not null"]


def test_no_assumption_about_null_where_nothing_is_compared(load_text: LoadText) -> None:
    text = f"__global__ void k(GM_ADDR heap) {{ {BARRIER} }}"
    assert "non-null" not in [a.code for a in load_text(text).assumptions]


def test_a_store_through_a_pointer_of_the_tiling(lower: Lower) -> None:
    assert "a store into tiling.inner" in refused(lower, "tiling.inner->x = 3;")
    assert lower("auto in = tiling.inner->part; in.x = 3;" + flag("tiling.inner->part.x")) == ["set MTE3 x"]


def test_a_function_with_two_results_and_an_operation(lower: Lower) -> None:
    before = "uint32_t F(uint32_t a) { if (a > 3) { " + BARRIER + " return 1; } return 2; }\n"
    assert lower(flag("F(n)"), before) == [
        "if n > 3",
        "  aclshmem_barrier_all",
        "  F_result = 1",
        "else",
        "  F_result = 2",
        "set MTE3 F_result",
    ]


# --- where names are looked up ----------------------------------------------------------------

SCOPES = """
constexpr uint32_t K = 1;
constexpr pipe_t P = PIPE_V;
using T = uint8_t;
inline void go() { aclshmem_barrier_all(); }
namespace a { constexpr uint32_t K = 2; }
namespace b {
constexpr uint32_t K = 3;
namespace a { constexpr uint32_t K = 4; }
using T = uint16_t;
inline void aclshmem_barrier_all() {}
struct Empty {};
struct Base { static constexpr uint32_t FROM_BASE = 5; };
struct Outer : Empty, Base {
  static constexpr uint32_t K = 6;
  static constexpr pipe_t P = PIPE_MTE3;
  static void go() { ::aclshmemx_barrier_all_vec(); }
  struct Inner {
    uint32_t k{7};
    uint32_t Own() { return K; }
    uint32_t Global() { return ::K + ::a::K * 10; }
    uint32_t Wide() { ::T x = 257; return x; }
    void Calls() { go(); ::go(); aclshmem_barrier_all(); ::aclshmem_barrier_all(); }
    void Flags() { CrossCoreSetFlag<2, P>(1); CrossCoreSetFlag<2, ::P>(2); }
  };
  uint32_t Inherited() { return FROM_BASE; }
};
}
"""


@pytest.mark.parametrize(
    ("expression", "value"),
    [("i.Own()", 6), ("i.Global()", 21), ("i.Wide()", 1), ("o.Inherited()", 5)],
)
def test_names_in_classes_and_the_global_namespace(value_of: ValueOf, expression: str, value: int) -> None:
    assert value_of(expression, SCOPES, "b::Outer o; b::Outer::Inner i;") == value


def test_calls_in_classes_and_the_global_namespace(lower: Lower) -> None:
    assert lower("b::Outer::Inner i; i.Calls(); i.Flags();", SCOPES) == [
        "aclshmemx_barrier_all_vec",
        "aclshmem_barrier_all",
        "aclshmem_barrier_all",
        "set MTE3 1",
        "set V 2",
    ]


def test_a_library_function_and_one_that_a_using_opens(lower: Lower) -> None:
    before = "namespace a { void aclshmem_barrier_all() {} }\nusing namespace a;\n"
    assert "of the library or of a" in refused(lower, BARRIER, before)


def test_a_shift_that_is_not_computed(value_of: ValueOf) -> None:
    before = "constexpr uint32_t BITS = 32;\nconstexpr uint32_t MASK = BITS >= 32 ? ~0u : (1u << BITS) - 1;\n"
    assert value_of("MASK", before) == 2**32 - 1


@pytest.mark.parametrize(
    "before",
    [
        "constexpr int K = 0; namespace o { namespace a { constexpr int K = 1; } namespace b {"
        " using namespace a; inline int F() { return K; } } }",
        "constexpr int K = 0; namespace o { namespace a { constexpr int K = 1; } namespace b {"
        " using a::K; inline int F() { return K; } } }",
        "constexpr int K = 0; inline namespace v { constexpr int K = 1; } namespace o { namespace b {"
        " inline int F() { return K; } } }",
        "constexpr int K = 0; namespace o { constexpr int K = 1; namespace b {"
        " inline int F() { return K; } } }",
    ],
)
def test_a_name_of_several_visible_namespaces_is_refused(lower: Lower, before: str) -> None:
    """Which one is meant depends on order and on what is opened where: it is never guessed."""
    assert "K is ambiguous" in refused(lower, "CrossCoreSetFlag<2, PIPE_MTE3>(o::b::F());", before)


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("struct A { int F() { return 0; } }; struct B { int F() { return 1; } };"
         "struct D : A, B { using B::F; };", "brings names in"),
        ("struct A { static constexpr int K = 1; };"
         "template<int K> struct T : A { int F() { return K; } }; using D = T<0>;", "template parameter K"),
        ("inline int G() { return 1; } template<typename X> struct B { int G() { return 0; } };"
         "template<typename X> struct T : B<X> { int F() { return G(); } }; using D = T<int>;",
         "depends on its template parameters"),
        ("namespace o { constexpr int K = 1; } namespace a { constexpr int K = 0; }"
         "namespace q { namespace a = ::o; inline int G() { return a::K; } }"
         "struct D { int F() { return q::G(); } };", "a namespace alias"),
        ('_Pragma("once") struct D { int F() { return 0; } };', "_Pragma"),
    ],
)  # fmt: skip
def test_classes_whose_names_are_unclear_are_refused(lower: Lower, before: str, reason: str) -> None:
    assert reason in refused(lower, "D d; CrossCoreSetFlag<2, PIPE_MTE3>(d.F());", before)


def test_a_definition_outside_its_class_names_the_template_parameters(value_of: ValueOf) -> None:
    """K in it is the constant: the class head's K is not in scope there."""
    before = (
        "constexpr int K = 7; template<int K> struct T { int F(); };"
        "template<int N> int T<N>::F() { return K * 10 + N; }"
    )
    assert value_of("t.F()", before, "T<3> t;") == 73
