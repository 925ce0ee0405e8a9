package rollout_test

import (
	"flag"
	"os"
	"testing"

	"github.com/millwright-go/millwright/internal/testkit"
)

// TestMain raises the number of cases that each property is tried on.
func TestMain(m *testing.M) {
	flag.Parse()
	checks := 10_000
	if testing.Short() {
		checks = 100
	}
	os.Exit(testkit.Run(m, checks))
}
