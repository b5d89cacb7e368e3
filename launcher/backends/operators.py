"""DeepSpeed's operators in C++: which are compiled already, and what compiling one would need. Torch-free.

Compiling takes minutes, while every rank waits: an operator is taken where it is there, compiled where
a backend cannot do without it, or where a person asks for it.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from launcher.errors import Problem


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One operator: its name with torch, and where deepspeed keeps one that was built with it.

    `header` and `library` are a system library's, `package` what Debian and Ubuntu call it;
    `links_cuda`: beside a card it is built with CUDA's toolkit, which torch's own wheels do not bring.
    """

    name: str
    prebuilt: str
    header: str = ""
    library: str = ""
    package: str = ""
    links_cuda: bool = False


_DRIVER, _TOOLKIT = Path("/proc/driver/nvidia/version"), Path("/usr/local/cuda")
CPU_ADAM = Operator(name="cpu_adam", prebuilt="ops/adam/cpu_adam_op*.so")
ASYNC_IO = Operator(
    name="async_io",
    prebuilt="ops/aio/async_io_op*.so",
    header="libaio.h",
    library="aio",
    package="libaio-dev",
    links_cuda=True,
)


def is_compiled(operator: Operator, environ: Mapping[str, str]) -> bool:
    """Whether loading it compiles nothing: built with deepspeed, or since torch and deepspeed came."""
    packages = _packages()
    if "deepspeed" in packages and any(packages["deepspeed"].parent.glob(operator.prebuilt)):
        return True
    installed = max((path.stat().st_mtime for path in packages.values()), default=0.0)
    built = (path for folder in _folders(environ) for path in folder.glob(f"{operator.name}/*.so"))
    return any(path.stat().st_mtime > installed for path in built)


def _packages() -> dict[str, Path]:
    """The packages that an operator is built from, as far as they are installed."""
    found = {name: find_spec(name) for name in ("torch", "deepspeed")}
    return {name: Path(spec.origin) for name, spec in found.items() if spec and spec.origin}


def _folders(environ: Mapping[str, str]) -> list[Path]:
    """Where torch keeps what it compiles: as told, or in the home, one folder a Python and CUDA version."""
    if told := environ.get("TORCH_EXTENSIONS_DIR"):
        return [Path(told)]
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [*(cache / "torch_extensions").glob(f"{version}_*")]


def missing_tools(environ: Mapping[str, str]) -> list[str]:
    """What every load of an operator needs and is not here: torch asks for both even where one is built."""
    compiler = environ.get("CXX", "c++")
    beside = str(Path(sys.executable).parent)
    path = os.pathsep.join([beside, environ.get("PATH", os.defpath)])
    tools = {compiler: f"a C++ compiler ({compiler})", "ninja": "ninja"}
    return [words for name, words in tools.items() if shutil.which(name, path=path) is None]


def problems(operator: Operator, environ: Mapping[str, str]) -> list[Problem]:
    """Why the operator cannot be used here, each with what to type; nothing where it can."""
    found = []
    if tools := missing_tools(environ):
        found.append(_no_tools(operator, tools))
    if operator.library and not _has_library(operator, environ, has_compiler=not tools):
        found.append(_no_library(operator))
    if operator.links_cuda and not is_compiled(operator, environ) and _lacks_toolkit(environ):
        found.append(_no_toolkit(operator))
    return found


def _lacks_toolkit(environ: Mapping[str, str]) -> bool:
    """Whether there is a card, and no toolkit where torch looks for one."""
    if not _DRIVER.exists() or environ.get("DS_ACCELERATOR") == "cpu":
        return False
    named = environ.get("CUDA_HOME") or environ.get("CUDA_PATH")
    return not (named or _TOOLKIT.exists() or shutil.which("nvcc", path=environ.get("PATH", os.defpath)))


def _has_library(operator: Operator, environ: Mapping[str, str], *, has_compiler: bool) -> bool:
    """The library itself; its header too where there is something to compile."""
    import subprocess  # these two are slow to import, and every verb imports this file
    from ctypes.util import find_library

    if find_library(operator.library) is None:
        return False
    if is_compiled(operator, environ) or not has_compiler:
        return True
    source = f"#include <{operator.header}>\n"
    command = [environ.get("CXX", "c++"), *environ.get("CFLAGS", "").split(), "-E", "-x", "c++", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False, env={**environ})
    return done.returncode == 0


def _no_tools(operator: Operator, tools: list[str]) -> Problem:
    return Problem(
        where=f"DeepSpeed's {operator.name}",
        what=f"{' and '.join(tools)} {'is' if len(tools) == 1 else 'are'} not on PATH",
        right="both: the operator is compiled once on this machine, and looked at again by every start",
        type="sudo apt-get install -y g++ ; pip install ninja",
    )


def _no_library(operator: Operator) -> Problem:
    return Problem(
        where=f"DeepSpeed's {operator.name}",
        what=f"lib{operator.library} is not installed here, or without its header {operator.header}",
        right="the library and its header, before the operator is compiled at the first start (minutes)",
        type=f"sudo apt-get install -y {operator.package}   (RPM systems: dnf install "
        f"lib{operator.library}-devel), or another backend: --backend zero3_offload",
    )


def _no_toolkit(operator: Operator) -> Problem:
    return Problem(
        where=f"DeepSpeed's {operator.name}",
        what="there is a card here, and no CUDA toolkit (nvcc) that the operator could be built with",
        right="the toolkit of torch's CUDA version, at /usr/local/cuda or named by CUDA_HOME",
        type="export CUDA_HOME=/path/to/cuda, or another backend: --backend zero3_offload",
    )
