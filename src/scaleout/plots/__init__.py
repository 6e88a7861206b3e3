"""Pictures: one function a figure, axes with units, the ideal line dashed, single runs as points,
readable in grey."""

from .classroom import class_picture
from .comparison import comparison
from .frameworks import frameworks, rates_over_work
from .horovod import cycle_times, step_shares, step_timeline
from .kmeans import memory_bars, palettes, quality, quantised
from .learning import drifting_ranks, schedules
from .machine import hwloc_picture, machine_picture
from .messages import allreduce_time, bytes_sent, message_time, mpi_libraries
from .networks import efficiency_of_networks
from .onednn import layouts, number_formats, operations
from .rates import rate_bars, seconds_bars, speed_up, strong_and_weak
from .scaling import amdahl_law, rate_predictions
from .servers import servers_or_ring
from .spmd import stale_losses, straggler_timeline, who_holds
from .sweep import heat_map, searches
from .threads import rank_map, rate_over_threads, thread_census, which_knob
from .waiting import step_parts, who_waits
from .waterfall import waterfall

__all__ = [
    "allreduce_time",
    "amdahl_law",
    "bytes_sent",
    "class_picture",
    "comparison",
    "cycle_times",
    "drifting_ranks",
    "efficiency_of_networks",
    "frameworks",
    "heat_map",
    "hwloc_picture",
    "layouts",
    "machine_picture",
    "memory_bars",
    "message_time",
    "mpi_libraries",
    "number_formats",
    "operations",
    "palettes",
    "quality",
    "quantised",
    "rank_map",
    "rate_bars",
    "rate_over_threads",
    "rate_predictions",
    "rates_over_work",
    "schedules",
    "searches",
    "seconds_bars",
    "servers_or_ring",
    "speed_up",
    "stale_losses",
    "step_parts",
    "step_shares",
    "step_timeline",
    "straggler_timeline",
    "strong_and_weak",
    "thread_census",
    "waterfall",
    "which_knob",
    "who_holds",
    "who_waits",
]
