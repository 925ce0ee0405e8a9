package pooldrivertest

import (
	"context"
	"errors"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

var listChecks = []check{
	{"names each group with its pool, until it is deleted", listNames},
	{"is the same again", listIsRepeatable},
	{"does not name others' groups", listsOwn},
	{"a deletion by ID spares another group of the pool", deletesByID},
	{"of a class that is wrong is refused", listRefuses},
}

// groupsOf lists the groups of a class. It skips the check if the driver lists none.
func (r *trial) groupsOf(ctx context.Context, c *machine.Class) (map[string]object.Key, error) {
	r.Helper()
	lister, ok := pooldriver.As[pooldriver.Lister](r.driver)
	if !ok || !pooldriver.ListsPools(r.driver) {
		r.NotRun("the driver has no ListPools")
	}
	a, err := conformance.Call(ctx, r.Trial, machinepool.ListPools, lister.ListPools, func() *pooldriver.ListPoolsRequest {
		return &pooldriver.ListPoolsRequest{Class: c.Clone(), Secret: r.secretOf(r.setup.Secret)}
	})
	if err == nil && a == nil {
		err = errors.New("the answer says OK and nothing else")
	}
	if err != nil {
		return nil, err
	}
	return a.Groups, nil
}

// lists requires that the groups of pools are listed, or are not, under their IDs.
func (r *trial) lists(want bool, of *machine.Class, duty string, pools ...*machinepool.Pool) {
	r.Helper()
	got, err := r.groupsOf(r.Ctx, of)
	if err != nil {
		r.Fatalf("ListPools: %v", err)
	}
	for id, key := range got {
		if id == "" || key.Name == "" {
			r.Errorf("ListPools has group %q of pool %q: both need a name", id, key)
		}
	}
	for _, p := range pools {
		key, there := got[p.Status.GroupID]
		if there != want || there && key != p.Key {
			r.Errorf("ListPools has group %s: %t, of pool %q; it should: %t, of pool %q: %s", p.Status.GroupID, there, key, want, p.Key, duty)
		}
	}
}

func listNames(r *trial) {
	a, b := r.created(r.pool(), 1), r.created(r.pool(), 0)
	r.lists(true, r.setup.Class, "both were made", a, b)
	_, err := r.deleteOf(r.Ctx, a, r.setup.Class)
	r.fine(machinepool.DeletePool, err)
	r.Settled()
	r.lists(false, r.setup.Class, "it was deleted", a)
	r.lists(true, r.setup.Class, "the other one was deleted", b)
}

func listIsRepeatable(r *trial) {
	p := r.created(r.pool(), 2)
	for range 3 {
		r.lists(true, r.setup.Class, "nothing has changed", p)
	}
	r.has(p, 2, "ListPools changes nothing")
	r.account(2, "ListPools changes nothing")
}

func listsOwn(r *trial) {
	other := r.setup.OtherCluster
	if other == nil {
		r.NotRun("Setup has no OtherCluster")
	}
	theirs, ours := r.createdOf(r.poolOf(other), other, 1), r.created(r.pool(), 1)
	r.lists(false, r.setup.Class, "what is listed and of no pool is deleted", theirs)
	r.lists(true, r.setup.Class, "it is of this cluster", ours)
	r.lists(true, other, "it is listed where it belongs", theirs)
}

func deletesByID(r *trial) {
	const duty = "the ID says which group is to go"
	p := r.created(r.pool(), 1)
	r.lists(true, r.setup.Class, "it was made", p)
	late := p.Clone()
	late.Status.GroupID = p.Status.GroupID + "-of-before"
	if _, err := r.deleteOf(r.Ctx, late, r.setup.Class); err != nil && codes.Of(err) != codes.InvalidArgument {
		r.Errorf("DeletePool of a group that is gone: %v", err)
	}
	r.has(p, 1, duty)
	r.account(1, duty)
}

func listRefuses(r *trial) {
	p := r.created(r.pool(), 1)
	r.lists(true, r.setup.Class, "it was made", p)
	wrong := r.setup.Class.Clone()
	wrong.ProviderSpec = []byte("{\x00 no: [notation")
	if _, err := r.groupsOf(r.Ctx, wrong); codes.Of(err) != codes.Internal {
		r.Errorf("ListPools answers %s, not %s (%v): nothing is known of a class that can't be read", codes.Of(err), codes.Internal, err)
	}
}
