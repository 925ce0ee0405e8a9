# test.sh all: lint, then the tests of every module; the long ones shortened (-short).
# test.sh prove: what that leaves out, and a soak of two minutes.
# test.sh core: gofmt, vet and the short tests of the root module, no linters.
# Goes on after a failure. The last lines say what took longest, and what failed.
. "$(dirname "$0")/prelude.sh"
. scripts/format.sh

# How long the soak of make prove plays.
soak=2m

mode=$1
started=$(date +%s)
race=
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# probe_race finds out whether the race detector works here by using it.
probe_race() {
	if [ "${RACE:-on}" = off ]; then
		note "RACE=off: tests run without the race detector"
		return
	fi
	mkdir "$scratch/race"
	printf 'package main\n\nfunc main() {}\n' >"$scratch/race/main.go"
	if (cd "$scratch/race" && go run -race main.go) >"$scratch/race/out" 2>&1; then
		race=yes
	elif ! command -v "$(go env CC | cut -d ' ' -f 1)" >/dev/null 2>&1; then
		note "no C compiler (gcc or clang) found: tests run without the race detector"
	else
		note "the race detector does not work here, tests run without it: $(head -n 1 "$scratch/race/out")"
	fi
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

# starts_goroutines PACKAGE-DIRECTORY
starts_goroutines() { grep -qsE '^[[:space:]]*go (func|[[:alnum:]_.]+)\(|\.(Go|RunParallel|AfterFunc)\(' "$1"/*.go; }

# is_raced PACKAGE-DIRECTORY MODULE-DIRECTORY: does the race detector have something to find there?
# It does where a package, or one above it in its module, starts goroutines. The deciding packages and
# the simulator start none, and would take five to ten times as long.
is_raced() {
	raced_dir=$1
	until starts_goroutines "$raced_dir"; do
		[ "$raced_dir" != "$2" ] && [ "$raced_dir" != / ] || return 1
		raced_dir=$(dirname "$raced_dir")
	done
}

# long_unraced PACKAGE-DIRECTORY: a package whose long tests would take several times as long under
# the race detector, in the same code as the short ones, says so in one of its test files.
long_unraced() { grep -qs '^//make:long-tests-without-race' "$1"/*_test.go; }

# test_server MODULE builds the API server that some modules test against, so
# that the wait for it is seen, and is none of a test's time.
test_server() {
	case "$1" in
	adapters/kubernetes | cmd/millwright-manager)
		step "build the test API server" "5 to 8 min on two cores the first time, then 1 s"
		go -C test/kubelab run ./ensure >/dev/null
		;;
	esac
}

# say_without_postgres says what is left out where PostgreSQL is not installed.
say_without_postgres() {
	for initdb in /usr/lib/postgresql/*/bin/initdb; do
		if [ -x "$initdb" ]; then return; fi
	done
	if command -v initdb >/dev/null 2>&1; then return; fi
	note "PostgreSQL is not installed (Debian: postgresql): tests of adapters/postgres, and those of examples/ha and test/stores on it, are left out"
}

# timed NAME COMMAND... runs it and notes how long it took.
timed() {
	timed_name=$1
	timed_from=$(date +%s)
	shift
	timed_status=0
	"$@" || timed_status=$?
	printf '%s\t%s\n' "$(($(date +%s) - timed_from))" "$timed_name" >>"$scratch/times"
	return $timed_status
}

# is_long PACKAGE-DIRECTORY: has it tests that -short leaves out?
is_long() { grep -qsE 'testing\.Short\(|testkit\.(EveryCall|Shortened)\(' "$1"/*_test.go; }

# go_test MODULE HOW-LONG FLAGS PACKAGES: each package's tests once, and notes how long
# each took. No result of before counts: go test does not see that the seed is another.
# go vet is a step of its own.
go_test() {
	step "go test$3: module $1" "$2"
	run=$scratch/run$(printf '%s' "$1$3" | tr -c 'a-z' '-')
	{
		(cd "$1" && go test -count=1 -vet=off -timeout 40m $3 ${TESTFLAGS:-} $4) 2>&1
		echo $? >"$run.status"
	} | tee "$run.out"
	awk -v flags="$3" -F '\t' '/^(ok|FAIL) *\t/ && $3 ~ /^[0-9.]+s/ {
		sub(/s.*/, "", $3); printf "%d\t%s%s\n", $3 + 0.5, $2, flags
	}' "$run.out" >>"$scratch/packages"
	return "$(cat "$run.status")"
}

# add_job MODULE HOW-LONG FLAGS PACKAGES: one go_test for run_jobs; none without packages.
jobs=0
add_job() {
	[ -n "$4" ] || return 0
	jobs=$((jobs + 1))
	printf '%s\n' "$@" >"$scratch/job$jobs"
}

# work ORDER does the jobs that nobody has taken yet: first to last, or last to first.
work() {
	tried=0
	while [ "$tried" -lt "$jobs" ]; do
		tried=$((tried + 1))
		case "$1" in
		first) job=$tried ;;
		last) job=$((jobs + 1 - tried)) ;;
		esac
		mkdir "$scratch/taken$job" 2>/dev/null || continue
		{
			IFS= read -r module
			IFS= read -r how_long
			IFS= read -r flags
			IFS= read -r packages
		} <"$scratch/job$job"
		timed "go test$flags: module $module" go_test "$module" "$how_long" "$flags" "$packages" ||
			printf ', tests in %s' "$module$flags" >>"$scratch/failed"
	done
}

# run_jobs [COMMAND...] does the command and the jobs of all modules, two at a time. The
# command and those of the root module, which compute, begin at one end; those of the nested
# ones, many of which wait for processes and servers, begin at the other. So the processors
# have work while tests wait.
run_jobs() {
	: >"$scratch/failed"
	work last &
	"$@"
	work first
	wait "$!" || failed="$failed, tests: a worker ended early"
	failed=$failed$(cat "$scratch/failed")
}

# by_size sorts "DIRECTORY PACKAGE" lines by how much test code there is, most first,
# which is about how long they take: no processor waits for a long one at the end.
by_size() {
	while read -r dir package; do
		printf '%s %s %s\n' "$(cat /dev/null "$dir"/*_test.go 2>/dev/null | wc -c)" "$dir" "$package"
	done | sort -rn | cut -d ' ' -f 2-
}

# sort_packages MODULE puts its packages into four lists: with and without the
# race detector, whole and shortened.
sort_packages() {
	plain=
	plain_long=
	raced=
	raced_long=
	raced_whole=
	unraced=
	module_dir=$(cd "$1" && go list -m -f '{{.Dir}}')
	(cd "$1" && go list -e -f '{{.Dir}} {{.ImportPath}}' ./...) | by_size >"$scratch/list"
	while read -r dir package; do
		long=
		if is_long "$dir"; then long=yes; fi
		if [ -z "$race" ] || ! is_raced "$dir" "$module_dir"; then
			if [ -n "$long" ]; then plain_long="$plain_long $package"; else plain="$plain $package"; fi
		elif [ -z "$long" ]; then
			raced="$raced $package"
		elif long_unraced "$dir"; then
			raced_long="$raced_long $package"
			unraced="$unraced $package"
		else
			raced_long="$raced_long $package"
			raced_whole="$raced_whole $package"
		fi
	done <"$scratch/list"
}

# compile MODULE FLAGS: the packages that tests import, so that two go commands at a time do
# not both compile them. What does not compile, the tests tell.
compile() {
	(cd "$1" && go list -e -f '{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}' ./... | xargs go build $2) || :
}

# add_tests MODULE: the tests of make test.
add_tests() {
	sort_packages "$1"
	if [ -n "$plain$plain_long" ]; then timed "compile: module $1" compile "$1" ""; fi
	if [ -n "$raced$raced_long" ]; then timed "compile -race: module $1" compile "$1" -race; fi
	add_job "$1" "1 to 3 min" " -short" "$plain_long"
	add_job "$1" "1 to 3 min" "" "$plain"
	add_job "$1" "1 to 3 min" " -race -short" "$raced_long"
	add_job "$1" "1 to 3 min" " -race" "$raced"
}

# add_short_tests MODULE: the tests of make test-core.
add_short_tests() {
	sort_packages "$1"
	add_job "$1" "1 to 2 min" " -short" "$plain_long $plain"
}

# add_long_tests MODULE: the tests of make prove.
add_long_tests() {
	sort_packages "$1"
	add_job "$1" "4 to 10 min" "" "$unraced$plain_long"
	add_job "$1" "4 to 10 min" " -race" "$raced_whole"
}

# play_storms plays random scenarios in the simulator.
play_storms() {
	step "soak: random storms" "$soak"
	go run ./sim/cmd/soak -for "$soak" -seed "$RAPID_SEED"
}

# longest prints the ten steps and packages that took longest, in seconds.
longest() {
	printf '\nseconds  step\n'
	sort -rn "$scratch/times" | head -n 10 | awk -F '\t' '{ printf "%7d  %s\n", $1, $2 }'
	if [ -s "$scratch/packages" ]; then
		printf '\nseconds  package (several run at a time)\n'
		sort -rn "$scratch/packages" | awk -F '\t' '{ all += $1; line[NR] = $0 }
			END { for (i = 1; i <= NR && i <= 15; i++) { split(line[i], f, "\t"); printf "%7d  %2d%%  %s\n", f[1], 100 * f[1] / all, f[2] } }'
	fi
}

prepare
collect_less
case "$mode" in
all)
	all=$(modules)
	check_go . tools adapters/kubernetes/tools $all
	label=test
	choose_seed $label
	add=add_tests
	probe_race
	say_without_postgres
	;;
prove)
	all=$(modules)
	check_go . $all
	label=prove
	choose_seed $label
	add=add_long_tests
	probe_race
	;;
core)
	all=.
	check_go .
	label=test-core
	choose_seed $label
	add=add_short_tests
	check gofmt format
	step "go vet: module ." "1 min cold, seconds warm"
	check "go vet" timed "go vet" go vet ./...
	;;
*) die "test.sh: all, prove or core, not '$mode'" ;;
esac

count=0
for module in $all; do
	has_packages "$module" || continue
	count=$((count + 1))
	check "test API server" timed "test API server" test_server "$module"
	$add "$module"
done
if [ "$mode" = all ]; then
	run_jobs check lint timed lint sh scripts/lint.sh
else
	run_jobs
fi
if [ "$mode" = prove ]; then
	check soak timed soak play_storms
fi
if [ "$count" = 0 ]; then failed="$failed, no module with packages found"; fi

longest
seconds=$(($(date +%s) - started))
if [ -n "$failed" ]; then
	printf '\nmake %s: FAILED after %s s: %s\n' "$label" "$seconds" "${failed#, }"
	printf 'replay with: make %s %s\n' "$label" "$replay"
	exit 1
fi
printf '\nmake %s: passed, %s module(s) in %s s\n' "$label" "$count" "$seconds"
