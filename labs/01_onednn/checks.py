"""What each TODO of 01_onednn is checked by: short runs of the small network, their records, and oneDNN's own report.

No check looks at how long anything took.
"""

import numpy as np

from scaleout import ScaleoutError, machine, onednn
from scaleout.exercises import todo

BRIEF = {"network": "cnn", "steps": 2, "warmup": 1}


def convolutions(job, kernels, shell):
    """The number format of each convolution that oneDNN ran. shell: what TF_ENABLE_ONEDNN_OPTS was before."""
    run = job(env={"ONEDNN_VERBOSE": "1", "TF_ENABLE_ONEDNN_OPTS": shell}, kernels=kernels, **BRIEF)
    try:
        frame = onednn.parse(run.lines)
    except ScaleoutError:  # oneDNN ran nothing at all
        return []
    found = list(frame.src_type[frame.primitive == "convolution"])
    # Without AVX-512, TensorFlow takes bfloat16 away from oneDNN: what remains to be seen is the rewrite's own line.
    if not found and "avx512f" not in machine.facts().isa and "nodes to bfloat16" in run.output:
        return ["bf16"]
    return found


@todo(
    1,
    hints=[
        "TensorFlow decides while it is imported. What it reads then is an environment variable.",
        'os.environ["TF_ENABLE_ONEDNN_OPTS"] takes "0" or "1"; set it for every kind of kernels, not only for one.',
        'os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0" if args.kernels == "default" else "1"',
    ],
)
def the_library_is_chosen(job):
    """oneDNN runs the convolutions with --kernels onednn and none with default, whatever the shell had set."""
    off, on = len(convolutions(job, "default", shell="1")), len(convolutions(job, "onednn", shell="0"))
    if off and not on:
        raise AssertionError(
            "expected your program to overrule the shell's TF_ENABLE_ONEDNN_OPTS; saw the shell win, both with default "
            "and with onednn. Is the variable assigned before TensorFlow is imported, and 0 for default, 1 for onednn?"
        )
    assert not off, f"expected no convolution from oneDNN with --kernels default; saw {off}. Is it set to 0 there?"
    assert on, "expected oneDNN to run the convolutions with --kernels onednn; saw none. Is it set to 1 there?"


@todo(
    2,
    hints=[
        "step_s holds the seconds of all steps, in order. Which of them would you not show anybody?",
        "A slice of a list leaves out its first elements: step_s[how_many:]",
        "timed_s = step_s[args.warmup:]",
    ],
)
def warm_up_is_left_out(job):
    """Of 3 + 4 steps, the record holds the last 4, says that 3 were warm-up, and its rate comes from the 4 alone."""
    record = job(network="cnn", steps=4, warmup=3).records.iloc[0]
    every, timed = record["metrics.all_step_s"], record["step_s"]
    assert len(timed) == 4, f"expected 4 timed steps out of --warmup 3 --steps 4; saw {len(timed)}."
    assert np.allclose(timed, every[3:]), "expected the last 4 of the 7 steps; saw 4 others. The first ones are slow."
    assert record["warmup_steps"] == 3, f"expected 3 warm-up steps in the record; saw {record['warmup_steps']}."
    rate, wanted = record["rate"], 16 * 4 / sum(timed)
    assert np.isclose(rate, wanted), (
        f"expected the rate of the 4 timed steps, {wanted:.1f} images/s; saw {rate:.1f}. Do other steps count in it?"
    )


@todo(
    3,
    hints=[
        "Keras can change a network's types, but here TensorFlow's graph optimiser does it: tf.config.optimizer.",
        "Its set_experimental_options takes a dictionary with auto_mixed_precision_onednn_bfloat16. Only for bf16!",
        'if args.kernels == "bf16": '
        'tf.config.optimizer.set_experimental_options({"auto_mixed_precision_onednn_bfloat16": True})',
    ],
)
def convolutions_are_rewritten(job):
    """With --kernels bf16 every convolution is rewritten to bfloat16, and with onednn none is."""
    plain, found = convolutions(job, "onednn", shell="1"), convolutions(job, "bf16", shell="1")
    assert "bf16" not in plain, "expected fp32 with --kernels onednn; saw bfloat16. Is the rewrite on for bf16 alone?"
    assert found, "expected convolutions in bfloat16 with --kernels bf16; saw none from oneDNN. Is TODO 1 done?"
    assert set(found) == {"bf16"}, (
        f"expected all {len(found)} convolutions in bf16 with --kernels bf16; saw {' and '.join(sorted(set(found)))}. "
        "Is the rewrite switched on, and before the first op?"
    )
