# All benchmarks of every module, with allocations. BENCH selects, BENCHTIME
# bounds each.
. "$(dirname "$0")/prelude.sh"

prepare
all=$(modules)
check_go $all
for module in $all; do
	has_packages "$module" || continue
	step "benchmarks: module $module" "a few seconds each after compiling"
	(cd "$module" &&
		go test -run '^$' -bench "${BENCH:-.}" -benchmem -benchtime "${BENCHTIME:-1s}" ${TESTFLAGS:-} ./...) ||
		failed="$failed $module"
done
if [ -n "$failed" ]; then die "bench: failed in:$failed"; fi
