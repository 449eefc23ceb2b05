#!/usr/bin/env python3
"""Finds what is newer than the package's platforms in the libraries that are not stand-ins but Swift's own.

The compiler looks at `@available(macOS ...)` only when it builds for macOS. So: the symbol graphs of the toolchain's
modules say since when each symbol is there, the index that a build leaves says which symbols each file uses.

    availability.py INDEX SYMBOLS FILE...
"""

import json
import os
import re
import sys

OLDEST = {"macOS": (13, 0), "iOS": (16, 0), "tvOS": (16, 0), "watchOS": (9, 0), "visionOS": (1, 0)}

# The index also names what a declaration stands in for: requirements that are newer than their protocol.
OVERRIDDEN = {
    # Ours are called where the system is new enough, and `next()` where it is not.
    "AsyncIteratorProtocol.next(isolation:)",
    # Every integer had its own before it became a requirement.
    "FixedWidthInteger.&*(_:_:)",
}


def newer_symbols(folder):
    """Since when the symbols are there that are too new, by the name that the index has."""
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
                units += file.read()
    known = {os.path.basename(file) for file in files}
    unread = set(known)
    faults = set()
    for folder, _, names in os.walk(os.path.join(index, "records")):
        for name in names:
            source = name.rsplit("-", 1)[0]
            # What an earlier build has left is in no unit, or of no file.
            if source not in known or name.encode() not in units:
                continue
            unread.discard(source)
            with open(os.path.join(folder, name), "rb") as file:
                record = file.read()
            # Names stand in a row without anything between them, so what follows may look like a part.
            for match in re.finditer(rb"s:[A-Za-z0-9_$]+", record):
                text = match.group(0)
                for end in range(len(text), 3, -1):
                    if text[:end] in newer:
                        title, since = newer[text[:end]]
                        if title not in OVERRIDDEN:
                            faults.add(f"{source}: {title} is there since {since}")
                        break
    if unread:
        sys.exit(f"availability.py: the index has nothing of {', '.join(sorted(unread))}")
    if faults:
        sys.exit("\n".join(sorted(faults)))


main()
