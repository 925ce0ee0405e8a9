# soak-quickstart.sh: RUNS times (40), kills the quickstart with SIGKILL at a random
# moment of its run and goes on with the same command after 0 to 59 s. Each run must
# settle, with as many processes as if nobody had been killed. PARALLEL of them (8)
# go on at a time: they mostly wait. SEED draws the moments; each run says its own.
# A PROGRAM that was built before may be given; otherwise this one is built.
. "$(dirname "$0")/prelude.sh"

prepare
runs=${RUNS:-40}
parallel=${PARALLEL:-8}
seed=${SEED:-$(date +%s)}
scratch=$(mktemp -d /tmp/mwXXXXXX)
trap 'rm -rf "$scratch" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
if [ -z "${PROGRAM:-}" ]; then
	check_go . examples
	step "build the quickstart" "1 min cold"
	PROGRAM=$scratch/quickstart
	go -C examples build -o "$PROGRAM" ./quickstart
fi

# run draws from its seed, kills, pauses, goes on, and says in one line how it went.
run() {
	dir=$scratch/$1
	set -- "$1" $(awk -v seed="$1" 'BEGIN { srand(seed); printf "%.2f %d", 0.2 + rand() * 28, int(rand() * 60) }')
	"$PROGRAM" -state "$dir" >"$dir.first" 2>&1 &
	sleep "$2"
	if ! kill -9 $!; then
		echo "ok: seed $1: it had settled before it was to be killed after $2 s"
		return
	fi
	wait $! || true # it was killed
	sleep "$3"
	if "$PROGRAM" -state "$dir" >"$dir.second" 2>&1 &&
		tail -n 1 "$dir.second" | grep -q '^settled: 19 created, 19 deleted, 0 orphans, 0 duplicates$'; then
		echo "ok: seed $1: killed after $2 s, continued after $3 s"
		return
	fi
	cp "$dir.first" "/tmp/quickstart-$1.first" && cp "$dir.second" "/tmp/quickstart-$1.second"
	echo "FAILED: seed $1: killed after $2 s, continued after $3 s: see /tmp/quickstart-$1.*: $(tail -n 1 "$dir.second")"
}

step "$runs runs of the quickstart, $parallel at a time, from seed $seed" "$((runs * 2 / parallel)) min"
n=0
while [ "$n" -lt "$parallel" ]; do
	(
		trap - EXIT
		i=$n
		while [ "$i" -lt "$runs" ]; do
			run $((seed + i))
			i=$((i + parallel))
		done
	) >"$scratch/out.$n" 2>/dev/null &
	n=$((n + 1))
done
wait
cat "$scratch"/out.*
good=$(cat "$scratch"/out.* | grep -c '^ok: ' || true)
echo "$good of $runs settled (seed $seed)"
[ "$good" -eq "$runs" ]
