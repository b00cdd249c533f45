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
                "tokens and mask are the wrong way round", why="the mask came first", next="return tokens, mask"
            )
        if str(mask.dtype) != "bool" or str(tokens.dtype) != "int64":
            raise Wrong(
                "tokens are int64, the mask is bool",
                why=f"yours are {tokens.dtype} and {mask.dtype}",
                next="dtype=torch.long, dtype=torch.bool",
            )
        if not (mask == right_mask).all():
            if mask.all():
                raise _all_true(lengths, mask.shape[1])
            row = int((mask != right_mask).any(axis=1).argmax())
            told = "the mask is upside down" if (mask == ~right_mask).all() else "the mask does not follow the lengths"
            raise Wrong(
                told,
                why=f"row {row} has {lengths[row]} tokens, and its mask is true {int(mask[row].sum())} times",
                next="a token that happens to equal pad_id is still a token; so is an empty sequence still a row",
            )
        if not (tokens == right_tokens).all():
            _refuse_padding(case, tokens, right_mask, right_tokens)
            raise Wrong(
                "tokens are not where they belong",
                why="tokens come first, in their order, then pad_id up to the end of the row",
                next="compare one row with its sequence",
            )

    def format_case(self, case: Any) -> str:
        return f"pad_id={case['pad_id']}, multiple={case['multiple']}, sequences={case['sequences']}"


def _wrong_shape(case: Any, tokens: Any, mask: Any, right: Any) -> Wrong:
    longest, rows = max(len(sequence) for sequence in case["sequences"]), len(case["sequences"])
    yours = f"{rows} sequences came, an empty one is one too; yours is {tokens}, {right} is right"
    if len(tokens) == 2 and tokens == right[::-1] and tokens != right:
        return Wrong("each sequence is a column", why=yours, next="each sequence is a row: one row for each of them")
    if len(tokens) == 2 and tokens[0] != rows and tokens[1] == right[1]:
        empty = sum(not sequence for sequence in case["sequences"])
        if tokens[0] == rows - empty:
            return Wrong(
                "empty sequences were left out", why=yours, next="an empty sequence has a row that is only padding"
            )
        if tokens[0] > rows:
            return Wrong(
                f"there are {tokens[0]} rows for {rows} sequences",
                why=yours,
                next="round up the width alone: the batch has a row for each sequence, and no more",
            )
        return Wrong(f"there are {tokens[0]} rows for {rows} sequences", why=yours, next="one row for each sequence")
    if tokens == right:
        return Wrong("tokens and mask differ in shape", why=f"{tokens} and {mask}", next="one flag for each token")
    if not longest and len(tokens) == 2:
        told = "a batch without any token has no columns"
    elif len(tokens) == 2 and tokens[1] == longest:
        told = "the width is not the requested multiple"
    elif len(tokens) == 2 and tokens[1] > right[1]:
        told = "the batch is padded further than it needs"
    else:
        told = "the batch has the wrong shape"
    why = f"the longest of {right[0]} sequences has {longest} tokens, multiple is {case['multiple']}; yours is {tokens}"
    return Wrong(told, why=why, next="round the longest length of this batch up, no further")


def _all_true(lengths: list[int], width: int) -> Wrong:
    row = next(row for row, length in enumerate(lengths) if length < width)
    return Wrong(
        "the mask is true for padding too",
        why=f"row {row} has {lengths[row]} tokens, and its mask is true {width} times: a length was taken when padding "
        "stood in the list already (were the given lists made longer?), or no length at all",
        next="leave the given lists as they are; a row's mask is true as often as its sequence was long",
    )


def _refuse_padding(case: Any, tokens: Any, mask: Any, right: Any) -> None:
    """The tokens are where they belong, and one other number stands behind all of them."""
    behind = {int(token) for token in tokens[~mask]}
    if (tokens == right)[mask].all() and len(behind) == 1:
        raise Wrong(
            f"{behind.pop()} follows the tokens, and not pad_id",
            why=f"pad_id is {case['pad_id']} here",
            next="fill up each row with the pad_id that is given",
        )
