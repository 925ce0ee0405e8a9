package drivertest

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

var argumentChecks = []check{
	{"a class of another provider is InvalidArgument", foreignProvider},
	{"a spec that can't be decoded is Internal", undecodableSpec},
	{"a spec that can't work is InvalidArgument", invalidSpec},
	{"a machine without a name is InvalidArgument", blankName},
}

// attempt is one call with a class.
type attempt struct {
	call     codes.Call
	optional bool
	make     func(r *trial, m *machine.Machine, c *machine.Class) error
}

var attempts = []attempt{
	{codes.CreateMachine, false, func(r *trial, m *machine.Machine, c *machine.Class) error {
		_, err := r.createOf(r.Ctx, m, c)
		return err
	}},
	{codes.InitializeMachine, true, func(r *trial, m *machine.Machine, c *machine.Class) error {
		_, err := r.initializeOf(r.Ctx, m, c)
		return err
	}},
	{codes.GetMachineStatus, true, func(r *trial, m *machine.Machine, c *machine.Class) error {
		_, err := r.statusOf(r.Ctx, m, c)
		return err
	}},
	{codes.ListMachines, true, func(r *trial, _ *machine.Machine, c *machine.Class) error {
		_, err := r.list(r.Ctx, c)
		return err
	}},
	{codes.DeleteMachine, false, func(r *trial, m *machine.Machine, c *machine.Class) error {
		_, err := r.deleteOf(r.Ctx, m, c)
		return err
	}},
}

// refused requires that an attempt fails with a code, and with the same message the second time: a
// message is stored with its machine, and must not change with each attempt.
func (r *trial) refused(a attempt, m *machine.Machine, c *machine.Class, want codes.Code) {
	r.Helper()
	first := a.make(r, m, c)
	if a.optional && codes.Of(first) == codes.Unimplemented {
		return
	}
	if got := codes.Of(first); got != want {
		r.Errorf("%s answers %s, not %s (%v)", a.call, got, want, first)
		return
	}
	if again := a.make(r, m, c); codes.Message(again) != codes.Message(first) {
		r.Errorf("%s says %q at first, then %q; a message that changes with each attempt is stored each time",
			a.call, codes.Message(first), codes.Message(again))
	}
}

// allRefused makes all attempts with an invalid class, on a VM that exists and on one that does not,
// and requires that they fail and change nothing.
func (r *trial) allRefused(wrong *machine.Class, want codes.Code) {
	r.Helper()
	there := r.created(r.machine())
	absent := r.machine()
	r.Settled()
	for _, a := range attempts {
		r.refused(a, absent, wrong, want)
		if a.call != codes.CreateMachine {
			r.refused(a, there.machine, wrong, want)
		}
	}
	r.present(there, "the class was wrong")
	r.only(absent, "the class was wrong")
	r.total(1, "the class was wrong")
}

func foreignProvider(r *trial) {
	if r.setup.Class.Provider == "" {
		r.NotRun("Class names no provider")
	}
	wrong := r.setup.Class.Clone()
	wrong.Provider = "drivertest.example/another-provider"
	r.allRefused(wrong, codes.InvalidArgument)
}

func undecodableSpec(r *trial) {
	if len(r.setup.Class.ProviderSpec) == 0 {
		r.NotRun("Class has no provider spec")
	}
	wrong := r.setup.Class.Clone()
	wrong.ProviderSpec = []byte("{\x00 no: [notation")
	r.allRefused(wrong, codes.Internal)
}

func invalidSpec(r *trial) {
	if r.setup.Invalid == nil {
		r.NotRun("Setup has no Invalid")
	}
	m := r.machine()
	r.refused(attempts[0], m, r.setup.Invalid, codes.InvalidArgument)
	r.only(m, "the provider spec can't work")
	r.total(0, "the provider spec can't work")
}

// blankName checks that an empty name does not stand for all.
func blankName(r *trial) {
	there := r.created(r.machine())
	r.Settled()
	blank := r.newMachine("")
	blank.Name = ""
	for _, a := range attempts {
		if a.call != codes.ListMachines {
			r.refused(a, blank, r.setup.Class, codes.InvalidArgument)
		}
	}
	r.present(there, "the call was for a machine without a name")
	r.total(1, "the call was for a machine without a name")
}
