package testkit

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Run runs the tests of a package, and returns the exit status. Each property-based test
// (pgregory.net/rapid) makes `checks` checks, unless the flag -rapid.checks is set. If all
// tests are run and pass, a golden file that none of them uses is a failure.
func Run(m *testing.M, checks int) int {
	flag.Parse()
	if !given("rapid.checks") {
		if err := flag.Set("rapid.checks", strconv.Itoa(checks)); err != nil {
			panic(err)
		}
	}
	status := m.Run()
	if status != 0 || given("test.run") || given("test.skip") || given("test.list") || given("test.fuzz") {
		return status
	}
	for _, file := range unused() {
		fmt.Fprintf(os.Stderr, "%s: no test uses this golden file\n", file)
		status = 1
	}
	return status
}

// given reports whether a flag is set on the command line.
func given(name string) (yes bool) {
	flag.Visit(func(f *flag.Flag) { yes = yes || f.Name == name })
	return yes
}
