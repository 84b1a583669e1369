from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changectl.core.measuring import statistics
from changectl.core.measuring.durations import DURATIONS
from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.measurement import LevelMeasurement, Measurement, Record, parse_records, summarise
from changectl.core.measuring.metrics import METRICS, parse_metric
from changectl.core.units import LevelLoad

MS = 1_000_000


def record(i: int, level: str = "low", **fields: object) -> Record:
    start = i * 100 * MS
    values: dict[str, object] = {
        "i": i,
        "level": level,
        "stream": 0,
        "prompt": f"p{i % 3}",
        "round": i // 3,
        "t_planned": start,
        "t_start": start + MS // 10,
        "t_sent": start + MS,
        "t_headers": start + 2 * MS,
        "t_first": start + 20 * MS,
        "t_first_output": start + 20 * MS,
        "t_last": start + 65 * MS,
        "t_end": start + 70 * MS,
        "n_out": 10,
        "n_in": 8,
        "cached": 0,
        "chunks": 10,
        "max_gap_ns": 5 * MS,
        "finish": "length",
        "status": 200,
        "cls": "ok",
        **fields,
    }
    return Record(**values)


def failure(i: int, cls: str = "http_5xx") -> Record:
    return record(i, cls=cls, t_first=None, t_first_output=None, t_last=None, n_out=None, n_in=None, finish=None)


ONE_STREAM = LevelSize(LevelLoad(streams=1), requests=60)
LOW = {"low": ONE_STREAM}


def low(*records: Record) -> Measurement:
    return summarise(records, LOW)


def test_the_figures_follow_their_definitions() -> None:
    (level,) = low(*(record(i) for i in range(100))).levels
    assert level.value("ttft_user", "p50") == pytest.approx(0.020)
    assert level.value("ttft_sent", "p50") == pytest.approx(0.019)
    assert level.value("tpot", "p95") == pytest.approx(0.005)
    assert level.value("e2e_user", "mean") == pytest.approx(0.065)
    assert level.window == pytest.approx(99 * 0.1 + 0.07)
    assert level.rps_ok == pytest.approx(100 / 9.97)
    assert level.out_tok_s == pytest.approx(1000 / 9.97)
    assert (level.n, level.ok, level.cache_hit, level.finish) == (100, 100, 0.0, {"length": 100})
    assert level.lag_p99 == pytest.approx(0.0001)


def test_failures_are_infinitely_slow_and_do_not_count_as_throughput() -> None:
    (level,) = low(*(record(i) for i in range(90)), *(failure(i) for i in range(90, 100))).levels
    assert level.value("ttft_user", "p95") == math.inf
    assert level.value("ttft_user", "p50") == pytest.approx(0.020)
    assert level.failure_share == pytest.approx(0.1)
    assert level.failures == {"http_5xx": 10}
    assert level.rps_ok is not None
    assert level.rps_ok < 90 / 9.9


def test_shed_requests_do_not_make_the_rest_look_faster() -> None:
    kept = [record(i, t_first=i * 100 * MS + 10 * MS) if i % 3 else failure(i, "http_5xx") for i in range(99)]
    (level,) = low(*kept).levels
    assert level.value("ttft_user", "p95") == math.inf


def test_a_fifth_of_fast_errors_is_exactly_a_fifth() -> None:
    (level,) = low(*(failure(i) if i % 5 == 0 else record(i) for i in range(100))).levels
    assert level.failure_share == 0.2


def test_all_late_is_unbounded_not_nan() -> None:
    (level,) = low(*(failure(i, "late") for i in range(70))).levels
    assert level.value("ttft_user", "p50") == math.inf
    assert level.value("ttft_user", "mean") is None
    assert level.rps_ok == 0
    json.dumps(low(*(failure(i, "late") for i in range(70))).to_json(), allow_nan=False)


def test_too_few_requests_give_no_percentile() -> None:
    (level,) = low(*(record(i) for i in range(59))).levels
    assert level.value("ttft_user", "p95") is None
    assert level.value("ttft_user", "p50") is not None
    (level,) = low(*(record(i) for i in range(60))).levels
    assert level.value("ttft_user", "p95") is not None
    assert level.value("ttft_user", "p99") is None
    (level,) = low(*(record(i) for i in range(299))).levels
    assert level.value("ttft_user", "p99") is not None


def test_missing_usage_stays_missing() -> None:
    (level,) = low(*(record(i, n_out=None if i == 3 else 10) for i in range(60))).levels
    assert level.out_tok_s is None
    assert level.tokens_out is None
    assert level.missing == {"tpot": 1}
    (level,) = low(*(record(i, n_out=None, n_in=None, cached=None) for i in range(60))).levels
    assert level.value("tpot", "p50") is None
    assert level.cache_hit is None


def test_single_tokens_leave_the_time_per_token_undefined_not_missing() -> None:
    (level,) = low(*(record(i, n_out=1, t_last=i * 100 * MS + 20 * MS) for i in range(60))).levels
    assert level.has_no_meaning("tpot")
    assert level.value("tpot") is None
    assert "tpot" not in level.missing


def test_one_single_token_answer_among_long_ones_does_not_pull_the_rest() -> None:
    (level,) = low(*(record(i, n_out=1 if i == 0 else 10) for i in range(60))).levels
    assert level.value("tpot", "mean") == pytest.approx(0.005)


def test_a_shift_of_three_percent_is_visible() -> None:
    def at(delay: int) -> float | None:
        records = (record(i, t_first=i * 100 * MS + delay * MS) for i in range(60))
        return low(*records).levels[0].value("ttft_user", "p50")

    assert (at(147), at(151)) == (pytest.approx(0.147), pytest.approx(0.151))


def test_a_lost_or_doubled_record_makes_the_phase_invalid() -> None:
    assert low(*(record(i) for i in range(60) if i != 7)).invalid
    assert low(*(record(i) for i in range(60)), record(59)).invalid
    assert low().invalid == ("level low has no request records",)


def test_a_generator_that_failed_makes_the_phase_invalid() -> None:
    measurement = summarise([record(0)], LOW, generator_failure="exit status 3")
    assert measurement.invalid == ("load generator: exit status 3",)


def test_warm_up_requests_are_left_out() -> None:
    records = [record(0, level="warmup", t_first=9_000 * MS), record(0)]
    assert [level.n for level in summarise(records, LOW).levels] == [1]


def test_figures_of_the_whole_phase_are_found_by_reference() -> None:
    measurement = summarise([record(0)], LOW, facts={"load_time": 12.5, "kv_capacity": math.nan})
    assert measurement.value(parse_metric("load_time")) == 12.5
    assert measurement.value(parse_metric("kv_capacity")) is None
    assert measurement.value(parse_metric("rps_ok"), "low") == pytest.approx(1 / 0.07)
    assert measurement.value(parse_metric("rps_ok at high")) is None


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"i": "1"}', '{"i": true}'])
def test_a_line_that_is_no_record_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse_records(f"\n{line}")


def as_rows(records: Sequence[Record], fields: Sequence[str] = Record._fields) -> list[str]:
    rows = [[getattr(one, name) for name in fields] for one in records]
    return [json.dumps(line) for line in ({"fields": fields}, *rows)]


def read(lines: Sequence[str]) -> list[Record]:
    return list(parse_records("\n".join(lines)))


def test_rows_under_the_names_of_their_fields_are_the_same_records_as_objects() -> None:
    records = [record(i) if i % 7 else failure(i) for i in range(300)]
    objects = [json.dumps(one._asdict()) for one in records]

    assert read(as_rows(records)) == records
    assert read(as_rows(records, sorted(Record._fields))) == records
    assert read(objects) == records
    assert read([*as_rows(records[:150]), "", *as_rows(records[150:], Record._fields[::-1])]) == records
    assert read([*objects[:9], *as_rows(records[9:])]) == records


def test_a_field_that_is_not_there_is_not_known_and_one_of_a_later_version_is_passed_over() -> None:
    fields = [name for name in Record._fields if name not in ("turn", "status")]
    (header, *rows) = as_rows([record(i) for i in range(300)], fields)
    later = [
        json.dumps({"fields": [*json.loads(header)["fields"], "colour"]}),
        *(f'{row[:-1]}, "red"]' for row in rows),
    ]

    assert read(later) == [record(i, status=None) for i in range(300)]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("[1, 2]", "longer|shorter"),
        ('["x"]', "longer|shorter"),
        ('{"i": 1}', '"level" of a request record is None, not str'),
        ("7", "line 203"),
        ("[[[", "not whole"),
        ("[" * 100_000, "not whole"),
        ("[], []", "not whole"),
    ],
)
def test_one_line_among_many_that_is_no_record_is_named(wrong: str, said: str) -> None:
    lines = as_rows([record(i) for i in range(300)])
    lines.insert(202, wrong)
    with pytest.raises(ValueError, match=f"line 203.*({said})|{said}") as found:
        read(lines)
    assert str(found.value).startswith("line 203: ")


@pytest.mark.parametrize(("name", "value"), [("i", None), ("n_out", True), ("t_first", 1.5), ("cls", 3), ("text", 0)])
def test_a_value_of_another_kind_among_many_is_named(name: str, value: object) -> None:
    lines = as_rows([record(i)._replace(**({name: value} if i == 200 else {})) for i in range(300)])
    with pytest.raises(ValueError, match=f'^line 202: field "{name}" of a request record is {value!r}, not '):
        read(lines)


NEARLY_ROWS = [
    "",
    " ",
    "{}",
    "[]",
    "[1]",
    "[1, 2]",
    "[1], [2]",
    "[[1]]",
    "[1",
    "2]",
    "[1, [2]",
    '["a]',
    '[", 1]',
    "7",
    '{"fields": ["i"]}',
]
NEARLY_ROWS += [
    "\ufeff[1]",
    "[1]\r",
    "[1]\u2028[2]",
    "[-0]",
    "[01]",
    "[1e400]",
    "[NaN]",
    "[-Infinity]",
    "[Inf]",
    "[" * 300,
    f"[{10**30}]",
]
NEARLY_ROWS += [
    '["\\ud800"]',
    '["\ud800"]',
    '["\\ud83d\\ude00"]',
    '["\\u0000"]',
    '["\x7f"]',
    '["\t"]',
    '["\\x"]',
    f"[{'9' * 5000}]",
    '[{"a": [[1]',
    "[2]]}]",
]


@given(st.lists(st.one_of(st.integers(0, 40), st.sampled_from(NEARLY_ROWS)), max_size=12), st.booleans())
def test_lines_read_together_are_what_each_is_by_itself_and_so_is_what_is_wrong_with_them(
    chosen: list[int | str], later: bool
) -> None:
    (header, *rows) = as_rows([record(i) if i % 3 else failure(i) for i in range(41)])
    if later:  # a field that this version does not know may hold what it likes
        header, rows = header.replace("]", ', "colour"]'), [row.replace("]", ", NaN]") for row in rows]
    lines = [header, *(rows[each] if isinstance(each, int) else each for each in chosen)]

    assert outcome(lines) == outcome([f"{line} " for line in lines])  # which are not read together


@pytest.mark.parametrize(
    "values",
    ["[1, [2]\n[3], 4]\n[5, 6], [7, 8]", '[1, "a]\n[", 2]\n[5, 6], [7, 8]', '[1], {"a": [[1]\n[1]]}, [1]\n[1]'],
)
def test_a_row_over_two_lines_is_not_made_good_by_a_line_of_two_rows(values: str) -> None:
    with pytest.raises(ValueError, match="line 2: a request record is not whole"):
        parse_records('{"fields": ["i", "colour"]}\n' + values)


def outcome(lines: Sequence[str]) -> list[Record] | str:
    """What lines hold, or which of them is refused and why; where in it is left out."""
    try:
        return read(lines)
    except ValueError as error:
        return re.sub(r"\(char \d+\)|column \d+", "", str(error))


@pytest.mark.parametrize("value", [2**53, -(10**400)])
def test_a_number_that_figures_could_not_hold_is_named(value: int) -> None:
    lines = as_rows([record(i)._replace(**({"t_first": value} if i == 200 else {})) for i in range(300)])
    with pytest.raises(
        ValueError, match=r'^line 202: field "t_first" of a request record is not below 9007199254740992$'
    ):
        read(lines)


def test_what_durations_there_are_is_what_metrics_have_statistics() -> None:
    assert set(DURATIONS) == {one.name for one in METRICS.values() if one.source == "load" and one.statistics}


def test_a_measurement_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="format"):
        Measurement.from_json({"format": 99})
    with pytest.raises(ValueError, match="shape"):
        Measurement.from_json({"format": 1, "levels": [{}]})


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.integers(0, 20), st.integers(0, 100))
def test_percentiles_are_those_of_numpy_and_never_nan(values: list[float], failed: int, percent: int) -> None:
    ordered = sorted(values) + [math.inf] * failed
    found = statistics.percentile(ordered, percent)
    assert not math.isnan(found)
    if not failed:
        assert found == pytest.approx(float(np.percentile(values, percent)), abs=1e-6)


optional_time = st.none() | st.integers(0, 10**10)
any_record = st.builds(
    dict,
    cls=st.sampled_from(["ok", "ok", "ok", "empty", "late"]),
    t_first=optional_time,
    t_last=optional_time,
    t_end=optional_time,
    t_sent=optional_time,
    n_out=st.none() | st.integers(0, 50),
    n_in=st.none() | st.integers(0, 50),
    cached=st.none() | st.integers(0, 50),
    finish=st.none() | st.sampled_from(["stop", "length"]),
)


@settings(deadline=None)  # a busy machine is no fault
@given(st.lists(any_record, max_size=80))
def test_no_records_whatever_is_missing_bring_nan_and_all_survive_storing(rows: list[dict[str, object]]) -> None:
    measurement = summarise([record(i, **row) for i, row in enumerate(rows)], {**LOW, "peak": ONE_STREAM})
    text = json.dumps(measurement.to_json(), allow_nan=False)
    assert Measurement.from_json(json.loads(text)) == measurement


OPEN = {"peak": LevelSize(LevelLoad(rate=10), 6.0)}  # 60 requests, one every 100 ms


def peak(*records: Record) -> LevelMeasurement:
    return summarise(records, OPEN).levels[0]


def test_an_open_level_says_what_was_planned_and_what_was_really_sent() -> None:
    level = peak(*(record(i, "peak") for i in range(60)))

    assert (level.streams, level.asked_seconds, level.planned_rate) == (None, 6.0, 10.0)
    assert level.sent_rate == pytest.approx(10.0, rel=1e-3)
    assert level.in_flight_most == 1
    assert level.in_flight_mean == pytest.approx(0.699, rel=0.01)


def test_a_generator_that_is_late_at_the_end_sent_less_a_second() -> None:
    late = [record(i, "peak", t_start=int(i * 110 * MS)) for i in range(60)]

    assert peak(*late).sent_rate == pytest.approx(60 / (6 + 0.59))


def test_a_closed_level_says_what_was_asked_for_and_has_no_rate() -> None:
    size = {"low": LevelSize(LevelLoad(streams=2), 3.0)}
    both = [record(i, stream=i % 2, t_start=i // 2 * 100 * MS, t_end=(i // 2 + 1) * 100 * MS) for i in range(60)]
    level = summarise(both, size).levels[0]

    assert (level.streams, level.asked_seconds, level.planned_rate, level.sent_rate) == (2, 3.0, None, None)
    assert (level.in_flight_mean, level.in_flight_most) == (2.0, 2)


@pytest.mark.parametrize(("requests", "late", "expected"), [
    (59, 1, 0.05), (60, 1, 0.0001), (60, 2, 0.05), (199, 1, 0.0001), (199, 2, 0.05), (300, 3, 0.0001), (300, 4, 0.05),
])  # fmt: skip
def test_a_straggler_among_many_is_no_lateness_of_the_generator(requests: int, late: int, expected: float) -> None:
    begun = [{"t_start": i * 100 * MS + 50 * MS} if i < late else {} for i in range(requests)]
    (level,) = low(*(record(i, **fields) for i, fields in enumerate(begun))).levels

    assert level.lag_p99 == pytest.approx(expected)


def test_what_began_before_it_was_due_stays_as_it_is_and_keeps_its_place() -> None:
    """A timer may fire early; bending it to zero would hide a clock that cannot be trusted."""
    early = [record(i, "peak", t_start=i * 100 * MS - MS, t_sent=i * 100 * MS - MS) for i in range(60)]
    level = peak(*reversed(early))

    assert level.lag_p99 == pytest.approx(-0.001)
    assert level.value("ttft_user") == pytest.approx(0.020)
    assert level.value("ttft_sent") == pytest.approx(0.021)
    assert level.sent_rate == pytest.approx(60 / (6 - 0.001))
    assert [one.i for one in early] == list(range(60))


def test_input_of_a_later_turn_is_not_the_prompts_own() -> None:
    first = record(0, prompt="c#1", turn=1, n_in=8, n_out=4)
    later = [record(i, prompt="c#2", turn=2, n_in=n_in, n_out=4) for i, n_in in ((1, 16), (2, 24))]

    assert low(first, *later).levels[0].per_prompt == {"c#1": (8.0, 4.0), "c#2": (None, 4.0)}
