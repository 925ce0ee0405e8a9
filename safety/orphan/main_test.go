package orphan_test

import (
	"os"
	"testing"

	"github.com/millwright-go/millwright/test/safetytest"
)

func TestMain(m *testing.M) { os.Exit(safetytest.Run(m)) }
