#!/usr/bin/python
"""The Ansible door of the host program: one call per task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: changectl_host
short_description: Let the host program do one call
version_added: "0.1.0"
description:
  - Runs one call of the host program of changectl on the managed host and returns its answer.
  - Calls that change something are recorded in the run's folder on the host, before and after.
options:
  call:
    description: Name of the call, for example C(write) or C(service).
    type: str
    required: true
  args:
    description: The call's arguments; paths and digests, never contents or secrets.
    type: dict
    default: {}
  secrets:
    description: Arguments that must not be logged, such as contents; merged over O(args).
    type: dict
    default: {}
author: the changectl maintainers
"""

EXAMPLES = r"""
- name: Bring the saved files back
  changectl_host:
    call: restore
    args: {run: R-20260101-1, generation: 1}
"""

RETURN = r"""
answer:
  description: What the call answered.
  returned: success
  type: dict
reason:
  description: Stable word for why it was not done.
  returned: failure
  type: str
"""

from ansible.module_utils.basic import AnsibleModule  # noqa: E402  Ansible wants the documentation first
from ansible.module_utils.changectl_host import MUTATING, Failure, dispatch  # noqa: E402


def main() -> None:
    """Do the call and say how it ended."""
    module = AnsibleModule(
        argument_spec={
            "call": {"type": "str", "required": True},
            "args": {"type": "dict", "default": {}, "no_log": False},
            "secrets": {"type": "dict", "default": {}, "no_log": True},
        },
        supports_check_mode=True,
    )
    call = module.params["call"]
    if module.check_mode and call in MUTATING:
        module.exit_json(changed=False, msg=f"check mode: {call} was not done", answer={"check_mode": True})
    try:
        answer = dispatch(call, {**module.params["args"], **module.params["secrets"]})
    except Failure as failure:
        module.fail_json(msg=failure.message, reason=failure.reason, details=failure.details)
    module.exit_json(changed=call in MUTATING and bool(answer.get("changed", False)), answer=answer)


if __name__ == "__main__":
    main()
