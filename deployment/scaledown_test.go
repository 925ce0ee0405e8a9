package deployment_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

func init() {
	scenarios["scaler-chooses"] = scalerChooses
	scenarios["scaler-chooses-while-rolling"] = scalerChoosesWhileRolling
	scenarios["scaler-writes-the-annotation"] = scalerWrites
	scenarios["scaler-against-the-floor"] = scalerAgainstFloor
}

const deletionCandidatesKey = "node.machine.sapcloud.io/trigger-deletion-by-mcm"

// scaleDown lowers replicas as a scaler does that chooses the machines to be deleted.
func (w *world) scaleDown(to int32, names ...string) error {
	o := &deployment.Observation{Deployment: w.deployment, Read: live}
	for _, s := range w.setsOf(w.deployment.UID) {
		o.Sets = append(o.Sets, deployment.Children{Set: s, Machines: w.machinesOf(s.UID)})
	}
	changed, err := deployment.ScaleDown(o, names, to, deployment.DefaultPolicy(), w.now)
	if err == nil && changed != w.deployment {
		changed.Generation++
		_, err = w.updateDeployment(changed)
	}
	return err
}

// noteDeletionCandidates writes the annotations as another program does.
func (w *world) noteDeletionCandidates(text, scaledAt string) {
	d := w.deployment.Clone()
	d.Annotations = maps.Clone(d.Annotations)
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	if d.Annotations[deletionCandidatesKey] = text; scaledAt != "" {
		d.Annotations[scaledAtKey] = scaledAt
	}
	_, _ = w.updateDeployment(d)
}

func (w *world) machine(name string) *machine.Machine {
	i := slices.IndexFunc(w.machines, func(m *machine.Machine) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return w.machines[i]
}

func (s *scenario) writeMachines() {
	for _, m := range s.machines {
		s.comment("machine %s, deleted %v", m.Name, m.Deleted())
	}
	s.comment("annotation %q", s.deployment.Annotations[deletionCandidatesKey])
}

func scalerChooses(t *testing.T) *scenario {
	s := settled(t, web(4))
	s.comment("the third and the fourth should go, %s and %s", s.running(2), s.running(3))
	require.NoError(t, s.scaleDown(2, s.running(2), s.running(3)))
	s.decide()
	s.runSetControllers()
	s.writeMachines()
	s.runRounds(1)
	s.writeMachines()
	return s
}

func scalerChoosesWhileRolling(t *testing.T) *scenario {
	d := web(5)
	d.Spec.Strategy.MaxUnavailable.Value = 1
	s := settled(t, d)
	s.comment("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.runSetControllers()
	s.advanceMachines()
	chosen := s.machines[len(s.machines)-1].Name
	s.comment("a machine of the new set should go, %s", chosen)
	require.NoError(t, s.scaleDown(4, chosen))
	s.decide()
	s.runSetControllers()
	s.writeMachines()
	s.runRounds(8)
	return s
}

func scalerWrites(t *testing.T) *scenario {
	s := settled(t, web(3))
	at := s.now.Truncate(time.Second).Format(time.RFC3339)
	s.comment("a scaler notes what it will take away, badly in part")
	s.noteDeletionCandidates(s.running(1)+"~"+at+",nobody~"+at+",nonsense,"+s.running(2)+"~2020-01-01T00:00:00Z", "")
	s.decide()
	s.writeMachines()
	s.comment("a minute later it takes it away")
	s.pass(time.Minute)
	s.edit(replicas(2))
	s.decide()
	s.runSetControllers()
	s.writeMachines()
	s.runRounds(1)
	s.writeMachines()
	s.comment("it notes another, and somebody wants more machines")
	s.noteDeletionCandidates(s.running(0)+"~"+s.now.Truncate(time.Second).Format(time.RFC3339), "")
	s.decide()
	s.pass(time.Minute)
	s.edit(replicas(3))
	s.decide()
	s.runRounds(1)
	s.writeMachines()
	return s
}

func scalerAgainstFloor(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.setPhase(s.running(0), machine.PhaseUnknown)
	s.comment("the first is ill; the second should go, and two must stay available")
	require.NoError(t, s.scaleDown(2, s.running(1)))
	s.decide()
	s.runSetControllers()
	s.writeMachines()
	s.runRounds(1)
	s.writeMachines()
	return s
}

// TestP20ChosenMachinesGo: if a scaler lowers replicas of a settled fleet, the machines that it chose are deleted.
// During a rollout the bounds are kept at every moment, too. In the end no name is left in the annotation, and no
// set has a candidate that it could delete later.
// Invariants: P20
func TestP20ChosenMachinesGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, false)
		c.edit(func(s *deployment.Spec) {
			s.Strategy.Kind, s.Replicas = deployment.RollingUpdate, rapid.Int32Range(2, 9).Draw(t, "wanted")
		})
		require.GreaterOrEqual(t, c.converge(), 0)
		c.startShell()
		rolling := rapid.Bool().Draw(t, "rolling")
		if rolling {
			c.edit(class(rapid.SampledFrom(classes).Draw(t, "class")))
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps before") {
			rapid.SampledFrom([]func(){c.shellSteps, c.setObeys, c.machineLives}).Draw(t, "actor")()
		}
		var alive []string
		for _, m := range c.machines {
			if !m.Deleted() {
				alive = append(alive, m.Name)
			}
		}
		ceilingBefore, _ := limitsOf(&c.deployment.Spec)
		less := rapid.IntRange(1, int(c.deployment.Spec.Replicas)).Draw(t, "less")
		names := rapid.Permutation(alive).Draw(t, "names")
		names = names[:min(len(names), rapid.IntRange(0, less).Draw(t, "chosen"))]
		require.NoError(t, c.scaleDown(c.deployment.Spec.Replicas-int32(less), names...))
		_, _, before := c.sums()
		for range rapid.IntRange(0, 100).Draw(t, "steps after") {
			rapid.SampledFrom([]func(){c.shellSteps, c.setObeys, c.machineLives, c.crash}).Draw(t, "actor")()
			total, _, now := c.sums()
			ceiling, floor := limitsOf(&c.deployment.Spec)
			require.LessOrEqual(t, total, max(ceiling, ceilingBefore), "P7: %s", c)
			require.GreaterOrEqual(t, now, min(floor, before), "P7: %s", c)
		}
		require.GreaterOrEqual(t, c.converge(), 0)
		requireComplete(t, c.world)
		require.NotContains(t, c.deployment.Annotations, deletionCandidatesKey, "names were left behind")
		for _, name := range names {
			require.True(t, rolling || c.machine(name) == nil, "P20: %s was chosen, available and not in need, and stays", name)
		}
		for _, s := range c.setsOf(c.deployment.UID) {
			for _, v := range s.Instructions.DeletionCandidates {
				require.Nil(t, c.machine(v.Name), "P20: a deletion candidate still exists and could be deleted later")
			}
		}
	})
}

// TestP20CandidatesComeWithASmallerSize: whatever faults occur, a set gets a deletion candidate only together with a
// smaller size, and not before the scaler's own time. It gets no more candidates than machines to delete, and none that
// was chosen before the last change of size. Once settled, no set has a candidate among its machines.
// Invariants: P20
func TestP20CandidatesComeWithASmallerSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		issued := func(kind string, order deployment.Order, pass *deployment.Deployment) {
			c.check(kind, order, pass)
			c.checkDeletionCandidates(kind, order, pass)
		}
		c.shell.issue = issued
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			if rapid.IntRange(0, 5).Draw(t, "scaler") == 0 && c.deployment != nil && len(c.machines) > 0 {
				c.scalerActs()
				continue
			}
			c.randomStep()
			c.shell.issue = issued
		}
		require.GreaterOrEqual(t, c.converge(), 0)
		for _, s := range c.setsOf(c.deployment.UID) {
			for _, v := range s.Instructions.DeletionCandidates {
				m := c.machine(v.Name)
				require.True(t, m == nil || !m.OwnedBy(s.UID) || s.Spec.Replicas == 0, "P20: %s could go in a later reduction", v.Name)
			}
		}
		candidates := c.deployment.Annotations[deletionCandidatesKey]
		require.NotContains(t, candidates, "nonsense")
	})
}

// scalerActs lets a scaler act correctly, or write arbitrary annotations.
func (c *chaos) scalerActs() {
	name := drawOne(c.t, "chosen", c.machines).Name
	if rapid.Bool().Draw(c.t, "by the book") {
		to := rapid.Int32Range(0, max(0, c.deployment.Spec.Replicas)).Draw(c.t, "to")
		_ = c.scaleDown(to, name)
		return
	}
	at := c.now.Add(time.Duration(rapid.IntRange(-60, 60).Draw(c.t, "when")) * time.Second).UTC().Format(time.RFC3339)
	scaledAt := rapid.SampledFrom([]string{"", at}).Draw(c.t, "scaled at")
	entry := name + rapid.SampledFrom([]string{"", "~" + at}).Draw(c.t, "time")
	c.noteDeletionCandidates(c.deployment.Annotations[deletionCandidatesKey]+","+entry+rapid.SampledFrom([]string{"", ",nonsense"}).Draw(c.t, "tail"), scaledAt)
}

// timeOf returns the last time of a name in the annotation. False: the name has no time.
func timeOf(text, name string) (at time.Time, timed bool) {
	for entry := range strings.SplitSeq(text, ",") {
		if n, stamp, _ := strings.Cut(strings.TrimSpace(entry), "~"); n == name {
			if t, err := time.Parse(time.RFC3339, stamp); err == nil && t.After(at) {
				at, timed = t, true
			}
		}
	}
	return at, timed
}

func (c *chaos) checkDeletionCandidates(kind string, order deployment.Order, pass *deployment.Deployment) {
	before := c.set(order.Set.Name)
	if kind != "scale" || before == nil || before.Spec.Replicas < 0 || before.UID != order.Set.UID || before.Version != order.Set.Version {
		return
	}
	candidates := 0
	for _, v := range order.Set.Instructions.DeletionCandidates {
		if slices.ContainsFunc(before.Instructions.DeletionCandidates, v.Equal) {
			continue
		}
		candidates++
		chosen, since, until := v.At, pass.Status.WantedSince, c.now
		said, timed := timeOf(pass.Annotations[deletionCandidatesKey], v.Name)
		if at, err := time.Parse(time.RFC3339, pass.Annotations[scaledAtKey]); err == nil {
			since = slices.MinFunc([]time.Time{pass.Status.ScaledAt, at}, time.Time.Compare)
			until = slices.MaxFunc([]time.Time{at, c.now}, time.Time.Compare)
			chosen = said
			require.Equal(c.t, c.decided.Truncate(time.Second), v.At, "P20: the set needs a time by this process's clock")
		}
		require.False(c.t, timed && chosen.After(until), "P20: %s was chosen for a later change", v.Name)
		require.False(c.t, timed && chosen.Before(since), "P20: %s was chosen for an earlier change", v.Name)
		require.Less(c.t, pass.Spec.Replicas, pass.Status.Wanted, "P20: %s goes though no replica was taken away", v.Name)
	}
	require.LessOrEqual(c.t, candidates, int(max(0, before.Spec.Replicas-order.Set.Spec.Replicas)))
}

// TestScaleDownRefuses: impossible requests are refused, by error and by name.
func TestScaleDownRefuses(t *testing.T) {
	d := stored(3)
	mine := ownSet(d, "web-a", 3)
	mine.Machines[2].DeletedAt = begin
	foreign := ownSet(d, "other", 1)
	foreign.Set.Owner.UID = "another"
	o := &deployment.Observation{Deployment: d, Sets: []deployment.Children{mine, foreign, {}}}
	a, b, deleted, others := mine.Machines[0].Name, mine.Machines[1].Name, mine.Machines[2].Name, foreign.Machines[0].Name
	p := deployment.DefaultPolicy()
	for _, line := range []struct {
		to    int32
		names []string
		want  error
	}{
		{-1, nil, deployment.ErrSize}, {4, nil, deployment.ErrSize}, {2, []string{a, b}, deployment.ErrTooMany},
		{3, []string{a}, deployment.ErrTooMany}, {2, []string{"nobody"}, deployment.ErrNotMember}, {2, []string{""}, deployment.ErrNotMember},
		{2, []string{others}, deployment.ErrNotMember}, {2, []string{deleted}, deployment.ErrMachineDeleting}, {1, []string{a, a}, deployment.ErrNamedTwice},
		{2, []string{a}, nil}, {1, []string{a, b}, nil}, {0, nil, nil},
	} {
		changed, err := deployment.ScaleDown(o, line.names, line.to, p, begin)
		require.ErrorIs(t, err, line.want, "%+v", line)
		if line.want == nil {
			require.NoError(t, err)
			require.Equal(t, line.to, changed.Spec.Replicas)
			require.Equal(t, int32(3), d.Spec.Replicas, "an argument was changed")
			continue
		}
		require.Nil(t, changed)
		require.Contains(t, err.Error(), "fleet/web")
	}
	chosen, err := deployment.ScaleDown(o, []string{a}, 2, p, begin)
	require.NoError(t, err)
	require.Equal(t, a+"~2026-03-01T12:00:00Z", chosen.Annotations[deletionCandidatesKey])
	o.Deployment = chosen
	again, err := deployment.ScaleDown(o, []string{a}, 2, p, begin.Add(time.Hour))
	require.NoError(t, err)
	require.Same(t, chosen, again, "a second call changes nothing")
	_, err = deployment.ScaleDown(o, []string{a}, 1, p, begin)
	require.ErrorIs(t, err, deployment.ErrMachineDeleting, "a machine is chosen for one replica only")
	mine.Set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: b, At: begin}}
	_, err = deployment.ScaleDown(o, []string{b}, 1, p, begin)
	require.ErrorIs(t, err, deployment.ErrMachineDeleting)
	p.Keys.DeletionCandidates = ""
	_, err = deployment.ScaleDown(o, []string{b}, 1, p, begin)
	require.ErrorIs(t, err, deployment.ErrNoKey)
	gone := d.Clone()
	gone.DeletedAt = begin
	_, err = deployment.ScaleDown(&deployment.Observation{Deployment: gone}, nil, 1, p, begin)
	require.ErrorIs(t, err, deployment.ErrDeleting)
	_, err = deployment.ScaleDown(nil, nil, 1, p, begin)
	require.True(t, errors.Is(err, decision.ErrNoObservation))
	again, err = deployment.ScaleDown(o, []string{a}, 2, nil, begin)
	require.NoError(t, err)
	require.Same(t, chosen, again, "a nil policy is the default one")
}

// FuzzDeletionCandidates: any annotation gives a decision, and one that is written back reads as before.
func FuzzDeletionCandidates(f *testing.F) {
	f.Add("a~2026-03-01T12:00:00Z,b~2026-03-01T13:00:00+01:00")
	f.Add(",,~,a~,~2026-03-01T12:00:00Z,a~0000-01-01T00:00:00Z,a~9999-12-31T23:59:59-14:00")
	f.Fuzz(func(t *testing.T, text string) {
		o := settledObservation(t, 2)
		o.Deployment.Annotations = map[string]string{deletionCandidatesKey: text}
		plan, err := deployment.Decide(o, deployment.DefaultPolicy(), begin.Add(time.Minute))
		require.NoError(t, err)
		if w, ok := plan.Write.(*deployment.Update); ok {
			o.Deployment = w.Deployment
			plan, err = deployment.Decide(o, deployment.DefaultPolicy(), begin.Add(time.Minute))
			require.NoError(t, err)
			require.Nil(t, plan.Write, "%s: %q became %q", plan.Why, text, w.Deployment.Annotations[deletionCandidatesKey])
		}
	})
}

// TestP7ChosenMachinesCountAsGone: an available machine that is a set's deletion candidate no longer counts as
// available, even if the set has an unavailable one that it would otherwise delete first. No other available
// machine is removed.
func TestP7ChosenMachinesCountAsGone(t *testing.T) {
	d := stored(5)
	d.Spec.Strategy.MaxSurge.Value, d.Spec.Strategy.MaxUnavailable.Value = 0, 1
	oldest, old, current := another(d, "large", 0, 2), another(d, "huge", 1, 3), ownSet(d, "web-a", 1)
	for _, c := range []deployment.Children{oldest, old, current} {
		c.Set.Instructions.Marks.Avoid = c.Set != current.Set
	}
	current.Set.Revision, current.Set.CreatedAt = 2, begin.Add(time.Hour)
	old.Set.Spec.Replicas = 2
	old.Machines[0].Status.Phase = machine.PhaseUnknown
	old.Set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: old.Machines[1].Name, At: begin}}
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{oldest, old, current}}
	plan := decide(t, o, begin)
	for _, order := range plan.Scale {
		require.NotEqual(t, oldest.Set.UID, order.Set.UID, "P7: three of five would be available, floor is 4: %s", order.Why)
	}
}

// TestP20NoCandidatesWithoutSurplus: the deletion candidates of a set without a surplus are removed.
func TestP20NoCandidatesWithoutSurplus(t *testing.T) {
	o := settledObservation(t, 2)
	o.Sets[0].Set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: o.Sets[0].Machines[0].Name, At: begin}, {Name: "gone", At: begin}}
	plan := decide(t, o, begin)
	require.Len(t, plan.Push, 1)
	require.Equal(t, deployment.ReasonCandidatesDropped, plan.Why.Reason)
	require.Empty(t, plan.Push[0].Set.Instructions.DeletionCandidates)
	o.Sets[0].Set.Instructions.DeletionCandidates = o.Sets[0].Set.Instructions.DeletionCandidates[1:]
	require.Empty(t, decide(t, o, begin).Push, "a name that no machine has costs no write")
}

// TestP20ReductionLastsWhileOrdersAreRefused: after a refusal the status may be written, but Status.Wanted stays until
// the orders are given.
func TestP20ReductionLastsWhileOrdersAreRefused(t *testing.T) {
	o := settledObservation(t, 3)
	d := o.Deployment.Clone()
	d.Spec.Replicas, d.Generation = 2, d.Generation+1
	d.Annotations = map[string]string{deletionCandidatesKey: o.Sets[0].Machines[2].Name + "~" + begin.Format(time.RFC3339)}
	o.Deployment = d
	o.Refused = &deployment.Refusal{Outcome: machine.Outcome{Code: codes.Unavailable}, Until: begin.Add(time.Minute)}
	status := statusOf(t, decide(t, o, begin))
	require.Equal(t, int32(3), status.Wanted)
	d.Status = status
	o.Refused = nil
	plan := decide(t, o, begin.Add(time.Minute))
	require.Len(t, plan.Scale, 1)
	require.Equal(t, []machineset.DeletionCandidate{{Name: o.Sets[0].Machines[2].Name, At: begin}}, plan.Scale[0].Set.Instructions.DeletionCandidates)
}

// TestP20ChoicesOutlastAPause: if a reduction has to wait for a paused set, the chosen machines are deleted when the
// pause is over.
// Invariants: P20
func TestP20ChoicesOutlastAPause(t *testing.T) {
	o := settledObservation(t, 3)
	d, set := o.Deployment.Clone(), o.Sets[0].Set
	d.Spec.Replicas, d.Generation = 2, d.Generation+1
	d.Annotations = map[string]string{deletionCandidatesKey: o.Sets[0].Machines[2].Name + "~" + begin.Format(time.RFC3339)}
	o.Deployment = d
	set.Annotations = map[string]string{"millwright-go/paused": "true"}
	status := statusOf(t, decide(t, o, begin))
	require.Equal(t, int32(3), status.Wanted)
	d.Status = status
	delete(set.Annotations, "millwright-go/paused")
	plan := decide(t, o, begin.Add(time.Hour))
	require.Len(t, plan.Scale, 1, "%s", plan.Why)
	require.Equal(t, []machineset.DeletionCandidate{{Name: o.Sets[0].Machines[2].Name, At: begin}}, plan.Scale[0].Set.Instructions.DeletionCandidates)

	d.Annotations = nil
	set.Annotations = map[string]string{"millwright-go/paused": "true"}
	require.Equal(t, int32(2), statusOf(t, decide(t, o, begin)).Wanted, "without a choice the size is recorded at once")
}

const scaledAtKey = "machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"

// chosenBy returns a fleet of three, last resized a second ago, from which a scaler has just removed one. The scaler
// names the last machine; entry is the format of the annotation.
func chosenBy(t *testing.T, annotations map[string]string, entry string) (o *deployment.Observation, name string) {
	o = settledObservation(t, 3)
	d := o.Deployment.Clone()
	d.Status.WantedSince = begin.Add(-time.Second)
	d.Spec.Replicas, d.Generation = 2, d.Generation+1
	name = o.Sets[0].Machines[2].Name
	d.Annotations = map[string]string{deletionCandidatesKey: name + entry}
	maps.Copy(d.Annotations, annotations)
	o.Deployment = d
	return o, name
}

func deletionCandidatesIn(plan deployment.Plan) (names []string) {
	for _, order := range plan.Scale {
		for _, v := range order.Set.Instructions.DeletionCandidates {
			names = append(names, v.Name)
		}
	}
	return names
}

// TestP20ScalersClock: the times of a scaler are compared only with each other. Its clock may be ahead of this
// process's or behind it.
// Invariants: P20
func TestP20ScalersClock(t *testing.T) {
	stamp := func(skew time.Duration) string { return begin.Add(skew).Format(time.RFC3339) }
	for _, skew := range []time.Duration{-time.Hour, -2 * time.Second, 0, 2 * time.Second, time.Hour} {
		o, name := chosenBy(t, map[string]string{scaledAtKey: stamp(skew)}, "~"+stamp(skew))
		plan := decide(t, o, begin.Add(100*time.Millisecond))
		require.Equal(t, []string{name}, deletionCandidatesIn(plan), "clock %s off: %s", skew, plan.Why)
		require.Equal(t, begin, plan.Scale[0].Set.Instructions.DeletionCandidates[0].At, "the set needs a time by this process's clock")

		o.Sets[0].Set = plan.Scale[0].Set
		o.Sets[0].Set.Status.Replicas = 3
		status := statusOf(t, decide(t, o, begin.Add(time.Second)))
		require.Equal(t, int32(2), status.Wanted)
		require.True(t, status.ScaledAt.Equal(begin.Add(skew)), "%s is noted", status.ScaledAt)

		next, _ := chosenBy(t, map[string]string{scaledAtKey: stamp(skew + time.Minute)}, "~"+stamp(skew-time.Second))
		next.Deployment.Status.ScaledAt = status.ScaledAt
		require.Empty(t, deletionCandidatesIn(decide(t, next, begin.Add(time.Minute))), "clock %s off: the choice is from before the last change", skew)
		next, name = chosenBy(t, map[string]string{scaledAtKey: stamp(skew + time.Minute)}, "~"+stamp(skew+time.Second))
		next.Deployment.Status.ScaledAt = status.ScaledAt
		require.Equal(t, []string{name}, deletionCandidatesIn(decide(t, next, begin.Add(time.Minute))), "if two changes are seen at the same time, both count")
		next, name = chosenBy(t, map[string]string{scaledAtKey: stamp(skew - time.Minute)}, "~"+stamp(skew-time.Minute))
		next.Deployment.Status.ScaledAt = status.ScaledAt
		require.Equal(t, []string{name}, deletionCandidatesIn(decide(t, next, begin.Add(time.Minute))), "another scaler's clock is behind the first one's")
	}
	o, _ := chosenBy(t, map[string]string{scaledAtKey: stamp(0)}, "~"+stamp(time.Minute))
	require.Empty(t, deletionCandidatesIn(decide(t, o, begin.Add(time.Second))), "a choice from after the change belongs to a later one")
}

// TestP20FirstTimeOfAScaler: candidates that a set got before a scaler began to write times do not count against its
// choice.
func TestP20FirstTimeOfAScaler(t *testing.T) {
	stamp := begin.Add(2 * time.Second).Format(time.RFC3339)
	o, name := chosenBy(t, map[string]string{scaledAtKey: stamp}, "~"+stamp)
	gone := machineset.DeletionCandidate{Name: "long-gone", At: begin.Add(-time.Hour)}
	o.Sets[0].Set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{gone}
	require.Contains(t, deletionCandidatesIn(decide(t, o, begin.Add(time.Second))), name)
}

// TestP20NamesWithoutTime: a name without a time counts once, for the reduction with which it is first seen.
func TestP20NamesWithoutTime(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"no time at all": nil, "the time of an earlier change": {scaledAtKey: begin.Add(-time.Hour).Format(time.RFC3339)},
	} {
		o, candidate := chosenBy(t, annotations, "")
		o.Sets[0].Machines[2].Status.Since = begin.Add(-time.Minute) // it has become available since
		plan := decide(t, o, begin.Add(time.Second))
		require.Equal(t, []string{candidate}, deletionCandidatesIn(plan), name)
		require.Equal(t, begin.Add(time.Second), plan.Scale[0].Set.Instructions.DeletionCandidates[0].At, name)

		o.Sets[0].Set = plan.Scale[0].Set
		again := decide(t, o, begin.Add(2*time.Second))
		require.Empty(t, again.Scale, "%s: it is handed over once", name)
		o.Deployment.Status = statusOf(t, again)
		o.StatusWritten = time.Time{}
		require.NotEqual(t, deployment.ReasonCandidatesPruned, decide(t, o, begin.Add(2*time.Second)).Why.Reason, "%s: it stays until the machine goes", name)

		late, _ := chosenBy(t, annotations, "")
		late.Deployment.Spec.Replicas = 3
		plan = decide(t, late, begin.Add(time.Second))
		if s, ok := plan.Write.(*deployment.UpdateStatus); ok {
			late.Deployment.Status = s.Status
			plan = decide(t, late, begin.Add(time.Hour))
		}
		require.Equal(t, deployment.ReasonCandidatesPruned, plan.Why.Reason, "%s: without a reduction it is of no use", name)
		require.NotContains(t, plan.Write.(*deployment.Update).Deployment.Annotations, deletionCandidatesKey)
	}
}

// TestP20UntimedChoiceOutlastsAPause: if a reduction has to wait, so does a name without a time that belongs to it.
func TestP20UntimedChoiceOutlastsAPause(t *testing.T) {
	o, name := chosenBy(t, nil, "")
	set := o.Sets[0].Set
	set.Annotations = map[string]string{"millwright-go/paused": "true"}
	o.Deployment.Status = statusOf(t, decide(t, o, begin))
	require.NotEqual(t, deployment.ReasonCandidatesPruned, decide(t, o, begin.Add(time.Minute)).Why.Reason)
	delete(set.Annotations, "millwright-go/paused")
	require.Equal(t, []string{name}, deletionCandidatesIn(decide(t, o, begin.Add(time.Hour))))
}

// TestP20ScaleDownTimeNeverGoesBack: the times that ScaleDown writes are not before those that a scaler with a
// clock that is ahead wrote earlier.
func TestP20ScaleDownTimeNeverGoesBack(t *testing.T) {
	o := settledObservation(t, 3)
	ahead := begin.Add(time.Minute).Format(time.RFC3339)
	o.Deployment.Annotations = map[string]string{scaledAtKey: ahead}
	name := o.Sets[0].Machines[1].Name
	d, err := deployment.ScaleDown(o, []string{name}, 2, deployment.DefaultPolicy(), begin)
	require.NoError(t, err)
	require.Equal(t, map[string]string{scaledAtKey: ahead, deletionCandidatesKey: name + "~" + ahead}, d.Annotations)
	o.Deployment.Annotations = nil
	d, err = deployment.ScaleDown(o, []string{name}, 2, deployment.DefaultPolicy(), begin)
	require.NoError(t, err)
	now := begin.Format(time.RFC3339)
	require.Equal(t, map[string]string{scaledAtKey: now, deletionCandidatesKey: name + "~" + now}, d.Annotations)
}
