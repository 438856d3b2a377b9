"""Name the columns that engines add to rows of events, beside those of a log (`event.arrow`).

Input rows (`inputs`) have three, which say where a row is:

    _stream  the number of its stream
    _offset  its offset in its log; with several inputs its number in the order of capture
    _clock   the app's time: the largest event time up to and with this row

Output rows (`outputs`) have four order columns, ORDER, until the rows of all key partitions are
there:

    _clock   the app's time when the row was emitted
    _phase   0 for rows of a timer, 1 for rows of an event: timers fire first
    _offset  of the event that caused the row
    _seq     counts the rows of one cause

Sorting by them gives what a single kernel would have emitted, however the keys were partitioned.
Pure, and apart from `inputs` so that whoever needs a name does not import logs.
"""

from edgewise.event.arrow import AT

OFFSET, CLOCK, STREAM = "_offset", "_clock", "_stream"
PHASE, SEQ = "_phase", "_seq"
MERGE_ORDER = (AT, STREAM, OFFSET)  # several inputs as one
ORDER = [CLOCK, PHASE, OFFSET, SEQ]
