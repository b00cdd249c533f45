"""What type checkers see of the names that are imported at their first use; a test keeps it in step."""

from edl_labs import bench as bench
from edl_labs import checks as checks
from edl_labs import clock as clock
from edl_labs import device as device
from edl_labs import errors as errors
from edl_labs import graph as graph
from edl_labs import hardware as hardware
from edl_labs import inference as inference
from edl_labs import numerics as numerics
from edl_labs import pipeline as pipeline
from edl_labs import plots as plots
from edl_labs import predict as predict
from edl_labs import roofline as roofline
from edl_labs import stats as stats
from edl_labs import trace as trace
from edl_labs import ui as ui
from edl_labs import units as units
from edl_labs import virtual as virtual
from edl_labs.bench import Timer as Timer
from edl_labs.bench import compare as compare
from edl_labs.bench import load_ipython_extension as load_ipython_extension
from edl_labs.bench import measure as measure
from edl_labs.bench import sweep as sweep
from edl_labs.bench import unload_ipython_extension as unload_ipython_extension
from edl_labs.checks import Progress as Progress
from edl_labs.checks import Score as Score
from edl_labs.checks import case as case
from edl_labs.checks import check as check
from edl_labs.checks import exercise as exercise
from edl_labs.checks import hint as hint
from edl_labs.errors import Wrong as Wrong

__version__: str
__all__: list[str]
