"""Finds a project on disk: its file `changectl.toml` upwards like git's, its inventory, its services."""

from __future__ import annotations

import stat
from pathlib import Path

from changectl.core.declared.project import FILE_NAME, Project, ProjectFile
from changectl.core.declared.project import load as load_project_file
from changectl.core.declared.source import MAXIMUM_BYTES
from changectl.core.errors import InputError, Problem

# Which file of an inventory folder Ansible is given: the folder itself would make Ansible read the services, too.
_HOSTS_FILES = ("hosts.yml", "hosts.yaml", "hosts.ini", "hosts", "inventory.yml", "inventory.ini")
_SUFFIXES = (".yml", ".yaml")


def find_project(start: Path, inventory: Path | None = None) -> Project:
    """The project that a folder belongs to; without a project file the folder itself, with defaults.

    Args:
        start: where the search upwards begins, usually the working directory.
        inventory: what `-i` names, relative to `start`; replaces the project file's.

    Raises:
        InputError: a project file that is not usable.
    """
    start = start.absolute()
    file = next((folder / FILE_NAME for folder in (start, *start.parents) if (folder / FILE_NAME).is_file()), None)
    root = start if file is None else file.parent
    settings = ProjectFile() if file is None else _read(file)
    chosen = start / inventory if inventory is not None else root / settings.inventory
    folder = chosen if chosen.is_dir() else chosen.parent
    own_services = settings.services if inventory is None else None
    return Project(
        root=root,
        file=file,
        database=root / settings.database,
        inventory=_hosts_file(chosen),
        services=root / own_services if own_services is not None else folder / "services",
        key_file=root / settings.key_file,
        state_dir=settings.state_dir,
        lease=settings.lease,
    )


def read_bytes(path: Path) -> bytes:
    """A regular file's bytes. Raises InputError in words when it cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(Problem("not a file", show(path)))
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(Problem("there is no such file", show(path))) from None
    except OSError as error:
        raise InputError(Problem(f"cannot be read: {error.strerror or error}", show(path))) from None
    except ValueError:
        raise InputError(Problem("not a usable file name", repr(str(path)))) from None


def service_names(project: Project) -> list[str]:
    """The services that the project has files for."""
    folder = Path(project.services)
    if not folder.is_dir():
        return []
    return sorted(
        {file.stem for file in folder.iterdir() if file.suffix in _SUFFIXES and not file.name.startswith(".")}
    )


def service_file(name: str, project: Project) -> Path | None:
    """The file of a service; None: there is none."""
    candidates = (Path(project.services) / f"{name}{suffix}" for suffix in _SUFFIXES)
    return next((file for file in candidates if file.is_file()), None)


def show(path: Path) -> str:
    """A path for messages: relative where it lies below the working directory."""
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def _read(file: Path) -> ProjectFile:
    if file.stat().st_mode & stat.S_IWOTH:
        # Somebody else could point us at another inventory and run their commands with our rights.
        hint = f"take the right away (chmod o-w {file}), or work in another folder"
        raise InputError(Problem("everybody may write this project file", show(file), hint=hint))
    if file.stat().st_size > MAXIMUM_BYTES:
        raise InputError(Problem("the project file is too large", show(file)))
    return load_project_file(read_bytes(file), show(file))


def _hosts_file(inventory: Path) -> Path:
    if not inventory.is_dir():
        return inventory
    return next((inventory / name for name in _HOSTS_FILES if (inventory / name).is_file()), inventory)
