package manager_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// BenchmarkRoll rolls one deployment to another class with a surge of 10%,
// through the store in memory and the manager's own queue, until its status says
// that all machines are new and available and the old ones are gone or going. A
// status is written once a second at most, so the time is a matter of seconds.
func BenchmarkRoll(b *testing.B) {
	for _, machines := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(machines), func(b *testing.B) {
			for b.Loop() {
				rollFleet(b, int32(machines))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(machines), "ns/machine")
		})
	}
}

func rollFleet(b *testing.B, replicas int32) {
	b.StopTimer()
	o := manager.InMemory(nil)
	cluster := nodes{store.NewMemory(nil, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))}
	o.Cluster, o.Driver, o.Policies.Safety = cluster, &instant{nodes: cluster.Collection}, safety.Off()
	m, err := manager.New(o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	prepare(ctx, b, o, 0)
	d := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web"}}}
	d.Spec.Replicas = replicas
	d.Spec.Selector.Labels = map[string]string{"app": "web"}
	d.Spec.Template.Labels = d.Spec.Selector.Labels
	d.Spec.Template.Spec.Class.Name = "small"
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Percent: true, Value: 10}
	if d, err = o.Store.Deployments.Create(ctx, d); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	awaitFleet(ctx, b, o, d.Key)
	class := &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "large"}}, SecretRef: &object.Key{Name: "boot"}}
	if _, err := o.Store.Classes.Create(ctx, class); err != nil {
		b.Fatal(err)
	}
	if d, err = o.Store.Deployments.Live().Get(ctx, d.Key); err != nil {
		b.Fatal(err)
	}
	changed := d.Clone()
	changed.Spec.Template.Spec.Class.Name = "large"
	runtime.GC()
	b.StartTimer()
	if _, err := o.Store.Deployments.Update(ctx, changed); err != nil {
		b.Fatal(err)
	}
	awaitFleet(ctx, b, o, d.Key)
	b.StopTimer()
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
}

// awaitFleet returns when all machines of a deployment are of its present
// template and available, and no others are there but such as are being deleted.
func awaitFleet(ctx context.Context, b *testing.B, o manager.Options, key object.Key) {
	if _, err := store.Await(ctx, o.Store.Deployments, key, deployment.Missing); err != nil {
		b.Fatal(err)
	}
}
