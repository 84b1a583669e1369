"""Everything that is looked at before an instance is taken out of service; nothing is switched."""

from __future__ import annotations

from contextlib import suppress

from changectl import traffic
from changectl.core.errors import ChangectlError, Refused
from changectl.core.leaving import Leaving
from changectl.traffic import Traffic
from changectl.workflow.post import Post, open_post, wrong_answer
from changectl.workflow.spared import require_spare
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools


def leaving(target: Target, tools: Tools, *, slots: float | None, noticed: bool, sick: bool) -> Leaving:
    """Whether an instance can leave service and come back, as things are now.

    Args:
        target: the instance.
        tools: the ports.
        slots: requests that it serves at a time, for members that do not say it of themselves; None: not known.
        noticed: whether the plan allows that users notice it.
        sick: whether it was found sick, so that no good answer of it is asked for.
    """
    way = traffic.load(target.service.traffic)
    if not way.controls:
        return Leaving()
    place = f"{way.name} on {way.host or target.address.name}"
    try:
        post = open_post(target, way, tools)
        try:
            edit = edit_out(post, target, way, tools, slots=slots, noticed=noticed, fit=not sick)
        finally:
            with suppress(Exception):  # what goes wrong there changes nothing any more
                post.door.close()
    except ChangectlError as error:
        return Leaving(place, str(error).removeprefix(f"{target.name}: "), error.reason)
    return Leaving(place, noticed=noticed, out=edit is None)


def edit_out(
    post: Post, target: Target, way: Traffic, tools: Tools, *, slots: float | None, noticed: bool, fit: bool
) -> tuple[bytes, bytes] | None:
    """The balancer's file before and after; None: the instance is out already, and not by us.

    Args:
        post: the balancer.
        target: the instance.
        way: what switches it.
        tools: the ports.
        slots: as of `leaving`.
        noticed: as of `leaving`.
        fit: whether it has to give the answers now that let it come back.

    Raises:
        Refused: nobody else could serve meanwhile, or nobody knows, or it could not come back.
        EditRefused: the file does not say without doubt who the instance is.
    """
    before, after = b"", b""
    if way.file is not None:
        before = post.file(way.file).data
        found = way.taken_out(before)
        if found is None:
            return None
        after = found
    if not noticed:
        require_spare(post, target, way, before, slots, tools)
    if fit:
        _require_fit(post, target, way)
    return before, after


def _require_fit(post: Post, target: Target, way: Traffic) -> None:
    """What decides whether it may go back has to hold now, or it would stay out for good."""
    if wrong := wrong_answer(post, target, way.member):
        text = f"{target.name} could not be put back into service: {post.address.name} asks it, and {wrong}"
        raise Refused(f"{text}; it has to answer that host, without a token", reason="member_sick")
