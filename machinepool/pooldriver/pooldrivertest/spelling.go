package pooldrivertest

import (
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

var spellingChecks = []check{
	{"of group IDs is one in create, status and list", groupSpellingIsOne},
	{"of instance IDs is one in every answer", instanceSpellingIsOne},
}

func groupSpellingIsOne(r *trial) {
	p := r.created(r.pool(), 1)
	if a, err := r.statusOf(r.Ctx, p, r.setup.Class); err == nil && a != nil {
		r.spelled("GetPoolStatus", "the group ID", a.GroupID, p.Status.GroupID, "since CreatePool")
	}
	lister, ok := pooldriver.As[pooldriver.Lister](r.driver)
	if !ok || !pooldriver.ListsPools(r.driver) {
		return
	}
	a, err := conformance.Call(r.Ctx, r.Trial, machinepool.ListPools, lister.ListPools, func() *pooldriver.ListPoolsRequest {
		return &pooldriver.ListPoolsRequest{Class: r.setup.Class.Clone(), Secret: r.secretOf(r.setup.Secret)}
	})
	if err != nil || a == nil {
		return
	}
	for id, pool := range a.Groups {
		r.spelled("ListPools", "the group ID", id, p.Status.GroupID, "since CreatePool")
		r.spelled("ListPools", "the pool", pool.String(), p.Key.String(), "as CreatePool was asked")
	}
}

func instanceSpellingIsOne(r *trial) {
	p := r.created(r.pool(), 2)
	first, err := r.statusOf(r.Ctx, p, r.setup.Class)
	if err != nil || first == nil {
		r.Fatalf("GetPoolStatus: %v", err)
	}
	_, err = r.scaleOf(r.Ctx, p, r.setup.Class, 3)
	r.fine(machinepool.ScalePool, err)
	r.Settled()
	second, err := r.statusOf(r.Ctx, p, r.setup.Class)
	if err != nil || second == nil {
		r.Fatalf("GetPoolStatus: %v", err)
	}
	for _, i := range first.Instances {
		for _, j := range second.Instances {
			r.spelled("GetPoolStatus", "the instance", j.ProviderID, i.ProviderID, "in an earlier answer")
		}
	}
}

// spelled requires that a call spells something as an earlier call did, if it is the same thing.
func (r *trial) spelled(call, what, got, want, before string) {
	r.Helper()
	if got != want && object.Alike(got, want) {
		r.Errorf("%s gives %s %q, and it is %q %s: one spelling in all calls, in case, prefix and slashes, which is that of the nodes' provider IDs. "+
			"The library can't tell a group or an instance in another spelling from another one: it is left alone, or waits for the time of its drain", call, what, got, want, before)
	}
}
