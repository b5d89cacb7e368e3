"""The base of every option model: frozen, keyword-only, unknown keys refused."""

from pydantic import BaseModel, ConfigDict


class Options(BaseModel):
    """Options that one piece owns. Field descriptions are the manual's text, one sentence each."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), validate_default=True)
