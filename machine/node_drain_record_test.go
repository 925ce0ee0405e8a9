package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// A node's spec is another one when anything in the record of its drain is.
func TestSpecEqualSeesTheDrain(t *testing.T) {
	at := epoch.Truncate(time.Second)
	node := &machine.Node{Drain: &machine.DrainRecord{
		Since: at, Cordoned: at, Forced: at,
		Turn:     machine.DrainTurn{Pod: object.Key{Name: "db"}, UID: "u", Since: at, Grace: time.Minute, Volumes: []string{"v"}, Detached: at},
		Youngest: at, Returns: []machine.DrainReturn{{Controller: "c", Rounds: 1, Youngest: at}}, Emptied: at,
	}}
	require.True(t, node.SpecEqual(node.Clone()))
	assert.False(t, node.SpecEqual(&machine.Node{}))
	assert.False(t, (&machine.Node{}).SpecEqual(node))
	for what, change := range map[string]func(*machine.DrainRecord){
		"since":    func(r *machine.DrainRecord) { r.Since = at.Add(time.Second) },
		"cordoned": func(r *machine.DrainRecord) { r.Cordoned = time.Time{} },
		"forced":   func(r *machine.DrainRecord) { r.Forced = time.Time{} },
		"fenced":   func(r *machine.DrainRecord) { r.Fenced = true },
		"pod":      func(r *machine.DrainRecord) { r.Turn.Pod.Name = "other" },
		"uid":      func(r *machine.DrainRecord) { r.Turn.UID = "other" },
		"turn":     func(r *machine.DrainRecord) { r.Turn.Since = time.Time{} },
		"grace":    func(r *machine.DrainRecord) { r.Turn.Grace = 0 },
		"volumes":  func(r *machine.DrainRecord) { r.Turn.Volumes[0] = "other" },
		"detached": func(r *machine.DrainRecord) { r.Turn.Detached = time.Time{} },
		"youngest": func(r *machine.DrainRecord) { r.Youngest = time.Time{} },
		"returns":  func(r *machine.DrainRecord) { r.Returns[0].Rounds = 2 },
		"round":    func(r *machine.DrainRecord) { r.Returns[0].Youngest = time.Time{} },
		"returner": func(r *machine.DrainRecord) { r.Returns[0].Controller = "other" },
		"emptied":  func(r *machine.DrainRecord) { r.Emptied = time.Time{} },
	} {
		c := node.Clone()
		change(c.Drain)
		assert.False(t, node.SpecEqual(c), what)
		assert.Equal(t, "v", node.Drain.Turn.Volumes[0], "a clone shares nothing")
	}
	assert.True(t, node.SpecEqual(&machine.Node{Drain: node.Drain.Clone()}), "the same instants")
	local := node.Clone()
	local.Drain.Since = at.In(time.FixedZone("elsewhere", 3600))
	assert.True(t, node.SpecEqual(local))
}

func TestUnresponsiveSince(t *testing.T) {
	at := epoch.Truncate(time.Second)
	n := &machine.Node{Conditions: []object.Condition{{Type: machine.NodeReady, Status: object.True, Since: at}}}
	_, yes := n.UnresponsiveSince()
	assert.False(t, yes)
	n.Conditions[0].Status = object.Unknown
	since, yes := n.UnresponsiveSince()
	assert.True(t, yes)
	assert.Equal(t, at, since)
}
