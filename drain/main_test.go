package drain_test

import (
	"os"
	"testing"

	"github.com/millwright-go/millwright/internal/testkit"
)

// TestMain lets rapid try harder than it does by default: these tests are quick, and what they look
// for is rare.
func TestMain(m *testing.M) { os.Exit(testkit.Run(m, 500)) }
