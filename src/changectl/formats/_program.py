"""Which words of a command line belong to the engine: not the launcher's, and not those hidden in a wrapper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Launchers that run the rest of the line: options that take the next word, and positional words before the program.
_LAUNCHERS: dict[str, tuple[frozenset[str], int]] = {
    "catatonit": (frozenset(), 0),
    "chrt": (frozenset({"-T", "-P", "-D"}), 1),
    "dumb-init": (frozenset({"-r", "--rewrite"}), 0),
    "env": (frozenset({"-u", "--unset", "-C", "--chdir"}), 0),
    "exec": (frozenset({"-a"}), 0),
    "gosu": (frozenset(), 1),
    "ionice": (frozenset({"-c", "-n", "--class", "--classdata"}), 0),
    "mpirun": (frozenset({"-n", "-np", "--np", "-c", "-N", "-x", "-H", "--host", "--hostfile"}), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "nohup": (frozenset(), 0),
    "numactl": (
        frozenset({"-i", "-m", "-N", "-C", "-p", "-P", "--interleave", "--membind", "--cpunodebind", "--physcpubind"}),
        0,
    ),
    "runuser": (frozenset({"-u", "--user", "-g", "--group"}), 0),
    "setpriv": (frozenset({"--reuid", "--regid", "--groups", "--inh-caps", "--bounding-set", "--ambient-caps"}), 0),
    "setsid": (frozenset(), 0),
    "stdbuf": (frozenset({"-i", "-o", "-e"}), 0),
    "su-exec": (frozenset(), 1),
    "sudo": (frozenset({"-u", "--user", "-g", "--group", "-C", "-h", "-p"}), 0),
    "taskset": (frozenset(), 1),
    "tini": (frozenset({"-e", "-p"}), 0),
    "timeout": (frozenset({"-s", "--signal", "-k", "--kill-after"}), 1),
}
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"})
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_CONTAINER_SWITCHES = frozenset(
    {
        "-d",
        "--detach",
        "-i",
        "--interactive",
        "-t",
        "--tty",
        "--rm",
        "--init",
        "--privileged",
        "--read-only",
        "-P",
        "--publish-all",
        "-q",
        "--quiet",
        "--no-healthcheck",
        "--oom-kill-disable",
        "--sig-proxy",
        "--disable-content-trust",
        "--replace",
        "--tls-verify",
    }
)
_PYTHON_VALUES = frozenset({"-W", "-X"})


@dataclass(frozen=True, slots=True)
class Program:
    """The engine's part of a command line."""

    first: int  # index of the first word after the program
    wrapper: str = ""  # why a flag that is not here may still be set; empty: this is the whole truth


def find_program(words: Sequence[str]) -> Program:
    """Where the engine's own words begin; a list that starts with an option is all the engine's."""
    index = 0
    if words and not words[0].startswith("-") and len(words[0].split()) > 1:
        return Program(len(words), "the first word is a whole command text, which a shell or the engine splits itself")
    while index < len(words) and not words[index].startswith("-"):
        name = words[index].rsplit("/", 1)[-1]
        if name in _LAUNCHERS:
            index = _after_launcher(words, index, name)
        elif name in _SHELLS:
            return _shell(words, index)
        elif name in _CONTAINERS:
            return _container(words, index, name)
        elif name.startswith("python"):
            return _python(words, index)
        elif name.endswith((".sh", ".bash")):
            return Program(index + 1, f"{words[index]} is a wrapper script, which may set the flag itself")
        elif words[index + 1 : index + 2] == ["--"]:
            return Program(index + 1, f"what follows -- may be another program that {words[index]} starts")
        else:
            return Program(index + 1)
    return Program(0) if index == 0 else Program(index, f"no program follows {words[0]}")


def _after_launcher(words: Sequence[str], index: int, name: str) -> int:
    valued, positional = _LAUNCHERS[name]
    index += 1
    while index < len(words):
        word = words[index]
        if word == "--":
            return index + 1 + positional
        if word.startswith("-") and len(word) > 1:
            index += 2 if word in valued else 1
        elif name == "env" and "=" in word:
            index += 1
        else:
            break
    return index + positional


def _shell(words: Sequence[str], index: int) -> Program:
    rest = index + 1
    while rest < len(words) and words[rest].startswith("-"):
        if not words[rest].startswith("--") and "c" in words[rest]:
            return Program(len(words), f"the command is a script text given to {words[index]} -c")
        rest += 1
    script = words[rest] if rest < len(words) else "its input"
    return Program(min(rest + 1, len(words)), f"{words[index]} runs {script}, which may set the flag itself")


def _container(words: Sequence[str], index: int, name: str) -> Program:
    if "run" not in words[index + 1 : index + 3]:
        return Program(len(words), f"{name} starts a container here whose command line stands elsewhere")
    image = words.index("run", index + 1) + 1
    while image < len(words) and words[image].startswith("-"):
        switches = words[image] in _CONTAINER_SWITCHES or "=" in words[image]
        # `-it` is two switches, `-p8000:8000` an option with its value attached.
        attached = not words[image].startswith("--") and len(words[image]) > 2
        image += 1 if switches or attached else 2
    return Program(min(image + 1, len(words)), f"{name} runs an image whose entry point may set the flag itself")


def _python(words: Sequence[str], index: int) -> Program:
    rest = index + 1
    while rest < len(words) and words[rest].startswith("-"):
        if words[rest] == "-m":
            return Program(min(rest + 2, len(words)))
        if words[rest] == "-c":
            return Program(len(words), "the command is a program text given to python -c")
        rest += 2 if words[rest] in _PYTHON_VALUES else 1
    return Program(min(rest + 1, len(words)))
