"""The proof of a way back: the host compared with what was saved, and looked at once more a moment later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from changectl.core.command import different_arguments, quoted
from changectl.core.observed import Model, Observed, ProcessFacts
from changectl.workflow.command_words import difference_text, shown_words
from changectl.workflow.conditions import VOLATILE
from changectl.workflow.hold import Hold

LOOK_AGAIN = 1.0  # seconds between two looks at the files: a job may put its own version back


def verify(hold: Hold, proof: dict[str, Any], *, compare_process: bool = True) -> list[str]:
    """Compare the host with the snapshot; returns what is not as it was, in sentences.

    Raises:
        HostCallError, ContactLost: the host could not be asked.
    """
    target = hold.target
    files: Mapping[str, Any] = target.ask("verify", hold.host_run)["files"]
    wrong = [_differs(hold, path, entry) for path, entry in files.items() if not entry["equal"]]
    proof["files"] = {path: entry["equal"] for path, entry in files.items()}
    if not files:
        wrong.append("the snapshot holds no file to compare")
    observed = target.inspect()
    if compare_process:
        wrong += _running(hold, observed, proof)
    wrong += _model(hold, proof)
    wrong += _rewritten(hold, files, proof)
    return wrong


def is_final(proof: Mapping[str, Any]) -> bool:
    """Whether everything that a restore can bring back is back, so that another one would find the very same."""
    files = proof.get("files") or {}
    return bool(files) and all(files.values()) and proof.get("model") is True and proof.get("process") is False


def _rewritten(hold: Hold, before: Mapping[str, Any], proof: dict[str, Any]) -> list[str]:
    """Files that are not any more what they were at the first look; a proof that is over in a second is none."""
    hold.tools.clock.sleep(LOOK_AGAIN)
    after: Mapping[str, Any] = hold.target.ask("verify", hold.host_run)["files"]
    moved = [path for path, entry in after.items() if entry != before.get(path)]
    proof["files"] |= {path: after[path]["equal"] and before[path]["equal"] for path in moved}
    return [f"{path} was written again by something else right after it was restored" for path in moved]


def _differs(hold: Hold, path: str, entry: Mapping[str, Any]) -> str:
    words: list[str] = entry["differs"]
    if entry.get("part") == "back":
        return (
            f"{path}: somebody else changed other parts of it since it was saved ({', '.join(words)}); "
            "what the run had written there is taken back, and the rest stays as they left it"
        )
    if path == hold.edit_path:
        return f"{path} differs in {', '.join(words)}"
    return f"{path} was changed by somebody else since it was saved ({', '.join(words)}), and stays as they left it"


def _running(hold: Hold, observed: Observed, proof: dict[str, Any]) -> list[str]:
    old, new = hold.observed.process, observed.process
    if old is None or new is None:
        return ["no running process to compare"]
    hold.tools.secrets.learn_observed(observed)
    wrong = _arguments(hold, old, new, proof)
    wrong += _identity(old, new)
    if old.environ is None or new.environ is None:
        wrong.append("the variables of the process cannot be read")
    names = [{name: value for name, value in (process.environ or {}).items() if name not in VOLATILE}
             for process in (old, new)]  # fmt: skip
    differing = sorted(name for name in {*names[0], *names[1]} if names[0].get(name) != names[1].get(name))
    if differing:
        wrong.append(f"variables of the process differ: {', '.join(differing)}")
    proof["process"] = not wrong
    return wrong


def _arguments(hold: Hold, old: ProcessFacts, new: ProcessFacts, proof: dict[str, Any]) -> list[str]:
    """The words that differ, in one sentence; a program that is only called by another name is told, and the same."""
    if not old.argv or not new.argv:
        return ["the arguments of the process cannot be read"]
    same_program = old.runs is not None and old.runs == new.runs
    before, after = (shown_words(argv, hold.tools.secrets) for argv in (old.argv, new.argv))
    different = different_arguments(old.argv, new.argv, same_program=same_program)
    if different:
        told = "; ".join(difference_text(argument, before, after) for argument in different)
        return [f"the process runs with other arguments than before: {told}"]
    if old.argv != new.argv:
        proof["called"] = f"argument 0: {quoted(before[0])} -> {quoted(after[0])} (same program)"
    return []


def _identity(old: ProcessFacts, new: ProcessFacts) -> list[str]:
    """Whoever could not be told is not the same: the engine may now read less, or write as root."""
    wrong = []
    if old.uid is None or new.uid != old.uid:
        wrong.append(f"the process runs as user {new.uid}, and ran as {old.uid}")
    if old.gids is None or new.gids is None or sorted(new.gids) != sorted(old.gids):
        wrong.append(f"the process runs with the groups {new.gids}, and ran with {old.gids}")
    return wrong


def _model(hold: Hold, proof: dict[str, Any]) -> list[str]:
    """The same files, sizes, times and header digests as in the manifest that was taken before the change."""
    before = hold.model
    known = {file.path: [file.size, file.mtime_ns, file.sha256] for file in before.files}
    now = hold.target.model(hold.observed.process, known)
    wrong = [f"model file {problem.path}: {problem.problem}" for problem in now.problems]
    wrong += _moved_files(before, now)
    proof["model"] = not wrong
    return wrong


def _moved_files(before: Model, now: Model) -> list[str]:
    old = {file.path: (file.size, file.sha256) for file in before.files}
    new = {file.path: (file.size, file.sha256) for file in now.files}
    return [f"model file {path} is not the one before the change" for path in sorted({*old, *new})
            if old.get(path) != new.get(path)]  # fmt: skip
