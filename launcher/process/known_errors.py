"""Errors of CUDA, of native libraries, of disks and of the hub, whose words do not say what to do.

They are told beneath the traceback, which stays. Formats: CUDA 12, torch 2.6 to 2.13, transformers 5,
huggingface_hub 1, safetensors 0.5 to 0.8, DeepSpeed 0.19. Ranks, ports and data workers are `symptoms`.
"""

import re

from launcher.errors import Problem
from launcher.process.symptoms import Symptom, recognise


def _known(pattern: str, what: str, right: str, typed: str) -> Symptom:
    return Symptom(pattern=re.compile(pattern, re.IGNORECASE), what=what, right=right, type=typed)


KNOWN = (
    _known(
        r"no kernel image is available",
        "this torch has no kernels for this card: it was built for other (mostly older) ones",
        "a build for the card: RTX 50xx needs CUDA 12.8 and torch 2.7; V100 the cu126 build",
        "launcher doctor   (it prints the install line)",
    ),
    _known(
        r"device-side assert",
        "a kernel met a number out of its range: most often a label outside 0..labels-1, or a token or "
        "position that the model has not; the line above is not the place",
        "labels and lengths that fit the model; the CUDA context is gone, so a retry needs a new process",
        "launcher data RECIPE   (then, for the place: CUDA_LAUNCH_BLOCKING=1 and the same command)",
    ),
    _known(
        r"invalid device ordinal",
        "a process asked for a card that is not visible: more processes than cards",
        "one process a card; CUDA_VISIBLE_DEVICES counts from 0 again",
        "nvidia-smi -L   (then --gpus with their number)",
    ),
    _known(
        r"driver version is insufficient|driver on your system is too old|found no NVIDIA driver",
        "the NVIDIA driver is missing, or older than this torch's CUDA",
        "a newer driver, or a torch build for an older CUDA",
        "nvidia-smi   (then: launcher doctor)",
    ),
    _known(
        r"CUBLAS_STATUS_(NOT_INITIALIZED|INTERNAL_ERROR)",
        "cuBLAS found no memory for its own buffers, or a kernel before it failed",
        "memory to spare on the card",
        "per_device_train_batch_size=1   (if it stays: CUDA_LAUNCH_BLOCKING=1 names the first failure)",
    ),
    _known(
        r"CUBLAS_STATUS_(NOT_SUPPORTED|EXECUTION_FAILED|ARCH_MISMATCH)|CUDNN_STATUS_(EXECUTION_FAILED|NOT_SUPPORTED)",
        "a CUDA library refused this kernel: often bf16 on a card without it, or mixed CUDA libraries",
        "fp16 or fp32 there; one CUDA: no libraries of another one in LD_LIBRARY_PATH",
        "unset LD_LIBRARY_PATH   (or precision=fp16)",
    ),
    _known(
        r"illegal memory access|unspecified launch failure|misaligned address",
        "a kernel read outside its memory: rarely the recipe, mostly a kernel, a driver or a failing card",
        "the plain kernels, to tell which",
        "attn_implementation=eager optim=adamw_torch   (and: dmesg | grep -i xid)",
    ),
    _known(
        r"uncorrectable ECC|GPU has fallen off the bus|Xid",
        "the card itself reports a fault",
        "another card; a rented one is to be exchanged",
        "nvidia-smi -q -d ECC   (then release the instance)",
    ),
    _known(
        r"environment variable (MASTER_ADDR|MASTER_PORT|RANK|WORLD_SIZE) expected",
        "a starter's variables stand half in this shell: a plain start takes itself for one rank of several",
        "none of them before a plain start; all of them below a starter",
        "unset RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT",
    ),
    _known(
        r"unhandled (system|cuda) error|ncclSystemError|ncclUnhandledCudaError|ncclInternalError",
        "NCCL could not set up a way between the cards: peer access, shared memory or a network device",
        "/dev/shm of gigabytes; no peer access where the cards have none",
        "NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1 NCCL_DEBUG=WARN and the same command   (docs/hangs.md)",
    ),
    _known(
        r"flash_attn.*undefined symbol|undefined symbol.*flash|flash_attn_2_cuda",
        "flash-attn was built for another torch",
        "a build for this torch, or torch's own attention, which is nearly as fast",
        "pip uninstall flash-attn   (or attn_implementation=sdpa)",
    ),
    _known(
        r"undefined symbol",
        "a compiled package was built for another version of torch or CUDA",
        "packages of one set",
        "pip install --force-reinstall --no-deps PACKAGE   (the one named in the path)",
    ),
    _known(
        r"GLIBCXX_|CXXABI_",
        "a library wants a newer C++ run time than the system's: conda's is newer",
        "conda's own libstdc++ found first",
        "export LD_LIBRARY_PATH=$CONDA_PREFIX/lib:$LD_LIBRARY_PATH   (or: conda install libstdcxx-ng)",
    ),
    _known(
        r"lib(cudart|cublas|cusparse|nvrtc|cudnn|nvJitLink)[\w.-]*: cannot open shared object",
        "a package wants a CUDA library that is not here: it was built for another CUDA",
        "the build for this torch's CUDA",
        'python -c "import torch; print(torch.version.cuda)"   (then that build of the package)',
    ),
    _known(
        r"CUDA_HOME (does not exist|environment variable is not set)|CUDA_HOME is not set",
        "a package is compiled now, and the CUDA toolkit is not here",
        "the toolkit, or a set-up that compiles nothing",
        "export CUDA_HOME=/usr/local/cuda   (or a backend without offload: --backend zero2)",
    ),
    _known(
        r"ninja is required|Error building extension|Error compiling objects",
        "an operator is compiled at its first use, and its compiler failed: the first error above is the one",
        "a C++ compiler, ninja on PATH",
        "launcher doctor   (then: launcher prepare RECIPE --build-ops)",
    ),
    _known(
        r"CUDA Setup failed|libbitsandbytes_\w+\.so",
        "bitsandbytes found no library for this CUDA",
        "a release that has one for this torch's CUDA, or no 8-bit and no 4-bit",
        "pip install -U bitsandbytes   (or optim=adamw_torch_fused, load_in_4bit=false)",
    ),
    _known(
        r"HeaderTooLarge|InvalidHeader(Deserialization|Length|Start)?|MetadataIncompleteBuffer|"
        r"deserializing header",
        "a .safetensors file is no such file: a Git LFS pointer of some bytes, or a download that stopped",
        "the file itself, whole",
        "ls -l FOLDER/*.safetensors   (then: git lfs pull, or launcher prepare RECIPE)",
    ),
    _known(
        r"PytorchStreamReader failed|central directory|invalid load key",
        "a weights file is cut off, or a Git LFS pointer",
        "the file itself, whole",
        "ls -l FOLDER   (then: git lfs pull, or launcher prepare RECIPE)",
    ),
    _known(
        r"weights_only|Weights only load failed",
        "a pickle that may run code was not opened",
        "a .safetensors file of the same weights",
        "convert it where it was made: model.save_pretrained(DIR)   (it writes safetensors)",
    ),
    _known(
        r"does not recognize this architecture|Unrecognized configuration class|Unrecognized model in",
        "this transformers does not know the model's type, or it is for another task",
        "a transformers that knows it; a decoder for causal_lm, an encoder or decoder for classification",
        "pip install -U transformers   (its own code: trust_remote_code=true, if you trust it)",
    ),
    _known(
        r"gated repo|GatedRepoError|awaiting a review|not in the authorized list",
        "the model is gated: its owner wants to know who takes it",
        "access granted on its page, and your token here",
        "hf auth login   (after asking for access at https://huggingface.co/MODEL)",
    ),
    _known(
        r"RepositoryNotFoundError|Repository Not Found|401 Client Error|Invalid username or password",
        "the hub has no such repository, or not for you",
        "the id as the hub spells it; a token for a private one",
        "hf auth whoami   (then: hf auth login)",
    ),
    _known(
        r"429 (Client Error|Too Many)|Too Many Requests",
        "the hub or its mirror counts requests, and there were too many",
        "a token (its limit is higher), or a few minutes of patience",
        "hf auth login   (or: launcher prepare RECIPE later)",
    ),
    _known(
        r"LocalEntryNotFoundError|outgoing traffic has been disabled|couldn't connect to|MaxRetryError|"
        r"ConnectTimeout|ConnectError|Name or service not known|Temporary failure in name resolution",
        "the hub was asked, and did not answer",
        "files that are here already, a mirror, or ModelScope",
        "launcher doctor RECIPE   (it asks each host, and says which way works)",
    ),
    _known(
        r"ProxyError|Tunnel connection failed|Cannot connect to proxy",
        "the proxy of this shell does not answer",
        "no proxy, or one that works",
        "unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY",
    ),
    _known(
        r"SSLError|CERTIFICATE_VERIFY_FAILED|SSLCertVerificationError",
        "the other side's certificate was not accepted: a proxy in between, or a wrong clock",
        "the proxy's certificate known here; the right time",
        "date   (then: export SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt)",
    ),
    _known(
        r"Errno 28|No space left on device",
        "a disk is full",
        "room, or another place for caches and runs",
        "df -h . ~/.cache /tmp   (then HF_HOME, TMPDIR and --output_dir on the disk with room)",
    ),
    _known(
        r"Errno 122|Disk quota exceeded",
        "your share of this disk is used up",
        "room, or another place for caches and runs",
        "du -sh ~/.cache runs   (then HF_HOME and --output_dir elsewhere)",
    ),
    _known(
        r"Errno 30|Read-only file system",
        "this disk takes no writing",
        "another place for runs and caches",
        "--output_dir DIR, and HF_HOME=DIR for the caches",
    ),
    _known(
        r"Errno 24|Too many open files",
        "too many files are open at once: workers and shards count",
        "a higher limit, or fewer workers",
        "ulimit -n 65535   (or dataloader_num_workers=0)",
    ),
    _known(
        r"Errno 5\b|Input/output error|Stale file handle|Errno 116",
        "a disk failed in the middle of reading or writing: a network disk most often",
        "data, caches and runs on a local disk",
        "dmesg | tail   (then copy the data, and --output_dir on a local disk)",
    ),
    _known(
        r"Cannot allocate memory|Errno 12",
        "the host's memory ran out while a process was started or a file was mapped",
        "fewer workers and ranks, or more memory",
        "dataloader_num_workers=0   (launcher plan RECIPE says how much host memory it needs)",
    ),
    _known(
        r"requires the (protobuf|sentencepiece|tiktoken)|No module named '(sentencepiece|tiktoken|google)",
        "this model's tokenizer needs a package that is not here",
        "it installed; or a copy of the model with tokenizer.json",
        "pip install sentencepiece protobuf tiktoken",
    ),
    _known(
        r"No module named '(deepspeed|bitsandbytes|gguf|tensorboard|wandb|swanlab|trackio)'",
        "a package of an extra is not installed",
        "the extra: deepspeed, qlora, gguf, tracking or trackers",
        "pip install -e '.[deepspeed,qlora,gguf,trackers]'",
    ),
    _known(
        r"requires that you have a C compiler|Failed to find C compiler|Python\.h: No such file",
        "Triton compiles its launcher with the system's compiler, and it or Python's headers are not here",
        "a compiler and the headers",
        "sudo apt-get install -y build-essential python3-dev",
    ),
)


def advice(error: BaseException) -> Problem | None:
    """What is known of such an error, or None. Its causes are looked at too."""
    seen: list[BaseException] = []
    inner: BaseException | None = error
    while inner is not None and inner not in seen and len(seen) < 10:
        seen.append(inner)
        text = f"{type(inner).__name__}: {inner}"[:20_000]
        if (found := recognise(text, KNOWN)) is not None:
            return found.saying(text)
        inner = inner.__cause__ or inner.__context__
    return None
