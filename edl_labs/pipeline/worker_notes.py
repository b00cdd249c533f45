"""What workers of a loader note in shared memory, so that the main process knows what each was at when it stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import EdlError

# What a worker notes in shared memory: the sample that it reads (or none), and how many batches it began and made.
READS, BEGUN, MADE, NOTES = 0, 1, 2, 3
NONE = -1  # no sample has this number


class Watched:
    """A data set that notes in shared memory which sample of which batch each worker is at."""

    def __init__(self, dataset: Any, notes: Any) -> None:
        self.dataset, self.notes = dataset, notes

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, samples: Sequence[int]) -> list[Any]:
        place = _place()
        self.notes[place + BEGUN] += 1
        try:
            return [self[sample] for sample in samples]
        except Exception:
            self.notes[place + MADE] = self.notes[place + BEGUN]
            raise

    def __getitem__(self, sample: int) -> Any:
        # A limit that ends this, which is not an Exception, leaves the note where it is.
        place = _place()
        with suppress(TypeError):
            self.notes[place + READS] = sample
        item: Any
        try:
            item = self.dataset[sample]
        except EdlError as error:
            # torch would make it a RuntimeError on its way to the main process.
            item = Failure(error)
        except Exception as error:
            self.notes[place + READS] = NONE
            error.add_note(f"this happened in sample {sample} of the data set")
            raise
        self.notes[place + READS] = NONE
        return item


def _place() -> int:
    from torch.utils.data import get_worker_info

    info = get_worker_info()
    return 0 if info is None else NOTES * info.id


@dataclass(frozen=True)
class Failure:
    """An error with its three sentences, instead of a sample or a batch."""

    error: EdlError


class NotingCollate:
    """The collate function, past which failures go as they are."""

    def __init__(self, collate: Callable[[Any], Any] | None, notes: Any) -> None:
        self.collate, self.notes = collate, notes

    def __call__(self, samples: list[Any]) -> Any:
        try:
            batch = self._batch(samples)
        except EdlError as error:
            batch = Failure(error)
        except Exception:
            self._note()
            raise
        self._note()
        return batch

    def _batch(self, samples: list[Any]) -> Any:
        for sample in samples:
            if isinstance(sample, Failure):
                return sample
        if self.collate is not None:
            return self.collate(samples)
        from torch.utils.data import default_collate

        return default_collate(samples)

    def _note(self) -> None:
        place = _place()
        self.notes[place + MADE] = self.notes[place + BEGUN]
