"""Exceptions: one class per family, all under :class:`CoirlError`.

What was refused is in the message, and as data in the attributes: ``error.state``, ``error.action`` and ``error.sum`` of a row of
probabilities that does not sum to one, for example. :attr:`CoirlError.data` has all of them.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ArrayError",
    "CoirlError",
    "CommandError",
    "ContextError",
    "DataError",
    "FileError",
    "ModelError",
    "NotFittedError",
    "SettingError",
    "SolverError",
]


class CoirlError(Exception):
    """Something was refused, or could not be computed."""

    #: What the message is about, by name.
    data: dict[str, Any]

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.data = data

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["data"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (type(self), str(self), self.data))


def _again(family: type[CoirlError], message: str, data: dict[str, Any]) -> CoirlError:
    return family(message, **data)


class ModelError(CoirlError, ValueError):
    """A model that is none: probabilities, admissible actions, the start, the discount."""


class ArrayError(CoirlError, ValueError):
    """An array of the wrong shape, or with entries that are not finite."""


class ContextError(CoirlError, ValueError):
    """A context outside its space, or missing where the dynamics depend on it."""


class DataError(CoirlError, ValueError):
    """Demonstrations, records, tables or policies that do not fit the model."""


class SettingError(CoirlError, ValueError):
    """A setting outside its range, or one that does not go with the others."""


class SolverError(CoirlError, ArithmeticError):
    """A computation that no solver could carry out."""


class FileError(CoirlError, OSError):
    """A file that could not be read or written, or is not what it claims to be."""

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message, **data)
        # OSError has an attribute of this name already, which hides the data.
        self.errno = data.get("errno")


class CommandError(CoirlError, RuntimeError):
    """A command that refused its input; ``returncode`` is its exit code."""


class NotFittedError(CoirlError, ValueError, AttributeError):
    """A learner was asked before it was fitted."""
