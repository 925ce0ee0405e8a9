package replacement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/replacement"
)

// TestSlotsInUse: only permits of machines that are failed or not yet replaced count. Expired
// permits do not count, nor more than machines are missing.
func TestSlotsInUse(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	p := safety.DefaultPolicy()
	at := func(name string, phase machine.Phase) *machine.Machine {
		return &machine.Machine{Meta: object.Meta{Key: object.Key{Name: name}}, Status: machine.Status{Phase: phase}}
	}
	going := at("a", machine.PhaseFailed)
	going.DeletedAt = now
	ok, failed, unknown := machine.PhaseRunning, machine.PhaseFailed, machine.PhaseUnknown
	for name, c := range map[string]struct {
		slots []replacement.Slot
		fleet []*machine.Machine
		used  int
	}{
		"none":                     {nil, []*machine.Machine{at("a", failed)}, 0},
		"given up":                 {[]replacement.Slot{{"a", now}}, []*machine.Machine{at("a", failed), at("b", ok)}, 1},
		"about to be":              {[]replacement.Slot{{"a", now}}, []*machine.Machine{at("a", unknown), at("b", ok)}, 1},
		"about to follow its node": {[]replacement.Slot{{"a", now}}, []*machine.Machine{at("a", ok), at("b", ok)}, 1},
		"not used in time":         {[]replacement.Slot{{"a", now.Add(-24 * time.Hour)}}, []*machine.Machine{at("a", unknown), at("b", ok)}, 0},
		"going":                    {[]replacement.Slot{{"a", now}}, []*machine.Machine{going, at("b", ok)}, 1},
		"gone":                     {[]replacement.Slot{{"a", now}}, []*machine.Machine{at("b", ok)}, 1},
		"made good for":            {[]replacement.Slot{{"a", now}}, []*machine.Machine{at("c", ok), at("b", ok)}, 0},
		"no more than lacks":       {[]replacement.Slot{{"a", now}, {"x", now}, {"y", now}}, []*machine.Machine{nil, at("b", ok)}, 1},
	} {
		holder := &object.Meta{Annotations: map[string]string{p.Keys.Slots: replacement.FormatSlots(c.slots)}}
		used, limit := replacement.SlotsInUse(holder, 2, c.fleet, p, now)
		require.Equal(t, c.used, used, name)
		require.Equal(t, 1, limit, name)
	}
}
