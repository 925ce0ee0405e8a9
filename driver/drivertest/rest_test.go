package drivertest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/millwright-go/millwright/driver"
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
		cloud, faults := newRestCloud(t), &Faults{}
		again := func() driver.Driver {
			return &restDriver{url: cloud.URL, client: &http.Client{Transport: faults}, bug: bug, made: map[string]bool{}}
		}
		return Setup{
			Driver: again(), Again: again, Faults: faults,
			Class:        class("small", "small", "blue"),
			Different:    class("large", "large", "blue"),
			OtherCluster: class("green", "small", "green"),
			Invalid:      class("huge", "huge", "blue"),
			Count:        cloud.count,
			Leftovers:    cloud.leftovers,
			Exhaust:      cloud.exhaust,
			PageSize:     cloud.size,
		}
	}}
}

// restBugs says which check finds each bug, and with which words. No other check fails.
var restBugs = map[string][2]string{
	bugPanics:        {createAnswersIt, "CreateMachine panicked: no zone"},
	bugDeletePanics:  {"Delete/of an absent VM is OK", "DeleteMachine panicked"},
	bugListPanics:    {listShows, "ListMachines panicked"},
	bugStatusPanics:  {statusShows, "GetMachineStatus panicked"},
	bugCreatesAgain:  {createRepeats, "adopts the one that is there"},
	bugDoesNotWait:   {deleteRemovesIt, "still exists"},
	bugLeavesDisk:    {deletesAll, `["disk d1" "disk d3"] is left`},
	bugQuotaCode:     {"Quota/that is used up is ResourceExhausted", "answers Unavailable, not ResourceExhausted"},
	bugLeaksDisk:     {"Quota/that is raised makes one VM, and leaves nothing behind", "takes up what it made"},
	bugSwallows:      {"Faults/of a delete: OK means that the VM is gone", "still exists"},
	bugNothingFound:  {"Faults/of a status: no VM is taken for gone", "says nothing of the VM"},
	bugShortenedList: {"Faults/of a list: no VM is left out", "complete, or an error"},
	bugIgnoresCtx:    {"Context/a call under way ends", "did not return within"},
	bugMutex:         {"Processes/creates of one name from two make one VM", "a lock in one of them is none"},
	bugRemembers:     {secondAdopts, "nothing that another process could not know"},
	bugFirstPage:     {listShows, "ListMachines has the IDs []"},
	bugListsIDs:      {listSpells, "one spelling in all calls"},
	bugListsNames:    {listSpells, "one spelling in all calls"},
	bugStatusIDs:     {statusSpells, "one spelling in all calls"},
}

func TestRestDriver(t *testing.T) { Run(t, restSuite("")) }

// changed changes what New returns.
func (s Suite) changed(change func(*testing.T, *Setup)) Suite {
	of := s.New
	s.New = func(t *testing.T) Setup {
		setup := of(t)
		change(t, &setup)
		return setup
	}
	return s
}

// With pages of more VMs than the suite makes by itself, Setup.PageSize is what finds a driver that
// reads one.
func TestPagesOfManyVMs(t *testing.T) {
	conformance.FailsOnly(t, restSuite(bugFirstPage).changed(func(t *testing.T, s *Setup) {
		cloud := newRestCloud(t)
		cloud.size = 20
		s.Driver.(*restDriver).url = cloud.URL
		s.Count, s.Leftovers, s.Exhaust, s.Again, s.PageSize = cloud.count, cloud.leftovers, cloud.exhaust, nil, cloud.size
	}).checks(), everyPage, "")
}

// What a refused create leaves behind is found by requests that fail, too.
func TestLeakFoundByFaults(t *testing.T) {
	conformance.FailsOnly(t, restSuite(bugLeaksDisk).changed(func(_ *testing.T, s *Setup) { s.Exhaust = nil }).checks(), createsFail, "")
}

// A transport that was not given to the driver proves nothing, and that is said.
func TestFaultsThatAreNotUsed(t *testing.T) {
	said := map[string]bool{}
	for _, o := range conformance.InOrder(t, restSuite("").changed(func(_ *testing.T, s *Setup) { s.Faults = &Faults{} }).checks()) {
		if strings.HasSuffix(o.Left, "goes through Setup.Faults") {
			said[o.Check] = true
		}
	}
	for _, check := range []string{createsFail, "Context/a call under way ends", "Processes/creates of one name from two make one VM"} {
		if !said[check] {
			t.Errorf("%s does not say that it checked nothing", check)
		}
	}
}

// A lock in one process is found without Faults, too.
func TestMutexFoundByARace(t *testing.T) {
	conformance.FailsOnly(t, restSuite(bugMutex).changed(func(_ *testing.T, s *Setup) { s.Faults = nil }).checks(), restBugs[bugMutex][0], "")
}

func TestOneBugFailsOneCheck(t *testing.T) {
	for bug, want := range restBugs {
		t.Run(bug, func(t *testing.T) {
			s := restSuite(bug)
			s.Prompt = conformance.PromptFor(map[string]string{want[0]: want[1]})
			conformance.FailsOnly(t, s.checks(), want[0], want[1])
		})
	}
}

// A failure says which duty was not met, what was seen and why it matters, once.
func TestFailureSaysWhy(t *testing.T) {
	failed := 0
	for _, o := range conformance.InOrder(t, restSuite(bugCreatesAgain).checks()) {
		if !o.Failed {
			continue
		}
		failed++
		for _, want := range []string{"VM \"rest:///blue/s2\"", "\n  duty: Create is idempotent by name", "\n  why it matters: " + why[createRepeats]} {
			if strings.Count(o.Text, want) < 1 || strings.HasPrefix(want, "\n") && strings.Count(o.Text, want) > 1 {
				t.Errorf("the failure does not say %q once:\n%s", want, o.Text)
			}
		}
	}
	if failed == 0 {
		t.Error("nothing fails")
	}
}

func TestDuties(t *testing.T) { duties.Judge(t, (Suite{}).checks()) }
