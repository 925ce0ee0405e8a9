package fuzzing_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/test/fuzzing"
)

var form = fuzzing.Form{Now: time.Date(2026, 5, 4, 6, 30, 0, 0, time.UTC), Words: []string{"", "Ready", "True"}}

// TestFormKeepsValues: an encoded value is decoded as it was.
func TestFormKeepsValues(t *testing.T) {
	o := drain.Observation{
		Node: &machine.Node{
			Meta:       object.Meta{Key: object.Key{Name: "node-1"}, Labels: map[string]string{"b": "2", "a": "1"}, Generation: -9},
			Conditions: []object.Condition{{Type: "Ready", Status: "True", Since: form.Now.Add(-time.Hour)}},
		},
		Pods: []*drain.Pod{
			nil, {UID: "u", Grace: 30 * time.Second, Priority: math.MaxInt32, CreatedAt: form.Now.Add(time.Nanosecond)},
			{Grace: time.Millisecond, Budgets: []*drain.Budget{}, GraceEnds: form.Now.AddDate(20, 0, 0)},
		},
		Attachments: []*drain.Attachment{}, Deadline: form.Now.AddDate(7000, 0, 0), Forced: true,
		Memory: &drain.Memory{Answers: map[string]drain.Answer{"u": {Result: drain.Refused, RetryAfter: math.MaxInt64}}},
	}
	var read drain.Observation
	form.Decode(form.Encode(&o), &read)
	require.Equal(t, o, read)
}

// TestFormAtAnotherTime: times keep their distance from the time that was given to At.
func TestFormAtAnotherTime(t *testing.T) {
	then := form.Now.AddDate(1, 2, 3).Add(time.Minute + time.Millisecond)
	o := drain.Observation{Asked: then.Add(-time.Minute).Truncate(time.Second)}
	var read drain.Observation
	form.Decode(form.At(then).Encode(&o), &read)
	require.Equal(t, form.Now.Add(-time.Minute), read.Asked)
}

// TestFormReadsAllBytes: any bytes give values, which stay the same when they are encoded and decoded.
func TestFormReadsAllBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		var o, again drain.Observation
		var p, q machine.Policy
		form.Decode(data, &p, &o)
		form.Decode(form.Encode(&p, &o), &q, &again)
		require.Equal(t, o, again)
		require.Equal(t, p, q)
	})
}
