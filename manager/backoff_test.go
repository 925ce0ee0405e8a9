package manager_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// shortage is a world whose provider answers creates of class small with a code, while the code is set.
type shortage struct {
	*world
	code    codes.Code
	creates []time.Time // of class small, that reached the provider
}

func newShortage(t tb, code codes.Code) *shortage {
	w := &shortage{world: guardedWorld(t), code: code}
	w.safety.CheckPeriod = time.Hour // another test's subject
	w.refuse = func(s driver.CallInfo) error {
		if s.Method != codes.CreateMachine || s.Class.Name != "small" {
			return nil
		}
		w.creates = append(w.creates, w.at)
		if w.code != codes.OK {
			return codes.New(w.code, "not today")
		}
		return nil
	}
	return w
}

// fleetOf stores a deployment of n machines of a class. It makes the class, unless that is small.
func (w *world) fleetOf(name, class string, n int32) {
	if class != "small" {
		c := w.provider.Class(object.Key{Namespace: namespace, Name: class}, drivertest.MemorySpec{Cluster: "blue", Size: "s"})
		c.SecretRef = &object.Key{Name: "boot"}
		_, err := w.classes.Create(ctx, c)
		require.NoError(w.t, err)
	}
	labels := map[string]string{"app": name}
	d := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: name}}}
	d.Spec = deployment.Spec{Replicas: n, Selector: object.Selector{Labels: labels}}
	d.Spec.Strategy.MaxSurge.Value = 1
	d.Spec.Template = machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: class}}}
	_, err := w.deployments.Create(ctx, d)
	require.NoError(w.t, err)
}

// full returns whether that many machines of a deployment run.
func (w *world) full(name string, n int32) func() bool {
	return func() bool {
		d, err := w.deployments.Get(ctx, object.Key{Namespace: namespace, Name: name})
		return err == nil && d.Status.Available == n && d.Status.Replicas == n && w.idle
	}
}

func (w *world) condition(name, typ string) *object.Condition {
	d, err := w.deployments.Get(ctx, object.Key{Namespace: namespace, Name: name})
	require.NoError(w.t, err)
	return object.FindCondition(d.Status.Conditions, typ)
}

// TestQuotaForSixHours: while a quota is used up for six hours, creates first become rarer, and then stay at a few
// an hour, no matter how many machines wait. Once it is raised, all machines run within the longest wait.
// Invariants: P21
func TestQuotaForSixHours(t *testing.T) {
	byHour := map[int32][]int{}
	for _, n := range []int32{3, 12} {
		w := newShortage(t, codes.ResourceExhausted)
		w.fleetOf("web", "small", n)
		begun := w.at
		p := w.start(&testkit.Fuse{}, false)
		for _, hours := range []int{1, 2, 6} {
			p = w.until(p, func() bool { return w.at.Sub(begun) >= time.Duration(hours)*time.Hour }, neverDies(t))
			byHour[n] = append(byHour[n], len(w.creates))
		}
		require.Equal(t, "ResourceExhausted", w.condition("web", deployment.ConditionCreationSlowed).Reason)
		require.Contains(t, w.condition("web", deployment.ConditionReplacementSlowed).Message, "times in a row")
		writes := w.writes
		w.code = codes.OK
		lifted := w.at
		w.until(p, w.full("web", n), neverDies(t))
		require.LessOrEqual(t, w.at.Sub(lifted), 52*time.Minute, "the fleet settles within the longest wait")
		require.Nil(t, w.condition("web", deployment.ConditionCreationSlowed))
		require.Nil(t, w.condition("web", deployment.ConditionReplacementSlowed))
		t.Logf("%d machines: %v creates after 1, 2, 6 h; %d writes in 6 h; all run %s after", n, byHour[n], writes, w.at.Sub(lifted))
	}
	require.Equal(t, byHour[3], byHour[12], "the number of machines does not matter")
	after := byHour[12]
	require.LessOrEqual(t, after[0], 8)
	require.LessOrEqual(t, after[2]-after[1], 4*3, "no more than three an hour")
}

// TestOnlyTriedMachinesFailForWantOfQuota: while a class waits for quota, the creation timeout of machines that
// were not tried does not run. Only machines that were tried are replaced.
func TestOnlyTriedMachinesFailForWantOfQuota(t *testing.T) {
	w := newShortage(t, codes.ResourceExhausted)
	w.fleetOf("web", "small", 12)
	w.until(w.start(&testkit.Fuse{}, false), w.lasts(2*time.Hour), neverDies(t))
	require.Greater(t, len(w.made), 12)
	require.LessOrEqual(t, len(w.made), 12+len(w.creates))
}

// TestOneClassIsSlowedAndAnotherIsNot: of two classes, the provider refuses one. The manager works on the other at
// full speed, and says what is wrong with the first.
// Invariants: P28
func TestOneClassIsSlowedAndAnotherIsNot(t *testing.T) {
	for _, code := range []codes.Code{codes.ResourceExhausted, codes.InvalidArgument, codes.Unauthenticated} {
		w := newShortage(t, code)
		w.fleetOf("poor", "small", 8)
		w.fleetOf("rich", "large", 8)
		begun := w.at
		p := w.until(w.start(&testkit.Fuse{}, false), w.full("rich", 8), neverDies(t))
		require.Less(t, w.at.Sub(begun), 5*time.Second, "at full speed")
		require.Len(t, w.creates, 1)
		require.Nil(t, w.condition("rich", deployment.ConditionCreationSlowed))
		reported := func() bool { return w.condition("poor", deployment.ConditionCreationSlowed) != nil }
		p = w.until(p, reported, neverDies(t))
		c := w.condition("poor", deployment.ConditionCreationSlowed)
		require.Equal(t, object.True, c.Status)
		require.Equal(t, code.String(), c.Reason)
		require.Contains(t, c.Message, fmt.Sprintf("creations of class small are refused with %s since %s; the next is not tried before %s",
			code.Contract(), begun.Format(time.RFC3339), begun.Add(61*time.Second).Format(time.RFC3339)))

		phase, waiting := machine.PhaseNew, 7
		if code == codes.ResourceExhausted { // all say so, as the machine that was tried does
			phase, waiting = machine.PhaseCrashLoopBackOff, 8
		}
		require.Equal(t, waiting, w.phases()[phase])
		w.at = begun.Add(10 * time.Second) // the other fleet has settled by then
		w.round(p)
		writes := w.writes
		for range 5 {
			w.at = w.at.Add(10 * time.Second)
			w.round(p)
			require.Equal(t, writes, w.writes, "P28: machines that wait are not written")
		}

		class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
		require.NoError(t, err)
		class = class.Clone()
		class.NodeTemplate = &machine.NodeShape{Zone: "zone-2"}
		class.ProviderSpec = append([]byte(nil), class.ProviderSpec...)
		_, err = w.classes.Update(ctx, class)
		require.NoError(t, err)
		w.code = codes.OK
		begun = w.at
		w.until(p, w.full("poor", 8), neverDies(t))
		require.Less(t, w.at.Sub(begun), 5*time.Second, "a class that was changed is tried at once")
	}
}

// TestWithoutASafetyPolicyNothingIsSlowed: without a safety policy, refused creates are not remembered.
func TestWithoutASafetyPolicyNothingIsSlowed(t *testing.T) {
	w := newShortage(t, codes.ResourceExhausted)
	w.safety = nil
	w.fleetOf("web", "small", 5)
	w.until(w.start(&testkit.Fuse{}, false), func() bool { return w.phases()[machine.PhaseCrashLoopBackOff] == 5 }, neverDies(t))
	require.Len(t, w.creates, 5)
	require.Nil(t, w.condition("web", deployment.ConditionCreationSlowed))
}

// TestBrokenImage: machines whose nodes never join are replaced ever more slowly, and the deployment says so. A
// new template is rolled out at once, and so is an old one that had worked.
// Invariants: P3
func TestBrokenImage(t *testing.T) {
	w := newShortage(t, codes.OK)
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	broken := true
	w.neverJoins = func(string) bool { return broken }
	image := func(to string) {
		w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"image": to} })
	}
	image("broken")
	begun, before := w.at, len(w.creates)
	p = w.until(p, w.lasts(6*time.Hour), neverDies(t))
	made := len(w.creates) - before
	t.Logf("a broken image: %d creates in %s", made, w.at.Sub(begun))
	require.LessOrEqual(t, made, 11, "there would be 18 without the limit")
	require.GreaterOrEqual(t, made, 8)
	require.Equal(t, 3, w.phases()[machine.PhaseRunning], "the old machines still serve")
	c := w.condition("web", deployment.ConditionReplacementSlowed)
	require.Equal(t, "NeverRan", c.Reason)

	broken, begun = false, w.at
	image("mended")
	p = w.until(p, w.settled(3), neverDies(t))
	require.Less(t, w.at.Sub(begun), time.Minute, "a fix is rolled out at once")
	require.Nil(t, w.condition("web", deployment.ConditionReplacementSlowed))

	broken = true
	image("broken again")
	p = w.until(p, w.lasts(2*time.Hour), neverDies(t))
	require.NotNil(t, w.condition("web", deployment.ConditionReplacementSlowed))
	broken, begun = false, w.at
	w.change(func(d *deployment.Deployment) { d.Spec.RollbackTo = &deployment.Rollback{} })
	p = w.until(p, func() bool { return w.settled(3)() && w.condition("web", deployment.ConditionReplacementSlowed) == nil }, neverDies(t))
	require.Less(t, w.at.Sub(begun), time.Minute, "a rollback is rolled out at once")
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	w.until(p, w.empty, neverDies(t))
}

// TestDeletedWhileSlowed: a fleet that could not be made is deleted without delay.
func TestDeletedWhileSlowed(t *testing.T) {
	w := newShortage(t, codes.ResourceExhausted)
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.lasts(3*time.Hour), neverDies(t))
	begun := w.at
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	w.until(p, w.empty, neverDies(t))
	require.Less(t, w.at.Sub(begun), time.Minute)
}

// shortLife makes a fleet that is refused for two hours, and then succeeds.
func (w *shortage) shortLife(p *process, died func() *process) {
	w.fleet()
	end := w.at.Add(2 * time.Hour)
	p = w.until(p, func() bool { return !w.at.Before(end) }, died)
	w.code = codes.OK
	lifted := w.at
	w.until(p, w.settled(3), died)
	require.LessOrEqual(w.t, w.at.Sub(lifted), 52*time.Minute)
}

// TestQuotaKilledAnywhere kills the manager at calls spread over two hours without quota, and starts a new one.
// The new one does not know what was refused and makes a few more calls; it does know how often machines failed.
// The fleet is made in the end (P12, P13, P26).
// Invariants: P12 P26
func TestQuotaKilledAnywhere(t *testing.T) {
	total := &testkit.Fuse{}
	undisturbed := newShortage(t, codes.ResourceExhausted)
	undisturbed.shortLife(undisturbed.start(total, false), neverDies(t))
	for n := range testkit.EveryNthCall(total.Calls, testkit.Shortened(3, 41)) {
		w := newShortage(t, codes.ResourceExhausted)
		w.shortLife(w.start(&testkit.Fuse{BlowAt: n, BlowAfter: n%2 == 0}, false), func() *process { return w.start(&testkit.Fuse{}, false) })
		require.LessOrEqual(t, len(w.creates), len(undisturbed.creates)+6, "call %d", n)
		require.LessOrEqual(t, len(w.made), len(undisturbed.made)+3, "call %d", n)
	}
}

// TestTurnsPassToTheNext: a machine that has the turn, and meets a conflict or is deleted, passes the turn to the
// next.
func TestTurnsPassToTheNext(t *testing.T) {
	w := newShortage(t, codes.ResourceExhausted)
	w.fleetOf("web", "small", 4)
	p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return len(w.creates) == 1 }, neverDies(t))
	w.code = codes.OK
	// Every machine that looks meets a conflict at its announcement, once.
	machines, err := w.machines.List(ctx, store.Query{})
	require.NoError(t, err)
	require.Len(t, machines, 4)
	disturbed := map[string]bool{}
	p.fuse.Before = func(int) {
		for _, m := range machines {
			if m, err := w.machines.Get(ctx, m.Key); err == nil && !disturbed[m.Name] && w.at.Sub(m.CreatedAt) > time.Minute {
				disturbed[m.Name] = true
				changed := m.Clone()
				changed.Annotations = map[string]string{"somebody": "else"}
				_, err := w.machines.Update(ctx, changed)
				require.NoError(t, err)
				return
			}
		}
	}
	w.until(p, w.full("web", 4), neverDies(t))
	require.Len(t, disturbed, 4)
	require.Less(t, w.at.Sub(machines[0].CreatedAt), 11*time.Minute+time.Second)
}

// TestClassesWakeTheirSets: a change of a class wakes its sets.
func TestClassesWakeTheirSets(t *testing.T) {
	w := newShortage(t, codes.OK)
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
	require.NoError(t, err)
	woken := 0
	for _, wake := range p.Wakes() {
		if wake.From == "class" && wake.To == "set" {
			woken += len(wake.Keys(ctx, class, class))
			require.Empty(t, wake.Keys(ctx, nil, nil))
		}
	}
	require.Equal(t, 1, woken)
}

// TestUnusedTurnPassesOn: a machine that has the turn, and already has a VM, does not create one, and the
// next machine is tried.
func TestUnusedTurnPassesOn(t *testing.T) {
	w := newShortage(t, codes.ResourceExhausted)
	w.fleetOf("web", "small", 3)
	p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return len(w.creates) == 1 }, neverDies(t))
	machines, err := w.machines.List(ctx, store.Query{})
	require.NoError(t, err)
	for _, m := range machines {
		if m.Status.LastOperation.Stage == machine.StageNone { // it was not tried
			w.provider.Add(drivertest.MemoryVM{Name: m.Name, Cluster: "blue", Size: "s", Initialized: true})
			break
		}
	}
	begun := w.at
	w.until(p, func() bool { return len(w.creates) == 2 }, neverDies(t))
	require.Less(t, w.at.Sub(begun), 2*time.Minute)
	require.Equal(t, 1, w.phases()[machine.PhaseRunning]+w.phases()[machine.PhasePending])
}

// TestTurnsAreTakenOneByOne: sixteen workers make passes over sixteen machines of a slowed class. Only one create
// is tried; once it has succeeded the others follow.
func TestTurnsAreTakenOneByOne(t *testing.T) {
	var now, calls, under, most atomic.Int64
	var refuse atomic.Bool
	now.Store(1_800_000_000)
	refuse.Store(true)
	provider := drivertest.NewMemory(drivertest.MemoryOptions{})
	o := manager.InMemory(func() time.Time { return time.Unix(now.Load(), 0) })
	o.Policies.Safety, o.Policies.Machine = safety.DefaultPolicy(), machine.DefaultPolicy()
	o.Policies.Machine.CreationTimeout = time.Hour
	o.Driver = driver.Intercept(provider, func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
		if s.Method != codes.CreateMachine {
			return next(ctx)
		}
		calls.Add(1)
		n := under.Add(1)
		defer under.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			continue
		}
		if refuse.Load() {
			return codes.New(codes.ResourceExhausted, "used up")
		}
		return next(ctx)
	})
	m, err := manager.New(o)
	require.NoError(t, err)
	_, err = o.Store.Classes.Create(ctx, provider.Class(object.Key{Namespace: namespace, Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "s"}))
	require.NoError(t, err)
	var keys []object.Key
	for i := range 16 {
		one := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: fmt.Sprint("m-", i)}, Finalizers: []string{machine.Finalizer}}}
		one.Spec.Class.Name = "small"
		_, err := o.Store.Machines.Create(ctx, one)
		require.NoError(t, err)
		keys = append(keys, one.Key)
	}
	reconcilers := map[manager.Kind]manager.Reconciler{}
	for _, r := range m.Reconcilers() {
		reconcilers[r.Kind()] = r
	}
	_, err = reconcilers[manager.KindReachability].Reconcile(ctx, manager.Fleet)
	require.NoError(t, err)
	// look makes passes over all machines together, and returns their results.
	look := func(later time.Duration) (int64, int64) {
		now.Add(int64(later / time.Second))
		calls.Store(0)
		most.Store(0)
		var wg sync.WaitGroup
		for _, key := range keys {
			wg.Go(func() {
				_, err := reconcilers[manager.KindMachine].Reconcile(ctx, key)
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		return calls.Load(), most.Load()
	}
	first, _ := look(0)
	require.Positive(t, first)
	second, together := look(11 * time.Minute)
	require.EqualValues(t, 1, second, "one create is tried for all machines")
	require.EqualValues(t, 1, together)
	refuse.Store(false)
	look(3 * time.Minute)
	require.Positive(t, provider.Count())
	for range 5 {
		look(15 * time.Second)
	}
	look(10 * time.Minute) // the machine that was refused last has waited longest
	require.Equal(t, 16, provider.Count())
}

// bucket is a provider's limit of calls: one call in each period, and a few more after a quiet time. A refused
// call does not count.
type bucket struct {
	*world
	every          time.Duration
	most           float64 // the calls that it takes after a quiet time
	tokens         float64
	last           time.Time
	taken, refused int
}

func limited(t tb, code codes.Code, burst float64) *bucket {
	b := &bucket{world: guardedWorld(t), every: 2 * time.Second, most: burst, tokens: burst}
	b.safety.CheckPeriod = time.Hour // another test's subject
	b.last = b.at
	b.refuse = func(driver.CallInfo) error {
		b.tokens = min(b.most, b.tokens+b.at.Sub(b.last).Seconds()/b.every.Seconds())
		if b.last = b.at; b.tokens < 1 {
			b.refused++
			err := codes.New(code, "too many requests")
			err.RetryAfter = time.Duration((1-b.tokens)*float64(b.every)) + 1
			return err
		}
		b.tokens--
		b.taken++
		return nil
	}
	return b
}

// TestP56LimitedProvider: a provider that takes 30 calls a minute, and says so, is called about as often as it
// allows. No machine fails because it waits, and none waits as if there were no quota.
// Invariants: P56
func TestP56LimitedProvider(t *testing.T) {
	const n = 40
	for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted} {
		for _, burst := range []float64{1, 2, 10, 40} {
			w := limited(t, code, burst)
			w.fleetOf("web", "small", n)
			begun := w.at
			p := w.until(w.start(&testkit.Fuse{}, false), w.full("web", n), neverDies(t))
			took, least := w.at.Sub(begun), time.Duration(w.taken)*w.every
			t.Logf("burst %v: %d machines run after %s, %s at least; %d calls were refused of %d", burst, n, took, least, w.refused, w.taken+w.refused)
			require.LessOrEqual(t, took, least*5/4+time.Minute)
			require.LessOrEqual(t, w.taken, 3*n+n/4)
			require.Zero(t, w.lost, "machines that failed")
			require.Len(t, w.made, n)
			require.Nil(t, w.condition("web", "CreationSlowed"))

			require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
			begun, w.taken = w.at, 0
			w.until(p, w.empty, neverDies(t))
			require.LessOrEqual(t, w.at.Sub(begun), time.Duration(w.taken)*w.every*5/4+time.Minute)
		}
	}
}

// TestP56WaitsLoseNoAnswer: the provider takes one call at a time. A machine asks for each thing only once,
// although it waits for its turn between two calls: here, for the VM of a create without an answer, and then for
// its deletion.
// Invariants: P56
func TestP56WaitsLoseNoAnswer(t *testing.T) {
	const n = 5
	w := limited(t, codes.Unavailable, 1)
	limit := w.refuse
	unanswered := 0
	w.refuse = func(c driver.CallInfo) error {
		err := limit(c)
		if err == nil && c.Method == codes.CreateMachine {
			unanswered++
			return codes.New(codes.DeadlineExceeded, "no answer")
		}
		return err
	}
	w.fleetOf("web", "small", n)
	p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return unanswered >= n }, neverDies(t))
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	w.taken = 0
	w.until(p, w.empty, neverDies(t))
	require.LessOrEqual(t, w.taken, 4*n)
}

// TestP56WaitsLoseNoStatus: once an initialization has failed, the machine does not keep asking whether its VM is
// initialized, but initializes it.
// Invariants: P56
func TestP56WaitsLoseNoStatus(t *testing.T) {
	const n = 5
	w := limited(t, codes.Unavailable, 1)
	w.provider = drivertest.NewMemory(drivertest.MemoryOptions{NeedsInitialization: true})
	limit, failed := w.refuse, map[object.Key]bool{}
	w.refuse = func(c driver.CallInfo) error {
		err := limit(c)
		if err == nil && c.Method == codes.InitializeMachine && !failed[c.Object] {
			failed[c.Object] = true
			return codes.New(codes.Internal, "not yet")
		}
		return err
	}
	w.fleetOf("web", "small", n)
	w.until(w.start(&testkit.Fuse{}, false), w.full("web", n), neverDies(t))
	require.Len(t, failed, n)
	require.LessOrEqual(t, w.taken, 7*n)
}

// TestP56ListsAndOrphansWait: if the provider limits a list of VMs or the deletion of an orphan, all calls with
// the same credentials wait, and the other way round. Waiting is no failure, and causes no warning.
// Invariants: P56
func TestP56ListsAndOrphansWait(t *testing.T) {
	for _, method := range []codes.Call{codes.ListMachines, codes.DeleteMachine, codes.CreateMachine} {
		t.Run(method.String(), func(t *testing.T) {
			w := guardedWorld(t)
			w.safety.CheckPeriod = time.Hour // another test's subject
			orphanID := w.addOrphanVM("blue", "web-lost")
			s := &testkit.SlowedOnce{Method: method}
			w.refuse = func(c driver.CallInfo) error { return s.Refuse(c.Method, w.at) }
			w.fleetOf("web", "small", 1)
			p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return !s.Until.IsZero() }, neverDies(t))
			if method == codes.DeleteMachine {
				require.True(t, w.vmExists(orphanID))
			}
			w.fleetOf("more", "small", 3)
			p = w.until(p, func() bool { return w.full("web", 1)() && w.full("more", 3)() && !w.vmExists(orphanID) }, neverDies(t))
			w.until(p, func() bool { return w.at.After(s.Until.Add(10 * time.Minute)) }, neverDies(t))
			require.Zero(t, s.Early, "calls that do not wait")
			require.Zero(t, w.countEvents("ListVMsFailed")+w.countEvents("OrphanDeleteFailed"))
			require.Zero(t, w.lost)
		})
	}
}
