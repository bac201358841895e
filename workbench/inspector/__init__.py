"""Profiles joined with the program that they are of: tables, timelines, numeric gaps."""

from workbench.inspector.events import Event, EventBlock, PerfData, TimeScale
from workbench.inspector.inspector import Inspector
from workbench.inspector.live import LiveRun
from workbench.inspector.numeric import Comparison
from workbench.inspector.perfetto import timeline, write_timeline
from workbench.inspector.roofline import Work, roofline_table, work_of
from workbench.inspector.symbols import Symbols
from workbench.inspector.trace import EventBatch, Trace

__all__ = [
    "Comparison",
    "Event",
    "EventBatch",
    "EventBlock",
    "Inspector",
    "LiveRun",
    "PerfData",
    "Symbols",
    "TimeScale",
    "Trace",
    "Work",
    "roofline_table",
    "timeline",
    "work_of",
    "write_timeline",
]
