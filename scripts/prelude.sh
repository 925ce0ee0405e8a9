# Sourced by the other scripts: goes to the root of the repository, and says
# what all of them need. POSIX sh; works with the tools of Linux and macOS.
set -eu
unset CDPATH
cd "$(dirname "$0")/.."

# A go.work in a directory above must not change what is built.
GOWORK=off
# Without the folder in it, what one clone has compiled and analysed is found by the next one.
GOFLAGS="-trimpath ${GOFLAGS:-}"
export GOWORK GOFLAGS

# step WHAT HOW-LONG announces something that takes a while.
step() { printf '\n==> %s (%s)\n' "$1" "$2"; }

note() { printf 'note: %s\n' "$*"; }

die() {
	printf 'error: %s\n' "$*" >&2
	exit 1
}

# check NAME COMMAND... runs it, and adds a failure to the list in $failed.
failed=
check() {
	check_name=$1
	shift
	"$@" || failed="$failed, $check_name"
}

# need COMMAND WHY
need() { command -v "$1" >/dev/null 2>&1 || die "'$1' is not installed or not in PATH; $2"; }

# tree_files NAME... lists files by name or *.suffix: those git knows or would
# add; in an unpacked archive all but hidden directories.
tree_files() {
	if [ -e .git ]; then
		for name in "$@"; do
			git ls-files --cached --others --exclude-standard -- "$name" "*/$name"
		done
	else
		for name in "$@"; do
			find . \( -type d -name '.?*' \) -prune -o -type f -name "$name" -print | sed 's,^\./,,'
		done
	fi | sort -u | while IFS= read -r file; do
		case "/$file" in
		*/testdata/* | */vendor/* | */_*) continue ;;
		esac
		if [ -f "$file" ]; then printf '%s\n' "$file"; fi
	done
}

go_files() { tree_files '*.go'; }

# modules lists the directories of all modules, the root first. Left out are the
# tools, which have no packages, and the test API server, which has no tests:
# those that need it build it, and to analyse all of Kubernetes takes minutes.
modules() {
	tree_files go.mod | while IFS= read -r file; do dirname "$file"; done | grep -vx -e tools -e adapters/kubernetes/tools -e test/kubelab | sort
}

# has_packages MODULE
has_packages() { [ -n "$(cd "$1" && go list -e ./...)" ]; }

# older A B: is version A older than B?
older() {
	awk -v a="$1" -v b="$2" 'BEGIN {
		split(a, x, "."); split(b, y, ".")
		for (i = 1; i <= 3; i++) {
			if (x[i] + 0 < y[i] + 0) exit 0
			if (x[i] + 0 > y[i] + 0) exit 1
		}
		exit 1
	}'
}

# check_go MODULE... fails when the go command is too old for one of them.
check_go() {
	for module in "$@"; do
		want=$(sed -n 's/^go[[:space:]][[:space:]]*\([0-9][0-9.]*\).*/\1/p' "$module/go.mod")
		have=$(cd "$module" && go version 2>&1) || die "go in $module: $have"
		have=$(printf '%s\n' "$have" | sed -n 's/.*go\([0-9][0-9]*\.[0-9][0-9.]*\).*/\1/p')
		if [ -n "$have" ] && older "$have" "$want"; then
			die "go $have is too old: $module/go.mod asks for $want or newer"
		fi
	done
}

# prepare checks the tools every target needs.
prepare() {
	need go "install the Go release that go.mod names, or a newer one"
	if [ -e .git ]; then
		need git "it lists the files of the repository"
		git ls-files >/dev/null || die "git cannot read this repository"
	fi
	[ -n "$(modules)" ] || die "no go.mod found"
}

# collect_less lets Go programs collect garbage a quarter as often, while they have less than
# two gigabytes. Tests that compute, and the linters, take a quarter less time.
collect_less() {
	GOGC=${GOGC:-400}
	GOMEMLIMIT=${GOMEMLIMIT:-2GiB}
	export GOGC GOMEMLIMIT
}
