package machinepool_test

import (
	"os"
	"testing"

	"github.com/millwright-go/millwright/internal/testkit"
)

// TestMain raises the number of checks of property-based tests: they are quick, and what they look for is
// rare.
func TestMain(m *testing.M) { os.Exit(testkit.Run(m, 600)) }
