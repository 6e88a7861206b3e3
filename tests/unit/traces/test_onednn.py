"""Reading oneDNN's report, and number formats, against lines that oneDNN 3.5 printed and against
ml_dtypes."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scaleout.base.errors import ScaleoutError
from scaleout.traces import onednn

RUNME = Path(__file__).resolve().parents[3] / "solutions/01_onednn/runme.py"
TEMPLATE = (
    "onednn_verbose,primitive,info,template:operation,engine,primitive,implementation,prop_kind,"
    "memory_descriptors,attributes,auxiliary,problem_desc,exec_time"
)
HEADER = [
    "onednn_verbose,info,oneDNN v3.5.0 (commit N/A)",
    "onednn_verbose,info,cpu,runtime:threadpool,nthr:2",
    "onednn_verbose,info,cpu,isa:Intel AVX-512 with Intel DL Boost and bfloat16 support",
    "onednn_verbose,info,gpu,runtime:none",
    TEMPLATE,
    "onednn_verbose,graph,info,template:operation,engine,partition_id,partition_kind,op_names,data_formats,"
    "logical_tensors,fpmath_mode,backend,exec_time",
]
CONVOLUTION = (
    "onednn_verbose,primitive,exec,cpu,convolution,brg_conv_fwd:avx512_core,forward_training,src_f32::blocked:acdb::f0 "
    "wei_f32:a:blocked:Adcb16a::f0 bia_f32:a:blocked:a::f0 dst_f32::blocked:acdb::f0,attr-scratchpad:user "
    "attr-post-ops:eltwise_relu,alg:convolution_direct,mb16_ic1oc16_ih28oh26kh3sh1dh0ph0_iw28ow26kw3sw1dw0pw0,0.5"
)
REORDER = (
    "onednn_verbose,primitive,exec,cpu,reorder,jit:uni,undef,src_f32::blocked:cdba::f0 dst_f32::blocked:Adcb16a::f0"
    ",,,16x1x3x3,0.1"
)
MOVED_IMAGES = (
    "onednn_verbose,primitive,exec,cpu,reorder,jit:blk,undef,src_f32::blocked:acdb::f0 dst_bf16::blocked:aBcd16b::f0"
    ",,,16x32x28x28,0.3"
)
GEMM = (
    "onednn_verbose,primitive,exec,cpu,gemm_api,,undef,src_f32::blocked:ab:f0 wei_f32::blocked:ba:f0 "
    "dst_f32::blocked:ab:f0,attr-post-ops:sum:1 ,,16x98:98x4608,0.1"
)
BACKWARD = (
    "onednn_verbose,primitive,exec,cpu,convolution,brg_conv_bwd:avx512_core_bf16+brg_conv_fwd:avx512_core_bf16,"
    "backward_data,src_bf16::blocked:acdb::f0 wei_bf16:a:blocked:BcdA16b2a::f0 bia_undef::undef::: "
    "dst_bf16::blocked:acdb::f0,,alg:convolution_direct,mb16_ic16oc32_ih26oh24kh3sh1dh0ph0_iw26ow24kw3sw1dw0pw0,1e-1"
)
LINES = [*HEADER, REORDER, CONVOLUTION, "loss 2.3", GEMM, BACKWARD]


def test_a_line_becomes_a_row() -> None:
    frame = onednn.parse(LINES)
    assert frame.primitive.tolist() == ["reorder", "convolution", "gemm_api", "convolution"]
    row = frame.iloc[1]
    assert (row.implementation, row.isa) == ("brg_conv_fwd:avx512_core", "avx512_core")
    assert (row.src, row.wei, row.dst) == ("acdb", "Adcb16a", "acdb")
    assert (row.prop_kind, row.post_ops, row.time_ms) == ("forward_training", "eltwise_relu", 0.5)
    assert row.problem.startswith("mb16_ic1oc16_ih28")
    assert frame.isa.tolist() == ["not named", "avx512_core", "not named", "avx512_core_bf16"]
    assert frame.src_type.tolist() == ["f32", "f32", "f32", "bf16"]
    assert frame.time_ms.iloc[3] == 0.1
    told = {"version": "3.5.0", "runtime": "runtime:threadpool,nthr:2", "damaged": 0}
    assert frame.attrs == told | {"isa": "Intel AVX-512 with Intel DL Boost and bfloat16 support"}


@pytest.mark.parametrize(
    ("in_template", "in_line"),
    [
        (("template:", "template:timestamp,"), (",primitive", ",1795173669296.4,primitive")),
        (("primitive,info,template:", "info,prim_template:"), ("primitive,", "")),
        (("_verbose,", "_verbose,v1,"), ("_verbose,", "_verbose,v1,")),
        (("onednn", "dnnl"), ("onednn", "dnnl")),
    ],
    ids=["timestamps", "oneDNN 2", "oneDNN 3.6", "DNNL"],
)
def test_other_versions_and_settings(
    in_template: tuple[str, str], in_line: tuple[str, str]
) -> None:
    frame = onednn.parse([TEMPLATE.replace(*in_template, 1), CONVOLUTION.replace(*in_line, 1)])
    assert (frame.primitive[0], frame.wei[0], frame.time_ms[0]) == ("convolution", "Adcb16a", 0.5)


def newer(line: str) -> str:
    """A line as oneDNN writes it from 3.7 on."""
    return re.sub(
        r"\b(src|wei|bia|dst)_(?=[a-z]+\d*:)", r"\1:", line.replace("_verbose,", "_verbose,v1,")
    )


def test_descriptors_of_onednn_3_7_give_the_same_table() -> None:
    old = onednn.parse([*LINES, MOVED_IMAGES])
    new = onednn.parse(map(newer, [*LINES, MOVED_IMAGES]))
    assert ":f32:" in newer(CONVOLUTION) and new.attrs["damaged"] == 0
    assert new.to_dict() == old.to_dict()
    moved = new.iloc[-1]
    assert (moved.src, moved.dst, moved.src_type, moved.dst_type) == (
        "acdb",
        "aBcd16b",
        "f32",
        "bf16",
    )


@pytest.mark.parametrize(
    ("descriptor", "dtype", "layout"),
    [
        ("src_f8_e5m2::blocked:ab::f0", "f8_e5m2", "ab"),
        ("src:f8_e4m3:a:blocked:ab::f0", "f8_e4m3", "ab"),
        ("src_layer:f32::blocked:abc::f0 src:s8::blocked:ba::f0", "s8", "ba"),
        ("src_e8m0::blocked:a::f0", "e8m0", "a"),
        ("src:undef::undef:::", "undef", ""),
    ],
)
def test_types_of_both_spellings(descriptor: str, dtype: str, layout: str) -> None:
    line = re.sub(r"src_\S+ .* dst_\S+?(?=,)", descriptor, CONVOLUTION)
    row = onednn.parse([TEMPLATE, line]).iloc[0]
    assert (row.src_type, row.src) == (dtype, layout)


GRAPH = (
    "onednn_verbose,graph,exec,cpu,100002,fp_conv_post_ops,conv;relu,NCX,in0_f32:0:strided:undef:16x28x28x1 "
    "out0_f32:1:strided:undef:16x26x26x16,fpm:strict,dnnl_backend,9.42"
)


@pytest.mark.parametrize(
    "line",
    [
        GRAPH,
        GRAPH.replace("_verbose,", "_verbose,v1,"),
        GRAPH.replace("_verbose,", "_verbose,1795173669296.4,"),
        GRAPH.replace("onednn", "dnnl", 1),
        GRAPH.replace("cpu,100002", "gpu,7"),
        CONVOLUTION.replace("exec", "create:cache_miss"),
        CONVOLUTION.replace("primitive,exec", "1795173669296.4,ukernel,exec"),
        CONVOLUTION.replace("exec", "exec:check"),
    ],
)
def test_what_is_no_executed_primitive_is_neither_counted_nor_damaged(line: str) -> None:
    frame = onednn.parse([*HEADER, line, CONVOLUTION])
    assert (len(frame), frame.time_ms.sum(), frame.attrs["damaged"]) == (1, 0.5, 0)


@pytest.mark.parametrize(
    "line",
    [
        "onednn_verbose,primitive,ex",
        CONVOLUTION[:90],
        CONVOLUTION[:60] + CONVOLUTION,
        CONVOLUTION.replace("src_f32", "src_int"),
        CONVOLUTION.replace(",attr-scratchpad", ",new_field,attr-scratchpad"),
    ],
)
def test_lines_that_cannot_be_read_are_counted_and_told(line: str) -> None:
    with pytest.warns(UserWarning, match="1 line of oneDNN's .* Their time is not in the table"):
        frame = onednn.parse([*LINES, line])
    assert (len(frame), frame.attrs["damaged"]) == (4, 1)


@pytest.mark.parametrize("time", ["", "0.", "0.5onednn_verb", "fast", "-"])
def test_a_time_that_is_not_whole_makes_the_line_a_half_one(time: str) -> None:
    with pytest.warns(UserWarning, match="1 line of oneDNN's cannot be read"):
        frame = onednn.parse([*LINES, CONVOLUTION.removesuffix("0.5") + time])
    assert (len(frame), frame.attrs["damaged"]) == (4, 1)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([], "nothing in these 0 lines: run the job with ONEDNN_VERBOSE=1"),
        (["loss 2.3", "done"], "nothing in these 2 lines: run the job with ONEDNN_VERBOSE=1"),
        (HEADER, "loaded, but given no work"),
        ([CONVOLUTION, REORDER], "header is missing"),
        ([TEMPLATE[:125], TEMPLATE[125:], CONVOLUTION], "header is missing"),
        (
            [*HEADER, CONVOLUTION[:125], CONVOLUTION[125:]],
            "1 line of oneDNN's cannot be read, such",
        ),
        (
            [*HEADER, CONVOLUTION.replace("_f32:", "?f32:")],
            "1 line of oneDNN's cannot be read, such",
        ),
        (
            [
                "dnnl_verbose,info,DNNL v1.6.0 (commit N/A)",
                CONVOLUTION.replace("primitive,", "", 1),
            ],
            "oneDNN 1.6.0 is too old, it does not name its fields",
        ),
        (
            [
                "mkldnn_verbose,info,Intel(R) MKL-DNN v0.20.5 (commit N/A)",
                "mkldnn_verbose,exec,convolution,jit:avx2,forward_training,fsrc:nchw fdst:nChw8c,,,0.5",
            ],
            "oneDNN 0.20.5 is too old",
        ),
    ],
)
def test_nothing_to_read_is_one_sentence(lines: list[str], sentence: str) -> None:
    with pytest.raises(ScaleoutError, match=re.escape(sentence)) as error:
        onednn.parse(lines)
    assert "\n" not in str(error.value)


def test_shares_add_up() -> None:
    table = onednn.shares(onednn.parse(LINES))
    assert (table.primitive[0], table.prop_kind[0], table.calls[0]) == (
        "convolution",
        "forward_training",
        1,
    )
    assert table.share[0] == pytest.approx(0.5 / 0.8)
    assert table.share.sum() == pytest.approx(1)
    assert onednn.parse(LINES).isa.value_counts().to_dict() == {
        "avx512_core": 1,
        "not named": 2,
        "avx512_core_bf16": 1,
    }


def test_reorders_say_what_moved_from_where_to_where() -> None:
    table = onednn.reorders(onednn.parse([*LINES, MOVED_IMAGES, REORDER]))
    assert table[["moved", "from", "to", "calls"]].values.tolist() == [
        ["images", "nhwc", "nChw16c", 1],
        ["weights", "hwio", "Owhi16o", 2],
    ]
    assert table.share.tolist() == pytest.approx([0.3 / 1.2, 0.2 / 1.2])
    assert len(onednn.reorders(onednn.parse([*HEADER, CONVOLUTION]))) == 0


COUNT = """
import sys
sys.path.insert(0, sys.argv[1])
import networks as lab
import tensorflow as tf
profiler = tf.compat.v1.profiler
for network in ("cnn", "resnet50"):
    model, (images, _) = lab.make_model(network), lab.load_data(network, 0, 1)
    one = tf.TensorSpec((1, *images.shape[1:]))
    graph = tf.function(lambda x: model(x, training=False)).get_concrete_function(one)
    options = profiler.ProfileOptionBuilder(profiler.ProfileOptionBuilder.float_operation()).with_empty_output().build()
    forward = profiler.profile(graph.graph, options=options).total_float_ops
    print("counted", network, lab.flops_per_image(model), forward, model.count_params(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_counted_operations_agree_with_the_profiler_and_with_the_papers() -> None:
    assert importlib.util.find_spec("tensorflow")
    done = subprocess.run(
        [sys.executable, "-c", COUNT, str(RUNME.parent)],
        capture_output=True,
        text=True,
        timeout=110,
    )
    counted = {line.split()[1]: [float(v) for v in line.split()[2:]] for line in done.stdout.splitlines()
               if line.startswith("counted")}  # fmt: skip
    assert set(counted) == {"cnn", "resnet50"}, done.stderr[-2000:]
    for network, (step, forward, _) in counted.items():
        assert 0.93 * 3 * forward < step < 3 * forward, (
            network
        )  # no gradient of the image, no biases and ReLUs
    assert counted["cnn"][2] == 454_922
    # He et al., "Deep Residual Learning", table 1: 3.8e9 multiply-adds forward. Many benchmarks
    # take 24.5e9 for a step: a later variant of the network, which shrinks its images one layer
    # later, and 3 x forward without exception.
    assert counted["resnet50"][0] == pytest.approx(3 * 2 * 3.8e9, rel=0.03)
    assert counted["resnet50"][0] == pytest.approx(24.5e9, rel=0.08)
