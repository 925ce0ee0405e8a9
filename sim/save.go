package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/safety"
)

// saved is a scenario in written form. Driver, Properties, Tell, hooks and ports are code and are
// left out. Durations are in nanoseconds.
type saved struct {
	Seed                                        uint64
	Boot, Update                                time.Duration
	Faults                                      Faults
	NoCluster, NeedsInitialization, KeepClasses bool
	UpdatableTags                               bool
	Resync, CallTimeout                         time.Duration

	MachinePolicy    *machine.Policy     `json:",omitempty"`
	SetPolicy        *machineset.Policy  `json:",omitempty"`
	DeploymentPolicy *deployment.Policy  `json:",omitempty"`
	PoolPolicy       *machinepool.Policy `json:",omitempty"`
	PoolOptions      *PoolOptions        `json:",omitempty"`
	SafetyPolicy     *safety.Policy      `json:",omitempty"`
	Drain            *drain.Policy       `json:",omitempty"`
	DrainMax         int

	Classes     []string
	Deployments []*deployment.Deployment
	Pools       []*machinepool.Pool `json:",omitempty"`
	Apps        []App
	Steps       []Step
	Calm, Limit time.Duration
	Keep, Lone  bool

	// Needs names what is left out that a run depends on.
	Needs []string `json:",omitempty"`
}

// MarshalJSON writes the data of a scenario. It leaves out code, such as a driver, and names it:
// set it again before you play the scenario that was read.
func (s *Scenario) MarshalJSON() ([]byte, error) {
	o, m := &s.Options, &s.Options.Manager
	return json.Marshal(&saved{
		Seed: o.Seed, Boot: o.Boot, Update: o.Update, Faults: o.Faults, UpdatableTags: o.UpdatableTags,
		NoCluster: o.NoCluster, NeedsInitialization: o.NeedsInitialization, KeepClasses: m.KeepClasses,
		Resync: m.Resync, CallTimeout: m.CallTimeout,
		MachinePolicy: m.MachinePolicy, SetPolicy: m.SetPolicy, DeploymentPolicy: m.DeploymentPolicy, SafetyPolicy: m.SafetyPolicy,
		Drain: o.Drain, DrainMax: o.DrainLimit.Max, PoolPolicy: m.PoolPolicy, PoolOptions: o.Pools, Pools: s.Pools,
		Classes: s.Classes, Deployments: s.Deployments, Apps: s.Apps, Steps: s.Steps, Calm: s.Calm, Limit: s.Limit, Keep: s.Keep, Lone: s.Lone,
		Needs: s.code(),
	})
}

// UnmarshalJSON reads what MarshalJSON has written, and leaves the code in s as it is.
func (s *Scenario) UnmarshalJSON(text []byte) error {
	var in saved
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	o, m := &s.Options, &s.Options.Manager
	o.Seed, o.Boot, o.Update, o.Faults = in.Seed, in.Boot, in.Update, in.Faults
	o.UpdatableTags = in.UpdatableTags
	o.NoCluster, o.NeedsInitialization, m.KeepClasses = in.NoCluster, in.NeedsInitialization, in.KeepClasses
	m.Resync, m.CallTimeout = in.Resync, in.CallTimeout
	m.MachinePolicy, m.SetPolicy, m.DeploymentPolicy, m.SafetyPolicy = in.MachinePolicy, in.SetPolicy, in.DeploymentPolicy, in.SafetyPolicy
	o.Drain, o.DrainLimit.Max = in.Drain, in.DrainMax
	m.PoolPolicy, o.Pools, s.Pools = in.PoolPolicy, in.PoolOptions, in.Pools
	s.Classes, s.Deployments, s.Apps, s.Steps = in.Classes, in.Deployments, in.Apps, in.Steps
	s.Calm, s.Limit, s.Keep, s.Lone = in.Calm, in.Limit, in.Keep, in.Lone
	s.needs = in.Needs
	return nil
}

// ErrIncomplete is what Play returns for a scenario that was read from JSON, if it was written with
// a driver or properties of its own and they are not set again. Without them it would be another
// scenario.
var ErrIncomplete = errors.New("sim: the scenario needs code that is not written down")

// code names what a run of the scenario depends on and that is not written.
func (s *Scenario) code() (names []string) {
	o := &s.Options
	if o.Driver != nil || slices.Contains(s.needs, needsDriver) {
		names = append(names, needsDriver)
	}
	if o.PoolDriver != nil || slices.Contains(s.needs, needsPoolDriver) {
		names = append(names, needsPoolDriver)
	}
	for _, p := range o.Properties {
		names = append(names, needsProperty+p.Name)
	}
	for _, name := range s.needs {
		if strings.HasPrefix(name, needsProperty) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// These names stand for what a written scenario needs.
const (
	needsDriver     = "Options.Driver"
	needsPoolDriver = "Options.PoolDriver"
	needsProperty   = "Options.Properties: "
)

// whole returns ErrIncomplete if a scenario that was read lacks what it was played with.
func (s *Scenario) whole() error {
	set := *s
	set.needs = nil
	for _, name := range s.needs {
		if !slices.Contains(set.code(), name) {
			return fmt.Errorf("%w: set %s", ErrIncomplete, name)
		}
	}
	return nil
}
