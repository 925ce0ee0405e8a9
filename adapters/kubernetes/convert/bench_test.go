package convert_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
)

// BenchmarkReadMachine measures the cost that each change of a machine has for a cache.
func BenchmarkReadMachine(b *testing.B) {
	w := machines.typed(b, machines.store(b, terminating("Initiate node drain"), machines.full()))
	b.ReportAllocs()
	for b.Loop() {
		machines.Read(w)
	}
}

// BenchmarkUpdateStatus measures the cost of making the patch for a change of a status.
func BenchmarkUpdateStatus(b *testing.B) {
	w := machines.typed(b, terminating("Initiate node drain"))
	m, _ := machines.Read(w)
	m.Status.Phase = machine.PhaseFailed
	b.ReportAllocs()
	for b.Loop() {
		_, err := machines.UpdateStatus(w, m)
		require.NoError(b, err)
	}
}
