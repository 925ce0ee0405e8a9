package pooldrivertest

import (
	"context"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
)

// Checks of the rules for every call of a pool driver.

// attempt is one call about a pool with a class.
type attempt struct {
	call machinepool.Call
	make func(ctx context.Context, r *trial, p *machinepool.Pool, c *machine.Class) error
}

var attempts = []attempt{
	{machinepool.CreatePool, func(ctx context.Context, r *trial, p *machinepool.Pool, c *machine.Class) error {
		_, err := r.createOf(ctx, p, c, 2)
		return err
	}},
	{machinepool.UpdatePool, func(ctx context.Context, r *trial, p *machinepool.Pool, c *machine.Class) error {
		_, err := r.updateOf(ctx, p, c)
		return err
	}},
	{machinepool.ScalePool, func(ctx context.Context, r *trial, p *machinepool.Pool, c *machine.Class) error {
		_, err := r.scaleOf(ctx, p, c, 2)
		return err
	}},
	{machinepool.GetPoolStatus, func(ctx context.Context, r *trial, p *machinepool.Pool, c *machine.Class) error {
		_, err := r.statusOf(ctx, p, c)
		return err
	}},
	{machinepool.DeletePool, func(ctx context.Context, r *trial, p *machinepool.Pool, c *machine.Class) error {
		_, err := r.deleteOf(ctx, p, c)
		return err
	}},
}

var clusterChecks = []check{
	{"others' groups are neither found nor changed", func(r *trial) {
		const duty = "calls act on groups of their own cluster only"
		other := r.setup.OtherCluster
		if other == nil {
			r.NotRun("Setup has no OtherCluster")
		}
		p := r.poolOf(other)
		theirs := r.createdOf(p, other, 3)
		_, err := r.statusOf(r.Ctx, p, r.setup.Class)
		r.missing(machinepool.GetPoolStatus, err, duty)
		_, err = r.scaleOf(r.Ctx, p, r.setup.Class, 1)
		r.missing(machinepool.ScalePool, err, duty)
		_, err = r.deleteOf(r.Ctx, p, r.setup.Class)
		r.fine(machinepool.DeletePool, err)
		r.hasOf(theirs, other, 3, duty)
		r.account(3, duty)
	}},
}

var argumentChecks = []check{
	{"a class of another provider is InvalidArgument", func(r *trial) {
		if r.setup.Class.Provider == "" {
			r.NotRun("Class names no provider")
		}
		wrong := r.setup.Class.Clone()
		wrong.Provider = "drivertest.example/another-provider"
		r.allRefused(wrong, codes.InvalidArgument)
	}},
	{"a spec that can't be decoded is Internal", func(r *trial) {
		if len(r.setup.Class.ProviderSpec) == 0 {
			r.NotRun("Class has no provider spec")
		}
		wrong := r.setup.Class.Clone()
		wrong.ProviderSpec = []byte("{\x00 no: [notation")
		r.allRefused(wrong, codes.Internal)
	}},
	{"a spec that can't work is InvalidArgument", func(r *trial) {
		if r.setup.Invalid == nil {
			r.NotRun("Setup has no Invalid")
		}
		p := r.pool()
		r.refusedPool(attempts[0], p, r.setup.Invalid, codes.InvalidArgument)
		r.account(0, "the provider spec can't work")
	}},
	{"a pool without a name is InvalidArgument", func(r *trial) {
		there := r.created(r.pool(), 1)
		nameless := r.newPool("")
		nameless.Name = ""
		for _, a := range attempts {
			r.refusedPool(a, nameless, r.setup.Class, codes.InvalidArgument)
		}
		r.has(there, 1, "the call was for a pool without a name")
		r.account(1, "the call was for a pool without a name")
	}},
}

// allRefused makes all attempts with an invalid class, and requires that they fail and change nothing.
func (r *trial) allRefused(wrong *machine.Class, want codes.Code) {
	r.Helper()
	there := r.created(r.pool(), 1)
	for _, a := range attempts {
		r.refusedPool(a, there, wrong, want)
	}
	r.has(there, 1, "the class was wrong")
	r.account(1, "the class was wrong")
}

// refusedPool requires that an attempt fails with a code, with the same message each time.
func (r *trial) refusedPool(a attempt, p *machinepool.Pool, c *machine.Class, want codes.Code) {
	r.Helper()
	first := a.make(r.Ctx, r, p, c)
	if got := codes.Of(first); got != want {
		r.Errorf("%s answers %s, not %s (%v)", a.call, got, want, first)
		return
	}
	if again := a.make(r.Ctx, r, p, c); codes.Message(again) != codes.Message(first) {
		r.Errorf("%s says %q at first, then %q; a message that changes with each attempt is stored each time",
			a.call, codes.Message(first), codes.Message(again))
	}
}

var secretChecks = []check{
	{"a missing secret ends no process", func(r *trial) {
		right := r.setup.Secret
		r.setup.Secret, r.setup.Bootstrap = nil, nil
		p := r.pool()
		for _, a := range attempts {
			_ = a.make(r.Ctx, r, p, r.setup.Class)
		}
		r.setup.Secret = right
	}},
	{"without its secret no group is gone", func(r *trial) {
		const duty = "without the secret a driver answers what it knows, or UNAUTHENTICATED"
		p := r.created(r.pool(), 1)
		right := r.setup.Secret
		r.setup.Secret = nil
		_, looked := r.statusOf(r.Ctx, p, r.setup.Class)
		_, deleted := r.deleteOf(r.Ctx, p, r.setup.Class)
		r.setup.Secret = right
		for call, err := range map[machinepool.Call]error{machinepool.GetPoolStatus: looked, machinepool.DeletePool: deleted} {
			if codes.Of(err) == codes.NotFound {
				r.Errorf("%s answers %v for the group of pool %s: %s", call, err, p.Name, duty)
			}
		}
		left := 1
		if deleted == nil {
			left = 0
		}
		r.account(left, "DeletePool answered "+codes.Of(deleted).String())
	}},
	{"wrong credentials are not shown", func(r *trial) {
		right := r.setup.Secret
		wrong := &machine.Secret{Data: map[string][]byte{"token": nil, "password": nil}}
		if right != nil {
			wrong = right.Clone()
		}
		for key := range wrong.Data {
			wrong.Data[key] = []byte("wrong-" + key + "-of-" + r.Names)
		}
		r.ForbidInAnswers(wrong, r.setup.Class) // from here on, no answer may contain these values
		r.setup.Secret = wrong
		p := r.pool()
		for _, a := range attempts {
			_ = a.make(r.Ctx, r, p, r.setup.Class)
		}
		r.setup.Secret = right
	}},
}

var contextChecks = []check{
	{"a canceled call ends", func(r *trial) {
		ctx, cancel := context.WithCancel(r.Ctx)
		cancel()
		r.overPool(ctx, codes.Canceled)
	}},
	{"a call past its deadline ends", func(r *trial) {
		ctx, cancel := context.WithDeadline(r.Ctx, time.Unix(0, 0))
		defer cancel()
		r.overPool(ctx, codes.DeadlineExceeded)
	}},
}

// overPool makes calls whose context has ended. Each may still do its work; otherwise it must answer with
// the code, and a later call must complete the work.
func (r *trial) overPool(ctx context.Context, code codes.Code) {
	p, fresh := r.created(r.pool(), 2), r.pool()
	for _, a := range attempts[1:] {
		if err := a.make(ctx, r, p, r.setup.Class); err != nil && codes.Of(err) != code {
			r.Errorf("%s answers %s when its context is over, neither %s nor OK (%v)", a.call, codes.Of(err), code, err)
		}
	}
	if _, err := r.createOf(ctx, fresh, r.setup.Class, 1); err != nil && codes.Of(err) != code {
		r.Errorf("CreatePool answers %s when its context is over, neither %s nor OK (%v)", codes.Of(err), code, err)
	}
	r.Settled()
	r.has(r.created(fresh, 1), 1, "a create after one that was given up leaves one group")
	_, err := r.deleteOf(r.Ctx, p, r.setup.Class)
	r.fine(machinepool.DeletePool, err)
	r.account(1, "a delete after one that was given up leaves nothing")
}

var concurrentChecks = []check{
	{"creates of one name make one group", func(r *trial) {
		const duty = "a pool has one group, also when its creates race"
		p := r.pool()
		var answers [conformance.Crowd]*pooldriver.Response
		var errs [conformance.Crowd]error
		conformance.Together(func(i int) { answers[i], errs[i] = r.createOf(r.Ctx, p, r.setup.Class, 2) })
		last := r.created(p, 2)
		for i, a := range answers {
			switch code := codes.Of(errs[i]); {
			case code == codes.OK && a != nil && a.GroupID != last.Status.GroupID:
				r.Errorf("CreatePool answered group %q, and %q later: %s", a.GroupID, last.Status.GroupID, duty)
			case code != codes.OK && code != codes.Aborted:
				r.Errorf("CreatePool answers %s to one of several calls, neither %s nor %s (%v)", code, codes.OK, codes.Aborted, errs[i])
			}
		}
		r.has(last, 2, duty)
		r.account(2, duty)
	}},
	{"creates of many names make as many groups", concurrentCreates},
	{"deletes of one group all end", concurrentDeletes},
}

// concurrentDeletes deletes a group several times at once, as two managers may do.
func concurrentDeletes(r *trial) {
	p := r.created(r.pool(), 2)
	var errs [conformance.Crowd]error
	conformance.Together(func(i int) { _, errs[i] = r.deleteOf(r.Ctx, p, r.setup.Class) })
	for _, err := range errs {
		if code := codes.Of(err); code != codes.OK && code != codes.Aborted {
			r.Errorf("DeletePool answers %s to one of several calls, neither %s nor %s (%v)", code, codes.OK, codes.Aborted, err)
		}
	}
	_, err := r.deleteOf(r.Ctx, p, r.setup.Class)
	r.fine(machinepool.DeletePool, err)
	r.account(0, "DeletePool answered OK")
}

// concurrentCreates creates the groups of many pools at once.
func concurrentCreates(r *trial) {
	const duty = "creates of different pools do not disturb each other"
	var pools [conformance.Crowd]*machinepool.Pool
	var answers [conformance.Crowd]*pooldriver.Response
	var errs [conformance.Crowd]error
	for i := range pools {
		pools[i] = r.pool()
	}
	conformance.Together(func(i int) { answers[i], errs[i] = r.createOf(r.Ctx, pools[i], r.setup.Class, 1) })
	var ids []string
	for i, p := range pools {
		if errs[i] != nil || answers[i] == nil {
			r.Fatalf("CreatePool beside others: %v", errs[i])
		}
		ids = append(ids, answers[i].GroupID)
		r.has(p, 1, duty)
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) < conformance.Crowd {
		r.Errorf("%d pools have the groups %q: %s", conformance.Crowd, ids, duty)
	}
	r.account(conformance.Crowd, duty)
}

var lostAnswerChecks = []check{
	{"of a create: the next one adopts", func(r *trial) {
		p := r.pool()
		r.losePool(machinepool.CreatePool, func() error {
			_, err := r.createOf(r.Ctx, p, r.setup.Class, 2)
			return err
		})
		r.has(r.created(p, 2), 2, "a create whose answer was lost is repeated, and adopts what it made")
		r.account(2, "a create whose answer was lost is repeated, and adopts what it made")
	}},
	{"of a deletion of instances: the next one takes no others", func(r *trial) {
		const duty = "a deletion whose answer was lost is repeated, and takes no others"
		r.declared("DeleteInstances", canDelete)
		p := r.created(r.pool(), 3)
		ids := r.has(p, 3, "three were asked for")
		r.losePool(machinepool.DeleteInstances, func() error {
			_, err := r.removeOf(r.Ctx, p, r.setup.Class, ids[0])
			return err
		})
		_, err := r.removeOf(r.Ctx, p, r.setup.Class, ids[0])
		r.fine(machinepool.DeleteInstances, err)
		r.has(p, 2, duty)
		r.account(2, duty)
	}},
	{"of a delete: the next one is OK", func(r *trial) {
		p := r.created(r.pool(), 2)
		r.losePool(machinepool.DeletePool, func() error {
			_, err := r.deleteOf(r.Ctx, p, r.setup.Class)
			return err
		})
		_, err := r.deleteOf(r.Ctx, p, r.setup.Class)
		r.fine(machinepool.DeletePool, err)
		r.account(0, "a delete whose answer was lost is repeated")
	}},
}

// losePool makes a call take effect and fail.
func (r *trial) losePool(call machinepool.Call, do func() error) {
	r.Helper()
	lost := codes.New(codes.Unavailable, "the answer was lost")
	if hook, ok := pooldriver.As[pooldriver.FaultHook](r.driver); ok {
		hook.FailPoolAfter(call, lost)
	} else {
		r.driver = pooldriver.Intercept(r.driver, conformance.Lose(call, lost))
	}
	if err := do(); codes.Of(err) != codes.Unavailable {
		r.Fatalf("the fault hook did not make %s fail with %s (%v)", call, codes.Unavailable, err)
	}
	r.Settled()
}
