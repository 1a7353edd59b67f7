"""Builds the package with maturin. Without Rust, it says how to install Rust."""

from __future__ import annotations

import shutil
from typing import Any

import maturin
from maturin import *  # noqa: F403

NO_RUST = (
    "There is no wheel of corsair-sim for this platform, and no Rust to build one: "
    "install Rust from https://rustup.rs, and repeat the command."
)


def _need_rust() -> None:
    if shutil.which("cargo") is None:
        raise SystemExit(NO_RUST)


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    _need_rust()
    return maturin.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    _need_rust()
    return maturin.get_requires_for_build_editable(config_settings)


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    _need_rust()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
