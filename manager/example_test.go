package manager_test

import (
	"context"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// A manager brings a deployment to its size: with a driver, a store in memory and no cluster.
func Example() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	provider := drivertest.NewMemory(drivertest.MemoryOptions{}) // your driver here
	options := manager.InMemory(time.Now)                        // your store here
	options.Driver = provider
	options.Policies.Safety = safety.DefaultPolicy()
	m, err := manager.New(options)
	if err != nil {
		fmt.Println(err)
		return
	}
	go m.Run(ctx)

	web := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Name: "web"}}}
	web.Spec.Replicas = 3
	web.Spec.Selector.Labels = map[string]string{"app": "web"}
	web.Spec.Template = machineset.Template{Labels: web.Spec.Selector.Labels}
	web.Spec.Template.Spec.Class.Name = "small"
	class := provider.Class(object.Key{Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "s"})
	if _, err := options.Store.Classes.Create(ctx, class); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := options.Store.Deployments.Create(ctx, web); err != nil {
		fmt.Println(err)
		return
	}
	for change, err := range options.Store.Deployments.Watch(ctx) {
		if err != nil || change.New.Status.Available == 3 {
			fmt.Println(provider.Count(), "VMs", err)
			break
		}
	}
	// Output: 3 VMs <nil>
}
