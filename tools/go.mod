// The linters, pinned. Their own module, so that no user of the library ever
// downloads them. "make lint" builds them into .cache/bin.
module github.com/millwright-go/millwright/tools

// No newer than the root module's, so that a machine that can build the library can
// lint it too. It holds the linters back: staticcheck 0.8 wants Go 1.26,
// go-check-sumtype 0.5 wants Go 1.27.
go 1.25.0

tool (
	github.com/alecthomas/go-check-sumtype/cmd/go-check-sumtype
	github.com/fzipp/gocyclo/cmd/gocyclo
	honnef.co/go/tools/cmd/staticcheck
)

require (
	github.com/BurntSushi/toml v1.4.1-0.20240526193622-a339e1f7089c // indirect
	github.com/alecthomas/go-check-sumtype v0.4.0 // indirect
	github.com/fzipp/gocyclo v0.6.0 // indirect
	golang.org/x/exp/typeparams v0.0.0-20231108232855-2478ac86f678 // indirect
	golang.org/x/mod v0.38.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/tools v0.48.0 // indirect
	honnef.co/go/tools v0.7.0 // indirect
)
