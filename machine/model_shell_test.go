package machine_test

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// bound is how many decisions a pass may take, and how many passes most tests allow.
const bound = 20

// shell carries plans out, as the manager does. It stands for one process: after a kill a test makes a new one,
// which remembers nothing.
type shell struct {
	w            *world
	noInitialize bool
	failures     int
	written      machine.NodeWrites
	// lag returns by how many versions the next cached read is behind. Nil: by none.
	lag func() int
	// onDecision is called after each decision was carried out; may be nil.
	onDecision func(o *machine.Observation, plan machine.Plan, answer string)
}

// observe returns what a pass begins with, read from caches. Nil: there is no machine.
func (s *shell) observe() *machine.Observation {
	w, lag := s.w, func() int { return 0 }
	if s.lag != nil {
		lag = s.lag
	}
	m := w.store.cached(lag())
	if m == nil {
		return nil
	}
	o := &machine.Observation{
		Machine: m, Class: w.class, Secret: w.secret, Frozen: w.frozen, NoCluster: w.cluster == nil,
		NoDrain: w.cluster == nil || w.cluster.drain == nil, NoInitialize: s.noInitialize, Failures: s.failures, NodeWrites: s.written,
		WatchedSince: w.watched, LedSince: w.led, Missing: w.missing, VMUnhealthy: w.listedUnhealthy, Budgeted: w.budget != nil, Token: w.tokenUse(),
		Marks: pointer(w.marks),
	}
	if w.cachedClass != nil {
		o.Class = w.cachedClass()
	}
	if len(w.fields) > 0 && o.Class != nil {
		o.VMSpec = pointer(machine.SplitSpec(o.Class, w.fields))
	}
	if name := m.Spec.NodeName; name != "" && w.cluster != nil {
		o.Node = &machine.NodeAnswer{Name: name, Node: w.cluster.cached(name, lag())}
	}
	return o
}

// reconcile runs one pass. gone says that the machine no longer exists. A conflict or a kill ends the pass with
// an error.
func (s *shell) reconcile() (plan machine.Plan, gone bool, err error) {
	o := s.observe()
	if o == nil {
		return machine.Plan{}, true, nil
	}
	issued := map[string]bool{}
	for range bound {
		o.ClassBackoff = s.w.classBackoff
		plan = s.decide(o)
		switch {
		case plan.Write != nil:
			err = s.write(o, plan)
			s.report(o, plan, err)
			if err != nil || o.Machine == nil {
				return plan, o.Machine == nil, err
			}
		case plan.Effect != nil:
			key := effectKey(plan.Effect)
			require.False(s.w.t, issued[key], "%s is issued twice in a pass", key)
			issued[key] = true
			err = s.carryOut(o, plan.Effect)
			s.report(o, plan, err)
			if err != nil {
				return plan, false, err
			}
		default:
			s.report(o, plan, nil)
			return plan, false, nil
		}
	}
	require.Fail(s.w.t, "a pass does not end", "last: %s", plan.Why)
	return plan, false, nil
}

func (s *shell) decide(o *machine.Observation) machine.Plan {
	t := s.w.t
	plan, err := machine.Decide(o, s.w.policy, s.w.now)
	require.NoError(t, err)
	require.False(t, plan.Write != nil && plan.Effect != nil, "a write and an effect in one plan")
	require.False(t, plan.Effect != nil && !o.Machine.HasFinalizer(machine.Finalizer), "P11: an effect without our finalizer")
	if _, creates := plan.Effect.(machine.CreateVM); creates {
		require.True(t, o.Fresh, "P13: a create that no write of this pass has announced")
	}
	require.True(t, plan.At.IsZero() || plan.At.After(s.w.now), "At is not in the future")
	require.NotEmpty(t, plan.Why.Reason, "a decision without a reason")
	s.w.requireMoves(o, plan)
	if want := stageBefore(plan.Effect); want != "" && o.Machine.Deleted() {
		require.Equal(t, want, o.Machine.Status.LastOperation.Stage, "%T at the wrong stage: %s", plan.Effect, plan.Why)
	}
	return plan
}

// stageBefore returns the stage of a deletion that must be stored before an effect. Empty: any.
func stageBefore(e machine.Effect) machine.Stage {
	switch e.(type) {
	case *machine.MarkNode, *machine.DrainNode:
		return machine.StageInitiateDrain
	case *machine.DetachVolumes:
		return machine.StageDeleteVolumeAttachments
	case machine.DeleteVM:
		return machine.StageInitiateVMDeletion
	case machine.DeleteNode:
		return machine.StageInitiateNodeDeletion
	case machine.RemoveToken:
		return machine.StageInitiateFinalizerRemoval
	}
	return ""
}

func (s *shell) report(o *machine.Observation, plan machine.Plan, err error) {
	if s.onDecision == nil {
		return
	}
	answer := ""
	if err != nil {
		answer = err.Error()
	} else if plan.Effect != nil {
		answer = answerTo(o, plan.Effect)
	}
	s.onDecision(o, plan, answer)
}

// write carries out a write, and puts the stored machine into the observation.
func (s *shell) write(o *machine.Observation, plan machine.Plan) error {
	var next *machine.Machine
	var failure error
	err := s.w.port(func() {
		switch write := plan.Write.(type) {
		case *machine.Update:
			next, failure = s.w.store.update(write.Machine)
		case *machine.UpdateStatus:
			next, failure = s.w.store.updateStatus(o.Machine.Version, write.Status)
		case *machine.Delete:
			s.w.store.remove()
			next = s.w.store.live()
		}
	})
	if err = errors.Join(err, failure); err != nil {
		return err
	}
	if status, ok := plan.Write.(*machine.UpdateStatus); ok {
		s.count(&o.Machine.Status.LastOperation, &status.Status.LastOperation)
	}
	o.Machine, o.Fresh, o.Failures = next, true, s.failures
	return nil
}

// count counts failures in a row. A step that is announced once more is no success, so it keeps the count.
func (s *shell) count(was, op *machine.Operation) {
	switch {
	case *was == *op:
	case op.State == machine.StateFailed:
		s.failures++
	case op.Stage == machine.StageUpdateVM && op.State == machine.StateProcessing:
	case op.Stage != machine.StageCreateVM && (op.Kind != machine.OperationInPlaceUpdate || op.Stage != was.Stage):
		s.failures = 0
	}
}

// carryOut makes the call of an effect, and puts its answer into the observation.
func (s *shell) carryOut(o *machine.Observation, effect machine.Effect) error {
	c, m := s.w.cluster, o.Machine
	if find, ok := effect.(machine.FindNode); ok && c.unreachable {
		return s.failRead(o, find)
	}
	if err := s.capacity(m, effect); err != nil {
		return err
	}
	conflict := false
	err := s.w.port(func() {
		switch e := effect.(type) {
		case machine.GetVM, machine.CreateVM, machine.InitializeVM, machine.UpdateVM, machine.DeleteVM:
			s.drive(o, effect)
		case machine.FindNode:
			o.Node = &machine.NodeAnswer{Name: e.Name, Node: c.find(m, e.Name), Gone: e.Gone, Read: s.w.read()}
		case *machine.SyncNode:
			written, answer := c.sync(m, e)
			if o.NodeSynced = &answer; written != nil {
				s.written = s.written.With(e, s.w.now)
				o.NodeWrites = s.written
				o.Node = &machine.NodeAnswer{Name: o.Node.Name, Node: written, Gone: o.Node.Gone, Read: s.w.read()}
			}
		case *machine.MarkNode:
			written, answer := c.mark(m, e)
			if o.NodeMarked = &answer; written != nil {
				s.written = s.written.Marked(e, s.w.now)
				o.NodeWrites = s.written
				o.Node = &machine.NodeAnswer{Name: o.Node.Name, Node: written, Gone: o.Node.Gone, Read: s.w.read()}
			}
			conflict = written == nil && answer.Code == codes.OK
		case machine.DeleteNode:
			o.NodeDeleted = pointer(c.remove(m, e))
		case *machine.DrainNode, *machine.DetachVolumes:
			s.drain(o, effect)
		default:
			s.answer(o, effect)
		}
	})
	if err == nil && conflict {
		return errConflict
	}
	return err
}

// answer carries out the effects that ask for a permission or concern a token.
func (s *shell) answer(o *machine.Observation, effect machine.Effect) {
	switch effect.(type) {
	case machine.AskGrant:
		o.Grant = s.w.budget(o.Machine)
	case machine.AskCreate:
		o.CreatePermit = s.w.createPermit(o.Machine)
	case machine.AskUpdate:
		o.UpdateTurn = s.w.answerAskUpdate(o.Machine)
	case machine.EnsureToken, machine.RenewToken, machine.RemoveToken:
		s.w.tokens.call(o, effect)
	}
}

// drive calls the driver for an effect.
func (s *shell) drive(o *machine.Observation, effect machine.Effect) {
	p, m := s.w.provider, o.Machine
	p.class = o.Class
	switch e := effect.(type) {
	case machine.UpdateVM:
		o.Updated = pointer(p.call(codes.UpdateMachine, m, e.LastApplied, p.update))
	case machine.CreateVM:
		p.token = s.w.tokens.tokenForCall(o)
		o.Created = pointer(p.call(codes.CreateMachine, m, "", p.create))
	case machine.InitializeVM:
		o.Initialized = pointer(p.call(codes.InitializeMachine, m, "", p.initialize))
		s.noInitialize = o.Initialized.Code == codes.Unimplemented
	case machine.DeleteVM:
		o.VMDeleted = pointer(p.call(codes.DeleteMachine, m, e.ProviderID, p.remove))
		if code := o.VMDeleted.Code; code == codes.OK || code == codes.NotFound {
			p.deletedOK = true
		}
	default:
		o.VM = pointer(p.call(codes.GetMachineStatus, m, "", p.status))
	}
}

// drain calls the drain for an effect.
func (s *shell) drain(o *machine.Observation, effect machine.Effect) {
	d := s.w.cluster.drain
	if e, ok := effect.(*machine.DrainNode); ok {
		o.Drain = pointer(d.run(o.Machine, e))
	}
	if e, ok := effect.(*machine.DetachVolumes); ok {
		o.Detach = pointer(d.detach(o.Machine, e))
	}
}

// failRead answers a FindNode while the cluster does not answer. Unless the read is forced, it ends the pass.
func (s *shell) failRead(o *machine.Observation, find machine.FindNode) error {
	err := errors.New(codes.Unavailable.Contract())
	if !find.Forced {
		return err
	}
	return s.w.port(func() {
		o.Node = &machine.NodeAnswer{Name: find.Name, Gone: find.Gone, Read: s.w.read(), Failure: err.Error()}
	})
}

// capacity makes the first of the two writes of a SyncNode, if the capacity differs.
func (s *shell) capacity(m *machine.Machine, effect machine.Effect) error {
	sync, ok := effect.(*machine.SyncNode)
	if !ok || !sync.Capacity {
		return nil
	}
	return s.w.port(func() { s.w.cluster.capacity(m, sync) })
}

func pointer[T any](v T) *T { return &v }

// effectKey identifies an effect within a pass.
func effectKey(e machine.Effect) string {
	if mark, ok := e.(*machine.MarkNode); ok {
		return fmt.Sprintf("%T of %s %s", e, mark.Condition.Type, mark.Condition.Reason)
	}
	if reflect.TypeOf(e).Kind() == reflect.Pointer {
		return fmt.Sprintf("%T", e)
	}
	return fmt.Sprintf("%T%v", e, e)
}

// settle runs passes, and lets time pass between them, until nothing is left to happen or the machine is gone.
// After a kill it continues with a new process. Caches are fresh after the first pass. It returns the last
// plan.
func (s *shell) settle(passes int) machine.Plan {
	w := s.w
	var trail []string
	for range passes {
		w.tick()
		plan, gone, err := s.reconcile()
		stale := s.lag != nil
		s.lag = nil // the watch catches up, and there is another pass
		switch {
		case gone && !stale:
			return plan
		case errors.Is(err, errKilled):
			*s = shell{w: w, onDecision: s.onDecision}
			continue
		case errors.Is(err, errConflict), stale:
			continue
		}
		require.NoError(w.t, err)
		if trail = append(trail, plan.Why.String()); len(trail) > 5 {
			trail = trail[1:]
		}
		at := earlier(plan.At, w.next())
		if at.IsZero() {
			return plan
		}
		if at.After(w.now) {
			w.now = at
		}
	}
	require.Fail(w.t, "not settled", "after %d passes: %q", passes, trail)
	return machine.Plan{}
}

// earlier returns the earlier of two times. Zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// answerAskUpdate returns the answer to AskUpdate.
func (w *world) answerAskUpdate(m *machine.Machine) *machine.UpdateTurn {
	if w.updateTurn == nil {
		return &machine.UpdateTurn{Allowed: true}
	}
	return w.updateTurn(m)
}
