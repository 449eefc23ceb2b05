# Evaluates the conditions of a Swift file as a compiler for an Apple platform does.
#
# Writes the file to `plain`, with every condition that is true only on Linux made false. Prints the places of the
# branches
# that Apple platforms take. Appends only the conditions to `planted`, with an error in each of those branches.
# Conditions
# on modules (`canImport(Network)` and the like) are left to the compiler, since they are what is checked.

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
    if (condition ~ /^(os\(Linux\)|canImport\((FoundationEssentials|Glibc|Musl)\)|WAYBILL_THREAD_SANITIZER)$/) {
        if (condition != "WAYBILL_THREAD_SANITIZER") sub(/(os|canImport)\(.*\)/, "false", line)
        return 0
    }
    printf "%s:%d: %s is an unknown condition\n", name, FNR, condition > "/dev/stderr"
    isUnknown = 1
    return 0
}

function enter(isTaken) {
    isActive[depth] = isTaken && isActive[depth - 1]
    wasTaken[depth] = wasTaken[depth] || isTaken
    mustPlant = isActive[depth]
}

BEGIN { isActive[0] = 1 }

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
    if ($1 ~ /^#(if|elseif|else|endif)$/) print line >> planted
    if (mustPlant) {
        printf "#error(\"taken %s:%d\")\n", name, FNR >> planted
        printf "%s:%d\n", name, FNR
    }
}

END { exit isUnknown }
