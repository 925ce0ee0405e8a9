# All checks that run no tests, on every module. Goes on after a failure and
# names the failed checks at the end. MODULE: only the module in that directory.
. "$(dirname "$0")/prelude.sh"
. scripts/format.sh

bin=$PWD/.cache/bin

# The linters are built and run as programs, not by "go tool", so that each
# module is analysed under its own go.mod.
build_linters() {
	step "build the linters of tools/go.mod into .cache/bin" "1 to 2 min the first time, then 1 s"
	go build -C tools -o ../.cache/bin/ tool ||
		die "the linters cannot be built; 'make test-core' works without them"
}

in_module() {
	dir=$1
	shift
	(cd "$dir" && "$@")
}

# A sum type of the root module is checked in a nested module too when both are
# loaded together. A default case (an error, in an executor) does not excuse a
# missing one.
sum_types() {
	others=
	if [ "$1" != . ]; then others="$(sed -n 's/^module[[:space:]]*//p' go.mod)/..."; fi
	in_module "$1" "$bin/go-check-sumtype" -default-signifies-exhaustive=false ./... $others
}

prepare
collect_less
all=$(modules)
if [ -n "${MODULE:-}" ]; then
	printf '%s\n' "$all" | grep -qxF -e "${MODULE%/}" || die "MODULE=$MODULE is not the directory of a module; there is $(printf '%s ' $all)"
	all=${MODULE%/}
fi
check_go . tools adapters/kubernetes/tools $all
STATICCHECK_CACHE=$(go env GOCACHE)/staticcheck # a fresh clone finds it too
export STATICCHECK_CACHE

check gofmt format
build_linters
for module in $all; do
	has_packages "$module" || continue
	step "go vet, staticcheck, exhaustive switches: module $module" "1 to 5 min cold, 10 s warm"
	check "go vet in $module" in_module "$module" go vet ./...
	check "staticcheck in $module" in_module "$module" "$bin/staticcheck" ./...
	check "exhaustive switches in $module" sum_types "$module"
done
step "revive: doc comments, names, length and complexity of functions" "20 s"
check revive in_module "${MODULE:-.}" "$bin/revive" -config "$PWD/tools/revive.toml" ./...

if [ -n "$failed" ]; then die "lint: failed: ${failed#, }"; fi
printf '\nlint: clean\n'
