"""What type checkers see of the names that are imported at their first use; a test keeps it in step."""

from edl_labs.roofline import gemm as gemm
from edl_labs.roofline import network as network
from edl_labs.roofline import work as work
from edl_labs.roofline._bound import Bound as Bound
from edl_labs.roofline._bound import LimiterReport as LimiterReport
from edl_labs.roofline._bound import attainable_flop_per_s as attainable_flop_per_s
from edl_labs.roofline._bound import bound as bound
from edl_labs.roofline._bound import find_limiter as find_limiter
from edl_labs.roofline._bound import roof as roof
from edl_labs.roofline._ceilings import ceilings as ceilings
from edl_labs.roofline._count import Count as Count
from edl_labs.roofline._count import count as count
from edl_labs.roofline._place import AboveRoof as AboveRoof
from edl_labs.roofline._place import Placed as Placed
from edl_labs.roofline._place import Point as Point
from edl_labs.roofline._place import place as place
from edl_labs.roofline._place import place_all as place_all
from edl_labs.roofline._place import you_are_here as you_are_here
from edl_labs.roofline.machine_ceilings import Ceiling as Ceiling
from edl_labs.roofline.machine_ceilings import Machine as Machine
from edl_labs.roofline.machine_ceilings import MemoryLevel as MemoryLevel
from edl_labs.roofline.work import Work as Work
from edl_labs.roofline.work import count_tiles as count_tiles
