# Sourced: format fails when a Go file is not as gofmt writes it.
format() {
	step "gofmt" "1 s"
	gofmt=$(go env GOROOT)/bin/gofmt
	if [ ! -x "$gofmt" ]; then
		need gofmt "it comes with Go"
		gofmt=gofmt
	fi
	unformatted=$(go_files | tr '\n' '\0' | xargs -0 "$gofmt" -l) || return 1
	if [ -n "$unformatted" ]; then
		printf 'not formatted, run gofmt -w on:\n%s\n' "$unformatted"
		return 1
	fi
}
