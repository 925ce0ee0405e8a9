package machinepool_test

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// TestMain lets rapid try harder than it does by default: these tests are
// quick, and what they look for is rare.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", "600"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
