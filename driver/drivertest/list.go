package drivertest

import (
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
)

var listChecks = []check{
	{"has each VM under its ID, with its machine", listNamesVMs},
	{"has the VMs of every page", listNamesAllPages},
	{"is the same again", listIsRepeatable},
}

var goneChecks = []check{{"has no VM that is gone", listForgets}}

// listNamesVMs creates several VMs, in case a list shows the first few only.
func listNamesVMs(r *trial) { r.listsMany(conformance.Crowd) }

func listNamesAllPages(r *trial) {
	if r.setup.PageSize <= 0 {
		r.NotRun("Setup has no PageSize")
	}
	r.listsMany(2*r.setup.PageSize + 1)
}

// listsMany creates n VMs, and requires that the list has them all.
func (r *trial) listsMany(n int) {
	r.Helper()
	want := map[string][]string{}
	var all []vm
	for range n {
		v := r.created(r.machine())
		all = append(all, v)
		want[v.machine.Name] = []string{v.id}
	}
	r.lists(want, all...)
}

func listForgets(r *trial) {
	a, b := r.created(r.machine()), r.created(r.machine())
	r.deleted(a.machine)
	r.lists(map[string][]string{b.machine.Name: {b.id}}, a, b)
	r.deleted(b.machine)
	r.lists(nil, a, b)
}

// lists requires that the list has exactly the IDs in want for the machines of these VMs.
func (r *trial) lists(want map[string][]string, about ...vm) {
	r.Helper()
	got, known := r.answered(r.setup.Class)
	if !known {
		r.NotRun("the driver has no %s", codes.ListMachines)
	}
	for _, v := range about {
		if name := v.machine.Name; !slices.Equal(got[name], want[name]) {
			r.Errorf("ListMachines has the IDs %q for machine %s, not %q", got[name], name, want[name])
		}
	}
	if ids, ok := got[""]; ok {
		r.Errorf("ListMachines has no machine name for the VMs %q", ids)
	}
	for name, ids := range got {
		if slices.Contains(ids, "") {
			r.Errorf("ListMachines has a VM of machine %q without an ID", name)
		}
	}
}

func listIsRepeatable(r *trial) {
	v := r.created(r.machine())
	for range 3 {
		r.lists(map[string][]string{v.machine.Name: {v.id}}, v)
	}
	r.total(1, "ListMachines changes nothing")
}

var clusterChecks = []check{
	{"others' VMs are not listed", clusterLists},
	{"others' VMs are not found", clusterFinds},
	{"others' VMs are not adopted", clusterCreates},
	{"others' VMs are not deleted", clusterDeletes},
}

// foreign returns a machine of another cluster, and its VM. The machine's name is free in this cluster.
func (r *trial) foreign() (*machine.Machine, vm) {
	r.Helper()
	if r.setup.OtherCluster == nil {
		r.NotRun("Setup has no OtherCluster")
	}
	m := r.machine()
	r.deleteAtEnd(m, r.setup.OtherCluster)
	v := r.createdOf(m, r.setup.OtherCluster)
	r.Settled()
	return m, v
}

func clusterLists(r *trial) {
	_, theirs := r.foreign()
	ours := r.created(r.machine())
	r.lists(map[string][]string{ours.machine.Name: {ours.id}}, ours, theirs)
	r.presentOf(theirs, r.setup.OtherCluster, "it is listed where it belongs")
}

func clusterFinds(r *trial) {
	m, theirs := r.foreign()
	for _, m := range []*machine.Machine{m, theirs.machine} {
		_, err := r.status(r.Ctx, m)
		r.supports(codes.GetMachineStatus, err)
		r.absent(codes.GetMachineStatus, err)
	}
}

// clusterCreates accepts a refusal: names may be unique across clusters.
func clusterCreates(r *trial) {
	const duty = "calls act on VMs of their own cluster only"
	m, theirs := r.foreign()
	a, err := r.create(r.Ctx, m)
	switch code := codes.Of(err); {
	case code == codes.OK && a != nil && a.ProviderID == theirs.id:
		r.Errorf("CreateMachine adopted VM %s of another cluster: %s", theirs.id, duty)
	case code != codes.OK && code != codes.AlreadyExists:
		r.Errorf("CreateMachine under the name of another cluster's VM: %v", err)
	}
	r.presentOf(theirs, r.setup.OtherCluster, duty)
}

// clusterDeletes deletes by name and by ID. By ID, the driver may also refuse.
func clusterDeletes(r *trial) {
	const duty = "calls act on VMs of their own cluster only"
	m, theirs := r.foreign()
	r.deleted(m)
	r.presentOf(theirs, r.setup.OtherCluster, duty)
	r.total(1, duty)
	_, _ = r.delete(r.Ctx, theirs.machine)
	r.presentOf(theirs, r.setup.OtherCluster, duty)
	r.total(1, duty)
}
