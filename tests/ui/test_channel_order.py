"""Orders of channels, each as a slow computation one channel at a time says."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.ui.inspector import order as module
from app.ui.inspector.order import SIDE, Order, Sorter, order_of


def channels(seed: int, height: int = 6, width: int = 5) -> np.ndarray:
    """Random ones, one of zeros, a negative, a multiple and a shifted one of another, and one with what is not finite."""
    random = np.random.default_rng(seed)
    data = random.normal(size=(9, height, width)).astype(np.float32)
    data[2] = 0
    data[3] = -2 * data[0]
    data[4] = 0.5 * data[1]
    data[5] = data[6] + 3
    data[7, 0, :3] = (np.nan, np.inf, -np.inf) if seed else (np.inf, np.inf, 1)
    data[8] = np.maximum(data[8], 0)
    return data


def finite(plane: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(plane), plane, 0).astype(np.float64)


def key(plane: np.ndarray, order: Order) -> float:
    if order is Order.ZEROS:
        return float(np.mean(plane == 0))
    return float(np.mean(finite(plane) ** 2)) if order is Order.ENERGY else float(np.mean(finite(plane)))


@pytest.mark.parametrize("order", [Order.ENERGY, Order.MEAN, Order.ZEROS])
@pytest.mark.parametrize("seed", range(3))
def test_channels_are_ordered_by_their_statistic(order: Order, seed: int) -> None:
    """Largest first, or those with the most zeros; equal ones stay in the order of their numbers."""
    data = channels(seed)
    assert order_of(data, order) == sorted(range(len(data)), key=lambda c: -key(data[c], order))
    same = np.ones((4, 2, 2), np.float32)
    assert order_of(same, order) == [0, 1, 2, 3]
    assert order_of(data, Order.INDEX) == list(range(9))


@pytest.mark.parametrize("size", [(6, 5), (SIDE, SIDE), (3 * SIDE + 1, SIDE + 1)])
@pytest.mark.parametrize("seed", range(3))
def test_a_chain_of_similar_channels_goes_on_with_the_best_correlation_that_is_left(
    size: tuple[int, int], seed: int
) -> None:
    """From the strongest one; large channels are compared at a reduced size. A negative comes late."""
    data = channels(seed, *size)
    down, across = (-(-side // SIDE) for side in size)
    small = [finite(plane[::down, ::across]).reshape(-1) for plane in data]
    left = list(range(len(data)))
    chain = [max(left, key=lambda c: float(small[c] @ small[c]))]
    left.remove(chain[0])

    def alike(a: int, b: int) -> float:
        one, two = small[a] - small[a].mean(), small[b] - small[b].mean()
        norm = float(np.linalg.norm(one) * np.linalg.norm(two))
        return float(one @ two) / norm if norm else 0.0

    while left:
        chain.append(max(left, key=lambda c: round(alike(chain[-1], c), 5)))
        left.remove(chain[-1])
    assert order_of(data, Order.SIMILARITY) == chain
    place = {channel: number for number, channel in enumerate(chain)}
    assert abs(place[1] - place[4]) == abs(place[5] - place[6]) == 1


def test_many_channels_are_sorted_in_a_thread_and_only_the_last_wish_arrives(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, owner = channels(0), QObject()
    sorter = Sorter(owner)
    heard: list[list[int]] = []
    sorter.sorted.connect(heard.append)
    for order in Order:
        sorter.sort(data, order)
        assert heard.pop() == order_of(data, order)
    monkeypatch.setattr(module, "INLINE", 0)
    sorter.sort(data, Order.INDEX)
    assert heard.pop() == list(range(9))
    for chosen in ((Order.ENERGY,), (Order.ENERGY, Order.MEAN), (Order.MEAN, Order.ENERGY, Order.ZEROS)):
        for order in chosen:
            sorter.sort(data, order)
        assert heard == []
        qtbot.waitUntil(lambda: bool(heard))
        assert heard == [order_of(data, chosen[-1])]
        heard.clear()
    for chosen in ((Order.ENERGY,), (Order.ENERGY, Order.MEAN)):  # what was begun, and what waits
        for order in (*chosen, Order.INDEX):
            sorter.sort(data, order)
        for _ in range(3):
            sorter.wait()
            qtbot.waitUntil(lambda: not sorter._background.running)
        assert heard == [list(range(9))]
        heard.clear()
