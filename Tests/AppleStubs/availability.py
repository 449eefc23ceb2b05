#!/usr/bin/env python3
"""Finds uses of declarations in Swift's own libraries that are newer than the package's platforms.

The compiler checks `@available(macOS ...)` only when it builds for macOS. So this script compares two sources: the
symbol graphs of the toolchain's modules state since when each symbol exists, and the index of a build states which
symbols each file uses.

    availability.py INDEX SYMBOLS FILE...
"""

import json
import os
import re
import sys

OLDEST = {"macOS": (13, 0), "iOS": (16, 0), "tvOS": (16, 0), "watchOS": (9, 0), "visionOS": (1, 0)}

# The index also names requirements that a declaration overrides and that are newer than their protocol.
OVERRIDDEN = {
    # The package's own methods are called where the system is new enough, and `next()` elsewhere.
    "AsyncIteratorProtocol.next(isolation:)",
    # Every integer type had this method before it became a requirement.
    "FixedWidthInteger.&*(_:_:)",
    "Int128.&*(_:_:)",
    # An executor that has the old `enqueue` fulfils these by their defaults. `ExecutorJob` is found by its own name.
    "Executor.enqueue(_:)",
    "SerialExecutor.enqueue(_:)",
    "SerialExecutor.checkIsolated()",
    "SerialExecutor.isIsolatingCurrentContext()",
    "SerialExecutor.isSameExclusiveExecutionContext(other:)",
}


def newer_symbols(folder):
    """The symbols that are too new: the name in the index, with the title and the first version."""
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            symbols = json.load(file)["symbols"]
        for symbol in symbols:
            for entry in symbol.get("availability", []):
                introduced = entry.get("introduced")
                oldest = OLDEST.get(entry.get("domain"))
                if introduced is None or oldest is None:
                    continue
                version = (introduced.get("major", 0), introduced.get("minor", 0))
                if version > oldest:
                    title = ".".join(symbol["pathComponents"])
                    since = f"{entry['domain']} {version[0]}.{version[1]}"
                    found[symbol["identifier"]["precise"].encode()] = (title, since)
    return found


def main():
    index, symbols, *files = sys.argv[1:]
    newer = newer_symbols(symbols)
    if len(newer) < 1000:
        sys.exit("availability.py: the symbol graphs say of next to nothing since when it is there")
    units = b""
    for folder, _, names in os.walk(os.path.join(index, "units")):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                unit = file.read()
            # A folder that was copied has units of the other place, too.
            if os.getcwd().encode() in unit:
                units += unit
    known = {os.path.basename(file) for file in files}
    unread = set(known)
    faults = set()
    for folder, _, names in os.walk(os.path.join(index, "records")):
        for name in names:
            source = name.rsplit("-", 1)[0]
            # Skips records of an earlier build, which no unit names, and records without a source file.
            if source not in known or name.encode() not in units:
                continue
            unread.discard(source)
            with open(os.path.join(folder, name), "rb") as file:
                record = file.read()
            # Names follow each other without a separator, so the next bytes may look like a part of the name.
            for match in re.finditer(rb"s:[A-Za-z0-9_$]+", record):
                text = match.group(0)
                for end in range(len(text), 3, -1):
                    if text[:end] in newer:
                        title, since = newer[text[:end]]
                        # A loop names it, and takes `next()` where the system is older. See branches.awk for calls.
                        if title not in OVERRIDDEN and not title.endswith(".Iterator.next(isolation:)"):
                            faults.add(f"{source}: {title} is there since {since}")
                        break
    if unread:
        sys.exit(f"availability.py: the index has nothing of {', '.join(sorted(unread))}")
    if faults:
        sys.exit("\n".join(sorted(faults)))


main()
