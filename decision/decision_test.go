package decision_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

type cause string

func (c cause) String() string { return string(c) }

// TestSentences: every kind of word, with a value and without.
func TestSentences(t *testing.T) {
	for _, c := range []struct {
		template string
		why      decision.Why
		want     string
	}{
		{"", decision.Why{}, ""},
		{"{name} {detail} {object}", decision.Why{}, `"" "" ""`},
		{"{name} {detail}", decision.Why{Name: "a", Detail: "b"}, "a b"},
		{"{object}", decision.Why{Object: object.Key{Namespace: "n", Name: "a"}}, "n/a"},
		{"{code}", decision.Why{Code: codes.NotFound}, codes.NotFound.Contract()},
		{
			"{have} {want} {count} {all} {ready} {available} {number}",
			decision.Why{Have: 1, Want: 2, Count: 3, All: 4, Ready: 5, Available: 6, Number: 7},
			"1 2 3 4 5 6 7",
		},
		{"{count|set|sets}", decision.Why{Count: 0}, "0 sets"},
		{"{count|set|sets}", decision.Why{Count: 1}, "1 set"},
		{"{count|set|sets}", decision.Why{Count: 2}, "2 sets"},
		{"{for} {wait}", decision.Why{For: 1600 * time.Millisecond}, "2s 1.6s"},
		{"{cause}.", decision.Why{}, "."},
		{"{cause}.", decision.Why{Cause: cause("x")}, "x."},
		{"a[ {for} ago]", decision.Why{}, "a"},
		{"a[ {for} ago]", decision.Why{For: time.Second}, "a 1s ago"},
		{"[again in {for}|again later]!", decision.Why{}, "again later!"},
		{"[again in {for}|again later]!", decision.Why{For: time.Second}, "again in 1s!"},
		{"[{count|set|sets}|none]", decision.Why{}, "none"},
		{"[{count|set|sets}|none]", decision.Why{Count: 1}, "1 set"},
		{"[{name}, {detail}|neither {name}]", decision.Why{Name: "a"}, "neither a"},
		{"{unknown} {name", decision.Why{}, "{unknown} {name"},
		{"[open {name}", decision.Why{Name: "a"}, "[open {name}"},
	} {
		c.why.Reason = decision.NewReason("R", c.template)
		require.Equal(t, c.want, c.why.String(), c.template)
	}
	require.Empty(t, decision.Why{Name: "a"}.String(), "without a reason")
	require.Empty(t, decision.Reason{}.String())
}

// TestValuesAreNotTemplates: the text of a field appears unchanged, even if it looks like a template.
func TestValuesAreNotTemplates(t *testing.T) {
	reason := decision.NewReason("R", "<{name}[|{detail}]>")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[{}|a-z\[\]]{1,20}`)
		name, detail := text.Draw(t, "name"), text.Draw(t, "detail")
		require.Equal(t, "<"+name+">", decision.Why{Reason: reason, Name: name, Detail: detail}.String())
	})
}

// TestFigures: Figures returns the numbers that the sentence shows, including each zero that it shows.
func TestFigures(t *testing.T) {
	type figure struct {
		name string
		n    any
	}
	figures := func(why decision.Why) (out []figure) {
		for name, n := range why.Figures() {
			out = append(out, figure{name, n})
		}
		return out
	}
	inner := decision.Why{Reason: decision.NewReason("I", "{available}"), Available: 7}
	for _, c := range []struct {
		template string
		why      decision.Why
		want     []figure
	}{
		{"", decision.Why{}, nil},
		{"{name}", decision.Why{Name: "a"}, nil},
		{"{have} of {want|machine|machines}", decision.Why{Want: 6}, []figure{{"have", int64(0)}, {"want", int64(6)}}},
		{"a[ {count|set|sets}] {all}[ {ready}]", decision.Why{Ready: 2}, []figure{{"all", int64(0)}, {"ready", int64(2)}}},
		{"a[ {number}", decision.Why{}, nil},
		{"[in {for}|later]", decision.Why{}, nil},
		{"{count}", decision.Why{Count: 1, Ready: 2, For: time.Second}, []figure{{"count", int64(1)}}},
		{"[in {wait}]", decision.Why{For: time.Second}, []figure{{"for", time.Second}}},
		{"[in {for}|later]", decision.Why{For: time.Second}, []figure{{"for", time.Second}}},
		{"{count}: {cause}", decision.Why{Count: 1, Cause: inner}, []figure{{"count", int64(1)}, {"available", int64(7)}}},
		{"{count}: {cause}", decision.Why{Count: 1, Cause: cause("x 3")}, []figure{{"count", int64(1)}}},
	} {
		c.why.Reason = decision.NewReason("R", c.template)
		require.Equal(t, c.want, figures(c.why), c.template)
	}
	require.Empty(t, figures(decision.Why{}), "without a reason")
	for range (decision.Why{Count: 1, Cause: inner}).Figures() {
		break // the loop may end early
	}
	for range (decision.Why{For: 1, Cause: inner}).Figures() {
		break
	}
}

// TestReasonsAreComparedByDeclaration: two declarations with equal texts are two reasons.
func TestReasonsAreComparedByDeclaration(t *testing.T) {
	a, b := decision.NewReason("R", "s"), decision.NewReason("R", "s")
	require.Equal(t, "R", a.String())
	again := a
	require.True(t, a == again && a != b)
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = decision.Why{Reason: a, Name: "n", Have: 3} }))
}

// TestFreshness: a read covers what was stored before it began, and its age counts from its end.
func TestFreshness(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	after := func(d time.Duration) time.Time { return at.Add(d) }
	var cached decision.Freshness
	require.False(t, cached.Live() || cached.Covers(time.Time{}) || cached.Within(time.Hour, at))
	live := decision.Freshness{Began: at, Ended: after(time.Minute)}
	require.True(t, live.Live())
	require.True(t, live.Covers(at) && live.Covers(after(-1)))
	require.False(t, live.Covers(after(1)), "stored after the read began")
	require.True(t, live.Within(time.Second, after(time.Minute)))
	require.True(t, live.Within(time.Second, after(time.Minute+time.Second-1)))
	require.False(t, live.Within(time.Second, after(time.Minute+time.Second)), "too old")
	require.False(t, live.Within(time.Hour, after(time.Minute-1)), "the clock was set back")
	require.Equal(t, after(2*time.Minute), live.Until(time.Minute, at))
	untimed := decision.Freshness{Began: at}
	require.True(t, untimed.Within(time.Second, after(time.Hour)), "it ended just now")
	require.Equal(t, after(time.Hour+time.Second), untimed.Until(time.Second, after(time.Hour)))
}

// TestFirstOf: the first step that has something to do is the last one called.
func TestFirstOf(t *testing.T) {
	var called []string
	step := func(name string, found bool) func(*testing.T) (string, bool) {
		return func(*testing.T) (string, bool) {
			called = append(called, name)
			return name, found
		}
	}
	plan, found := decision.FirstOf(t, step("a", false), step("b", true), step("c", true))
	require.True(t, found)
	require.Equal(t, "b", plan)
	require.Equal(t, []string{"a", "b"}, called)
	plan, found = decision.FirstOf(t, step("a", false))
	require.False(t, found)
	require.Empty(t, plan, "the result of a step that found nothing is no plan")
}
