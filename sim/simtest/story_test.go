package simtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

func called(method codes.Call, name, id string) *call {
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: name}}}
	return &call{method: method, machine: m, id: id, answered: true}
}

// TestStory: the lines about the machine are shown, the others are counted, and the last call about the
// machine is marked.
func TestStory(t *testing.T) {
	mine, other := called(codes.CreateMachine, "web-1", "i-1"), called(codes.CreateMachine, "web-10", "i-10")
	gone := called(codes.DeleteMachine, "web-1", "")
	lines := []line{
		{text: "step: roll"},
		{text: "machine web-10: CreateVM"},
		{text: mine.String(), call: mine},
		{text: "CreateMachine of machine web-1: POST /vms: 503"},
		{text: "manager killed after a call"},
		{text: other.String(), call: other},
		{text: "set web: Create: 2 machines"},
		{at: time.Minute, text: gone.String(), call: gone},
		{at: time.Minute, text: "violation of P13: two VMs: i-1"},
	}
	want := `                … 2 lines of others
            0s  driver: CreateMachine web-1 -> OK, VM i-1
            0s  CreateMachine of machine web-1: POST /vms: 503
            0s  manager killed after a call
                … 2 lines of others
>         1m0s  driver: DeleteMachine web-1, no ID -> OK
          1m0s  violation of P13: two VMs: i-1
`
	require.Equal(t, want, newStory(lines, "P13", "two VMs: i-1").text(60))
	require.Contains(t, newStory(lines, "P13", "too much").text(60), ">         1m0s  driver: DeleteMachine web-1", "if the violation names nothing, the last call of all is marked")
	require.Contains(t, newStory(lines, ruleOf(codes.CreateMachine), "two VMs: i-1").text(60), ">           0s  driver: CreateMachine web-1 ", "the call whose answer is false is marked")
}

// TestCallsWithoutAnAnswer: calls that end because the world is closed are shown before the violation.
func TestCallsWithoutAnAnswer(t *testing.T) {
	open := called(codes.CreateMachine, "web-1", "")
	open.answered = false
	j := &journal{lines: []line{{text: "a"}, {text: "violation"}, {text: open.String(), call: open}}}
	var texts []string
	for _, l := range j.upTo(true) {
		texts = append(texts, l.text)
	}
	require.Equal(t, []string{"a", "driver: CreateMachine web-1 -> no answer", "violation"}, texts)
	require.Len(t, j.upTo(false), 3)
	require.Equal(t, "violation", j.upTo(false)[1].text)
}

// TestStackOfADriver: the frames of what calls the driver are left out.
func TestStackOfADriver(t *testing.T) {
	require.Equal(t, "it panicked: x\n\tmine.Create\n\t\tmine.go:1", ofDriver("it panicked: x\n\tmine.Create\n\t\tmine.go:1\n\tgithub.com/millwright-go/millwright/sim/simtest.watched.CreateMachine\n\t\tcalls.go:1\n"))
	require.Len(t, strings.Split(ofDriver(strings.Repeat("a\n", 100)), "\n"), maxStory/3)
}

// TestStoryFits: a story has at most as many lines as allowed, and counts all lines that it leaves out.
func TestStoryFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lines []line
		for range rapid.IntRange(1, 40).Draw(t, "lines") {
			name := fmt.Sprint("web-", rapid.IntRange(1, 3).Draw(t, "machine"))
			l := line{text: "machine " + name + ": FindNode"}
			if rapid.Bool().Draw(t, "call") {
				l.call = called(codes.GetMachineStatus, name, "")
				l.text = l.call.String()
			}
			lines = append(lines, l)
		}
		limit := rapid.IntRange(5, 30).Draw(t, "limit")
		s := newStory(lines, "P13", "machine web-1 is wrong")
		text := s.text(limit)
		told, counted := 0, 0
		for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			n := 0
			if _, err := fmt.Sscanf(strings.TrimSpace(l), "… %d line", &n); err == nil {
				counted += n
				continue
			}
			told++
		}
		if got := strings.Count(text, "\n"); got > limit {
			t.Fatalf("%d lines, at most %d wanted:\n%s", got, limit, text)
		}
		if told+counted != len(lines) {
			t.Fatalf("%d told and %d counted of %d:\n%s", told, counted, len(lines), text)
		}
		if s.guilty >= 0 && !strings.Contains(text, "> ") {
			t.Fatalf("the call to blame is not told:\n%s", text)
		}
	})
}

// TestMentions: a text mentions a name only if it contains the full name.
func TestMentions(t *testing.T) {
	for text, want := range map[string]bool{
		"web-1": true, "machine web-1: x": true, "disk blue/web-1.": true, "web-10": false, "web-10 and web-1": true, "a-web-1": false, "web-1-2": false, "": false,
	} {
		require.Equal(t, want, mentions(text, "web-1"), text)
	}
}
