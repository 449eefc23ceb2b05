# Evaluates the conditions of Swift files as a compiler for an Apple platform does.
#
# Writes each file below the folder `root`, with every condition that is true only on Linux made false. Prints the places of
# the branches that Apple platforms take. Writes only the conditions to `planted`, with an error in each of those
# branches. Writes names of files: those of which an Apple platform compiles a line to `live`, those with `@main` to
# `mains`, and those that have conditions or import a module of the system to `special`. Writes the types that are
# declared only for Linux to `hidden`. Conditions on modules
# (`canImport(Network)` and the like) are left to the compiler, since they are what is checked.
#
# Refuses what a compiler on Linux takes and one for Apple platforms does not.

function refuse(why) {
    printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"
    isRefused = 1
}

function evaluate(condition) {
    # Branches inside a branch for Linux are not for Apple platforms.
    if (!isActive[depth - 1]) return 0
    # "Linux and another condition" is never true on an Apple platform.
    if ($2 == "os(Linux)" && $3 == "&&") {
        sub(/os\(Linux\).*/, "false", line)
        return 0
    }
    # Handles only single conditions. A condition with `&&` is not taken apart.
    if (NF > 2) condition = condition " and more"
    # DEBUG is true in the builds of developers.
    if (condition == "DEBUG") {
        sub("DEBUG", "true", line)
        return 1
    }
    if (condition ~ /^canImport\((Combine|Darwin|Network)\)$/) return 1
    # There is no stand-in for SwiftUI. The names of the package are compared with its names.
    if (condition == "canImport(SwiftUI)") return 0
    if (condition ~ /^(os\(Linux\)|canImport\((FoundationEssentials|Glibc|Musl)\)|WAYBILL_THREAD_SANITIZER)$/) {
        if (condition != "WAYBILL_THREAD_SANITIZER") sub(/(os|canImport)\(.*\)/, "false", line)
        return 0
    }
    refuse(condition " is an unknown condition")
    return 0
}

function enter(isTaken) {
    isActive[depth] = isTaken && isActive[depth - 1]
    wasTaken[depth] = wasTaken[depth] || isTaken
    mustPlant = isActive[depth]
}

BEGIN { isActive[0] = 1 }

FNR == 1 {
    if (plain) close(plain)
    plain = root "/" FILENAME
    printf "" > plain
    depth = 0
    isLive = 0
    isSpecial = 0
}

{
    line = $0
    mustPlant = 0
    if ($1 == "#if") {
        depth += 1
        wasTaken[depth] = 0
        enter(evaluate($2))
    } else if ($1 == "#elseif") {
        value = evaluate($2)
        enter(value && !wasTaken[depth])
    } else if ($1 == "#else") {
        enter(!wasTaken[depth])
    } else if ($1 == "#endif") {
        depth -= 1
    }
    print line > plain
    isImport = line ~ /^ *((public|package|private|@testable|@_exported) )*import [A-Za-z]+$/
    if (!isSpecial && ($1 == "#if" || isImport && $NF !~ /^(Testing|C?Waybill.*|.*Wire|.*Port|.*Support|WireCore)$/)) {
        print FILENAME > special
        isSpecial = 1
    }
    match(line, /^ */)
    if (!isActive[depth] && RLENGTH == 4 * depth && line !~ /private / \
        && match(line, /(class|struct|enum|actor|protocol|typealias) [A-Z][A-Za-z0-9]*/)) {
        split(substr(line, RSTART, RLENGTH), words, " ")
        print words[2] > hidden
    }
    if (isActive[depth] && $1 !~ /^(#|\/\/|$)/) {
        if (!isLive) print FILENAME > live
        isLive = 1
        if ($1 == "@main") print FILENAME > mains
        if (line ~ /import (Glibc|Musl|CWaybillLinux|CWaybillTLS)$/)
            refuse("Apple platforms have no module " $NF)
        if (FILENAME !~ /^Sources/ && line ~ /\.next\(isolation:/)
            refuse("next(isolation:) is there since macOS 15")
        # Dispatch is the real one of Linux.
        if (line ~ /static let .*DispatchSpecificKey</)
            refuse("Apple\047s DispatchSpecificKey is not Sendable")
    }
    if ($1 ~ /^#(if|elseif|else|endif)$/) print line > planted
    if (mustPlant) {
        printf "#error(\"taken %s:%d\")\n", FILENAME, FNR > planted
        printf "%s:%d\n", FILENAME, FNR
    }
}

END { exit isRefused }
