"""What type checkers see of the names that are imported at their first use; a test keeps it in step."""

from edl_labs.bench._compare import compare as compare
from edl_labs.bench._measure import measure as measure
from edl_labs.bench._sweep import Sweep as Sweep
from edl_labs.bench._sweep import sweep as sweep
from edl_labs.bench._timer import Timer as Timer
from edl_labs.bench.equal_outputs import DifferentOutputs as DifferentOutputs
from edl_labs.bench.magics import load_ipython_extension as load_ipython_extension
from edl_labs.bench.magics import unload_ipython_extension as unload_ipython_extension
from edl_labs.bench.own_recordings import measured_here as measured_here
from edl_labs.bench.results import Comparison as Comparison
from edl_labs.bench.results import Measurement as Measurement
from edl_labs.bench.results import Mistake as Mistake
from edl_labs.bench.timing.blocks import FunctionFailed as FunctionFailed
from edl_labs.bench.timing.processor_state import State as State
