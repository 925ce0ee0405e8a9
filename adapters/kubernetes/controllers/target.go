package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/adapters/kubernetes/bootstrap"
	"github.com/millwright-go/millwright/adapters/kubernetes/cluster"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
)

// join sets the manager's options for the cluster that machines join: its nodes, the drainer, and
// the bootstrap tokens. If there is no such cluster, it sets nothing.
func (f *fleet) join(control *rest.Config, report func(error), to *manager.Options) error {
	if f.NoTarget {
		return nil
	}
	config := control
	if f.Target != nil {
		config = unlimited(f.Target)
	}
	c, err := cluster.New(cluster.Options{Config: config, NodeMachine: f.MachinePolicy.Keys.NodeMachine, Report: report})
	if err != nil {
		return err
	}
	f.cluster, to.Cluster = c, c
	to.Drainer, err = drains.New(drains.Options{
		Nodes: c.Nodes(), Workload: c.Workload(), Policy: f.DrainPolicy, Known: f.knownVolumes,
		Limit: drains.Limit{Max: f.MaxDrains, Group: zone},
	})
	if err != nil {
		return err
	}
	to.Tokens, err = bootstrap.New(bootstrap.Options{Config: config, Groups: f.TokenGroups})
	return err
}

func zone(n *machine.Node) string { return n.Labels[corev1.LabelTopologyZone] }

// knownVolumes returns the provider's IDs of volumes, as the driver says. It returns none if the
// driver does not implement the call.
func (f *fleet) knownVolumes(ctx context.Context, volumes []*drain.Volume) ([]string, error) {
	req := &driver.GetVolumeIDsRequest{Volumes: make([]driver.Volume, len(volumes))}
	for i, v := range volumes {
		req.Volumes[i] = driver.Volume{Name: v.Name, Type: v.Driver, Handle: v.Handle, Spec: f.cluster.VolumeSpec(v.Name)}
	}
	resp, err := f.manager.Driver().GetVolumeIDs(ctx, req)
	switch {
	case err != nil && codes.Of(err) == codes.Unimplemented:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return resp.VolumeIDs, nil
}

// unlimited returns a copy of a config. If the config sets no rate limit, the copy switches off the
// client's default limit: the server's priority and fairness delays calls if needed.
func unlimited(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	if c.QPS == 0 && c.RateLimiter == nil {
		c.QPS = -1
	}
	return c
}
