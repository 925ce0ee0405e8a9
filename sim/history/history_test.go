package history_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/sim/history"
)

// These are the limits that the package promises.
const (
	maxSamples = 2048
	maxMarks   = 1024
)

// TestHistoryKeepsEachSecond: while there is room, the history has for every second the counts at its
// end, and the lowest and highest values in it.
func TestHistoryKeepsEachSecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h history.History
		at, last := time.Duration(0), history.Sample{}
		ends, lowest, highest := map[int64]history.Sample{}, map[int64]int{}, map[int64]int{}
		for i := range rapid.IntRange(1, 60).Draw(t, "changes") {
			if i > 0 {
				at += time.Duration(rapid.SampledFrom([]int64{0, 1, 3e8, 1e9, 7e9}).Draw(t, "later"))
			}
			s := drawSample(t)
			s.After = at
			h.Add(s)
			second := int64(at / time.Second)
			if _, known := ends[second]; !known {
				lowest[second], highest[second] = s.Available(), s.Total()
				if i > 0 && same(last, s) { // nothing changed
					continue
				}
			}
			lowest[second], highest[second] = min(lowest[second], s.Available()), max(highest[second], s.Total())
			ends[second], last = s, s
		}
		require.Equal(t, at, h.Length)
		require.Equal(t, time.Second, h.Stride)
		for i := range h.Samples {
			s := h.Samples[i]
			second := int64(s.After / time.Second)
			require.True(t, same(ends[second], s), "%+v is not %+v", s, ends[second])
			require.LessOrEqual(t, s.MinAvailable, lowest[second])
			require.GreaterOrEqual(t, s.MaxTotal, highest[second])
			delete(ends, second)
		}
		require.Empty(t, ends, "seconds without a sample")
	})
}

func drawSample(t *rapid.T) history.Sample {
	n := rapid.IntRange(0, 2)
	return history.Sample{
		Wanted: n.Draw(t, "wanted"), Floor: n.Draw(t, "floor"), Ceiling: n.Draw(t, "ceiling"),
		OldAvailable: n.Draw(t, "old"), NewAvailable: n.Draw(t, "new"), Pending: n.Draw(t, "pending"), Failed: n.Draw(t, "failed"),
	}
}

// same reports whether two samples have the same counts and bounds.
func same(a, b history.Sample) bool {
	a.After, a.MinAvailable, a.MaxTotal, a.Short, a.Over = b.After, b.MinAvailable, b.MaxTotal, b.Short, b.Over
	return a == b
}

// TestLongHistoryStaysSmall: a large fleet changes all the time for two days, with a fault every
// second. The seconds with the fewest available and the most machines are still visible.
func TestLongHistoryStaysSmall(t *testing.T) {
	var h history.History
	const seconds = 48 * 3600
	for i := range seconds {
		s := history.Sample{After: time.Duration(i) * time.Second, Wanted: 1000, Floor: 900, Ceiling: 1100, NewAvailable: 1000 - i%50, Pending: i % 50}
		switch i {
		case 77_777:
			s.NewAvailable = 3
		case 88_888:
			s.Failed = 500
		}
		h.Add(s)
		h.Note(history.Mark{After: s.After, What: fmt.Sprint("fault ", i%7)})
	}
	h.Note(history.Mark{After: seconds * time.Second, Kind: history.Edit, What: "the last one"})
	assert.LessOrEqual(t, len(h.Samples), maxSamples)
	assert.Greater(t, len(h.Samples), maxSamples/4, "room is used")
	assert.LessOrEqual(t, len(h.Marks), maxMarks)
	assert.Equal(t, seconds*time.Second, h.Length)
	assert.LessOrEqual(t, h.Stride, 2*seconds*time.Second/maxSamples*2)
	assert.Zero(t, h.Dropped)
	tally := h.Tally()
	assert.Equal(t, 3, tally.MinAvailable)
	assert.Equal(t, 1500, tally.MaxTotal)
	assert.Equal(t, seconds, tally.Times[history.Fault])
	assert.Equal(t, "the last one", h.Marks[len(h.Marks)-1].What)
	assert.Equal(t, 1000-(seconds-1)%50, h.Last().NewAvailable)
}

// TestMarksAreKept: for any marks in any order, each is counted under its own kind and text, and the
// marks are ordered by time.
func TestMarksAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h history.History
		times, first, last := map[string]int{}, map[string]time.Duration{}, map[string]time.Duration{}
		for range rapid.IntRange(0, 300).Draw(t, "marks") {
			m := history.Mark{
				After: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "after")), Kind: history.Kind(rapid.IntRange(0, 5).Draw(t, "kind")),
				What: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "what"), Times: rapid.IntRange(0, 3).Draw(t, "times"),
			}
			m.Until = m.After + time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "length"))
			h.Note(m)
			k := m.Kind.String() + m.What
			if _, known := first[k]; !known || m.After < first[k] {
				first[k] = m.After
			}
			times[k], last[k] = times[k]+max(m.Times, 1), max(last[k], m.Until)
		}
		require.True(t, slices.IsSortedFunc(h.Marks, func(a, b history.Mark) int { return cmp.Compare(a.After, b.After) }))
		counts := h.Counts()
		require.Len(t, counts, len(times))
		for _, c := range counts {
			k := c.Kind.String() + c.What
			require.Equal(t, times[k], c.Times)
			require.Equal(t, first[k], c.First)
			require.Equal(t, last[k], c.Last)
			require.LessOrEqual(t, c.Last, h.Length)
		}
	})
}

func TestNearMarksAreMerged(t *testing.T) {
	var h history.History
	note := func(after time.Duration, kind history.Kind, what string) {
		h.Note(history.Mark{After: after, Kind: kind, What: what})
	}
	note(time.Second, history.Fault, "a")
	note(time.Second, history.Fault, "b")
	note(1500*time.Millisecond, history.Fault, "a")
	note(2500*time.Millisecond, history.Fault, "a") // near the one before
	note(2500*time.Millisecond, history.Edit, "a")
	note(3501*time.Millisecond, history.Fault, "a") // just too far
	assert.Equal(t, []history.Mark{
		{After: time.Second, Until: 2500 * time.Millisecond, What: "a", Times: 3},
		{After: time.Second, Until: time.Second, What: "b", Times: 1},
		{After: 2500 * time.Millisecond, Until: 2500 * time.Millisecond, Kind: history.Edit, What: "a", Times: 1},
		{After: 3501 * time.Millisecond, Until: 3501 * time.Millisecond, What: "a", Times: 1},
	}, h.Marks)
}

// TestNoRoomForMarks: if no marks can be merged, some are dropped and counted, violations last.
func TestNoRoomForMarks(t *testing.T) {
	var h history.History
	for i := range 3000 {
		h.Note(history.Mark{After: time.Duration(i) * time.Minute, What: fmt.Sprint(i)})
	}
	h.Note(history.Mark{After: 3000 * time.Minute, Kind: history.Violation, What: "at last"})
	assert.Len(t, h.Marks, maxMarks)
	assert.Equal(t, 3001-maxMarks, h.Dropped)
	assert.Equal(t, "at last", h.Marks[maxMarks-1].What)
	assert.Equal(t, "0", h.Marks[0].What)
	for i := range 2000 {
		h.Note(history.Mark{After: 3000 * time.Minute, Kind: history.Violation, What: fmt.Sprint(i)})
	}
	assert.Len(t, h.Marks, maxMarks)
	assert.Equal(t, 5001-maxMarks, h.Dropped)
}

// TestRoomIsMadeForMarks: if there are too many marks, the nearest to each other are merged first.
func TestRoomIsMadeForMarks(t *testing.T) {
	var h history.History
	for i := range 2000 {
		h.Note(history.Mark{After: time.Duration(i) * 3 * time.Second, What: "a"})
	}
	h.Note(history.Mark{After: 3 * time.Hour, What: "a"})
	require.Len(t, h.Marks, 2)
	assert.Equal(t, history.Mark{After: 0, Until: 5997 * time.Second, What: "a", Times: 2000}, h.Marks[0])
	assert.Equal(t, 4*time.Second, h.Gap)
	assert.Zero(t, h.Dropped)
}

func TestTally(t *testing.T) {
	var h history.History
	minute := func(n int, s history.Sample) {
		s.After, s.Wanted, s.Floor, s.Ceiling = time.Duration(n)*time.Minute, 4, 3, 5
		h.Add(s)
	}
	minute(0, history.Sample{Pending: 4})
	minute(2, history.Sample{NewAvailable: 4})
	minute(3, history.Sample{NewAvailable: 2, Unknown: 2})
	minute(5, history.Sample{NewAvailable: 4, Pending: 2, Terminating: 3})
	minute(6, history.Sample{NewAvailable: 4})
	h.Note(history.Mark{After: 10 * time.Minute, Kind: history.Kill, Times: 3})
	want := history.Tally{Reached: 2 * time.Minute, Below: 2 * time.Minute, Short: 1, MinAvailable: 2, Above: time.Minute, Over: 1, MaxTotal: 6, MaxWithTerminating: 9}
	want.Times[history.Kill] = 3
	assert.Equal(t, want, h.Tally())
	assert.Equal(t, 10*time.Minute, h.Length)

	minute(10, history.Sample{Failed: 7}) // holds until the end
	h.Length = 12 * time.Minute
	tally := h.Tally()
	assert.Equal(t, 3*time.Minute, tally.Above)
	assert.Equal(t, 4*time.Minute, tally.Below)

	none := (&history.History{}).Tally()
	assert.Negative(t, none.Reached)
	assert.Zero(t, (&history.History{}).Last())
}

// TestAvailableAndTotal: Available and Total add up the right counts.
func TestAvailableAndTotal(t *testing.T) {
	s := history.Sample{
		OldAvailable: 1, NewAvailable: 2, Pending: 4, Updating: 8, Unknown: 16, CrashLoop: 32, Failed: 64, Terminating: 128,
		Wanted: 1000, Floor: 1000, Ceiling: 1000, MinAvailable: 1000, MaxTotal: 1000, Short: 1000, Over: 1000,
	}
	assert.Equal(t, 3, s.Available())
	assert.Equal(t, 127, s.Total())
}

// TestLateSamples: a sample from before the last one gets the time of the last one.
func TestLateSamples(t *testing.T) {
	var h history.History
	h.Add(history.Sample{After: -time.Hour, Wanted: 1})
	h.Add(history.Sample{After: time.Hour, Wanted: 2})
	h.Add(history.Sample{After: time.Minute, Wanted: 3})
	require.Len(t, h.Samples, 2)
	assert.Equal(t, history.Sample{Wanted: 1}, h.Samples[0])
	assert.Equal(t, history.Sample{After: time.Hour, Wanted: 3}, h.Samples[1])
}

// TestChangesWithinAStride: one sample includes all changes within a stride, also if the fleet leaves
// its bounds or the bounds change.
func TestChangesWithinAStride(t *testing.T) {
	var h history.History
	for i, s := range []history.Sample{
		{Floor: 2, Ceiling: 4, NewAvailable: 3},
		{Floor: 2, Ceiling: 4, NewAvailable: 1, Pending: 5},
		{Floor: 2, Ceiling: 4, NewAvailable: 4},
		{Floor: 0, Ceiling: 3, NewAvailable: 3},
	} {
		s.After = time.Duration(i) * 100 * time.Millisecond
		h.Add(s)
	}
	h.Add(history.Sample{After: time.Second, Floor: 3, Ceiling: 3, NewAvailable: 3})
	assert.Equal(t, []history.Sample{
		{Ceiling: 3, NewAvailable: 3, MinAvailable: 1, MaxTotal: 6, Short: 1, Over: 2},
		{After: time.Second, Floor: 3, Ceiling: 3, NewAvailable: 3, MinAvailable: 3, MaxTotal: 3},
	}, h.Samples)
}

// TestUnchangedFleet: as long as nothing changes there is one sample. Where no machines are wanted, the
// floor does not count as reached.
func TestUnchangedFleet(t *testing.T) {
	var h history.History
	for i := range 100 {
		h.Add(history.Sample{After: time.Duration(i) * time.Minute})
	}
	assert.Equal(t, []history.Sample{{}}, h.Samples)
	assert.Equal(t, 99*time.Minute, h.Length)
	assert.Negative(t, h.Tally().Reached, "nothing was wanted")
}

func TestCloneIsDeep(t *testing.T) {
	var h history.History
	h.Add(history.Sample{Wanted: 1})
	h.Note(history.Mark{What: "a"})
	c := h.Clone()
	assert.Equal(t, &h, c)
	c.Samples[0].Wanted, c.Marks[0].What = 2, "b"
	assert.Equal(t, 1, h.Samples[0].Wanted)
	assert.Equal(t, "a", h.Marks[0].What)
}

func TestKindNames(t *testing.T) {
	seen := map[string]bool{}
	for k := history.Fault; k <= history.Violation; k++ {
		seen[k.String()] = true
	}
	assert.Len(t, seen, 6)
	assert.NotContains(t, seen, "")
	assert.Equal(t, "unknown", history.Kind(200).String())
}
