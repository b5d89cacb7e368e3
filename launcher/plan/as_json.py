"""A forecast for programs: plain types, bytes and seconds in the keys."""

from typing import Any

from launcher.memory.breakdown import Breakdown, Term
from launcher.plan.fit import Judged, faster_that_do_not_fit, one_a_turn, why_not
from launcher.plan.forecast import Forecast
from launcher.plan.opening import phases
from launcher.plan.standing import in_words

_MOST_ALTERNATIVES = 20


def as_json(answer: Forecast) -> dict[str, Any]:
    """Everything that the text says, and the terms of every phase."""
    shown = answer.shown
    refused = faster_that_do_not_fit(answer.judged, shown) if shown.fits else []
    others = [each for each in one_a_turn(answer.judged) if each.fits and each is not shown]
    return {
        "recipe": answer.name,
        "gpu": answer.gpu.name if answer.gpu else None,
        "gpus": answer.num_ranks,
        "usable_bytes": answer.usable_bytes,
        "config": answer.config_source,
        "fits": answer.fits,
        "over_bytes": max(0, answer.asked.over_bytes),
        "asked": judged_json(answer.asked, full=True),
        "chosen": judged_json(answer.chosen, full=True) if answer.chosen else None,
        "faster_that_do_not_fit": [judged_json(each) for each in refused],
        "alternatives": [judged_json(each) for each in others[:_MOST_ALTERNATIVES]],
        "decided": [{"key": item.key, "value": item.value, "reason": item.reason} for item in answer.derived],
        "host": {
            "bytes": answer.host_bytes,
            "limit_bytes": answer.host_limit.amount,
            "limit_source": answer.host_limit.source,
            "fits": answer.host_fits,
            "terms": _terms(answer.host_terms),
        },
        "disk": {"bytes": sum(t.num_bytes for t in answer.disk_terms), "terms": _terms(answer.disk_terms)},
        "time": _time(answer),
        "cost": _cost(answer),
        "freezing": [vars(phase) for phase in phases(answer.recipe, shown.candidate.setting)],
        "records": [vars(record) for record in answer.records],
    }


def judged_json(judged: Judged, *, full: bool = False) -> dict[str, Any]:
    """One candidate; `full` adds every phase's terms."""
    setting = judged.candidate.setting
    found: dict[str, Any] = {
        "type": judged.candidate.typed,
        "changes": dict(judged.candidate.changes),
        "backend": judged.candidate.backend,
        "micro_batch_size": setting.micro_batch,
        "accumulation_steps": setting.accumulation_steps,
        "checkpointing": setting.checkpointing,
        "precision": setting.precision,
        "optimizer": setting.optimizer,
        "attention": setting.attention,
        "quantisation": setting.quantisation,
        "peak_bytes": judged.breakdown.peak_bytes,
        "peak_phase": judged.breakdown.peak.name,
        "needed_bytes": judged.needed_bytes,
        "fits": judged.fits,
        "step_s": judged.time.seconds if judged.time else None,
        "tokens_per_s": judged.time.tokens_per_s if judged.time else None,
        "why_not": None if judged.fits else why_not(judged),
    }
    return found | (_memory(judged.breakdown) if full else {})


def _memory(breakdown: Breakdown) -> dict[str, Any]:
    return {
        "reserved_bytes": list(breakdown.reserved_bytes),
        "process_bytes": list(breakdown.process_bytes),
        "method": breakdown.method,
        "standing": in_words(breakdown.standing),
        "phases": [
            {"name": phase.name, "bytes": phase.num_bytes, "terms": _terms(phase.terms)}
            for phase in breakdown.phases
        ],
    }


def _terms(terms: tuple[Term, ...]) -> list[dict[str, Any]]:
    return [{"name": term.name, "bytes": term.num_bytes, "formula": term.formula} for term in terms]


def _time(answer: Forecast) -> dict[str, Any] | None:
    took, step = answer.duration, answer.shown.time
    if took is None or step is None:
        return None
    return {
        "step_s": took.step_s,
        "full_length_step_s": step.seconds,
        "terms": [{"name": t.name, "seconds": t.seconds, "formula": t.formula} for t in step.terms],
        "rows_per_s": step.rows_per_s,
        "tokens_per_s": step.tokens_per_s,
        "rows": answer.rows.num_rows,
        "rows_note": answer.rows.note,
        "steps_per_epoch": took.steps_per_epoch,
        "total_steps": took.total_steps,
        "epoch_s": took.epoch_s,
        "run_s": took.run_s,
    }


def _cost(answer: Forecast) -> dict[str, Any] | None:
    price, took = answer.price, answer.duration
    if price is None:
        return None
    return {
        "per_card_hour": [price.low, price.high],
        "currency": price.currency,
        "source": price.source,
        "run": list(took.cost) if took and took.cost else None,
    }
