"""Environments of their own for packages that conflict with those here."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

STREAMING = (
    "mosaicml-streaming==0.13.0",
    "catalogue",
    "Brotli",
    "python-snappy",
    "cramjam",
    "zstd",
    "xxhash",
)
"""It and what it imports to read local files; its torchvision and cloud clients are not needed for that."""


@pytest.fixture(scope="session")
def streaming_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with mosaicml-streaming beside the packages here, and a torchvision of nothing."""
    folder = tmp_path_factory.mktemp("streaming") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    found = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    site = Path(found.stdout.strip())
    (site / "shared.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    words = ["-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", *STREAMING]
    subprocess.run([sys.executable, *words], check=True)
    for name, text in {
        "__init__": "",
        "datasets": "class VisionDataset: ...\nclass CIFAR10: ...\nclass ImageFolder: ...\n",
        "transforms/__init__": "",
        "transforms/functional": "def to_tensor(image): ...\n",
    }.items():
        path = site / "torchvision" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return python
