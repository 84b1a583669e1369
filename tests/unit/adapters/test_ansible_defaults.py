from pathlib import Path

from changectl.adapters.ansible_defaults import defaults
from changectl.adapters.environment import ALLOWED

CONFIG = """
[defaults]
remote_user = ops
private_key_file = keys/ops
[privilege_escalation]
become = True
[ssh_connection]
ssh_common_args = -J gateway
"""


def test_connection_settings_come_from_the_configuration_file_in_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "ansible.cfg").write_text(CONFIG)

    found = defaults({"HOME": str(tmp_path / "nobody")}, tmp_path)

    assert found["ansible_user"] == "ops"
    assert found["ansible_private_key_file"] == str(tmp_path / "keys/ops")
    assert found["ansible_become"] == "True"
    assert found["ansible_ssh_common_args"] == "-J gateway"


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "ansible.cfg").write_text(CONFIG)

    found = defaults({"HOME": str(tmp_path), "ANSIBLE_REMOTE_USER": "root"}, tmp_path)

    assert found["ansible_user"] == "root"


def test_a_named_file_is_the_only_one_that_counts(tmp_path: Path) -> None:
    (tmp_path / "ansible.cfg").write_text(CONFIG)
    other = tmp_path / "other.cfg"
    other.write_text("[defaults]\nremote_user = deploy\n")

    found = defaults({"HOME": str(tmp_path), "ANSIBLE_CONFIG": str(other)}, tmp_path)

    assert found["ansible_user"] == "deploy"
    assert "ansible_become" not in found


def test_a_folder_that_everybody_may_write_is_not_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "ansible.cfg").write_text(CONFIG)

    assert defaults({"HOME": str(tmp_path / "nobody")}, folder).get("ansible_user") != "ops"


def test_a_file_that_cannot_be_understood_sets_nothing_here(tmp_path: Path) -> None:
    (tmp_path / "ansible.cfg").write_text("this is [ no configuration\n")

    assert defaults({"HOME": str(tmp_path)}, tmp_path) == {}


def test_every_variable_that_the_door_honours_reaches_the_plays_too() -> None:
    names = {
        "ANSIBLE_REMOTE_USER", "ANSIBLE_REMOTE_PORT", "ANSIBLE_PRIVATE_KEY_FILE", "ANSIBLE_TRANSPORT",
        "ANSIBLE_PYTHON_INTERPRETER", "ANSIBLE_BECOME", "ANSIBLE_BECOME_USER", "ANSIBLE_SSH_ARGS",
        "ANSIBLE_SSH_COMMON_ARGS", "ANSIBLE_SSH_EXTRA_ARGS",
    }  # fmt: skip

    assert names <= set(ALLOWED)
