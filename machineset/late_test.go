package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// lastMoment is a world of a set of two. Its process reserved both names at a
// time with a fraction of a second, made the first machine, and died at the
// last moment at which it might issue the second create. That one will take
// effect at the last moment at which it may.
func lastMoment(t require.TestingT, ms int) (w *world, arrival time.Time) {
	w = newWorld(newSet(2))
	w.now = morning.Add(time.Duration(ms) * time.Millisecond)
	p := newProcess(w, machineset.DefaultPolicy())
	p.delay = func() time.Duration { return p.policy.RequestTimeout - time.Millisecond }
	creates := 0
	p.fault = func(verb string) fault {
		if verb == "create" {
			creates++
		}
		if creates == 2 {
			return lateCrash
		}
		return fine
	}
	p.until(t, func() bool { return creates > 0 })
	w.advance(p.plan.Until.Sub(w.now) - time.Millisecond)
	require.True(t, p.run())
	require.Len(t, w.active(), 1)
	return w, w.late[0].at
}

// TestLastMoment is P12 where it is tightest: whenever others look, nothing is
// put in the place of a create that may still come in.
func TestLastMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, arrival := lastMoment(t, rapid.IntRange(0, 999).Draw(t, "fraction"))
		p := newProcess(w, machineset.DefaultPolicy())
		look := []time.Duration{-2 * time.Minute, -time.Minute, -time.Millisecond, 0, time.Second}
		for range 3 {
			at := arrival.Add(rapid.SampledFrom(look).Draw(t, "look"))
			if at.After(w.now) {
				w.advance(at.Sub(w.now))
			}
			require.True(t, p.run())
		}
		w.advance(time.Hour)
		require.True(t, p.run())
		require.Len(t, w.active(), 2)
		require.Equal(t, int64(2), w.set.Instructions.Reservation.Reserved, "a third name was given out")
	})
}

// TestReadTooEarly: that nothing came of a name is known from a read made after
// the last moment, not from one made earlier in the same pass.
func TestReadTooEarly(t *testing.T) {
	w, arrival := lastMoment(t, 900)
	w.advance(arrival.Sub(w.now) - time.Millisecond)
	w.phase(newSet(0).MachineName(1), machine.PhaseFailed) // makes a live read necessary
	p := newProcess(w, machineset.DefaultPolicy())
	p.until(t, func() bool { return len(p.plan.Delete) > 0 })
	w.advance(time.Minute)
	require.True(t, p.run())
	w.finish()
	require.True(t, p.run())
	require.Len(t, w.active(), 2, "the second machine and one in the place of the first")
	require.Equal(t, int64(3), w.set.Instructions.Reservation.Reserved)
}

// TestReadTooEarlyToLetGo is the same for a set that is being deleted.
func TestReadTooEarlyToLetGo(t *testing.T) {
	w, arrival := lastMoment(t, 900)
	w.edit(func(s *machineset.Set) { s.DeletedAt = w.now.Truncate(time.Second) })
	w.change(newSet(0).MachineName(1), func(m *machine.Machine) { m.Finalizers = nil })
	w.advance(arrival.Sub(w.now) - time.Millisecond)
	p := newProcess(w, machineset.DefaultPolicy())
	p.until(t, func() bool { return len(p.plan.Delete) > 0 })
	p.step()
	p.o.Machines = nil // the first machine went at once
	w.finish()
	w.advance(time.Minute)
	require.True(t, p.run())
	require.NotNil(t, w.set, "the second machine came in meanwhile")
	w.finish()
	require.True(t, p.run())
	require.Nil(t, w.set)
	require.Empty(t, w.all())
}

// TestCreatesHaveAnEnd: no create is ordered after its reservation's time, and
// each plan says until when its orders may be issued.
func TestCreatesHaveAnEnd(t *testing.T) {
	o := fleet(3, 1, false)
	o.Set.Instructions.Reservation = machineset.Reservation{Settled: 1, Reserved: 3, At: morning}
	p := machineset.DefaultPolicy()
	end := morning.Add(p.RequestTimeout)
	o.Read = decision.Freshness{Began: morning}

	plan, err := machineset.Decide(o, p, end.Add(-time.Nanosecond))
	require.NoError(t, err)
	require.Len(t, plan.Create, 2)
	require.Equal(t, end, plan.Until)
	plan, err = machineset.Decide(o, p, end)
	require.NoError(t, err)
	require.Empty(t, plan.Create)

	o.Set.Instructions.Reservation.At = end.Add(time.Hour) // no clock is so far ahead
	plan, err = machineset.Decide(o, p, morning)
	require.NoError(t, err)
	require.Equal(t, machineset.ReasonReserve, plan.Why.Reason)
}

// TestSettledBeforeItsMachinesGo: a set whose deletion was asked for right after it had
// created settles what it sees: with its machines gone it would wait for creates
// that have long been answered.
func TestSettledBeforeItsMachinesGo(t *testing.T) {
	set := newSet(2)
	set.Instructions.Reservation = machineset.Reservation{Reserved: 2, At: morning}
	set.DeletedAt = morning
	o := liveObservation(set, 2)
	for i, m := range o.Machines {
		m.Name = o.Set.MachineName(int64(i) + 1)
	}
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	write, is := plan.Write.(*machineset.Update)
	require.True(t, is, "%s", plan.Why)
	require.Equal(t, int64(2), write.Set.Instructions.Reservation.Settled)

	o.Set, o.Machines = write.Set, nil
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning.Add(time.Second))
	require.NoError(t, err)
	require.Equal(t, machineset.ReasonSetReleased, plan.Why.Reason)
}
