package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// Preview predicts what a rollout will do. It uses the real decisions about the deployment (Decide)
// and about its sets (machineset.Decide), and a model of how long machines take. It carries nothing
// out, and its time is virtual. The same arguments give the same timeline.
//
// d is the deployment as it should be; sets are its present sets, with their machines. For a future
// rollout, d has the new template. Before the first creation, sets is empty and d may lack its UID.
// Preview changes neither.
//
// Machines that are in transition at the start continue as follows. One coming up is ready when
// Model.Create has passed since its creation. A terminating one is gone when Model.Delete has
// passed since its deletion. An unhealthy one fails at the end of its health timeout, and one in
// CrashLoopBackOff at the end of Model.FailAfter. One selected for an update in place is updated
// when Model.Update has passed. If a machine is late, its time starts again. All others stay as
// they are until they are deleted.
//
// The cost is that of the decisions. Each goes through all machines of its set or of the
// deployment, and a step of a rollout takes about ten of them. Preview stops when ctx ends, or when
// it has spent Model.Budget. It then returns the timeline so far, whose Ending is EndStopped, and a
// *StoppedError.
//
// Every other error is the caller's mistake, and comes with an empty timeline: ErrNoDeployment, or
// an *object.FieldError for a model out of range. A deployment with invalid contents gets a
// timeline whose Ending says so.
func Preview(ctx context.Context, d *Deployment, sets []Children, model Model) (Timeline, error) {
	if d == nil {
		return Timeline{}, fmt.Errorf("deployment.Preview: %w", ErrNoDeployment)
	}
	if err := model.Validate(); err != nil {
		return Timeline{}, err
	}
	p := newPreview(d, sets, model)
	p.interrupted = ctx.Err
	if err := p.run(); err != nil {
		return Timeline{}, err
	}
	if p.halt != nil {
		return p.out, &StoppedError{Key: d.Key, After: p.out.Duration, Decisions: p.decisions, Cause: p.halt}
	}
	return p.out, nil
}

// ErrBudgetSpent is the cause of a *StoppedError for a preview that has spent
// Model.Budget.
var ErrBudgetSpent = errors.New("the budget of decisions is spent (Model.Budget)")

// StoppedError says that a preview was stopped before its end, and how far it got.
type StoppedError struct {
	Key       object.Key    // the deployment's
	After     time.Duration // how far into the rollout, since Model.Start
	Decisions int64         // how many it took, as Model.Budget counts them
	Cause     error         // ErrBudgetSpent, or that of the context
}

// Error returns what was stopped, how far it got, and why.
func (e *StoppedError) Error() string {
	return fmt.Sprintf("preview of %s stopped %s into the rollout, after %d decisions: %v", e.Key, e.After, e.Decisions, e.Cause)
}

// Unwrap returns the cause.
func (e *StoppedError) Unwrap() error { return e.Cause }

// errors of a preview that are not the caller's: none is expected.
var errUnknownWrite = errors.New("deployment.Preview: a plan holds a write of unknown kind")

// The limit of decisions at one moment: a fixed number, and more for each machine.
const (
	momentDecisions  = 1000
	machineDecisions = 64
)

// preview is one call of Preview: a fleet in virtual time, with a shell that carries plans out on
// it.
type preview struct {
	model     Model
	policy    *Policy
	setPolicy *machineset.Policy

	start, now, end time.Time
	calendar        calendar
	numbers         int64 // of events and UIDs, given out so far
	updates         int64 // in place, so far

	deployment *Deployment
	lanes      []*lane
	others     []*machineset.Set // known by name alone
	changed    bool              // since the deployment last had nothing to do
	gone       bool              // the deployment was deleted for good
	told       bool              // sets write their statuses
	wake       time.Time
	why        decision.Why // why the deployment has nothing to do

	inVain int64 // creations that failed since the rollout last made progress
	old    int32 // machines of old sets, the fewest so far
	moment int64 // decisions at this moment

	interrupted func() error // of the caller's context
	decisions   int64        // so far, as Model.Budget counts them
	halt        error        // why the preview stopped before its end

	seen Counts // the fleet as of now
	out  Timeline
}

func newPreview(d *Deployment, sets []Children, model Model) *preview {
	p := &preview{model: model, deployment: d.Clone(), changed: true}
	p.deployment.Spec.MaxAge = 0 // that is something other than a rollout
	p.policy, p.setPolicy = model.policies()
	p.told = d.Spec.Paused // then sets may go at any time
	p.start = model.start(d, sets)
	p.now, p.end = p.start, p.start.Add(model.limit())
	if d.UID == "" {
		p.deployment.UID = p.unique()
	}
	for _, c := range sets {
		p.enroll(c)
	}
	slices.SortStableFunc(p.lanes, func(a, b *lane) int { return olderFirst(a.set, b.set) })
	p.out.Key = d.Key
	p.out.PreviewBounds = p.deployment.previewBounds()
	p.take()
	p.old, p.out.LowestAvailable = p.seen.Old, p.seen.Available()
	return p
}

// previewBounds returns the bounds for d's machines.
func (d *Deployment) previewBounds() PreviewBounds {
	b := d.Spec.bounds()
	replicas := max(d.Spec.Replicas, 0)
	out := PreviewBounds{
		Replicas: replicas, Surge: b.Surge, Unavailable: b.Unavailable,
		Floor: max(0, replicas-b.Unavailable), Ceiling: saturated(int64(replicas) + int64(b.Surge)),
	}
	if d.Deleted() {
		out.Floor = 0
	}
	return out
}

// unique returns a UID that no store gives out.
func (p *preview) unique() string {
	p.numbers++
	return "preview/" + strconv.FormatInt(p.numbers, 10)
}

// enroll adds a set as it was found, if it is the deployment's.
func (p *preview) enroll(c Children) {
	switch {
	case c.Set == nil:
		return
	case !c.Set.OwnedBy(p.deployment.UID):
		p.others = append(p.others, c.Set)
		return
	case p.lane(c.Set.UID) != nil:
		return // each counts once
	}
	l := &lane{set: unmarked(c.Set), changed: true, known: make(map[machineKey]*member, len(c.Machines))}
	p.lanes = append(p.lanes, l)
	for _, m := range c.Machines {
		if m != nil && m.OwnedBy(c.Set.UID) && l.known[keyOf(m)] == nil {
			plain := *m
			plain.Spec.Marks = machine.RolloutMarks{}
			p.enlist(l, plain)
		}
	}
}

// unmarked returns a set without rollout marks and maximum age, which a preview leaves out.
func unmarked(s *machineset.Set) *machineset.Set {
	plain := *s // nothing that it shares is written to
	plain.Instructions.Marks, plain.Spec.MaxAge = machine.RolloutMarks{}, 0
	return &plain
}

// lane returns the lane of the set with this UID. Nil: there is none.
func (p *preview) lane(uid string) *lane {
	for _, l := range p.lanes {
		if l.set.UID == uid {
			return l
		}
	}
	return nil
}

// stamp returns now as stores keep it.
func (p *preview) stamp() time.Time { return p.now.Truncate(time.Second) }

// run goes from moment to moment until there is none left.
func (p *preview) run() error {
	for {
		p.happen()
		p.take()
		if err := p.decide(); err != nil {
			return err
		}
		next, more := p.next()
		if !p.told && (p.complete() || !more) {
			p.tell()
			continue
		}
		p.conclude(next, more)
		if p.out.Ending.Reason != "" {
			return nil
		}
		if next.After(p.now) {
			p.now, p.moment = next, 0
		}
		p.awake()
	}
}

// tell lets the sets write their statuses from now on. Only the end depends on these: they decide
// which sets are history and may go.
func (p *preview) tell() {
	p.told, p.changed = true, true
	for _, l := range p.lanes {
		l.changed = true
	}
}

// conclude ends the preview if it has come to an end. next is when more happens, if there is more.
func (p *preview) conclude(next time.Time, more bool) {
	switch {
	case p.complete():
		p.stop(EndComplete)
	case p.model.hopeless() && p.inVain > int64(p.out.HighestTotal):
		p.stop(EndFailing)
	case !more && p.why.Reason == reasonPaused:
		p.stop(EndPaused)
	case !more:
		p.stop(EndStuck)
	case next.After(p.end):
		p.now = p.end
		p.stop(EndLimit)
	}
}

// stop ends the preview, unless it has ended.
func (p *preview) stop(reason EndReason) {
	if p.out.Ending.Reason != "" {
		return
	}
	e := Ending{Reason: reason, Waits: p.why, After: p.now.Sub(p.start)}
	for _, l := range p.lanes {
		if name := RolloutOf(p.why).Set; name != "" && l.set.Name == name {
			e.Set = l.why
		}
	}
	if reason == EndFailing {
		e.Count = p.inVain
	}
	p.out.Ending, p.out.Complete, p.out.Duration = e, reason == EndComplete, e.After
}

// complete reports whether nothing is left to do, and no machine is left that is going.
func (p *preview) complete() bool {
	return p.gone || RolloutOf(p.why).Reason == rollout.ReasonDone && p.seen.Terminating == 0
}

// next returns the next moment at which something happens. False: there is none.
func (p *preview) next() (time.Time, bool) {
	var at time.Time
	earlier := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for len(p.calendar) > 0 && p.calendar[0].member.next != p.calendar[0].number {
		p.calendar.skip()
	}
	if len(p.calendar) > 0 {
		earlier(p.calendar[0].at)
	}
	earlier(p.wake)
	for _, l := range p.lanes {
		earlier(l.wake)
	}
	return at, !at.IsZero()
}

// awake wakes those whose time has come.
func (p *preview) awake() {
	due := func(t time.Time) bool { return !t.IsZero() && !t.After(p.now) }
	p.changed = p.changed || due(p.wake)
	for _, l := range p.lanes {
		l.changed = l.changed || due(l.wake)
	}
}

// take counts the fleet, and records the counts if they have changed.
func (p *preview) take() {
	counts := p.count()
	if len(p.out.Samples) > 0 && counts == p.seen {
		return
	}
	if counts.Ready > p.seen.Ready || counts.Old < p.old {
		p.inVain = 0
	}
	p.old = min(p.old, counts.Old)
	p.seen = counts
	p.out.Samples = append(p.out.Samples, Sample{p.now.Sub(p.start), counts})
	p.out.LowestAvailable = min(p.out.LowestAvailable, counts.Available())
	p.out.HighestTotal = max(p.out.HighestTotal, counts.Total())
}

// count counts as decisions do.
func (p *preview) count() Counts {
	d := decider{o: p.observation(), p: p.policy, deployment: p.deployment, now: p.now}
	d.count()
	d.current = d.findNewSet()
	var c Counts
	for i := range d.sets {
		f := &d.sets[i]
		c.Ready += f.ready
		if f == d.current {
			c.New, c.NewAvailable = f.actual, f.available
			continue
		}
		c.Old += f.actual
		c.OldAvailable += f.available
	}
	for _, l := range p.lanes {
		c.Terminating += l.terminating
	}
	return c
}

// observation returns what a decision about the deployment is made from.
func (p *preview) observation() *Observation {
	o := &Observation{Deployment: p.deployment, Sets: make([]Children, len(p.lanes)), Read: decision.Freshness{Began: p.now}}
	for i, l := range p.lanes {
		o.Sets[i] = Children{Set: l.set, Machines: l.machines}
	}
	return o
}
