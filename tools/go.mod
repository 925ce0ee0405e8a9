// The linters, pinned. Their own module, so that no user of the library ever
// downloads them. "make lint" builds them into .cache/bin.
module github.com/millwright-go/millwright/tools

// No newer than the root module's, so that a machine that can build the library can
// lint it too. It holds the linters back: staticcheck 0.8 wants Go 1.26,
// go-check-sumtype 0.5 wants Go 1.27. golangci-lint 2.15 wants Go 1.26 as well, and takes 275 s
// of processor time to build, where these take 110 s.
go 1.25.0

tool (
	github.com/alecthomas/go-check-sumtype/cmd/go-check-sumtype
	github.com/mgechev/revive
	golang.org/x/exp/cmd/apidiff
	honnef.co/go/tools/cmd/staticcheck
)

require (
	codeberg.org/chavacava/garif v0.2.0 // indirect
	github.com/BurntSushi/toml v1.6.0 // indirect
	github.com/alecthomas/go-check-sumtype v0.4.0 // indirect
	github.com/fatih/color v1.18.0 // indirect
	github.com/fatih/structtag v1.2.0 // indirect
	github.com/hashicorp/go-version v1.8.0 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/mgechev/dots v1.0.0 // indirect
	github.com/mgechev/revive v1.15.0 // indirect
	github.com/spf13/afero v1.15.0 // indirect
	golang.org/x/exp v0.0.0-20260112195511-716be5621a96 // indirect
	golang.org/x/exp/typeparams v0.0.0-20231108232855-2478ac86f678 // indirect
	golang.org/x/mod v0.38.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.34.0 // indirect
	golang.org/x/tools v0.48.0 // indirect
	honnef.co/go/tools v0.7.0 // indirect
)
