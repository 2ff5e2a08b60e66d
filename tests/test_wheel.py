"""The wheel, installed in an environment of its own where another project has packages called `app` and `resources`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SHADOWS = ("app", "resources", "designer")  # names of our packages that the other project uses as well
SHADOWED = f"import {', '.join(SHADOWS)}; print({', '.join(f'{name}.owner' for name in SHADOWS)})"
pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment with the wheel, and the folder of the other project."""

    home: Path
    site: Path
    project: Path

    def start(self, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in the other project's folder, which is on PYTHONPATH too."""
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(
            [str(self.home / "bin" / program), *map(str, arguments)],
            cwd=self.project,
            env={**environment, "PYTHONPATH": str(self.project), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def sample(self, name: str) -> Path:
        listed = map(Path, self.start("layerwright", "samples").stdout.splitlines())  # with the starting points
        (found,) = (path for path in listed if path.name == name and path.parent.name == "samples")
        return found

    def pip(self, *arguments: str) -> None:
        pip("--python", str(self.home / "bin" / "python"), *arguments)


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def other_project(folder: Path, owner: str) -> None:
    for name in SHADOWS:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"owner = {owner!r}\n")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT))
    (made,) = folder.glob("layerwright-*.whl")
    return made


def installed(wheel: Path, folder: Path) -> Installation:
    home = folder / "environment"
    venv.create(home, with_pip=False)
    (site,) = (home / "lib").glob("python3*/site-packages")
    # Dependencies come from the present environment by path; its own editable install is not seen that way.
    (site / "dependencies.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")) + "\n")
    other_project(site, "installed")
    other_project(folder / "project", "project")
    made = Installation(home, site, folder / "project")
    made.pip("install", "--no-deps", "--no-compile", str(wheel))
    return made


@pytest.fixture(scope="module")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """One environment for the tests that only run what is installed."""
    return installed(wheel, tmp_path_factory.mktemp("installation"))


def test_the_wheel_adds_one_package(wheel: Path) -> None:
    files = zipfile.ZipFile(wheel).namelist()
    names = {name.partition("/")[0] for name in files}
    assert names == {"layerwright", f"layerwright-{metadata.version('layerwright')}.dist-info"}
    assert "layerwright/docs/getting_started.md" in files
    assert "layerwright/samples/starting_points/dncnn.xml" in files
    assert not [name for name in files if name.startswith("layerwright/docs/screenshots")]


def test_the_program_runs_next_to_a_project_with_packages_of_the_same_names(installation: Installation) -> None:
    start, project = installation.start, installation.project
    assert start("python", "-c", SHADOWED).stdout.split() == ["project"] * len(SHADOWS)
    assert start("python", "-P", "-E", "-c", SHADOWED).stdout.split() == ["installed"] * len(SHADOWS)
    look = "import sys; before = list(sys.path); import layerwright; print(layerwright.__version__, sys.path == before)"
    assert start("python", "-c", look).stdout.split() == [metadata.version("layerwright"), "True"]

    sample = installation.sample("denoiser_analyze.xml")
    assert sample.is_relative_to(installation.site / "layerwright")
    for program in (("layerwright",), ("python", "-m", "layerwright")):
        assert "0 errors" in start(*program, "check", sample).stdout

    np.save(project / "in.npy", np.zeros((1, 3, 32, 32), np.float32))
    files = ("--input", f"input_image={project / 'in.npy'}", "--output", f"output_image={project / 'out.npy'}")
    start("layerwright", "run", sample, "--random-weights", "0", *files, "--threads", "1")
    assert np.load(project / "out.npy").shape == (1, 3, 32, 32)
    assert start("python", "-c", SHADOWED).stdout.split() == ["project"] * len(SHADOWS)


def test_processes_of_the_program_find_its_own_packages(installation: Installation) -> None:
    process = installation.site / "layerwright" / "app" / "process.py"

    def help_of(arguments: Sequence[object]) -> str:
        return installation.start("python", "-P", process, *arguments, "--help").stdout

    assert "Engine process of Layerwright" in help_of(["app.engine.worker"])
    assert "--random-weights" in help_of(["app.cli.main", "run"])


def test_plugins_import_the_api_of_the_program(installation: Installation) -> None:
    plugin = installation.project / "plugin"
    shutil.copytree(ROOT / "samples" / "plugin", plugin)
    # Without isolation the build back end comes from the present environment, as all dependencies of the tests do.
    site = str(installation.site)
    pip("install", "--no-index", "--no-deps", "--no-build-isolation", "--target", site, str(plugin))
    listed = json.loads(installation.start("layerwright", "operators", "--json").stdout)
    assert "soft_clip" in {entry["type"] for entry in listed}


def test_nothing_is_left_after_it_was_uninstalled(wheel: Path, tmp_path: Path) -> None:
    installation = installed(wheel, tmp_path)
    installation.start("layerwright", "check", installation.sample("denoiser.xml"))
    installation.pip("uninstall", "-y", "layerwright")
    assert {path.name for path in installation.site.iterdir()} == {"dependencies.pth", *SHADOWS}
    assert not list((installation.home / "bin").glob("layerwright*"))
    assert installation.start("python", "-P", "-E", "-c", SHADOWED).stdout.split() == ["installed"] * len(SHADOWS)
