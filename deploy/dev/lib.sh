# Sourced by the scripts beside it: how they start processes that outlive them, find those again,
# and end them for certain.
#
# The rule it keeps: every process is begun by `spawn`, with a mark in its environment that names the
# state folder and the process. The mark, not the pid file, decides whose a process is. So a reused pid
# is never mistaken for ours, and a process whose pid file is lost is still found and ended.
#
# The locks are flock(2) locks on file descriptors that no long-lived child inherits: they end with the
# script that took them, also when it is killed. A spawned child lets go of the lock only after its
# pid file is written, so whoever gets the lock next sees every process that was begun before.
# shellcheck shell=bash

DEPLOY_DEV=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
ROOT=$(cd "$DEPLOY_DEV/../.." && pwd -P)
STATE=$(realpath -m "${TIDEMARK_DEV:-$ROOT/.tidemark}")
SCRIPT=$(basename "$0")

# shellcheck disable=SC2034  # for the scripts that source this
{
# How long a process may take to end after SIGTERM, before SIGKILL.
STOP_SECONDS=${TIDEMARK_STOP_SECONDS:-30}
# How long servers and processes may take to become ready. A busy machine needs 20 of them.
READY_SECONDS=${TIDEMARK_READY_SECONDS:-120}
}

say() { printf '%s\n' "$*" >&2; }
die() { say "$SCRIPT: $*"; exit 1; }
refuse() { say "$SCRIPT: $*"; exit 2; }

now_ms() { date +%s%3N; }
seconds_since() { # MILLISECONDS, as "3.1 s"
    local elapsed=$(($(now_ms) - $1))
    printf '%d.%d s' $((elapsed / 1000)) $((elapsed % 1000 / 100))
}

# ---------------------------------------------------------------------------------------------------
# The state folder and its locks

open_state() {
    # Paths go into Java options, YAML and properties files, where blanks and quotes would each need
    # another escape.
    [[ $STATE =~ ^[A-Za-z0-9/._@+-]+$ ]] || die "the state folder is $STATE: set TIDEMARK_DEV to a path without blanks and special characters"
    mkdir -p "$STATE"
    [[ -O $STATE || $EUID -eq 0 ]] || die "$STATE belongs to $(stat -c %U "$STATE"): run this as that user, or set TIDEMARK_DEV"
}

# Takes the lock NAME for as long as this script lives, on file descriptor 9.
#
#   wait     waits for whoever holds it
#   cancel   asks a holder that is starting something to give up first, which makes it clean up
#   refuse   fails at once when somebody holds it
take_lock() { # NAME wait|cancel|refuse PURPOSE
    local file=$STATE/$1.lock mode=$2 purpose=$3 holder holder_purpose told='' attempts=0
    while ((attempts++ < 6000)); do
        exec 9>>"$file"
        if flock -n 9; then
            # A lock file may have been wiped away between opening and locking it: then start over.
            [[ $(stat -Lc %i /proc/$$/fd/9) = "$(stat -c %i "$file" 2>/dev/null)" ]] || continue
            printf '%s %s\n' $$ "$purpose" >"$file"
            return
        fi
        [[ $mode != refuse ]] || return 1
        read -r holder holder_purpose <"$file" || true
        # The file may still name an earlier holder, whose pid may be somebody else's by now.
        if [[ $holder != "$told" ]] && grep -qszF "/$SCRIPT" "/proc/$holder/cmdline"; then
            told=$holder
            say "waiting for $SCRIPT $holder_purpose (pid $holder) to end"
            [[ $mode != cancel || $holder_purpose != start ]] || kill -TERM "$holder" 2>/dev/null || true
        fi
        sleep 0.1
    done
    die "$file has been locked for ten minutes by pid ${holder:-unknown}: is it stuck?"
}

# KEY=VALUE lines for whoever wants to reach what runs here.
env_set() { # KEY=VALUE…
    local pair
    env_unset "${@%%=*}"
    { cat "$STATE/env" 2>/dev/null || true; for pair; do printf '%s\n' "$pair"; done; } >"$STATE/env.new"
    mv "$STATE/env.new" "$STATE/env"
}
env_unset() { # KEY…
    local key
    [[ -f $STATE/env ]] || return 0
    cp "$STATE/env" "$STATE/env.new"
    for key; do sed -i "/^$key=/d" "$STATE/env.new"; done
    if [[ -s $STATE/env.new ]]; then
        mv "$STATE/env.new" "$STATE/env"
    else
        rm -f "$STATE/env.new" "$STATE/env"
    fi
}
env_get() { # KEY
    sed -n "s/^$1=//p" "$STATE/env" 2>/dev/null || true
}

# ---------------------------------------------------------------------------------------------------
# Processes

MARK=TIDEMARK_SPAWNED_BY
# What this run of the script began: `end_begun` ends it again when the script fails or is interrupted.
BEGUN=()

# Starts CMD in a session of its own, so that no terminal's Ctrl-C reaches it, appending to LOG.
# Its pid stands in STATE/NAME.pid when this returns, and in SPAWNED.
spawn() { # NAME LOG CMD…
    begin "$@"
    disown "$SPAWNED" # this shell has nothing to say about how it ends
}

# Runs CMD to its end, begun as `spawn` does it, so that a later run ends it when this script is killed.
run_step() { # NAME LOG CMD…
    local code=0
    begin "$@"
    wait "$SPAWNED" || code=$?
    rm -f "$STATE/$1.pid"
    return "$code"
}

begin() { # NAME LOG CMD…
    local name=$1 log=$2 attempts=0
    shift 2
    rm -f "$STATE/$name.pid"
    BEGUN+=("$name")
    # shellcheck disable=SC2016  # expanded by the inner shell
    env "$MARK=$STATE $name" setsid bash -c '
        echo $$ >"$0.new" && mv "$0.new" "$0" && exec 7>&- 8>&- 9>&- && exec "$@"
    ' "$STATE/$name.pid" "$@" </dev/null >>"$log" 2>&1 &
    SPAWNED=$!
    until [[ -s $STATE/$name.pid ]]; do
        ((attempts++ < 200)) || die "$name did not start: see $log"
        sleep 0.02
    done
}

is_marked() { # PID NAME
    grep -qszxF "$MARK=$STATE $2" "/proc/$1/environ"
}

# Prints the pid of NAME while it runs, else fails.
pid_of() { # NAME
    local pid
    pid=$(cat "$STATE/$1.pid" 2>/dev/null) || return 1
    [[ $pid =~ ^[0-9]+$ && -d /proc/$pid ]] || return 1
    # Within an exec(2) a process shows no environment for an instant: look twice.
    is_marked "$pid" "$1" || { sleep 0.05 && is_marked "$pid" "$1"; } || return 1
    echo "$pid"
}

# Prints the pids of all processes that carry one of the marks, whether or not a pid file knows them.
pids_marked() { # NAME…
    local name patterns=()
    for name; do patterns+=(-e "$MARK=$STATE $name"); done
    grep -lszxF "${patterns[@]}" /proc/[0-9]*/environ | cut -d/ -f3 || true
}

signal_marked() { # SIGNAL NAME…
    local signal=$1 pid
    shift
    for pid in $(pids_marked "$@"); do kill "-$signal" "$pid" 2>/dev/null || true; done
}

wait_gone() { # SECONDS NAME…
    local deadline=$(($(now_ms) + $1 * 1000))
    shift
    while [[ -n $(pids_marked "$@") ]]; do
        (($(now_ms) < deadline)) || return 1
        sleep 0.1
    done
}

# Ends all of them together: SIGTERM, then SIGKILL for what is left after SECONDS; 0 kills at once.
end_processes() { # SECONDS NAME…
    local seconds=$1 name
    shift
    if ((seconds > 0)); then
        signal_marked TERM "$@"
        signal_marked CONT "$@" # a frozen process would not see the SIGTERM
        wait_gone "$seconds" "$@" || say "not ended within $seconds s, killing pid $(pids_marked "$@" | paste -sd' ')"
    fi
    signal_marked KILL "$@"
    wait_gone 10 "$@" || die "cannot end pid $(pids_marked "$@" | paste -sd' ')"
    for name; do rm -f "$STATE/$name.pid" "$STATE/$name.pid.new"; done
}

# Runs CMD so that a signal to this script is handled at once (a shell lets a foreground command end
# first). The terminal's signals still reach CMD, as they would in the foreground.
run_interruptibly() { # CMD…
    local code=0
    env --default-signal=INT,QUIT "$@" <&0 7>&- 8>&- 9>&- &
    INTERRUPTIBLE=$!
    wait "$INTERRUPTIBLE" || code=$?
    INTERRUPTIBLE=''
    return "$code"
}
INTERRUPTIBLE=''

# Ends what `run_interruptibly` runs, with the processes it has started: not every program passes a SIGTERM on.
end_interruptible() {
    local pids deadline
    [[ -n $INTERRUPTIBLE ]] || return 0
    pids=$(descendants "$INTERRUPTIBLE")
    deadline=$(($(now_ms) + STOP_SECONDS * 1000))
    # shellcheck disable=SC2086  # several pids
    kill -TERM $pids 2>/dev/null || true
    # shellcheck disable=SC2086
    while any_alive $pids && (($(now_ms) < deadline)); do sleep 0.1; done
    # shellcheck disable=SC2086
    ! any_alive $pids || kill -KILL $pids 2>/dev/null || true
    wait "$INTERRUPTIBLE" 2>/dev/null || true
    INTERRUPTIBLE=''
}

# Prints PID and the pids of all that descend from it.
descendants() { # PID
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v root="$1" '
        { pid = $1; sub(/^.*\) /, ""); parent[pid] = $2 }
        function descends(pid, steps) {
            for (steps = 0; pid > 1 && steps < 100; steps++) { if (pid == root) return 1; pid = parent[pid] }
            return 0
        }
        END { for (pid in parent) if (descends(pid)) print pid }' || true
}

any_alive() { # PID…: zombies do not count
    local pid
    for pid; do
        grep -qs '^State:.[^ZX]' "/proc/$pid/status" && return 0
    done
    return 1
}

# From here on, leaving the script by a signal or an error calls FUNCTION, until `disarm`.
clean_up_with() { # FUNCTION
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    # shellcheck disable=SC2064  # the name is meant to be expanded now
    trap "clean_up $1" EXIT
}
clean_up() { # FUNCTION
    local code=$?
    [[ $BASHPID = "$$" ]] || exit "$code" # a child that was hit by a signal before it became another program
    trap '' INT TERM HUP
    trap - EXIT
    "$1" "$code"
    exit "$code"
}
disarm() { trap - EXIT INT TERM HUP; }

log_tail() { # FILE
    [[ -s $1 ]] || return 0
    say "--- the end of $1"
    tail -n "${2:-15}" "$1" >&2
    say "---"
}

# ---------------------------------------------------------------------------------------------------
# Ports

# Sets the variable VAR to a port: what the environment says, else the default, else (TIDEMARK_PORTS=free)
# the one this state folder had last or a free one. Remembered in STATE/FILE.
choose_port() { # VAR DEFAULT FILE
    local var=$1 default=$2 file=$STATE/$3 port=${!1:-}
    if [[ -z $port && ${TIDEMARK_PORTS:-fixed} = free ]]; then
        port=$(sed -n "s/^$var=//p" "$file" 2>/dev/null) || true
        [[ -n $port && -z $(port_inode "$port") ]] || port=$(free_port)
    fi
    port=${port:-$default}
    [[ $port =~ ^[0-9]{1,5}$ && $port -ge 1 && $port -le 65535 ]] || refuse "$var is '$port', not a port"
    printf -v "$var" %s "$port"
    CHOSEN_PORTS+=("$port")
    sed -i "/^$var=/d" "$file" 2>/dev/null || true
    printf '%s=%s\n' "$var" "$port" >>"$file"
}
CHOSEN_PORTS=()

# Reads the ports that what runs here was started with.
load_ports() { # FILE
    local var port
    while IFS='=' read -r var port; do printf -v "$var" %s "$port"; done <"$STATE/$1"
}

# Below the range from which the kernel takes ports for outgoing connections. Two scripts may pick the
# same one in the same instant: then one server fails to bind, and its start says so.
free_port() {
    local port
    while true; do
        port=$((20000 + SRANDOM % 10000))
        [[ " ${CHOSEN_PORTS[*]} " != *" $port "* && -z $(port_inode "$port") ]] && break
    done
    echo "$port"
}

# Prints the inode of the socket that listens on 127.0.0.1:PORT or on all addresses, else nothing.
port_inode() { # PORT
    awk -v port="$(printf ':%04X' "$1")" '
        $4 == "0A" && substr($2, length($2) - 4) == port {
            address = substr($2, 1, length($2) - 5)
            if (address ~ /^0+$/ || address ~ /0100007F$/) { print $10; exit }
        }' /proc/net/tcp /proc/net/tcp6 2>/dev/null || true
}

# Fails when the port in VAR is taken, saying by whom as far as that can be seen.
require_free() { # VAR WHAT
    local inode
    inode=$(port_inode "${!1}")
    [[ -z $inode ]] || die "port ${!1} ($2) is taken by $(socket_owner "$inode"): end that, or set $1 to another port, or set TIDEMARK_PORTS=free"
}
socket_owner() { # INODE
    local fd pid mark
    fd=$(find /proc/[0-9]*/fd -maxdepth 1 -lname "socket:\[$1\]" 2>/dev/null | head -n 1) || true
    [[ -n $fd ]] || { echo "a process of another user"; return; }
    pid=$(cut -d/ -f3 <<<"$fd")
    mark=$(grep -szm1 "^$MARK=" "/proc/$pid/environ" | tr -d '\0') || true
    if [[ -n $mark ]]; then
        mark=${mark#*=}
        echo "${mark##* } of ${mark% *} (pid $pid)"
    else
        echo "$(cat "/proc/$pid/comm") (pid $pid)"
    fi
}
