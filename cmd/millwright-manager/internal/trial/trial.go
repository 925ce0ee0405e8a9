// Package trial has the manager with the simulated provider, which the commands millwright-manager and
// try share.
package trial

import (
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/millwright-go/millwright/cmd/millwright-manager/app"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

// settings are the settings of the simulated provider.
type settings struct {
	SimulatedDir       string        `group:"Simulated provider" required:"" placeholder:"DIR" help:"Folder whose files are the VMs."`
	SimulatedCreate    time.Duration `group:"Simulated provider" default:"1s" help:"How long a VM takes to be made."`
	SimulatedBoot      time.Duration `group:"Simulated provider" default:"5s" help:"How long a VM takes from then on until its node is ready."`
	SimulatedDelete    time.Duration `group:"Simulated provider" default:"1s" help:"How long a VM takes to go."`
	SimulatedHeartbeat time.Duration `group:"Simulated provider" default:"10s" help:"How often nodes renew their leases; 0: never."`
}

// Program returns the manager with the simulated provider.
func Program() app.Program {
	s := &settings{}
	return app.Program{
		Name:     "millwright-manager",
		About:    "Manages machine objects of Kubernetes with a simulated provider, whose VMs are files in a folder.",
		Settings: s,
		Driver:   s.driver,
	}
}

func (s *settings) driver(c app.Clusters) (driver.Driver, error) {
	for _, setting := range [...]struct {
		name string
		time time.Duration
	}{
		{"create", s.SimulatedCreate}, {"boot", s.SimulatedBoot}, {"delete", s.SimulatedDelete}, {"heartbeat", s.SimulatedHeartbeat},
	} {
		if setting.time < 0 {
			return nil, fmt.Errorf("%w: simulated-%s must not be negative", app.ErrSettings, setting.name)
		}
	}
	o := simulated.Options{
		Dir: s.SimulatedDir, Create: s.SimulatedCreate, Boot: s.SimulatedBoot, Delete: s.SimulatedDelete, Heartbeat: s.SimulatedHeartbeat,
	}
	if c.Target != nil && !c.DryRun {
		client, err := kubernetes.NewForConfig(c.Target)
		if err != nil {
			return nil, err
		}
		o.Nodes = client
	}
	p, err := simulated.New(o)
	if err != nil {
		return nil, fmt.Errorf("%w: simulated-dir: %w", app.ErrSettings, err)
	}
	return p, nil
}
