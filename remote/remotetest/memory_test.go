package remotetest_test

import (
	"testing"
	"time"

	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/remote/remotetest"
)

func TestMemory(t *testing.T) {
	var m *remotetest.Memory
	remotetest.Run(t, remotetest.Suite{
		New: func(*testing.T) func() remote.Engine {
			m = remotetest.NewMemory()
			return m.Engine
		},
		Pass: func(d time.Duration) { m.Advance(d) },
	})
}
