package machinepool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// running returns a world whose pool runs n instances, and the process that created them.
func running(t *testing.T, n int32) (*world, *shell) {
	t.Helper()
	w := newWorld()
	w.scaleTo(n)
	s := &shell{w: w}
	require.NoError(t, s.until(2*time.Minute, func() { w.supply(); w.join() }))
	require.True(t, w.settled(), "%+v", w.pool().Status)
	w.now = s.group.At
	return w, s
}

func decide(t *testing.T, w *world, o *machinepool.Observation) machinepool.Plan {
	t.Helper()
	plan, err := machinepool.Decide(o, w.policy, w.now)
	require.NoError(t, err)
	return plan
}

// status returns the status that a plan writes.
func status(t *testing.T, plan machinepool.Plan) machinepool.Status {
	t.Helper()
	w, ok := plan.Write.(*machinepool.UpdateStatus)
	require.True(t, ok, "%+v", plan)
	return w.Status
}

// edited returns the observation with another pool.
func edited(o *machinepool.Observation, change func(*machinepool.Pool)) *machinepool.Observation {
	p := o.Pool.Clone()
	change(p)
	c := *o
	c.Pool = p
	return &c
}

// While the nodes are not known, the status stays. A node that carries another instance's ID does not
// count.
func TestNodes(t *testing.T) {
	w, s := running(t, 3)
	o := s.observe()
	o.Nodes = nil
	assert.Nil(t, decide(t, w, o).Write, "the caches are not in sync")
	ids := w.ids()
	swapped := map[string]*machine.Node{ids[0]: w.nodes[ids[0]], ids[1]: w.nodes[ids[0]], ids[2]: nil}
	o.Nodes = swapped
	got := status(t, decide(t, w, o))
	assert.Equal(t, []int32{1, 1, 2}, []int32{got.Ready, got.Available, got.Unavailable})
	assert.Len(t, got.NodeRefs, 1)
	again := w.nodes[ids[1]].Clone()
	again.UID = "another"
	o = s.observe()
	o.Nodes = map[string]*machine.Node{ids[0]: w.nodes[ids[0]], ids[1]: again, ids[2]: w.nodes[ids[2]]}
	got = status(t, decide(t, w, o))
	assert.Equal(t, "another", got.NodeRefs[1].UID, "the node was created again")
	o.Nodes, o.NoCluster = nil, true
	got = status(t, decide(t, w, o))
	assert.Equal(t, machinepool.PhaseProvisioned, got.Phase, "without a cluster nothing runs")
}

// The time for which a node has been ready is measured by our clock, from when it was first seen ready,
// even if the cluster's clock is off. If the recorded time is in the future, it is measured from now.
func TestMinReadyByAnyClock(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, 0, time.Hour} {
		w, s := running(t, 1)
		id := w.ids()[0]
		w.edit(func(p *machinepool.Pool) { p.Spec.MinReady = 30 * time.Second })
		look := func(after time.Duration) machinepool.Status {
			w.advance(after)
			_, err := s.pass()
			require.NoError(t, err)
			return w.pool().Status
		}
		turn := func(status object.ConditionStatus) {
			n := w.nodes[id].Clone()
			n.Conditions = object.SetCondition(n.Conditions, object.Condition{
				Type: machine.NodeReady, Status: status, Since: w.now.Truncate(time.Second).Add(off),
			})
			w.nodes[id] = n
		}
		turn(object.False)
		require.Zero(t, look(time.Second).Ready)
		turn(object.True)
		require.Zero(t, look(0).Available, "off by %s", off)
		s.restart()
		require.Zero(t, look(30*time.Second).Available, "off by %s", off)
		require.Equal(t, int32(1), look(time.Second).Available, "off by %s", off)

		w.edit(func(p *machinepool.Pool) { p.Status.NodeRefs[0].ReadySince = w.now.Add(time.Hour) })
		require.Zero(t, look(0).Available)
		require.Equal(t, int32(1), look(31*time.Second).Available)
	}
}

// MinReady counts whole seconds: a second is added, because the recorded time has lost its fraction.
func TestMinReadyEndsOnTheSecond(t *testing.T) {
	w, s := running(t, 1)
	id := w.ids()[0]
	w.edit(func(p *machinepool.Pool) { p.Spec.MinReady = 30 * time.Second })
	look := func() *machinepool.Observation {
		o := s.observe()
		got := status(t, decide(t, w, o))
		assert.Equal(t, int32(0), got.Available)
		w.edit(func(p *machinepool.Pool) { p.Status = got })
		return s.observe()
	}
	w.ready(id, object.False)
	look()
	w.ready(id, object.True)
	since := w.now.Truncate(time.Second)
	o := look()
	w.now = since.Add(31*time.Second - 1)
	plan := decide(t, w, o)
	assert.Nil(t, plan.Write)
	w.now = since.Add(10 * time.Second)
	o.Group.At = w.now
	assert.Equal(t, since.Add(31*time.Second), decide(t, w, o).At)
	w.now = since.Add(31 * time.Second)
	assert.Equal(t, int32(1), status(t, decide(t, w, o)).Available)
}

// A failed call is made again after the wait of the recovery table, neither earlier nor later.
func TestRetryTimes(t *testing.T) {
	w, s := running(t, 3)
	failed := func(code codes.Code, at time.Time) *machinepool.Observation {
		o := edited(s.observe(), func(p *machinepool.Pool) {
			n := int32(5)
			p.Spec.Replicas = &n
			p.Status.LastOperation = machinepool.Operation{
				Call: machinepool.ScalePool, State: machine.StateFailed, Code: code, Message: "m", Time: at, Replicas: 5,
				Against: machinepool.Inputs{Pool: p.Generation, Class: 1, Secret: "s1"},
			}
		})
		o.Secret, o.Looked = "s1", true
		p := edited(o, func(p *machinepool.Pool) {
			if code != codes.Unavailable && code != codes.NotFound {
				p.Status.FailureReason, p.Status.FailureMessage, p.Status.Phase = machinepool.FailureUpdate, "m", machinepool.PhaseFailed
			} else {
				p.Status.Phase = machinepool.PhaseProvisioned
			}
			p.Status.Unavailable = 2
			p.Status.ObservedGeneration = p.Generation
		})
		p.Bootstrap = nil
		return p
	}
	for code, wait := range map[codes.Code]time.Duration{
		codes.Unavailable: 6 * time.Second, codes.NotFound: 6 * time.Second, codes.ResourceExhausted: 601 * time.Second,
		codes.InvalidArgument: 181 * time.Second, codes.Unimplemented: 601 * time.Second,
	} {
		plan := decide(t, w, failed(code, w.now))
		require.Equal(t, machinepool.ReasonRetryAt, plan.Why.Reason, "%s: %v", code, plan.Why)
		assert.Equal(t, w.now.Add(wait), plan.At, code.String())
		assert.Equal(t, machinepool.ReasonAnnounce, decide(t, w, failed(code, w.now.Add(-wait))).Why.Reason, "the wait is over")
		assert.Equal(t, machinepool.ReasonRetryAt, decide(t, w, failed(code, w.now.Add(-wait+1))).Why.Reason)
	}
	assert.Equal(t, machinepool.ReasonAnnounce, decide(t, w, failed(codes.Unavailable, w.now.Add(time.Hour))).Why.Reason, "a failure in the future does not wait")
	other := failed(codes.Unavailable, w.now)
	other.Secret = "s2"
	assert.Equal(t, machinepool.ReasonAnnounce, decide(t, w, other).Why.Reason, "other secrets end the wait")
	often := failed(codes.Unavailable, w.now)
	often.Failures = 3
	assert.Equal(t, w.now.Add(21*time.Second), decide(t, w, often).At, "the wait grows with the failures")
	w.policy.QuotaRetry = time.Minute
	assert.Equal(t, w.now.Add(61*time.Second), decide(t, w, failed(codes.ResourceExhausted, w.now)).At)
}

// With Policy.WaitForChange, a call that failed with a code that is not retried is made again only after
// a change of the pool, its class or its secrets. After other codes it is made again as usual.
func TestWaitForChange(t *testing.T) {
	shrink := func(w *world) { w.scaleTo(2) }
	for effect, c := range map[string]struct {
		call  machinepool.Call
		cause func(*world)
	}{
		"CreateGroup":      {machinepool.CreatePool, func(w *world) { w.group, w.nodes = nil, map[string]*machine.Node{} }},
		"GetGroup":         {machinepool.GetPoolStatus, func(*world) {}},
		"UpdateGroup":      {machinepool.UpdatePool, func(w *world) { w.roll("large") }},
		"ScaleGroup":       {machinepool.ScalePool, func(w *world) { w.scaleTo(5) }},
		"DeleteGroup":      {machinepool.DeletePool, (*world).remove},
		".RemoveInstances": {machinepool.DeleteInstances, shrink},
	} {
		for code := range codes.All() {
			recovery := c.call.Recovery(code)
			if code == codes.OK || recovery.Class == codes.None || code == codes.NotFound {
				continue
			}
			t.Run(effect+" "+code.String(), func(t *testing.T) { waitsForChange(t, effect, code, c.cause, recovery.AutoRetry) })
		}
	}
}

func waitsForChange(t *testing.T, effect string, code codes.Code, cause func(*world), retried bool) {
	w, s := running(t, 3)
	w.policy.WaitForChange = true
	w.slow = 0
	s.fault = func(name string) *machine.Outcome {
		if name != effect {
			return nil
		}
		return &machine.Outcome{Code: code, Message: "m"}
	}
	calls := func() (n int) {
		for _, name := range s.calls {
			if name == effect {
				n++
			}
		}
		return n
	}
	looks := func(times int) {
		for range times {
			w.advance(3 * time.Minute)
			_, err := s.pass()
			require.NoError(t, err)
		}
	}
	s.calls = nil
	cause(w)
	looks(6)
	before := calls()
	require.NotZero(t, before)
	looks(6)
	if retried {
		require.Greater(t, calls(), before)
		return
	}
	require.Equal(t, 1, calls(), "the call was repeated")
	require.Equal(t, machinepool.ReasonWaitForChange, s.wait.Why.Reason)
	require.Equal(t, effect == "GetGroup" || effect == "DeleteGroup", s.wait.At.IsZero(), "%s", s.wait.At)
	for i, change := range []func(){
		func() { changed := *w.class; changed.Generation++; w.class = &changed },
		func() { w.secret = "another" },
		func() { w.edit(func(p *machinepool.Pool) { p.Spec.MinReady += time.Second }) },
	} {
		change()
		looks(3) // an update may come first
		require.Equal(t, 2+i, calls(), "not made after change %d", i)
	}
}

// An announcement is valid for one call, size and pass only.
// Invariants: P30
func TestAnnouncements(t *testing.T) {
	w, s := running(t, 3)
	w.scaleTo(5)
	base := s.observe()
	base.Looked, base.Fresh, base.Announced, base.Bootstrap = true, true, true, nil
	base = edited(base, func(p *machinepool.Pool) {
		p.Status.Phase, p.Status.Unavailable, p.Status.ObservedGeneration = machinepool.PhaseProvisioned, 2, p.Generation
		p.Status.LastOperation = machinepool.Operation{Call: machinepool.ScalePool, State: machine.StateProcessing, Replicas: 5, Time: w.now}
	})
	assert.Equal(t, machinepool.ScaleGroup{To: 5}, decide(t, w, base).Effect)
	for name, spoil := range map[string]func(*machinepool.Pool){
		"another size": func(p *machinepool.Pool) { p.Status.LastOperation.Replicas = 4 },
		"another call": func(p *machinepool.Pool) { p.Status.LastOperation.Call = machinepool.UpdatePool },
		"another state": func(p *machinepool.Pool) {
			p.Status.LastOperation.State, p.Status.LastOperation.Time = machine.StateSuccessful, w.now.Add(-15*time.Second)
		},
	} {
		assert.Equal(t, machinepool.ReasonAnnounce, decide(t, w, edited(base, spoil)).Why.Reason, name)
	}
	earlier := *base
	earlier.Announced = false
	plan := decide(t, w, &earlier)
	assert.Equal(t, machinepool.ReasonAnnounce, plan.Why.Reason, "an earlier pass announced it")
	assert.True(t, plan.Announces)
	blind := *base
	blind.Looked = false
	assert.Equal(t, machinepool.GetGroup{}, decide(t, w, &blind).Effect, "the group may have another size now")
	done := edited(base, func(p *machinepool.Pool) { p.Status.LastOperation.State = machine.StateSuccessful })
	done.Scaled, done.Group = &machinepool.Group{}, nil
	w.now = w.now.Add(2 * time.Second)
	plan = decide(t, w, done)
	assert.Nil(t, plan.Write, "the end of a call is stored once")
	assert.Equal(t, w.now.Add(15*time.Second), plan.At)
}

// A successful call without a visible effect is not repeated before Policy.Poll has passed. A call for
// another size does not wait, nor one after a call that is recorded with a time in the future.
// Invariants: P37
func TestSuccessfulCallIsNotRepeatedAtOnce(t *testing.T) {
	w, s := running(t, 3)
	w.scaleTo(5)
	base := s.observe()
	base.Looked, base.Fresh, base.Bootstrap = true, true, nil
	succeeded := func(replicas int32, ago time.Duration) machinepool.Plan {
		return decide(t, w, edited(base, func(p *machinepool.Pool) {
			p.Status.Phase, p.Status.Unavailable, p.Status.ObservedGeneration = machinepool.PhaseProvisioned, 2, p.Generation
			p.Status.LastOperation = machinepool.Operation{
				Call: machinepool.ScalePool, State: machine.StateSuccessful, Replicas: replicas, Time: w.now.Add(-ago),
			}
		}))
	}
	plan := succeeded(5, 5*time.Second)
	assert.Equal(t, machinepool.ReasonTakesEffect, plan.Why.Reason)
	assert.Equal(t, w.now.Add(10*time.Second), plan.At)
	for _, other := range []machinepool.Plan{succeeded(4, 5*time.Second), succeeded(5, 15*time.Second), succeeded(5, -time.Second)} {
		assert.Equal(t, machinepool.ReasonAnnounce, other.Why.Reason)
	}
}

// A failure that the provider reported stays until another answer. The group is read again if the last
// answer has a time in the future, or none.
func TestOldAnswers(t *testing.T) {
	w, s := running(t, 3)
	w.group.failure = "melted"
	w.advance(time.Minute)
	_, err := s.pass()
	require.NoError(t, err)
	require.Equal(t, machinepool.PhaseFailed, w.pool().Status.Phase)
	s.group = nil // another process
	o := s.observe()
	plan := decide(t, w, o)
	assert.Equal(t, machinepool.GetGroup{}, plan.Effect, "nothing is concluded from what was not asked")
	o = s.observe()
	o.Group = w.observed()
	o.Group.At = w.now.Add(time.Hour)
	assert.Equal(t, machinepool.GetGroup{}, decide(t, w, o).Effect)
	o.Group.At = time.Time{}
	assert.Equal(t, machinepool.GetGroup{}, decide(t, w, o).Effect)
}

// BootstrapReady stays as it was until the caller has looked at the bootstrap data.
func TestBootstrapData(t *testing.T) {
	w, s := running(t, 1)
	w.group.ready = false
	s.group = nil
	o := s.observe()
	o.Bootstrap = nil
	plan := decide(t, w, o)
	assert.Nil(t, plan.Write, "nothing is decided before the bootstrap data were looked at")
	for _, c := range []struct {
		boot   machinepool.BootstrapAnswer
		config string
		ready  bool
	}{
		{machinepool.BootstrapAnswer{Found: true, Ready: true}, "kubeadm", true},
		{machinepool.BootstrapAnswer{Found: true}, "kubeadm", false},
		{machinepool.BootstrapAnswer{Ready: true}, "kubeadm", false},
		{machinepool.BootstrapAnswer{Found: true}, "", true},
		{machinepool.BootstrapAnswer{Ready: true}, "", false},
	} {
		o := edited(s.observe(), func(p *machinepool.Pool) {
			p.Spec.Template.Bootstrap.Config = c.config
			p.Status.BootstrapReady = !c.ready
		})
		o.Bootstrap = &c.boot
		assert.Equal(t, c.ready, status(t, decide(t, w, o)).BootstrapReady, "%+v", c)
	}
}

// The token is renewed in time, once in a pass, and only while a machine may need it.
func TestToken(t *testing.T) {
	w, s := running(t, 2)
	w.scaleTo(3)
	boot := *w.boot
	observe := func(left time.Duration) *machinepool.Observation {
		o := s.observe()
		o.Looked = true
		b := boot
		b.TokenExpires = w.now.Add(left)
		o.Bootstrap = &b
		return edited(o, func(p *machinepool.Pool) {
			p.Status.Phase, p.Status.Unavailable, p.Status.ObservedGeneration = machinepool.PhaseProvisioned, 1, p.Generation
		})
	}
	want := machinepool.Renew{Until: w.now.Truncate(time.Second).Add(15 * time.Minute)}
	assert.Equal(t, want, decide(t, w, observe(5*time.Minute)).Effect)
	assert.Equal(t, want, decide(t, w, observe(-time.Hour)).Effect)
	assert.Nil(t, decide(t, w, observe(5*time.Minute+1)).Effect)
	once := observe(time.Minute)
	once.Renewed = &machine.Outcome{}
	assert.NotEqual(t, want, decide(t, w, once).Effect, "the token is renewed twice in a pass")
	none := observe(time.Minute)
	none.Bootstrap.TokenExpires = time.Time{}
	assert.NotEqual(t, want, decide(t, w, none).Effect, "there is no token")
	skipped := edited(observe(time.Minute), func(p *machinepool.Pool) { e := ""; p.Spec.Template.Bootstrap.DataSecret = &e })
	assert.NotEqual(t, want, decide(t, w, skipped).Effect, "there is nothing to bootstrap")
	waiting := observe(5*time.Minute + 3*time.Second)
	waiting.Group = w.observed()
	waiting.Group.Target = 3
	assert.Equal(t, w.now.Add(3*time.Second), decide(t, w, waiting).At, "the token is renewed in time")
	unseen := observe(time.Minute)
	unseen.Nodes = nil
	assert.Equal(t, want, decide(t, w, unseen).Effect, "the token is renewed before the pool grows, even if no nodes are known")
	shrinking := edited(observe(time.Minute), func(p *machinepool.Pool) { n := int32(1); p.Spec.Replicas = &n })
	shrinking.Nodes = map[string]*machine.Node{}
	plan := decide(t, w, reported(t, w, shrinking))
	assert.Equal(t, machinepool.ReasonLeaving, plan.Why.Reason, "no instance will join")
}

// A rejected update has changed nothing: if its template is taken back, no other call is needed. While
// it is rejected, drains go on.
func TestRefusedUpdates(t *testing.T) {
	w, s := running(t, 3)
	s.fault = func(name string) *machine.Outcome {
		if name == "UpdateGroup" {
			return &machine.Outcome{Code: codes.Unimplemented, Message: "not here"}
		}
		return nil
	}
	w.roll("large")
	_, err := s.pass()
	require.NoError(t, err)
	require.Equal(t, machinepool.PhaseFailed, w.pool().Status.Phase)
	w.group.instances[w.ids()[0]].AwaitsDrain = true
	s.calls = nil
	require.NoError(t, s.until(5*time.Minute, func() { w.supply(); w.join() }))
	require.Contains(t, s.calls, ".ReportDrained")
	require.Equal(t, machinepool.PhaseFailed, w.pool().Status.Phase)
	s.calls = nil
	w.roll("small")
	require.NoError(t, s.until(5*time.Minute, func() { w.supply(); w.join() }))
	require.True(t, w.settled(), "%+v", w.pool().Status)
	require.NotContains(t, s.calls, "UpdateGroup")
}

// killedAt makes a pass that is killed just before a call, or after the call is carried out and before
// its answer is stored.
func killedAt(t *testing.T, s *shell, call string, carriedOut bool) {
	t.Helper()
	asked := 0
	s.calls = nil
	s.kill = func() bool {
		if len(s.calls) == 0 || s.calls[len(s.calls)-1] != call {
			return false
		}
		asked++
		return carriedOut == (asked == 2)
	}
	how, err := s.pass()
	require.NoError(t, err)
	require.Equal(t, died, how)
	s.kill, s.group = nil, nil
}

// P36: each call is announced in its own pass. An announcement that a killed process left behind does not
// count for the next pass, even if that pass writes something else first. So a template that is taken back
// is sent, whatever became of the call.
// Invariants: P36
func TestEachOrderIsAnnounced(t *testing.T) {
	settles := func(t *testing.T, w *world, s *shell) {
		t.Helper()
		w.roll("small")
		require.NoError(t, s.until(5*time.Minute, func() { w.supply(); w.join() }))
		require.True(t, w.settled(), "made from %+v: %+v", w.group.made.Template, w.pool().Status)
	}
	t.Run("create", func(t *testing.T) {
		w := newWorld()
		s := &shell{w: w}
		killedAt(t, s, "CreateGroup", false)
		w.roll("large")
		killedAt(t, s, "CreateGroup", true)
		require.Equal(t, "large", w.group.made.Template.Class.Name)
		settles(t, w, s)
	})
	t.Run("update", func(t *testing.T) {
		w, s := running(t, 3)
		w.roll("large")
		killedAt(t, s, "UpdateGroup", true)
		require.Equal(t, "large", w.group.made.Template.Class.Name)
		id := w.ids()[0]
		w.ready(id, object.False) // the next pass records this first
		s.fault = func(name string) *machine.Outcome {
			if name == "UpdateGroup" {
				return &machine.Outcome{Code: codes.Unimplemented, Message: "not here"}
			}
			return nil
		}
		_, err := s.pass()
		require.NoError(t, err)
		require.Contains(t, s.calls, "UpdateGroup")
		s.fault = nil
		w.ready(id, object.True)
		settles(t, w, s)
	})
}

// The condition of an invalid spec is removed when the spec is corrected.
func TestCorrectedSpecLosesItsCondition(t *testing.T) {
	w, s := running(t, 2)
	w.scaleTo(-1)
	require.NoError(t, s.until(time.Minute, func() {}))
	bad := object.FindCondition(w.pool().Status.Conditions, machinepool.ConditionSpecValid)
	require.NotNil(t, bad)
	assert.Equal(t, object.False, bad.Status)
	assert.Equal(t, machinepool.FailureSpec, w.pool().Status.FailureReason)

	w.scaleTo(2)
	require.NoError(t, s.until(time.Minute, func() {}))
	assert.Nil(t, object.FindCondition(w.pool().Status.Conditions, machinepool.ConditionSpecValid))
	assert.Empty(t, w.pool().Status.FailureReason)
	assert.Equal(t, machinepool.PhaseRunning, w.pool().Status.Phase)
}

// TestTokenWhileInstancesAreReplaced: the bootstrap token is renewed for each instance without a node that
// stays, also while the provider has more instances than are wanted, and before an update, for which
// the provider may replace them.
func TestTokenWhileInstancesAreReplaced(t *testing.T) {
	w, s := running(t, 2)
	boot := *w.boot
	boot.TokenExpires = w.now.Add(time.Minute)
	w.boot = &boot
	want := machinepool.Renew{Until: w.now.Truncate(time.Second).Add(15 * time.Minute)}
	assert.NotEqual(t, want, decide(t, w, s.observe()).Effect, "all instances have joined")

	w.roll("large")
	update := s.observe()
	update.Pool.Status.ObservedGeneration = update.Pool.Generation
	assert.Equal(t, want, decide(t, w, update).Effect, "the token is renewed before the update")
	once := *update
	once.Renewed = &machine.Outcome{}
	assert.NotEqual(t, want, decide(t, w, &once).Effect, "the token is renewed twice in a pass")
	w.roll("small")

	extra := "blue:///9"
	w.group.instances[extra] = &machinepool.Instance{ProviderID: extra}
	surge := func() *machinepool.Observation {
		o := s.observe()
		o.Group, o.Looked = w.observed(), true
		return edited(o, func(p *machinepool.Pool) {
			p.Spec.ProviderIDs, p.Status.Replicas, p.Status.ObservedGeneration = w.ids(), int32(len(w.ids())), p.Generation
		})
	}
	assert.Equal(t, want, decide(t, w, surge()).Effect, "a surplus instance has no node yet")
	w.group.instances[extra].Terminating = true
	assert.NotEqual(t, want, decide(t, w, surge()).Effect, "the instance without a node is being removed")
	w.group.instances[extra].Terminating = false
	w.join()
	assert.NotEqual(t, want, decide(t, w, surge()).Effect, "the instance has joined")
}

// TestOwnToken: the caller's own token is created only for a pool that was just read, and removed after the
// group. A failure to remove it is a warning, and delays nothing.
func TestOwnToken(t *testing.T) {
	w := newWorld()
	own := machinepool.BootstrapAnswer{Ready: true, Found: true, TokenExpires: start.Add(-time.Hour), OwnToken: true}
	w.boot, w.pool().Finalizers = &own, []string{machinepool.Finalizer}
	w.edit(func(p *machinepool.Pool) {
		p.Spec.Template.Bootstrap.Config = ""
		p.Status.Phase, p.Status.ObservedGeneration, p.Status.BootstrapReady = machinepool.PhaseProvisioning, p.Generation+1, true
		p.Status.Unavailable = 3
	})
	o := (&shell{w: w}).observe()
	o.Group, o.Looked = w.observed(), true
	assert.Equal(t, machinepool.ReadPool{}, decide(t, w, o).Effect)
	o.Fresh = true
	assert.Equal(t, machinepool.Renew{Until: start.Add(15 * time.Minute)}, decide(t, w, o).Effect)

	p := w.pool().Clone()
	p.DeletedAt, p.Status.Phase = start, machinepool.PhaseDeleting
	o = &machinepool.Observation{Pool: p, Class: w.class, Bootstrap: &own, Fresh: true}
	assert.Equal(t, machinepool.DeleteGroup{}, decide(t, w, o).Effect, "the group is deleted before the token")
	o.GroupDeleted, o.Fresh = &machinepool.Group{}, false
	assert.Equal(t, machinepool.ReadPool{}, decide(t, w, o).Effect)
	o.Fresh = true
	assert.Equal(t, machinepool.RemoveToken{}, decide(t, w, o).Effect)
	o.TokenRemoved = &machine.Outcome{Code: codes.Unavailable, Message: "no answer"}
	plan := decide(t, w, o)
	assert.Empty(t, plan.Write.(*machinepool.Update).Pool.Finalizers)
	assert.Equal(t, "its bootstrap token could not be deleted and will expire: UNAVAILABLE: no answer", plan.Warn.String())
	for _, code := range []codes.Code{codes.OK, codes.NotFound} {
		o.TokenRemoved = &machine.Outcome{Code: code}
		assert.Zero(t, decide(t, w, o).Warn)
	}
	o.TokenRemoved, o.Bootstrap = nil, &machinepool.BootstrapAnswer{}
	assert.NotNil(t, decide(t, w, o).Write, "there is no token of our own")
}
