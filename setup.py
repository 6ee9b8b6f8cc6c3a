"""How the extensions are built: every ``.pyx`` of the package is one, and Cython's own functions are another.

``MSMQWIRE_BUILD`` chooses the build:

- ``release`` (default): optimised, without checks that the kernels make themselves;
- ``portable``: without vector instructions and builtins of compilers, as other compilers than GCC and Clang build it;
- ``trace``: line tracing for coverage and debuggers, annotated HTML next to each ``.c``;
- ``sanitize``: AddressSanitizer and UndefinedBehaviorSanitizer, debug symbols (import it under ``LD_PRELOAD=libasan``);
- ``coverage``: counts executed lines and branches for gcov (``make coverage`` sets it);
- ``fuzz``: coverage for libFuzzer and the same sanitizers, for clang (``make fuzz`` sets it);
- ``none``: no extensions, for an environment that gets its dependencies first and is built in place afterwards.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
import tarfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = Path(__file__).parent
# The time of the files in archives where SOURCE_DATE_EPOCH does not say another
RELEASED = 1_735_689_600

DIRECTIVES = {
    "language_level": "3",
    "initializedcheck": False,
    "cdivision": True,
    # Functions with __signature__, as inspect and help() read it
    "binding": True,
    "embedsignature": False,
    # Annotations are for stubs (stubs.py); C types stand before the names
    "annotation_typing": False,
    "freethreading_compatible": False,
    "show_performance_hints": False,
}

BUILDS: dict[str, tuple[list[str], list[str], dict[str, bool]]] = {
    "release": (["-g0"], [], {}),
    "portable": (["-g0", "-DMSMQWIRE_PORTABLE"], [], {}),
    "trace": (["-O1", "-g", "-DCYTHON_TRACE_NOGIL=1"], [], {"linetrace": True}),
    "sanitize": (
        ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        ["-fsanitize=address,undefined"],
        {},
    ),
    # One copy of each inline function, whose branches are counted once and not in every caller
    "coverage": (["-O0", "-w", "--coverage", "-UCYTHON_INLINE"], ["--coverage"], {}),
    # Inline functions in every caller, with a check of each access, would take clang half as long again
    "fuzz": (
        [
            *(
                "-O1",
                "-gline-tables-only",
                "-w",
                "-UCYTHON_INLINE",
                "-fsanitize=fuzzer-no-link,address,undefined",
                "-fsanitize-trap=undefined",
            ),
            f"-fsanitize-coverage-ignorelist={HERE / 'fuzz' / 'coverage_ignorelist.txt'}",
        ],
        ["-fsanitize=address"],
        {},
    ),
    "none": ([], [], {}),
}


# What every module needs of Cython, compiled once: a quarter less to compile, and smaller modules
UTILITIES = "msmqwire._cython_utilities"

# Inline functions of kernels are always inlined: otherwise GCC keeps one shared copy of the larger readers, without
# the constants of each caller, which costs a fifth more instructions.
INLINE = ("CYTHON_INLINE", "inline __attribute__((always_inline))")

# Loops over many payloads: -O3 saves messages 8% of the instructions, looks at 16 bytes of a text at a time, and saves
# nothing in other modules. Those of the layout are a few instructions each: unrolled they take a tenth fewer.
LOOPS = {
    "_batch": ["-O3"],
    "_bodies": ["-O3"],
    "_decoder": ["-O3"],
    "_derived": ["-O3"],
    "_encode": ["-O3"],
    "_layout": ["-O3", "-funroll-loops"],
    "_suspects": ["-O3"],
}
# Folders whose modules loop over frames, columns and groups: with -O1 they take 4% to 10% more instructions. Others
# take 2% more at most, and GCC half the time.
ROWS = ("capture", "columns")


def optimisation(source: Path) -> list[str]:
    """Flags for the module in a build that is not for debugging."""
    return LOOPS.get(source.stem) or ["-O2" if source.parts[1] in ROWS else "-O1"]


def extension(name: str, sources: list[Path], flags: list[str], depends: list[str]) -> Extension:
    """One compiled module in the chosen build."""
    compile_args, link_args, _ = chosen_build()
    return Extension(
        name,
        [str(source) for source in sources],
        depends=depends,
        include_dirs=["."],
        define_macros=[INLINE],
        extra_compile_args=[*compile_args, *(flags if "-g0" in compile_args else [])],
        extra_link_args=link_args,
    )


def chosen_build() -> tuple[list[str], list[str], dict[str, bool]]:
    """Flags for the compiler and the linker, and directives, of the build that ``MSMQWIRE_BUILD`` names."""
    name = os.environ.get("MSMQWIRE_BUILD", "release")
    if name not in BUILDS:
        sys.exit(f"MSMQWIRE_BUILD={name!r} is not one of {', '.join(BUILDS)}")
    return BUILDS[name]


def extensions() -> list[Extension]:
    """One extension for each ``.pyx``, in the order of their names, and the one that all of them import."""
    if os.environ.get("MSMQWIRE_BUILD") == "none":
        return []
    headers = sorted(str(path.relative_to(HERE)) for path in HERE.glob("msmqwire/**/*.h"))
    sources = sorted(path.relative_to(HERE) for path in HERE.glob("msmqwire/**/*.pyx"))
    return [
        extension(UTILITIES, [], ["-O1"], []),
        *(
            extension(".".join(source.with_suffix("").parts), [source], optimisation(source), headers)
            for source in sources
        ),
    ]


class BuildExtensions(build_ext):
    """Translate all extensions first, in as many processes as C files are compiled at a time."""

    def finalize_options(self) -> None:
        super().finalize_options()
        # Only Linux counts the processors that this process may use
        usable = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
        self.parallel = self.parallel or len(usable(0))

    def run(self) -> None:
        translated = cythonize(
            self.extensions,
            compiler_directives={**DIRECTIVES, **chosen_build()[2]},
            annotate=os.environ.get("MSMQWIRE_BUILD") == "trace",
            build_dir="build",
            shared_utility_qualified_name=UTILITIES,
            nthreads=self.parallel,
            quiet=not self.verbose,
        )
        sources = {extension.name: extension.sources for extension in translated}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
        if self.inplace:
            self.remove_stale()
        super().run()

    def build_extensions(self) -> None:
        for extension in self.extensions:
            if sys.platform == "win32":
                extension.libraries = ["ws2_32"]  # inet_pton
            if self.compiler.compiler_type == "msvc":
                extension.define_macros = [("CYTHON_INLINE", "__forceinline")]
                extension.extra_compile_args = ["/O2"]
        super().build_extensions()

    def remove_stale(self) -> None:
        """Remove built modules whose source is gone: they would still be imported."""
        built = {HERE.joinpath(*extension.name.split(".")) for extension in self.extensions}
        for library in HERE.glob("msmqwire/**/*.so"):
            if library.with_name(library.name.partition(".")[0]) not in built:
                library.unlink()


class ReproducibleSdist(sdist):
    """An archive whose bytes depend on its files alone: sorted, of nobody, and with the time of SOURCE_DATE_EPOCH."""

    def make_archive(
        self,
        base_name: str | os.PathLike[str],
        format: str,
        root_dir: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None = None,
        base_dir: str | None = None,
        owner: str | None = None,
        group: str | None = None,
    ) -> str:
        root = Path(os.fsdecode(root_dir or "."))
        archive = Path(f"{base_name}.tar.gz")
        archive.parent.mkdir(parents=True, exist_ok=True)
        time = int(os.environ.get("SOURCE_DATE_EPOCH", RELEASED))
        files = sorted(path for path in Path(root, base_dir or ".").rglob("*") if path.is_file())
        with (
            archive.open("wb") as file,
            gzip.GzipFile("", "wb", 9, file, mtime=time) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archived,
        ):
            for path in files:
                entry = tarfile.TarInfo(path.relative_to(root).as_posix())
                entry.size, entry.mtime = path.stat().st_size, time
                entry.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
                with path.open("rb") as content:
                    archived.addfile(entry, content)
        return str(archive)


def page_of_registry() -> tuple[str, dict[str, str]]:
    """README and links for a registry; MSMQWIRE_REPOSITORY is the URL of the repository, which a release has."""
    text = (HERE / "README.md").read_text("utf-8")
    repository = os.environ.get("MSMQWIRE_REPOSITORY")
    if not repository:
        return text, {}
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{repository}/raw/HEAD/", text)
    text = re.sub(r"((?<!!)\[[^]]*\]\()(?!https?:)", rf"\1{repository}/blob/HEAD/", text)
    pages = {"Repository": "", "Documentation": "/blob/HEAD/docs/index.md", "Changelog": "/blob/HEAD/CHANGELOG.md"}
    return text, {name: repository + path for name, path in pages.items()}


README, URLS = page_of_registry()
setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildExtensions, "sdist": ReproducibleSdist},
    long_description_content_type="text/markdown",
    long_description=README,
    project_urls=URLS,
)
