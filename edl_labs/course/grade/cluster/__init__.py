"""Grading on several machines: the unit of work is one command over one specification file, run wherever there is room.

Machines share the course's folder. A unit writes nothing but content-addressed results into it, so it can be run twice,
or on two machines, or be killed; the one writer of the gradebook stays where `edl-labs grade` was called.
"""
