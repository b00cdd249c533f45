"""The table of links and nodes: it agrees with the table of accelerators, and refuses what has no source."""

from __future__ import annotations

import pytest

from edl_labs.errors import EdlError
from edl_labs.hardware import accelerator, link, links, pcie_byte_per_s, topologies, topology
from edl_labs.hardware.links import parse

LINK = '[[link]]\nkey = "L"\nbyte_per_s = 1e9\nalpha_s = 1e-6\nsources = {byte_per_s = "a", alpha_s = "b"}\n'
NODE = '[[topology]]\nkey = "2xT4"\naccelerator = "T4"\nranks = 2\ninside = "L"\noutside = "L"\nranks_per_port = 1\n'


@pytest.mark.parametrize("node", topologies(), ids=lambda node: node.key)
def test_a_node_is_what_its_key_says_and_its_inner_link_is_that_of_its_accelerator(node) -> None:
    chip = accelerator(node.accelerator)
    expected = chip.nvlink_byte_per_s or chip.link_byte_per_s

    assert node.key.startswith(f"{node.ranks}x{chip.key.split('-')[0]}")
    assert expected == pytest.approx(node.inside.byte_per_s, rel=1e-9)
    assert node.outside.byte_per_s < node.inside.byte_per_s
    assert node.outside.alpha_s > node.inside.alpha_s


def test_links_of_pcie_are_those_of_the_other_table() -> None:
    assert pcie_byte_per_s(3) == pytest.approx(link("PCIe3x16").byte_per_s, rel=1e-12)
    assert pcie_byte_per_s(4) == pytest.approx(link("PCIe4x16").byte_per_s, rel=1e-12)


def test_keys_are_found_whatever_their_case_and_an_unknown_one_names_its_neighbour() -> None:
    assert topology("8xH100") is topology("8 x h100")
    assert len(links()) == len({one.key.casefold() for one in links()})
    with pytest.raises(EdlError, match="no node '8xH10'") as caught:
        topology("8xH10")
    assert "the nearest: 8xH100" in caught.value.next
    with pytest.raises(EdlError, match="needs text, got None"):
        link(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[link]",
        LINK.replace('"b"', '""') + NODE + 'source = "s"',
        LINK.replace("1e-6", "0") + NODE + 'source = "s"',
        LINK + NODE.replace("ranks = 2", "ranks = 0") + 'source = "s"',
        LINK + NODE + 'source = ""',
        LINK + NODE.replace('inside = "L"', 'inside = "M"') + 'source = "s"',
    ],
)
def test_a_table_without_a_source_or_with_a_figure_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(EdlError, match="table of links cannot be read"):
        parse(text)


def test_the_table_that_those_are_made_of_is_a_good_one() -> None:
    (one,), (node,) = parse(LINK + NODE + 'source = "s"')

    assert (one, 2) == (node.inside, node.ranks)
