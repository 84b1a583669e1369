"""Where a value really comes from, and the one edit that changes it there."""

from __future__ import annotations

import base64

import pytest

from changectl import engines, managers
from changectl.core.declared.wanted import Wanted
from changectl.core.errors import EditRefused, Refused
from changectl.core.observed import FileFacts, Observed
from changectl.core.settings import Carrier
from changectl.workflow.locate import Locator, as_text, file_values

UNIT, DROP_IN, ENV = "/etc/systemd/system/chat.service", "/etc/systemd/system/chat.service.d/x.conf", "/etc/chat.env"
ENGINE = engines.load("llamacpp")
COMMAND = "[Service]\nEnvironmentFile=/etc/chat.env\nExecStart=/opt/llama-server --parallel 4\n"


def observed(**files: str) -> Observed:
    """Files by their short names; the unit with its drop-in and environment file where they are given."""
    paths = {"unit": UNIT, "drop_in": DROP_IN, "env": ENV, "args": "/etc/chat.args", "yaml": "/etc/chat.yml"}
    contents = {paths[name]: text for name, text in files.items()}
    return Observed.read({
        "manager": {"unit": "chat.service", "files": [path for path in (UNIT, DROP_IN) if path in contents],
                    "env_files": [{"path": ENV, "optional": False}] if ENV in contents else []},
        "files": {path: {"exists": True, "content": base64.b64encode(text.encode()).decode()}
                  for path, text in contents.items()},
    })  # fmt: skip


def locator(seen: Observed, *carriers: Carrier) -> Locator:
    return Locator(carriers or (Carrier("flags", unit="chat.service"),), ENGINE, managers.load("systemd"), seen)


def parameter(name: str, to: str | None) -> Wanted:
    setting = ENGINE.setting(name)
    return Wanted("parameter", setting.name, setting, to)


def variable(name: str, to: str | None) -> Wanted:
    return Wanted("environment", name, None, to)


def test_an_option_is_edited_where_it_stands() -> None:
    edit = locator(observed(unit=COMMAND)).edit(parameter("parallel", "8"))
    assert (edit.path, edit.after) == (UNIT, COMMAND.replace("--parallel 4", "--parallel 8").encode())
    assert "+ExecStart=/opt/llama-server --parallel 8" in edit.diff()


def test_a_drop_in_that_gives_the_command_is_the_file_that_counts() -> None:
    drop_in = "[Service]\nExecStart=\nExecStart=/opt/llama-server --parallel 6\n"
    found = locator(observed(unit=COMMAND, drop_in=drop_in)).find(parameter("parallel", "8"))
    assert (found.path, found.reading.value) == (DROP_IN, "6")


def test_an_absent_option_is_inserted_into_the_first_carrier_that_can_hold_it() -> None:
    edit = locator(observed(unit=COMMAND)).edit(parameter("batch-size", "512"))
    assert edit.path == UNIT
    assert b"--batch-size 512" in edit.after


def test_the_stronger_carrier_wins_and_a_weaker_one_is_used_where_the_value_stands_only_there() -> None:
    carriers = (Carrier("flags", file="/etc/chat.args"), Carrier("env", file=ENV))
    seen = observed(unit=COMMAND, args="--parallel 2\n", env="LLAMA_ARG_N_PARALLEL=3\nLLAMA_ARG_CTX_SIZE=512\n")
    here = locator(seen, *carriers)
    assert here.find(parameter("parallel", "8")).path == "/etc/chat.args"
    assert here.find(parameter("ctx-size", "1024")).path == ENV


def test_a_value_in_a_variable_is_followed_to_where_the_variable_is_set() -> None:
    unit = COMMAND.replace("--parallel 4", "--parallel ${SLOTS}")
    edit = locator(observed(unit=unit, env="SLOTS=4\n")).edit(parameter("parallel", "8"))
    assert (edit.path, edit.after) == (ENV, b"SLOTS=8\n")


def test_options_kept_in_a_variable_are_edited_inside_it() -> None:
    unit = COMMAND.replace("--parallel 4", "$ARGS")
    edit = locator(observed(unit=unit, env='ARGS="--parallel 4 --ctx-size 512"\n')).edit(parameter("parallel", "8"))
    assert (edit.path, edit.after) == (ENV, b'ARGS="--parallel 8 --ctx-size 512"\n')


def test_a_variable_that_is_set_nowhere_is_refused() -> None:
    unit = COMMAND.replace("--parallel 4", "--parallel ${SLOTS}")
    with pytest.raises(EditRefused):
        locator(observed(unit=unit, env="OTHER=4\n")).edit(parameter("parallel", "8"))


def test_a_plain_variable_is_found_among_the_managers_own_sources() -> None:
    edit = locator(observed(unit=COMMAND, env="OMP_NUM_THREADS=1\n")).edit(variable("OMP_NUM_THREADS", "2"))
    assert (edit.path, edit.after) == (ENV, b"OMP_NUM_THREADS=2\n")


def test_an_environment_file_overrides_the_unit() -> None:
    unit = COMMAND.replace("[Service]\n", "[Service]\nEnvironment=A=1\n")
    assert locator(observed(unit=unit, env="A=2\n")).find(variable("A", "3")).path == ENV
    assert locator(observed(unit=unit, env="B=2\n")).find(variable("A", "3")).path == UNIT


def test_a_variable_is_removed_and_nothing_else() -> None:
    edit = locator(observed(unit=COMMAND, env="A=1\nB=2\n")).edit(variable("A", None))
    assert edit.after == b"B=2\n"


def test_a_setting_without_a_spelling_in_any_carrier_is_refused_with_the_carriers_named() -> None:
    here = locator(observed(args="--parallel 2\n"), Carrier("flags", file="/etc/chat.args"))
    with pytest.raises(Refused, match=r"/etc/chat\.args") as caught:
        here.find(variable("OMP_NUM_THREADS", "2"))
    assert caught.value.reason == "no_carrier"


def absent(path: str, unit: str = COMMAND) -> Observed:
    """The unit, and a configuration file that is not on the host."""
    seen = observed(unit=unit)
    return seen.model_copy(update={"files": {**seen.files, path: FileFacts(exists=False)}})


@pytest.mark.parametrize("carrier", [Carrier("yaml", file="/etc/chat.yml"), Carrier("env", file="/etc/chat.yml")])
def test_a_configuration_file_that_is_not_there_is_named(carrier: Carrier) -> None:
    with pytest.raises(Refused) as caught:
        locator(absent("/etc/chat.yml"), carrier).find(parameter("parallel", "8"))
    assert str(caught.value) == (
        "parallel would stand in /etc/chat.yml, which is not there: write that file, or correct its path under "
        "`config` in the service file"
    )
    assert caught.value.reason == "no_carrier"


def test_beside_a_missing_file_a_declared_one_takes_a_new_value_and_a_value_is_found_wherever_it_stands() -> None:
    unit = COMMAND.replace("[Service]\n", "[Service]\nEnvironment=LLAMA_ARG_CTX_SIZE=512\n")
    gone = absent("/etc/chat.yml", unit)
    both = locator(gone, Carrier("yaml", file="/etc/chat.yml"), Carrier("flags", unit="chat.service"))
    assert both.find(parameter("batch-size", "512")).path == UNIT
    assert locator(gone, Carrier("yaml", file="/etc/chat.yml")).find(parameter("ctx-size", "1")).reading.value == "512"


def test_a_missing_file_that_could_not_hold_the_value_anyway_is_not_blamed() -> None:
    seen = Observed.read({"files": {"/etc/chat.args": {"exists": False}}})
    with pytest.raises(Refused, match="cannot be written in any carrier"):
        locator(seen, Carrier("flags", file="/etc/chat.args")).find(variable("OMP_NUM_THREADS", "2"))


def test_an_option_given_twice_is_read_as_its_last_value() -> None:
    unit = COMMAND.replace("--parallel 4", "--parallel 4 --parallel 6")
    assert locator(observed(unit=unit)).find(parameter("parallel", "8")).reading.value == "6"


def test_all_settings_in_the_files_are_listed_and_those_that_are_asked_for() -> None:
    values = file_values(locator(observed(unit=COMMAND)), {"ctx-size"})
    assert set(values) == {"parallel", "ctx-size"}
    assert values["parallel"].seen.value == "4"
    assert values["ctx-size"].seen.value is None
    assert not values["parallel"].read_by_engine


def test_absence_has_a_word() -> None:
    assert (as_text(None), as_text("4")) == ("absent", "4")
