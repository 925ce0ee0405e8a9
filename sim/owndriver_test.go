package sim_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/internal/restcloud"
	"github.com/millwright-go/millwright/sim/scenario"
)

// useRESTDriver makes a scenario use the driver of a cloud with a REST API. It returns a function that
// returns the cloud, once the scenario was played.
func useRESTDriver(s *sim.Scenario, bug restcloud.Bug) func() *restcloud.Cloud {
	var cloud *restcloud.Cloud
	o := &s.Options
	o.NoCluster = true
	o.Class = func(name string) *machine.Class { return restcloud.Class(object.Key{}, name) }
	o.Driver = func(w *sim.World) driver.Driver {
		if cloud == nil {
			cloud = restcloud.New(w.After)
		}
		return &restcloud.Driver{
			URL: "http://cloud", Client: &http.Client{Transport: &sim.Transport{World: w, Handler: cloud}}, Sleep: w.Sleep, Bug: bug,
		}
	}
	o.Properties = []sim.Property{{Name: "one VM a machine", Check: func(*sim.World) error {
		if twins := cloud.Twins(); len(twins) > 0 {
			return fmt.Errorf("there are two VMs of %s", twins[0])
		}
		return nil
	}}}
	return func() *restcloud.Cloud { return cloud }
}

// playStorm plays the storm of a seed with a driver that has the given mistake. It returns the violated
// rule, or what is left in the cloud, or "".
func playStorm(t *testing.T, seed uint64, bug restcloud.Bug) string {
	t.Helper()
	s := scenario.Random(seed)
	cloud := useRESTDriver(s, bug)
	r := play(t, s)
	switch {
	case r.Violation != nil:
		return r.Violation.Rule
	case cloud().Count() > 0:
		return "VMs are left"
	case len(cloud().Disks()) > 0:
		return "disks are left"
	}
	return ""
}

// TestDriverOfACloud: a correct driver whose VMs the world does not know passes storms.
func TestDriverOfACloud(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		require.Empty(t, playStorm(t, seed, ""), "seed %d", seed)
	}
}

// TestMistakesOfADriver: storms find mistakes in such a driver within 20 seeds.
func TestMistakesOfADriver(t *testing.T) {
	const seeds = 20
	for bug, want := range map[restcloud.Bug]string{
		restcloud.Panics:         sim.RuleDriverPanicked,
		restcloud.IgnoresContext: sim.RuleContext,
		restcloud.CreatesAgain:   "one VM a machine",
		restcloud.LeaksDisk:      "disks are left",
		restcloud.DeletesNothing: "VMs are left",
		restcloud.NeedsID:        "disks are left",
	} {
		t.Run(string(bug), func(t *testing.T) {
			what := ""
			for seed := uint64(0); seed < seeds && what == ""; seed++ {
				what = playStorm(t, seed, bug)
			}
			require.Equal(t, want, what)
		})
	}
}

// TestPanicsOfADriver: a panic of a driver is a violation that says where it happened.
func TestPanicsOfADriver(t *testing.T) {
	s := scenario.Random(0)
	useRESTDriver(s, restcloud.Panics)
	v := play(t, s).Violation
	require.NotNil(t, v)
	require.Contains(t, v.What, "in CreateMachine of machine by-hand: no size small")
	require.Contains(t, v.What, "restcloud.(*Driver).CreateMachine")
	require.NotContains(t, v.What, "0x")
}

// TestSameSeedSameRunWithADriver: the same seed gives the same run with a driver of Options.Driver, too.
func TestSameSeedSameRunWithADriver(t *testing.T) {
	trace := func() (all []string) {
		s := scenario.Random(2)
		useRESTDriver(s, "")
		s.Options.Tell = func(at time.Time, what string) { all = append(all, at.String()+" "+what) }
		play(t, s)
		return all
	}
	first := trace()
	require.Greater(t, len(first), 500)
	require.Contains(t, strings.Join(first, "\n"), "and is not carried out")
	require.Contains(t, strings.Join(first, "\n"), "and its answer lost")
	require.Equal(t, first, trace())
}

// countingDriver wraps the world's provider, and counts the codes of its answers.
type countingDriver struct {
	driver.Driver
	answers map[codes.Code]int
}

func (d countingDriver) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	out, err := d.Driver.CreateMachine(ctx, req)
	d.answers[codes.Of(err)]++
	return out, err
}

// TestFaultsBelowADriver: the requests of a driver fail as often as Faults say, and not after the faults
// have stopped.
func TestFaultsBelowADriver(t *testing.T) {
	s := &sim.Scenario{Deployments: []*deployment.Deployment{sim.Fleet("web", 5, deployment.Strategy{})}}
	s.Steps = []sim.Step{{After: time.Hour, Do: sim.Scale, Name: "web", N: 20}}
	s.FaultsAfterSteps, s.Keep = time.Hour, true
	answers := map[codes.Code]int{}
	s.Options.Faults = sim.Faults{Call: 0.3, Codes: []codes.Code{codes.Aborted}, LostCall: 0.3}
	s.Options.Driver = func(w *sim.World) driver.Driver { return countingDriver{w.Provider(), answers} }
	r := play(t, s)
	require.NoError(t, errorOf(r.Violation))
	require.Positive(t, answers[codes.Aborted])
	require.Positive(t, answers[codes.DeadlineExceeded])
	require.Positive(t, answers[codes.OK])
	require.Len(t, answers, 3)
	require.Equal(t, 20, r.Left.VMs)

	clear(answers)
	s.Steps, s.FaultsAfterSteps = nil, 0 // the faults stop at once
	play(t, s)
	require.Equal(t, map[codes.Code]int{codes.OK: 5}, answers)
}

// slowDriver is a driver that waits before it creates a VM.
type slowDriver struct {
	driver.Driver
	wait func(context.Context) error
}

func (d slowDriver) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if err := d.wait(ctx); err != nil {
		return nil, err
	}
	return d.Driver.CreateMachine(ctx, req)
}

// TestDriversWaitInTheWorld: a call takes as much virtual time as the driver waits with World.Sleep, or by
// its own clock. Other calls run meanwhile. The call's context ends at its deadline in virtual time.
func TestDriversWaitInTheWorld(t *testing.T) {
	const wait = 7 * time.Minute
	now := time.Time{} // of the driver's own clock
	for name, test := range map[string]struct {
		make func(w *sim.World) func(context.Context) error
		took time.Duration
	}{
		"World.Sleep": {func(w *sim.World) func(context.Context) error {
			return func(ctx context.Context) error { return w.Sleep(ctx, wait) }
		}, wait},
		"its own clock": {func(*sim.World) func(context.Context) error {
			return func(context.Context) error { now = now.Add(wait); return nil }
		}, wait},
		"longer than the call may": {func(w *sim.World) func(context.Context) error {
			return func(ctx context.Context) error {
				if err := w.Sleep(ctx, time.Hour); err == nil || ctx.Err() == nil {
					return codes.New(codes.DataLoss, "it was not cut off")
				}
				return nil
			}
		}, 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			o := sim.Options{NoCluster: true, DriverNow: func() time.Time { return now }}
			o.Driver = func(w *sim.World) driver.Driver { return slowDriver{w.Provider(), test.make(w)} }
			w, err := sim.New(o)
			require.NoError(t, err)
			defer w.Close()
			began := w.Now()
			_, err = w.Deployments().Create(ctx, sim.Fleet("web", 3, deployment.Strategy{}))
			require.NoError(t, err)
			if name == "longer than the call may" {
				require.NoError(t, w.Run(test.took+time.Minute))
				require.Zero(t, w.Provider().Count(), "its context had ended")
				return
			}
			require.NoError(t, w.Until(func() bool { return w.Provider().Count() == 3 }, time.Hour))
			require.InDelta(t, test.took, w.Now().Sub(began), float64(time.Minute))
		})
	}
}

// TestTransport: Transport gives all of its answers when the provider fails. Requests outside of a call,
// and with a context of Undisturbed, do not fail.
func TestTransport(t *testing.T) {
	seen := map[string]int{}
	carried := 0
	serve := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		carried++
		body, _ := io.ReadAll(q.Body)
		_, _ = io.WriteString(w, q.Host+q.URL.Path+string(body))
	})
	o := sim.Options{NoCluster: true, Faults: sim.Faults{Call: 0.5, LostCall: 0.5}}
	o.Driver = func(w *sim.World) driver.Driver {
		client := &http.Client{Transport: &sim.Transport{World: w, Handler: serve}}
		post := func(ctx context.Context) string {
			q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://cloud/vms", strings.NewReader("!"))
			require.NoError(t, err)
			a, err := client.Do(q)
			if err != nil {
				return err.Error()
			}
			defer a.Body.Close()
			body, err := io.ReadAll(a.Body)
			require.NoError(t, err)
			return a.Status + " " + string(body)
		}
		require.Equal(t, "200 OK cloud/vms!", post(ctx), "outside of a call")
		return slowDriver{w.Provider().Memory, func(ctx context.Context) error {
			before := carried
			what := post(ctx)
			seen[fmt.Sprintf("%s, carried out %d times", what, carried-before)]++
			require.Equal(t, "200 OK cloud/vms!", post(sim.Undisturbed(ctx)))
			require.NoError(t, w.Request(sim.Undisturbed(ctx), "another", func(context.Context) error { return nil }))
			return nil
		}}
	}
	w, err := sim.New(o)
	require.NoError(t, err)
	defer w.Close()
	_, err = w.Deployments().Create(ctx, sim.Fleet("web", 60, deployment.Strategy{}))
	require.NoError(t, err)
	require.NoError(t, w.Until(func() bool { return w.Provider().Count() == 60 }, 10*time.Hour))
	for _, want := range []string{
		"200 OK cloud/vms!, carried out 1 times",
		"503 Service Unavailable , carried out 0 times", "503 Service Unavailable , carried out 1 times",
		"500 Internal Server Error , carried out 0 times", "500 Internal Server Error , carried out 1 times",
		"429 Too Many Requests , carried out 0 times",
		`Post "http://cloud/vms": sim: the connection was refused, carried out 0 times`,
		`Post "http://cloud/vms": sim: the connection broke before the answer came, carried out 1 times`,
	} {
		require.Positive(t, seen[want], want)
		delete(seen, want)
	}
	require.Empty(t, seen)
}

// TestOptionsOfAnotherProvider: Options.Class without Driver or NoCluster is an error that names the field.
func TestOptionsOfAnotherProvider(t *testing.T) {
	class := func(string) *machine.Class { return restcloud.Class(object.Key{}, "small") }
	own := func(*sim.World) driver.Driver { return driver.Unimplemented{} }
	for want, o := range map[string]sim.Options{
		"needs a Driver":  {Class: class, NoCluster: true},
		"needs NoCluster": {Class: class, Driver: own},
	} {
		_, err := sim.New(o)
		require.ErrorIs(t, err, object.ErrInvalid)
		require.ErrorContains(t, err, "Options.Class "+want)
	}
}

// TestScenariosWithoutACluster: random scenarios converge without a cluster, too. Seed 173 has a pool that
// is updated with more instances than wanted.
func TestScenariosWithoutACluster(t *testing.T) {
	for _, seed := range []uint64{1, 3, 5, 14, 173} {
		s := scenario.Random(seed)
		s.Options.NoCluster = true
		r := play(t, s)
		require.NoError(t, errorOf(r.Violation), "seed %d", seed)
		require.True(t, r.Left.None())
	}
}

// TestCallsThatHang plays storms in which 2 to 30 percent of the calls to the provider ignore their
// deadline. P52 and all other invariants hold, and everything converges.
// Invariants: P52
func TestCallsThatHang(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 9
	}
	sum := sim.Stats{}
	for seed := range seeds {
		for kind, s := range map[string]*sim.Scenario{"machines": scenario.Random(seed), "pools": scenario.RandomPools(seed)} {
			f := &s.Options.Faults
			f.Hang, f.HangFor = [...]float64{0.02, 0.1, 0.3}[seed%3], 20*time.Minute
			s.Options.Manager.Tuning.CallTimeout = time.Duration(1+seed%7) * time.Minute
			r := play(t, s)
			what := fmt.Sprintf("%s, seed %d", kind, seed)
			require.NoError(t, errorOf(r.Violation), what)
			require.True(t, r.Left.None(), "%s: %s", what, r.Left)
			sum.Add(&r.Stats)
		}
	}
	require.Greater(t, sum.Faults[sim.CallHung], int(seeds))
}
