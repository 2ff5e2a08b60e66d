"""Every rule of advice on a small document: the value, the predicted saving, and the edit, which inference accepts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded import check_recorded

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.profiling.advice import RULES, Advisable, advise, measured_saving, split_kernel
from designer.profiling.cost import cost_table
from designer.profiling.quantities import ValueSource, measured
from designer.profiling.schema import OperatorProfile, ProfileRun, RunPeaks

SETTINGS = {"engine": "torch", "layout": "nchw", "precision": "fp32"}
PEAKS = RunPeaks(measured(50e12), measured(1e12), measured(4e12), 0, others={"fp16": measured(200e12)})


def layer(name, type_, inputs="", activation=None, **params):
    sources = tuple(Source(s) for s in inputs.split(",") if s)
    return Layer(name, type_, inputs=sources, params={k: str(v) for k, v in params.items()}, activation=activation)


def graph() -> Graph:
    return Graph(
        [
            layer("image", "input", dims="32x24x3"),
            layer("odd", "convolution", "image", features=36, kernel="3x3"),
            layer("norm", "batch_normalization", "odd"),
            layer("act", "activation", "norm", ActivationSpec("relu")),
            layer("big", "convolution", "act", features=16, kernel="5x5"),
            layer("deep", "depthwise_convolution", "big", kernel="3x3"),
            layer("last", "convolution", "deep", features=3, kernel="3x3"),
            layer("result", "output", "last"),
        ]
    )


BOUNDS = {"norm": "memory", "act": "memory"}


@pytest.fixture
def run(profiling_registry) -> ProfileRun:
    """A run with times chosen so that every rule has a reason."""
    table = cost_table(Inference(graph(), profiling_registry))
    rows = []
    for name, ms in {"odd": 4.0, "norm": 1.0, "act": 1.0, "big": 10.0, "deep": 2.0, "last": 1.0}.items():
        cost, costs = table.group([name]), table.rows[name]
        rows.append(
            OperatorProfile(
                (name,), costs.type, ms, 0.01, inputs=tuple(map(str, costs.inputs)), outputs=tuple(map(str, costs.outputs)),
                flops=cost.flops, bytes=cost.bytes_read + cost.bytes_written, bound=BOUNDS.get(name, "compute"), roof_ms=0.1,
            )
        )  # fmt: skip
    return ProfileRun("torch", "fp32", "nchw", "cuda", 1, "32x24", 19.0, 0.01, tuple(rows), iterations=25, peaks=PEAKS)


def found(run, rule, others=(), settings=SETTINGS):
    return [a for a in advise(Advisable(graph(), run, others, settings)) if a.rule == rule]


def applied(registry, edit) -> Graph:
    changed = graph()
    changed.apply(edit)
    assert not Inference(changed, registry).diagnostics()
    return changed


def test_odd_channels_cost_as_much_as_the_next_multiple_of_eight(run, profiling_registry):
    assert not found(run, "odd-channels")  # FP32 does not use Tensor Cores
    (advice,) = found(replace(run, precision="fp16"), "odd-channels")
    assert advice.layers == ("odd",)  # not the three channels of the result
    assert advice.saving_ms == pytest.approx(4.0 * 8 / 40)
    assert applied(profiling_registry, advice.edit)["odd"].params["features"] == "32"


def test_half_precision_where_the_gpu_is_faster_at_it(run):
    (advice,) = found(run, "full-precision")
    assert advice.saving_ms == pytest.approx(17.0 * 0.75 + 2.0 * 0.5)
    assert advice.edit.settings == {"precision": ("fp32", "fp16")}
    assert "50.0 TFLOP/s" in advice.message
    assert not found(replace(run, device="cpu"), "full-precision")


def test_nchw_in_half_precision(run):
    slow = replace(PEAKS, memory_bytes_per_s=measured(1e9))
    (advice,) = found(replace(run, precision="fp16", peaks=slow), "channels-first")
    assert advice.edit.settings == {"layout": ("nchw", "nhwc")}
    assert 0 < advice.saving_ms <= 17.0
    assert not found(replace(run, precision="fp16", layout="nhwc"), "channels-first")


def test_a_batch_normalization_that_can_be_folded(run):
    (advice,) = found(run, "unfolded-normalization")
    assert (advice.layers, advice.saving_ms, advice.fold) == (("norm",), 1.0, "norm")


def test_memory_bound_layers_in_a_row(run):
    (advice,) = found(replace(run, device="cpu"), "unfused-chain")
    assert advice.layers == ("norm", "act")
    assert 0.5 < advice.saving_ms < 2.0
    assert advice.edit.settings == {"engine": ("torch", "onnxruntime")}


def test_a_5x5_becomes_two_3x3(run, profiling_registry):
    (advice,) = found(run, "large-kernel")
    assert advice.saving_ms == pytest.approx(10.0 * (1 - 9 * (36 + 16) / (25 * 36)))
    changed = applied(profiling_registry, advice.edit)
    assert changed["big"].params["kernel"] == changed["big_b"].params["kernel"] == "3x3"
    assert changed["deep"].inputs == (Source("big_b"),)


def test_the_second_of_two_3x3_gets_a_name_that_is_free(profiling_registry):
    names = ("image", "big", "big_b", "big_bb", "result")
    types = ("input", "convolution", "convolution", "identity", "output")
    params = ({"dims": "16x16x8"}, {"kernel": "5x5", "features": "4"}, {"kernel": "1x1", "features": "2"}, {}, {})
    layers = [
        Layer(name, type_, inputs=(Source(before),) if before else (), params=each)
        for name, type_, each, before in zip(names, types, params, ("", *names), strict=False)
    ]
    changed = Graph(layers)
    changed.apply(split_kernel(changed, "big"))
    assert not Inference(changed, profiling_registry).diagnostics()
    assert changed["big_b"].params == {"kernel": "1x1", "features": "2"}
    assert changed["big_b"].inputs == (Source("big_bbb"),)
    assert changed["big_bbb"].inputs == (Source("big"),)


def test_a_depthwise_convolution_that_is_slower_than_a_full_one(run, profiling_registry):
    slow = tuple(replace(r, time_ms=8.0) if r.name == "deep" else r for r in run.operators)
    (advice,) = found(replace(run, operators=slow), "slow-depthwise")
    assert 0 < advice.saving_ms < 8.0
    assert applied(profiling_registry, advice.edit)["deep"].type == "convolution"
    assert not found(run, "slow-depthwise")  # a full convolution would take longer


def test_a_batch_that_is_too_small(run):
    larger = [replace(run, batch=batch, time_ms=ms) for batch, ms in ((8, 40.0), (32, 155.0))]
    (advice,) = found(run, "small-batch", larger)
    assert advice.source is ValueSource.MEASURED
    assert advice.saving_ms == pytest.approx(19.0 - 40.0 / 8)
    assert "batch 8" in advice.message
    launched = replace(run, operators=tuple(replace(r, bound="launch") for r in run.operators))
    assert "launching" in found(launched, "small-batch")[0].message
    assert not found(run, "small-batch")


def test_only_measured_runs_of_the_same_work_are_compared(run):
    faster = replace(run, batch=8, time_ms=20.0)
    assert found(run, "small-batch", [faster])
    for change in ({"source": ValueSource.MODELLED}, {"flops": 9}, {"size": "64x48"}, {"threads": 7}):
        assert not found(run, "small-batch", [replace(faster, **change)])
        assert not found(run, "better-engine", [replace(faster, engine="onnxruntime", batch=1, **change)])
    predicted = replace(run, source=ValueSource.MODELLED)
    assert not found(predicted, "better-engine", [replace(run, engine="onnxruntime", time_ms=9.0)])


def test_another_engine_that_was_measured_to_be_faster(run):
    rows = tuple(replace(r, time_ms=r.time_ms / 2) for r in run.operators)
    other = replace(run, engine="onnxruntime", operators=rows, time_ms=9.5)
    (advice,) = found(run, "better-engine", [other])
    assert advice.saving_ms == pytest.approx(9.5)
    assert advice.edit.settings == {"engine": ("torch", "onnxruntime")}
    assert "big (5.00 ms)" in advice.message
    assert not found(run, "better-engine", [replace(other, time_ms=19.05)])  # within the noise


def test_after_the_change_the_measured_saving_is_known(run):
    (advice,) = found(run, "large-kernel")
    rows = tuple(replace(r, time_ms=5.0) if r.name == "big" else r for r in run.operators)
    row = measured_saving(advice, run, replace(run, operators=rows, time_ms=14.0))
    assert (row.layers, row.difference_ms, row.verdict) == (("big",), -5.0, "faster")


def test_advice_is_sorted_and_small_savings_are_left_out(run):
    savings = [advice.saving_ms for advice in advise(Advisable(graph(), run, settings=SETTINGS))]
    assert savings == sorted(savings, reverse=True)
    assert min(savings) > 0.19
    assert len(RULES) == 9


def test_a_run_that_emulates_its_number_formats_has_no_advice(run):
    """Its times are those of the rounding."""
    rows = tuple(replace(row, bound="launch") for row in run.operators)
    for precision in ("fp16", "bf16", "fp32"):
        here = replace(run, device="cpu", precision=precision, operators=rows)
        assert advise(Advisable(graph(), here, (), SETTINGS))
        assert not advise(Advisable(graph(), replace(here, engine="emulated"), (), SETTINGS))


PIXELS = 32 * 24


def changed_graph(**layers) -> Graph:
    """The document with other parameters, types or activations of some layers."""
    return Graph([replace(each, **layers.get(each.name, {})) for each in graph()])


def advised(run, document, rule, **more):
    return [a for a in advise(Advisable(document, run, settings=SETTINGS, **more)) if a.rule == rule]


@pytest.mark.parametrize(("bandwidth", "saving_ms"), [(1e9, 1.0006), (1e7, 17.0)])
def test_the_conversion_to_nhwc_and_back_takes_the_bytes_of_all_convolutions_twice(run, bandwidth, saving_ms):
    moved = 4 * (39 * PIXELS + 1008 + 52 * PIXELS + 14416 + 32 * PIXELS + 160 + 19 * PIXELS + 435)
    slow = replace(run, precision="bf16", peaks=replace(PEAKS, memory_bytes_per_s=measured(bandwidth)))
    (advice,) = found(slow, "channels-first")
    assert moved == 500_300
    assert advice.saving_ms == pytest.approx(saving_ms)
    assert advice.layers == ("odd", "big", "deep", "last")
    assert advice.message.startswith("4 convolutions")
    assert not found(replace(slow, device="cpu"), "channels-first")
    assert not found(replace(slow, precision="fp32"), "channels-first")
    assert not found(replace(slow, peaks=None), "channels-first")


def test_a_chain_that_is_fused_moves_its_first_input_and_last_output(run):
    (advice,) = found(replace(run, device="cpu"), "unfused-chain")
    moved = 4 * (144 * PIXELS + 4 * 36)
    assert advice.saving_ms == pytest.approx(2.0 * 4 * 72 * PIXELS / moved)
    assert found(run, "unfused-chain")[0].edit is None  # a GPU
    assert found(replace(run, device="cpu", engine="onnxruntime"), "unfused-chain")[0].edit is None
    for bound, count in (("compute", 0), ("launch", 0), ("cache", 1)):
        rows = tuple(replace(r, bound=bound) if r.name == "norm" else r for r in run.operators)
        assert len(found(replace(run, operators=rows), "unfused-chain")) == count


def test_a_full_convolution_takes_as_long_as_the_median_of_the_others(run):
    slow = tuple(replace(r, time_ms=8.0) if r.name == "deep" else r for r in run.operators)
    (advice,) = found(replace(run, operators=slow), "slow-depthwise")
    # 2 x 768 x 16 x 9 x 16 operations at the rate of `last`: 2 x 768 x 3 x 16 x 9 in 1 ms
    assert advice.saving_ms == pytest.approx(8.0 - 16 / 3)
    assert advice.edit.layers["deep"][1].params == {"kernel": "3x3", "features": "16"}
    written = changed_graph(deep={"params": {"kernel": "3x3", "multiplier": "1", "stride": "1x1"}})
    (advice,) = advised(replace(run, operators=slow), written, "slow-depthwise")
    assert advice.edit.layers["deep"][1].params == {"kernel": "3x3", "stride": "1x1", "features": "16"}
    many = changed_graph(deep={"params": {"kernel": "3x3", "multiplier": "2"}})
    assert not advised(replace(run, operators=slow), many, "slow-depthwise")


def test_half_of_the_launches_can_be_saved(run):
    def launched(count):
        rows = (replace(r, bound="launch" if place < count else "compute") for place, r in enumerate(run.operators))
        return replace(run, operators=tuple(rows))

    (advice,) = found(launched(6), "small-batch")
    assert advice.saving_ms == pytest.approx((19.0 - 6 * 0.05) / 2)
    assert "98.4 % of the time at batch 1" in advice.message
    (advice,) = found(launched(3), "small-batch")  # 6.0 - 0.15 of 19 ms
    assert advice.saving_ms == pytest.approx(5.85 / 2)
    assert not found(launched(2), "small-batch")
    assert not found(replace(launched(6), time_ms=None), "small-batch")


def test_launches_dominate_unless_a_larger_batch_was_measured(run):
    rows = tuple(replace(row, bound="launch") for row in run.operators)
    launched = replace(run, batch=4, operators=rows)
    for others in ([], [launched], [replace(run, batch=4, time_ms=18.0)], [replace(run, batch=2, time_ms=18.0)]):
        (advice,) = found(launched, "small-batch", others)
        assert "launching" in advice.message
        assert advice.remedy == "run more images at once, or use CUDA graphs"
    assert not found(launched, "small-batch", [replace(run, batch=8, time_ms=2 * 19.0)])


def test_a_larger_batch_must_gain_fifteen_percent(run):
    def gain(ms):
        return found(run, "small-batch", [replace(run, batch=2, time_ms=ms)])

    assert gain(33.0)[0].saving_ms == pytest.approx(2.5)
    assert not gain(33.1)
    assert not found(replace(run, batch=2, time_ms=33.0), "small-batch", [run])  # a smaller batch


@pytest.mark.parametrize(
    ("change", "fold"),
    [
        ({"odd": {"type": "transposed_convolution"}}, "norm"),
        ({"odd": {"type": "transposed_convolution", "params": {"groups": "4"}}}, ""),
        ({"odd": {"type": "depthwise_convolution"}}, ""),
        ({"odd": {"type": "separable_convolution"}}, ""),
    ],
)
def test_only_a_fold_that_is_possible_is_offered(run, change, fold):
    (advice,) = advised(run, changed_graph(**change), "unfolded-normalization")
    assert advice.fold == fold


@pytest.mark.parametrize(
    "change",
    [
        {"odd": {"activation": ActivationSpec("relu")}},
        {"odd": {"type": "fully_connected"}},
        {"big": {"inputs": (Source("odd"),)}},  # reads the convolution too
        {"norm": {"inputs": ()}},
        {"norm": {"inputs": (None,)}},
        {"norm": {"params": {"track_running_stats": "false"}}},  # divides by the statistics of the batch
        {"odd": {"type": "dynamic_convolution"}},
    ],
)
def test_a_batch_normalization_that_cannot_be_folded(run, change):
    assert not advised(run, changed_graph(**change), "unfolded-normalization")


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({}, True),
        ({"stride": "1x1", "padding": "same", "dilation": "1x1", "groups": "1"}, True),
        ({"stride": "2x2"}, False),
        ({"stride": "1x2"}, False),
        ({"padding": "valid"}, False),
        ({"dilation": "2x2"}, False),
        ({"groups": "4"}, False),
        ({"kernel": "5x3"}, False),
        ({"features": "64"}, False),  # 9 * (36 + 64) = 25 * 36: as many operations
        ({"features": "63"}, True),
    ],
)
def test_only_a_plain_5x5_is_replaced(run, params, found):
    document = changed_graph(big={"params": {"kernel": "5x5", "features": "16", **params}})
    rows = tuple(replace(r, time_ms=1000.0) if r.name == "big" else r for r in run.operators)
    assert bool(advised(replace(run, operators=rows), document, "large-kernel")) == found


def test_a_convolution_without_a_number_of_features_has_the_default(run):
    document = changed_graph(big={"params": {"kernel": "5x5"}})
    (advice,) = advised(run, document, "large-kernel")
    assert advice.message == "big is a 5x5 convolution of 36 to 32 channels"
    assert advice.saving_ms == pytest.approx(10.0 * (1 - 9 * (36 + 32) / (25 * 36)))


def test_the_second_3x3_is_below_the_first_and_has_its_activation():
    edit = split_kernel(changed_graph(big={"position": (7, 30), "activation": ActivationSpec("relu")}), "big")
    after = {name: both[1] for name, both in edit.layers.items()}
    assert set(after) == {"big", "big_b", "deep"}
    assert (after["big"].position, after["big_b"].position) == ((7, 30), (7, 70))
    assert after["big_b"].activation == ActivationSpec("relu")


@pytest.mark.parametrize(
    ("features", "saving_ms", "down"),
    [("36", 4.0 * 8 / 40, "32"), ("41", 4.0 * 8 / 48, "40"), ("9", 4.0 * 8 / 16, "8"), ("47", 4.0 * 8 / 48, "40"),
     ("40", None, ""), ("8", None, ""), ("7", None, "")],
)  # fmt: skip
def test_the_saving_of_channels_that_fill_the_blocks(run, features, saving_ms, down):
    document = changed_graph(odd={"params": {"features": features, "kernel": "3x3"}})
    advices = advised(replace(run, precision="bf16", time_ms=1.0), document, "odd-channels")
    if saving_ms is None:
        assert not advices
    else:
        assert advices[0].saving_ms == pytest.approx(saving_ms)
        assert advices[0].edit.layers["odd"][1].params["features"] == down


def test_the_channels_of_a_result_are_left_as_they_are(run):
    document = changed_graph(last={"params": {"features": "12", "kernel": "3x3"}})
    (advice,) = advised(replace(run, precision="fp16"), document, "odd-channels")
    assert advice.layers == ("odd",)


@pytest.mark.parametrize(("groups", "count"), [("1", 1), ("12", 0)])
def test_channels_in_groups_are_left_as_they_are(run, groups, count):
    document = changed_graph(odd={"params": {"features": "12", "kernel": "3x3", "groups": groups}})
    assert len(advised(replace(run, precision="fp16"), document, "odd-channels")) == count


@pytest.mark.parametrize(
    ("peaks", "count"),
    [(200e12, 1), (50e12, 0), (40e12, 0), (None, 0)],
)
def test_half_precision_must_be_faster(run, peaks, count):
    others = {} if peaks is None else {"fp16": measured(peaks)}
    assert len(found(replace(run, peaks=replace(PEAKS, others=others)), "full-precision")) == count
    assert not found(replace(run, precision="tf32"), "full-precision")
    assert not found(replace(run, peaks=None), "full-precision")


def test_rows_whose_bound_is_unknown_save_nothing_in_half_precision(run):
    rows = tuple(replace(r, bound="") if r.name == "big" else r for r in run.operators)
    (advice,) = found(replace(run, operators=rows), "full-precision")
    assert advice.saving_ms == pytest.approx(7.0 * 0.75 + 2.0 * 0.5)
    assert found(run, "full-precision", settings={})[0].edit is None


def test_a_saving_must_be_more_than_one_percent(run):
    assert found(replace(run, time_ms=99.9), "unfolded-normalization")
    assert not found(replace(run, time_ms=100.0), "unfolded-normalization")


def test_the_measured_saving_is_of_the_whole_network_unless_one_row_has_the_layers(run):
    after = replace(run, time_ms=14.0, operators=tuple(replace(r, time_ms=r.time_ms / 2) for r in run.operators))
    (advice,) = found(run, "unfolded-normalization")
    for layers, difference_ms in ((("big",), -5.0), (("big", "deep"), -5.0), ((), -5.0), (("norm",), -0.5)):
        row = measured_saving(replace(advice, layers=layers), run, after)
        assert (row.layers, row.difference_ms) == (layers if len(layers) == 1 else (), difference_ms)


def test_another_engine_names_the_three_layers_that_gain_most(run):
    rows = tuple(replace(r, time_ms=r.time_ms / 4) for r in run.operators)
    (advice,) = found(run, "better-engine", [replace(run, layout="nhwc", operators=rows, time_ms=4.75)])
    assert advice.layers == ("big", "odd", "deep")
    assert advice.edit.settings == {"layout": ("nchw", "nhwc")}
    assert advice.remedy == "run with torch in NHWC"
    assert advice.saving_ms == pytest.approx(14.25)


OTHER = {
    "engine": "onnxruntime", "precision": "fp16", "layout": "nhwc", "device": "cuda:1", "threads": 7, "batch": 4, "size": "64x48",
}  # fmt: skip


def other_run(run, *names, flops=1000):
    """A measured run that differs in these settings; its operations grow with the batch."""
    made = replace(run, time_ms=5.0, **{name: OTHER[name] for name in names})
    return replace(made, flops=flops * made.batch)


@pytest.mark.parametrize("varied", [("batch",), ("engine", "layout"), ("precision",), ("threads", "device")])
@pytest.mark.parametrize("present", [1, 8])
def test_runs_that_differ_in_nothing_else_and_do_the_same_work_for_each_image(run, varied, present):
    base = replace(run, batch=present)
    run = other_run(base)
    expected = [other_run(base, name) for name in OTHER if name in varied]
    if len(varied) > 1:
        expected.append(other_run(base, *varied))
    not_expected = [other_run(base, name) for name in OTHER if name not in varied]

    def names(others, subject=run):
        found = Advisable(graph(), subject, others).measured(*varied)
        return [[name for name in OTHER if getattr(one, name) == OTHER[name]] for one in found]

    assert names([run, *not_expected, *expected, other_run(base, *OTHER)]) == names(expected)
    assert len(names(expected)) == len(expected)
    assert names([replace(one, flops=one.flops + 1) for one in expected]) == []
    assert names([replace(one, time_ms=None) for one in expected]) == []
    assert names(expected, replace(run, source=ValueSource.MODELLED)) == []


def described(advice) -> list[str]:
    edit = advice.edit
    change = ""
    if edit is not None:
        change = f"{edit.title}: {dict(edit.settings)} {sorted(edit.layers)}"
    return [
        f"{advice.rule} of {', '.join(advice.layers)}: {advice.message}",
        f"  {advice.remedy}; {advice.saving_ms:.4f} ms {advice.source}, {advice.reason}",
        f"  {change}{' folds ' + advice.fold if advice.fold else ''}",
    ]


def test_every_advice_is_as_recorded(run):
    slow = tuple(replace(r, time_ms=8.0) if r.name == "deep" else r for r in run.operators)
    launched = tuple(replace(r, bound="launch") for r in run.operators)
    halved = tuple(replace(r, time_ms=r.time_ms / 2) for r in run.operators)
    half = replace(run, precision="fp16", peaks=replace(PEAKS, memory_bytes_per_s=measured(1e9)))
    outside = OperatorProfile((), "", 9.0)
    cases = {
        "FP32 on a GPU": (run, (), SETTINGS),
        "FP32 on a GPU, without settings of the document": (run, (), {}),
        "FP32 on a GPU that is not faster in FP16": (replace(run, peaks=replace(PEAKS, others={"fp16": measured(50e12)})), (), SETTINGS),
        "FP16 in NCHW": (half, (), SETTINGS),
        "FP16 in NHWC": (replace(half, layout="nhwc"), (), SETTINGS),
        "on a processor": (replace(run, device="cpu", operators=slow), (), SETTINGS),
        "launches": (replace(run, operators=launched), (), SETTINGS),
        "a larger batch": (run, [replace(run, batch=b, time_ms=ms) for b, ms in ((8, 40.0), (2, 30.0), (32, 155.0))], SETTINGS),
        "a larger batch that gains little": (replace(run, operators=launched), [replace(run, batch=2, time_ms=37.0)], SETTINGS),
        "other engines": (
            replace(run, device="cpu"),
            [
                replace(run, device="cpu", engine="onnxruntime", operators=(*halved, outside), time_ms=9.5, spread_ms=0.5),
                replace(run, device="cpu", layout="nhwc", operators=halved[:2], time_ms=11.0),
                replace(run, device="cpu", engine="openvino", precision="bf16", time_ms=1.0),
                replace(run, device="cpu", engine="openvino", time_ms=30.0),
            ],
            SETTINGS,
        ),
    }  # fmt: skip
    lines = []
    for name, (measured_run, others, settings) in cases.items():
        lines += ["", f"--- {name}"]
        for advice in advise(Advisable(graph(), measured_run, others, settings)):
            lines += described(advice)
    check_recorded("advice.txt", "\n".join([*lines, ""]))


def test_the_saving_of_several_rows_is_that_of_the_network(run):
    (advice,) = found(run, "large-kernel")
    many = replace(advice, layers=("big", "deep"))
    after = replace(run, time_ms=9.0)
    assert measured_saving(many, run, after).layers == ()
    assert measured_saving(many, run, after).difference_ms == -10.0
    assert measured_saving(replace(advice, layers=()), run, after).layers == ()
    assert measured_saving(replace(advice, layers=("gone",)), run, after).layers == ()


@pytest.mark.parametrize("settings", [{}, {"engine": "torch"}, {"layout": "nchw"}, {"precision": "fp32"}])
def test_no_edit_changes_only_some_of_the_settings_that_belong_together(run, settings):
    rows = tuple(replace(r, time_ms=r.time_ms / 2) for r in run.operators)
    other = replace(run, engine="onnxruntime", layout="nhwc", operators=rows, time_ms=9.5)
    (advice,) = found(run, "better-engine", [other], settings)
    assert advice.edit is None
    (advice,) = found(run, "better-engine", [other])
    assert advice.edit.settings == {"engine": ("torch", "onnxruntime"), "layout": ("nchw", "nhwc")}


def test_time_outside_of_operators_does_not_count_as_a_layer_that_an_engine_is_faster_at(run):
    def outside(ms):
        return OperatorProfile((), "", ms, 0.01)

    before = replace(run, operators=(outside(30.0), *run.operators), time_ms=49.0)
    rows = tuple(replace(r, time_ms=r.time_ms / 2) for r in run.operators)
    other = replace(before, engine="onnxruntime", operators=(outside(1.0), *rows), time_ms=10.5)
    (advice,) = found(before, "better-engine", [other])
    assert advice.layers == ("big", "odd", "deep")
    assert advice.message == "faster with onnxruntime in NCHW, most at big (5.00 ms), odd (2.00 ms), deep (1.00 ms)"
