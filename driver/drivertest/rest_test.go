package drivertest

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// restSuite is what the author of a driver for an HTTP API writes.
func restSuite(bug string) Suite {
	class := func(name, size, zone string) *machine.Class {
		return &machine.Class{
			Meta:     object.Meta{Key: object.Key{Name: name}},
			Provider: restProvider, ProviderSpec: []byte(`{"size":"` + size + `","zone":"` + zone + `"}`),
		}
	}
	return Suite{New: func(t *testing.T) Setup {
		cloud := newRestCloud(t)
		return Setup{
			Driver:       &restDriver{url: cloud.URL, client: http.DefaultClient, bug: bug},
			Class:        class("small", "small", "blue"),
			Different:    class("large", "large", "blue"),
			OtherCluster: class("green", "small", "green"),
			Invalid:      class("huge", "huge", "blue"),
			Count:        cloud.count,
		}
	}}
}

// restBugs says which check finds each bug, and with which words. No other check fails.
var restBugs = map[string][2]string{
	bugPanics:       {createAnswersIt, "CreateMachine panicked: assignment to entry in nil map"},
	bugDeletePanics: {"Delete/of an absent VM is OK", "DeleteMachine panicked"},
	bugCreatesAgain: {createRepeats, "adopts the one that is there"},
	bugDoesNotWait:  {deleteRemovesIt, "still exists"},
	bugFirstPage:    {listShows, "ListMachines has the IDs []"},
	bugListsIDs:     {listSpells, "one spelling in all calls"},
	bugListsNames:   {listSpells, "one spelling in all calls"},
	bugStatusIDs:    {statusSpells, "one spelling in all calls"},
}

func TestRestDriver(t *testing.T) { Run(t, restSuite("")) }

func TestOneBugFailsOneCheck(t *testing.T) {
	for bug, want := range restBugs {
		t.Run(bug, func(t *testing.T) {
			all := conformance.InOrder(t, restSuite(bug).checks())
			if failed := conformance.Failures(all); !slices.Equal(failed, []string{want[0]}) {
				t.Errorf("failing are %q, not %q", failed, want[0])
			}
			for _, o := range all {
				if o.Check == want[0] && !strings.Contains(o.Text, want[1]) {
					t.Errorf("%s does not say %q but\n%s", o.Check, want[1], o.Text)
				} else if o.Failed {
					t.Logf("%s: %s", o.Check, o.Text)
				}
			}
		})
	}
}

// A check comes after those it builds on, and each of those is one.
func TestNeedsComeFirst(t *testing.T) {
	var before []string
	for _, c := range (Suite{}).checks() {
		title := c.Group + "/" + c.Name
		for _, need := range c.Needs {
			if !slices.Contains(before, need) {
				t.Errorf("%s comes before %s, which it needs", title, need)
			}
		}
		before = append(before, title)
	}
	for title := range needs {
		if !slices.Contains(before, title) {
			t.Errorf("needs names %q, which is no check", title)
		}
	}
}
