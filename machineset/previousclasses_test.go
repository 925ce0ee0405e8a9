package machineset_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// TestFormerClasses: machines of a class that the template had before get the
// one that it has, whole; the class of any other is left alone, since its VM may
// be of another provider.
func TestFormerClasses(t *testing.T) {
	for _, c := range []struct {
		have     machine.ClassRef
		previous []string
		pushed   bool
	}{
		{machine.ClassRef{Kind: "MachineClass", Name: "small-a"}, []string{"small-b", "small-a"}, true},
		{machine.ClassRef{Kind: "MachineClass", Name: "small-a"}, []string{"small-b"}, false},
		{machine.ClassRef{Kind: "MachineClass", Name: "small-a"}, nil, false},
		{machine.ClassRef{Kind: "MachineClass", Name: "small-a", APIGroup: "other"}, []string{"small-a"}, false},
		{machine.ClassRef{Kind: "MachineClass", Name: "small"}, []string{"small-a", "small"}, false},
	} {
		o := fleet(1, 1, false)
		o.Set.Spec.Template.Spec.Class = machine.ClassRef{Kind: "MachineClass", Name: "small"}
		o.Set.Instructions.PreviousClasses = c.previous
		o.Machines[0].Spec.Class, o.Machines[0].Spec.ProviderID = c.have, "vm-1"
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
		require.NoError(t, err)
		if !c.pushed {
			require.Empty(t, plan.Push, "%v", c)
			continue
		}
		require.Len(t, plan.Push, 1, "%v", c)
		got := plan.Push[0].Machine.Spec
		require.Equal(t, o.Set.Spec.Template.Spec.Class, got.Class)
		require.Equal(t, "vm-1", got.ProviderID)
		require.Equal(t, "its class differs from the template: updating it without replacement", plan.Push[0].Why.String())
	}
}

// The previous classes are part of a set's spec.
func TestFormerClassesAreKept(t *testing.T) {
	set := newSet(1)
	set.Instructions.PreviousClasses = []string{"a"}
	c := set.Clone()
	require.True(t, c.SpecEqual(set))
	c.Instructions.PreviousClasses[0] = "b"
	require.Equal(t, "a", set.Instructions.PreviousClasses[0])
	require.False(t, c.SpecEqual(set))
}
