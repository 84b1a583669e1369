"""What is so on a host, read from the outside: files, the engine's processes, one real answer, changectl's own records.

Runs on the host itself, with nothing but Python 3.8: `python3 - < observe.py` with the question as its only argument, a
JSON object, and the answer as JSON on stdout. It changes nothing and calls nothing of changectl.
"""

import hashlib
import json
import os
import stat
import sys
import time
import urllib.request
from pathlib import Path

PATIENCE = 10.0  # seconds for one real answer of a tiny model
TRIES = 2  # an engine closes a connection now and then; a service that is down is down twice


def observe(question):
    """Everything that the judge wants to know.

    `question`: files (paths), needles (words that the engine's command line holds), environ (names of variables that
    belong to its configuration), endpoint, starts (a file with one line per start), states (state folders), patience
    (seconds for an answer).
    """
    return {
        "files": {path: file_facts(path) for path in question["files"]},
        "processes": processes(question["needles"], question.get("environ", [])),
        "starts": lines(question["starts"]),
        "answer": answer(question["endpoint"], question.get("patience", PATIENCE)),
        "records": {root: records(root) for root in question.get("states", [])},
        "boot": text("/proc/sys/kernel/random/boot_id").strip(),
        "uptime": time.clock_gettime(time.CLOCK_BOOTTIME),
        "now": time.time(),
    }


def file_facts(path):
    """Bytes and metadata of the file behind a path; links are followed, as the engine follows them."""
    try:
        content = Path(path).read_bytes()
        status = Path(path).stat()
        names = sorted(os.listxattr(path))
        attributes = {name: os.getxattr(path, name).hex() for name in names}
    except OSError as error:
        return {"exists": False, "error": error.strerror}
    return {
        "exists": True,
        "sha256": hashlib.sha256(content).hexdigest(),
        "uid": status.st_uid,
        "gid": status.st_gid,
        "mode": stat.S_IMODE(status.st_mode),
        "xattrs": attributes,
        "place": str(Path(path).resolve()),
        "changed": status.st_ctime,
    }


def processes(needles, names):
    """Every living process whose command line holds all needles; a wrapper's shell is not the engine."""
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            argv = text(entry / "cmdline").split("\0")[:-1]
            if not all(needle in argv for needle in needles):
                continue
            after = text(entry / "stat").rpartition(")")[2].split()
            variables = dict(item.partition("=")[::2] for item in text(entry / "environ").split("\0") if "=" in item)
        except OSError:
            continue  # it ended while it was looked at
        if after[0] in "ZX":
            continue
        ticks = int(after[19])
        found.append(
            {
                "pid": int(entry.name),
                "argv": argv,
                "environ": {name: variables.get(name) for name in names},
                "ticks": ticks,
                "started": booted + ticks / os.sysconf("SC_CLK_TCK"),
                "stopped": after[0] == "T",
            }
        )
    return found


def answer(endpoint, patience):
    """One real answer: some text to a prompt, within the time."""
    body = json.dumps({"prompt": "One more word", "max_tokens": 3, "temperature": 0}).encode()
    said = {"ok": False, "text": "not asked"}
    for _ in range(TRIES):
        request = urllib.request.Request(endpoint + "/v1/completions", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=patience) as reply:
                words = json.loads(reply.read())["choices"][0]["text"]
        except (OSError, ValueError, KeyError, IndexError) as error:
            said = {"ok": False, "text": f"{type(error).__name__}: {error}"}
            time.sleep(0.2)
            continue
        return {"ok": bool(words), "text": words}
    return said


def records(root):
    """What changectl left in a state folder about each run: armed, disarmed, fired; and the host's lease."""
    runs = {}
    folder = Path(root) / "runs"
    for path in folder.rglob("*.json"):
        if path.stem in ("armed", "disarmed", "fired"):
            runs.setdefault(str(path.parent.relative_to(folder)), {})[path.stem] = document(path)
    return {"runs": runs, "lease": document(Path(root) / "lease.json")}


def document(path):
    """A JSON file; None when it is not there, and what is wrong when it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return {"unreadable": str(error)}


def lines(path):
    """The number of lines of a file; None when it is not there."""
    try:
        return len(Path(path).read_bytes().splitlines())
    except OSError:
        return None


def text(path):
    """The text of a small file of the kernel."""
    return Path(path).read_bytes().decode("utf-8", "replace")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(observe(json.loads(sys.argv[1]))))
