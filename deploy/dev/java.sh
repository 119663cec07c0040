# shellcheck shell=bash
# What the scripts that start servers as Java processes share: Java 17, the servers' jars, and how it is told that a
# server is ready. Needs lib.sh.

CACHE=$(realpath -m "${TIDEMARK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tidemark}")

# ---------------------------------------------------------------------------------------------------
# What a machine must have: Java 17, and the jars, for which once Maven

# JAVA: a Java 17 (Cassandra 5 runs on no newer one); JARS[SERVER]: a folder with its jars.
need_java_and_jars() { # SERVER…
    local name to_fetch=() packages=()
    [[ $CACHE =~ ^[A-Za-z0-9/._@+-]+$ ]] || die "the cache is $CACHE: set TIDEMARK_CACHE to a path without blanks and special characters"
    for name; do
        # Named after what is asked for, so that a changed version is fetched beside the old one.
        JARS[$name]=$CACHE/$name-$(sha256sum <"$DEPLOY_DEV/$name.pom.xml" | cut -c1-12)
        [[ -d ${JARS[$name]} ]] || to_fetch+=("$name")
    done

    find_java || packages+=(openjdk-17-jre-headless)
    [[ ${#to_fetch[@]} -eq 0 ]] || command -v mvn >/dev/null || packages+=(maven)
    if [[ ${#packages[@]} -gt 0 ]]; then
        install_packages "${packages[@]}"
        find_java || die "no Java 17 was found after installing it: set TIDEMARK_JAVA to a java of version 17"
    fi
    JAVA_BUILD=$("$JAVA" -version 2>&1)

    for name in ${to_fetch[@]+"${to_fetch[@]}"}; do fetch_jars "$name"; done
}
declare -A JARS

find_java() {
    local candidate
    if [[ -n ${TIDEMARK_JAVA:-} ]]; then
        command -v "$TIDEMARK_JAVA" >/dev/null || die "TIDEMARK_JAVA is $TIDEMARK_JAVA, which cannot be run"
        JAVA=$TIDEMARK_JAVA
        return
    fi
    for candidate in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} "$(command -v java || true)" /usr/lib/jvm/*17*/bin/java; do
        [[ -x $candidate ]] || continue
        [[ $("$candidate" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p') = 17 ]] || continue
        JAVA=$candidate
        return
    done
    return 1
}

# Fetches into JARS[SERVER] in one step, with checksums that must match.
fetch_jars() { # SERVER
    local name=$1 folder=${JARS[$1]} fetched began
    mkdir -p "$CACHE"
    exec 8>>"$CACHE/lock"
    flock -w 900 8 || die "$CACHE/lock has been locked for fifteen minutes: is another fetch stuck?"
    if [[ ! -d $folder ]]; then
        say "fetching the jars of $name with Maven, once"
        began=$(now_ms)
        rm -rf "$CACHE"/.fetch-*
        fetched=$(mktemp -d "$CACHE/.fetch-XXXXXX")
        run_step maven "$STATE/maven.log" env "JAVA_HOME=$(dirname "$(dirname "$(realpath "$(command -v "$JAVA")")")")" \
            timeout 900 mvn -q -B -C -Dstyle.color=never -f "$DEPLOY_DEV/$name.pom.xml" \
            org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$fetched" || {
            log_tail "$STATE/maven.log"
            rm -rf "$fetched"
            die "cannot fetch the jars of $name: this needs Maven's central repository once, later starts do not"
        }
        rm -f "$STATE/maven.log"
        chmod 755 "$fetched"
        mv "$fetched" "$folder"
        say "fetched $(find "$folder" -name '*.jar' | wc -l) jars after $(seconds_since "$began")"
    fi
    exec 8>&-
}

install_packages() { # PACKAGE…
    if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
        die "Java 17 or Maven is missing. On Debian or Ubuntu install them by

    sudo apt-get install --no-install-recommends $*

Elsewhere by your own means; TIDEMARK_JAVA names the java of version 17 where another one comes first in PATH."
    fi
    say "installing $*"
    {
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -q && apt-get install -qy --no-install-recommends "$@"
    } </dev/null >"$STATE/apt.log" 2>&1 8>&- 9>&- || {
        log_tail "$STATE/apt.log"
        die "cannot install $*"
    }
    rm -f "$STATE/apt.log"
}


# ---------------------------------------------------------------------------------------------------
# Whether a server is ready

tcp_open() { # HOST PORT
    # shellcheck disable=SC2016
    timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null
}

# Kafka is ready when it knows a broker (Metadata v1) and has a group coordinator (FindCoordinator v0):
# asking for one makes a fresh broker create its offsets topic, which the first consumer would wait for.
kafka_ready() { # HOST PORT [BROKERS]
    local answer
    answer=$(ask "$1" "$2" 12 '\0\0\0\x0e\0\x03\0\x01\0\0\0\x01\xff\xff\0\0\0\0') || return 1
    [[ ${#answer} -eq 24 ]] && ((16#${answer:16} >= ${3:-1})) || return 1
    answer=$(ask "$1" "$2" 10 '\0\0\0\x0d\0\x0a\0\0\0\0\0\x02\xff\xff\0\x01g') || return 1
    [[ ${answer:16} = 0000 ]]
}

# CQL is ready when a row of system.local comes back: STARTUP, then a QUERY answered by a RESULT frame.
cql_ready() { # HOST PORT
    local answer
    answer=$(ask "$1" "$2" 5 '\x04\0\0\x01\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0' \
        '\x04\0\0\x02\x07\0\0\0\x2f\0\0\0\x28SELECT release_version FROM system.local\0\x01\0') || return 1
    [[ $answer = 8400000208 ]]
}

# Sends each of the strings, reading a 9-byte answer to all but the last; prints so many bytes of that
# one's answer in hex.
ask() { # HOST PORT BYTES STRING…
    # shellcheck disable=SC2016
    timeout 3 bash -c '
        exec 3<>"/dev/tcp/$0/$1" || exit
        bytes=$2
        shift 2
        while (($# > 1)); do
            printf "$1" >&3
            head -c 9 <&3 >/dev/null
            shift
        done
        printf "$1" >&3
        head -c "$bytes" <&3 | od -An -v -tx1 | tr -d " \n"
    ' "$@" 2>/dev/null
}
