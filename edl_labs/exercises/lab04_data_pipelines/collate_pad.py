"""collate_pad: a batch padded to its longest sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong


@exercise("collate_pad")
class CollatePad(Exercise):
    """A batch padded to its longest sequence, rounded up, with a mask that follows the lengths.

    `student.collate_pad(sequences, pad_id=, multiple=)` gives `(tokens, mask)`, padded to the longest.
    """

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"collate_pad": tuple[Any, Any]}

    def probe(self, student: Any, given: Any) -> Any:
        sequences = [list(sequence) for sequence in given["sequences"]]
        tokens, mask = student.collate_pad(sequences, pad_id=given["pad_id"], multiple=given["multiple"])
        return {"tokens": tokens, "mask": mask}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        tokens, mask = got["tokens"].numpy(), got["mask"].numpy()
        right_tokens, right_mask = want["tokens"].numpy(), want["mask"].numpy()
        lengths = [len(sequence) for sequence in case["sequences"]]
        if tokens.shape != right_tokens.shape or mask.shape != right_mask.shape:
            raise _wrong_shape(case, tokens.shape, mask.shape, right_tokens.shape)
        if (str(tokens.dtype), str(mask.dtype)) == ("bool", "int64"):
            raise Wrong(
                "your tokens and your mask are in the wrong order",
                why="your function returned the mask first",
                next="return the tokens first, then the mask: return tokens, mask",
            )
        if str(mask.dtype) != "bool" or str(tokens.dtype) != "int64":
            raise Wrong(
                "your tokens must be int64, and your mask must be bool",
                why=f"your tokens are {tokens.dtype}, and your mask is {mask.dtype}",
                next="create them with dtype=torch.long and dtype=torch.bool",
            )
        if not (mask == right_mask).all():
            if mask.all():
                raise _all_true(lengths, mask.shape[1])
            row = int((mask != right_mask).any(axis=1).argmax())
            why = f"row {row} has {lengths[row]} tokens, and its mask is true in {int(mask[row].sum())} places"
            if (mask == ~right_mask).all():
                raise Wrong(
                    "your mask is inverted", why=why, next="make the mask true for tokens, and false for padding"
                )
            then = (
                "build the mask from the lengths: a token that equals pad_id is still a token, and an empty "
                "sequence still has a row"
            )
            raise Wrong("your mask does not follow the lengths", why=why, next=then)
        if not (tokens == right_tokens).all():
            _refuse_padding(case, tokens, right_mask, right_tokens)
            raise Wrong(
                "your tokens are in the wrong places",
                why="a row has its tokens first, in their order, and then pad_id up to its end",
                next="print one row next to its sequence: at which position do they first differ?",
            )

    def format_case(self, case: Any) -> str:
        return f"pad_id={case['pad_id']}, multiple={case['multiple']}, sequences={case['sequences']}"


def _wrong_shape(case: Any, tokens: Any, mask: Any, right: Any) -> Wrong:
    longest, rows = max(len(sequence) for sequence in case["sequences"]), len(case["sequences"])
    yours = f"for {rows} sequences (an empty one counts too), expected shape {right}, got {tokens}"
    if len(tokens) == 2 and tokens == right[::-1] and tokens != right:
        return Wrong("in your batch, each sequence is a column", why=yours, next="make each sequence a row")
    if len(tokens) == 2 and tokens[0] != rows and tokens[1] == right[1]:
        empty = sum(not sequence for sequence in case["sequences"])
        if tokens[0] == rows - empty:
            return Wrong(
                "your code leaves out empty sequences",
                why=yours,
                next="give an empty sequence a row that contains only padding",
            )
        if tokens[0] > rows:
            return Wrong(
                f"your batch has {tokens[0]} rows for {rows} sequences",
                why=yours,
                next="round up only the width: the batch has exactly one row for each sequence",
            )
        return Wrong(
            f"your batch has {tokens[0]} rows for {rows} sequences", why=yours, next="make one row for each sequence"
        )
    if tokens == right:
        return Wrong(
            "your tokens and your mask have different shapes",
            why=f"tokens has shape {tokens}, mask {mask}",
            next="make one flag for each position of tokens",
        )
    if not longest and len(tokens) == 2:
        told = "a batch without any tokens must have no columns"
    elif len(tokens) == 2 and tokens[1] == longest:
        told = "your code does not round the width up to the multiple"
    elif len(tokens) == 2 and tokens[1] > right[1]:
        told = "your code pads the batch further than it has to"
    else:
        told = "your batch has the wrong shape"
    why = (
        f"the longest of {right[0]} sequences has {longest} tokens, and multiple is {case['multiple']}; your shape is "
        f"{tokens}"
    )
    return Wrong(told, why=why, next="round the longest length of this batch up to the next multiple, no further")


def _all_true(lengths: list[int], width: int) -> Wrong:
    row = next(row for row, length in enumerate(lengths) if length < width)
    return Wrong(
        "your mask is true for padding, too",
        why=f"row {row} has {lengths[row]} tokens, and its mask is true in {width} places: either your code took the "
        "length after it had added padding to the given list, or it used no length at all",
        next="leave the given lists unchanged, and make each row's mask true in as many places as it has tokens",
    )


def _refuse_padding(case: Any, tokens: Any, mask: Any, right: Any) -> None:
    """The tokens are where they belong, and one other number stands behind all of them."""
    behind = {int(token) for token in tokens[~mask]}
    if (tokens == right)[mask].all() and len(behind) == 1:
        raise Wrong(
            f"your code pads the rows with {behind.pop()}, not with pad_id",
            why=f"pad_id is {case['pad_id']} here",
            next="pad each row with the given pad_id",
        )
