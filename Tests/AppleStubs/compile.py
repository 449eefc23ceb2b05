#!/usr/bin/env python3
"""Compiles all targets of packages without producing code or linking: as far as the compiler reports errors.

The build system would produce code for each target, plan anew for each of them, and link the executables. Only targets
are compiled whose files, or those of their dependencies, have changed. Of the tests those files are checked that may
differ from what Linux compiles: those in OUT/special, and those that name a type in OUT/hidden. The others are the same
text beside the same declarations.

    compile.py OUT PACKAGE...

Each package sees the modules of those before it. OUT gets `modules`, `index`, `compiled` (the files that were checked),
`arguments` (the call of the compiler for a file that imports these modules) and `programs` (the paths of the executable
targets).
"""

import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def lines(path):
    if not os.path.exists(path):
        return ["none"]
    with open(path, encoding="utf-8") as file:
        return sorted(set(file.read().split()))


class Target:
    """A target of a package, as `swift package dump-package` describes it."""

    def __init__(self, root, entry):
        self.name = entry["name"]
        self.root = root
        self.is_program = entry["type"] == "executable"
        default = ("Tests/" if entry["type"] == "test" else "Sources/") + self.name
        self.path = os.path.join(root, entry.get("path") or default)
        self.dependencies = [name for name, condition in map(self.dependency, entry["dependencies"])
                             if not self.is_for_linux(condition)]
        files = [os.path.join(folder, name) for folder, _, names in os.walk(self.path, followlinks=True)
                 for name in names]
        self.files = sorted(file for file in files if file.endswith(".swift"))
        self.is_test = entry["type"] == "test"
        self.is_checked_whole = os.path.relpath(self.path, root).split("/")[0] != "Tests" and not self.is_test
        self.headers = sorted(file for file in files if file.endswith(".h"))
        self.flags = []
        for setting in entry["settings"]:
            kind = setting["kind"]
            if "enableUpcomingFeature" in kind:
                self.flags += ["-enable-upcoming-feature", kind["enableUpcomingFeature"]["_0"]]
            elif "unsafeFlags" in kind and not setting.get("condition"):
                self.flags += kind["unsafeFlags"]["_0"]

    def choose(self, special, hidden):
        """Chooses the files whose functions are checked: in tests those that may differ from what Linux compiles."""
        self.checked = self.files
        if self.is_checked_whole:
            return
        self.checked = []
        for file in self.files:
            with open(file, encoding="utf-8") as source:
                if os.path.relpath(file, self.root) in special or hidden.search(source.read()):
                    self.checked.append(file)

    @staticmethod
    def dependency(entry):
        (values,) = entry.values()
        return values[0], values[-1]

    @staticmethod
    def is_for_linux(condition):
        return bool(condition) and condition.get("platformNames") == ["linux"]


def compiler(out):
    """The frontend that `swiftc` calls, with the options that say where it finds everything."""
    empty = os.path.join(out, "empty.swift")
    with open(empty, "w", encoding="utf-8"):
        pass
    words = [word.strip('"') for word in output("swiftc", "-###", "-typecheck", empty).split()]
    found = [words[0], "-frontend", "-disable-objc-interop"]
    for index, word in enumerate(words):
        if word in ("-plugin-path", "-in-process-plugin-server-path", "-target"):
            found += [word, words[index + 1]]
    return found


def main():
    out, *roots = sys.argv[1:]
    targets = {}
    for root in roots:
        package = json.loads(output("swift", "package", "--package-path", root, "dump-package"))
        earlier = list(targets)
        for entry in package["targets"]:
            targets[entry["name"]] = Target(root, entry)
            targets[entry["name"]].dependencies += earlier
    for folder in ("modules", "maps", "index"):
        os.makedirs(os.path.join(out, folder), exist_ok=True)
    common = [*compiler(out), "-swift-version", "6", "-package-name", "package", "-D", "DEBUG", "-enable-testing",
              # The overlay for Testing and Foundation needs the real Foundation.
              "-disable-cross-import-overlays", "-I", os.path.join(out, "modules")]
    for target in targets.values():
        if not target.files:
            map_file = os.path.join(out, "maps", target.name + ".modulemap")
            with open(map_file, "w", encoding="utf-8") as file:
                file.write(f'module {target.name} {{\n    umbrella "{target.path}/include"\n    export *\n}}\n')
            common += ["-Xcc", "-fmodule-map-file=" + map_file]
    with open(os.path.join(out, "arguments"), "w", encoding="utf-8") as file:
        file.write("\n".join(common) + "\n")

    with open(os.path.join(out, "programs"), "w", encoding="utf-8") as file:
        for target in targets.values():
            if target.is_program:
                file.write(os.path.relpath(target.path, target.root) + "\n")

    special = lines(os.path.join(out, "special"))
    hidden = re.compile(r"\b(" + "|".join(lines(os.path.join(out, "hidden"))) + r")\b")
    for target in targets.values():
        target.choose(special, hidden)
    with open(os.path.join(out, "compiled"), "w", encoding="utf-8") as file:
        for target in targets.values():
            for name in target.checked:
                file.write(os.path.relpath(name, target.root) + "\n")

    version = output("swiftc", "--version")
    states = {}

    def state(target):
        """What the compilation of the target depends on."""
        if target.name not in states:
            text = hashlib.sha256(repr((version, common, target.flags)).encode())
            for file in target.files + target.headers:
                text.update(file.encode())
                with open(file, "rb") as source:
                    text.update(source.read())
            for name in target.dependencies:
                if name in targets:
                    text.update(state(targets[name]).encode())
            states[target.name] = text.hexdigest()
        return states[target.name]

    def compile_target(target):
        module = os.path.join(out, "modules", target.name)
        if not target.files:
            return ""
        try:
            with open(module + ".state", encoding="utf-8") as file:
                if file.read() == state(target):
                    return ""
        except OSError:
            pass
        library = [] if any(os.path.basename(file) == "main.swift" for file in target.files) \
            else ["-parse-as-library"]
        warnings = [] if "-suppress-warnings" in target.flags else ["-warnings-as-errors"]
        call = [*common, "-module-name", target.name, *library, *warnings, *target.flags]
        calls = []
        if not target.is_test:
            # The bodies of functions follow.
            calls.append([*call, "-emit-module", *target.files, "-o", module + ".swiftmodule",
                          "-experimental-skip-non-inlinable-function-bodies-without-types"])
        if target.checked and "-suppress-warnings" not in target.flags:
            outputs = [word for file in target.checked
                       for word in ("-o", os.devnull, "-index-unit-output-path", file + ".o")]
            inputs = [word for file in target.files
                      for word in (["-primary-file", file] if file in target.checked else [file])]
            calls.append([*call, "-emit-sib", *inputs, *outputs, "-index-store-path", os.path.join(out, "index")])
        for words in calls:
            done = subprocess.run(words, check=False, capture_output=True, text=True)
            if done.returncode != 0:
                return f"{target.name}: {done.stderr}"
        with open(module + ".state", "w", encoding="utf-8") as file:
            file.write(state(target))
        return ""

    # Every target is begun when those that it needs are done.
    waiting = dict(targets)
    running = {}
    finished = set()
    faults = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while waiting or running:
            for name in [name for name, target in waiting.items()
                         if all(other in finished or other not in targets for other in target.dependencies)]:
                running[pool.submit(compile_target, waiting.pop(name))] = name
            if not running:
                break
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                name = running.pop(future)
                if future.result():
                    faults.append(future.result())
                else:
                    finished.add(name)
    if faults:
        sys.exit("\n".join(faults))


main()
