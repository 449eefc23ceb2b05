# Sees the conditions of a Swift file as a compiler for an Apple platform does.
#
# Writes the file to `plain` with every condition that is true on Linux alone made false; prints where the branches are
# that Apple platforms take; and appends to `planted` the conditions alone, with an error in each of those branches.
# What modules decide (`canImport(Network)` and its like) is left to the compiler: that is what is checked.

function evaluate(condition) {
    # What stands in a branch for Linux alone is not Apple's business.
    if (!isActive[depth - 1]) return 0
    # Linux and something else is never an Apple platform.
    if ($2 == "os(Linux)" && $3 == "&&") {
        sub(/os\(Linux\).*/, "false", line)
        return 0
    }
    # One condition at a time: what is joined by `&&` is not taken apart.
    if (NF > 2) condition = condition " and more"
    # What users build while they develop.
    if (condition == "DEBUG") {
        sub("DEBUG", "true", line)
        return 1
    }
    if (condition ~ /^canImport\((Combine|Darwin|Network)\)$/) return 1
    if (condition ~ /^(os\(Linux\)|canImport\((FoundationEssentials|Glibc|Musl)\)|WAYBILL_THREAD_SANITIZER)$/) {
        if (condition != "WAYBILL_THREAD_SANITIZER") sub(/(os|canImport)\(.*\)/, "false", line)
        return 0
    }
    printf "%s:%d: %s is a condition that nobody knows\n", name, FNR, condition > "/dev/stderr"
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
