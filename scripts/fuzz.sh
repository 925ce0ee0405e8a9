# Every fuzz target of every module for FUZZTIME each: go test fuzzes one
# target at a time, so they are listed first. Inputs are made smaller in 100 runs
# each: in the minute that go test takes by itself, nothing new would be tried.
. "$(dirname "$0")/prelude.sh"

prepare
all=$(modules)
check_go $all
time=${FUZZTIME:-20s}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

count=0
for module in $all; do
	has_packages "$module" || continue
	step "look for fuzz targets: module $module" "compiles its tests: 1 min cold"
	# One line a target, and after those of a package "ok <package> <time>".
	if ! (cd "$module" && go test -list '^Fuzz' ./...) >"$scratch/list"; then
		cat "$scratch/list"
		failed="$failed $module(listing)"
	fi
	awk '/^Fuzz/ { name[++n] = $1 }
	     /^ok/ { for (i = 1; i <= n; i++) print $2, name[i]; n = 0 }' "$scratch/list" >"$scratch/targets"
	while read -r package target <&3; do
		count=$((count + 1))
		step "$target of $package" "$time"
		(cd "$module" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 100x "$package") ||
			failed="$failed $target"
	done 3<"$scratch/targets"
done

if [ -n "$failed" ]; then die "fuzz: failed:$failed"; fi
if [ "$count" = 0 ]; then die "fuzz: no fuzz target found"; fi
printf '\nfuzz: %s target(s), no failure\n' "$count"
