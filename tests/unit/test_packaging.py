"""What gets installed: the wheel's contents, and what an import of it loads.

The folders of this repository install under other names (pyproject.toml, ``package-dir``), and
setuptools drops without a word what is not listed there; so the wheel is compared with git's list.
"""

import json
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALLED_AS = {
    "cli": "mc2proof",
    "protocol": "mc2proof/protocol",
    "checker": "mc2proof/checker",
    "fuzz": "mc2proof/fuzz",
}
HEAVY = {"z3", "numpy", "hypothesis", "ml_dtypes"}


def packaged_sources() -> list[Path]:
    """Files of the four folders, relative to the root: tracked ones, and ones not yet added."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no git checkout to compare the wheel with")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *INSTALLED_AS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip(f"git cannot list this checkout: {listing.stderr.strip()}")
    names = {Path(name) for name in listing.stdout.split("\0") if name}
    return sorted(name for name in names if (ROOT / name).is_file())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel built from the listed files alone, away from the checkout and its old builds."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, source)
    for name in packaged_sources():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)

    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps"]
    if has_build_backend():
        command.append("--no-build-isolation")
    built = subprocess.run(
        [*command, "--wheel-dir", str(target), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    [path] = target.glob("mc2proof-*.whl")
    return zipfile.ZipFile(path)


def has_build_backend() -> bool:
    """Whether the setuptools beside us is new enough to build with; otherwise pip fetches one."""
    try:
        version = metadata.version("setuptools")
    except metadata.PackageNotFoundError:
        return False
    return int(version.split(".")[0]) >= 77


@pytest.mark.wheel
def test_wheel_holds_every_source_file_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    expected = {f"{INSTALLED_AS[name.parts[0]]}/{'/'.join(name.parts[1:])}" for name in packaged_sources()}
    found = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert found == expected


@pytest.mark.wheel
def test_wheel_carries_license_and_command(wheel: zipfile.ZipFile) -> None:
    [license_name] = [name for name in wheel.namelist() if name.endswith("/LICENSE")]
    assert wheel.read(license_name) == (ROOT / "LICENSE").read_bytes()
    [entry_points] = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
    assert "mc2proof = mc2proof.command:main" in wheel.read(entry_points).decode()


def loaded_after(code: str, tmp_path: Path) -> set[str]:
    """Names of the modules that a fresh interpreter has loaded after running ``code``."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    finished = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,  # not the root, whose folders would be importable by their own names
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return set(json.loads(finished.stdout.splitlines()[-1]))


def test_importing_protocol_loads_nothing_heavy(tmp_path: Path) -> None:
    assert not loaded_after("import mc2proof.protocol", tmp_path) & HEAVY


def test_no_module_of_protocol_loads_anything_heavy(tmp_path: Path) -> None:
    code = """
import importlib, pkgutil
import mc2proof.protocol as package
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
"""
    assert not loaded_after(code, tmp_path) & HEAVY


def test_importing_mc2proof_loads_no_other_layer(tmp_path: Path) -> None:
    loaded = loaded_after("import mc2proof", tmp_path)
    assert not loaded & (HEAVY | {"mc2proof.checker", "mc2proof.fuzz"})


def test_every_export_of_mc2proof_resolves(tmp_path: Path) -> None:
    import mc2proof

    names = getattr(mc2proof, "__all__", ())
    if not names:
        pytest.skip("mc2proof exports nothing yet")
    code = "import mc2proof\n" + "\n".join(f"mc2proof.{name}" for name in names)
    loaded_after(code, tmp_path)
