"""Pictures: one function a figure, axes with units, the ideal line dashed, single runs as points,
readable in grey."""

from .arrival import format_rates, input_roofline, waits
from .classroom import class_picture
from .comparison import comparison
from .frameworks import frameworks, rates_over_work
from .gains import kept_steps, with_and_without
from .horovod import cycle_times, step_shares, step_timeline
from .kmeans import memory_bars, palettes, quality, quantised
from .learning import drifting_ranks, schedules
from .machine import hwloc_picture, machine_picture
from .messages import allreduce_time, bytes_sent, message_time, mpi_libraries
from .networks import efficiency_of_networks
from .onednn import layouts, number_formats, operations
from .parallelism import crossing, crossover, rank_memory, who_talks
from .pipeline import idle_over_micro_batches, pipeline_timeline
from .precision import calibrations, few_bits, ladder, loss_curves, streams
from .rates import rate_bars, seconds_bars, speed_up, strong_and_weak
from .scaling import amdahl_law, held_out, rate_predictions
from .servers import servers_or_ring, sync_or_async
from .spmd import stale_losses, straggler_timeline, who_holds
from .storage import one_server, server_load
from .sweep import heat_map, searches
from .threads import rank_map, rate_over_threads, thread_census, which_knob
from .tuning import accuracy_over_time, made_digits, memory_over_time, time_shares
from .waiting import step_parts, who_waits
from .waterfall import waterfall

__all__ = [
    "accuracy_over_time",
    "allreduce_time",
    "amdahl_law",
    "bytes_sent",
    "calibrations",
    "class_picture",
    "comparison",
    "crossing",
    "crossover",
    "cycle_times",
    "drifting_ranks",
    "efficiency_of_networks",
    "few_bits",
    "format_rates",
    "frameworks",
    "heat_map",
    "held_out",
    "hwloc_picture",
    "idle_over_micro_batches",
    "input_roofline",
    "kept_steps",
    "ladder",
    "layouts",
    "loss_curves",
    "machine_picture",
    "made_digits",
    "memory_bars",
    "memory_over_time",
    "message_time",
    "mpi_libraries",
    "number_formats",
    "one_server",
    "operations",
    "palettes",
    "pipeline_timeline",
    "quality",
    "quantised",
    "rank_map",
    "rank_memory",
    "rate_bars",
    "rate_over_threads",
    "rate_predictions",
    "rates_over_work",
    "schedules",
    "searches",
    "seconds_bars",
    "server_load",
    "servers_or_ring",
    "speed_up",
    "stale_losses",
    "step_parts",
    "step_shares",
    "step_timeline",
    "straggler_timeline",
    "streams",
    "strong_and_weak",
    "sync_or_async",
    "thread_census",
    "time_shares",
    "waits",
    "waterfall",
    "which_knob",
    "who_holds",
    "who_talks",
    "who_waits",
    "with_and_without",
]
