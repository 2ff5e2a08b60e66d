"""Undo, redo, merging, grouping, and when a document counts as saved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from designer.graph import commands
from designer.graph.edits import ChangeSet, Edit
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.model import Foreign, Frame, Layer
from designer.graph.template import Template
from designer.graph.template_commands import make_template


@pytest.fixture
def history() -> History:
    return History(Graph([Layer("a", "t"), Layer("b", "t")]))


def slide(history: History, value: int, key: str = "a.amount") -> None:
    history.commit(commands.set_params(history.graph, {"a": {"amount": str(value)}}, merge_key=key))


def test_undo_and_redo_walk_through_the_steps(history: History) -> None:
    states = [history.graph.copy()]
    for number in range(5):
        history.commit(commands.add_layer(history.graph, Layer(f"n{number}", "t")))
        states.append(history.graph.copy())
    for state in reversed(states[:-1]):
        assert history.undo()
        assert history.graph == state
    assert history.undo() is None
    for state in states[1:]:
        assert history.redo()
        assert history.graph == state
    assert history.redo() is None


def test_an_edit_that_changes_nothing_is_no_step(history: History) -> None:
    assert not history.commit(Edit("nothing"))
    assert not history.commit(commands.move_layers(history.graph, {"a": (0, 0)}))
    assert history.undo_title is None


def test_a_dragged_slider_is_one_step(history: History) -> None:
    for value in range(10):
        slide(history, value)
    assert history.graph["a"].params == {"amount": "9"}
    history.undo()
    assert history.graph["a"].params == {}
    history.redo()
    assert history.graph["a"].params == {"amount": "9"}


def test_merging_ends_at_a_seal_at_another_key_at_undo_and_at_saving(history: History) -> None:
    slide(history, 1)
    history.seal()
    slide(history, 2)
    slide(history, 3, "other")
    history.mark_clean()
    slide(history, 4, "other")
    history.undo()
    assert history.graph["a"].params == {"amount": "3"}
    assert history.is_clean
    slide(history, 5, "other")
    for expected in ("3", "2", "1"):
        history.undo()
        assert history.graph["a"].params == {"amount": expected}


def test_a_slider_dragged_back_leaves_no_step(history: History) -> None:
    slide(history, 1)
    history.seal()
    slide(history, 2)
    slide(history, 1)
    assert history.undo() is not None
    assert history.graph["a"].params == {}


def test_a_slider_dragged_back_and_on_leaves_the_step_before_alone(history: History) -> None:
    slide(history, 1)
    history.mark_clean()
    for value in (2, 1, 3, 4):
        slide(history, value)
    history.undo()
    assert history.graph["a"].params == {"amount": "1"}
    assert history.is_clean


def test_a_slider_dragged_back_does_not_lose_what_was_saved(history: History) -> None:
    """The step that the drag began is gone, and the one before it is the present one again."""
    slide(history, 1)
    history.mark_clean()
    slide(history, 2)
    assert not history.is_clean
    slide(history, 1)
    assert history.is_clean


def test_a_group_is_one_step(history: History) -> None:
    before = history.graph.copy()
    with history.group("Two things"):
        history.commit(commands.add_layer(history.graph, Layer("c", "t")))
        with history.group("inner"):
            history.commit(commands.rename_layer(history.graph, "c", "d"))
        assert history.undo() is None
    after = history.graph.copy()
    assert history.undo_title == "Two things"
    history.undo()
    assert history.graph == before
    history.redo()
    assert history.graph == after


def test_a_group_that_ends_where_it_began_is_no_step(history: History) -> None:
    with history.group("There and back"):
        history.commit(commands.rename_layer(history.graph, "a", "c"))
        history.commit(commands.rename_layer(history.graph, "c", "a"))
    assert history.undo_title is None
    assert history.is_clean


def test_an_error_in_a_group_undoes_it(history: History) -> None:
    before = history.graph.copy()

    def fail() -> None:
        with history.group("Broken"):
            history.commit(commands.add_layer(history.graph, Layer("c", "t")))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert history.graph == before
    assert history.undo_title is None
    history.commit(commands.add_layer(history.graph, Layer("c", "t")))
    assert history.undo_title == "Add c"


def test_listeners_hear_every_change_and_can_leave(history: History) -> None:
    heard: list[ChangeSet] = []
    leave = history.subscribe(heard.append)
    history.commit(commands.rename_layer(history.graph, "a", "c"))
    history.undo()
    assert [c.renamed for c in heard] == [{"a": "c"}, {"c": "a"}]
    leave()
    history.redo()
    assert len(heard) == 2


def test_a_document_is_clean_where_it_was_saved(history: History) -> None:
    assert history.is_clean
    slide(history, 1)
    assert not history.is_clean
    history.mark_clean()
    assert history.is_clean
    history.undo()
    assert not history.is_clean
    history.redo()
    assert history.is_clean


def test_what_was_saved_can_be_out_of_reach(history: History) -> None:
    """Saved, undone, and then something else done: no undo leads back to what was saved."""
    slide(history, 1, "")
    history.mark_clean()
    history.undo()
    slide(history, 2, "")
    assert not history.is_clean
    history.undo()
    assert not history.is_clean


def test_only_so_many_steps_are_kept() -> None:
    history = History(Graph([Layer("a", "t")]), limit=3)
    for value in range(5):
        slide(history, value, "")
    undone = 0
    while history.undo():
        undone += 1
        assert not history.is_clean
    assert undone == 3
    assert history.graph["a"].params == {"amount": "1"}


def test_a_saved_step_that_was_dropped_may_still_be_the_present_one() -> None:
    history = History(Graph([Layer("a", "t")]), limit=2)
    for value in range(3):
        slide(history, value, "")
    history.mark_clean()
    for value in range(3, 5):
        slide(history, value, "")
    assert not history.is_clean
    history.undo()
    history.undo()
    assert history.is_clean


def test_an_edit_made_for_another_state_is_refused(history: History) -> None:
    edit = commands.rename_layer(history.graph, "a", "c")
    history.commit(edit)
    before = history.graph.copy()
    with pytest.raises(ValueError, match="has changed since"):
        history.commit(edit)
    assert history.graph == before


def test_a_change_of_anything_that_a_layer_looks_like_redraws_it() -> None:
    before = Layer("a", "t")
    for after in (replace(before, attributes={"lw:x": "1"}), replace(before, children=(Foreign("<x/>"),))):
        change = ChangeSet.of(Edit("", {"a": (before, after)}))
        assert change.redrawn == {"a"}
        assert not change.computed


@pytest.mark.parametrize(
    "kind",
    ["added", "removed", "rewired", "reconfigured", "moved", "frames", "properties", "templates", "redrawn"],
)
def test_a_change_of_one_kind_is_a_change(kind: str) -> None:
    assert ChangeSet(**{kind: frozenset({"a"})})
    assert not ChangeSet(renamed={"a": "b"}, renamed_templates={"a": "b"})
    assert ChangeSet(settings={"threads": 0})


def test_a_change_reports_only_what_differs() -> None:
    layer = Layer("a", "t")
    frame, template = Frame("f"), Template("block")
    same = Edit(
        "x",
        {"a": (layer, layer)},
        {"name": ("n", "n")},
        {"f": (frame, frame)},
        templates={"block": (template, template)},
        settings={"threads": (2, 2)},
        renamed={"gone": "here"},
    )
    assert not same
    assert ChangeSet.of(same) == ChangeSet()
    # layers that move into a template have no new name in the network
    made = make_template(Graph([layer]), ["a"], "block")
    assert made.renamed == {"a": "block_0.a"}
    assert ChangeSet.of(made).renamed == {}
    assert ChangeSet.of(made).removed == {"a"}
    assert ChangeSet.of(made).added == {"block_0"}
    renamed = commands.rename_layer(Graph([layer]), "a", "b")
    assert ChangeSet.of(renamed).renamed == {"a": "b"}
    assert ChangeSet.of(renamed.reversed()).renamed == {"b": "a"}


def test_an_edit_followed_by_another_keeps_the_title_and_key_of_the_first() -> None:
    first, second = Edit("a", merge_key="one"), Edit("b", merge_key="two")
    assert (first.then(second).title, first.then(second).merge_key) == ("a", "one")
    assert first.then(second, "both").title == "both"


def test_what_two_edits_leave_equal_is_not_in_the_edit_of_both() -> None:
    """Equal values need not be the same object."""
    layers = [Layer("a", "t", (0, 0), params={"x": each}) for each in ("1", "2", "1")]
    there = Edit("", {"a": (layers[0], layers[1])}, frames={"f": (Frame("f"), None)}, properties={"p": (None, "1")})
    back = Edit("", {"a": (layers[1], layers[2])}, frames={"f": (None, Frame("f"))}, properties={"p": ("1", None)})
    both = there.then(back)
    assert (both.layers, both.frames, both.properties) == ({}, {}, {})
    assert not both


def test_a_dragged_slider_after_each_other_operation_is_a_step_of_its_own(history: History) -> None:
    """Whatever ends a drag: the steps before it keep their values, and undo returns to each of them."""

    def grouped() -> None:
        with history.group("Both"):
            slide(history, 50)
            slide(history, 51)

    ends = {
        "release": history.seal,
        "undo and redo": lambda: (history.undo(), history.redo()),
        "save": history.mark_clean,
        "group": grouped,
    }
    for number, (name, end) in enumerate(ends.items(), 1):
        slide(history, 10 * number)
        end()
        before, steps = history.graph.copy(), history.steps
        slide(history, 10 * number + 1)
        slide(history, 10 * number + 2)
        assert history.steps == steps + 1, name
        history.undo()
        assert history.graph == before, name
        history.redo()
        history.seal()


def test_a_step_that_was_undone_survives_what_is_put_aside_but_not_an_edit(history: History) -> None:
    slide(history, 1)
    history.undo()
    history.put(Edit("View", properties={"view": (None, "0,0,1")}))
    assert history.redo_title is not None
    assert history.redo()
    assert history.graph["a"].params == {"amount": "1"}
    history.undo()
    history.commit(commands.move_layers(history.graph, {"b": (16, 0)}))
    assert history.redo_title is None
    assert history.redo() is None


def test_no_step_is_undone_inside_a_group(history: History) -> None:
    slide(history, 1)
    history.seal()
    slide(history, 2)
    history.undo()
    with history.group("Group"):
        assert history.undo() is None
        assert history.redo() is None
        assert history.graph["a"].params == {"amount": "1"}
    assert history.redo()
    assert history.graph["a"].params == {"amount": "2"}


def test_listeners_follow_a_group_that_fails_and_can_leave_while_they_are_called(history: History) -> None:
    heard: list[str] = []

    def once(change: ChangeSet) -> None:
        heard.append("once")
        leave()

    leave = history.subscribe(once)
    history.subscribe(lambda change: heard.append("always"))
    follower = history.graph.copy()
    history.subscribe(lambda change: [follower.apply(Edit("", {n: (follower.get(n), history.graph.get(n))}))
                                      for n in change.computed | change.removed | change.moved])  # fmt: skip
    slide(history, 1)
    slide(history, 2)
    assert heard == ["once", "always", "always"]
    before = history.graph.copy()

    def fail() -> None:
        with history.group("Fails"):
            history.commit(commands.add_layer(history.graph, Layer("c", "t")))
            history.commit(commands.move_layers(history.graph, {"b": (16, 0)}))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert history.graph == before == follower
    assert heard[3:] == ["always"] * 4
