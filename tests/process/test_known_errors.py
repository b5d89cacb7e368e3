"""What CUDA, native libraries, disks and the hub say, with what to do about it."""

import pytest

from launcher.process.known_errors import KNOWN, advice

SAID = [
    ("CUDA error: no kernel image is available for execution on the device", "launcher doctor"),
    ("CUDA error: device-side assert triggered", "launcher data"),
    ("CUDA error: invalid device ordinal", "nvidia-smi -L"),
    ("Found no NVIDIA driver on your system.", "nvidia-smi"),
    (
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate`",
        "per_device_train_batch_size=1",
    ),
    ("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasGemmEx`", "LD_LIBRARY_PATH"),
    ("CUDA error: an illegal memory access was encountered", "attn_implementation=eager"),
    ("uncorrectable ECC error encountered", "ECC"),
    ("env:// rendezvous: environment variable MASTER_PORT expected, but not set", "unset RANK"),
    ("NCCL error: unhandled system error (run with NCCL_DEBUG=INFO)", "NCCL_P2P_DISABLE=1"),
    ("flash_attn_2_cuda.cpython-311.so: undefined symbol: _ZN3c105ErrorC2E", "pip uninstall flash-attn"),
    ("/lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found", "CONDA_PREFIX"),
    ("libcudart.so.11.0: cannot open shared object file: No such file or directory", "torch.version.cuda"),
    ("CUDA_HOME does not exist, unable to compile CUDA op(s)", "export CUDA_HOME"),
    ("Ninja is required to load C++ extensions", "--build-ops"),
    ("Error while deserializing header: HeaderTooLarge", "git lfs pull"),
    ("PytorchStreamReader failed reading zip archive: failed finding central directory", "git lfs pull"),
    ("Weights only load failed.", "save_pretrained"),
    ("Transformers does not recognize this architecture.", "pip install -U transformers"),
    ("You are trying to access a gated repo.", "hf auth login"),
    ("401 Client Error: Repository Not Found for url", "hf auth"),
    ("429 Client Error: Too Many Requests for url", "hf auth login"),
    ("HTTPSConnectionPool: Max retries exceeded (Caused by ProxyError('Cannot connect to proxy.'))", "unset"),
    ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "SSL_CERT_FILE"),
    ("Temporary failure in name resolution", "launcher doctor"),
    ("[Errno 28] No space left on device: '/tmp/x'", "df -h"),
    ("[Errno 122] Disk quota exceeded", "du -sh"),
    ("[Errno 30] Read-only file system: '/x'", "--output_dir"),
    ("[Errno 24] Too many open files", "ulimit -n"),
    ("[Errno 116] Stale file handle", "local disk"),
    ("[Errno 12] Cannot allocate memory", "dataloader_num_workers=0"),
    ("No module named 'deepspeed'", "deepspeed"),
    ("LlamaTokenizer requires the sentencepiece library", "pip install sentencepiece"),
]


@pytest.mark.parametrize(("text", "typed"), SAID, ids=[text[:32] for text, _ in SAID])
def test_each_says_what_to_type(text: str, typed: str) -> None:
    found = advice(RuntimeError(text))
    assert found is not None
    assert typed in found.type
    assert text[:20] in found.what
    assert found.right


def test_every_line_of_the_table_is_spoken_for() -> None:
    spoken = {id(next(known for known in KNOWN if known.pattern.search(text))) for text, _ in SAID}
    left = [known.what for known in KNOWN if id(known) not in spoken]
    assert len(left) <= 4, left


def test_a_cause_is_looked_at_and_an_unknown_error_is_left_alone() -> None:
    try:
        try:
            raise OSError(28, "No space left on device")
        except OSError as inner:
            raise ValueError("cannot write") from inner
    except ValueError as outer:
        found = advice(outer)
    assert found is not None
    assert "a disk is full" in found.what
    assert advice(RuntimeError("mat1 and mat2 shapes cannot be multiplied")) is None
    assert advice(KeyError("x")) is None
