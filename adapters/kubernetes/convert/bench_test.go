package convert_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
)

// BenchmarkReadMachine measures the cost of each change that a cache sees.
func BenchmarkReadMachine(b *testing.B) {
	w := machines.typed(b, machines.store(b, terminating("Initiate node drain"), machines.full()))
	b.ReportAllocs()
	for b.Loop() {
		machines.Read(w)
	}
}

// BenchmarkUpdateStatus measures the cost of each write.
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
