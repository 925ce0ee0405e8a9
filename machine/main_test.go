package machine_test

import (
	"os"
	"testing"

	"github.com/millwright-go/millwright/internal/testkit"
)

// TestMain makes rapid do more checks than by default: these tests are quick, and the mistakes that
// they look for are rare.
func TestMain(m *testing.M) { os.Exit(testkit.Run(m, 2000)) }
