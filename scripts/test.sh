# test.sh all: lint, then the tests of every module.
# test.sh core: gofmt, vet and tests of the root module, without the linters and
# without what tests leave out with -short.
# Goes on after a failure; the last line says what failed.
. "$(dirname "$0")/prelude.sh"
. scripts/format.sh

# The directories (and those below) whose tests run under the race detector:
# the places with goroutines. The deciding packages and the simulator have
# none, and the simulator's many seeds would take ten times as long.
# The house rules test fails when a package elsewhere starts a goroutine.
race_dirs="adapters driver examples machine/fsm manager sim/cmd store sim/gallery/hunt"

# Of these (relative to the root module) only what -short leaves in runs under
# it, and all of it without: their long tests run programs that they kill, and
# thousands of machines, in the same code, and take four times as long with it.
short_race_dirs="adapters/kubernetes/controllers"

mode=$1
started=$(date +%s)
race=
root_path=$(sed -n 's/^module[[:space:]]*//p' go.mod)

# probe_race finds out whether the race detector works here by using it.
probe_race() {
	if [ "${RACE:-on}" = off ]; then
		note "RACE=off: tests run without the race detector"
		return
	fi
	scratch=$(mktemp -d)
	printf 'package main\n\nfunc main() {}\n' >"$scratch/main.go"
	if (cd "$scratch" && go run -race main.go) >"$scratch/out" 2>&1; then
		race=yes
	elif ! command -v "$(go env CC | cut -d ' ' -f 1)" >/dev/null 2>&1; then
		note "no C compiler (gcc or clang) found: tests run without the race detector"
	else
		note "the race detector does not work here, tests run without it: $(head -n 1 "$scratch/out")"
	fi
	rm -rf "$scratch"
}

# choose_seed sets RAPID_SEED, which rapid reads: other inputs on every commit,
# the same ones each time for one commit.
choose_seed() {
	if [ -n "${RAPID_SEED:-}" ]; then
		origin="given"
	elif [ -e .git ] && commit=$(git rev-parse -q --verify HEAD); then
		# 48 bits, so that every shell can count so far.
		RAPID_SEED=$(printf '%d' "0x$(printf '%s' "$commit" | cut -c 1-12)")
		origin="derived from the commit"
	else
		RAPID_SEED=1
		origin="fixed, there is no commit"
	fi
	export RAPID_SEED
	replay="RAPID_SEED=$RAPID_SEED"
	note "property tests draw from seed $RAPID_SEED ($origin); make $1 $replay draws the same again"
}

# is_in IMPORT-PATH DIR...: is it in one of these directories, or below?
is_in() {
	package_path=$1
	shift
	for dir in "$@"; do
		case "$package_path" in
		"$root_path/$dir" | "$root_path/$dir"/*) return 0 ;;
		esac
	done
	return 1
}

# test_server MODULE builds the API server that some modules test against, so
# that the wait for it is seen, and is none of a test's time.
test_server() {
	case "$1" in
	adapters/kubernetes)
		step "build the test API server" "5 to 8 min on two cores the first time, then 1 s"
		go -C test/kubelab run ./ensure >/dev/null
		;;
	esac
}

# run_tests MODULE: all tests of each package once, under the race detector where
# it counts. No result of before counts: go test does not see that the seed is another.
run_tests() {
	module=$1
	plain=
	with_race=
	short_race=
	for package in $(cd "$module" && go list -e ./...); do
		if [ -z "$race" ] || ! is_in "$package" $race_dirs; then
			plain="$plain $package"
		elif is_in "$package" $short_race_dirs; then
			plain="$plain $package"
			short_race="$short_race $package"
		else
			with_race="$with_race $package"
		fi
	done
	status=0
	if [ -n "$plain" ]; then
		step "go test: module $module" "1 to 5 min cold, seconds warm"
		(cd "$module" && go test -count=1 -timeout 40m ${TESTFLAGS:-} $plain) || status=1
	fi
	if [ -n "$with_race" ]; then
		step "go test -race: module $module" "1 to 10 min cold, seconds warm"
		(cd "$module" && go test -race -count=1 -timeout 40m ${TESTFLAGS:-} $with_race) || status=1
	fi
	if [ -n "$short_race" ]; then
		step "go test -race -short: module $module" "1 to 5 min cold, seconds warm"
		(cd "$module" && go test -race -short -count=1 -timeout 40m ${TESTFLAGS:-} $short_race) || status=1
	fi
	return $status
}

prepare
case "$mode" in
all)
	all=$(modules)
	check_go . tools adapters/kubernetes/tools $all
	label=test
	choose_seed $label
	check lint sh scripts/lint.sh
	probe_race
	;;
core)
	all=.
	check_go .
	check gofmt format
	label=test-core
	choose_seed $label
	step "go vet: module ." "1 min cold, seconds warm"
	check "go vet" go vet ./...
	TESTFLAGS="-short ${TESTFLAGS:-}"
	;;
*) die "test.sh: all or core, not '$mode'" ;;
esac

count=0
for module in $all; do
	has_packages "$module" || continue
	count=$((count + 1))
	check "test API server" test_server "$module"
	check "tests in $module" run_tests "$module"
done
if [ "$count" = 0 ]; then failed="$failed, no module with packages found"; fi

seconds=$(($(date +%s) - started))
if [ -n "$failed" ]; then
	printf '\nmake %s: FAILED after %s s: %s\n' "$label" "$seconds" "${failed#, }"
	printf 'replay with: make %s %s\n' "$label" "$replay"
	exit 1
fi
printf '\nmake %s: passed, %s module(s) in %s s\n' "$label" "$count" "$seconds"
