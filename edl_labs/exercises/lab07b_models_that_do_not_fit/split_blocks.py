"""split_a_block: attention and MLP by columns and rows over ranks, with one all-reduce forward and one backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.checks.plain_forms import whole
from edl_labs.errors import Wrong
from edl_labs.exercises.input_guard import InputGuard, explained_by_changes
from edl_labs.exercises.lab07b_models_that_do_not_fit.block_parts import AXES, BIASES, SAME, drawn_block, judge_parts
from edl_labs.exercises.lab07b_models_that_do_not_fit.split_programs import judge_programs, recorded_ranks
from edl_labs.exercises.plain_then_record import plain_before_record
from edl_labs.exercises.ranks_in_turn import distance, listed, run_in_turn, unreadable
from edl_labs.units import counted

_FEATURES = {"up_bias": "up", "down_bias": "down", "out_bias": "out"}  # a bias, and the matrix that it follows
_LAST = {"mlp": "down", "attention": "out"}


@exercise("split_a_block", digits=13)
class SplitABlock(Exercise):
    """A transformer's two blocks over the ranks of a group, with what the whole ones give.

    `shards(block, rank, ranks)` gives a rank's part, `forward(shard, x, comm)` its output. The tensors
    that ranks pass to `comm` are evidence: the judge works out what each has to add, and the output is their sum. How
    often ranks call is a claim, so each rank is recorded, too, and played on the judge's values with two sums in all.
    """

    answers = (
        *("outputs", "input_gradients", "gradients", "heads", "shapes", "output_shapes", "sums", "biases"),
        "programs",
    )

    returns: ClassVar[Mapping[str, Any]] = {"shards": dict}

    def probe(self, student: Any, given: Any) -> Any:
        import torch

        block, x, upstream = drawn_block(given)

        guard, made = InputGuard(), []
        for rank in range(given["ranks"]):
            made.append(student.shards(guard("block", block), rank, given["ranks"]))
            guard.begin_again()
        fits = all(_fits(name, part) for part in made for name in _FEATURES)

        def program(comm: Any) -> Any:
            shard = {name: _leaf(part) for name, part in made[comm.rank].items()}
            mine = x.clone().requires_grad_()
            if not fits:
                return shard, mine, x  # torch would say which line, and not which bias
            output = student.forward({**shard}, mine, comm)
            comm.phase = "backward"
            if output.requires_grad and output.shape == upstream.shape:
                (output * upstream).sum().backward()
            return shard, mine, output

        done, comms, stuck = run_in_turn(given["ranks"], program)
        parts = [one[0] for one in done]
        tensors = [name for name, part in block.items() if isinstance(part, torch.Tensor)]
        return {
            "stuck": stuck,
            "attached": [bool(one[2].requires_grad) for one in done],
            "sums": {phase: [_passed(comm, phase) for comm in comms] for phase in ("forward", "backward")},
            "output_shapes": [list(one[2].shape) for one in done],
            "outputs": [listed(one[2]) for one in done],
            "input_gradients": [listed(one[1].grad) for one in done],
            "heads": [part.get("heads") for part in parts],
            "shapes": {name: [list(part[name].shape) if name in part else [] for part in parts] for name in tensors},
            "gradients": {name: _assembled(name, parts) for name in tensors},
            "biases": [listed(part.get(BIASES[given["kind"]])) for part in parts],
            "modified": guard.changed(),
            "programs": [] if stuck else recorded_ranks(student, given),
        }

    def public_want(self, case: Any, want: Any) -> Any:
        """All but the programs: what they must give follows from the case."""
        return {**want, "programs": []}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        with explained_by_changes(got["modified"]):
            self._judge_plain_run(case, got, want)
            judge_programs(case, got, want)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What a plain run shows in a later case, where the first cases fail by their records alone."""
        rows = zip(cases, got, want, strict=True)
        return None if got[0]["modified"] else plain_before_record(self._judge_plain_run, judge_programs, rows)

    def _judge_plain_run(self, case: Any, got: Any, want: Any) -> None:
        if got["stuck"]:
            then = "let all ranks make the same calls, with tensors of the same shape"
            raise Wrong("your ranks' collective calls do not all finish", why=got["stuck"], next=then)
        _judge_record(case, got)
        _judge_shapes(case, got["shapes"])
        _judge_biases(case, got["shapes"])
        _judge_heads(case, got)
        if not all(got["attached"]):
            why = "all_reduce returns a new tensor, and autograd does not know how it was computed"
            then = "call all_reduce in `forward` of a torch.autograd.Function, and return the gradient from `backward`"
            raise Wrong("in your code, no gradient passes through the sum", why=why, next=then)
        _judge_output(case, got, want)
        _judge_bias_values(case, got["biases"], want["biases"][0])
        if _counts(got, "forward") != [1] * case["ranks"]:
            why = f"the output is right, but a rank's forward pass makes {max(_counts(got, 'forward'))} all-reduces"
            raise Wrong(
                "your forward pass makes more than one all-reduce",
                why=why,
                next="if the first matrix is cut by columns and the second by rows, what must be summed?",
            )
        _judge_places(got["gradients"], want["gradients"])
        judge_parts(case, got, "forward")
        _judge_gradients(case, got, want)
        if _counts(got, "backward") != [1] * case["ranks"]:
            why = f"all results are right, but a rank's backward pass makes {max(_counts(got, 'backward'))} all-reduces"
            then = "at which tensor do the ranks' paths split?"
            raise Wrong("your backward pass makes more than one all-reduce", why=why, next=then)
        judge_parts(case, got, "backward")

    def student_inputs(self, case: Any) -> Any:
        """The whole block, its input and the gradient of its output, as tensors."""
        block, x, upstream = drawn_block(case)
        return {"block": block, "ranks": case["ranks"], "x": x, "gradient": upstream}

    def format_answer(self, case: Any, got: Any) -> str:
        """The shapes of the parts, and the calls: outputs are too many numbers to read."""
        shapes = "; ".join(f"{name}: {', '.join(map(str, rows))}" for name, rows in got["shapes"].items())
        heads = f"; heads: {', '.join(map(str, got['heads']))}" if case["kind"] == "attention" else ""
        calls = [f"{sum(_counts(got, way))} all-reduces {way}" for way in ("forward", "backward")]
        return f"{shapes}{heads}; all ranks together make {' and '.join(calls)}"

    def explain_exception(self, case: Any, error: str) -> Wrong | None:
        """What a shape that does not fit means where heads do not divide by the ranks."""
        if case["kind"] == "attention" and case["heads"] % case["ranks"] and error == "RuntimeError":
            why = f"there are {case['heads']} heads on {case['ranks']} ranks, and torch raised RuntimeError"
            then = "let parts differ by at most one whole head: with which heads does a rank begin and end?"
            return Wrong("your code fails when the heads do not divide evenly among the ranks", why=why, next=then)
        return None

    def format_case(self, case: Any) -> str:
        """The block and the ranks."""
        inner = f"{case['heads']} heads" if case["kind"] == "attention" else f"{case['hidden']} hidden channels"
        return f"{case['kind']} of {case['width']} channels, {inner}, on {case['ranks']} ranks"


def _passed(comm: Any, phase: str) -> list[list[float]]:
    """What a rank passed to its collectives in a phase, call by call."""
    return [listed(tensor) for tensor, when in zip(comm.given, comm.phases, strict=True) if when == phase]


def _counts(got: Any, phase: str) -> list[int]:
    """How many collectives each rank had in a phase."""
    return [len(calls) for calls in got["sums"][phase]]


def _leaf(part: Any) -> Any:
    import torch

    if not isinstance(part, torch.Tensor):
        return whole(part)
    return part.detach().clone().requires_grad_(part.is_floating_point())  # no gradient is defined for indices


def _assembled(name: str, parts: list[Any]) -> list[list[float]]:
    """The gradient of the whole from those of the parts; of an output's bias, that of each rank."""
    import torch

    found = [part[name].grad for part in parts if name in part]
    if not found or name not in AXES or any(one is None for one in found):
        return [listed(one) for one in found]
    try:
        return [listed(torch.cat(found, dim=AXES[name]))]
    except (RuntimeError, IndexError):
        return [listed(one) for one in found]


def _judge_record(case: Any, got: Any) -> None:
    """Wrong where a rank is missing: what is not there would be compared with nothing."""
    of_ranks = [got[name] for name in ("attached", "output_shapes", "outputs", "input_gradients", "heads", "biases")]
    of_ranks += [*got["sums"].values(), *got["shapes"].values()]
    counts = {len(one) for one in of_ranks}
    bias = BIASES[case["kind"]]
    held = [bool(shape) for shape in got["shapes"][bias]]
    filled = [bool(shape) and 0 not in shape for shape in got["shapes"][bias]]  # a cut can leave a rank no element
    if (
        counts != {case["ranks"]}
        or [bool(one) for one in got["biases"]] != filled
        or (got["gradients"][bias] and len(got["gradients"][bias]) != sum(held))
    ):
        why = f"some entries of the record do not have values for exactly {case['ranks']} ranks"
        raise Wrong("the record does not cover all ranks", why=why, next="run the cell again, and check again")


def _judge_shapes(case: Any, shapes: Any) -> None:
    width, ranks = case["width"], case["ranks"]
    inner = case["hidden"] if case["kind"] == "mlp" else width
    first, last = ("up", "down") if case["kind"] == "mlp" else ("query", "out")
    for name in (first, last):
        if [] in shapes[name]:
            why = f"a shard has no {name!r}"
            raise Wrong(
                "your shard has different names from the block",
                why=why,
                next="keep the block's names, with the rank's parts",
            )
    if any(shape[0] < width for shape in shapes[first]):
        why = f"`{first}` of {width} x {inner} is cut into the shapes {shapes[first]}"
        then = "with which cut does every rank have complete sums before the nonlinearity?"
        raise Wrong("your code cuts the first matrix by rows", why=why, next=then)
    if all(shape[1] == inner for shape in shapes[first]):
        why = f"each of the {ranks} ranks has all columns of `{first}`"
        raise Wrong("in your code, every rank holds the whole block", why=why, next="keep only the rank's own columns")
    if any(shape[1] < width for shape in shapes[last]):
        why = f"`{last}` of {inner} x {width} is cut into the shapes {shapes[last]}"
        then = "the inputs of this matrix are on different ranks: which of its rows does each rank need?"
        raise Wrong("your code cuts the second matrix by columns", why=why, next=then)
    for name in ("up", "query", "key", "value"):
        if name in shapes and sum(shape[1] for shape in shapes[name]) != inner:
            why = f"`{name}` of {inner} columns is cut into parts of {[shape[1] for shape in shapes[name]]}"
            raise Wrong(
                "in your shards, some columns are missing or present twice",
                why=why,
                next="check where each rank's part ends",
            )
    if case["kind"] == "attention":
        size = width // case["heads"]
        if any(shape[1] % size for shape in shapes["query"]):
            why = f"heads have {size} channels, but the ranks have {[shape[1] for shape in shapes['query']]} channels"
            then = "cut only between heads, even if some ranks get one head more: each softmax needs a whole head"
            raise Wrong("your code splits a head over two ranks", why=why, next=then)
    most = -(-inner // ranks) if case["kind"] == "mlp" else -(-case["heads"] // ranks) * (width // case["heads"])
    unit = 1 if case["kind"] == "mlp" else width // case["heads"]
    widest, narrowest = (pick(shape[1] for shape in shapes[first]) for pick in (max, min))
    then = f"let parts differ by at most one {'hidden channel' if unit == 1 else 'head'}: where does each part begin?"
    if widest > most:
        why = f"a rank has {widest} columns; {most} would be enough"
        raise Wrong("your parts are not as equal as they can be", why=why, next=then)
    if widest - narrowest > unit:
        why = f"one rank has {widest} columns, but another only {narrowest}"
        raise Wrong("in your code, a rank has less than its share", why=why, next=then)


def _fits(name: str, shard: Any) -> bool:
    """Whether a bias has as many elements as the matrix before it gives."""
    bias, matrix = (list(getattr(shard.get(one), "shape", ())) for one in (name, _FEATURES[name]))
    return not bias or len(matrix) < 2 or bias == matrix[1:]


def _judge_biases(case: Any, shapes: Any) -> None:
    for name, matrix in _FEATURES.items():
        pairs = list(zip(shapes.get(name, ()), shapes.get(matrix, ()), strict=True))
        off = [(bias, whole) for bias, whole in pairs if bias != whole[1:]]
        if not off:
            continue
        why = f"a rank has `{name}` of shape {off[0][0]} and `{matrix}` of shape {off[0][1]}"
        if name == "up_bias":
            then = "put each element of this bias on the rank that has the same column of `up`"
            raise Wrong("your code does not cut the bias of the hidden channels like their columns", why=why, next=then)
        then = f"leave this bias whole: `{matrix}` is cut by rows, so every rank's part has all columns"
        raise Wrong("your code cuts the bias of the output, but every rank has all output channels", why=why, next=then)


def _judge_bias_values(case: Any, biases: Any, right: Any) -> None:
    name = BIASES[case["kind"]]
    for rank, mine in enumerate(biases):
        if not mine or distance(mine, right) <= SAME:
            continue
        why = f"the outputs are right, but `{name}` begins with {mine[0]:.6g} on rank {rank}, not {right[0]:.6g}"
        then = "keep the output's bias whole on every rank, and add it once, after the sum"
        if distance([case["ranks"] * value for value in mine], right) <= SAME:
            raise Wrong("your code divides the output's bias among the ranks", why=why, next=then)
        raise Wrong(
            "in your code, a rank's copy of the output's bias differs from the block's bias", why=why, next=then
        )


def _judge_heads(case: Any, got: Any) -> None:
    if case["kind"] != "attention":
        return
    if any(mine is None for mine in got["heads"]):
        raise Wrong("your shard has no entry 'heads'", why="heads_of() needs this entry", next="keep the block's names")
    size = case["width"] // case["heads"]
    held = [shape[1] // size for shape in got["shapes"]["query"]]
    if held != got["heads"]:
        rank = next(at for at, (mine, right) in enumerate(zip(got["heads"], held, strict=True)) if mine != right)
        why = (
            f"rank {rank} has the columns of {held[rank]} heads of {size} channels, but 'heads' is {got['heads'][rank]}"
        )
        then = "count the shard's heads again: this number is used to divide columns into heads"
        raise Wrong("your shard's number of heads does not match its columns", why=why, next=then)


def _judge_output(case: Any, got: Any, want: Any) -> None:
    right, shape = want["outputs"][0], want["output_shapes"][0]
    for rank, mine in enumerate(got["output_shapes"]):
        if mine != shape:
            why = f"rank {rank}'s output has the shape {mine}; the whole block's has {shape}"
            raise Wrong(
                "the shape of your output differs from that of the block's output",
                why=why,
                next="return a tensor of tokens × channels",
            )
    for rank, mine in enumerate(got["outputs"]):
        if told := unreadable(mine, len(right)):
            raise Wrong(
                "your output contains values that are not finite",
                why=f"rank {rank}'s output {told}",
                next="run your forward pass with one rank",
            )
        if distance(mine, right) <= SAME:
            continue
        why = f"rank {rank}'s output has a relative error of {distance(mine, right):.2g}"
        bias = listed(drawn_block(case)[0][BIASES[case["kind"]]]) * case["tokens"]
        if not any(_counts(got, "forward")):
            then = "each rank has a part of every sum: where are the parts added up?"
            raise Wrong("your code never sums the outputs of the ranks", why=why, next=then)
        for times, what in (
            (case["ranks"], "in your code, every rank adds the bias before the sum"),
            (0, "your output does not contain the bias"),
            (1 / case["ranks"], "your output contains only a share of the bias"),
        ):
            if distance(mine, [a + (times - 1) * b for a, b in zip(right, bias, strict=True)]) <= SAME:
                raise Wrong(
                    what, why=f"{why}; it contains the bias {times:g} times", next="add the bias once, after the sum"
                )
        if distance(mine, [(a - b) / case["ranks"] + b for a, b in zip(right, bias, strict=True)]) <= SAME:
            raise Wrong("your code averages the ranks' parts", why=why, next="add the parts instead")
        if any(distance(other, mine) > SAME for other in got["outputs"]):
            times = max(_counts(got, "forward"))
            why = f"the forward pass makes {counted(times, 'all-reduce')}, but the outputs still differ between ranks"
            then = "sum only the parts of the output: x is already complete on every rank"
            raise Wrong("your code sums something other than the parts of the output", why=why, next=then)
        if max(_counts(got, "forward")) > 1:
            why = f"{why}; the forward pass makes {max(_counts(got, 'forward'))} all-reduces"
            then = "sum only the parts of the output: each hidden channel and each head belongs to a single rank"
            raise Wrong("your code adds up values that are not parts of a sum", why=why, next=then)
        if case["kind"] == "attention":
            then = "the width of a head is the same on every rank: which number is under the square root?"
            raise Wrong("your heads do not compute what they compute in the whole block", why=why, next=then)
        then = "compute one token's output with one rank and with two ranks: which term differs?"
        raise Wrong("your output is not that of the whole block", why=why, next=then)


def _judge_places(gradients: Any, want: Any) -> None:
    """Gradients of the whole block in another order: of columns that are not where the ranks' order puts them."""
    for name in want:
        if name not in AXES:
            continue
        for part, row in zip(gradients[name], want[name], strict=False):
            if len(gradients[name]) == 1 and distance(sorted(part), sorted(row)) <= SAME < distance(part, row):
                why = f"the gradients of `{name}` are those of the whole block, in a different order"
                then = "give each rank neighbouring columns or heads, in the order of the ranks: compare with the block"
                raise Wrong("in your code, a rank has columns that are not its own", why=why, next=then)


def _judge_gradients(case: Any, got: Any, want: Any) -> None:
    ranks, right = case["ranks"], want["input_gradients"][0]
    last = _LAST[case["kind"]]
    mine = got["gradients"][last][0] if got["gradients"][last] else []
    if distance(mine, [ranks * value for value in want["gradients"][last][0]]) <= SAME:
        why = f"the gradient of `{last}` is {ranks} times what it should be"
        then = "every rank already has the whole gradient of the output: what must the sum's backward pass still do?"
        raise Wrong("your backward pass sums the gradient of the sum again", why=why, next=then)
    for rank, found in enumerate(got["input_gradients"]):
        if distance(found, right) <= SAME:
            continue
        if not found and not any(_counts(got, "backward")):
            why = f"the outputs are right, but rank {rank}'s x gets no gradient at all"
            then = "call all_reduce only inside a torch.autograd.Function: autograd alone cannot follow all_reduce"
            raise Wrong("in your code, no gradient passes through the sum", why=why, next=then)
        off = distance(found, right)
        why = f"the outputs are right, but rank {rank}'s gradient of x has a relative error of {off:.2g}"
        if not any(_counts(got, "backward")):
            then = "sum the gradient of x over the ranks, since x goes into every rank's part"
            raise Wrong("in your code, each rank has only its own part of the input's gradient", why=why, next=then)
        raise Wrong(
            "your gradient of the input is wrong",
            why=why,
            next="sum this gradient once, where x enters the rank's part",
        )
    for name, rows in want["gradients"].items():
        parts = got["gradients"][name]
        for row in rows if name in AXES else rows[:1]:
            if not parts or any(distance(part, row) > SAME for part in parts):
                why = f"taken together, the ranks' gradients of `{name}` are not that of the whole block"
                raise Wrong(
                    "your gradient of a weight is wrong",
                    why=why,
                    next="which operations lead from the loss to this weight?",
                )
