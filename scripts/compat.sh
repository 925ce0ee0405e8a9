# Compares what each released module exports with its last tag, by apidiff. Prints what a caller of the
# last release would have to change; a minor release may do that before v1, a patch release not.
. "$(dirname "$0")/prelude.sh"

prepare
check_go . tools
need git "it has the last release"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; git worktree prune' EXIT
step "build apidiff into .cache/bin" "1 min the first time"
go build -C tools -o ../.cache/bin/ golang.org/x/exp/cmd/apidiff
apidiff=$PWD/.cache/bin/apidiff

# quietly COMMAND... shows what it writes to standard error only if it fails.
quietly() {
	"$@" 2>"$scratch/errors" || die "$(cat "$scratch/errors")"
}

# compare MODULE TAG-PREFIX
compare() {
	if ! last=$(git describe --tags --abbrev=0 --match "$2v[0-9]*" 2>/dev/null); then
		note "$1: no release yet"
		return
	fi
	step "compare $1 with $last" "1 min"
	path=$(sed -n 's/^module[[:space:]]*//p' "$1/go.mod")
	old=$scratch/$(printf '%s' "$last" | tr / -)
	git worktree add --quiet --detach "$old" "$last"
	quietly sh -c 'cd "$1" && "$2" -m -w "$3" "$4"' - "$old/$1" "$apidiff" "$old.api" "$path"
	changes=$(quietly sh -c 'cd "$1" && "$2" -m -incompatible "$3" "$4"' - "$1" "$apidiff" "$old.api" "$path")
	if [ -z "$changes" ]; then
		note "$1: compatible with $last"
	else
		printf '%s\n' "$changes"
		failed="$failed, $1 with $last"
	fi
}

compare . ""
compare adapters/bolt adapters/bolt/
compare adapters/kubernetes adapters/kubernetes/
compare adapters/mcm adapters/mcm/
compare cmd/millwright-manager cmd/millwright-manager/
if [ -n "$failed" ]; then die "incompatible: ${failed#, }"; fi
