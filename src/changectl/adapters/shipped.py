"""Where the files lie that come with changectl and are not Python modules of it."""

from __future__ import annotations

from pathlib import Path

import changectl


def playbooks_folder() -> Path:
    """The folder with plays, library/ and module_utils/: inside the installed package, or beside src/ in a checkout."""
    package = Path(changectl.__file__).parent
    installed = package / "playbooks"
    return installed if installed.is_dir() else package.parent.parent / "playbooks"
