package simtest

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/internal/restcloud"
)

// restOptions returns options with the driver of a cloud with a REST API, which has the given mistake.
func restOptions(bug restcloud.Bug) Options {
	return Options{
		Class: func(name string) *machine.Class { return restcloud.Class(object.Key{}, name) },
		New: func(w *sim.World) Setup {
			cloud := restcloud.New(w.After)
			client := &http.Client{Transport: &sim.Transport{World: w, Handler: cloud}}
			return Setup{
				Driver: func() driver.Driver {
					return &restcloud.Driver{URL: "http://cloud", Client: client, Sleep: w.Sleep, Bug: bug}
				},
				Left: cloud.Disks,
				Exhaust: func(context.Context) func() {
					cloud.SetFull(true)
					return func() { cloud.SetFull(false) }
				},
			}
		},
	}
}

// TestMistakesBelowHTTPAreFound: Run finds all twelve mistakes with default settings, and reports each by
// its rule, in a story that is short enough.
func TestMistakesBelowHTTPAreFound(t *testing.T) {
	for bug, want := range map[restcloud.Bug]string{
		restcloud.Panics:         `driver panicked: the driver panicked in CreateMachine`,
		restcloud.CreatesAgain:   `answer of CreateMachine: VM \S+ was made for machine \S+, which had VM \S+\n`,
		restcloud.DoesNotWait:    `answer of DeleteMachine: it says OK for machine \S+, and VM \S+ is still there\n`,
		restcloud.SwallowsErrors: `answer of DeleteMachine: it says OK for machine \S+, and VM \S+ is still there\n`,
		restcloud.ListsFirstPage: `answer of ListMachines: VM \S+ of machine \S+ is missing`,
		restcloud.QuotaCode:      `answer of CreateMachine: it says Unavailable for machine \S+ while the quota is used up`,
		restcloud.IgnoresContext: `context: \w+ .*still runs`,
		restcloud.LeaksDisk:      `left at the provider: disk `,
		restcloud.DeletesNothing: `answer of DeleteMachine: it says OK for machine \S+, and VM \S+ is still there\n`,
		restcloud.WrongName:      `answer of CreateMachine: it says that VM \S+ is machine \S+'s, and ListMachines that it is machine vm-`,
		restcloud.NeedsID:        `(left at the provider: disk |answer of DeleteMachine: it says OK)`,
		restcloud.NothingFound:   `answer of GetMachineStatus: it says NotFound for machine \S+, and VM \S+ is there\n`,
	} {
		t.Run(string(bug), func(t *testing.T) {
			o := restOptions(bug)
			if testing.Short() {
				if bug == restcloud.LeaksDisk || bug == restcloud.NeedsID || bug == restcloud.SwallowsErrors {
					t.Skip("it plays 48 hours after the end again and again")
				}
				o.Tries = 3
			}
			report := runReport(t, o)
			require.Regexp(t, `^simtest: seed \d+: `+want, report)
			require.LessOrEqual(t, strings.Count(report, "\n"), maxStory, report)
			require.Equal(t, 2, strings.Count(report, "\n> "), "lines with a mark: the call and the legend: %s", report)
			require.NotContains(t, report, "deterministic")
		})
	}
}

// TestCorrectDriverBelowHTTPPasses: a driver without a mistake passes with default settings.
func TestCorrectDriverBelowHTTPPasses(t *testing.T) {
	o := restOptions("")
	if testing.Short() {
		o.Seeds = 12
	}
	Run(t, o)
}
