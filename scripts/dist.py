#!/usr/bin/env python3
"""Packs built programs for people to install; `scripts/dist.sh` calls it.

    dist.py FOLDER --program x86_64=PATH [--program aarch64=PATH] [--only wheel,npm,deb,archive] [--quick]

Every package has the same tree, which is also what the program looks for: bin/daybook, and share/daybook with the kits and
the packs' data. A wheel adds the kit for Python as a module, an npm package the kit for TypeScript. The manual page and the
completions are written by the program of this machine's architecture, so that one must be among the programs.

The bytes depend on the input alone: entries are sorted, times are SOURCE_DATE_EPOCH, owners are root. `--quick` does not
compress and removes debug information, for tests. Needs Python 3.11, binutils, cargo and, for the .deb, dpkg-deb.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARE = "share/daybook"

# What an architecture is called by readelf, in a .deb, and by npm.
NAMES = {
    "x86_64": ("Advanced Micro Devices X86-64", "amd64", "x64"),
    "aarch64": ("AArch64", "arm64", "arm64"),
}

HERE = {"arm64": "aarch64"}.get(platform.machine(), platform.machine())

# The data that pages of the documentation name as inputs.
DATA = ("packs/incident/incidents", "packs/fraud/transactions", "packs/network/networks")

# Libraries that every Linux with glibc has. Source: PEP 600, and auditwheel's policies.
SYSTEM = re.compile(r"lib(c|m|dl|pthread|rt|util)\.so\.\d+|libgcc_s\.so\.1|ld-linux-.*\.so\.\d+")

# The oldest glibc that has both architectures, and for which Rust builds. Source: PEP 599.
GLIBC_MIN = (2, 17)


def fail(problem: str):
    print(f"error: {problem}", file=sys.stderr)
    sys.exit(2)


def output(*command: str | pathlib.Path, **options) -> bytes:
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if ran.returncode != 0:
        sys.stderr.buffer.write(ran.stderr)
        fail(f"{' '.join(map(str, command))} exited with {ran.returncode}")
    return ran.stdout


class Program:
    """A built program, and what it needs from a system."""

    def __init__(self, architecture: str, path: pathlib.Path):
        self.architecture = architecture
        self.machine, self.debian, self.node = NAMES[architecture]
        self.path = path
        elf = output("readelf", "--wide", "--file-header", "--dynamic", "--version-info", path).decode()
        machine = re.search(r"Machine: +(.*)", elf)
        if not machine or machine[1] != self.machine:
            fail(f"{path} is not a program for {architecture}")
        self.libraries = sorted(re.findall(r"\(NEEDED\).*\[(.*)\]", elf))
        foreign = [name for name in self.libraries if not SYSTEM.fullmatch(name)]
        if foreign:
            fail(f"{path} needs {', '.join(foreign)}, which not every Linux has")
        versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", elf)
        self.glibc = max([GLIBC_MIN, *((int(major), int(minor)) for major, minor in versions)])

    def platforms(self) -> list[str]:
        """The platforms of a wheel: the glibc that the symbols need."""
        tags = ["manylinux_{}_{}_{}".format(*self.glibc, self.architecture)]
        if self.glibc == GLIBC_MIN:
            tags.append(f"manylinux2014_{self.architecture}")
        return tags


class Pack:
    """What all packages share. A file is its bytes and whether it may be run."""

    def __init__(self, out: pathlib.Path, quick: bool):
        self.out, self.quick = out, quick
        self.level = 0 if quick else 9
        self.version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        # A zip cannot say an earlier time.
        self.epoch = max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800)

    def program(self, program: Program) -> bytes:
        # This machine's objcopy may know no other architecture.
        if not self.quick or program.architecture != HERE:
            return program.path.read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            stripped = pathlib.Path(folder) / "stripped"
            output("objcopy", "--strip-all", program.path, stripped)
            return stripped.read_bytes()

    def shared(self, program: pathlib.Path) -> dict[str, bytes]:
        """The files that no architecture changes, by their path in an installation."""
        version = output(program, "--version").decode()
        if version != f"daybook {self.version}\n":
            fail(f"{program} is not daybook {self.version}: it says `{version.strip()}`")
        files = {f"{SHARE}/LICENSE": (ROOT / "LICENSE").read_bytes()}
        files |= {f"{SHARE}/{path}": data for folder in DATA for path, data in below(ROOT / folder, ROOT)}
        for kit, parts in (("python", ("README.md", "daybook")), ("typescript", ("README.md", "package.json", "src"))):
            for part in parts:
                files |= {f"{SHARE}/{path}": data for path, data in below(ROOT / "sdk" / kit / part, ROOT)}
        files |= {f"{SHARE}/sdk/rust/{path}": data for path, data in rust_kit()}
        files["share/man/man1/daybook.1"] = output(program, "man")
        for shell, path in (
            ("bash", "bash-completion/completions/daybook"),
            ("zsh", "zsh/site-functions/_daybook"),
            ("fish", "fish/vendor_completions.d/daybook.fish"),
        ):
            files[f"share/{path}"] = output(program, "completions", shell)
        return files

    def write(self, name: str, data: bytes):
        path = self.out / name
        path.write_bytes(data)
        print(f"{path} ({len(data)} bytes)")

    def tarred(self, files: dict[str, tuple[bytes, bool]]) -> bytes:
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path, (data, runs) in sorted(files.items()):
                entry = tarfile.TarInfo(path)
                entry.size, entry.mtime, entry.mode = len(data), self.epoch, 0o755 if runs else 0o644
                entry.uname = entry.gname = "root"
                archive.addfile(entry, io.BytesIO(data))
        return self.gzipped(tar.getvalue())

    def gzipped(self, data: bytes) -> bytes:
        return gzip.compress(data, self.level, mtime=0)

    def wheel(self, program: Program, files: dict[str, tuple[bytes, bool]]):
        """The program as uv and ruff have theirs, and the kit as a module."""
        project = tomllib.loads((ROOT / "sdk/python/pyproject.toml").read_text())["project"]
        own, info = f"daybook-{self.version}.data", f"daybook-{self.version}.dist-info"
        inside = {path: (data, False) for path, data in below(ROOT / "sdk/python/daybook", ROOT / "sdk/python")}
        for path, (data, runs) in files.items():
            place = "scripts/" + path.removeprefix("bin/") if runs else "data/" + path
            inside[f"{own}/{place}"] = (data, runs)
        tags = program.platforms()
        wheel = f"Wheel-Version: 1.0\nGenerator: daybook-dist\nRoot-Is-Purelib: false\n"
        wheel += "".join(f"Tag: py3-none-{tag}\n" for tag in tags)
        metadata = (
            f"Metadata-Version: 2.4\nName: daybook\nVersion: {self.version}\nSummary: {project['description']}\n"
            f"License-Expression: {project['license']['text']}\nLicense-File: LICENSE\n"
            f"Requires-Python: {project['requires-python']}\nDescription-Content-Type: text/markdown\n\n"
        ).encode() + (ROOT / "sdk/python/README.md").read_bytes()
        inside[f"{info}/METADATA"] = (metadata, False)
        inside[f"{info}/WHEEL"] = (wheel.encode(), False)
        inside[f"{info}/licenses/LICENSE"] = files[f"{SHARE}/LICENSE"]
        record = ""
        for path, (data, _) in sorted(inside.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
        record += f"{info}/RECORD,,\n"
        # The metadata comes last, as PEP 427 asks.
        entries = sorted(inside.items(), key=lambda entry: (entry[0].startswith(info), entry[0]))
        entries.append((f"{info}/RECORD", (record.encode(), False)))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for path, (data, runs) in entries:
                entry = zipfile.ZipInfo(path, time.gmtime(self.epoch)[:6])
                entry.create_system, entry.compress_type = 3, zipfile.ZIP_DEFLATED
                entry.external_attr = (0o100755 if runs else 0o100644) << 16
                archive.writestr(entry, data, compresslevel=self.level)
        self.write(f"daybook-{self.version}-py3-none-{'.'.join(tags)}.whl", packed.getvalue())

    def npm(self, program: Program, files: dict[str, tuple[bytes, bool]]):
        """The kit and the program in one package, so that npm looks no other name up."""
        kit = ROOT / "sdk/typescript"
        package = json.loads((kit / "package.json").read_text())
        del package["files"], package["scripts"]
        package |= {"version": self.version, "bin": {"daybook": "bin/daybook"}}
        package |= {"os": ["linux"], "cpu": [program.node], "libc": ["glibc"]}
        inside = {path: (data, False) for path, data in below(kit / "src", kit)}
        inside |= {"README.md": ((kit / "README.md").read_bytes(), False), "LICENSE": files[f"{SHARE}/LICENSE"]}
        inside |= {"package.json": (json.dumps(package, indent=2).encode() + b"\n", False), **files}
        packed = self.tarred({f"package/{path}": file for path, file in inside.items()})
        self.write(f"daybook-{self.version}-linux-{program.node}.tgz", packed)

    def archive(self, program: Program, files: dict[str, tuple[bytes, bool]]):
        name = f"daybook-{self.version}-{program.architecture}-linux"
        inside = {page: ((ROOT / page).read_bytes(), False) for page in ("README.md", "CHANGELOG.md", "LICENSE")}
        inside |= files
        self.write(f"{name}.tar.gz", self.tarred({f"{name}/{path}": file for path, file in inside.items()}))

    def deb(self, program: Program, files: dict[str, tuple[bytes, bool]]):
        inside = {}
        for path, (data, runs) in files.items():
            if path.startswith("share/man/"):
                path, data = path + ".gz", gzip.compress(data, 9, mtime=0)
            inside["usr/" + path.replace("zsh/site-functions", "zsh/vendor-completions")] = (data, runs)
        changes = gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), 9, mtime=0)
        inside["usr/share/doc/daybook/changelog.gz"] = (changes, False)
        inside["usr/share/doc/daybook/copyright"] = (COPYRIGHT.encode(), False)
        libc = "libc6 (>= {}.{})".format(*program.glibc)
        depends = [libc, "libgcc-s1 | libgcc1"] if "libgcc_s.so.1" in program.libraries else [libc]
        size = sum(len(data) for data, _ in inside.values()) // 1024
        control = CONTROL.format(
            version=self.version, architecture=program.debian, size=size, depends=", ".join(depends)
        )
        inside["DEBIAN/control"] = (control.encode(), False)
        sums = "".join(
            f"{hashlib.md5(data, usedforsecurity=False).hexdigest()}  {path}\n"
            for path, (data, _) in sorted(inside.items())
            if path.startswith("usr/")
        )
        inside["DEBIAN/md5sums"] = (sums.encode(), False)
        with tempfile.TemporaryDirectory() as folder:
            laid = pathlib.Path(folder) / "deb"
            lay(laid, inside)
            packed = pathlib.Path(folder) / "packed"
            method = ["-Znone"] if self.quick else ["-Zxz", "-z6"]
            # One thread: how many there are must not show.
            command = ["dpkg-deb", "--root-owner-group", "--threads-max=1", *method, "--build", laid, packed]
            output(*command, env=os.environ | {"SOURCE_DATE_EPOCH": str(self.epoch)})
            self.write(f"daybook_{self.version}_{program.debian}.deb", packed.read_bytes())


CONTROL = """\
Package: daybook
Version: {version}
Architecture: {architecture}
Maintainer: Daybook <maintainer@daybook.invalid>
Installed-Size: {size}
Depends: {depends}
Recommends: ca-certificates
Suggests: python3 (>= 3.10), nodejs (>= 20)
Section: utils
Priority: optional
Description: workflow orchestrator for AI agents with an event journal
 Runs agents durably: every session is a journal of immutable, verifiable
 records, and a session that was killed goes on where it was. The package has
 the program, the kits for agents in Python, TypeScript and Rust, and sample
 data for the agents that ship.
"""

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: daybook

Files: *
Copyright: the authors of Daybook
License: Apache-2.0
 The text is in /usr/share/daybook/LICENSE, and on Debian in
 /usr/share/common-licenses/Apache-2.0.
"""


def below(path: pathlib.Path, base: pathlib.Path):
    """The files of a folder, or the file, with their paths from `base`. What tools leave behind is not among them."""
    if path.is_file():
        yield path.relative_to(base).as_posix(), path.read_bytes()
        return
    for inside in sorted(path.iterdir()):
        if inside.name not in ("__pycache__", "node_modules") and not inside.name.startswith("."):
            yield from below(inside, base)


def lay(folder: pathlib.Path, files: dict[str, tuple[bytes, bool]]):
    os.umask(0o022)
    for path, (data, runs) in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o755 if runs else 0o644)


def rust_kit():
    """The crate as cargo would publish it: its manifest does not need the workspace."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = "package --package daybook-kit --exclude-lockfile --no-verify --allow-dirty --offline --target-dir"
        output(os.environ.get("CARGO", "cargo"), *arguments.split(), folder, cwd=ROOT)
        [crate] = pathlib.Path(folder).glob("package/*.crate")
        with tarfile.open(crate) as archive:
            for member in archive.getmembers():
                path = member.name.partition("/")[2]
                if path not in (".cargo_vcs_info.json", "Cargo.toml.orig"):
                    yield path, archive.extractfile(member).read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--program", action="append", required=True, metavar="ARCHITECTURE=PATH")
    parser.add_argument("--only", default="wheel,npm,deb,archive")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    programs = {}
    for program in options.program:
        architecture, _, path = program.partition("=")
        if architecture not in NAMES:
            fail(f"unknown architecture `{architecture}`: use {' or '.join(NAMES)}")
        programs[architecture] = Program(architecture, pathlib.Path(path))
    if HERE not in programs:
        fail(f"no program for {HERE}: this machine has to run one for its manual page and completions")
    options.folder.mkdir(parents=True, exist_ok=True)
    pack = Pack(options.folder, options.quick)
    shared = {path: (data, False) for path, data in pack.shared(programs[HERE].path).items()}
    for program in programs.values():
        files = {"bin/daybook": (pack.program(program), True), **shared}
        for kind in options.only.split(","):
            getattr(pack, kind)(program, files)


if __name__ == "__main__":
    main()
