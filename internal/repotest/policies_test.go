package repotest

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/safety"
)

// TestZeroMeansTheDefault: in each policy a setting that is zero gets its default, except for bools. A nil
// policy is the default policy. The caller's policy is not changed.
func TestZeroMeansTheDefault(t *testing.T) {
	zeroMeansTheDefault(t, machine.DefaultPolicy, (*machine.Policy).WithDefaults)
	zeroMeansTheDefault(t, machineset.DefaultPolicy, (*machineset.Policy).WithDefaults)
	zeroMeansTheDefault(t, deployment.DefaultPolicy, (*deployment.Policy).WithDefaults, "RolloutMarks")
	zeroMeansTheDefault(t, drain.DefaultPolicy, (*drain.Policy).WithDefaults)
	zeroMeansTheDefault(t, safety.DefaultPolicy, (*safety.Policy).WithDefaults)
	zeroMeansTheDefault(t, machinepool.DefaultPolicy, (*machinepool.Policy).WithDefaults)
	require.Equal(t, safety.Off(), safety.Off().WithDefaults())
}

// zeroMeansTheDefault checks each field of one policy. The fields named in bools stay zero.
func zeroMeansTheDefault[P any](t *testing.T, defaults func() *P, with func(*P) *P, bools ...string) {
	full, of := defaults(), reflect.TypeFor[P]()
	require.Same(t, full, with(full), "%s lacks nothing", of)
	require.Equal(t, defaults(), with(nil), "%s", of)
	for i := range of.NumField() {
		name := of.Field(i).Name
		given, want := defaults(), defaults()
		reflect.ValueOf(given).Elem().Field(i).SetZero()
		for _, b := range bools {
			if b == name {
				reflect.ValueOf(want).Elem().Field(i).SetZero()
			}
		}
		before := *given
		require.Equal(t, want, with(given), "%s.%s", of, name)
		require.Equal(t, before, *given, "%s.%s of the caller", of, name)
	}
}
