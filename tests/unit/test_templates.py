"""Compiled text that is shared by texts which differ in numbers only."""

from mc2proof.protocol.builtin import ring_all_to_all
from mc2proof.protocol.templates import compiled
from mc2proof.protocol.unroll import unroll


def value_of(text: str) -> object:
    code, numbers = compiled(f"found = {text}")
    names: dict[str, object] = dict(numbers)
    exec(code, names)
    return names["found"]


def test_every_number_keeps_its_value() -> None:
    for text in (
        "7", "-7 // 2", "(3 + 4) * 10", "[1, 22, 333]", "max(4, 5)", "(1, 2, -3)[2]", "(6,)[0]",
        "'a 1 b2' * 2", '"it\'s 9" + "1"', "'\\'5' + '6'", "[v1 + 1 for v1 in range(0, 6, 2)]", "{1: 2}[1]",
    ):  # fmt: skip
        assert value_of(text) == eval(text), text


def test_texts_that_differ_in_numbers_share_their_code() -> None:
    one, other, different = compiled("x = 1 + 20"), compiled("x = 300 + 4"), compiled("x = 1 - 20")
    assert one[0] is other[0]
    assert one[0] is not different[0]
    assert list(one[1].values()) == [1, 20]
    assert compiled("x = 'n 1'")[0] is not compiled("x = 'n 2'")[0]


def test_tuples_stay_constants() -> None:
    code, numbers = compiled("x = (4, 5, 6)[i]")
    assert numbers == {}
    assert (4, 5, 6) in code.co_consts


def test_instances_whose_programs_share_their_code_are_their_own() -> None:
    protocol = ring_all_to_all()
    alone = [unroll(protocol, {"ranks": 2, "tile_cnt": tiles}).signature() for tiles in (5, 6, 5)]
    assert alone[0] == alone[2] != alone[1]
