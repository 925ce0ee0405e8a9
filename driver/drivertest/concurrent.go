package drivertest

import (
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
)

var concurrentChecks = []check{
	{"creates of one name make one VM", concurrentCreatesOfOne},
	{"creates of many names make as many VMs", concurrentCreatesOfMany},
	{"deletes of one VM all end", concurrentDeletes},
}

// createTogether creates the machines' VMs at once.
func (r *trial) createTogether(machines [conformance.Crowd]*machine.Machine) (
	answers [conformance.Crowd]*driver.CreateMachineResponse, errs [conformance.Crowd]error,
) {
	conformance.Together(func(i int) { answers[i], errs[i] = r.create(r.Ctx, machines[i]) })
	r.Settled()
	return answers, errs
}

func concurrentCreatesOfOne(r *trial) {
	const duty = "a machine has one VM, also when its creates race"
	m := r.machine()
	var same [conformance.Crowd]*machine.Machine
	for i := range same {
		same[i] = m
	}
	answers, errs := r.createTogether(same)
	v := r.created(m)
	for i, a := range answers {
		if errs[i] == nil && a != nil && a.ProviderID != v.id {
			r.Errorf("CreateMachine answered VM %q, and %q later: %s", a.ProviderID, v.id, duty)
		}
		r.oneOfSeveral(errs[i])
	}
	r.only(m, duty, v)
	r.total(1, duty)
}

func concurrentCreatesOfMany(r *trial) {
	const duty = "creates of different machines do not disturb each other"
	var machines [conformance.Crowd]*machine.Machine
	for i := range machines {
		machines[i] = r.machine()
	}
	answers, errs := r.createTogether(machines)
	var ids []string
	for i, m := range machines {
		if errs[i] != nil || answers[i] == nil {
			r.Fatalf("CreateMachine beside others: %v", errs[i])
		}
		v := record(m, answers[i])
		ids = append(ids, v.id)
		r.only(m, duty, v)
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) < conformance.Crowd {
		r.Errorf("%d machines have the VMs %q: %s", conformance.Crowd, ids, duty)
	}
	r.total(conformance.Crowd, duty)
}

func concurrentDeletes(r *trial) {
	v := r.created(r.machine())
	r.Settled()
	var errs [conformance.Crowd]error
	conformance.Together(func(i int) { _, errs[i] = r.delete(r.Ctx, v.machine) })
	r.Settled()
	for _, err := range errs {
		if code := codes.Of(err); code != codes.OK && code != codes.Aborted {
			r.Errorf("DeleteMachine answers %s to one of several calls, neither %s nor %s (%v)",
				code, codes.OK, codes.Aborted, err)
		}
	}
	r.deleted(v.machine)
	r.gone(v, "DeleteMachine answered OK")
	r.total(0, "DeleteMachine answered OK")
}
