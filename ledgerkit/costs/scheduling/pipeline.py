r"""Pipeline stages: bubbles of one pass, and the micro-batches that fill them.

m micro-batches through p stages leave :math:`(p - 1) / (m + p - 1)` of the stage-time idle. In
steady decode p micro-batches are in flight, so that a token takes as long as without stages.

Source: GPipe. Worked: 4 stages, 4 micro-batches: 42.9 %.
"""

from __future__ import annotations

from ledgerkit.costs.scheduling.entry import SchedulingEntry, check


def bubble_share(stages: int, micro_batches: int) -> float:
    """Share of the stage-time of one pass that is idle.

    Examples
    --------
    >>> round(bubble_share(4, 4), 3)
    0.429
    """
    check("stages", stages, 1)
    check("micro_batches", micro_batches, 1)
    return (stages - 1) / (micro_batches + stages - 1)


def pipeline_bubble(*, stages: int, micro_batches: int, stage_s: float) -> SchedulingEntry:
    """Seconds of one pass beyond those of its micro-batches.

    Parameters
    ----------
    stages, micro_batches : int
        Of the pass.
    stage_s : float
        Seconds of one micro-batch in one stage.

    Examples
    --------
    >>> pipeline_bubble(stages=4, micro_batches=4, stage_s=0.01).amount
    0.03
    """
    check("stages", stages, 1)
    check("micro_batches", micro_batches, 1)
    check("stage_s", stage_s, 0.0)
    return SchedulingEntry(
        "bubble", "prefill", "scheduling", "pp", "time", (stages - 1) * stage_s, "batch",
        "(stages - 1) * stage_s", {"stages": stages, "stage_s": stage_s},
        "the first micro-batch passes all stages before the last stage is busy",
    )  # fmt: skip
