package manager_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// strategies that fleets live by in turn.
var strategies = []deployment.Strategy{
	{MaxSurge: rollout.IntOrPercent{Value: 1}},
	{MaxUnavailable: rollout.IntOrPercent{Value: 1}},
	{MaxSurge: rollout.IntOrPercent{Value: 25, Percent: true}, MaxUnavailable: rollout.IntOrPercent{Value: 25, Percent: true}},
	{MaxSurge: rollout.IntOrPercent{Value: 100, Percent: true}},
	{Kind: deployment.Recreate},
}

// swiftLife is the nth life of a fleet in a world: it is made, rolled, grown,
// rolled and shrunk at the same time, loses a few of its machines, and goes.
type swiftLife struct {
	w        *swift
	name     string
	replicas int32
	most     int // machines that may have been made so far
}

// live lives the nth life. Fleets have 3 to 20 machines.
func (w *swift) live(n int) error {
	l := &swiftLife{w: w, name: fmt.Sprint("web", n), replicas: int32(3 + n*7%18)}
	w.book.born = 0
	d := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: l.name}}}
	d.Spec.Replicas, d.Spec.Strategy = l.replicas, strategies[n%len(strategies)]
	d.Spec.Selector.Labels = map[string]string{"app": l.name}
	d.Spec.Template.Labels = d.Spec.Selector.Labels
	d.Spec.Template.Spec.Class.Name = "small"
	d.Spec.Template.Spec.NodeTemplate.Labels = map[string]string{"pool": "a", "zone": "b"}
	if _, err := w.deployments.Create(context.Background(), d); err != nil {
		return err
	}
	l.most = int(l.replicas)
	for _, stage := range []func(*swiftLife) error{
		(*swiftLife).rest, (*swiftLife).roll, (*swiftLife).grow, (*swiftLife).rollAndShrink, (*swiftLife).lose, (*swiftLife).end,
	} {
		if err := stage(l); err != nil {
			return fmt.Errorf("life %d, %d of %d machines of %d: %w", n, w.book.serving, w.book.total, l.replicas, err)
		}
	}
	return nil
}

// rest waits until the fleet is complete. No more machines were made than had
// to be (P12), and nothing is done any more (P28).
func (l *swiftLife) rest() error {
	w := l.w
	if err := l.until(w.book.complete); err != nil {
		return err
	}
	machines, err := w.machines.List(context.Background(), store.Query{})
	if err != nil {
		return err
	}
	if err := w.book.recount(machines); err != nil {
		return err
	}
	if w.book.born > l.most {
		return fmt.Errorf("P12: %d machines were made, %d were missing", w.book.born, l.most)
	}
	return l.quiet()
}

// swiftLimit bounds the passes of one stage of a life.
const swiftLimit = 5_000

func (l *swiftLife) until(goal func() bool) error {
	w := l.w
	for range swiftLimit {
		if w.err != nil {
			return w.err
		}
		if goal() {
			return nil
		}
		if !w.step() {
			return errors.Join(w.err, errors.New("nothing is due any more"))
		}
	}
	return fmt.Errorf("P3: no end after %d passes", swiftLimit)
}

// quiet checks that a settled fleet stays so for some seconds, for any
// object that is looked at.
func (l *swiftLife) quiet() error {
	w := l.w
	settled := w.now.Add(3 * time.Second) // late statuses
	if err := l.until(func() bool { return !w.now.Before(settled) || !w.soon(settled) }); err != nil {
		return err
	}
	before := w.writes
	w.now = w.now.Add(3 * time.Second) // a status may be written again
	for _, it := range w.items {
		w.add(it)
	}
	for w.head < len(w.due) && w.err == nil {
		w.step()
	}
	if n := w.writes - before; n > 0 {
		return fmt.Errorf("P28: %d writes, and nothing was to be done", n)
	}
	return w.err
}

// soon reports whether anything is due before a time.
func (w *swift) soon(end time.Time) bool {
	if w.head < len(w.due) {
		return true
	}
	for _, it := range w.items {
		if !it.at.IsZero() && it.at.Before(end) {
			return true
		}
	}
	return false
}

// change changes what is wanted.
func (l *swiftLife) change(how func(*deployment.Spec)) error {
	changed := l.w.book.fleet.Clone()
	how(&changed.Spec)
	l.replicas = changed.Spec.Replicas
	_, err := l.w.deployments.Update(context.Background(), changed)
	return err
}

func (l *swiftLife) roll() error {
	l.most += int(l.replicas)
	return errors.Join(l.change(func(s *deployment.Spec) { s.Template.Spec.Class.Name = "large" }), l.rest())
}

func (l *swiftLife) grow() error {
	l.most += 2
	return errors.Join(l.change(func(s *deployment.Spec) { s.Replicas += 2 }), l.rest())
}

// rollAndShrink wants fewer machines while they are being exchanged.
func (l *swiftLife) rollAndShrink() error {
	l.most += int(l.replicas)
	half, before := int(l.replicas)/2, l.w.book.born
	return errors.Join(
		l.change(func(s *deployment.Spec) { s.Template.Spec.Class.Name = "small" }),
		l.until(func() bool { return l.w.book.born-before >= half }),
		l.change(func(s *deployment.Spec) { s.Replicas -= 2 }),
		l.rest())
}

// lose has a fifth of the nodes, one at least, never be ready again.
func (l *swiftLife) lose() error {
	all, err := l.w.nodes.List(context.Background(), store.Query{})
	lost := 1 + len(all)/5
	for _, n := range all[:lost] {
		err = errors.Join(err, l.w.ready(n, object.False))
	}
	l.most += lost
	return errors.Join(err, l.rest())
}

func (l *swiftLife) end() error {
	d := l.w.book.fleet
	if err := l.w.deployments.Delete(context.Background(), d.Key, d.UID); err != nil {
		return err
	}
	if err := l.until(func() bool { return l.w.book.fleet == nil }); err != nil {
		return err
	}
	left, err := l.w.nodes.List(context.Background(), store.Query{})
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("%d nodes are left", len(left)))
	}
	return err
}

// Small fleets live their lives, and each write and each call is held to what
// can be seen of P4, P7 to P10, P12 to P14, P16 to P18, P23, P28 and P29.
func TestSwiftLives(t *testing.T) {
	w, err := newSwift()
	require.NoError(t, err)
	for n := range 10 {
		require.NoError(t, w.live(n))
	}
	require.Greater(t, w.decisions, 10*400)
	t.Logf("%d decisions that came to something, %d writes, %d passes", w.decisions, w.writes, w.passes)
}

// BenchmarkDecisions has small fleets live their lives, as TestSwiftLives does,
// and reports how many decisions a second of processor time come to a write,
// an effect or orders. To read live is none of these; orders given together
// are one. Garbage collection is in it, and so are all checks, after each
// write and call.
func BenchmarkDecisions(b *testing.B) {
	w, err := newSwift()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	begin, n := read(), 0
	for b.Loop() {
		if err := w.live(n); err != nil {
			b.Fatal(err)
		}
		n++
	}
	end := read()
	b.ReportMetric(float64(w.decisions)/(end.cpu-begin.cpu).Seconds(), "decisions/cpu-s")
	b.ReportMetric(float64(w.decisions)/float64(n), "decisions/life")
	b.ReportMetric(float64(w.writes)/float64(n), "writes/life")
	b.ReportMetric(float64(w.passes)/float64(n), "passes/life")
}
