"""What `python3 -c` gets on a host: it takes the program from stdin into memory, and nothing touches the disk.

The controller sends the line `changectl LENGTH`, the zip of that length, and then one JSON request per line. One line
may come before: the password for a sudo that did not ask for it. It is skipped, and no message ever quotes it.
It is written so that every Python from 2.7 on can at least say that it is too old.
"""

from __future__ import annotations

BOOTSTRAP = r"""
import json, sys
def fail(reason, message):
    sys.stdout.write(json.dumps({"id": 0, "error": {"reason": reason, "message": message}}) + "\n")
    sys.stdout.flush()
    sys.exit(3)
if sys.version_info < (3, 8):
    fail("python_too_old", "this host's Python is %d.%d; Python 3.8 or newer is needed "
         "(set ansible_python_interpreter to one)" % sys.version_info[:2])
import importlib.abc, importlib.util, io, zipfile
source = sys.stdin.buffer
try:
    words = source.readline().split()
    if words[:1] != [b"changectl"]:
        words = source.readline().split()
    data = source.read(int(words[1])) if words[:1] == [b"changectl"] else b""
    archive = zipfile.ZipFile(io.BytesIO(data))
    texts = {name: archive.read(name).decode("utf-8") for name in archive.namelist()}
except Exception as error:
    fail("damaged_program", "the host program did not arrive whole (%s)" % type(error).__name__)
class Memory(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def place(self, name):
        path = name.replace(".", "/")
        return next((p for p in (path + "/__init__.py", path + ".py") if p in texts), None)
    def find_spec(self, name, path=None, target=None):
        place = self.place(name)
        if place is None:
            return None
        return importlib.util.spec_from_loader(name, self, origin=place, is_package=place.endswith("/__init__.py"))
    def get_source(self, name):
        return texts[self.place(name)]
    def is_package(self, name):
        return self.place(name).endswith("/__init__.py")
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        exec(compile(self.get_source(module.__name__), module.__spec__.origin, "exec"), module.__dict__)
sys.dont_write_bytecode = True
sys.meta_path.insert(0, Memory())
from changectl_host.serve import serve
sys.exit(serve())
"""
