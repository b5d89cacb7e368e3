"""A forecast as text: the verdict, the bars, the chosen values, the alternatives, then host, disk, time."""

from collections.abc import Iterator, Sequence

from launcher.memory.breakdown import Term
from launcher.memory.of_recipe import longest
from launcher.plan.bars import bar_lines
from launcher.plan.fit import Judged, faster_that_do_not_fit, one_a_turn, summary, why_not
from launcher.plan.forecast import Forecast
from launcher.plan.opening import phase_lines
from launcher.plan.standing import in_words, of_time
from launcher.plan.time_model import step_words
from launcher.units import format_bytes, format_seconds

_OTHERS = 6


def text(answer: Forecast) -> str:
    """Everything that a person wants to read."""
    parts = [
        verdict(answer),
        [""],
        memory(answer),
        [""],
        chosen_values(answer),
        [""],
        alternatives(answer),
        [""],
        [*host_lines(answer), *disk_lines(answer), *time_lines(answer), *record_lines(answer)],
    ]
    return "\n".join(line for part in parts for line in part)


def card_words(answer: Forecast) -> str:
    """`2 x rtx3090`, or the CPU."""
    if answer.gpu is None:
        return f"{answer.num_ranks} CPU process{'es' if answer.num_ranks > 1 else ''}"
    return f"{answer.num_ranks} x {answer.gpu.name}"


def verdict(answer: Forecast) -> list[str]:
    """The first line: fits or not, and by how much; then what would."""
    own = answer.asked
    head = f"{answer.name} on {card_words(answer)} ({format_bytes(answer.usable_bytes)} usable)"
    if own.fits and answer.host_fits:
        spare = format_bytes(-own.over_bytes)
        return [f"{head}: fits, {spare} to spare beyond driver and margin"]
    if own.fits:
        over = format_bytes(answer.host_bytes - answer.host_limit.amount)
        return [f"{head}: does not fit: host memory is {over} short"]
    lines = [f"{head}: does not fit: {format_bytes(own.over_bytes)} over"]
    lines.append(f"  why:     {why_not(own)}")
    if answer.chosen is None:
        return [
            *lines,
            "  nearest: nothing tried fits; more or larger cards: --sweep gpu=a100_80 gpus=1,2,4,8",
        ]
    return [*lines, f"  nearest: {answer.chosen.candidate.typed}", f"           {summary(answer.chosen)}"]


def memory(answer: Forecast) -> list[str]:
    """Bars of the shown plan, and the figures that a driver would show."""
    shown = answer.shown
    which = "" if shown is answer.asked else f" with {shown.candidate.typed}"
    unit = "GPU memory of one rank" if answer.gpu else "memory of one process"
    found, usable = shown.breakdown, answer.usable_bytes
    low, high = found.reserved_bytes
    lines = [f"{unit}{which}", *bar_lines(found, usable)]
    lines.append(f"allocated {format_bytes(found.peak_bytes)} at the peak ({found.peak.name})")
    if answer.gpu:
        process = " to ".join(map(format_bytes, found.process_bytes))
        lines[-1] += f", reserved {format_bytes(low)} to {format_bytes(high)}, nvidia-smi {process}"
    margin = format_bytes(shown.needed_bytes - found.peak_bytes)
    lines.append(f"counted as needed: {format_bytes(shown.needed_bytes)} (driver and margin {margin})")
    lines += phase_lines(answer.recipe, shown.candidate.setting)
    return [*lines, f"standing: {in_words(found.standing)}"]


def chosen_values(answer: Forecast) -> list[str]:
    """What was decided, a line each with its reason."""
    shown, recipe = answer.shown, answer.recipe
    setting = shown.candidate.setting
    changed = "changed so that it fits"
    rows = [("backend", shown.candidate.backend, _reason(shown, "backend.name", "as in the recipe", changed))]
    rows += [(item.key, _plain(item.value), item.reason) for item in answer.derived if item.key != "batch"]
    free = recipe.training.per_device_train_batch_size == "auto"
    why = "auto: the fastest cut of the global batch that fits" if free else "as in the recipe"
    micro = f"{setting.micro_batch} x {setting.accumulation_steps} x {answer.num_ranks}"
    batch_why = _reason(shown, "training.per_device_train_batch_size", why, changed)
    rows.append(("batch", micro, f"rows x accumulation x ranks; {batch_why}"))
    key = "training.activation_checkpointing"
    rows.append(("checkpointing", setting.checkpointing, _reason(shown, key, "as in the recipe", changed)))
    key = "model.attn_implementation"
    rows.append(("attention", setting.attention, _reason(shown, key, _attention_why(answer), changed)))
    if setting.quantisation != "none":
        key = "model.load_in_4bit"
        rows.append(
            ("weights packed", setting.quantisation, _reason(shown, key, "as in the recipe", changed))
        )
    return ["chosen", *_columns(rows)]


def _attention_why(answer: Forecast) -> str:
    return (
        "auto: what the model supports" if answer.recipe.model.attn_implementation == "auto" else "asked for"
    )


def _reason(judged: Judged, key: str, otherwise: str, changed: str) -> str:
    return changed if key in judged.candidate.changes else otherwise


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns padded to their widest cell; the last one free."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return ["  " + "  ".join([*map(str.ljust, row, widths), row[-1]]).rstrip() for row in rows]


def alternatives(answer: Forecast) -> list[str]:
    """The faster ones that do not fit with the reason, then others that do, fastest first."""
    shown = answer.shown
    refused = faster_that_do_not_fit(answer.judged, shown) if shown.fits else []
    fitting = [each for each in one_a_turn(answer.judged) if each.fits and each is not shown]
    near = sorted(fitting, key=lambda each: (each.candidate.distance, each.seconds))[:_OTHERS]
    near += [each for each in fitting if each is answer.fastest and each not in near]
    rows = [("GiB", "a step", "rows", "type", ""), _row(shown, "<- shown" if shown.fits else why_not(shown))]
    rows += [_row(each, f"does not fit: {why_not(each)}") for each in refused]
    rows += [_row(each, _compared(each, shown)) for each in sorted(near, key=lambda each: each.seconds)]
    return ["alternatives", *_columns(rows)]


def _row(judged: Judged, remark: str) -> tuple[str, ...]:
    setting = judged.candidate.setting
    gib = f"{judged.breakdown.peak_bytes / 2**30:.1f}"
    speed = step_words(judged.time.seconds) if judged.time else "-"
    cut = f"{setting.micro_batch}x{setting.accumulation_steps}"
    return gib, speed, cut, judged.candidate.typed or "(as in the recipe)", remark


def _compared(each: Judged, shown: Judged) -> str:
    if each.time is None or shown.time is None:
        return "fits"
    share = shown.time.seconds / each.time.seconds - 1
    return f"fits, {abs(share):.0%} {'faster' if share > 0 else 'slower'}"


def host_lines(answer: Forecast) -> Iterator[str]:
    """Host memory with its parts, against the limit."""
    limit = answer.host_limit
    is_short = answer.host_bytes > limit.amount
    whose = "" if answer.host_is_given else "; this machine's, --host-memory says the planned one's"
    against = f"of {format_bytes(limit.amount)} ({limit.source}{whose})"
    mark = " - more than that" if is_short else ""
    yield f"host RAM  {format_bytes(answer.host_bytes)} {against}{mark}: {_parts(answer.host_terms)}"


def disk_lines(answer: Forecast) -> Iterator[str]:
    """What checkpoints, the final model and downloads take."""
    total = sum(term.num_bytes for term in answer.disk_terms)
    yield f"disk      {format_bytes(total)}: {_parts(answer.disk_terms)}"


def _parts(terms: Sequence[Term]) -> str:
    found = sorted(terms, key=lambda term: -term.num_bytes)
    return ", ".join(f"{term.name} {format_bytes(term.num_bytes)}" for term in found if term.num_bytes)


def time_lines(answer: Forecast) -> Iterator[str]:
    """Seconds, hours and money, each with what it rests on."""
    took, step = answer.duration, answer.shown.time
    if took is None or step is None or answer.gpu is None:
        yield "time      not predicted for a CPU"
        return
    speed = f"{step.rows_per_s:.3g} rows/s, {step.tokens_per_s:,.0f} tokens/s"
    length = longest(answer.recipe.data)
    yield f"time      {step_words(step.seconds)} a step at full length ({length} tokens): {speed}"
    if answer.typical is not None and answer.typical is not step:
        mean = f"{answer.rows.mean_tokens:.0f} tokens"
        yield f"          {step_words(took.step_s)} a step at the rows' mean length of about {mean}"
    largest = sorted(step.terms, key=lambda term: -term.seconds)[:5]
    yield "          " + ", ".join(f"{term.name} {term.seconds / step.seconds:.0%}" for term in largest)
    yield f"          {_hours(answer)}"
    setting = answer.shown.candidate.setting
    yield "          standing: " + of_time(
        answer.gpu,
        is_decoder=setting.shape.is_decoder,
        backend=answer.shown.candidate.backend,
        recomputes=setting.checkpointing == "full",
        precision=setting.precision,
    )
    yield f"cost      {_cost(answer)}"


def _hours(answer: Forecast) -> str:
    took, rows = answer.duration, answer.rows
    assert took is not None
    run = f"{format_seconds(took.run_s)} the run of {took.total_steps:,} steps" if took.run_s else ""
    if took.epoch_s is None:
        return "; ".join(part for part in (run, f"rows unknown: {rows.note}") if part)
    epoch = f"{format_seconds(took.epoch_s)} an epoch of {took.steps_per_epoch:,} steps"
    return f"{epoch}, {run}, evaluation and saving not counted ({rows.note})"


def _cost(answer: Forecast) -> str:
    took, price = answer.duration, answer.price
    assert took is not None
    if price is None:
        return "no price is known for this card: --prices FILE (gpu,price_per_h,currency,date)"
    each = f"{_range(price.low, price.high)} {price.currency} a card and hour ({price.source})"
    if took.cost is None:
        return f"{each}; the run's length is not known"
    return f"{_range(*took.cost)} {price.currency} the run at {each}"


def _range(low: float, high: float) -> str:
    return f"{low:.2f}" if round(low, 2) == round(high, 2) else f"{low:.2f} to {high:.2f}"


def record_lines(answer: Forecast) -> Iterator[str]:
    """Earlier runs of this recipe on this kind of card, newest last."""
    for each in answer.records[-3:]:
        parts = [f"{each.backend} x {each.num_ranks}, {each.micro_batch_size} rows"]
        if each.measured_bytes:
            said = f"{format_bytes(each.measured_bytes)} measured"
            if each.predicted_bytes:
                said += f", {format_bytes(each.predicted_bytes)} predicted"
            parts.append(said)
        if each.tokens_per_s:
            said = f"{each.tokens_per_s:,.0f} tokens/s measured"
            if each.predicted_tokens_per_s:
                said += f", {each.predicted_tokens_per_s:,.0f} predicted"
            parts.append(said)
        yield f"record    {each.folder}: {'; '.join(parts)}"
    if not answer.records:
        yield f"record    no finished run of {answer.name} on this kind of card in {answer.recipe.output_dir}"
