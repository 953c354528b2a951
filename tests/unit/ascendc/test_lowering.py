"""What C++ means: types and promotions, objects, templates, calls, branches, loops."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mc2proof.protocol.program import Protocol, Role, SetFlag

Lower = Callable[..., list[str]]
ValueOf = Callable[..., int]
LoadText = Callable[..., Protocol]


def flag(expression: str) -> str:
    return f"CrossCoreSetFlag<0x2, PIPE_MTE3>({expression});"


# --- integers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("n - 8", 2**32 - 1),  # unsigned wraps
        ("s + n", 2),  # int + unsigned is unsigned
        ("s / 2", -2),  # toward zero
        ("s % 3", -2),
        ("s < n", 0),  # -5 is compared as unsigned
        ("(int64_t)s < n", 1),  # as a 64-bit number it is not
        ("s >> 1", -3),
        ("1u << 31", 2**31),
        ("0u - 1", 2**32 - 1),
        ("static_cast<uint8_t>(n * 100)", 700 % 256),
        ("(uint16_t)s", 65531),
        ("uint64_t(s)", 2**64 - 5),
        ("(uint64_t)(uint32_t)s", 2**32 - 5),
        ("static_cast<int8_t>(200) + 0", -56),
        ("static_cast<uint8_t>(250) + static_cast<uint8_t>(10)", 260),  # promoted to int
        ("~static_cast<uint8_t>(1)", -2),
        ("-n", 2**32 - 7),
        ("+s", -5),
        ("!n", 0),
        ("(bool)s + (bool)n", 2),
        ("n > 3 ? s : n", 2**32 - 5),  # the common type of both arms
        ("true ? s : n", 2**32 - 5),
        ("n ^ 5 | 8 & 12", 10),
        ("0x10 + 010 + 0b11 + 1'000", 1027),
        ("'a' + 0", 97),
        ("2147483648 > 0 && -1 < 0u", 0),
        ("sizeof(uint32_t) + sizeof(n) + sizeof(heap)", 16),
        ("sizeof(bool)", 1),
        ("(n)-3", 4),
        ("(n)*(2)", 14),
        ("min(n, 3u) + AscendC::Std::max(s, 2)", 5),
        ("AscendC::GetBlockIdx() * 10 + aclshmem_my_pe()", 31),
        ("GetBlockNum() + aclshmem_n_pes() + GetSubBlockIdx() + GetSubBlockNum()", 9),
        ("n and not (s or n) or n not_eq 7", 0),
    ],
)
def test_integer_expressions(value_of: ValueOf, expression: str, value: int) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("uint8_t x = 300;", 44),
        ("int8_t x{-1};", -1),
        ("uint32_t x(5);", 5),
        ("uint32_t x(n);", 7),
        ("auto x = s - n;", 2**32 - 12),
        ("uint32_t x = n; x += 3; x *= 2; x -= 1; x <<= 1; x |= 1; x %= 1000;", 39),
        ("uint32_t y = n; uint32_t x = y++ * 10 + y;", 78),
        ("uint32_t y = n; uint32_t x = ++y * 10 + y--;", 88),
        ("uint8_t x = 255; x++;", 0),
        ("int x, y; x = y = 3; x = x + y;", 6),
        ("uint32_t a[2] = {1, 2}; a[1] += a[0]; uint32_t x = a[1];", 3),
        ("uint32_t a[3] = {}; uint32_t x = a[2];", 0),
        ("uint32_t y = 1; uint32_t& x = y; x = 9; x = y;", 9),
        ("uint32_t y = 1; uint32_t* p = &y; *p = 8; uint32_t x = y;", 8),
        ("uint32_t x = 1; { uint32_t x = 2; x = 3; }", 1),
        ("uint32_t x; if (n > 3) { x = 1; } else { x = 2; }", 1),
        ("uint32_t x = 1; if (n > 9) x = 2; else if (n == 7) x = 3;", 3),
        (
            "uint32_t x = 0; switch (n) { case 6: x = 1; break; case 7: case 8: x = 2; break; default: ; }",
            2,
        ),
        ("uint32_t x = 0; switch (n) { default: x = 3; break; case 6: { x = 1; break; } }", 3),
        ("uint32_t x = 0; switch (2) { case 1: x = 1; break; case 2: x = 2; }", 2),
        ("uint32_t x = 0; do { x++; } while (0);", 1),
        ("bool x = heap != nullptr;", 1),
        ("int64_t x = (heap + 12) - (heap + 2);", 10),
        ("constexpr uint32_t y = 3; const uint32_t x = y;", 3),
        ("uint32_t x = (1, 2);", 2),
        ("if (uint32_t y = 3; n > y) {} uint32_t x = 1;", 1),
    ],
)
def test_statements(value_of: ValueOf, body: str, value: int) -> None:
    assert value_of("x", body=body) == value


def test_names_of_namespaces_enums_and_macros(value_of: ValueOf) -> None:
    before = """
#define DEPTH 4
#define TWICE_IS_NO_NUMBER(x) ((x) * 2)
namespace a { constexpr uint32_t V = 1; namespace b { static const uint32_t W = V + 1; } }
namespace c { constexpr uint32_t V = 9; }
enum Plain { P, Q = 5, R };
enum class Scoped : uint8_t { S = 2, T };
"""
    assert value_of("a::V * 10 + a::b::W", before) == 12
    assert value_of("DEPTH + Q + R", before) == 15
    assert value_of("static_cast<int>(Scoped::T)", before) == 3


# --- addresses --------------------------------------------------------------------------------

PUT = "aclshmemx_udma_put_nbi({}, heap, (__ubuf__ uint8_t*)nullptr, n, 1);"


@pytest.mark.parametrize(
    ("address", "offset"),
    [
        ("heap", "heap"),
        ("heap + n", "heap + n"),
        ("n + heap + 4", "heap + n + 4"),
        ("(GM_ADDR)(aclshmem_ptr(heap, aclshmem_my_pe())) + n", "heap + n"),
        ("(GM_ADDR)(heap) + n", "heap + n"),
        ("(GM_ADDR)(heap) + n * 4 - 8", "heap + n * 4 - 8"),
        ("(GM_ADDR)(heap + n) - 4", "heap + n - 4"),
        ("(GM_ADDR)((uint64_t)(heap) + n)", "heap + n"),
        ("reinterpret_cast<__gm__ uint8_t*>(reinterpret_cast<uint64_t>(heap) + n)", "heap + n"),
        ("(__gm__ uint8_t*)((__gm__ uint32_t*)heap + n)", "heap + n * 4"),
        ("(GM_ADDR)((__gm__ uint32_t*)(heap) + n)", "heap + n * 4"),
        ("&heap[n]", "heap + n"),
        ("n > 3 ? heap + 1 : heap + 2", "heap + (n > 3 ? 1 : 2)"),
    ],
)
def test_addresses(lower: Lower, address: str, offset: str) -> None:
    assert lower(PUT.format(address)) == [f"put n from heap to {offset} of 1"]


def test_a_cast_keeps_the_base_in_every_context(lower: Lower) -> None:
    """The grammar alone reads this as a cast of a cast of ``+n`` and loses the address."""
    before = """
class Comm {
public:
  __aicore__ GM_ADDR At(uint64_t i) { return (GM_ADDR)(aclshmem_ptr(base_, rank_)) + i * size_; }
  GM_ADDR base_;
  uint32_t rank_;
  uint64_t size_{512};
};
"""
    body = "Comm c; c.base_ = heap; c.rank_ = aclshmem_my_pe();" + PUT.format("c.At(n)")
    assert lower(body, before) == ["put n from heap to heap + n * 512 of 1"]


def test_elements_are_counted_in_the_destinations_type(lower: Lower) -> None:
    body = """
  __gm__ uint32_t* p = (__gm__ uint32_t*)heap;
  aclshmemx_udma_put_nbi(p + 1, p + n, (__ubuf__ uint32_t*)nullptr, 16, GetBlockIdx());
"""
    assert lower(body) == ["put 64 from heap + n * 4 to heap + 4 of block"]


def test_words_in_memory(lower: Lower) -> None:
    body = """
  __gm__ uint32_t* p = (__gm__ uint32_t*)heap;
  uint32_t seen = p[2];
  if (*p == 3 && n > 1) { CrossCoreSetFlag<2, PIPE_MTE3>(seen); }
  p[1] = 0;
"""
    assert lower(body) == [
        "word = *(heap + 8)",
        "word_2 = *(heap)",
        "if word_2 == 3 && n > 1",
        "  set MTE3 word",
        "Reset",
    ]


# --- objects ----------------------------------------------------------------------------------

CLASSES = """
namespace util {
template <typename T, uint32_t Depth = 4, bool Wide = false>
class Ring : public Base<uint64_t> {
public:
  __aicore__ inline Ring() {}
  __aicore__ inline Ring(uint32_t first, uint32_t second = 2) : first_(first), second_{second} { third_ = 3; }
  __aicore__ inline void Init(uint32_t n);
  __aicore__ inline uint32_t Slot(uint32_t i) const { return i % Depth; }
  __aicore__ inline uint32_t Size() const;
  __aicore__ inline uint32_t operator()(uint32_t i) { return Slot(i) + this->n_; }
  static __aicore__ uint32_t Twice(uint32_t x) { return 2 * x; }
  static constexpr uint32_t EXTRA = Depth + 1;
  using Element = T;
  uint32_t first_{11};
  uint32_t second_ = 12;
  uint32_t third_;
private:
  uint32_t n_{0};
};
template <typename U, uint32_t D, bool W>
__aicore__ inline void Ring<U, D, W>::Init(uint32_t n) { if constexpr (W) { n_ = n * D; } else { n_ = n; } }
template <typename T, uint32_t Depth, bool Wide>
__aicore__ inline uint32_t Ring<T, Depth, Wide>::Size() const { return n_ * sizeof(Element) + EXTRA; }
struct Pair { uint32_t a; uint32_t b = 7; uint8_t c[2]; };
struct Outer { Pair inner; __aicore__ uint32_t Sum() { return inner.a + inner.b; } };
struct Derived : Outer { uint32_t own = 1; __aicore__ uint32_t All() { return Sum() + own + Outer::Sum(); } };
}
template <typename T> struct Base { uint32_t inherited = sizeof(T); uint32_t Get() { return inherited; } };
inline uint32_t Fill(util::Pair& p, const util::Pair q, uint32_t* out, uint32_t extra = 5) {
  p.a = q.b; *out = extra; return p.a + extra;
}
template <typename T, uint32_t N = 2> uint32_t Bytes(T x) { return sizeof(T) * N; }
"""


@pytest.mark.parametrize(
    ("body", "expression", "value"),
    [
        ("util::Ring<uint16_t> r; r.Init(n);", "r.Size()", 19),
        ("util::Ring<uint16_t, 8, true> r; r.Init(n);", "r.Size()", 7 * 8 * 2 + 9),
        ("util::Ring<uint8_t> r;", "r.Slot(n) * 100 + r.first_ + r.second_", 323),
        ("util::Ring<uint8_t> r(1);", "r.first_ * 100 + r.second_ * 10 + r.third_", 123),
        ("util::Ring<uint8_t> r{5, 6};", "r.first_ * 100 + r.second_ * 10 + r.third_", 563),
        ("util::Ring<uint8_t> r; r.Init(3);", "r(n)", 6),
        ("util::Ring<uint64_t> r;", "r.Get() + r.inherited", 16),
        ("", "util::Ring<uint8_t>::Twice(n) + util::Ring<uint8_t, 6>::EXTRA", 21),
        ("util::Pair p{1};", "p.a * 100 + p.b * 10 + p.c[1]", 170),
        ("util::Pair p = {1, 2, {3, 4}};", "p.a * 100 + p.b * 10 + p.c[1]", 124),
        ("util::Pair p{1}; util::Pair q = p; q.a = 9; p.b = q.a;", "p.a * 10 + p.b", 19),
        ("util::Pair p{1}; util::Pair* q = &p; q->a = 9;", "p.a", 9),
        ("util::Pair p{1}; auto& q = p; q.a = 9;", "p.a", 9),
        ("util::Pair p; uint32_t o; Fill(p, {3, 4}, &o);", "p.a * 10 + o", 45),
        ("util::Pair p; uint32_t o; auto r = Fill(p, util::Pair{3, 4}, &o, 6);", "r", 10),
        ("util::Outer o{{1, 2}}; o.inner.a = 5;", "o.Sum()", 7),
        ("util::Derived d; d.inner.a = 2;", "d.All()", 19),
        ("util::Outer list[2]; list[1].inner.a = 3;", "list[1].Sum()", 10),
        ("", "Bytes(n) + Bytes<uint64_t, 4>(n) + Bytes(static_cast<uint8_t>(1))", 42),
    ],
)
def test_objects(value_of: ValueOf, body: str, expression: str, value: int) -> None:
    assert value_of(expression, CLASSES, body) == value


def test_the_namespace_of_the_caller_decides(value_of: ValueOf) -> None:
    before = """
namespace a { uint32_t F() { return 1; } uint32_t G() { return F(); } }
namespace b { uint32_t F() { return 2; } uint32_t G() { return F(); } }
"""
    assert value_of("a::G() * 10 + b::G() + b::F() * 100", before) == 212


def test_aliases_and_dependent_names(value_of: ValueOf) -> None:
    before = """
typedef unsigned int Word;
template <typename T> using Same = T;
struct Kernel { using Element = Same<uint16_t>; struct Params { Word a; Element b = 3; }; };
template <typename K> struct User {
  using P = typename K::Params; P p;
  uint32_t Get() { return p.b + sizeof(typename K::Element); } };
"""
    assert value_of("u.Get()", before, "User<Kernel> u;") == 5


# --- fields of opaque structs -----------------------------------------------------------------


def test_fields_by_name_through_references_and_pointers(lower: Lower) -> None:
    before = """
uint32_t Read(const Tiling* t) { return t->comm.tileCnt; }
uint32_t Inner(const Comm& c) { return c.tileCnt + c.bufferSize; }
"""
    body = flag("Read(&tiling) + Inner(tiling.comm)") + "const auto* c = &tiling.comm;" + flag("c->tileCnt")
    assert lower(body, before) == ["set MTE3 tile_cnt + (tile_cnt + buffer_size)", "set MTE3 tile_cnt"]


def test_an_opaque_object_that_the_kernel_fills(lower: Lower) -> None:
    body = "Local p; p.part.slot = n; p.part.slot += 1; Local q = p;" + flag("q.part.slot")
    facts = 'plain_types = ["Local"]\n[fields."part.slot"]\ntype = "uint32_t"\n'
    assert lower(body, facts=facts) == ["set MTE3 n + 1"]


def test_an_opaque_object_from_braces_takes_its_order_from_facts(lower: Lower) -> None:
    body = "Lib::Local<3> p{n, heap, 5};" + flag("p.count + p.rank")
    facts = 'plain_types = ["Local"]\n[field_order]\nLocal = ["uint8_t rank", "address", "uint32_t count"]\n'
    assert lower(body, facts=facts) == ["set MTE3 5 + (uint8_t)n"]


# --- control ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "test", ["ASCEND_IS_AIV", "constexpr (ASCEND_IS_AIV)", "(g_coreType == AscendC::AIV)", "(!ASCEND_IS_AIC)"]
)
def test_role_conditions(lower: Lower, test: str) -> None:
    body = f"if {test} {{ {flag('1')} }} else {{ CrossCoreWaitFlag<2>(2); }}"
    assert lower(body) == ["set MTE3 1"]
    assert lower(body, role=Role.AIC) == ["wait S 2"]


def test_a_condition_that_only_a_run_decides(lower: Lower) -> None:
    body = "if (n > 3 && GetBlockIdx() < n) " + flag("1") + " else { " + flag("2") + flag("3") + "}"
    assert lower(body) == ["if n > 3 && block < n", "  set MTE3 1", "else", "  set MTE3 2", "  set MTE3 3"]


def test_lazy_operands_are_decided_where_they_can_be(lower: Lower) -> None:
    body = "if (false && n / 0) {" + flag("1") + "} if (true || n) {" + flag("2") + "}"
    body += "if (n && true) {" + flag("3") + "} if (n < 3 || false) {" + flag("4") + "}"
    assert lower(body) == ["set MTE3 2", "if n", "  set MTE3 3", "if n < 3", "  set MTE3 4"]


def test_values_that_differ_after_a_branch(lower: Lower) -> None:
    pure = "uint32_t x = 1; if (n > 3) { x = 2; }" + flag("x")
    assert lower(pure) == ["set MTE3 n > 3 ? 2 : 1"]
    body = "uint32_t x = 1; if (n > 3) { x = 2; " + flag("7") + "}" + flag("x")
    assert lower(body) == ["x = 1", "if n > 3", "  set MTE3 7", "  x = 2", "set MTE3 x"]
    both = "uint32_t x; if (n > 3) { x = 2; " + flag("7") + "} else { x = n; }" + flag("x")
    assert lower(both) == ["if n > 3", "  set MTE3 7", "  x = 2", "else", "  x = n", "set MTE3 x"]


def test_early_returns_nest_what_follows(lower: Lower) -> None:
    before = """
void Guarded(uint32_t n) { if (n < 2) { return; } CrossCoreSetFlag<2, PIPE_MTE3>(1); }
uint32_t Pick(uint32_t n) { if (n < 2) { return 5; } uint32_t y = n * 2; if (n < 9) return y; return y + 1; }
"""
    assert lower("Guarded(n);" + flag("2"), before) == ["if n < 2", "else", "  set MTE3 1", "set MTE3 2"]
    assert lower(flag("Pick(n)"), before) == ["set MTE3 n < 2 ? 5 : (n < 9 ? n * 2 : n * 2 + 1)"]


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("for (uint32_t i = 0; i < n; ++i)", "for uint32_t i = 0 .. n"),
        ("for (int32_t i = 0; i < n; i++)", "for int32_t i = 0 .. n"),
        ("for (uint32_t i = 0; n > i; i += 2)", "for uint32_t i = 0 .. n by 2"),
        ("for (int64_t i = s; i < 10; i = i + 3)", "for int64_t i = s .. 10 by 3"),
        ("for (uint32_t i = 1; i <= n; ++i)", "for uint32_t i = 1 .. n + 1"),
        ("for (uint32_t i = 0; i != n; ++i)", "for uint32_t i = 0 .. n"),
        ("for (uint64_t i = n; i < n * 2; ++i)", "for uint64_t i = n .. n * 2"),
        ("for (uint8_t i = 0; i < 200; ++i)", "for uint8_t i = 0 .. 200"),
        ("for (uint32_t i = GetBlockIdx(); i < n; i += 8)", "for uint32_t i = block .. n by 8"),
    ],
)
def test_counted_loops(lower: Lower, head: str, line: str) -> None:
    assert lower(head + "{" + flag("i") + "}") == [line, "  set MTE3 i"]


@pytest.mark.parametrize(
    ("head", "condition", "update"),
    [
        ("for (int32_t i = s; i < n; ++i)", "(uint32_t)i < n", "i + 1"),  # a start below 0 is large
        ("for (uint8_t i = 0; i < n; ++i)", "i < n", "(uint8_t)(i + 1)"),  # wraps before a large bound
        ("for (uint32_t i = 8; i > n; --i)", "i > n", "i - 1"),
        ("for (uint32_t i = 1; i != n; ++i)", "i != n", "i + 1"),
        ("for (uint32_t i = 0; i < n && i < 5; ++i)", "i < n && i < 5", "i + 1"),
        ("for (uint32_t i = 1; i < n; i *= 2)", "i < n", "i * 2"),
        ("for (uint32_t i = 0; i < n; i += s)", "i < n", "i + s"),
    ],
)
def test_other_loops_keep_their_index_in_a_local(
    lower: Lower, head: str, condition: str, update: str
) -> None:
    start = head.split("= ")[1].split(";")[0]
    assert lower(head + "{" + flag("i") + "}") == [
        f"i = {start}", f"while {condition}", "  set MTE3 i", f"  i = {update}",
    ]  # fmt: skip


def test_an_index_that_the_body_changes(lower: Lower) -> None:
    body = "for (uint32_t i = 0; i < n; ++i) {" + flag("i") + " i += 1; }"
    assert lower(body) == ["i = 0", "while i < n", "  set MTE3 i", "  i = i + 1 + 1"]


def test_a_bound_that_the_body_changes(lower: Lower) -> None:
    body = "uint32_t m = n; for (uint32_t i = 0; i < m; ++i) {" + flag("i") + " m -= 1; }"
    assert lower(body) == [
        "m = n", "i = 0", "while i < m", "  set MTE3 i", "  m = m - 1", "  i = i + 1",
    ]  # fmt: skip


def test_toggles_and_offsets_become_locals(lower: Lower) -> None:
    body = """
  uint32_t toggle = 0; uint32_t unused = 0; GM_ADDR p = heap; uint32_t done = 0;
  for (uint32_t i = 0; i < n; ++i) {
    aclshmemx_udma_put_nbi(p, heap, (__ubuf__ uint8_t*)nullptr, 4, toggle);
    toggle = 1 - toggle; p = p + 64; unused += i; done = i;
  }
"""
    assert lower(body) == [
        "toggle = 0",
        "p = 0",
        "for uint32_t i = 0 .. n",
        "  put 4 from heap to heap + p of toggle",
        "  toggle = 1 - toggle",
        "  p = p + 64",
    ]


def test_a_swap_assigns_as_if_at_once(lower: Lower) -> None:
    body = """
  uint32_t a = 1; uint32_t b = 2;
  for (uint32_t i = 0; i < n; ++i) { CrossCoreSetFlag<2, PIPE_MTE3>(a); uint32_t t = a; a = b; b = t; }
"""
    assert lower(body) == [
        "a = 1", "b = 2", "for uint32_t i = 0 .. n", "  set MTE3 a", "  a_2 = a", "  a = b", "  b = a_2",
    ]  # fmt: skip


def test_a_stale_value_is_never_used(lower: Lower) -> None:
    body = """
  uint32_t x = 0;
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t before = x;
    if (i > 2) { x = x + 1; CrossCoreSetFlag<2, PIPE_MTE3>(x); }
    CrossCoreWaitFlag<2, PIPE_MTE3>(before);
  }
"""
    assert lower(body) == [
        "x = 0",
        "for uint32_t i = 0 .. n",
        "  x_2 = x",
        "  if i > 2",
        "    set MTE3 x + 1",
        "    x_2 = x + 1",
        "  wait MTE3 x",
        "  x = x_2",
    ]


def test_a_flag_that_only_later_iterations_set(lower: Lower) -> None:
    body = """
  bool first = true;
  for (uint32_t i = 0; i < n; ++i) { if (!first) { CrossCoreSetFlag<2, PIPE_MTE3>(i); } first = false; }
"""
    assert lower(body) == [
        "first = 1", "for uint32_t i = 0 .. n", "  if !first", "    set MTE3 i", "  first = 0",
    ]  # fmt: skip


def test_nested_loops_and_names(lower: Lower) -> None:
    body = """
  for (uint32_t i = 0; i < n; ++i) { for (uint32_t i = 0; i < 2; ++i) { CrossCoreSetFlag<2, PIPE_MTE3>(i); } }
  for (uint32_t i = 0; i < n; ++i) { CrossCoreWaitFlag<2, PIPE_MTE3>(i); }
  for (uint32_t rank = 0; rank < 2; ++rank) { CrossCoreWaitFlag<2, PIPE_MTE3>(rank + aclshmem_my_pe()); }
"""
    assert lower(body) == [
        "for uint32_t i = 0 .. n",
        "  for uint32_t i_2 = 0 .. 2",
        "    set MTE3 i_2",
        "for uint32_t i_3 = 0 .. n",
        "  wait MTE3 i_3",
        "for uint32_t rank_2 = 0 .. 2",
        "  wait MTE3 rank_2 + rank",
    ]


def test_continue_nests_what_follows(lower: Lower) -> None:
    body = "for (uint32_t i = 0; i < n; ++i) { if (i == 2) { continue; } " + flag("i") + "}"
    assert lower(body) == ["for uint32_t i = 0 .. n", "  if i == 2", "  else", "    set MTE3 i"]


def test_while_and_do(lower: Lower) -> None:
    body = "uint32_t i = n; while (i > 0) {" + flag("i") + " i--; }"
    assert lower(body) == ["i = n", "while i > 0", "  set MTE3 i", "  i = i - 1"]
    body = "uint32_t i = n; do {" + flag("i") + " i--; } while (i > 0);"
    assert lower(body) == ["set MTE3 n", "i = n - 1", "while i > 0", "  set MTE3 i", "  i = i - 1"]


def test_loops_that_do_nothing_leave_nothing(lower: Lower) -> None:
    body = (
        "for (uint32_t i = 0; i < n; ++i) {} for (uint32_t i = 3; i < 2; ++i) {"
        + flag("i")
        + "} while (false) {}"
    )
    assert lower(body) == []


def test_members_assigned_in_a_loop(lower: Lower) -> None:
    step = "void Step() { at = at + 1; CrossCoreSetFlag<2, PIPE_MTE3>(at); }"
    before = f"struct Run {{ uint32_t at{{0}}; GM_ADDR p; {step} }};"
    body = "Run r; for (uint32_t i = 0; i < n; ++i) { r.p = heap + i; r.Step(); }" + flag("r.at")
    assert lower(body, before) == [
        "at = 0", "for uint32_t i = 0 .. n", "  set MTE3 at + 1", "  at = at + 1", "set MTE3 at",
    ]  # fmt: skip


def test_two_vectors_per_cube(load_text: LoadText) -> None:
    text = """
[[bisheng::core_ratio(1, 2)]]
__global__ __aicore__ void k(GM_ADDR heap) {
  CrossCoreSetFlag<2, PIPE_MTE3>(GetBlockIdx());
  CrossCoreSetFlag<2, PIPE_MTE3>(GetSubBlockIdx() + GetSubBlockNum() + GetTaskRation());
}
"""
    protocol = load_text(text)
    assert protocol.vectors_per_cube == 2
    flags = {
        role: [str(s.flag) for s in block if isinstance(s, SetFlag)]
        for role, block in protocol.programs.items()
    }
    assert flags == {Role.AIV: ["block * 2 + sub", "sub + 2 + 2"], Role.AIC: ["block", "2"]}


def test_without_a_core_ratio_one_to_one_is_assumed(load_text: LoadText) -> None:
    protocol = load_text("__global__ __aicore__ void k(GM_ADDR heap) {}")
    assert protocol.vectors_per_cube == 1
    assert [a.code for a in protocol.assumptions if a.code != "fact"] == ["core-ratio"]


def test_an_entry_for_one_role(load_text: LoadText) -> None:
    protocol = load_text("__global__ __vector__ void k(GM_ADDR heap) { aclshmem_barrier_all(); }")
    assert list(protocol.programs) == [Role.AIV]
