"""A workload to begin with: short and long inputs and conversations, always the same ones for the same number."""

from __future__ import annotations

from typing import Any

KINDS = ("chat", "completions", "embeddings", "kserve")
REQUESTS = 32  # by default: enough for levels of up to that many streams, each with a request of its own
MOST = 2000
LONG_SENTENCES = 36

_TOPICS = (
    "a mountain railway", "the cooling of a data hall", "a village library", "bread made of rye", "a harbour at night",
    "bees on a city roof", "the repair of old clocks", "a school garden", "rain in a dry summer", "a ferry timetable",
    "the sorting of waste", "a museum of maps", "heat pumps in old houses", "a choir of beginners", "salt from the sea",
    "a night train", "the care of apple trees", "a bicycle workshop", "glass from sand", "an archive of letters",
    "a weather station", "the building of a stone wall", "a market on Saturdays",
)  # fmt: skip
_SHORT = (
    ("Explain {} to a ten-year-old in about five sentences.", 96),
    ("Name three things that go wrong with {}, each in one line.", 64),
    ("Write a haiku about {}.", 32),
    ("What does it cost to run {}? Say what the answer depends on.", 128),
    ("Give five search words for {}.", 24),
)
_MEDIUM = (
    "You advise a small town. It has 4,000 people, two vans and little money, and it wants to do something about {}. "
    "The council meets on Thursday and will ask what it costs, who does it, and what happens if nobody does anything. "
    "Write the half page that the mayor reads out, with two options and your advice at the end."
)
_SENTENCES = (
    "On day {day} the notes on {topic} say that work began at {hour} o'clock with {people} people.",
    "Two of them had done it before, and the others learned it in the first hour.",
    "The first thing that had to be settled was who keeps the list and where it lies.",
    "Around noon somebody asked whether last year's way had not been simpler, and nobody could say.",
    "It took {people} attempts until the figures of the morning and those of the evening agreed.",
    "What was bought came to {price} in all, of which a third was spent on things that were never used.",
    "A visitor said that in the next valley they do it without any machine, and slower, and that nothing breaks.",
    "In the evening the tools were counted, and {people} of them were somebody else's.",
    "The report leaves out what the weather was, although everything depended on it.",
)
_TALKS = (
    ("You answer briefly.", "What should I know about {} before I begin?", "Which of that matters most?",
     "Now say it in one sentence that I can write on a card."),
    ("You ask back where something is unclear.", "I am to give a talk about {}. How long should it be?",
     "Ten minutes, for people who know nothing of it.", "Give me the three headings."),
)  # fmt: skip
_SHAPES = ("short", "long", "short", "talk", "short", "medium", "short", "long")


def sample(kind: str, requests: int = REQUESTS) -> list[dict[str, Any]]:
    """So many lines of a workload.

    Args:
        kind: one of `KINDS`; of `kserve` the tensors stand for those that the operator's own model takes.
        requests: how many lines, from 1 to `MOST`.
    """
    make = {"chat": _text, "completions": _text, "embeddings": _to_embed, "kserve": _tensor}[kind]
    return [make(number) for number in range(requests)]


def _topic(number: int) -> str:
    """Every topic comes once before any comes again, and then it has a number, so that no two requests are alike."""
    again, place = divmod(number, len(_TOPICS))
    return _TOPICS[place] + (f" (case {again + 1})" if again else "")


def _text(number: int) -> dict[str, Any]:
    shape, topic = _SHAPES[number % len(_SHAPES)], _topic(number)
    name = f"{shape}-{number + 1}"
    if shape == "talk":
        system, *turns = _TALKS[number // len(_SHAPES) % len(_TALKS)]
        return {"id": name, "system": system, "turns": [turn.format(topic) for turn in turns], "max_tokens": 80}
    if shape == "short":
        task, limit = _SHORT[number // 2 % len(_SHORT)]
        return {"id": name, "prompt": task.format(topic), "max_tokens": limit}
    if shape == "medium":
        return {"id": name, "prompt": _MEDIUM.format(topic), "max_tokens": 192}
    ask = "Summarise these notes in four sentences, and name the figure that surprises you most."
    return {"id": name, "prompt": f"{ask}\n\n{_notes(topic, number, LONG_SENTENCES)}", "max_tokens": 128}


def _notes(topic: str, number: int, sentences: int) -> str:
    facts = ({"topic": topic, "day": 1 + place, "hour": 6 + (number + place) % 5, "people": 2 + (number + place) % 7,
              "price": 40 + 13 * ((number + place) % 11)} for place in range(sentences))  # fmt: skip
    texts = (_SENTENCES[place % len(_SENTENCES)].format(**fact) for place, fact in enumerate(facts))
    return " ".join(texts)


def _to_embed(number: int) -> dict[str, Any]:
    topic = _topic(number)
    if number % 4 == 3:
        return {"id": f"passage-{number + 1}", "prompt": _notes(topic, number, LONG_SENTENCES // 3)}
    asked = ("Who knows something about {}?", "What was written on {} last year?", "Costs of {}, with examples.")
    return {"id": f"query-{number + 1}", "prompt": asked[number % 4].format(topic)}


def _tensor(number: int) -> dict[str, Any]:
    rows = (1, 1, 4, 16)[number % 4]
    data = [round(0.1 * (number + place) % 10, 1) for place in range(4 * rows)]
    return {"id": f"rows-{number + 1}", "inputs": [{"name": "x", "shape": [rows, 4], "datatype": "FP32", "data": data}]}
